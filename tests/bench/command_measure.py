"""Runs in the machine: measures each command of the plan in turn, in random order, and prints the milliseconds as JSON.

`how`: until its end (unless said otherwise), until the first byte of its output, from that byte to the last (`pipe`), or until the last of `count` that are
started at once, or from the last byte of its output to its end. `forks`: instead of a time, how many processes and threads the host started meanwhile (`processes` in /proc/stat, proc(5)). What is to be done `before` a command is not timed; `idle` is a rest before each, in seconds."""

import json
import os
import random
import subprocess
import sys
import time


def end(command, _):
    began = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    took = time.monotonic() - began
    if done.returncode != 0 or done.stdout or done.stderr:
        sys.exit(f"status {done.returncode} from {command}\n{done.stdout.decode()}{done.stderr.decode()}")
    return took


def first_byte(command, _):
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
        byte = running.stdout.read(1)
        took = time.monotonic() - began
        running.stdout.read()
    if running.returncode != 0 or not byte:
        sys.exit(f"status {running.returncode} and {byte} from {command}")
    return took


def pipe(command, plan):
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
        output = running.stdout.fileno()
        count = len(os.read(output, 1))
        began = time.monotonic()
        while block := os.read(output, 1 << 20):
            count += len(block)
        took = time.monotonic() - began
    if running.returncode != 0 or count != plan["bytes"]:
        sys.exit(f"status {running.returncode} and {count} bytes from {command}")
    return took


def last_byte(command, _):
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
        last = began = time.monotonic()
        while os.read(running.stdout.fileno(), 1 << 16):
            last = time.monotonic()
        running.wait()
        took = time.monotonic() - last
    if running.returncode != 0 or last == began:
        sys.exit(f"status {running.returncode} from {command}, or no output")
    return took


def together(command, plan):
    began = time.monotonic()
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(plan["count"])]
    said = [one.communicate()[1] for one in running]
    took = time.monotonic() - began
    for one, words in zip(running, said):
        if one.returncode != 0 or words:
            sys.exit(f"status {one.returncode} from {command}\n{words.decode()}")
    return took


def forks_of_host():
    with open("/proc/stat") as stat:
        return next(int(line.split()[1]) for line in stat if line.startswith("processes "))


def forks(command, plan):
    before = forks_of_host()
    end(command, plan)
    time.sleep(plan["idle"])  # what follows the end belongs to the command too
    return (forks_of_host() - before - 1) / 1000  # the command itself is no work of its own


WAYS = {way.__name__: way for way in (end, first_byte, last_byte, pipe, together, forks)}


def main():
    plan = json.load(sys.stdin)
    timed = WAYS[plan.get("how", "end")]
    order = random.Random(plan["seed"])
    times = {name: [] for name in plan["commands"]}
    for turn in range(plan["warm_up"] + plan["runs"]):
        names = list(times)
        order.shuffle(names)
        for name in names:
            if before := plan.get("before", {}).get(name):
                subprocess.run(before, check=True)
            time.sleep(plan["idle"])
            took = timed(plan["commands"][name], plan) * 1000
            if turn >= plan["warm_up"]:
                times[name].append(took)
    print(json.dumps(times))


if __name__ == "__main__":
    main()

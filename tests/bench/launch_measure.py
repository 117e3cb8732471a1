"""Runs in the machine as alice: times each command of the plan in turn, in random order, and prints the milliseconds as JSON.

What is to be done `before` a command is not timed. With `first_byte`, the time is until the first byte of its output."""

import json
import random
import subprocess
import sys
import time


def timed(command):
    began = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    took = (time.monotonic() - began) * 1000
    if done.returncode != 0 or done.stdout or done.stderr:
        sys.exit(f"status {done.returncode} from {command}\n{done.stdout.decode()}{done.stderr.decode()}")
    return took


def until_first_byte(command):
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
        byte = running.stdout.read(1)
        took = (time.monotonic() - began) * 1000
        running.stdout.read()
    if running.returncode != 0 or not byte:
        sys.exit(f"status {running.returncode} and {byte} from {command}")
    return took


def main():
    plan = json.load(sys.stdin)
    order = random.Random(plan["seed"])
    times = {name: [] for name in plan["commands"]}
    for turn in range(plan["warm_up"] + plan["runs"]):
        names = list(times)
        order.shuffle(names)
        for name in names:
            subprocess.run(plan.get("before", {}).get(name, ["true"]), check=True)
            time.sleep(plan["idle"])
            took = (until_first_byte if plan.get("first_byte") else timed)(plan["commands"][name])
            if turn >= plan["warm_up"]:
                times[name].append(took)
    print(json.dumps(times))


if __name__ == "__main__":
    main()

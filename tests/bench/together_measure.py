"""Runs in the machine: starts each command of the plan many times at once, and prints the milliseconds until the last is done as JSON."""

import json
import random
import subprocess
import sys
import time


def timed(command, count):
    began = time.monotonic()
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(count)]
    said = [one.communicate()[1] for one in running]
    took = (time.monotonic() - began) * 1000
    for one, words in zip(running, said):
        if one.returncode != 0 or words:
            sys.exit(f"status {one.returncode} from {command}\n{words.decode()}")
    return took


def main():
    plan = json.load(sys.stdin)
    order = random.Random(plan["seed"])
    times = {name: [] for name in plan["commands"]}
    for turn in range(plan["warm_up"] + plan["runs"]):
        names = list(times)
        order.shuffle(names)
        for name in names:
            time.sleep(0.5)
            took = timed(plan["commands"][name], plan["count"])
            if turn >= plan["warm_up"]:
                times[name].append(took)
    print(json.dumps(times))


if __name__ == "__main__":
    main()

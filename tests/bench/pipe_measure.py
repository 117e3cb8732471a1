"""Runs in the machine: reads what each command of the plan writes, and prints the milliseconds from its first byte to the end as JSON."""

import json
import os
import random
import subprocess
import sys
import time


def timed(command, expected):
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
        pipe = running.stdout.fileno()
        count = len(os.read(pipe, 1))
        began = time.monotonic()
        while block := os.read(pipe, 1 << 20):
            count += len(block)
        took = (time.monotonic() - began) * 1000
    if running.returncode != 0 or count != expected:
        sys.exit(f"status {running.returncode} and {count} bytes from {command}")
    return took


def main():
    plan = json.load(sys.stdin)
    order = random.Random(plan["seed"])
    times = {name: [] for name in plan["commands"]}
    for turn in range(plan["warm_up"] + plan["runs"]):
        names = list(times)
        order.shuffle(names)
        for name in names:
            took = timed(plan["commands"][name], plan["bytes"])
            if turn >= plan["warm_up"]:
                times[name].append(took)
    print(json.dumps(times))


if __name__ == "__main__":
    main()

"""Runs in the machine as alice: times each command of the plan in turn, in random order, and prints the milliseconds as JSON.

What is to be done `before` a command is not timed."""

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
            took = timed(plan["commands"][name])
            if turn >= plan["warm_up"]:
                times[name].append(took)
    print(json.dumps(times))


if __name__ == "__main__":
    main()

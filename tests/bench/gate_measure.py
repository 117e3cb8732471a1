"""Runs in the machine: puts each question of the plan to each of its commands, turn by turn and in random order, and prints the milliseconds as JSON.

The commands are those of gate_client.py, which stay. `asks`: {name: {way: [command, question]}}."""

import json
import random
import subprocess
import sys
import time


def begin(command):
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if running.stdout.readline() != b"ready\n":
        sys.exit(f"no answer from {command}")
    return running


def ask(running, question):
    running.stdin.write(json.dumps(question).encode() + b"\n")
    running.stdin.flush()
    line = running.stdout.readline()
    if not line:
        sys.exit(f"it ended at {question}")
    return json.loads(line)


def main():
    plan = json.load(sys.stdin)
    running = {name: begin(command) for name, command in plan["commands"].items()}
    draw = random.Random(plan["seed"])
    times = {}
    for name, ways in plan["asks"].items():
        times[name] = {way: [] for way in ways}
        for turn in range(plan["warm_up"] + plan["runs"]):
            order = list(ways)
            draw.shuffle(order)
            for way in order:
                command, question = ways[way]
                time.sleep(plan["idle"])
                took = ask(running[command], question)
                if turn >= plan["warm_up"]:
                    times[name][way].append(took)
    for one in running.values():
        one.stdin.close()
        one.wait()
    print(json.dumps(times))


if __name__ == "__main__":
    main()

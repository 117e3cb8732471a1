"""Runs in the machine as root: times our sync and rsync over the same files, turn by turn and in random order; prints milliseconds as JSON."""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time

PLACE = "/var/lib/bench-sync"
SOURCE = "/home/alice/bench-config"
OURS, PEER = "pi", "rsync -a --delete"
USER, AGENT = "alice", "pi-agent-alice"
PER_DIRECTORY = 20


def commands(place):
    return {
        OURS: ["/usr/local/libexec/sync-driver", SOURCE, f"{place}/pi", USER, AGENT],
        PEER: ["rsync", "-a", "--delete", f"{SOURCE}/", f"{place}/rsync/"],
    }


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def run(command):
    """Milliseconds by the clock, and of processors: those tell something on a busy machine, too."""
    used = cpu_of_children()
    began = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    took = (time.monotonic() - began) * 1000
    if done.returncode != 0 or done.stdout or done.stderr:
        sys.exit(f"status {done.returncode} from {command}\n{done.stdout.decode()}{done.stderr.decode()}")
    return took, cpu_of_children() - used


def fresh_place(name):
    """Trusted parents, as the product's own state has."""
    for program in ("pi/users", "rsync"):  # the first as apply makes it
        os.makedirs(f"{PLACE}/{name}/{program}", mode=0o755)
    return f"{PLACE}/{name}"


def path_of(number):
    return f"{SOURCE}/dir{number // PER_DIRECTORY // 10}/sub{number // PER_DIRECTORY % 10}/file{number}.md"


def write(number, draw, more=0):
    with open(path_of(number), "wb") as file:
        file.write(draw.randbytes(draw.choice([200, 500, 1000, 2000, 5000, 12000]) + more))
    shutil.chown(path_of(number), USER, USER)


def make_source(count, draw):
    shutil.rmtree(SOURCE, ignore_errors=True)
    for number in range(count):
        os.makedirs(os.path.dirname(path_of(number)), exist_ok=True)
        write(number, draw)
    subprocess.run(["chown", "-R", f"{USER}:{USER}", SOURCE], check=True)


def assert_same(place):
    """Both did their work: nothing differs but what only one of them has."""
    for target in (f"{place}/rsync", f"{place}/pi/users/{USER}/home/.pi/agent"):
        compared = subprocess.run(["diff", "-r", "--exclude=settings.json", SOURCE, target], stdout=subprocess.PIPE)
        if compared.returncode != 0:
            sys.exit(f"{target} differs from {SOURCE}: {compared.stdout[:500].decode()}")


def turn(times, draw, place):
    names = list(commands(place))
    draw.shuffle(names)
    for name in names:
        time.sleep(0.05)
        took, used = run(commands(place)[name])
        series = times.setdefault(name, {"clock": [], "cpu": []})
        series["clock"].append(took)
        series["cpu"].append(used)


def measure(count, runs, draw):
    """{case: {program: {clock, cpu: [ms]}}}. Untimed runs before the unchanged ones: the first after a copy compares bytes once."""
    make_source(count, draw)
    found = {"cold": {}, "second": {}, "unchanged": {}, "1 % changed": {}}
    for number in range(runs["cold"]):
        # Nothing is removed before the end: ext4 searches long for an inode where many were freed within the last minutes.
        place = fresh_place(f"{count}-{number}")
        os.sync()
        turn(found["cold"], draw, place)
        time.sleep(0.1)
        turn(found["second"], draw, place)
    assert_same(place)
    for _ in range(runs["warm"]):
        turn(found["unchanged"], draw, place)
    for number in range(runs["warm"]):
        for changed in draw.sample(range(count), count // 100):
            write(changed, draw, number + 1)  # another size each turn: within a second rsync sees nothing else
        time.sleep(0.1)
        turn(found["1 % changed"], draw, place)
        time.sleep(0.1)
        turn({}, draw, place)
    assert_same(place)
    return found


def main():
    plan = json.load(sys.stdin)
    draw = random.Random(plan["seed"])
    print(json.dumps({count: measure(int(count), runs, draw) for count, runs in plan["runs"].items()}))


main()

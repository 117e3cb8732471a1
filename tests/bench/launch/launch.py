"""What a start costs: `pi` around /usr/bin/true beside `sudo -n systemd-run --wait --pipe` of the same program with the same properties.

The properties are those of a session that runs meanwhile, as systemd wrote them down, with that session's root tree: the peer gets
the same sandbox from systemd, but neither policy nor preparation, Landlock, the second filter or supervision.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is written into the checkout
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "machine"))

from cache import Build  # noqa: E402
from machine import Machine  # noqa: E402
from progress import say  # noqa: E402
from recipes import MACHINES  # noqa: E402
from statistics_of import ratio, summary  # noqa: E402

DEMO = "/home/alice/projects/demo"
AGENT = "/usr/lib/bench-agent/bin/pi"
# With an argument it stays, so that its unit can be read.
STAYING_AGENT = '#!/bin/sh\necho "$PI_AGENT_SESSION"; exec sleep 600\n'
POLICY = "version: 1\nagent: {{binary: {agent}, accounts: per-user}}\nusers:\n  alice: {{roots: [~/projects]}}\n"
SUDOERS = "Defaults!/usr/bin/systemd-run !use_pty\nalice ALL=(root) NOPASSWD: /usr/bin/systemd-run\n"
# Belongs to that one session, or systemd-run sets it itself.
NOT_SHARED = {"Description", "BindsTo", "Requires", "After", "ExecStart", "StandardInput", "StandardOutput", "StandardError", "AddRef",
              "CollectMode", "Type"}  # fmt: skip
OURS, PEER = "pi", "sudo systemd-run, same properties"
TARGET = 1.2


def place_agents(machine):
    for kind in ("staying", "true"):
        machine.write(AGENT.replace("bench", kind), STAYING_AGENT, mode=0o755)
    machine.root(["cp", "/usr/bin/true", AGENT.replace("bench", "true")], check=True)
    machine.write("/etc/sudoers.d/bench", SUDOERS, mode=0o440)


def properties_of(machine, session):
    """What systemd wrote into the transient unit of a session, as options of systemd-run."""
    lines = machine.read(f"/run/systemd/transient/pi-agent-{session}.service").decode().splitlines()
    assignments = [line for line in lines if "=" in line and not line.startswith("#") and line.split("=")[0] not in NOT_SHARED]
    # An empty assignment clears a list before the values that follow; an option of its own does so too.
    return [f"--property={line}" for line in assignments]


def measure(machine, options):
    place_agents(machine)
    machine.install_policy(POLICY.format(agent=AGENT.replace("bench", "staying")))
    staying = machine.popen(["pi"], cwd=DEMO)
    session = staying.stdout.readline().decode().strip()
    if len(session) != 32:
        sys.exit(f"launch: no session to take the properties from: {staying.stderr.read().decode()}")
    properties = properties_of(machine, session)
    machine.install_policy(POLICY.format(agent=AGENT.replace("bench", "true")))
    sudo = ["sudo", "-n", "systemd-run", "--quiet", "--wait", "--pipe", "--collect"]
    commands = {
        OURS: ["pi"],
        PEER: [*sudo, *properties, "--", "/usr/bin/true"],
        "sudo systemd-run, no properties": [*sudo, "--", "/usr/bin/true"],
    }
    plan = {"commands": commands, "runs": options.runs, "warm_up": 3, "idle": options.idle / 1000, "seed": options.seed}
    say(f"{options.runs} runs of each, in random order, {options.idle} ms idle before each")
    try:
        done = machine.run(["python3", "-c", (HERE / "measure.py").read_text()], cwd=DEMO, input=json.dumps(plan).encode(), timeout=900)
    finally:
        staying.kill_all()
        staying.wait()
    if done.returncode != 0:
        sys.exit(f"launch: {done.stderr.decode()}")
    return json.loads(done.stdout), len(properties)


def report(name, times, count, options):
    compared = ratio(times[OURS], times[PEER], options.seed)
    return {
        "machine": name, "properties": count, "idle_ms": options.idle, "seed": options.seed, "target": TARGET,
        "ms": {what: summary(series) for what, series in times.items()},
        "ratio": compared, "within_target": compared["median"] <= TARGET,
    }  # fmt: skip


def table(found):
    print(f"\n{found['machine']}: start of /usr/bin/true and back, ms ({found['properties']} properties)")
    print(f"{'':36}{'median':>8}{'p10':>8}{'p90':>8}")
    for what, numbers in found["ms"].items():
        print(f"{what:36}{numbers['median']:8.1f}{numbers['p10']:8.1f}{numbers['p90']:8.1f}")
    low, high = found["ratio"]["low"], found["ratio"]["high"]
    verdict = "within" if found["within_target"] else "above"
    print(f"pi / systemd-run: {found['ratio']['median']:.2f} (95 %: {low:.2f} to {high:.2f}), {verdict} the target of {TARGET}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="launch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", action="append", choices=MACHINES, help="only this machine; may be repeated")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--idle", type=float, default=30, help="milliseconds before each run")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", action="store_true", help="the numbers as JSON instead of a table")
    options = parser.parse_args()
    results = []
    for name in options.machine or MACHINES:
        with Machine(f"bench-{os.getpid()}", name) as machine:
            machine.create()
            machine.install(Build(name))
            machine.boot()
            results.append(report(name, *measure(machine, options), options))
            machine.stop()
        if not options.json:
            table(results[-1])
    if options.json:
        print(json.dumps(results, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())

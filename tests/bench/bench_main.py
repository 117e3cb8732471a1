"""What several benches share: their options, a machine with the product for each Debian, and the order of what they print."""

import argparse
import contextlib
import dataclasses
import json
import os
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is written into the checkout
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "machine"))

from cache import Build  # noqa: E402
from launch_ratio import difference, ratio, summary  # noqa: E402
from machine import Machine  # noqa: E402
from recipes import MACHINES  # noqa: E402

DEMO = "/home/alice/projects/demo"
AGENTS = "/usr/lib/bench-agent"  # each below a directory of its own: an agent's directory is hidden from users
POLICY = "version: 1\nagent: {{binary: {agent}, accounts: per-user}}\nusers:\n  alice: {{roots: [~/projects]}}\n{more}"


def place_agent(machine, name, program):
    """`program`: a path in the machine, or the text of a script. Returns where the agent is."""
    place = f"{AGENTS}/{name}/bin/pi"
    if program.startswith("#!"):
        machine.write(place, program, mode=0o755)
    else:
        machine.root(["sh", "-c", 'mkdir -p "${2%/*}" && cp "$1" "$2"', "sh", program, place], check=True)
    return place


def install_policy(machine, agent, more=""):
    machine.install_policy(POLICY.format(agent=agent, more=more))


def turns(options, idle):
    """Of a plan: how often, after how many that do not count, and what rest before each, in seconds."""
    return {"runs": options.runs, "warm_up": min(options.runs, 3), "idle": idle, "seed": options.seed}


def in_machine(machine, program, plan, user="alice", timeout=1800):
    """Runs one of the programs beside this one in the machine with a plan as its input; its answer."""
    done = machine.run(["python3", "-c", (HERE / program).read_text()], user=user, cwd=DEMO, input=json.dumps(plan).encode(), timeout=timeout)
    if done.returncode != 0:
        sys.exit(f"{program}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def is_missed(found, bound):
    """Where all of the interval lies above the bound; of one run there is none."""
    return bound is not None and (found["median"] if found["low"] is None else found["low"]) > bound


def interval_of(found, digits):
    return "of one run" if found["low"] is None else f"95 %: {found['low']:.{digits}f} to {found['high']:.{digits}f}"


def held(what, found, bound=None):
    """One line of a result: a ratio, its interval, and what it may be."""
    return {"what": what, "ratio": found, "bound": bound, "missed": is_missed(found, bound)}


def compared(what, ours, theirs, options, bound=None):
    return held(what, ratio(ours, theirs, options.seed), bound)


def more(what, ours, theirs, options, bound=None, count=1):
    """One line of a result: how many milliseconds more, for each of `count`, with the interval."""
    found = difference([one / count for one in ours], [one / count for one in theirs], options.seed)
    return {"what": what, "value": found["median"], "unit": f"ms more ({interval_of(found, 1)})", "bound": bound, "missed": is_missed(found, bound)}


def absolute(what, numbers, unit="ms"):
    """One line of a result: the median of a summary (launch_ratio.py), and the times that a tenth lies below and above."""
    return {"what": what, "value": numbers["median"], "unit": f"{unit} ({numbers['p10']:.1f} to {numbers['p90']:.1f})", "bound": None}


def in_milliseconds(times, prefix=""):
    """Such a line for each series of {name: [ms]}."""
    return [absolute(f"{prefix}{name}", summary(series)) for name, series in times.items()]


def text_of(line):
    if "ratio" in line:
        found = line["ratio"]
        text = f"{line['what']}: {found['median']:.2f} ({interval_of(found, 2)})"
    else:
        text = f"{line['what']}: {line['value']:.1f} {line['unit']}"
    if line["bound"] is None:
        return text
    return f"{text}, {'above' if line['missed'] else 'within'} the bound of {line['bound']}"


@contextlib.contextmanager
def machine_of(recipe, options, packages, source=None):
    """With the product: the one that runs already, or a new one until the end; always a new one with the product of another checkout."""
    if options.booted and not source:
        yield Machine(options.booted, recipe).attach()
        return
    build = Build(recipe, source) if source else Build(recipe)
    MACHINES[recipe] = dataclasses.replace(MACHINES[recipe], packages=(*MACHINES[recipe].packages, *packages))
    with Machine(f"bench-{'before-' if source else ''}{os.getpid()}", recipe) as machine:
        machine.create()
        machine.install(build)
        machine.boot()
        yield machine
        machine.stop()


def main(name, description, measure, arguments=(), packages=lambda options: ()):
    """measure(machine, options) returns the lines. `arguments`: (name, keywords) of further options; packages(options): of Debian's, beside the machine's own."""
    parser = argparse.ArgumentParser(prog=name, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", action="append", choices=MACHINES, help="only this machine; may be repeated")
    parser.add_argument("--booted", metavar="NAME", help="in this machine, which runs already and has the product")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", action="store_true", help="the numbers as JSON instead of text")
    for argument, keywords in arguments:
        parser.add_argument(argument, **keywords)
    options = parser.parse_args()
    results = []
    for recipe in options.machine or list(MACHINES):
        with machine_of(recipe, options, packages(options)) as machine:
            results.append({"machine": recipe, "seed": options.seed, "lines": measure(machine, options)})
        if not options.json:
            print(f"\n{recipe} (seed {options.seed})")
            print(*(text_of(line) for line in results[-1]["lines"]), sep="\n", flush=True)
    if options.json:
        print(json.dumps(results, indent=2))
    return 0

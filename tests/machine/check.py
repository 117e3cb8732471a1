"""The whole check: lint, unit tests with sanitizers, fuzzers, system tests and attacks on every machine, and one sum at the end."""

import argparse
import os
import signal
import sys
import time
import traceback

import assurance
import lanes
import listing
import suites
import unfinished
from cache import HERE
from progress import say
from recipes import MACHINES
from results import Results

SUITES = ("lint", "static", "unit", "fuzz", "nix", "system", "attack", "container", "work", "bench")  # what runs without the packages that only --full installs


def check(options, results, run):
    arguments = [f"--only={options.only}"] if options.only else []
    arguments += ["--full"] if options.full else []
    arguments += [f"--suite={suite}" for suite in options.suite]
    arguments += [f"--unfinished={run.directory}"] if run.directory else []
    command = [sys.executable, "-B", str(HERE / "suites.py"), *arguments]
    # What boots a machine mostly waits, what does not mostly compiles.
    runs = [(name, part) for name in options.machine for part in suites.parts(name, options.full, options.suite)]
    # With --full that is hours of it, for which what measures time must not wait.
    nice = {"unbooted": ["nice", "-n", "5"]} if options.full else {}
    lanes.run({f"{name} {part}": [*nice.get(part, []), *command, f"--machine={name}", f"--part={part}"] for name, part in runs}, results)
    if not results.total():
        results.add("failed", f"--only {options.only}", "no test has this in its name, of the suites that were asked for")


def parse():
    parser = argparse.ArgumentParser(prog="check")
    parser.add_argument("--machine", action="append", choices=MACHINES, help="this machine and no other; may be repeated (default: all)")
    parser.add_argument("--only", metavar="PATTERN", help="only tests with PATTERN in their name (pytest's -k)")
    parser.add_argument("--full", action="store_true", help="also analyse the sources and build with clang; also the emulated machine; sampled tests try everything")
    parser.add_argument("--continue", dest="goes_on", action="store_true", help="with --full: go on with an interrupted run, or with one in which tests failed that are mended now")
    parser.add_argument("--suite", action="append", default=[], choices=SUITES, help="only this suite, whole; may be repeated")
    parser.add_argument("--list", action="store_true", help="runs nothing: tells which tests run on which machine")
    parser.add_argument("--json", action="store_true", help="with --list: as one object, {machine: {suite: [test]}}")
    options = parser.parse_args()
    if options.json and not options.list:
        parser.error("--json goes with --list")
    if options.suite and options.full:
        parser.error("--full is all suites")
    if options.goes_on and (not options.full or options.machine or options.only):
        parser.error("--continue goes with --full, of all machines and tests")
    options.whole = (options.full or options.suite) and not (options.machine or options.only)
    options.machine = list(dict.fromkeys(options.machine or MACHINES))
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that machines are ended and removed
    os.environ.setdefault("PI_AGENT_SEED", str(int(time.time())))
    os.environ["PI_AGENT_FULL"] = "1" if options.full else ""
    if options.list:
        return listing.show(options)
    results = Results()
    try:
        commit = assurance.commit()
        run = unfinished.begin(commit, options.goes_on, suites.tests_of_pieces()) if options.full and options.whole else unfinished.Unfinished()
        say(f"sampled tests use seed {os.environ['PI_AGENT_SEED']} (set PI_AGENT_SEED to repeat them)")
        check(options, results, run)
        if options.whole:
            say(f"writing {assurance.write(results, commit, run.beginnings(), options.suite, run.changes())}")
        if not results.counts["failed"]:  # or else --continue goes on once the tests that failed are mended
            run.remove()
    except Exception as failure:  # whatever it is: the last line must not be missing, nor sound well
        traceback.print_exc()
        results.add("failed", "the check itself", repr(failure))
    say("done")
    results.print()
    return 1 if results.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""The whole check: lint, unit tests with sanitizers, system tests and attacks on every machine, and one sum at the end."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from cache import SOURCE, Build
from progress import CommandFailed, say
from recipes import MACHINES
from results import Results

PYTEST_SUITES = ("system", "attack")
SANITIZED = {"variant": "sanitized", "options": ["--buildtype=debug", "-Db_sanitize=address,undefined", "-Db_lundef=false"]}
LINT = {"variant": "lint", "tools": True}
CLANG = {"variant": "clang", "tools": True, "environment": ["CC=clang", "CXX=clang++"]}


def meson_suite(results, suite, name, only, **variant):
    """Runs one of meson's suites in a build root and adds its cases."""
    label = f"{suite} on {name}"
    say(label)
    try:
        build = Build(name, **variant)
        build.setup()
        selected = build.tests_of(suite, only)
        if not selected:
            if not only:
                results.add("failed", label, "the suite has no tests")
            return
        log = build.test(suite, selected)
    except CommandFailed as failure:
        results.add("failed", label, f"could not run: {failure}")
        return
    results.add_meson(log, label)


def pytest_suites(results, machine, only):
    """Runs system tests and attacks on one machine, in one session, so that they share what they boot."""
    say(f"system tests and attacks on {machine}")
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v", "--tb=short"]
        command += [f"--rootdir={SOURCE}", f"--machine={machine}", f"--junitxml={report}"]
        command += [f"-k={only}"] if only else []
        command += [f"tests/{suite}" for suite in PYTEST_SUITES]
        status = subprocess.run(command, cwd=SOURCE, stdin=subprocess.DEVNULL).returncode
        before = results.counts["failed"]
        ran = results.add_junit(report, machine) if report.exists() else set()
    if status not in (0, 1, 5) or (status == 1 and results.counts["failed"] == before):
        results.add("failed", f"system tests and attacks on {machine}", f"pytest ended with status {status}: see above")
    for suite in PYTEST_SUITES:
        if suite not in ran and not only:
            results.add("failed", f"{suite} on {machine}", "no test of this suite ran: see above")


def compiles(results, label, name, everything=False, **variant):
    """Tells whether everything builds; only a failure is a result."""
    say(label)
    try:
        Build(name, **variant).compile(everything)
    except CommandFailed as failure:
        results.add("failed", label, str(failure))
        return False
    return True


def check(options, results):
    names = options.machine or list(MACHINES)
    for name in names:
        if name == names[0]:
            meson_suite(results, "lint", name, options.only, **LINT)
        meson_suite(results, "unit", name, options.only, **SANITIZED)
        if options.full:
            compiles(results, f"build with clang on {name}", name, everything=True, **CLANG)
        if compiles(results, f"build on {name}", name):
            pytest_suites(results, name, options.only)
        else:
            for suite in PYTEST_SUITES:
                results.add("failed", f"{suite} on {name}", "could not run: the product does not build")
    if not results.total():
        results.add("failed", f"--only {options.only}", "no test has this in its name")


def main():
    parser = argparse.ArgumentParser(prog="check")
    parser.add_argument("--machine", action="append", choices=MACHINES, help="only this machine; may be repeated")
    parser.add_argument("--only", metavar="PATTERN", help="only tests with PATTERN in their name (pytest's -k)")
    parser.add_argument("--full", action="store_true", help="also build with clang; sampled tests try everything")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that machines are ended and removed
    os.environ.setdefault("PI_AGENT_SEED", str(int(time.time())))
    os.environ["PI_AGENT_FULL"] = "1" if options.full else ""
    say(f"sampled tests use seed {os.environ['PI_AGENT_SEED']} (set PI_AGENT_SEED to repeat them)")
    results = Results()
    try:
        check(options, results)
    except Exception as failure:  # whatever it is: the last line must not be missing, nor sound well
        traceback.print_exc()
        results.add("failed", "the check itself", repr(failure))
    say("done")
    results.print()
    return 1 if results.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

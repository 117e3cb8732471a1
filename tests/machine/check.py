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
from recipes import EMULATED, MACHINES
from results import Results

PYTEST_SUITES = ("system", "attack")
# The same attacks on a second machine find what systemd does differently, and take as long again: a part of them, another one each time.
SAMPLED_SUITE, SAMPLE = "attack", "0.3"
SANITIZED = {"variant": "sanitized", "options": ["--buildtype=debug", "-Db_sanitize=address,undefined", "-Db_lundef=false"]}
LINTED = "bookworm"  # with its clang-format: another version formats otherwise
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


def pytest_suite(results, suite, machine, only, sample=""):
    """Runs one suite on a machine of its own, so that no suite depends on what another left there; `sample`: which part of it."""
    label = f"{suite} on {machine}" + (f" (a sample of {sample}, seed {os.environ['PI_AGENT_SEED']})" if sample else "")
    say(label)
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v", "--tb=short"]
        command += [f"--rootdir={SOURCE}", f"--machine={machine}", f"--junitxml={report}"]
        command += [f"-k={only}"] if only else []
        environment = {**os.environ, "PI_AGENT_SAMPLE": sample}
        status = subprocess.run([*command, f"tests/{suite}"], cwd=SOURCE, stdin=subprocess.DEVNULL, env=environment).returncode
        failed_before = results.counts["failed"]
        if report.exists():
            results.add_junit(report, label)
    if status == 5 and not only:
        results.add("failed", label, "the suite has no tests")
    elif status not in (0, 1, 5) or (status == 1 and results.counts["failed"] == failed_before):
        results.add("failed", label, f"could not run: pytest ended with status {status}, see above")


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
    # All of them take longer than the half hour that a change may wait for its check on two cores.
    names = options.machine or list(MACHINES)[: None if options.full else 1]
    for name in names:
        if name == LINTED:
            meson_suite(results, "lint", name, options.only, **LINT)
        meson_suite(results, "unit", name, options.only, **SANITIZED)
        if options.full:
            compiles(results, f"build with clang on {name}", name, everything=True, **CLANG)
        built = compiles(results, f"build on {name}", name)
        for suite in PYTEST_SUITES:
            sampled = suite == SAMPLED_SUITE and name != names[0] and not options.full and not options.only
            if built:
                pytest_suite(results, suite, name, options.only, SAMPLE if sampled else "")
            else:
                results.add("failed", f"{suite} on {name}", "could not run: the product does not build")
        if built and name == EMULATED.machine and options.full:
            pytest_suite(results, "emulated", name, options.only)
    if not results.total():
        results.add("failed", f"--only {options.only}", "no test has this in its name")


def main():
    parser = argparse.ArgumentParser(prog="check")
    parser.add_argument("--machine", action="append", choices=MACHINES, help="this machine and no other; may be repeated (default: the first, with --full all)")
    parser.add_argument("--only", metavar="PATTERN", help="only tests with PATTERN in their name (pytest's -k)")
    parser.add_argument("--full", action="store_true", help="also build with clang; every machine and the emulated one; sampled tests try everything")
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

"""Tells which tests run on which machine, without running them."""

import json
import subprocess
import sys

from cache import SOURCE, Build
from progress import CommandFailed
from suites import meson_suites, pytest, pytest_suites


def of_meson(suite, name, only, variant):
    """The programs of a suite; each has many cases of its own."""
    build = Build(name, **variant)
    build.setup()
    return [test["name"] for test in build.tests_of(suite, only)]


def of_pytest(suite, name, only):
    collect = [*pytest(name, only, [f"tests/{suite}"]), "--collect-only", "--quiet"]
    done = subprocess.run(collect, cwd=SOURCE, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 5):
        raise CommandFailed(f"status {done.returncode} from pytest --collect-only tests/{suite}\n{done.stdout}{done.stderr}")
    return [line for line in done.stdout.splitlines() if "::" in line]


def tests_of(name, options):
    """{suite: [test]} in the order in which they run."""
    built = meson_suites(name, options.full, options.suite)
    tests = {suite: of_meson(suite, name, options.only, variant) for suite, variant in built.items()}
    return tests | {suite: of_pytest(suite, name, options.only) for suite in pytest_suites(name, options.full, options.suite)}


def as_text(machines):
    for name, suites in machines.items():
        for suite, tests in suites.items():
            yield f"{suite} on {name}: {len(tests)}"
            yield from (f"  {test}" for test in tests)


def show(options):
    try:
        machines = {name: tests_of(name, options) for name in options.machine}
    except CommandFailed as failure:
        print(f"check: {failure}", file=sys.stderr)
        return 1
    print(json.dumps(machines, indent=1) if options.json else "\n".join(as_text(machines)))
    return 0

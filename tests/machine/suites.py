"""The suites of one machine, one after the other; `check` runs processes of this side by side, for what boots the machine and for what does not."""

import argparse
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from cache import CLANG, CLANG_AT_ONCE, FUZZ, LINT, SANITIZED, SOURCE, STATIC, WITH_SEAMS, Build
from progress import CommandFailed, say
from recipes import EMULATED, LINTED, MACHINES
from results import Results
from unfinished import Unfinished


def meson_suite(results, suite, name, only, **variant):
    """Runs one of meson's suites in a build root and adds its cases. False when it could not be run."""
    with results.suite(suite, name) as label:
        say(label)
        try:
            build = Build(name, **variant)
            build.setup()
            selected = build.tests_of(suite, only)
            if not selected:
                if not only:
                    results.add("failed", label, "the suite has no tests")
                return False
            log = build.test(suite, selected)
        except CommandFailed as failure:
            results.add("failed", label, f"could not run: {failure}")
            return False
        results.add_meson(log, label)
        ran = {json.loads(line)["name"].split(" / ")[-1] for line in log.read_text().splitlines()}
        missing = [test["name"] for test in selected if test["name"] not in ran]
        for name in missing:
            results.add("failed", f"{label}: {name}", "did not run")
    return not missing


def pytest_suite(results, piece, machine, only, sample=""):
    """Runs one piece of a suite on a machine of its own, so that none depends on what another left there; `sample`: which part of it.
    False when it did not come to its end."""
    with results.suite(piece.label, machine, sample) as label, tempfile.TemporaryDirectory() as directory:
        say(label)
        report = Path(directory) / "report.xml"
        command = [*pytest(machine, only, piece.tests), "-v", "--tb=short", "--durations=10", "--durations-min=3", f"--junitxml={report}"]
        environment = {**os.environ, "PI_AGENT_SAMPLE": sample}
        status = subprocess.run(command, cwd=SOURCE, stdin=subprocess.DEVNULL, env=environment).returncode
        failed_before = results.counts["failed"]
        has_report = report.exists()
        if has_report:
            results.add_junit(report, label)
        if status == 5 and not only:
            results.add("failed", label, "the suite has no tests")
        elif status not in (0, 1, 5) or (status == 0 and not has_report) or (status == 1 and results.counts["failed"] == failed_before):
            results.add("failed", label, f"could not run: pytest ended with status {status}, see above")
    return has_report and status in (0, 1)


def pytest(machine, only, tests):
    command = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={SOURCE}", f"--machine={machine}"]
    return [*command, *([f"-k={only}"] if only else []), *tests]


def compiles(results, what, name, everything=False, **variant):
    """Tells whether everything builds; only a failure is a result."""
    with results.suite(what, name) as label:
        say(label)
        try:
            Build(name, **variant).compile(everything)
        except CommandFailed as failure:
            results.add("failed", label, str(failure))
            return False
        return True


def chosen_from(suites, chosen):
    """Of a list or dict of suites those that were asked for by name; all, when none was."""
    kept = [suite for suite in suites if not chosen or suite in chosen]
    return {suite: suites[suite] for suite in kept} if isinstance(suites, dict) else kept


def meson_suites(name, full, chosen=()):
    """Which of meson's suites this machine runs, and in which build. A sanitized build takes as long as all others together."""
    full = full or bool(chosen)
    linted = {"lint": LINT, **({"static": STATIC} if full else {})} if name == LINTED else {}
    unit = {"unit": SANITIZED} if full or name == LINTED else {}
    return chosen_from({**linted, **unit, **({"fuzz": FUZZ} if name == LINTED else {})}, chosen)


def pytest_suites(name, full, chosen=()):
    # That of the Nix files needs no machine, and the product of one; that of the container boots a machine without systemd, that of work one with all that people work with.
    suites = [*(["nix"] if name == LINTED else []), "system", "attack", "container", "work", "bench", *(["emulated"] if full and name == EMULATED.machine else [])]
    return chosen_from(suites, chosen)


@dataclasses.dataclass(frozen=True)
class Piece:
    """Of a suite: what it is called and its files or directories."""

    label: str
    tests: tuple


def pieces(suite, full):
    """A suite; with `full`, where it may take hours, in pieces by its files, each of which can be kept (unfinished.py)."""
    count = {"system": 8, "attack": 4}.get(suite, 1) if full else 1
    if count == 1:
        return [Piece(suite, (f"tests/{suite}",))]
    files = sorted(str(file.relative_to(SOURCE)) for file in (SOURCE / "tests" / suite).glob("test_*.py"))
    bounds = [len(files) * number // count for number in range(count + 1)]
    return [Piece(f"{suite}, {number + 1} of {count}", tuple(files[bounds[number] : bounds[number + 1]])) for number in range(count)]


def tests_of_pieces():
    """Of the label of each piece of a --full its files and directories."""
    return {piece.label: piece.tests for suite in pytest_suites(EMULATED.machine, full=True) for piece in pieces(suite, full=True)}


def run_unbooted(results, name, only, full, chosen=(), unfinished=Unfinished()):
    for suite, variant in meson_suites(name, full, chosen).items():
        unfinished.once(results, f"{suite} on {name}", lambda own, suite=suite, variant=variant: meson_suite(own, suite, name, only, **variant))
    if full:
        # That each file includes what it uses need be seen once.
        compiles(results, "build with clang", name, everything=True, **(CLANG if name == LINTED else CLANG_AT_ONCE))


def part_of(suite, only, full, chosen=()):
    """Which part of a suite runs: all, but for what PI_AGENT_SAMPLE says ("1": all), or else part of what takes longest."""
    if full or only or chosen or suite in ("nix", "bench"):  # the first takes seconds, and the other is one round of each already
        return ""
    part = os.environ.get("PI_AGENT_SAMPLE") or {"system": "0.05", "attack": "0.035", "work": "0.05"}.get(suite, "")
    return "" if part == "1" else part


def run_booted(results, name, only, full, chosen=(), unfinished=Unfinished(), share=0):
    first = results if share == 0 else Results()  # what is built for all is told by one
    built = compiles(first, "build", name)
    if built and not only:  # all that compiles comes before all that measures time
        built = compiles(first, "build with test seams", name, **WITH_SEAMS)
    all_pieces = [(suite, piece) for suite in pytest_suites(name, full, chosen) for piece in pieces(suite, full)]
    for suite, piece in all_pieces[share :: shares(full)]:
        if not built:
            results.add("failed", f"{piece.label} on {name}", "could not run: the product does not build")
            continue
        sample = part_of(suite, only, full, chosen)
        unfinished.once(results, f"{piece.label} on {name}", lambda own, piece=piece, sample=sample: pytest_suite(own, piece, name, only, sample))


def shares(full):
    """How many processes run the booted suites of one machine, each on machines of its own: they wait for more than half of the time."""
    return 2 if full else 1


def run_second(*arguments):
    run_booted(*arguments, share=1)


PARTS = {"unbooted": run_unbooted, "booted": run_booted, "booted-too": run_second}


def parts(name, full, chosen=()):
    """Which of them have something to do."""
    booted = pytest_suites(name, full, chosen)
    of_parts = {"unbooted": meson_suites(name, full, chosen), "booted": booted, "booted-too": booted if shares(full) > 1 else []}
    return [part for part in PARTS if of_parts[part]]


def main():
    parser = argparse.ArgumentParser(prog="suites")
    parser.add_argument("--machine", choices=MACHINES, required=True)
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--only")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--unfinished", help="where an interrupted run is kept, to go on with it")
    parser.add_argument("--results", type=Path, required=True, help="where to write them, as JSON")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that machines are ended and removed
    results = Results()
    try:
        PARTS[options.part](results, options.machine, options.only, options.full, options.suite, Unfinished(options.unfinished))
    except Exception as failure:  # whatever it is: it must not sound well
        traceback.print_exc()
        results.add("failed", f"the check of {options.machine} itself", repr(failure))
    options.results.write_text(results.as_json())


if __name__ == "__main__":
    main()

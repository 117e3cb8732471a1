"""All fuzzers in turn until the time is over, as many at once as there are processors, each beginning with what it has found before."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from fuzzing import HERE, fuzz, told

TURN_SECONDS = 300
PLANTED = "planted"


@dataclass
class Figures:
    executions: int = 0
    edges: int = 0
    seconds: float = 0
    findings: list = field(default_factory=list)


def targets():
    return sorted(file.name.removesuffix("_fuzz.cpp") for file in HERE.glob("*_fuzz.cpp") if not file.name.startswith(PLANTED))


def turn(programs, work, name, figures, seconds, seed):
    corpus, findings = work / "corpus" / name, work / "findings"
    for directory in (corpus, findings):
        directory.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    outcome = fuzz(programs / f"fuzz_{name}", name, corpus, findings, seconds, seed)
    figures.seconds += time.monotonic() - started
    figures.executions += outcome.executions
    figures.edges = max(figures.edges, outcome.coverage)
    if not outcome.passed:
        figures.findings.append(outcome.finding)
    print(told(name, outcome, seed), flush=True)


def rounds(programs, work, hours, seed):
    """{target: figures}; one that has found something has no further turn: it would find the same."""
    end = time.monotonic() + hours * 3600
    all_figures = {name: Figures() for name in targets()}
    workers = os.cpu_count()
    seconds = int(max(1, min(TURN_SECONDS, hours * 3600 * workers / len(all_figures))))
    while True:
        going = [name for name, figures in all_figures.items() if not figures.findings]
        with ThreadPoolExecutor(workers) as pool:
            done = [pool.submit(turn, programs, work, name, all_figures[name], seconds, seed) for name in going]
        for each in done:
            each.result()
        seed = seed % (2**32 - 1) + 1
        if not going or time.monotonic() >= end:
            return all_figures


def table(all_figures, work):
    yield f"{'target':<16} {'executions':>12} {'edges':>7} {'inputs kept':>12} {'seconds':>8}  findings"
    for name, figures in all_figures.items():
        kept = sum(1 for _ in (work / "corpus" / name).iterdir())
        found = ", ".join(file.name if file else "no input" for file in figures.findings) or "none"
        yield f"{name:<16} {figures.executions:>12} {figures.edges:>7} {kept:>12} {figures.seconds:>8.0f}  {found}"
    findings = sum(len(figures.findings) for figures in all_figures.values())
    yield f"{sum(figures.executions for figures in all_figures.values())} executions, {findings} findings"


def main(arguments):
    if len(arguments) != 4:
        print("usage: rounds.py PROGRAMS_DIRECTORY WORK_DIRECTORY HOURS SEED", file=sys.stderr)
        return 64
    programs, work = (Path(argument) for argument in arguments[:2])
    all_figures = rounds(programs, work, float(arguments[2]), int(arguments[3]))
    print("\n".join(table(all_figures, work)))
    return 1 if any(figures.findings for figures in all_figures.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

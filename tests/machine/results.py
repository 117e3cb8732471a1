"""Collects single test cases from meson's and pytest's machine-readable results into one honest sum."""

import contextlib
import json
import os
import re
import time
import xml.etree.ElementTree as ElementTree

DOCTEST_SUMMARY = re.compile(r"\[doctest\] test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed \| +(\d+) skipped")
FUZZED = re.compile(r"^(\w+): seed \d+: (\d+ executions, \d+ edges reached), status 0$", re.MULTILINE)  # tests/fuzz/fuzzing.py
SKIPPED_CASE = re.compile(r"^\[skipped\] (.+?) \| (.+)$", re.MULTILINE)  # tests/unit/support/skipped.hpp
RANK = {"passed": 0, "skipped": 1, "failed": 2}


class Results:
    def __init__(self):
        self.counts = dict.fromkeys(RANK, 0)
        self.notes = []  # (outcome, what, why) of all that did not pass
        self.suites = []  # what each suite added, where, and how long it took
        self.cases = []  # of pytest's cases that have properties (tests/attack), and of fuzzers: these, their name and their outcome
        self.rows = []  # [outcome, what, why, count, seconds or None] of everything that has a name

    def add(self, outcome, what="", why="", count=1, seconds=None):
        self.counts[outcome] += count
        if what and count:
            self.rows.append([outcome, what, " ".join(why.split())[:300], count, seconds])
        if outcome != "passed" and count:
            self.notes.append((outcome, what, why.strip() or "no reason given"))

    def total(self):
        return sum(self.counts.values())

    @contextlib.contextmanager
    def suite(self, suite, machine, sample=""):
        """Notes what is added meanwhile as that of one suite on one machine; gives its label."""
        before, started, worked = dict(self.counts), time.monotonic(), processor_seconds()
        try:
            yield f"{suite} on {machine}" + (f" (a sample of {sample}, seed {os.environ['PI_AGENT_SEED']})" if sample else "")
        finally:
            entry = {"suite": suite, "machine": machine, "sample": sample}
            entry |= {outcome: self.counts[outcome] - before[outcome] for outcome in RANK}
            entry |= {"seconds": time.monotonic() - started, "processor_seconds": processor_seconds() - worked}
            self.suites.append(entry)

    def as_json(self):
        return json.dumps({"counts": self.counts, "notes": self.notes, "suites": self.suites, "cases": self.cases, "rows": self.rows})

    def add_json(self, text):
        """Adds the results of another process."""
        other = json.loads(text)
        for outcome in RANK:
            self.counts[outcome] += other["counts"][outcome]
        self.notes += [tuple(note) for note in other["notes"]]
        self.suites += other["suites"]
        self.cases += other["cases"]
        self.rows += other["rows"]

    def print(self):
        for suite in self.suites:
            print(described(suite))
        for wanted in ("skipped", "failed"):
            for outcome, what, why in self.notes:
                if outcome == wanted:
                    print(f"{outcome}: {what}: {why}")
        skipped = f", {self.counts['skipped']} skipped" if self.counts["skipped"] else ""
        print(f"{self.counts['passed']} passed, {self.counts['failed']} failed{skipped}", flush=True)

    def add_meson(self, log, label):
        """testlog.json of `meson test`: doctest programs count by their test cases, all others as one case each."""
        for line in log.read_text().splitlines():
            test = json.loads(line)
            what = f"{label}: {test['name'].split(' / ')[-1]}"
            output = test.get("stdout", "") + test.get("stderr", "")
            seconds = test.get("duration")
            summary = DOCTEST_SUMMARY.search(output)
            if summary:
                _, passed, failed, skipped = map(int, summary.groups())
                # Doctest knows nothing of a case that finds out that it cannot test here, and counts it as passed.
                gave_up = dict(SKIPPED_CASE.findall(output))
                for case, why in gave_up.items():
                    self.add("skipped", f"{what}: {case}", why)
                self.add("passed", what, count=max(passed - len(gave_up), 0), seconds=seconds)
                self.add("failed", what, excerpt(output), count=failed, seconds=seconds)
                self.add("skipped", what, "switched off in their source, or they need root", count=skipped)
            for fuzzer, figures in FUZZED.findall(output):
                self.cases.append({"name": f"tests.fuzz::{fuzzer}[{label.split()[-1]}]", "outcome": "passed", "figures": figures})
            if test["result"] == "SKIP":
                self.add("skipped", what, excerpt(output))
            elif test["result"] != "OK" and not (summary and failed):
                self.add("failed", what, f"{test['result']}, status {test['returncode']}\n{excerpt(output)}", seconds=seconds)
            elif not summary:
                self.add("passed", what, seconds=seconds)

    def add_junit(self, report, label):
        """pytest's --junitxml; one case with several entries (its own and its teardown's) counts once, by the worst."""
        cases, properties, seconds = {}, {}, {}
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            outcome, why = "passed", ""
            seconds[name] = seconds.get(name, 0.0) + float(case.get("time", 0))
            properties.setdefault(name, {}).update((each.get("name"), each.get("value")) for each in case.iter("property"))
            for child in case:
                if child.tag in ("failure", "error"):
                    outcome, why = "failed", child.get("message", "")
                elif child.tag == "skipped":
                    outcome, why = "skipped", child.get("message", "")
            if name not in cases or RANK[outcome] > RANK[cases[name][0]]:
                cases[name] = (outcome, why)
        for name, (outcome, why) in cases.items():
            self.add(outcome, f"{label}: {name}", why.split("\n")[0], seconds=seconds[name])
            if properties[name]:
                self.cases.append({"name": name, "outcome": outcome, **properties[name]})


def described(suite):
    """One line; a build counts only when it fails."""
    counts = ", ".join(f"{suite[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped") if suite[outcome])
    part = f" (a sample of {suite['sample']})" if suite["sample"] else ""
    took = f"{suite['seconds']:.0f} s, {suite['processor_seconds']:.0f} s of processors"
    return f"{suite['suite']} on {suite['machine']}{part}: {counts or 'nothing to count'}; {took}"


def processor_seconds():
    """Of all children that have ended, machines with everything in them among them."""
    times = os.times()
    return times.children_user + times.children_system


def excerpt(output):
    return "\n".join(output.strip().splitlines()[-80:])

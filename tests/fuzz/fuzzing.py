"""One fuzzer: on its seeds, then for some seconds on what it makes of them; and what it said, read back."""

import base64
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "policy-examples"
SEEDED_BY_EXAMPLES = ("policy", "yaml")
OF_HTTP = ("route_head",)
OF_JSON = ("child_messages", "documents", "json", "project_files", "sudoers")
# Of the wall's clock, so a busy host counts: longer than what asserts with the time of its process (support/property.hpp).
LIMITS = ["-timeout=60", "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1"]
# addr2line comes with the compiler: the names of functions, without debug information.
ENVIRONMENT = {"ASAN_OPTIONS": "allow_addr2line=1:detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
DONE = re.compile(r"^stat::number_of_executed_units: +(\d+)$", re.MULTILINE)
COVERED = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")


@dataclass(frozen=True)
class Outcome:
    status: int
    output: str
    finding: Path = None  # the input that broke something

    @property
    def executions(self):
        counted = DONE.search(self.output)
        return int(counted.group(1)) if counted else 0

    @property
    def coverage(self):
        """Edges of the program that were reached; 0 where it did not come to count them."""
        seen = COVERED.findall(self.output)
        return int(seen[-1][0]) if seen else 0

    @property
    def passed(self):
        return self.status == 0 and self.finding is None and self.executions > 0


def seeds_of(name):
    seeds = HERE / "corpus" / name
    if not any(seeds.iterdir()):
        raise FileNotFoundError(f"no seeds in {seeds}")
    return [seeds, *([EXAMPLES] if name in SEEDED_BY_EXAMPLES else [])]


def arguments_of(name, seconds, seed):
    kind = "json" if name in OF_JSON else "http" if name in OF_HTTP else None
    dictionary = [f"-dict={HERE / 'dictionaries' / kind}.dict"] if kind else []
    return [f"-max_total_time={seconds}", f"-seed={seed}", *LIMITS, *dictionary]


def fuzz(program, name, corpus, findings, seconds, seed):
    """`corpus`: takes what is new; `findings`: takes the input that broke something. Both directories are outside the checkout."""
    before = set(findings.iterdir())
    command = [program, *arguments_of(name, seconds, seed), f"-artifact_prefix={findings}/{name}-", corpus, *seeds_of(name)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **ENVIRONMENT})
    new = sorted(set(findings.iterdir()) - before)
    return Outcome(done.returncode, done.stdout.decode(errors="replace"), new[0] if new else None)


def told(name, outcome, seed):
    """For people: what was broken, and how to see it again."""
    lines = [f"{name}: seed {seed}: {outcome.executions} executions, {outcome.coverage} edges reached, status {outcome.status}"]
    if outcome.passed:
        return lines[0]
    said = [line for line in outcome.output.splitlines() if not line.startswith(("#", "INFO:", "\tNEW_FUNC"))]
    lines += said[-60:]
    if outcome.finding:
        encoded = base64.b64encode(outcome.finding.read_bytes()).decode()
        lines += ["", "again, in a build with -Dfuzzers=true:", f"  echo {encoded} | base64 -d > finding", f"  tests/fuzz/fuzz_{name} finding"]
    return "\n".join(lines)

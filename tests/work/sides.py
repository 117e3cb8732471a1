"""Runs a case on either side of the sandbox, each time on a home and a project that are new, and looks at what came of it."""

import json
from dataclasses import dataclass
from pathlib import Path

from launching import STATE, leftovers, pi, wait_until_empty
from machine import USER_PATH
from normal import OWN_LINE, normal, without_ignored

HERE = Path(__file__).resolve().parent
PLACE = "/home/alice/projects/work"
HOME = "/home/alice"
AGENTS_HOME = f"{STATE}/alice/home"
ENVIRONMENT = {"PATH": f"{HOME}/.local/bin:{USER_PATH}"}  # as ~/.profile of Debian makes it
KEPT_HOME = "/root/home-of-alice"  # as it is before the first case
# Commits of both sides have the same name. Their dates are not a part of what is compared, and what decides it is.
ALWAYS = "set -e\nexport GIT_AUTHOR_DATE='2026-01-02T03:04:05Z' GIT_COMMITTER_DATE='2026-01-02T03:04:05Z'\n"
RESET = f"""
set -e
pkill -KILL -u alice || true
rm -rf {AGENTS_HOME}
find {HOME} -mindepth 1 -maxdepth 1 -exec rm -rf {{}} +
cp -a {KEPT_HOME}/. {HOME}
rm -rf /tmp/* /var/tmp/work-*
setpriv --reuid=alice --regid=alice --clear-groups mkdir {PLACE}
"""


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str
    tree: dict
    git: dict


class BrokenCase(Exception):
    """It says nothing about the product: the case itself has to be mended."""


def of_start(case):
    """Where its script starts, on either side, with which variables, and for how long."""
    return {"cwd": f"{PLACE}/{case.start}", "env": ENVIRONMENT | dict(case.variables), "timeout": case.timeout}


class Sides:
    def __init__(self, machine):
        self.machine = machine
        self.machine.root(f"rm -rf {KEPT_HOME}; cp -a {HOME} {KEPT_HOME}", check=True)

    def outside(self, case):
        self.prepare(case)
        done = self.machine.run(["bash", "-c", ALWAYS + case.script, "bash", *case.arguments], **of_start(case))
        return self._outcome(case, done, [HOME])

    def inside(self, case):
        self.prepare(case)
        done = pi(self.machine, "sh", ALWAYS + case.script, *case.arguments, **of_start(case))
        wait_until_empty(lambda: leftovers(self.machine))
        return self._outcome(case, done, [AGENTS_HOME, HOME])

    def prepare(self, case):
        self.machine.root(RESET, check=True)
        missing = self.machine.run(["bash", "-c", 'for tool; do type -P "$tool" >/dev/null || echo "$tool"; done', "bash", *case.tools.split()])
        if missing.stdout:
            raise BrokenCase(f"the machine lacks {missing.stdout.decode().split()}")
        done = self.machine.run(["bash", "-c", ALWAYS + case.prepare], cwd=PLACE, env=ENVIRONMENT, timeout=case.timeout)
        if done.returncode != 0:
            raise BrokenCase(f"its preparation ended with {done.returncode}: {done.stdout[-2000:]!r} {done.stderr[-2000:]!r}")

    def _outcome(self, case, done, homes):
        script = (HERE / "look.py").read_bytes()
        seen = json.loads(self.machine.root(["python3", "-B", "-", PLACE, "alice"], input=script, check=True).stdout)
        out, err = (stream.decode(errors="backslashreplace") for stream in (done.stdout, done.stderr))
        out, err = (normal(text, homes, case.masked) for text in (out, OWN_LINE.sub("", err)))
        return Outcome(done.returncode, out, err, without_ignored(seen["tree"], case.ignored), seen["git"])

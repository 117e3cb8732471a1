"""A machine under attack: runs attackers and sessions on it, takes defences out, and looks for what is left."""

import contextlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from session import Session

HERE = Path(__file__).resolve().parent
ATTACK_POLICY = HERE / "policy.yaml"
INSIDE = "/usr/local/lib/attack"
DEMO = "/home/alice/projects/demo"
TAKEN_OUT = "/etc/pi-agent/test-without"
PRELUDE = f"import sys; sys.path.insert(0, {INSIDE!r})\nfrom client import *\n"
CLEAN_SECONDS = 5


@dataclass(frozen=True)
class Outcome:
    """How an attack went; `seen` is whatever the attacker got to see, for messages and for finer assertions."""

    succeeded: bool
    seen: object = field(default=None)


def prepare(machine):
    """Puts the attackers' programs and a test agent, which runs its arguments as a command, on a machine."""
    for program in (HERE / "inside").glob("*.py"):
        machine.write(f"{INSIDE}/{program.name}", program.read_text())
    machine.write(f"{INSIDE}/agent", '#!/bin/sh\nexec "$@"\n', mode=0o755)
    machine.root(["install", "-o", "root", "-m", "6755", "/usr/bin/id", f"{INSIDE}/setuid-id"], check=True)


class Target:
    def __init__(self, machine):
        self.machine = machine
        self.sessions = []

    @contextlib.contextmanager
    def without(self, *defences):
        """Takes defences out; only a build with seams takes notice."""
        self.machine.write(TAKEN_OUT, "".join(f"{name}\n" for name in defences))
        try:
            yield
        finally:
            self.machine.root(["rm", TAKEN_OUT], check=True)

    def intact(self):
        return contextlib.nullcontext()

    def pi(self, *command, user="alice", cwd=DEMO, **options):
        """Runs a command as the agent, to its end."""
        return self.machine.run(["pi", *command], user=user, cwd=cwd, **options)

    def python(self, script, user="alice", cwd=DEMO):
        """Runs a Python script as the agent and returns what its last line says, as JSON."""
        done = self.pi("python3", "-c", script, user=user, cwd=cwd)
        assert done.returncode == 0, f"status {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        return json.loads(done.stdout.splitlines()[-1])

    def probe(self, *names, user="alice", cwd=DEMO):
        """Runs probes of inside/probe.py as the agent: {name: result}."""
        done = self.pi("python3", f"{INSIDE}/probe.py", *names, user=user, cwd=cwd)
        assert done.returncode == 0, f"status {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        return json.loads(done.stdout.splitlines()[-1])

    def play(self, script, user="alice", **options):
        """Runs an attacker's script, which has everything of inside/client.py, outside any session; returns what it tells."""
        done = self.machine.run(["python3", "-c", PRELUDE + script], user=user, **options)
        assert done.returncode == 0, f"the attacker's own script failed\n{done.stdout.decode()}\n{done.stderr.decode()}"
        return json.loads(done.stdout.splitlines()[-1])

    def session(self, *command, **options):
        """Starts a session in the background; the command must print a line, PI_AGENT_SESSION first."""
        session = Session(self.machine, command, **options)
        self.sessions.append(session)
        return session

    def end_all(self):
        while self.sessions:
            self.sessions.pop().end()

    def warm_up(self):
        """One session, so that what is made once for all sessions is there."""
        self.pi("true", check=True)
        self.pi("true", user="bob", cwd="/home/bob/work/demo", check=True)

    def traces(self):
        return json.loads(self.machine.root(["python3", f"{INSIDE}/traces.py"], check=True).stdout)

    def expect_traces(self, before, seconds=CLEAN_SECONDS):
        """Waits until everything is as it was in `before`, and fails when it is not so in time."""
        until = time.monotonic() + seconds
        while True:
            late = time.monotonic() > until
            now = self.traces()
            left = {kind: [entry for entry in now[kind] if entry not in before[kind]] for kind in now}
            gone = {kind: [entry for entry in before[kind] if entry not in now[kind]] for kind in now}
            if now == before:
                return
            assert not late, f"after {seconds} s there is more than before: {left}; and less: {gone}"
            time.sleep(0.1)

"""A machine under attack: runs attackers and sessions on it, takes defences out, and looks for what is left."""

import contextlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from session import Session

HERE = Path(__file__).resolve().parent
ATTACK_POLICY = HERE / "policy.yaml"
POLICY_FILE = "/etc/pi-agent/policy.yaml"
INSIDE = "/usr/local/lib/attack"
DEMO = "/home/alice/projects/demo"
SITE = "/etc/sudoers.d/zz-site"
USER_NAMESPACE = ("unit:PrivateUsers", "unit:PrivateUsersEx")  # as systemd 252 is asked for it, and as newer ones are
TAKEN_OUT = "/etc/pi-agent/test-without"
PRELUDE = f"import sys; sys.path.insert(0, {INSIDE!r})\nfrom client import *\n"
SESSIONS = "/run/pi-agent/sessions"
CLEAN_SECONDS = 5
QUIET_SECONDS = 20


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
    # What every host has: users may serve file systems of their own.
    machine.root("test -c /dev/fuse || mknod -m 666 /dev/fuse c 10 229", check=True)
    machine.root(["install", "-o", "root", "-m", "6755", "/usr/bin/id", f"{INSIDE}/setuid-id"], check=True)


class Target:
    prelude = PRELUDE

    def __init__(self, machine, has_seams=False):
        self.machine = machine
        self.has_seams = has_seams
        self.sessions = []

    @contextlib.contextmanager
    def without(self, *defences):
        """Takes defences out; only a build with seams takes notice."""
        self.machine.write(TAKEN_OUT, "".join(f"{name}\n" for name in defences))
        try:
            yield
        finally:
            self.machine.root(["rm", TAKEN_OUT], check=True)

    @contextlib.contextmanager
    def policy_with(self, section):
        """The policy of these tests with another section."""
        self.machine.write(POLICY_FILE, ATTACK_POLICY.read_text() + section + "\n")
        try:
            yield
        finally:
            self.machine.write(POLICY_FILE, ATTACK_POLICY.read_text())

    @contextlib.contextmanager
    def config_set_aside(self, *made):
        """Alice's config directory is away, for whatever is put into its place; at the end that goes, with what else was `made`."""
        self.machine.root("mv /home/alice/.pi /root/config-of-alice", check=True)
        try:
            yield
        finally:
            self.end_all()
            self.machine.root(["rm", "-rf", "/home/alice/.pi", *made], check=True)
            self.machine.root("mv /root/config-of-alice /home/alice/.pi", check=True)

    def sudo_that_waits(self):
        """As with original sudo unless our rule says otherwise (docs/platforms/sudo.md)."""
        return self.site_default("pam_session")

    @contextlib.contextmanager
    def site_default(self, setting):
        """A site's own line in sudoers about the runner, after ours."""
        self.machine.write(SITE, f"Defaults!/usr/libexec/pi-agent/pi-agent-runner {setting}\n", mode=0o440)
        try:
            yield
        finally:
            self.machine.root(["rm", SITE], check=True)

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

    def clear(self):
        """Ends whatever is left of sessions after a defence was out; the next session sweeps what lies about."""
        self.end_all()
        kill = "pkill -KILL -u pi-agent; systemctl kill --signal=KILL 'pi-agent-*.service' 'pi-agent-*.scope'"
        # Kept by an attack on what would have stopped them, and again by the sessions of warm_up() while that is still out.
        stop = "systemctl stop 'pi-agent-cleanup-*.service'; true"
        self.machine.root(f"{kill}; {stop}", check=True)
        self.warm_up()
        self.machine.root(stop, check=True)

    def warm_up(self):
        """One session, so that what is made once for all sessions is there."""
        self.pi("true", check=True)
        self.pi("true", user="bob", cwd="/home/bob/work/demo", check=True)

    def traces(self):
        return json.loads(self.machine.root(["python3", f"{INSIDE}/traces.py"], check=True).stdout)

    def quiet_traces(self):
        """The traces once no session is left, for expect_traces(); what an earlier attack left is still going away for a moment."""
        now = self._traces_when(lambda traces: not of_sessions(traces), QUIET_SECONDS)
        if of_sessions(now):  # a test that failed did not come to the end of its sessions
            self.end_all()
            if self.has_seams:  # an attack that succeeded may leave what nobody ends
                self.clear()
            now = self._traces_when(lambda traces: not of_sessions(traces), QUIET_SECONDS)
        assert not of_sessions(now), f"before the attack, something of an earlier session is left: {of_sessions(now)}"
        return now

    def expect_traces(self, before, seconds=CLEAN_SECONDS):
        """Waits until nothing is there that was not in `before`, and no mount of the host is missing; fails when not so in time."""
        now = self._traces_when(lambda traces: not differences(before, traces), seconds)
        assert not differences(before, now), f"after {seconds} s: {differences(before, now)}"

    def _traces_when(self, satisfied, seconds):
        """The first traces that are satisfied(), or the last ones in the time allowed."""
        until = time.monotonic() + seconds
        while True:
            late = time.monotonic() > until
            now = self.traces()
            if late or satisfied(now):
                return now
            time.sleep(0.1)


def belongs_to_a_session(mount):
    return mount[0].startswith(f"{SESSIONS}/")


def of_sessions(traces):
    """What there is only while there are sessions: everything but the mounts of the host."""
    found = {kind: entries for kind, entries in traces.items() if kind != "mounts"}
    found["mounts"] = [mount for mount in traces["mounts"] if belongs_to_a_session(mount)]
    return {kind: entries for kind, entries in found.items() if entries}


def differences(before, now):
    """What is more than before, of the kinds that are in `before`, and which mounts of the host are gone. All else may go away whenever it does."""
    more = {kind: missing_in(before[kind], now[kind]) for kind in before}
    gone = [mount for mount in missing_in(now["mounts"], before.get("mounts", [])) if not belongs_to_a_session(mount)]
    found = {f"more {kind}": entries for kind, entries in more.items() if entries}
    return {**found, "mounts of the host that are gone": gone} if gone else found


def missing_in(some, others):
    """The entries of `others` that `some` does not have, or not as often."""
    some = list(some)
    missing = []
    for entry in others:
        if entry in some:
            some.remove(entry)
        else:
            missing.append(entry)
    return missing

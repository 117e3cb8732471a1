"""The named points of a session at which fault tests have one of its processes wait (common/seams/seams.hpp), and the looks that follow a fault."""

import contextlib
import json
import re
import select
import signal
import subprocess
import time
from pathlib import Path

from engine import named_method
from target import ATTACK_POLICY, DEMO

SOURCES = Path(__file__).resolve().parents[2]
WAIT_AT = "/etc/pi-agent/test-wait-at"
GROUPS = "/sys/fs/cgroup/pi-agent"  # under bwrap; `leaving` in it is everybody's
READY_SECONDS = 20
REACH_SECONDS = 20
END_SECONDS = 60
CLEAN_SECONDS = 10
TRACE = "/run/attack-trace"
ATTACH_SECONDS = 10
# Leaves something that only its account can remove.
AGENT = ["sh", "-c", "mkdir $TMPDIR/left && echo x >$TMPDIR/left/file; echo ran"]
# Instead, where nobody else waits for who stands there: the session would be over before it is seen.
AGENTS = {"changing-modes": ["sh", "-c", f"{AGENT[-1]}; chmod g+s $TMPDIR/left 2>/dev/null; true"]}
NAMED = "/home/alice/.named/file"
PROVIDERS_KEY = "/etc/pi-agent/provider.key"
ARGUMENTS = {"reading-named": [f"@{NAMED}"]}  # of the agent, alike
# Reached by a question of alice's in place of a start, by these commands of pi-agentctl.
QUESTIONS = {"question-read": "sessions", "measuring": "state"}
OPTIONS = {"making-tmpdir": ["--pi-agent-tmpdir=made/tmp"]}  # of `pi`, without which nobody comes there
GATE_ASKED_FOR = "gate-asked-for with hosts"
BEFORE_THE_UNIT = ("authenticated", "in-its-scope", "half-made", "directory-made", "state-locked", "holding-id-map", "tree-built")
RUNNER = (
    *BEFORE_THE_UNIT, "unit-asked-for", "syncing", "start-recorded", "late-mounted", "giving-up", "handed-over", "end-unrecorded", "releasing",
    "removing", "unmounted", GATE_ASKED_FOR, "gate-listens with hosts", "gate-open with hosts",
)  # fmt: skip
CHILDREN = (
    "request-read", "handing-stdio", "listed", "writing", "finding-paths", "reading-env", "reading-certs", "reading-named", "reading-ssh", "reading-git-id", "reading-etc",
    "migrating", "emptying", "unplacing", "making-mounts with a cache", "making-place with an alias", "making-tmpdir", "changing-modes",
    "question-read", "measuring", "reading-keys with a key",
)  # fmt: skip
LAUNCHER = ("launcher-ready", "restricted", "agent-started", "agent-over")
WRAPPER = ("asking", "asked", "told")
BESIDE_THE_WRAPPER = ("looking-back", "keeping-undo")
# The first programs of units in which an engine makes the sandbox.
DOORS = {"engine-door under podman": "podman", "engine-door under docker": "docker"}
ENGINES = {**DOORS, "syncing under podman": "podman", "syncing under docker": "docker"}
# Where only a killed runner brings somebody: the unit that cleans up, which comes where the runner would have come too, and, under bwrap, the
# process that waits for the runner's end.
OF_CLEANUP = " of the cleanup"
AFTER_A_KILLED_RUNNER = ("cleaning-up", "keeper-cleans", f"removing{OF_CLEANUP}", f"unmounted{OF_CLEANUP}")
# Only under a project quota, which no file system of these machines has. tests/emulated has one, and lets the walk there fail.
UNDER_A_QUOTA = ("walking-home",)
POINTS = (*WRAPPER, *BESIDE_THE_WRAPPER, *RUNNER, *CHILDREN, *LAUNCHER, *AFTER_A_KILLED_RUNNER, *ENGINES)
# Killed there, nobody is left who would remove the session's directory and mounts before the next start: a runner whose unit is not asked for
# yet, or who removes what a runner left. That nothing runs any more is everybody's.
REMOVED_BY_THE_NEXT_START = ("half-made", "directory-made", "state-locked", GATE_ASKED_FOR, "holding-id-map", "tree-built", *AFTER_A_KILLED_RUNNER)

# What we expect of a point that is reached under a policy of its own, or from a terminal.
WITH_TERMINAL = " with a terminal"
# Not script(1): it types the end of its input, and sometimes it has no status of its command.
ON_TERMINAL = ["python3", "-c", "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"]
UNDER = {
    " under bwrap": "sandbox: {method: bwrap}",
    " with a network": "network: loopback",
    " with a cache": "toolchains: {caches: [~/.cache/pip]}",
    " with an alias": "projects: {paths: alias}",
    " with hosts": "network: {hosts: [provider.example]}",
}
POLICIES = {"keeper-cleans": UNDER[" under bwrap"], **{point: f"sandbox: {named_method(method)}" for point, method in ENGINES.items()}}
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nbm9uZQ==\n-----END OPENSSH PRIVATE KEY-----\n"
HOOK = "/usr/share/pi-agent/migrations/0.0.2-fault.sh"
STAMP = "/var/lib/pi-agent/users/alice/meta/version"


def name_of(point):
    """As the sources have it."""
    return point.split(" ")[0]


def points_in_the_sources():
    """Those of sessions; those of an installation of an agent, of apply, of a move of the state and of the command's name are tried by their own tests."""
    areas = ("common", "runner", "wrapper", "admin")
    others = ("admin/agents/", "admin/apply/", "admin/state/", "admin/host/accounts")
    files = [file for area in areas for file in (SOURCES / area).rglob("*.cpp") if not any(other in str(file) for other in others)]
    return sorted(name for file in files for name in re.findall(r'fault_point\("([^"]+)"\)', file.read_text()))


@contextlib.contextmanager
def given(target, path, content):
    """A file of alice's, for one case."""
    target.machine.root(["install", "-d", "-o", "alice", "-g", "alice", "-m", "700", path.rsplit("/", 1)[0]], check=True)
    target.machine.write(path, content, owner="alice", mode=0o600)
    try:
        yield
    finally:
        target.machine.root(["rm", path], check=True)


@contextlib.contextmanager
def a_newer_version(target):
    """The home was last used by an older version, and this one brings a hook."""
    target.machine.write(HOOK, "true\n")
    target.machine.write(STAMP, "0.0.1\n", mode=0o600)
    try:
        yield
    finally:
        target.machine.root(["rm", HOOK], check=True)


@contextlib.contextmanager
def without_what_was_made(target):
    """What stays in the project of a directory for TMPDIR that alice named."""
    try:
        yield
    finally:
        target.machine.run(["rm", "-rf", "made"], cwd=DEMO, check=True)


@contextlib.contextmanager
def an_ssh_key(target):
    with given(target, "/home/alice/.ssh/id_agent", KEY):
        target.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text().replace("alice:\n", "alice:\n    ssh: {key: .ssh/id_agent}\n"))
        try:
            yield
        finally:
            target.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text())


@contextlib.contextmanager
def a_cache(target):
    """Other tests do not have these: they come from a home with one more cache, and more processes make them."""
    target.machine.run(["mkdir", "-p", ".cache/pip"], check=True)
    try:
        with target.policy_with(UNDER[" with a cache"]):
            yield
    finally:
        target.machine.root("rm -rf /home/alice/.cache/pip; rmdir --ignore-fail-on-non-empty /home/alice/.cache", check=True)


@contextlib.contextmanager
def a_key(target):
    """Of a provider, which stays outside of sessions."""
    target.machine.write(PROVIDERS_KEY, "held-outside\n", mode=0o600)
    try:
        with target.policy_with(f"network: {{hosts: [provider.example]}}\nproviders: {{openai: {{key_file: {PROVIDERS_KEY}}}}}"):
            yield
    finally:
        target.machine.root(["rm", PROVIDERS_KEY], check=True)


def what_brings_somebody_to(target, point):
    """The policy and the files without which nobody comes there."""
    if point == "reading-certs":
        return given(target, "/home/alice/.pi/agent/env", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt\n")
    if point == "reading-named":
        return given(target, NAMED, "x")
    if point == "reading-ssh":
        return an_ssh_key(target)
    if point == "making-tmpdir":
        return without_what_was_made(target)
    if point == "migrating":
        return a_newer_version(target)
    if point.endswith(" with a cache"):
        return a_cache(target)
    if point.endswith(" with a key"):
        return a_key(target)
    if point.endswith(" with a sudo that waits"):
        return target.sudo_that_waits()
    policy = UNDER.get(point.removeprefix(name_of(point)), POLICIES.get(point))
    return target.policy_with(policy) if policy else contextlib.nullcontext()


class Reached:
    """A start of alice's of which a process, `pid`, waits at a point."""

    def __init__(self, target, wrapper, pid):
        self.machine = target.machine
        self.wrapper = wrapper
        self.pid = pid

    def signal(self, name):
        self.machine.root(["kill", f"-{name}", str(self.pid)])

    def release(self):
        """Nobody waits at the point any more."""
        self.machine.root(["rm", "-f", WAIT_AT], check=True)

    def end(self):
        """How the start ended: its status, and what it said on both; fails when it does not end."""
        until = time.monotonic() + END_SECONDS
        while True:
            # nsenter(1) stops itself when it sees its child stop.
            self.wrapper.send_signal(signal.SIGCONT)
            try:
                out, said = self.wrapper.communicate(timeout=0.5)
                return self.wrapper.returncode, out.replace(b"\r\n", b"\n"), said or out  # on a terminal it is all one
            except subprocess.TimeoutExpired:
                assert time.monotonic() < until, "the start does not end"


def read_line(process, seconds=READY_SECONDS):
    """The next line of what it writes; fails when none comes in time."""
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    assert ready, f"no line within {seconds} s"
    return process.stdout.readline()


def begin(target, point):
    """A start of alice's that comes to the point, or whose runner is killed for somebody to come there."""
    if point not in AFTER_A_KILLED_RUNNER:
        target.machine.write(WAIT_AT, name_of(point) + "\n")
        if point in QUESTIONS:
            return target.machine.popen(f"pi-agentctl {QUESTIONS[point]} --json >/dev/null && echo ran", cwd=DEMO)
        command = ["pi", *OPTIONS.get(point, []), *AGENTS.get(point, AGENT), *ARGUMENTS.get(point, [])]
        return target.machine.popen([*(ON_TERMINAL if point.endswith(WITH_TERMINAL) else []), *command], cwd=DEMO)
    wrapper = target.machine.popen(["pi", "sh", "-c", "echo ready; exec sleep 60"], cwd=DEMO)
    assert read_line(wrapper) == b"ready\n"
    target.machine.write(WAIT_AT, name_of(point) + "\n")
    target.machine.root("pkill -KILL -f ^/usr/libexec/pi-agent/pi-agent-runner", check=True)
    return wrapper


@contextlib.contextmanager
def waiting_at(target, point):
    """Runs pi as alice until a process waits at the point; until it is released, whoever else comes there waits too."""
    with what_brings_somebody_to(target, point):
        wrapper = None
        try:
            wrapper = begin(target, point)
            wrapper.stdin.close()
            wrapper.stdin = None
            yield Reached(target, wrapper, wait_for_process(target, point, wrapper))
        finally:
            target.machine.root(f"rm -f {WAIT_AT}; pkill -CONT -x {name_of(point)}; true")
            if wrapper:
                wrapper.kill_all()
                wrapper.wait()
                for stream in (wrapper.stdout, wrapper.stderr):
                    stream.close()


@contextlib.contextmanager
def traced(reached, *arguments):
    """strace at the process that waits; what it writes into TRACE has the path of each descriptor. The process has to end meanwhile."""
    tracer = reached.machine.popen(["strace", "-qq", "-y", "-o", TRACE, *arguments, "-p", str(reached.pid)], user="root")
    try:
        until = time.monotonic() + ATTACH_SECONDS
        while b"TracerPid:\t0\n" in reached.machine.read(f"/proc/{reached.pid}/status"):
            assert time.monotonic() < until and tracer.poll() is None, f"strace does not trace: {tracer.poll()}"
            time.sleep(0.02)
        yield
    finally:
        tracer.send_signal(signal.SIGTERM)
        try:
            tracer.communicate(timeout=5)  # it ends with what it traces
        except subprocess.TimeoutExpired:
            tracer.kill_all()
            tracer.communicate()


def wait_for_process(target, point, wrapper):
    until = time.monotonic() + REACH_SECONDS
    while time.monotonic() < until:
        found = target.machine.root(["pgrep", "-x", name_of(point)]).stdout.split()
        if found:  # runner and cleanup come to some of them both: the one that began first
            return min(map(int, found))
        if wrapper.poll() and point not in AFTER_A_KILLED_RUNNER:  # having ended well it leaves a runner that still cleans up
            break
        time.sleep(0.02)
    raise AssertionError(f"nobody came to {point}: {wrapper.poll()}")


def require_in_words(end, may_die=False):
    """It ended well, or pi said why not. `may_die`: pi itself was killed, or the session's first process, and pi ends as that did."""
    status, out, said = end
    if may_die and status == -signal.SIGKILL:
        return
    shown = [line for line in out.splitlines() if not line.startswith(b"pi: ")]  # on a terminal, notices are among it
    assert (status == 0 and shown == [b"ran"]) or (status > 0 and (b"pi: " in said or b"pi-agentctl: " in said)), f"neither an end nor words: {end}"


def project(target):
    """What git says of alice's project, and every name in it, placeholders among them."""
    looking = "git status --porcelain --ignored && find . -path ./.git/objects -prune -o -print | LC_ALL=C sort"
    return target.machine.run(looking, cwd=DEMO, check=True).stdout.decode().splitlines()


class Before:
    """How everything is before a fault, and what must be so again."""

    def __init__(self, target, point):
        self.target = target
        self.point = point
        self.traces = target.quiet_traces()
        self.project = project(target)
        self.groups = self._groups()

    def _groups(self):
        """Of bwrap's sessions. One whose runner and keeper were both killed leaves an empty one to the next session under bwrap."""
        return set(self.target.machine.root(f"ls -d {GROUPS}/*/ | grep -v /leaving/; true").stdout.split())

    def require_sound(self, removed_by_the_next_start=False):
        """Nothing runs or is left, what is kept can be read, and the next start of everybody works.

        `removed_by_the_next_start`: of the session's directory and mounts nobody says that they are gone before.
        """
        target, traces = self.target, self.traces
        target.expect_traces({kind: traces[kind] for kind in ("processes", "units")} if removed_by_the_next_start else traces, CLEAN_SECONDS)
        with what_brings_somebody_to(target, self.point):
            for user, cwd in (("alice", DEMO), ("bob", "/home/bob/work/demo")):
                done = target.pi("echo", "ran", user=user, cwd=cwd)
                assert (done.returncode, done.stdout) == (0, b"ran\n"), f"the next start of {user}: {done}"
        for command in (["sessions", "--json"], ["state", "--json"], ["history", "--json"]):
            json.loads(target.machine.root(["pi-agentctl", *command], check=True).stdout)
        target.expect_traces(traces, CLEAN_SECONDS)
        assert project(target) == self.project, "the project is not as it was"
        until = time.monotonic() + CLEAN_SECONDS  # the end of the last start, for which nobody waits, goes on
        while (left := self._groups() - self.groups) and time.monotonic() < until:
            time.sleep(0.1)
        assert not left, f"control groups are left: {left}"

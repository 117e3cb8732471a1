"""The named points of a session at which fault tests have one of its processes wait (common/fault_point.hpp), and the looks that follow a fault."""

import contextlib
import json
import re
import signal
import subprocess
import time
from pathlib import Path

from target import DEMO

SOURCES = Path(__file__).resolve().parents[2]
WAIT_AT = "/etc/pi-agent/test-wait-at"
BWRAP = "sandbox: {method: bwrap}"
REACH_SECONDS = 20
END_SECONDS = 60
CLEAN_SECONDS = 10
# Those that only a killed runner brings about: the unit that cleans up and, under bwrap, the process that waits for the runner's end.
AFTER_A_KILLED_RUNNER = ("cleaning-up", "keeper-cleans")
RUNNER = (
    "authenticated", "in-its-scope", "half-made", "directory-made", "state-locked", "tree-built", "unit-asked-for", "syncing", "start-recorded",
    "giving-up", "handed-over", "end-unrecorded", "releasing", "removing", "unmounted",
)  # fmt: skip
CHILDREN = ("request-read", "handing-stdio", "listed", "writing")
LAUNCHER = ("launcher-ready", "restricted", "agent-started", "agent-over")
WRAPPER = ("asking", "asked", "told")
POINTS = (*WRAPPER, *RUNNER, *CHILDREN, *LAUNCHER, *AFTER_A_KILLED_RUNNER)


def points_in_the_sources():
    files = [file for area in ("common", "runner", "wrapper", "admin") for file in (SOURCES / area).glob("*.cpp")]
    return sorted(name for file in files for name in re.findall(r'fault_point\("([^"]+)"\)', file.read_text()))


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
            # nsenter(1) and sudo(8) stop themselves when they see their child stop.
            self.wrapper.send_signal(signal.SIGCONT)
            self.machine.root(["pkill", "-CONT", "-x", "sudo"])
            try:
                out, said = self.wrapper.communicate(timeout=0.5)
                return self.wrapper.returncode, out, said
            except subprocess.TimeoutExpired:
                assert time.monotonic() < until, "the start does not end"


@contextlib.contextmanager
def waiting_at(target, point):
    """Runs pi as alice until a process waits at the point; until it is released, whoever else comes there waits too."""
    policy = target.policy_with(BWRAP) if point == "keeper-cleans" else contextlib.nullcontext()
    with policy:
        if point in AFTER_A_KILLED_RUNNER:
            wrapper = target.machine.popen(["pi", "sh", "-c", "echo ready; exec sleep 60"], cwd=DEMO)
            assert wrapper.stdout.readline() == b"ready\n"
        target.machine.write(WAIT_AT, point + "\n")
        try:
            if point in AFTER_A_KILLED_RUNNER:
                target.machine.root("pkill -KILL -f ^/usr/libexec/pi-agent/pi-agent-runner", check=True)
            else:
                wrapper = target.machine.popen(["pi", "echo", "ran"], cwd=DEMO)
            wrapper.stdin.close()
            wrapper.stdin = None
            pid = wait_for_process(target, point, wrapper)
        except BaseException:
            target.machine.root(["rm", "-f", WAIT_AT])
            raise
        try:
            yield Reached(target, wrapper, pid)
        finally:
            target.machine.root(f"rm -f {WAIT_AT}; kill -CONT {pid} 2>/dev/null; true")
            wrapper.kill_all()
            wrapper.wait()
            for stream in (wrapper.stdout, wrapper.stderr):
                stream.close()


def wait_for_process(target, point, wrapper):
    until = time.monotonic() + REACH_SECONDS
    while time.monotonic() < until:
        found = target.machine.root(["pgrep", "-x", point]).stdout.split()
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
    assert (status == 0 and out == b"ran\n") or (status > 0 and b"pi: " in said), f"neither an end nor words: {end}"


def require_sound(target, traces):
    """Nothing runs or is left, what is kept can be read, and the next start of everybody works."""
    for user, cwd in (("alice", DEMO), ("bob", "/home/bob/work/demo")):
        done = target.pi("echo", "ran", user=user, cwd=cwd)
        assert (done.returncode, done.stdout) == (0, b"ran\n"), f"the next start of {user}: {done}"
    for command in (["sessions", "--json"], ["state", "--json"], ["history", "--json"]):
        json.loads(target.machine.root(["pi-agentctl", *command], check=True).stdout)
    target.expect_traces(traces, CLEAN_SECONDS)

"""Bombs of every kind against the limits of the policy, on a machine that has the controllers; and hosts that would not enforce them."""

import os
import shlex
import time

import pytest
import record_check
from cache import WITH_SEAMS, Build
from legacy import NoLegacyHierarchy
from machine import Machine
from points import read_line
from target import ATTACK_POLICY, DEMO, Outcome, Target, prepare

pytestmark = pytest.mark.position("agent")

UNAVAILABLE = 69
DROP_IN = "/etc/systemd/system/pi-agent-.slice.d/attack.conf"

MEMORY = "held = [bytearray(b'x' * (8 << 20)) for _ in range(64)]; print('held')"  # half a GiB
TASKS = """
import os, threading, time
threading.stack_size(32768)
count = 0
try:
    while count < 400: threading.Thread(target=time.sleep, args=(600,), daemon=True).start(); count += 1
except RuntimeError: pass
print(count, flush=True)
os._exit(0)
"""
# Two processes, so that a busy host still gives them more than the limit does: that is 0.8 seconds.
PROCESSOR = """
import os, time
until = time.monotonic() + 4
child = os.fork()
while time.monotonic() < until: pass
if child == 0: os._exit(0)
os.wait()
times = os.times()
print(times.user + times.system + times.children_user + times.children_system)
"""
TIME = "import time; time.sleep(13); print('still there')"


@pytest.fixture(scope="module")
def limited(machine_name):
    """The build with seams on the legacy boot."""
    try:
        machine = Machine(f"limited-{os.getpid()}", machine_name, legacy=True)
    except NoLegacyHierarchy as reason:
        pytest.skip(str(reason))
    with machine as booted:
        booted.create(agent=None)
        booted.install(Build(machine_name, **WITH_SEAMS))
        booted.boot()
        prepare(booted)
        booted.install_policy(ATTACK_POLICY.read_text())
        target = Target(booted, has_seams=True)
        target.warm_up()
        yield target
        target.end_all()
        record_check.require_valid(booted, forms=False)
        booted.stop()


@pytest.fixture
def prove_limit(limited, seen_to_work):
    """prove_limit(limits, attack, *defences): the attack fails under these limits, and works when the defences are out."""

    def prove(limits, attack, *defences):
        with limited.policy_with(f"limits: {limits}"):
            on = attack(limited)
            assert not on.succeeded, f"the attack works: {on}"
            with limited.without(*defences):
                off = attack(limited)
            assert off.succeeded, f"without {', '.join(defences)} the attack should work, so this test proves nothing: {off}"
        seen_to_work(defences)
        return on

    return prove


def run(script, worked):
    def attack(target):
        done = target.pi("python3", "-c", script)
        return Outcome(worked(done), done)

    return attack


def test_memory_beyond_the_limit(prove_limit):
    on = prove_limit("{memory: 256M}", run(MEMORY, lambda done: done.stdout == b"held\n"), "unit:MemoryMax", "limits-check")
    assert b"pi: out of memory: the session reached its limit of 256M" in on.seen.stderr, on


def test_tasks_beyond_the_limit(prove_limit):
    on = prove_limit("{tasks: 64}", run(TASKS, lambda done: int(done.stdout or 0) == 400), "unit:TasksMax", "limits-check")
    assert 20 < int(on.seen.stdout) < 64, on


def test_processor_beyond_the_limit(prove_limit):
    # Of eight seconds; without the limit a host that is busy with ten others leaves more.
    prove_limit("{cpu: 10%}", run(PROCESSOR, lambda done: float(done.stdout) > 0.7), "unit:CPUQuotaPerSecUSec", "limits-check")


def test_a_session_beyond_its_time(prove_limit):
    on = prove_limit("{runtime: 10s}", run(TIME, lambda done: done.stdout == b"still there\n"), "unit:RuntimeMaxUSec")
    assert b"pi: out of time: a session may last 10s" in on.seen.stderr, on


@pytest.mark.position("user")
def test_more_sessions_than_the_policy_says(prove_limit):
    def attack(target):
        first = target.session("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 60")
        done = target.pi("true")
        first.end()
        return Outcome(done.returncode == 0, done)

    on = prove_limit("{sessions: 1}", attack, "session-limit")
    assert b"pi: limit: alice has 1 session, the most that a user may have at once (limits.sessions, " in on.seen.stderr, on


@pytest.mark.position("host")
@pytest.mark.parametrize(("limits", "controller", "named"), [
    ("{memory: 256M}", "memory", b"limits.memory: 256M"),
    ("{tasks: 64}", "pids", b"limits.tasks: 64"),
    ("{cpu: 20%}", "cpu", b"limits.cpu: 20%"),
])  # fmt: skip
def test_no_agent_starts_where_systemd_leaves_a_limit_out(limits, controller, named, prove_limit, limited):
    """systemd only notes in its journal that it does not use a controller; here because a slice forbids it."""
    slices = "systemctl stop pi-agent-u1000.slice pi-agent-u1001.slice; systemctl daemon-reload"
    limited.machine.write(DROP_IN, f"[Slice]\nDisableControllers={controller}\n")
    limited.machine.root(slices, check=True)
    try:
        on = prove_limit(limits, run("print('started')", lambda done: done.stdout == b"started\n"), "limits-check")
    finally:
        limited.machine.root(f"rm {DROP_IN}; {slices}", check=True)
    assert on.seen.returncode == UNAVAILABLE and b"this host does not enforce the policy's " + named in on.seen.stderr, on


@pytest.mark.position("host")
def test_no_agent_starts_where_the_kernel_has_no_such_controller(prove, product):
    """The usual machines have no such controller at all."""
    if b"memory" in product.machine.read("/sys/fs/cgroup/cgroup.controllers"):
        pytest.skip("this host's unified hierarchy has controllers, so the machine lacks none")

    def attack(target):
        with target.policy_with("limits: {memory: 256M}"):
            done = target.pi("sh", "-c", "echo started")
        return Outcome(done.stdout == b"started\n", done)

    on, _ = prove(attack, "limit-controllers", "limits-check")
    assert on.seen.returncode == UNAVAILABLE and b"this host cannot enforce the policy's limits.memory: 256M" in on.seen.stderr, on


# Each until its limit, or its user's patience, ends it; with the beginning of the notice that tells that it was one.
FORKS = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0: time.sleep(600)
        count += 1
except OSError: print(count, flush=True)
time.sleep(3)
"""
FLOOD = """
import os, time
until = time.monotonic() + 3
while time.monotonic() < until: os.write(1, b"x" * 65536)
"""
BOMBS = {"a memory bomb": (MEMORY, b"out of memory"), "a fork bomb": (FORKS, b"out of processes"), "a flood of output": (FLOOD, b"")}
ECHO = "while read line; do echo $line; done"


def left_of_sessions(target):
    """Without units: on this boot systemd does not hear that a scope is empty, and the next start sweeps it."""
    traces = target.traces()
    return [*traces["processes"], *(path for path in traces["directories"] if "pi-agent/sessions" in path)]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_session_of_another_user_goes_on_beside(bomb, limited, figures, control_seen):
    script, said = BOMBS[bomb]
    bob = {"user": "bob", "cwd": "/home/bob/work/demo"}
    with limited.policy_with("limits: {memory: 256M, tasks: 64, cpu: 100%}"):
        neighbour = limited.machine.popen(["pi", "sh", "-c", ECHO], **bob)

        def answer():
            begun = time.monotonic()
            neighbour.stdin.write(b"there\n")
            neighbour.stdin.flush()
            assert read_line(neighbour) == b"there\n"
            return time.monotonic() - begun

        answer()
        alone = max(answer() for _ in range(20))
        begun = time.monotonic()
        attacker = limited.machine.popen(f"pi python3 -c {shlex.quote(script)} | (sleep 2; wc -c)", cwd=DEMO)
        slowest = 0.0
        while attacker.poll() is None and time.monotonic() < begun + 30:
            slowest = max(slowest, answer())
        out, notices = attacker.communicate(timeout=30)
        done = limited.pi("echo", "ran", **bob)
        neighbour.communicate(timeout=20)
    assert said in notices and int(out.split()[-1]) > (1 << 20 if bomb == "a flood of output" else -1), f"it was no bomb: {out} {notices}"
    control_seen("the bomb was seen to reach its limit, or what it wrote")
    assert done.stdout == b"ran\n" and neighbour.returncode == 0 and slowest < 5, (done, neighbour.returncode, slowest)
    until = time.monotonic() + 10
    while (left := left_of_sessions(limited)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left, left
    figures(f"the slowest answer of bob's session alone {1000 * alone:.0f} ms, beside it {1000 * slowest:.0f} ms")

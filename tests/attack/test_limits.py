"""Limits: what one user may take of the host, and what packets may leave with the runner."""

import json
import time

import pytest
from repositories import PLACE, repository
from target import DEMO, INSIDE, Outcome

pytestmark = pytest.mark.position("user")

LIMIT = 75
SESSIONS = 8
SUBMOUNTS = 64
STAYING = ("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 120")


def test_no_more_sessions_of_one_user_than_eight(prove, product):
    def attack(target):
        sessions = [target.session(*STAYING) for _ in range(SESSIONS)]
        ninth = target.pi("true")
        other = target.pi("true", user="bob", cwd="/home/bob/work/demo")
        for session in sessions:
            session.end()
        assert other.returncode == 0, f"one user's sessions are another's refusal: {other}"
        return Outcome(ninth.returncode == 0, ninth)

    on, _ = prove(attack, "session-limit")
    assert on.seen.returncode == LIMIT and b"pi: limit: alice has 8 sessions" in on.seen.stderr, on
    product.pi("true", check=True)


def test_sessions_started_at_once_are_counted_too(product):
    """Nobody waits for a lock: each start makes its mark and counts the others'."""
    started = [product.machine.popen(["pi", *STAYING], cwd=DEMO) for _ in range(SESSIONS + 4)]
    lines = [process.stdout.readline() for process in started]  # of the agent, or nothing
    running = [process for process, line in zip(started, lines) if line]
    refused = [process for process, line in zip(started, lines) if not line]
    complaints = [process.stderr.read() for process in refused]
    for process in started:
        if process in running:
            process.kill_all()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
    product.clear()
    assert 0 < len(running) <= SESSIONS, complaints
    # On a slow machine some may have waited too long for those before them to prepare.
    words = (b"limit: alice has 8 sessions", b"has been preparing for more than")
    for process, said in zip(refused, complaints):
        assert process.returncode == LIMIT and any(word in said for word in words), said


# Runners that wait for a request, each with a connection to the system bus, of which root has a few hundred.
SILENT_STARTS = """
waiting = []
for _ in range(32):
    own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    waiting.append((own, subprocess.Popen(SUDO, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
    theirs.close()
told = []
for own, sudo in waiting:
    answer = {"said": "", "notices": []}
    hear(own, answer)
    sudo.wait(timeout=30)
    told.append(answer)
tell(told)
"""


def test_no_more_starts_of_one_user_wait_for_a_request_than_sixteen(prove):
    def attack(target):
        told = target.play(SILENT_STARTS)
        refused = [answer["said"] for answer in told if answer.get("status told") == LIMIT]
        return Outcome(not refused, told)

    on, _ = prove(attack, "start-limit")
    said = [answer["said"] for answer in on.seen]
    assert any("limit: 16 sessions of yours are already starting" in text for text in said), said
    assert sum("limit" not in text for text in said) >= 16, said


@pytest.fixture
def many_mounts(product, weak):
    points = f"$(seq -f {DEMO}/mounts/%g {SUBMOUNTS + 1})"
    for target in (product, weak):
        target.machine.root(f"for point in {points}; do mkdir -p $point && mount -t tmpfs -o size=4k none $point || exit; done", check=True)
    yield
    for target in (product, weak):
        target.machine.root(f"umount -R -l {points}; rm -r {DEMO}/mounts", check=True)


def test_no_more_mounts_inside_a_root_than_can_be_hidden(prove, product, many_mounts):
    def attack(target):
        done = target.pi("true")
        return Outcome(done.returncode == 0, done)

    on, _ = prove(attack, "submount-limit")
    assert on.seen.returncode == LIMIT, on
    assert b"limit: 65 file systems are mounted inside /home/alice/projects, and at most 64" in on.seen.stderr
    product.machine.root(["umount", f"{DEMO}/mounts/1"], check=True)
    product.pi("true", check=True)
    product.machine.root(["mount", "-t", "tmpfs", "none", f"{DEMO}/mounts/1"], check=True)


# Few enough for their number; each lacks hooks, config, commondir, info and info/attributes.
MODULES = 505
BARE_MODULES = f"for n in $(seq {MODULES}); do mkdir -p .git/modules/bare/$n && touch .git/modules/bare/$n/HEAD; done"
MOUNTED = "for i in $(seq 200); do grep -q guarded /proc/self/mountinfo || exit 0; sleep 0.1; done; exit 1"


def test_a_repository_does_not_fill_what_all_sessions_share(prove):
    """What stands for a missing path is written down beside the mount points of everybody's sessions, a page each."""

    def attack(target):
        with repository(target, BARE_MODULES):
            done = target.pi("true", cwd=PLACE, timeout=60)
            target.machine.root(MOUNTED, timeout=30, check=True)
            made = target.machine.root(f"find {PLACE}/.git/modules/bare -mindepth 2 -not -name HEAD", check=True).stdout
        return Outcome(done.returncode == 0, (done, made))

    on, _ = prove(attack, "placeholder-limit", quick=True)
    done, made = on.seen
    assert done.returncode == LIMIT and b"limit: in /home/alice/projects" in done.stderr and b"more than 2500 files and directories" in done.stderr, on
    assert made == b"", "what stands for missing paths was made, and nothing removes it"


SHOW = "systemctl show --property={} --value {}"


@pytest.mark.position("agent")
def test_a_session_and_all_of_a_user_have_limits_of_memory_and_tasks(product, weak, seen_to_work):
    """Only what systemd was told: in the test machine, whose controllers are not delegated to it, nothing is enforced."""
    defences = ("unit:MemoryMaxScale", "unit:TasksMax")
    total = 1024 * int(product.machine.root("grep ^MemTotal /proc/meminfo", check=True).stdout.split()[1])
    session = product.session(*STAYING)
    for unit, tasks in ((session.service, 4096), ("pi-agent-u1000.slice", None)):
        shown = {
            name: product.machine.root(SHOW.format(name, unit), check=True).stdout.decode().strip()
            for name in ("MemoryMax", "TasksMax")
        }
        assert abs(int(shown["MemoryMax"]) / total - 0.8) < 0.02, (unit, shown)
        assert int(shown["TasksMax"]) == (tasks or int(shown["TasksMax"])), (unit, shown)
    # And after systemd has read its own files again.
    product.machine.root(["systemctl", "daemon-reload"], check=True)
    shown = product.machine.root(SHOW.format("TasksMax", session.service), check=True).stdout.decode().strip()
    assert shown == "4096"
    session.end()
    with weak.without(*defences):
        session = weak.session(*STAYING)
    memory, tasks = (weak.machine.root(SHOW.format(name, session.service), check=True).stdout for name in ("MemoryMax", "TasksMax"))
    session.end()
    assert memory == b"infinity\n" and tasks != b"4096\n", (memory, tasks)
    seen_to_work(defences)


# Runs in a second session: everything with which it could slow another process down, as JSON.
TUNING = """
import ctypes, json, os, sys
sys.path.insert(0, {inside!r})
from probe import in_child, outcome, system_call

PID = int(sys.argv[1])
class Attributes(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("policy", ctypes.c_uint32), ("rest", ctypes.c_uint64 * 5)]
def param():
    return ctypes.byref(ctypes.c_int(0))
BATCH = 3
attempts = {{
    "its limits": lambda: outcome(system_call(302, PID, 4, ctypes.byref((ctypes.c_uint64 * 2)(0, 0)), None)),
    "its affinity": lambda: os.sched_setaffinity(PID, {{0}}) or "done",
    "its policy": lambda: outcome(system_call(144, PID, BATCH, param())),
    "its parameters": lambda: outcome(system_call(142, PID, param())),
    "its attributes": lambda: outcome(system_call(314, PID, ctypes.byref(Attributes(48, BATCH)), 0)),
    "its niceness": lambda: os.setpriority(os.PRIO_PROCESS, PID, 19) or "done",
    "everybody's niceness": lambda: os.setpriority(os.PRIO_USER, 0, 19) or "done",
    "its input and output": lambda: outcome(system_call(251, 1, PID, 3 << 13)),
}}
print(json.dumps({{name: in_child(attempt) for name, attempt in attempts.items()}}))
""".format(inside=INSIDE)


@pytest.mark.position("agent")
def test_a_session_does_not_tune_the_processes_of_another(prove):
    """Under one account the kernel allows all of this; 0 is RLIMIT_CORE's new value, which harms nobody."""

    def attack(target):
        victim = target.session("sh", "-c", "echo $PI_AGENT_SESSION $$; exec sleep 60")
        done = target.pi("python3", "-c", TUNING, str(victim.agent_pid()), user="bob", cwd="/home/bob/work/demo")
        victim.end()
        assert done.returncode == 0, done
        got = json.loads(done.stdout.splitlines()[-1])
        return Outcome("done" in got.values(), got)

    on, off = prove(attack, "limits-of-others", "unit:PrivatePIDs")
    assert set(on.seen.values()) <= {"EPERM", "ESRCH"}, on  # the second: with process numbers of its own, there is no such process
    assert set(off.seen.values()) == {"done"}, off


@pytest.mark.position("agent")
def test_a_session_does_not_tune_its_launcher(prove):
    """It has the agent's account and, where the session has process numbers of its own, one of these; it answers what may be tuned."""

    def attack(target):
        done = target.pi("python3", "-c", TUNING.replace("int(sys.argv[1])", "os.getppid()"))
        assert done.returncode == 0, done
        got = json.loads(done.stdout.splitlines()[-1])
        return Outcome("done" in got.values(), got)

    on, off = prove(attack, "limits-of-others")
    assert set(on.seen.values()) == {"EPERM"}, on
    assert set(off.seen.values()) == {"done"}, off


SENDING = """
SO_PASSPIDFD = 76
own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
runner = subprocess.Popen(SUDO, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
stdio = Stdio()
ask(own, stdio, arguments=("sh", "-c", "trap '' USR2; sleep 60 & wait; wait"))
time.sleep(2)
theirs.setsockopt(socket.SOL_SOCKET, SO_PASSPIDFD, 1)
own.settimeout(2)  # once the runner has hung up, nobody reads
sent = 0
for _ in range(500):
    try:
        own.send(number(SIGNAL) + number(signal.SIGUSR2) + number(0))
        sent += 1
    except OSError:
        break
    time.sleep(0.002)
print(json.dumps(sent), flush=True)
sys.stdin.readline()
own.close()
theirs.close()
runner.wait()
"""
COUNT = "for pid in $(pgrep -f ^/usr/libexec/pi-agent/pi-agent-runner); do ls /proc/$pid/fd | wc -l; done | sort -n | tail -1"


def test_packets_leave_no_descriptors_with_the_runner(prove):
    """A peer that shares the runner's end switches a descriptor of the sender on for every packet."""

    def attack(target):
        process = target.machine.popen(["python3", "-c", target.prelude + "import sys, signal\n" + SENDING])
        sent = json.loads(process.stdout.readline())
        time.sleep(1)
        held = int(target.machine.root(COUNT).stdout or 0)
        process.communicate(b"\n", timeout=20)
        return Outcome(held > 100, {"sent": sent, "held": held})

    prove(attack, "uninvited-pidfds")

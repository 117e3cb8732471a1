"""A gate that is killed, stopped, or has no memory or descriptor left: nothing passes, whoever waits is told, and the session can end."""

import contextlib
import json
import os
import select
import time

import pytest
from points import Before, waiting_at
from session import main_pid, pids_in
from target import Outcome

pytestmark = pytest.mark.position("host")
clean = pytest.mark.usefixtures("nothing_left")

HOSTS = 'network: {hosts: ["localhost:7011"]}'
TOLD_SECONDS = 2
END_SECONDS = 15
# The host's own: says what comes of it every tenth of a second, for as long as somebody listens.
SERVICE = """
import socket, threading, time
def stream(accepted):
    try:
        while True: accepted.sendall(b"outside"); time.sleep(0.1)
    except OSError: pass
server = socket.create_server(("127.0.0.1", 7011)); print("ready", flush=True)
while True: threading.Thread(target=stream, args=(server.accept()[0],), daemon=True).start()
"""
# Inside: one connection that stays, and for each line of its input what new ones come to, by each way out.
ASK = """
import json, os, socket, sys, time
NAMED = ("127.0.0.1", 7011)
TUNNEL = b"CONNECT localhost:7011 HTTP/1.1\\r\\n\\r\\n"
def ask(address, sent=b"", sign=b"outside"):
    begin = time.monotonic()
    try:
        with socket.create_connection(address, 2) as one:
            one.settimeout(2); one.sendall(sent); seen = one.recv(100)
    except OSError as failure: seen = type(failure).__name__.encode()
    return [sign in seen, seen.decode("latin-1"), time.monotonic() - begin]
def rest(one):
    one.settimeout(1); until = time.monotonic() + 4
    try:
        while time.monotonic() < until:
            if not one.recv(65536): return "over"
        return "goes on"
    except TimeoutError: return "silent"
    except OSError: return "over"
held = socket.create_connection(NAMED, 5); held.settimeout(5); assert held.recv(7)
print(os.environ["PI_AGENT_SESSION"], flush=True)
for line in sys.stdin:
    answers = {"itself": ask(NAMED), "tunnel": ask(("127.0.0.1", 808), TUNNEL, b"200"), "another": ask(("192.0.2.1", 443), b"x")}
    name = ask(("127.0.0.53", 53), b"\\0\\x1b" + b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"\\1a\\7example\\0\\0\\1\\0\\1", b"\\xc6\\x12")
    time.sleep(0.5)  # what is denied is told a moment later
    told = open("/run/pi-agent/denials").read()
    print(json.dumps({"answers": answers, "name": name, "held": rest(held) if line == "rest\\n" else "", "told": told}), flush=True)
"""
EXEC = "/usr/libexec/pi-agent/pi-agent-exec"
# As the gate's account: root of a container may lack CAP_SYS_RESOURCE (prlimit(2)).
LIMIT_DESCRIPTORS = (
    'own() { sed -n "s/^$1:\\t\\([0-9]*\\).*/\\1/p" "/proc/$2/status"; }; '
    'setpriv --reuid "$(own Uid "$1")" --regid "$(own Gid "$1")" --clear-groups prlimit --pid "$1" --nofile='
)
FAULTS = {
    "killed": 'kill -KILL "$1"',
    "stopped": 'kill -STOP "$1"',
    "without memory": 'echo 65536 >"/sys/fs/cgroup$(sed -n s/^0:://p "/proc/$1/cgroup")/memory.max"',
    "without descriptors": LIMIT_DESCRIPTORS + "3:",  # as many as it began with
}
GONE = ("killed", "without memory")


class Running:
    """A session whose gate serves, in the middle of a stream."""

    def __init__(self, target):
        self.machine = target.machine
        with target.policy_with(HOSTS):
            self.process = self.machine.popen(["pi", "python3", "-c", ASK], cwd="/home/alice/projects/demo")
            self.id = self.process.stdout.readline().decode().strip()  # by then the policy has been read
        assert len(self.id) == 32, self.process.stderr.read()
        self.gate = f"pi-agent-gate-{self.id}.service"

    def begin_to_ask(self, line="again"):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, line="again"):
        self.begin_to_ask(line)
        return self.answer()

    def break_gate(self, fault):
        """How it is since then; returns when that began."""
        if fault == "without memory" and b"memory" not in self.machine.root(["cat", "/sys/fs/cgroup/cgroup.controllers"]).stdout.split():
            pytest.skip("this kernel's memory controller is not one of version 2, so the machine cannot limit a gate's memory")
        self.machine.root(["sh", "-ec", FAULTS[fault], "sh", str(main_pid(self.machine, self.gate))], check=True)
        return time.monotonic()

    def told(self, begin, seconds=TOLD_SECONDS):
        """What its user reads until then, up to a line about the gate."""
        said = b""
        while not (b"gate" in said and said.endswith(b"\n")) and (left := begin + seconds - time.monotonic()) > 0:
            if select.select([self.process.stderr], [], [], left)[0]:
                piece = os.read(self.process.stderr.fileno(), 65536)
                if not piece:
                    break
                said += piece
        return said.decode()

    def end(self):
        """By the end of its input; its status."""
        _, said = self.process.communicate(timeout=END_SECONDS)
        return self.process.returncode, said


@contextlib.contextmanager
def service(machine):
    server = machine.popen(["python3", "-c", SERVICE], user="root")
    assert server.stdout.readline() == b"ready\n", server.stderr.read()
    try:
        yield
    finally:
        server.kill_all()
        server.communicate()


@pytest.fixture
def running(product):
    with service(product.machine):
        one = Running(product)
        yield one
        if one.process.poll() is None:
            one.process.kill_all()
            one.process.communicate()


def left_in(machine, *units):
    """Processes that do not go in time."""
    until = time.monotonic() + END_SECONDS
    while (left := [pid for unit in units for pid in pids_in(machine, unit)]) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def whole(answers):
    return {way: answer[0] for way, answer in answers.items()}


@clean
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_passes_a_gate_that_is(fault, running, control_seen):
    """Neither what a rule names nor anything else, by itself or by the proxy; and the session ends as others do."""
    before = running.ask()
    assert whole(before["answers"]) == {"itself": True, "tunnel": True, "another": False}, before
    assert before["name"][0], before
    running.break_gate(fault)
    after = running.ask("rest")
    assert whole(after["answers"]) == {"itself": False, "tunnel": False, "another": False}, after
    assert not after["name"][0], after
    expected = {"stopped": "silent", "without descriptors": "goes on"}.get(fault, "over")  # which needs no new descriptor
    assert after["held"] == expected, after
    if fault in GONE:
        assert all(took < TOLD_SECONDS for _, _, took in after["answers"].values()), after
    status, said = running.end()
    assert status == 0, said
    assert not left_in(running.machine, running.gate)
    control_seen("the same connections passed before")


@clean
@pytest.mark.parametrize("fault", GONE)
def test_the_user_is_told_at_once_of_a_gate_that_is(fault, running, control_seen):
    begin = running.break_gate(fault)
    said = running.told(begin)
    assert "gate has ended" in said and "reaches nothing any more" in said and running.gate in said, said
    assert running.end()[0] == 0
    control_seen("the fault took place, or nobody had told of it")


@clean
@pytest.mark.parametrize(("fault", "words"), [("stopped", "has said nothing for two seconds"), ("without descriptors", "has no descriptor or memory left")])
def test_the_user_is_told_at_once_of_a_gate_that_lives_and_is(fault, words, running, control_seen):
    """One without descriptors finds out with the next connection."""
    before = running.ask()
    assert "192.0.2.1:443" in before["told"] and "descriptor" not in before["told"], before
    begin = running.break_gate(fault)
    running.begin_to_ask()
    said = running.told(begin)
    assert words in said and running.gate in said, said
    after = running.answer()
    assert ("no descriptor or memory left" in after["told"]) == (fault == "without descriptors"), after
    assert running.end()[0] == 0
    control_seen("what it denied before was told, and this was not")


@clean
def test_a_gate_that_has_descriptors_again_goes_on(running, control_seen):
    pid = main_pid(running.machine, running.gate)
    running.break_gate("without descriptors")
    assert not running.ask()["answers"]["itself"][0]
    running.machine.root(["sh", "-ec", LIMIT_DESCRIPTORS + "4096:", "sh", str(pid)], check=True)
    until = time.monotonic() + 10
    while not (seen := running.ask())["answers"]["itself"][0]:
        assert time.monotonic() < until, seen
    assert main_pid(running.machine, running.gate) == pid
    assert running.end()[0] == 0
    control_seen("it served nobody in between")


def test_a_start_that_fails_takes_its_gate_with_it(weak, control_seen):
    """It has been asked for before the session's own unit, and systemd makes mount points for it in a directory that is removed next."""
    before = Before(weak, "tree-built with hosts")
    with waiting_at(weak, before.point) as reached:
        until = time.monotonic() + END_SECONDS
        while not weak.machine.root(["systemctl", "list-units", "--plain", "--no-legend", "pi-agent-gate-*"]).stdout:
            assert time.monotonic() < until, "nobody asked for the gate"
            time.sleep(0.1)
        control_seen("systemd had the gate's unit by then")
        weak.machine.root(["mv", EXEC, f"{EXEC}.away"], check=True)
        try:
            reached.release()
            status, _, said = reached.end()
        finally:
            weak.machine.root(["mv", f"{EXEC}.away", EXEC], check=True)
    assert status > 0 and b"pi: " in said, (status, said)
    before.require_sound()


@clean
@pytest.mark.parametrize("fault", ["stopped", "without descriptors"])
@pytest.mark.parametrize("victim", ["runner", "wrapper"])
def test_it_ends_with_who_it_belongs_to_though_it_is(fault, victim, product, control_seen):
    """A process that hears nothing does not hear the end of its channel either."""
    with service(product.machine), product.policy_with(HOSTS):
        session = product.session("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 60")
        gate = f"pi-agent-gate-{session.id}.service"
        pid = main_pid(product.machine, gate)
        product.machine.root(["sh", "-ec", FAULTS[fault], "sh", str(pid)], check=True)
        victims = session.runner_pid() if victim == "runner" else session.wrapper_pid()
        product.machine.root(["kill", "-KILL", str(victims)], check=True)
        assert not left_in(product.machine, gate, session.service)
        control_seen("the gate was there until then")
        product.end_all()


@clean
def test_a_gate_that_systemd_refuses_says_why(product, control_seen):
    """Nobody waits for systemd's answer to the start of a gate. A host's own drop-in for units of that name makes it refuse."""
    place = "/run/systemd/system/pi-agent-gate-.service.d"
    product.machine.write(f"{place}/wrong.conf", "[Service]\nType=dbus\n")
    try:
        with product.policy_with(HOSTS):
            refused = product.pi("echo", "ran")
    finally:
        product.machine.root(["rm", "-r", place], check=True)
    assert refused.returncode == 69 and refused.stdout == b"" and b"bad unit file setting" in refused.stderr, refused
    with product.policy_with(HOSTS):
        assert product.pi("echo", "ran").stdout == b"ran\n"
    control_seen("without it, the same start runs")


def test_a_gate_that_hears_nothing_ends_after_a_runner_that_was_killed(prove):
    """Where systemd does not bring it: the unit that cleans up looks for it."""

    def attack(target):
        with target.policy_with(HOSTS):
            session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 60")
        gate = f"pi-agent-gate-{session.id}.service"
        pid = main_pid(target.machine, gate)
        target.machine.root(["kill", "-STOP", str(pid)], check=True)
        target.machine.root(["kill", "-KILL", str(session.runner_pid())], check=True)
        left = left_in(target.machine, gate)
        target.machine.root(f"kill -KILL {pid}; true")
        target.end_all()
        return Outcome(bool(left), left)

    prove(attack, "unit:BindsTo", "gate-ends", quick=True)

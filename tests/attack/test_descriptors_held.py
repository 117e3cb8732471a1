"""What a caller hands over can make whoever closes it wait, beyond SIGKILL: root must never be the one that closes it."""

import time

import pytest
from target import INSIDE, Outcome
from test_bus import name_on_bus

pytestmark = pytest.mark.position("user")

COMMON = """
def processes(uid, beginning=""):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == uid and open(f"/proc/{pid}/cmdline").read().startswith(beginning):
                found.append(pid)
        except OSError:
            pass
    return found

def wait_until(true, seconds):
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.1)
"""
# A session whose standard input is a file of the caller's own file system, which never answers FLUSH; then its wrapper is gone.
# Once it has that file the script starts no program: a fork would close a copy of it, and wait.
HANG = COMMON + """
from fuse import FLUSH, hanging

own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sudo = subprocess.Popen(SUDO, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
theirs.close()
server, file = hanging("file", [FLUSH])
stdio = Stdio()
send_record(own, request(["sleep", "60"]), [os.open(DEMO, os.O_PATH | os.O_DIRECTORY), file, *stdio.fds()[1:]])
agent = pwd.getpwnam("pi-agent").pw_uid
wait_until(lambda: processes(agent), 5)
time.sleep(1)
seen = processes(0, RUNNER)
own.close()
wait_until(lambda: not processes(0, RUNNER), 20)
left = processes(0, RUNNER)
os.kill(server, signal.SIGKILL)
sudo.wait(timeout=20)
tell({"seen": seen, "left": left})
"""


def test_root_does_not_wait_for_a_file_that_its_caller_handed_over(prove):
    def attack(target):
        told = target.play(HANG)
        assert told["seen"], "there was no runner at all"
        target.quiet_traces()
        return Outcome(bool(told["left"]), told)

    prove(attack, "root-holds-nothing", quick=True)


# Behind a request that is refused, where nobody reads: a connection whose peer takes nothing, and whose end waits for that (SO_LINGER, socket(7)).
LINGER = COMMON + """
own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listening = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listening.getsockname())
peer = listening.accept()[0]
sender.setblocking(False)
try:
    while True:
        sender.send(bytes(1 << 16))
except BlockingIOError:
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
own.send(b"no request")
socket.send_fds(own, [b"nobody reads this"], [sender.fileno()])
sender.close()
sudo = subprocess.Popen(SUDO, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
theirs.close()
wait_until(lambda: processes(0, RUNNER), 5)
seen = processes(0, RUNNER)
try:
    said = own.recv(1 << 16)
except ConnectionResetError:  # what was not read is told before what was sent
    said = own.recv(1 << 16)
said = said.decode(errors="replace")
own.close()
wait_until(lambda: not processes(0, RUNNER), 8)
left = processes(0, RUNNER)
peer.close()
sudo.wait(timeout=20)
tell({"seen": seen, "said": said, "left": left})
"""


def test_root_does_not_wait_for_a_connection_that_nobody_has_received(prove):
    def attack(target):
        told = target.play(LINGER)
        assert told["said"], f"the request was not refused: {told}"
        return Outcome(bool(told["left"]), told)

    prove(attack, "close-at-exit", quick=True)


# Anybody on the bus: with a signal of theirs a file of their own file system, which never answers FLUSH.
HAND_OVER = """
import os, signal, sys
sys.path.insert(0, "{inside}")
from bus import hand_over
from fuse import FLUSH, hanging
server, file = hanging("file", [FLUSH])
hand_over("{name}", file)
print("handed over", flush=True)
signal.pause()
"""
STAYING = ("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 4321")


def wait_until_it_waits(target, process):
    """For an answer of a file system (proc(5), wchan), on a busy host; a while at most."""
    until = time.monotonic() + 30
    while time.monotonic() < until and b"request_wait_answer" not in target.machine.root(["cat", f"/proc/{process}/wchan"]).stdout:
        time.sleep(0.05)


@pytest.mark.position("outsider")
def test_a_session_is_ended_though_its_runner_cannot_be(prove):
    """It waits in close(2), beyond SIGKILL (docs/security/known-weaknesses.md). What the administrator ends has still ended."""

    def attack(target):
        session = target.session(*STAYING)
        runner = session.runner_pid()
        script = HAND_OVER.format(inside=INSIDE, name=name_on_bus(target, runner))
        with target.machine.popen(["python3", "-c", script], user="eve") as eve:
            assert eve.stdout.readline() == b"handed over\n"
            wait_until_it_waits(target, runner)
            target.machine.root(["pi-agentctl", "stop", session.id], timeout=90)
            waits = target.machine.root(["test", "-e", f"/proc/{runner}"]).returncode == 0
            left = target.machine.root(["pgrep", "-f", "^sleep 4321"]).stdout
            eve.kill_all()
        session.end()
        target.quiet_traces()
        assert waits, "the runner did not wait, so this shows nothing"
        return Outcome(bool(left), left)

    prove(attack, "end-without-runner", quick=True)

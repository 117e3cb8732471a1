"""What a caller hands over can make whoever closes it wait, beyond SIGKILL: root must never be the one that closes it."""

import pytest
from target import Outcome

pytestmark = pytest.mark.position("user")

# A session whose standard input is a file of the caller's own file system, which never answers FLUSH; then its wrapper is gone.
# Once it has that file the script starts no program: a fork would close a copy of it, and wait.
HANG = """
from fuse import FLUSH, hanging

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

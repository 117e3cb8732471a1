"""What a caller hands over can make whoever closes it wait, beyond SIGKILL: root must never be the one that closes it."""

from target import Outcome

# A session whose standard input is a file of the caller's own file system, which never answers FLUSH; then its wrapper is gone.
HANG = """
from fuse import FLUSH, hanging

server, file = hanging("file", [FLUSH])
own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sudo = subprocess.Popen(SUDO, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
theirs.close()
stdio = Stdio()
send_record(own, request(["sleep", "60"]), [os.open(DEMO, os.O_PATH | os.O_DIRECTORY), file, *stdio.fds()[1:]])
def runners():
    return subprocess.run(["pgrep", "-u", "root", "-f", f"^{RUNNER}"], capture_output=True, text=True).stdout.split()
until = time.monotonic() + 5
while not subprocess.run(["pgrep", "-u", "pi-agent"], capture_output=True).stdout and time.monotonic() < until:
    time.sleep(0.1)
seen = runners()
time.sleep(1)
own.close()
until = time.monotonic() + 20
while (left := runners()) and time.monotonic() < until:
    time.sleep(0.2)
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

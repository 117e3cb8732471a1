"""The children of the runner that have the user's or the agent's uid: what the user does to them while they work."""

import json
import re
import time

import pytest
from target import ATTACK_POLICY, DEMO, Outcome

pytestmark = pytest.mark.position("user")

CONFIG = "/home/alice/.pi/agent"
STATE = "/var/lib/pi-agent/users/alice/home"
FILES = 2000  # so many that the reader of the configuration can be caught at work


def catching_the_reader(during, cwd=DEMO):
    """As alice: starts `pi`, stops the child of the runner that reads her configuration, does `during`, and tells what came."""
    return f"""
import pwd, signal
AGENT = pwd.getpwnam("pi-agent").pw_uid
def children(uid):
    found = {{}}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = dict(line.split(":", 1) for line in open(f"/proc/{{pid}}/status"))
        except OSError:
            continue
        if status["Name"].strip() == "pi-agent-runner" and int(status["Uid"].split()[0]) == uid:
            found[int(pid)] = status["State"].split()[0]
    return found

def caught():
    # While there is a writer, with the agent's uid, the second child with alice's reads the configuration; the first is the receiver.
    now = children(os.getuid())
    if not children(AGENT) or len(now) != 2 or now[max(now)] == "Z":
        return None
    pid = max(now)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.05)
    if children(os.getuid()).get(pid) == "T":
        return pid
    os.kill(pid, signal.SIGCONT)
    return None

wrapper = subprocess.Popen(["pi", "true"], cwd={cwd!r}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
victim = None
while victim is None and wrapper.poll() is None:
    try:
        victim = caught()
    except OSError:
        continue
answer = {{"victim": victim, "got": []}}
if victim:
    {during}
out, _ = wrapper.communicate(timeout=60)
answer.update(status=wrapper.returncode, out=out.decode())
tell(answer)
"""


PRYING = """
    for what in ("mem", "environ", "fd", "root", "maps", "exe"):
        try:
            path = f"/proc/{victim}/{what}"
            os.listdir(path) if what in ("fd", "root") else os.readlink(path) if what == "exe" else os.close(os.open(path, os.O_RDONLY))
            answer["got"].append(what)
        except OSError:
            pass
    if libc.ptrace(0x4206, victim, None, None) == 0:
        answer["got"].append("ptrace")
        libc.ptrace(17, victim, None, None)
    descriptor = os.pidfd_open(victim)
    if libc.syscall(438, descriptor, 0, 0) >= 0:
        answer["got"].append("pidfd_getfd")
    os.kill(victim, signal.SIGCONT)
"""
EXCHANGING = f"""
    assert libc.renameat2(-100, b"{DEMO}/here", -100, b"{DEMO}/other", 2) == 0
    os.kill(victim, signal.SIGCONT)
"""


@pytest.fixture(scope="module", autouse=True)
def large_configuration(product, weak):
    make = f"install -d -o alice -g alice {CONFIG}/skills && cd {CONFIG}/skills && seq {FILES} | xargs touch && chown alice: *"
    for target in (product, weak):
        target.machine.root(make, check=True)
        target.machine.install_policy(ATTACK_POLICY.read_text() + "git_identity: false\n")  # its reader would be a third child of alice's
    yield
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text())
        target.machine.root(f"rm -rf {CONFIG}/skills {STATE}/.pi/agent/skills", check=True)


def attacking(during, success, cwd=DEMO):
    def attack(target):
        target.machine.root(["rm", "-rf", f"{STATE}/.pi/agent/skills"], check=True)  # everything must be copied again
        answer = target.play(catching_the_reader(during, cwd))
        assert answer["victim"], f"no child was caught: {answer}"
        return Outcome(bool(success(answer)), answer)

    return attack


def test_the_user_can_neither_read_nor_trace_the_child_that_has_their_uid(prove):
    prove(attacking(PRYING, lambda answer: answer["got"]), "children-not-dumpable")


def test_a_child_that_the_user_stops_is_given_up_after_five_seconds(product, control_seen):
    before = product.quiet_traces()
    start = time.monotonic()
    seen = attacking("pass", lambda answer: False)(product).seen
    assert seen["status"] == 71 and "no progress for 5 seconds" in seen["out"], seen
    control_seen("the child was seen stopped")
    assert time.monotonic() - start < 15
    product.expect_traces(before)


def test_a_child_that_the_user_kills_ends_the_start_in_words(product, control_seen):
    before = product.quiet_traces()
    seen = attacking("os.kill(victim, signal.SIGKILL)", lambda answer: False)(product).seen
    assert seen["status"] == 71 and seen["out"].startswith("pi: "), seen
    control_seen("the child was caught at its work before it was killed")
    product.expect_traces(before)


def test_a_working_directory_exchanged_during_the_preparation_is_noticed(prove, product, weak):
    for target in (product, weak):
        target.machine.run(["mkdir", "-p", f"{DEMO}/here", f"{DEMO}/other"], check=True)
    on, _ = prove(attacking(EXCHANGING, lambda answer: answer["status"] == 0, cwd=f"{DEMO}/here"), "cwd-inode")
    assert on.seen["status"] == 77 and "replaced" in on.seen["out"], on
    for target in (product, weak):
        target.machine.root(["rm", "-r", f"{DEMO}/here", f"{DEMO}/other"], check=True)


# Whoever waits for an answer of such a file system does not even die of SIGKILL.
SILENT = """
from fuse import GETATTR, hanging
server, cwd = hanging("", [GETATTR], os.O_PATH | os.O_DIRECTORY)
own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
child = subprocess.Popen(SUDO, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
theirs.close()
ask(own, Stdio(), cwd=cwd)
own.settimeout(12)
answer = None
try:
    while answer is None:
        message = Decoder(own.recv(65536))
        if message.number() == FAILURE: answer = {"status": message.number(), "said": message.text()}
except TimeoutError:
    pass
os.kill(server, signal.SIGKILL)
child.wait(timeout=20)
tell(answer)
"""


def test_a_file_system_of_the_user_that_does_not_answer_keeps_only_the_child_that_asked_it(prove):
    def attack(target):
        before = target.quiet_traces()
        answer = target.play(SILENT)
        target.expect_traces(before)
        return Outcome(answer is None, answer)

    on, _ = prove(attack, "child-end", quick=True)
    assert on.seen["status"] == 71 and "no progress for 5 seconds" in on.seen["said"], on


GONE_AT_ONCE = """
own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
ask(own, Stdio(), arguments=["sleep", "60"])
own.close()
sudo = subprocess.run(SUDO, stdin=theirs, capture_output=True, timeout=40)
tell(sudo.stderr.decode())
"""


def test_a_session_whose_wrapper_is_gone_does_not_get_beyond_its_configuration(prove):
    def attack(target):
        newest = ["journalctl", "--lines=1", "--output=json"]
        since = json.loads(target.machine.root(newest, check=True).stdout)["__CURSOR"]
        before = target.quiet_traces()
        target.play(GONE_AT_ONCE)
        target.machine.root(["journalctl", "--sync"], check=True)
        told = target.machine.root(["journalctl", f"--after-cursor={since}", "--output=cat"], check=True).stdout.decode()
        target.expect_traces(before)
        assert "ended while it was being prepared" in told, told
        return Outcome(re.search(r"^session [0-9a-f]{32} ended", told, re.MULTILINE) is not None, told)  # what ends was a session

    prove(attack, "sync-ends-with-session")

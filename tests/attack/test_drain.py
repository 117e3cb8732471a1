"""A host that its administrator drains: users start nothing there, whatever they ask for and however long they take; and words that are no words."""

import contextlib
import time

import pytest
from target import PRELUDE, Outcome

pytestmark = pytest.mark.position("user")

WORK = "/home/bob/work/demo"
# The request comes when somebody says so: until then its runner waits, with the policy read.
STRETCHED = PRELUDE + """
def late(channel, stdio):
    while not os.path.exists("/tmp/go"):
        time.sleep(0.05)
    ask(channel, stdio, arguments=["echo", "ran"], cwd=sys.argv[1])
answer = call(late)
print(json.dumps(answer))
"""
SCOPES = ["systemctl", "list-units", "--plain", "--no-legend", "pi-agent-run-*.scope"]
TITLE = "\033]0;chosen by eve\a"


@contextlib.contextmanager
def drained(target):
    target.machine.root(["pi-agentctl", "drain"], check=True)
    try:
        yield
    finally:
        target.machine.root(["pi-agentctl", "drain", "--off"], check=True)


def test_a_user_starts_nothing_on_a_drained_host(prove):
    def attack(target):
        with drained(target):
            done = target.pi("echo", "ran")
        return Outcome(done.stdout == b"ran\n", done)

    on, _ = prove(attack, "drain")
    assert on.seen.returncode == 75 and b"lets no session start on this host for now" in on.seen.stderr, on


def test_a_user_gets_no_canary_on_a_drained_host(prove):
    """Root's own tries of the sandbox are such sessions; a user who asks for one keeps `drain --wait` waiting as well."""

    def attack(target):
        with drained(target):
            done = target.machine.run(["pi", "--pi-agent-canary"], user="alice", cwd="/home/alice/projects/demo")
        return Outcome(b'"findings"' in done.stdout, done)

    on, _ = prove(attack, "drain")
    assert on.seen.returncode == 75, on


def test_a_start_that_its_user_stretches_is_no_session_on_a_host_that_was_drained_meanwhile(prove):
    def attack(target):
        target.machine.root("rm -f /tmp/go", check=True)
        starting = target.machine.popen(["python3", "-c", STRETCHED, WORK], user="bob")
        until = time.monotonic() + 20
        while not target.machine.root(SCOPES, check=True).stdout and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)  # between its scope and its waiting there are milliseconds
        with drained(target):
            waited = target.machine.root(["pi-agentctl", "drain", "--wait"], check=True)
            target.machine.root("touch /tmp/go", check=True)
            out, err = starting.communicate(timeout=40)
        target.machine.root("rm -f /tmp/go", check=True)
        assert out and b"no session runs" in waited.stdout, (err, waited)
        return Outcome(b'"out": "ran' in out, out)

    on, _ = prove(attack, "drain")
    assert b"lets no session start on this host for now" in on.seen, on


@pytest.mark.position("outsider")
def test_words_that_somebody_else_chose_do_nothing_to_the_terminal_of_who_reads_them(prove):
    """An administrator passes on what a ticket or another program says; the user's terminal would obey it."""

    def attack(target):
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 1000")
        done = target.machine.root(["pi-agentctl", "stop", session.id, "--message", TITLE])
        if done.returncode != 0:
            session.end()
            return Outcome(False, done)
        told = session.process.stderr.read()
        session.end()
        return Outcome(TITLE.encode() in told, (done, told))

    on, _ = prove(attack, "plain-message")
    assert on.seen.returncode == 64 and b"\033" not in on.seen.stderr, on

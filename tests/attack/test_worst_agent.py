"""An agent that does its worst against its end, and a wrapper that is stopped: the administrator's commands still end it, and soon."""

import json
import os
import signal
import time

import pytest
from target import ATTACK_POLICY, DEMO, INSIDE, POLICY_FILE, Outcome

pytestmark = pytest.mark.position("agent")

FULL = bool(os.environ.get("PI_AGENT_FULL"))
ROUNDS = 10 if FULL else 1
SECONDS = 15  # that an administrator waits, at most
WORST = ("python3", f"{INSIDE}/worst.py")
# What entered the machine for a command stops with it, and for good: so the wrapper is a command of a shell's.
BY_A_SHELL = ("sh", "-c", 'pi "$@"; exit $?', "sh")
STOPPED_POLICY = ATTACK_POLICY.read_text() + "wrapper: {enable: false}\n"


def ends_of(machine, session_id):
    """The entries of the record that say how it ended."""
    machine.root(["journalctl", "--sync"], check=True)
    lines = machine.root(["journalctl", "-o", "json", f"PI_AGENT_SESSION={session_id}", "PI_AGENT_EVENT=ended"], check=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def wrapper_of(session):
    return int(session.machine.root(["pgrep", "--parent", str(session.wrapper_pid()), "--exact", "pi"], check=True).stdout)


class WithStoppedWrapper:
    """As after Ctrl-Z, or kill -STOP."""

    def __init__(self, target, *more):
        self.machine = target.machine
        self.session = target.session(*WORST, *more, program=BY_A_SHELL)
        self.id = self.session.id
        self.wrapper = wrapper_of(self.session)
        self.machine.root(["kill", "-STOP", str(self.wrapper)], check=True)

    def finish(self):
        self.machine.root(["kill", "-CONT", str(self.wrapper)])
        try:
            self.session.process.wait(timeout=10)
        finally:
            self.session.end()


# As alice: a wrapper of her own, whose end of the socket takes hardly anything and which never reads; it lives until its input ends.
NEVER_READING = """
own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
out, agents = os.pipe()
null = os.open("/dev/null", os.O_RDWR)
child = subprocess.Popen(SUDO, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
theirs.close()
cwd = os.open(DEMO, os.O_PATH | os.O_DIRECTORY)
send_record(own, request(sys.argv[1:]), [cwd, null, agents, agents])
os.close(agents)
print(os.read(out, 4096).decode(), flush=True)
sys.stdin.read()
"""


class WithFullSockets:
    def __init__(self, target, *more):
        self.process = target.machine.popen(["python3", "-c", target.prelude + NEVER_READING, *WORST, *more], cwd=DEMO)
        line = self.process.stdout.readline().decode()
        assert len(line.split(" ")[0]) == 32, (line, self.process.stderr.read() if self.process.poll() else "")
        self.id = line.split()[0]

    def finish(self):
        self.process.kill_all()
        self.process.communicate()


def stop_all(machine):
    return machine.root(["pi-agentctl", "stop", "--all"])


def apply_the_stop(machine):
    machine.write(POLICY_FILE, STOPPED_POLICY)
    return machine.root(["pi-agentctl", "apply"])


def stop_and_remove(machine):
    stopped = stop_all(machine)
    return stopped if stopped.returncode else machine.root(["pi-agentctl", "remove", "--yes"])


COMMANDS = {"stop --all": stop_all, "apply with enable: false": apply_the_stop, "stop --all, then remove": stop_and_remove}
WRAPPERS = {"a stopped wrapper": WithStoppedWrapper, "full sockets": WithFullSockets}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_agent_at_its_worst_is_gone_within_fifteen_seconds(command, wrapper, product, control_seen, figures):
    machine, longest = product.machine, 0
    for number in range(ROUNDS):
        traces = product.quiet_traces()
        session = WRAPPERS[wrapper](product, *(["its-launcher"] if number % 2 else []))
        try:
            time.sleep(2)  # for hundreds of stops
            began = time.monotonic()
            done = COMMANDS[command](machine)
            took = time.monotonic() - began
            directories = machine.root("ls -A /run/pi-agent/sessions /var/lib/pi-agent/sessions | grep -v :$; true").stdout.split()
            mounted = machine.root(["grep", "-c", session.id, "/proc/self/mountinfo"]).stdout.strip()
            assert done.returncode == 0, (number, took, done)
            assert took < SECONDS, (number, took, done)
            assert (directories, mounted) == ([], b"0"), (number, took, done)
            machine.install_policy(ATTACK_POLICY.read_text())
        finally:
            session.finish()
        longest = max(longest, took)
        product.expect_traces(traces)
        (end,) = ends_of(machine, session.id)
        assert "the administrator" in end["PI_AGENT_REASON"] or "did not record how" in end["PI_AGENT_REASON"], end
        assert machine.root(["systemctl", "list-units", "--failed", "--plain", "--no-legend", "pi-agent*"], check=True).stdout == b""
        assert machine.root("ls /run/pi-agent/sessions/*/record; true").stdout == b""
    control_seen("the agent had stopped itself hundreds of times before, deaf to every signal")
    figures(f"{ROUNDS} rounds, the longest {longest:.1f} s")


def test_an_agent_cannot_put_off_its_own_end_by_stops_that_a_stopped_wrapper_does_not_read(prove):
    """It stops and goes on for a while, and ends: that is recorded at once, and what it left is removed."""

    def attack(target):
        traces = target.quiet_traces()
        session = WithStoppedWrapper(target, "its-end")
        try:
            until = time.monotonic() + 12
            while not (ends := ends_of(target.machine, session.id)) and time.monotonic() < until:
                time.sleep(0.2)
            outcome = Outcome(not ends, ends)
            if ends:
                assert ends[0].get("PI_AGENT_EXIT_SIGNAL") == str(int(signal.SIGKILL)), ends
                left = {kind: [entry for entry in entries if not str(entry).startswith("/usr/bin/pi ")] for kind, entries in target.traces().items()}
                assert set(left["directories"]) <= set(traces["directories"]) or not target.expect_traces({"directories": traces["directories"]})
        finally:
            session.finish()
        return outcome

    prove(attack, "stops-do-not-wait", "wrapper-deadline", quick=True)

"""What pi waits for is told after two seconds, and a signal ends the wait (tests/attack/test_hangs.py has the table of phases)."""

import contextlib
import os
import re
import signal
import time

import pytest
from launching import DEMO, finish, messages, pi
from shells import PROMPT, Shell

pytestmark = pytest.mark.usefixtures("playing")

TOLD = rb"pi: waiting for sudo \(process \d+\): two seconds without progress; Ctrl-C or kill \d+ ends pi; if it goes on, ask the administrator to run: sudo pi-agentctl doctor"
LEFT = rb"pi: ended by SIG(INT|TERM), though sudo \(process \d+\) has not answered: it belongs to root, and goes on until what it waits for answers"


@contextlib.contextmanager
def a_sudo_that_hangs(machine):
    """It looks this host's addresses up, and nobody writes into what names the resolver."""
    machine.root("test ! -e /etc/resolv.conf || mv /etc/resolv.conf /etc/resolv.kept; mkfifo /etc/resolv.conf", check=True)
    try:
        yield
    finally:
        machine.root("pkill -KILL -x sudo; rm /etc/resolv.conf; test ! -e /etc/resolv.kept || mv /etc/resolv.kept /etc/resolv.conf", check=True)


def test_a_sudo_that_hangs_is_told_once_and_left_by_a_signal(machine):
    with a_sudo_that_hangs(machine):
        process = machine.popen(["pi", "sh", "true"], user="alice", cwd=DEMO)
        told = process.stderr.readline()
        assert re.fullmatch(TOLD + b"\n", told), told
        os.set_blocking(process.stderr.fileno(), False)
        machine.root(["kill", "-TERM", str(process.inside_pid())], check=True)
        began = time.monotonic()
        process.wait(timeout=20)
        assert time.monotonic() - began < 10
        said = process.stderr.read() or b""
        assert process.returncode == -signal.SIGTERM and re.match(LEFT, said), (process.returncode, said)
        assert said.count(b"\n") == 1
    assert pi(machine, "sh", "true").returncode == 0


def test_on_a_terminal_too_and_the_terminal_is_the_shells_again(machine):
    with Shell(machine, columns=400) as shell, a_sudo_that_hangs(machine):
        before = shell.settings()
        shell.enter("pi sh true")
        shell.expect(TOLD)
        shell.type(b"\x03")
        shell.expect(LEFT)
        shell.expect(re.escape(PROMPT))
        assert shell.run("echo $?")[0] == b"130\r\n"
        assert shell.settings() == before


def test_pi_agentctl_says_what_it_waits_for(machine):
    with a_sudo_that_hangs(machine):
        process = machine.popen(["pi-agentctl", "sessions"], user="alice", cwd=DEMO)
        assert process.stderr.readline().startswith(b"pi-agentctl: waiting for sudo (process ")
        machine.root(["kill", "-INT", str(process.inside_pid())], check=True)
        process.wait(timeout=10)
        assert process.returncode == -signal.SIGINT


def test_an_agent_whose_launcher_is_stopped_is_ended_by_a_signal(machine):
    process = machine.popen(["pi", "sh", "echo hello; echo x >.envrc; echo $PI_AGENT_SESSION; sleep 1000; true"], user="alice", cwd=DEMO)
    try:
        assert process.stdout.readline() == b"hello\n"
        session = process.stdout.readline().decode().strip()
        launcher = machine.root(["systemctl", "show", "--property=MainPID", "--value", f"pi-agent-{session}.service"], check=True).stdout.decode().strip()
        machine.root(["kill", "-STOP", launcher], check=True)
        machine.root(["kill", "-TERM", str(process.inside_pid())], check=True)
        status, _, said = finish(process)
        assert status == -signal.SIGTERM
        assert b"the session's first process did not pass the signal on, so all processes of the session are killed" in said
        assert b".envrc" in said, "nothing looks at what it left"
    finally:
        machine.run(["rm", "-f", ".envrc"], cwd=DEMO, check=True)


def test_an_agent_that_stops_its_own_launcher_is_ended_by_a_signal(machine):
    """Where it can: in a PID namespace of its own its launcher is the first process, which it cannot stop (pid_namespaces(7))."""
    process = machine.popen(["pi", "sh", "echo ready; kill -STOP $PPID; exit 4"], user="alice", cwd=DEMO)
    assert process.stdout.readline() == b"ready\n"
    time.sleep(1)
    if process.poll() is None:
        machine.root(["kill", "-TERM", str(process.inside_pid())], check=True)
    status, _, said = finish(process)
    assert (status, said) == (4, b"") or (status == -signal.SIGTERM and b"did not pass the signal on" in said), (status, said)


def test_an_agent_that_catches_a_signal_goes_on(machine):
    process = machine.popen(["pi", "sh", "trap 'echo heard' TERM; trap 'exit 5' USR2; echo ready; while :; do sleep 0.1; done"], user="alice", cwd=DEMO)
    assert process.stdout.readline() == b"ready\n"
    pid = str(process.inside_pid())
    for _ in range(2):
        machine.root(["kill", "-TERM", pid], check=True)
        assert process.stdout.readline() == b"heard\n"
        time.sleep(2.5)
    assert process.poll() is None
    machine.root(["kill", "-USR2", pid], check=True)
    assert finish(process)[0] == 5


def test_a_reader_that_reads_no_messages_holds_nothing_up(machine):
    """Standard error is a pipe that is full; the start has a notice."""
    script = r"""
        import fcntl, os, subprocess, sys
        reading, writing = os.pipe()
        os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ))
        print(subprocess.run(["pi", "--pi-agent-debug", "sh", "true"], stderr=writing, timeout=20).returncode)
    """
    lines = script.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    done = machine.run(["python3", "-c", "\n".join(line[indent:] for line in lines)], cwd=DEMO)
    assert done.stdout.split() == [b"0"], done
    assert len(messages(pi(machine, "--pi-agent-debug", "sh", "true"))) > 0

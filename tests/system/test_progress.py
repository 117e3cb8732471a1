"""What a start that takes long says meanwhile: on a terminal only, and gone before anything else is there."""

import contextlib
import re
import time

import pytest
from launching import DEMO, STATE, finish, messages, pi
from shells import PROMPT, Shell

pytestmark = pytest.mark.usefixtures("playing")

LOCK = f"{STATE}/alice/meta/lock"
SHOWN = b"\r\x1b[K\x1b[?7lpi: "  # an erased line, in which what is too long stays
NOTICE = rb"pi: [^\r\n]*\r\n(?:  [^\r\n]*\r\n)*"  # notices that come once, at the first start on a terminal, and are wrapped there
WAITING = SHOWN + b"waiting for another start of your agent\x1b[?7h"


@contextlib.contextmanager
def held_lock(machine, seconds):
    """Another start of alice's that takes its time: holds the lock on her state."""
    pi(machine, "sh", "true", check=True)
    holder = machine.popen(["flock", LOCK, "sh", "-c", f"echo held; sleep {seconds}"], user="root")
    assert holder.stdout.readline() == b"held\n"
    try:
        yield
    finally:
        holder.kill_all()
        holder.wait()


def test_a_start_that_waits_says_so_and_takes_it_back(machine):
    with Shell(machine) as shell, held_lock(machine, 1.5):
        said, status = shell.run("pi sh 'echo here'")
    assert status == 0
    assert WAITING in said
    assert re.search(rb"agent\x1b\[\?7h\r\x1b\[K(?:" + NOTICE + rb")*[^\r\n]*here\r\n", said), said


@pytest.mark.parametrize("prefix", ["TERM=dumb", "TERM="])
def test_a_terminal_that_cannot_erase_is_left_alone(machine, prefix):
    with Shell(machine) as shell:
        shell.run("pi sh true")  # notices that come once for each repository
        with held_lock(machine, 1.5):
            said, status = shell.run(f"{prefix} pi sh 'echo here'")
    assert (status, said) == (0, b"here\r\n")


def test_nothing_is_said_into_a_pipe_nor_when_it_is_quick(machine):
    with held_lock(machine, 1.5):
        done = pi(machine, "sh", "echo here")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"here\n", b"")
    with Shell(machine) as shell:
        assert b"waiting" not in shell.run("pi sh 'echo here'")[0]


def test_what_ends_the_waiting_stands_on_a_line_of_its_own(machine):
    with Shell(machine) as shell, held_lock(machine, 20):
        said, status = shell.run("pi sh 'echo here'", seconds=30)
    assert status == 75
    assert WAITING in said and b"\r\x1b[K\x1b[1;31mpi:\x1b[0m another start of the agent of alice has been preparing" in said
    assert b"here" not in said


def test_another_users_start_does_not_wait(machine):
    with held_lock(machine, 20):
        done = pi(machine, "sh", "echo here", user="carol", cwd="/srv/devs", timeout=4)
    assert (done.returncode, done.stdout) == (0, b"here\n")


@pytest.mark.parametrize(("key", "status"), [(b"\x03", 130), (b"\x1c", 131)])
def test_an_interrupt_ends_the_waiting_at_once(machine, key, status):
    with Shell(machine) as shell, held_lock(machine, 20):
        shell.enter("pi sh 'echo here'")
        shell.expect("waiting for another start")
        shell.type(key)
        said = shell.expect(re.escape(PROMPT), seconds=3)
        assert b"here" not in said.group(0)
        assert shell.run("echo $?")[0] == f"{status}\r\n".encode()


def test_a_signal_that_asks_for_no_end_waits_for_the_agent(machine):
    with held_lock(machine, 1.5):
        process = machine.popen(["pi", "signals"], user="alice", cwd=DEMO)
        time.sleep(0.7)
        machine.root(["kill", "-USR2", str(process.inside_pid())], check=True)
        time.sleep(1.2)
    status, out, err = finish(process)
    assert (status == -12 or b"SIGUSR2" in out) and err == b"", (status, out, err)


def test_a_pipe_gets_the_refusal_and_once_before_it_what_is_waited_for(machine):
    with held_lock(machine, 20):
        done = pi(machine, "sh", "echo here", keeps_waits=True)
    told, *refusal = messages(done)
    assert re.fullmatch(r"pi: waiting for another start of your agent: two seconds without progress; Ctrl-C or kill \d+ ends pi", told), told
    assert done.returncode == 75 and len(refusal) == 2


def test_a_long_look_at_what_is_left_says_so_and_takes_it_back(machine):
    with Shell(machine) as shell:
        shell.enter("pi sh 'echo here; read x; printf over'")
        shell.expect("here")
        looking = machine.root("pgrep -n -x -u alice pi", check=True).stdout.decode().strip()  # the wrapper's child
        machine.root(["kill", "-STOP", looking], check=True)
        shell.type("\r")
        shell.expect(re.escape(b"over\x1b7\x1b[?7lpi: looking at what this session left\x1b[?7h"))  # behind a line that is not over
        machine.root(["kill", "-CONT", looking], check=True)
        shell.expect(re.escape(b"\x1b8\x1b[K") + rb"[^\r\n]*" + re.escape(PROMPT), seconds=5)

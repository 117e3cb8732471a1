"""The session's terminal: where it lies, who holds its ends, what may be typed into it, and what may follow a request."""

import json
import re

import pytest
from target import Outcome
from test_requests import saying

pytestmark = pytest.mark.position("agent")

# On a new terminal of alice's: a Python agent that looks at its own, and prints what it saw as JSON.
LOOK = """
import fcntl, json, os, termios
seen = {"terminals": sorted(os.listdir("/dev/pts")), "name": os.readlink("/proc/self/fd/0"), "errors": {}}
for path in ("/dev/tty", "/dev/pts/0", "/dev/pts/1", "/dev/pts/2", "/dev/pts/3"):
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NOCTTY))
        seen["errors"][path] = None
    except OSError as failure:
        seen["errors"][path] = failure.errno
try:
    for letter in b"echo typed by the agent >typed\\n":
        fcntl.ioctl(0, termios.TIOCSTI, bytes([letter]))
    seen["typed"] = "done"
except OSError as failure:
    seen["typed"] = failure.errno
print(json.dumps(seen))
"""


def on_terminal(target, script, after="", program="pi python3"):
    """Runs a Python script as the agent (or with another program) on a terminal of alice's, in a shell that then reads what was typed ahead."""
    target.machine.write("/tmp/look.py", script)
    target.machine.root("install -m 644 /tmp/look.py /srv/shared/app/look.py; rm -f /tmp/look.py", check=True)
    shell = f"{program} /srv/shared/app/look.py; {after}"
    done = target.machine.run(["script", "-qec", shell, "/dev/null"], cwd="/srv/shared/app")
    target.machine.root("rm -f /srv/shared/app/look.py", check=True)
    return done.stdout.decode()


def look(target, *how):
    said = on_terminal(target, LOOK, *how)
    found = re.search(r"\{.*\}", said)
    assert found, f"the agent did not look: {said}"
    return json.loads(found.group()), said


def test_the_terminals_of_the_host_are_not_among_the_agents(prove):
    def attack(target):
        seen, _ = look(target)
        return Outcome(seen["terminals"] != ["0", "ptmx"], seen)

    on, _ = prove(attack, "own-devpts")
    assert on.seen["name"].endswith("/0") and on.seen["errors"]["/dev/pts/0"] is None and on.seen["errors"]["/dev/tty"] is None


def test_nothing_is_typed_into_a_terminal(prove):
    def attack(target):
        seen, said = look(target)
        return Outcome(seen["typed"] == "done", (seen, said))

    prove(attack, "seccomp-filter")


def test_what_is_typed_into_the_sessions_terminal_never_reaches_the_users_shell(weak, control_seen):
    """Even without the filter: it is another terminal."""
    read = "read -t 1 line || read -t 1 line; echo line=$line"  # the end of script's own input may come first
    with weak.without("seccomp-filter"):
        seen, said = look(weak, read)
    assert seen["typed"] == "done" and "line=\r\n" in said, said
    seen, said = look(weak, read, "python3")
    assert seen["typed"] == "done" and "line=echo typed by the agent" in said, said
    control_seen("what a program types that is not in a session does reach the shell")


def test_neither_root_nor_the_session_keeps_the_wrappers_end(product, control_seen):
    holders = """
for link in /proc/[0-9]*/fd/*; do case $(readlink $link) in *ptmx|*pts/[0-9]*) echo ${link#/proc/} $(readlink $link);; esac; done
"""
    script = ["python3", "-c", "import os, time; print(os.environ['PI_AGENT_SESSION'], flush=True); time.sleep(1000)"]
    # Standard input on a terminal, so that the session has one; the word that it is ready comes through a pipe.
    terminal = "import pty, subprocess, sys; _, slave = pty.openpty(); subprocess.run(sys.argv[1:], stdin=slave)"
    session = product.session(*script, program=("python3", "-c", terminal, "pi"))
    runner, launcher, agents = [session.runner_pid(), session.receiver_pid()], session.exec_pid(), session.agent_pids()
    found = product.machine.root(holders, check=True).stdout.decode().splitlines()
    held = {pid: {line.split()[1] for line in found if line.startswith(f"{pid}/")} for pid in (*runner, launcher, *agents)}
    session.end()
    assert all(not held[pid] for pid in runner), held
    assert not any("ptmx" in name for names in held.values() for name in names), held
    assert any("/0" in name for name in held[agents[0]]), held
    assert any("ptmx" in line for line in found), found
    control_seen("the same look finds the wrapper's end with the wrapper, and the agent's own with the agent")


FORGED = {"a signal that opens a debugger": 10, "a signal that the kernel takes for the agent": 9, "a signal without a use": 16}


@pytest.mark.position("user")
@pytest.mark.parametrize("kind", FORGED)
def test_a_signal_that_is_not_passed_on_ends_the_session_instead(kind, prove):
    conversation = f"(ask(c, s, ['sleep', '1000']), wait_for_agent('sleep'), send(c, number(SIGNAL) + number({FORGED[kind]}) + number(0)))"
    on, _ = prove(saying(conversation, success=lambda answer: answer["ended"] == -FORGED[kind]), "forwarded-signals")
    assert on.seen["ended"] == -15


BROKEN = {
    "not a message": "send(c, b'x')",
    "a message of the runner's": "send(c, number(STOPPED))",
    "a second request": "send(c, request())",
    "a message that goes on": "send(c, number(CONTINUE) + number(0) + b'x')",
    "a message with a descriptor": "send(c, number(CONTINUE) + number(0), [0])",
    "an empty answer to nothing": "send(c, number(99))",
}


@pytest.mark.position("user")
@pytest.mark.parametrize("kind", BROKEN)
def test_after_the_request_comes_nothing_but_signals_and_words_on_the_terminal(kind, product):
    """Whatever else comes is the wrapper's end, and with it the session's."""
    answer = product.play(f"tell(call(lambda c, s: (ask(c, s, ['sleep', '1000']), wait_for_agent('sleep'), {BROKEN[kind]})))")
    assert answer["ended"] == -15, answer


@pytest.mark.position("user")
def test_words_on_a_terminal_that_was_not_asked_for_change_nothing(product):
    words = "[send(c, number(word) + tail) for word, tail in ((READY, number(0)), (CONTINUE, number(0)), (SIGNAL, number(20) + number(0)), (CONTINUE, number(1)))]"
    answer = product.play(f"tell(call(lambda c, s: (ask(c, s, ['sh', '-c', 'test ! -t 0; echo $?; sleep 1; exit 7']), {words})))")
    assert (answer["ended"], answer["out"]) == (7, "0\n"), answer


@pytest.mark.position("user")
def test_a_wrapper_that_does_not_set_its_terminal_up_gets_no_agent(product):
    patience = "import client; client.PATIENCE = 45\n"
    answer = product.play(
        patience + "tell(call(lambda c, s: send_record(c, request(['true'], terminal=(1, 1, 1)), [os.open(DEMO, os.O_PATH)])))", timeout=60)
    assert answer["ended"] is None and "terminal" in answer["said"], answer

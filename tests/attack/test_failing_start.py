"""Each system call that the runner makes before it knows who calls fails once: it goes on or ends in words. From then on: test_failing_calls.py."""

import os
import random
import re
from itertools import takewhile

import pytest
from points import TRACE, Before
from test_failing_calls import FULL, SEAM

pytestmark = pytest.mark.position("host")

# Each with an error that the kernel has for it, or with what a broken one could say.
CALLS = {
    "close": "EIO", "close_range": "ENOMEM", "connect": "ECONNREFUSED", "dup2": "EBUSY", "dup3": "EBUSY", "fcntl": "EMFILE", "fstat": "EIO",
    "getresuid": "EFAULT", "getsockopt": "ENOMEM", "lseek": "EINVAL", "newfstatat": "EIO", "openat": "EMFILE", "prctl": "EPERM", "read": "EIO",
    "rt_sigaction": "EINVAL", "setgroups": "EPERM", "setresgid": "EAGAIN", "socket": "EMFILE",
}  # fmt: skip
# When standard error is /dev/null already and the caller is not known yet, only the record has the reason; `pi` says that the runner ended and where to look.
RECORDED = {"close_range": b"closing inherited descriptors"}
SAME = {"fstat": "newfstatat"}  # which of them it is, is the C library's choice
FIRST = "prctl(PR_SET_TIMERSLACK"  # what is called earlier is of the loader and of libraries
KNOWN = "/etc/pi-agent/test-wait-at"  # the point `authenticated`
# As root instead of sudo: only the runner is traced.
STARTING = """
strace = ["/usr/bin/strace", "-qq", "-y", "-o", {trace!r}, *{injection!r}, RUNNER]
tell(call(lambda c, s: ask(c, s, ["echo", "ran"]), argv=strace, pair=socket_made_by(1000), env={{"SUDO_UID": "1000"}}))
"""


def start(target, *injection):
    """What its caller was told, and the lines of strace."""
    answer = target.play(STARTING.format(trace=TRACE, injection=injection), user="root")
    return answer, target.machine.read(TRACE).decode(errors="replace").splitlines()


def last_record(target):
    return target.machine.root("journalctl --sync; journalctl -t pi-agent-runner -n 1 -o cat", check=True).stdout


@pytest.fixture(scope="module")
def calls(weak):
    """Of the calls that are made there which those are that are not the seams': [(name, its turn among all of this name)]."""
    answer, lines = start(weak)
    assert (answer["ended"], answer["out"]) == (0, "ran\n"), answer
    found, counts, begun = [], {}, False
    for line in takewhile(lambda line: KNOWN not in line, lines):
        name = re.match(r"\w+", line).group()
        counts[name] = counts.get(name, 0) + 1
        begun = begun or line.startswith(FIRST)
        if begun and not SEAM.search(line.encode()):
            found.append((name, counts[name]))
    assert found and len(found) < len(lines) - 100, "the beginning or the end of it was not found"
    return found


@pytest.mark.position("tests")
def test_every_call_that_is_made_before_the_caller_is_known_fails_below(calls):
    assert {name for name, _ in calls} <= set(CALLS)


@pytest.mark.parametrize("call", [call for call in CALLS if call not in SAME])
def test_a_start_goes_on_or_ends_in_words_though_one_call_fails_before_the_caller_is_known(call, weak, calls, machine_name, control_seen):
    turns = [(name, turn) for name, turn in calls if SAME.get(name, name) == call]
    assert turns, "the runner does not make this call there, so this shows nothing"
    draw = random.Random(f"{os.environ.get('PI_AGENT_SEED', '')} {machine_name} {call}")
    for name, turn in turns if FULL else [draw.choice(turns)]:
        before = Before(weak, "start")
        answer, lines = start(weak, f"--inject={name}:error={CALLS[name]}:when={turn}")
        assert sum("(INJECTED)" in line for line in lines) == 1, (name, turn, answer)
        ran = (answer["status"], answer["ended"], answer["out"]) == (0, 0, "ran\n")
        told = answer["said"] or (name in RECORDED and RECORDED[name] in last_record(weak))
        assert ran or (answer["status"] > 0 and told and not answer["out"]), f"neither an end nor words: {name}, turn {turn}: {answer}"
        before.require_sound()
    control_seen(f"strace made the call fail at {len(turns)} of {len(turns)} turns" if FULL else "strace made the call fail at one turn")

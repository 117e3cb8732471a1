"""Each system call of the runner fails once, by strace's hand, from a named point on: the session runs or ends in words, and nothing is left."""

import os
import random
import signal
import subprocess
import time

import pytest
from points import require_in_words, require_sound, waiting_at

pytestmark = pytest.mark.position("host")

ATTACH_SECONDS = 10
TRACE = "/run/attack-trace"
# Where the failures begin, and the calls that the runner itself makes from there to its end (docs/system-calls.md), each with the errors that
# the kernel has for it. The waiting at the point costs one openat, read and close, so those begin with their second.
FROM = {
    "authenticated": {
        "chdir": "ENOMEM", "clone": "EAGAIN", "close": "EIO", "connect": "ECONNREFUSED", "fchmod": "EIO", "fchown": "EPERM", "flock": "ENOLCK",
        "fsconfig": "EINVAL", "fsmount": "EPERM", "fsopen": "EPERM", "fstatfs": "EIO", "getdents64": "EIO", "keyctl": "EDQUOT", "mkdirat": "ENOSPC",
        "mount_setattr": "EINVAL", "move_mount": "ENOMEM", "newfstatat": "EIO", "open_tree": "EPERM", "openat": "EMFILE", "openat2": "EMFILE",
        "poll": "ENOMEM", "ppoll": "ENOMEM", "prctl": "EPERM", "prlimit64": "EPERM", "read": "EIO", "readlinkat": "EIO", "recvmsg": "ENOMEM",
        "renameat": "EIO", "sendmsg": "ENOBUFS", "sendto": "ENOBUFS", "setpriority": "EPERM", "signalfd4": "EMFILE", "socket": "EMFILE",
        "socketpair": "EMFILE", "statx": "EIO", "symlinkat": "ENOSPC", "unshare": "EPERM", "write": "ENOSPC",
    },
    "start-recorded": {
        "capget": "EFAULT", "capset": "EPERM", "move_mount": "ENOMEM", "newfstatat": "EIO", "openat": "EMFILE", "poll": "ENOMEM", "prctl": "EPERM",
        "read": "EIO", "recvmsg": "ENOMEM", "sendmsg": "ENOBUFS", "setns": "EPERM", "unshare": "EPERM",
    },
    "end-unrecorded": {
        "flock": "ENOLCK", "openat": "EMFILE", "openat2": "EMFILE", "read": "EIO", "sendmsg": "ENOBUFS",
        "sendto": "ENOBUFS", "socket": "EMFILE", "umount2": "EBUSY", "unlinkat": "EIO", "write": "EIO",
    },
}  # fmt: skip
# Made by a thread of the runner's, and by no child.
IN_A_THREAD = ("setns", "unshare", "move_mount")
OFTEN = 12  # of a call that is made often, which one fails: one of so many, drawn for each run
TAKEN_BY_THE_WAIT = {"openat": 1, "read": 1, "close": 1, "newfstatat": 0}
CASES = [(point, call) for point, calls in FROM.items() for call in calls]


def which(point, call):
    """One that is drawn, and the first, for where there are not so many."""
    draw = random.Random(f"{os.environ.get('PI_AGENT_SEED', '')} {point} {call}")
    first = TAKEN_BY_THE_WAIT.get(call, 0) + 1
    return [*([first + draw.randint(1, OFTEN)] if draw.random() < 0.5 else []), first]


def inject(reached, call, error, when):
    """strace at the stopped runner, without its children."""
    command = ["strace", *(["-f"] if call in IN_A_THREAD else []), "-qq", "-o", TRACE, f"--trace={call}", f"--inject={call}:error={error}:when={when}", "-p", str(reached.pid)]
    tracer = reached.machine.popen(command, user="root")
    until = time.monotonic() + ATTACH_SECONDS
    while b"TracerPid:\t0\n" in reached.machine.read(f"/proc/{reached.pid}/status"):
        assert time.monotonic() < until and tracer.poll() is None, f"strace does not trace: {tracer.poll()}"
        time.sleep(0.02)
    return tracer


def run_failing(target, point, call, when):
    """Whether the call was made so often that one failed."""
    with waiting_at(target, point) as reached:
        reached.signal("STOP")
        reached.release()
        tracer = inject(reached, call, FROM[point][call], when)
        reached.signal("CONT")
        try:
            require_in_words(reached.end())
        finally:
            tracer.send_signal(signal.SIGTERM)
            try:
                tracer.communicate(timeout=5)  # it ends with the runner
            except subprocess.TimeoutExpired:
                tracer.kill_all()
                tracer.communicate()
    return b"(INJECTED)" in target.machine.read(TRACE)


@pytest.mark.parametrize(("point", "call"), CASES, ids=[f"{call} from {point}" for point, call in CASES])
def test_a_session_runs_or_ends_in_words_though_one_call_fails(point, call, weak, control_seen):
    traces = weak.quiet_traces()
    for when in which(point, call):
        failed = run_failing(weak, point, call, when)
        require_sound(weak, traces)
        if failed:
            control_seen(f"strace made the call fail, at its turn {when}")
            return
    raise AssertionError(f"the runner does not make this call from {point} on, so this shows nothing")

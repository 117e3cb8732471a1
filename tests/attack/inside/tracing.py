"""Runs as an agent: what a debugger's calls give it of another process, as JSON.

tracing.py WHOM...: "own" (a child), "launcher" (its parent), or the number of a process.
tracing.py after CALL...: what a system call answers that a tracer put instead of another one, after the filters had let that through.
"""

import ctypes
import errno
import json
import os
import signal
import struct
import sys

from probe import in_child, libc, outcome, system_call

TRACEME, PEEKUSER, POKEUSER, CONT, ATTACH, DETACH, SYSCALL, SETOPTIONS, SEIZE = 0, 3, 6, 7, 16, 17, 24, 0x4200, 0x4206
O_TRACESECCOMP, O_SUSPEND_SECCOMP = 0x80, 1 << 21
ORIG_RAX, RAX, RDI, RSI, RDX = (8 * number for number in (15, 10, 14, 13, 12))
PTRACE, GETPPID = 101, 110
# x86-64: number and arguments, of which the kernel itself says something else than EPERM, or does it.
PUT_IN = {
    "unshare": (272, (0x10000000,)),
    "io_uring_setup": (425, (1, 1)),
    "keyctl": (250, (0, -2 & (1 << 64) - 1, 1)),
    "userfaultfd": (323, (0xFF,)),
    "personality": (135, (0x0400000,)),
}
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def traced(request, pid, where=None, data=None):
    ctypes.set_errno(0)
    answer = libc.ptrace(request, pid, where, data)
    if ctypes.get_errno():
        raise OSError(ctypes.get_errno(), f"ptrace {request}")
    return answer


def attach(victim):
    traced(ATTACH, victim)
    os.waitpid(victim, 0x40000000)
    traced(DETACH, victim)
    return "done"


def remote_memory(number, victim):
    """process_vm_readv or _writev of nothing but what is there: the first bytes of its program."""
    with open(f"/proc/{os.getpid()}/maps") as maps:
        start = int(maps.readline().split("-")[0], 16)
    copy = ctypes.create_string_buffer(8)
    here, there = (ctypes.c_long * 2)(ctypes.addressof(copy), 4), (ctypes.c_long * 2)(start, 4)
    answer = outcome(system_call(number, victim, here, 1, there, 1, 0))
    return "done" if answer == "EFAULT" else answer  # it was let in, and has another thing there


def memory_file(victim):
    os.close(os.open(f"/proc/{victim}/mem", os.O_RDWR))
    return "done"


CALLS = {
    "attach": attach,
    "seize": lambda victim: traced(SEIZE, victim) or "done",
    "process_vm_readv": lambda victim: remote_memory(310, victim),
    "process_vm_writev": lambda victim: remote_memory(311, victim),
    "kcmp": lambda victim: outcome(system_call(312, victim, os.getpid(), 0, 0, 0)),
    "/proc/PID/mem": memory_file,
    "pidfd_getfd": lambda victim: outcome(system_call(438, os.pidfd_open(victim), 0, 0)),
}


def on_a_child(call):
    """A tracer that is the parent: also where yama's ptrace_scope is 1."""
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    try:
        return call(child)
    finally:
        os.kill(child, signal.SIGKILL)


def suspended_filters():
    """Asks for what lets a traced process run without its filters."""
    return on_a_child(lambda child: traced(SEIZE, child, None, O_SUSPEND_SECCOMP) or "done")


def wait_for_stop(child):
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        raise OSError(errno.ECHILD, f"the child has ended: {status}")
    return status


def asks_a_tracer():
    """A filter of the child's own, which hands getppid(2) to its tracer: load the number, compare, RET_TRACE or ALLOW."""
    program = struct.pack("<" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, GETPPID, 0x06, 0, 0, 0x7FF00000, 0x06, 0, 0, 0x7FFF0000)
    code = ctypes.create_string_buffer(program)
    head = struct.pack("<H6xQ", 4, ctypes.addressof(code))
    libc.prctl(38, 1, 0, 0, 0)
    return libc.prctl(22, 2, ctypes.create_string_buffer(head), 0, 0)


def put_in(name, by_filter):
    """The child asks for getppid; at its entry the tracer makes another call of it."""
    number, arguments = PUT_IN[name]
    child = os.fork()
    if child == 0:
        try:
            traced(TRACEME, 0)
            if not by_filter or asks_a_tracer() == 0:
                os.kill(os.getpid(), signal.SIGSTOP)
                system_call(GETPPID)
        finally:
            os._exit(0)
    try:
        wait_for_stop(child)
        traced(SETOPTIONS, child, None, O_TRACESECCOMP)
        while True:
            traced(CONT if by_filter else SYSCALL, child)
            wait_for_stop(child)
            if traced(PEEKUSER, child, ORIG_RAX) == GETPPID:
                break
        traced(POKEUSER, child, ORIG_RAX, number)
        for register, value in zip((RDI, RSI, RDX), arguments, strict=False):
            traced(POKEUSER, child, register, value)
        traced(SYSCALL, child)
        wait_for_stop(child)
        if by_filter:  # the first stop may be the one at the entry
            answer = ctypes.c_long(traced(PEEKUSER, child, RAX)).value
            if answer == -errno.ENOSYS:
                traced(SYSCALL, child)
                wait_for_stop(child)
        answer = ctypes.c_long(traced(PEEKUSER, child, RAX)).value
    finally:
        os.kill(child, signal.SIGKILL)
    return errno.errorcode[-answer] if -4096 < answer < 0 else "done"


def look(whom):
    victim = os.getppid() if whom == "launcher" else None if whom == "own" else int(whom)
    if victim is None:
        answers = {name: in_child(lambda call=call: on_a_child(call)) for name, call in CALLS.items()}
        answers["TRACEME"] = in_child(lambda: traced(TRACEME, 0) or "done")
        answers["suspended filters"] = in_child(suspended_filters)
        return answers
    return {name: in_child(lambda call=call: call(victim)) for name, call in CALLS.items()}


if __name__ == "__main__":
    if sys.argv[1] == "after":
        found = {name: {way: in_child(lambda n=name, w=way: put_in(n, w == "filter")) for way in ("entry", "filter")} for name in sys.argv[2:]}
    else:
        found = {whom: look(whom) for whom in sys.argv[1:]}
    print(json.dumps(found))

"""Runs in the machine as root: makes another process (x86-64) make one system call, as code that took it over would, and tells its errno."""

import ctypes
import errno
import json
import os
import signal
import struct
import sys

ATTACH, DETACH, GETREGS, SETREGS, SINGLESTEP = 16, 17, 12, 13, 9
REGISTERS = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs".split()
ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
SYSCALL = b"\x0f\x05"
BELOW_THE_STACK = 16384

ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p]

# Linux, arch/x86/entry/syscalls/syscall_64.tbl. A string is an address of it, a list one of addresses.
CALLS = {
    "execve": (59, ["/usr/bin/touch", ["/usr/bin/touch", "/run/attack-injected"], 0]),
    "mount": (165, ["attack", "/mnt", "tmpfs", 0, 0]),
    "unshare": (272, [0x00020000]),  # CLONE_NEWNS
    "chroot": (161, ["/"]),
    "mknod": (133, ["/run/attack-injected", 0o020600, 0x103]),
    "ptrace": (101, [0x4206, 1, 0, 0]),  # PTRACE_SEIZE of PID 1
    "raw socket": (41, [2, 3, 1]),  # AF_INET, SOCK_RAW, IPPROTO_ICMP
    "setpriority": (141, [0, 0, -5 & (1 << 64) - 1]),  # of itself, to go before all others
    "sethostname": (170, ["attacked", 8]),
}


def traced(request, pid, data=None):
    if ptrace(request, pid, None, data) == -1:
        raise OSError(ctypes.get_errno(), f"ptrace {request}")


def wait_for_stop(pid):
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        raise SystemExit(f"the process is gone: {status}")


class Memory:
    """Room below the stack of a stopped process."""

    def __init__(self, pid, stack):
        self.file = open(f"/proc/{pid}/mem", "r+b", buffering=0)
        self.next = (stack - BELOW_THE_STACK) & ~15

    def put(self, value):
        if isinstance(value, int):
            return value
        if isinstance(value, list):
            addresses = [self.put(entry) for entry in value]
            return self.write(struct.pack(f"<{len(addresses) + 1}Q", *addresses, 0))
        return self.write(value.encode() + b"\0")

    def write(self, data):
        address = self.next
        self.file.seek(address)
        self.file.write(data)
        self.next = (address + len(data) + 15) & ~15
        return address

    def read(self, address, length):
        self.file.seek(address)
        return self.file.read(length)


def make(pid, name):
    number, arguments = CALLS[name]
    traced(ATTACH, pid)
    wait_for_stop(pid)
    block = (ctypes.c_ulonglong * len(REGISTERS))()
    traced(GETREGS, pid, ctypes.byref(block))
    before = dict(zip(REGISTERS, block))
    memory = Memory(pid, before["rsp"])
    if memory.read(before["rip"] - 2, 2) != SYSCALL:
        raise SystemExit("the process is not in a system call")
    during = {**before, "rip": before["rip"] - 2, "rax": number, "orig_rax": (1 << 64) - 1}
    during |= {register: memory.put(value) for register, value in zip(ARGUMENTS, arguments)}
    traced(SETREGS, pid, ctypes.byref((ctypes.c_ulonglong * len(REGISTERS))(*during.values())))
    traced(SINGLESTEP, pid)
    wait_for_stop(pid)
    traced(GETREGS, pid, ctypes.byref(block))
    result = ctypes.c_longlong(dict(zip(REGISTERS, block))["rax"]).value
    if name != "execve" or result != 0:
        traced(SETREGS, pid, ctypes.byref((ctypes.c_ulonglong * len(REGISTERS))(*before.values())))
    traced(DETACH, pid)
    return errno.errorcode[-result] if result < 0 else "done"


if __name__ == "__main__":
    signal.alarm(20)
    print(json.dumps(make(int(sys.argv[1]), sys.argv[2])))

"""Runs inside a session as the agent: tries what an agent should not be able to do, and prints {probe: result} as JSON.

A result of a system call is "done" or the name of its errno. Where the kernel would refuse for lack of privilege anyway,
the arguments are invalid in a way that the kernel looks at first: EPERM is then the filter's word, EFAULT or EINVAL the kernel's.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import pty
import signal
import socket
import struct
import sys
import termios

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
BAD = 1  # an address that can never be read
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
F_SETLEASE, F_SETDELEG = 1024, 1040
F_RDLCK, F_WRLCK = 0, 1
PROCESS_KEYRING = -2


def system_call(number, *arguments):
    ctypes.set_errno(0)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    return libc.syscall(ctypes.c_long(number), *words)


def outcome(result):
    return "done" if result != -1 else errno.errorcode[ctypes.get_errno()]


def in_child(function):
    """What function() returns in a process of its own; some probes end theirs."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = function()
        except OSError as failure:
            said = errno.errorcode.get(failure.errno, str(failure))
        except BaseException as failure:  # whatever it is, it must be seen
            said = repr(failure)
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return json.loads(said)


def buffer_of(size):
    return ctypes.create_string_buffer(size)


def own_memory(number):
    data, copy = ctypes.create_string_buffer(b"data"), buffer_of(5)
    local, remote = (ctypes.c_long * 2)(ctypes.addressof(copy), 4), (ctypes.c_long * 2)(ctypes.addressof(data), 4)
    return system_call(number, os.getpid(), local, 1, remote, 1, 0)


def file_handle():
    handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0) + bytes(128))
    return system_call(303, AT_FDCWD, b"/tmp", handle, ctypes.byref(ctypes.c_int()), 0)


# name: what makes the call. The numbers are those of x86-64; the machine's C library does not know all names.
CALLS = {
    "io_uring_setup": lambda: system_call(425, 8, buffer_of(120)),
    "io_uring_enter": lambda: system_call(426, -1, 0, 0, 0, None, 0),
    "io_uring_register": lambda: system_call(427, -1, 0, None, 0),
    "userfaultfd": lambda: system_call(323, 1),
    "process_vm_readv": lambda: own_memory(310),
    "process_vm_writev": lambda: own_memory(311),
    "kcmp": lambda: system_call(312, os.getpid(), os.getpid(), 0, 0, 0),
    "pidfd_getfd": lambda: system_call(438, os.pidfd_open(os.getpid()), 0, 0),
    "ptrace": lambda: system_call(101, 0, 0, None, None),
    "add_key": lambda: system_call(248, b"user", b"probe", b"x", 1, PROCESS_KEYRING),
    "request_key": lambda: system_call(249, b"user", b"probe", None, 0),
    "keyctl": lambda: system_call(250, 0, PROCESS_KEYRING, 1),
    "name_to_handle_at": file_handle,
    "open_by_handle_at": lambda: system_call(304, AT_FDCWD, BAD, 0),
    "bpf": lambda: system_call(321, 0, None, 1 << 20),
    "perf_event_open": lambda: system_call(298, BAD, 0, -1, -1, -1),
    "mount": lambda: system_call(165, None, b"/tmp", BAD, 0, None),
    "umount2": lambda: system_call(166, b"/tmp", 0xFFFF),
    "open_tree": lambda: system_call(428, AT_FDCWD, b"/tmp", 0),
    "unshare": lambda: system_call(272, CLONE_NEWUSER),
    "clone into a user namespace": lambda: clone_process(CLONE_NEWUSER),
    "setns": lambda: system_call(308, -1, 0),
    "settimeofday": lambda: system_call(164, BAD, None),
    "clock_settime": lambda: system_call(227, 0, BAD),
    "clock_adjtime": lambda: system_call(305, 0, BAD),
    "adjtimex": lambda: system_call(159, BAD),
    "quotactl": lambda: system_call(179, 0xFF, None, 0, None),
    "personality": lambda: system_call(135, 0x0400000),
    "real-time scheduling": lambda: system_call(144, 0, 1, (ctypes.c_int * 1)(1000)),
    "openat2": lambda: system_call(437, AT_FDCWD, b"/", (ctypes.c_uint64 * 3)(os.O_PATH, 0, 0), 24),
    "clone3": lambda: system_call(435, None, 0),
    # Those that the kernel refuses first to whoever has no capability.
    "reboot": lambda: system_call(169, 0, 0, 0, None),
    "init_module": lambda: system_call(175, BAD, 1, BAD),
    "finit_module": lambda: system_call(313, -1, BAD, 0),
    "delete_module": lambda: system_call(176, BAD, 0),
    "kexec_load": lambda: system_call(246, 0, 0, None, -1),
    "acct": lambda: system_call(163, BAD),
    "swapon": lambda: system_call(167, BAD, 0),
    "swapoff": lambda: system_call(168, BAD),
    "sethostname": lambda: system_call(170, None, -1),
    "setdomainname": lambda: system_call(171, None, -1),
    "chroot": lambda: system_call(161, b"/"),
    "pivot_root": lambda: system_call(155, BAD, BAD),
    "fsopen": lambda: system_call(430, BAD, 0),
    "fsmount": lambda: system_call(432, -1, 0, 0),
    "move_mount": lambda: system_call(429, -1, BAD, -1, BAD, 0),
    "mount_setattr": lambda: system_call(442, AT_FDCWD, b"/", -1, None, 0),
    "kernel log": lambda: system_call(103, 3, None, -1),
    "ioperm": lambda: system_call(173, 0, 1, 1),
    "iopl": lambda: system_call(172, 3),
    "mknod of a device": lambda: device_node(),
}


def device_node():
    """What has the numbers of /dev/zero."""
    path = f"/tmp/.node-{os.getpid()}".encode()
    made = system_call(133, path, 0o020600, os.makedev(1, 5))
    if made == 0:
        os.unlink(path)
    return made


def clone_process(flags):
    child = system_call(56, flags | signal.SIGCHLD, None, None, None, None)
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
    return child


def socket_family(name, kind=socket.SOCK_RAW):
    def attempt():
        socket.socket(getattr(socket, name), kind, 0).close()
        return "done"

    return attempt


SOCKETS = {
    "netlink for routes": lambda: outcome(system_call(41, 16, socket.SOCK_RAW, 0)),
    "netlink for sockets": lambda: outcome(system_call(41, 16, socket.SOCK_RAW, 4)),
    "netlink for uevents": lambda: outcome(system_call(41, 16, socket.SOCK_RAW, 15)),
    "netlink for families": lambda: outcome(system_call(41, 16, socket.SOCK_RAW, 16)),
    "netlink for uevents with high bits": lambda: outcome(system_call(41, 1 << 32 | 16, socket.SOCK_RAW, 1 << 32 | 15)),
    "socketpair of netlink": lambda: outcome(system_call(53, 16, socket.SOCK_RAW, 0, (ctypes.c_int * 2)())),
    "socketpair of inet": lambda: outcome(system_call(53, 2, socket.SOCK_STREAM, 0, (ctypes.c_int * 2)())),
    "socketpair of inet with high bits": lambda: outcome(system_call(53, 1 << 32 | 2, socket.SOCK_STREAM, 0, (ctypes.c_int * 2)())),
    "socketpair of AF_PACKET": lambda: outcome(system_call(53, 17, socket.SOCK_RAW, 0, (ctypes.c_int * 2)())),
    "AF_PACKET": socket_family("AF_PACKET"),
    "AF_VSOCK": socket_family("AF_VSOCK", socket.SOCK_STREAM),
    "AF_ALG": socket_family("AF_ALG", socket.SOCK_SEQPACKET),
    "AF_KEY": socket_family("AF_KEY"),
}


def machine_code(code):
    """Runs machine code that returns a number in eax."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    return "done" if result > 0 else errno.errorcode[-result]


def as_32_bit():
    return machine_code(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3")  # push rbx; mov eax, getpid; int 0x80; pop rbx; ret


def as_x32():
    return outcome(system_call(0x40000000 | 39))


def type_into_terminal(request):
    """Pushes a character into a terminal of the agent's own; `request` may carry bits that the kernel ignores."""

    def attempt():
        _, terminal = pty.openpty()
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        return outcome(system_call(16, terminal, request, ctypes.c_char_p(b"x")))

    return attempt


def status_field(name):
    def read():
        with open("/proc/self/status") as status:
            return next(line.split(":", 1)[1].strip() for line in status if line.startswith(name + ":"))

    return read


STATUS = {name: status_field(name) for name in
          ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Groups", "Uid", "Gid")}  # fmt: skip


def listing(path):
    try:
        return sorted(os.listdir(path))
    except OSError as failure:
        return errno.errorcode[failure.errno]


def can_create_in(directory):
    """True when a file can be made there; it is removed again."""
    path = os.path.join(directory, f".probe-{os.getpid()}")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(path)
        return True
    except OSError:
        return False


def can_write_to(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY))
        return True
    except OSError:
        return False


def writable_outside(allowed):
    """Every directory, file and device that can be written; directories of `allowed` are told, but not looked into."""
    found = []
    for directory, subdirectories, files in os.walk("/"):
        if directory == "/proc":
            # Processes are probed on their own; what is left are the kernel's switches.
            subdirectories[:] = [name for name in subdirectories if not name.isdigit() and name not in ("self", "thread-self")]
        if can_create_in(directory):
            found.append(directory)
        if directory in allowed:
            subdirectories.clear()
            continue
        found += [path for name in files if can_write_to(path := os.path.join(directory, name))]
    return sorted(found)


def mode_bits(make):
    """Tells whether make(directory) left something with a setuid or setgid bit in the working directory."""

    def attempt():
        os.umask(0)
        name = f".bits-{os.getpid()}"
        try:
            make(name.encode())
            mode = os.lstat(name).st_mode
            return "done" if mode & 0o6000 else f"mode {mode & 0o7777:o}"
        except FileNotFoundError:
            return errno.errorcode[ctypes.get_errno()]
        finally:
            if os.path.isdir(name):
                os.rmdir(name)
            elif os.path.lexists(name):
                os.unlink(name)

    return attempt


def existing(name, mode=0o600):
    return os.open(name, os.O_CREAT | os.O_RDWR, mode)


def temporary_file(name, mode):
    fd = system_call(257, AT_FDCWD, b".", os.O_TMPFILE | os.O_RDWR, mode)
    if fd >= 0:
        system_call(265, AT_FDCWD, f"/proc/self/fd/{fd}".encode(), AT_FDCWD, name, 0x400)


def by_openat2(name, mode):
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, mode, 0)
    system_call(437, AT_FDCWD, name, how, 24)


S_IFREG, S_IFIFO = 0o100000, 0o010000
BIT_CALLS = {
    "chmod": lambda name, mode: (existing(name), system_call(90, name, mode)),
    "fchmod": lambda name, mode: system_call(91, existing(name), mode),
    "fchmodat": lambda name, mode: (existing(name), system_call(268, AT_FDCWD, name, mode)),
    "fchmodat2": lambda name, mode: (existing(name), system_call(452, AT_FDCWD, name, mode, 0)),
    "chmod through /proc": lambda name, mode: system_call(90, f"/proc/self/fd/{existing(name)}".encode(), mode),
    "open": lambda name, mode: system_call(2, name, os.O_CREAT | os.O_WRONLY, mode),
    "open with high flag bits": lambda name, mode: system_call(2, name, 1 << 32 | os.O_CREAT | os.O_WRONLY, mode),
    "openat": lambda name, mode: system_call(257, AT_FDCWD, name, os.O_CREAT | os.O_WRONLY, mode),
    "openat with high mode bits": lambda name, mode: system_call(257, AT_FDCWD, name, os.O_CREAT | os.O_WRONLY, 1 << 32 | mode),
    "openat of a nameless file": temporary_file,
    "openat2": by_openat2,
    "creat": lambda name, mode: system_call(85, name, mode),
    "mkdir": lambda name, mode: system_call(83, name, mode),
    "mkdirat": lambda name, mode: system_call(258, AT_FDCWD, name, mode),
    "mknod": lambda name, mode: system_call(133, name, S_IFREG | mode, 0),
    "mknodat": lambda name, mode: system_call(259, AT_FDCWD, name, S_IFIFO | mode, 0),
}
BITS = {
    f"{word} by {call}": mode_bits(lambda name, make=make, bit=bit: make(name, bit | 0o755))
    for call, make in BIT_CALLS.items()
    for word, bit in (("setuid", 0o4000), ("setgid", 0o2000))
}


def launcher(what):
    """Reads something of pi-agent-exec, the agent's parent, which has the same uid."""

    def attempt():
        # This probe runs in a child of a child of the agent's own process: the launcher is the first that is not python or sh.
        pid = os.getpid()
        while open(f"/proc/{pid}/comm").read().strip() != "pi-agent-exec":
            pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        path = f"/proc/{pid}/{what}"
        if what == "mem":
            os.close(os.open(path, os.O_RDWR))
        elif what in ("fd", "map_files"):
            os.listdir(path)
        elif what in ("root", "cwd"):
            os.stat(path + "/.")
        elif what == "ptrace":
            return outcome(system_call(101, 0x4206, pid, None, None))
        else:
            os.close(os.open(path, os.O_RDONLY))
        return "done"

    return attempt


LAUNCHER = {f"launcher's {what}": launcher(what) for what in ("mem", "environ", "fd", "map_files", "root", "cwd", "auxv", "ptrace")}


def connect(address, kind=socket.SOCK_STREAM):
    def attempt():
        with socket.socket(socket.AF_UNIX, kind) as channel:
            channel.connect(address)
        return "done"

    return attempt


SERVICES = {
    "system bus": connect("/run/dbus/system_bus_socket"),
    "systemd's private bus": connect("/run/systemd/private"),
    "systemd's notify socket": connect("/run/systemd/notify", socket.SOCK_DGRAM),
    "journal": connect("/run/systemd/journal/stdout"),
    "journal's datagrams": connect("/run/systemd/journal/socket", socket.SOCK_DGRAM),
    "syslog": connect("/dev/log", socket.SOCK_DGRAM),
    "user database": connect("/run/systemd/userdb/io.systemd.DynamicUser"),
}


def lease(command, kind):
    """Of a file that was just made, which nobody else has open."""

    def attempt():
        path = f"/tmp/.leased-{os.getpid()}"
        descriptor = os.open(path, os.O_CREAT | (os.O_RDWR if kind == F_WRLCK else os.O_RDONLY), 0o600)
        os.unlink(path)
        return outcome(system_call(72, descriptor, command, kind))

    return attempt


def run_setuid_program():
    done = os.popen("/usr/local/lib/attack/setuid-id -u; /usr/local/lib/attack/setuid-id -g").read().split()
    return "done" if "0" in done else f"uid and gid {done}"


OTHERS = {
    "32-bit call": as_32_bit,
    "x32 call": as_x32,
    "TIOCSTI": type_into_terminal(TIOCSTI),
    "TIOCSTI with high bits": type_into_terminal(0xDEAD << 32 | TIOCSTI),
    "TIOCLINUX": type_into_terminal(TIOCLINUX),
    "btrfs snapshot": lambda: outcome(system_call(16, os.open("/", os.O_RDONLY), 0x50009401, bytes(4096))),
    "btrfs snapshot with flags": lambda: outcome(system_call(16, os.open("/", os.O_RDONLY), 0x50009417, bytes(4096))),
    "write lease": lease(F_SETLEASE, F_WRLCK),
    "read lease": lease(F_SETLEASE, F_RDLCK),
    "lease with high bits": lease(0xDEAD << 32 | F_SETLEASE, F_WRLCK),
    "delegation": lease(F_SETDELEG, BAD),
    "setuid program": run_setuid_program,
    "homes": lambda: {path: listing(path) for path in ("/home", "/home/alice", "/root", "/run/user", "/home/bob", "/home/eve")},
    "places of the host": lambda: {path: listing(path) for path in ("/srv", "/mnt", "/media", "/run", "/var", "/var/lib", "/boot")},
    "writable": lambda: writable_outside(
        {os.getcwd(), os.environ["HOME"], "/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", *os.environ.get("PROBE_SKIP", "").split()}
    ),
}
PROBES = {
    **{name: (lambda call=call: outcome(call())) for name, call in CALLS.items()},
    **SOCKETS, **STATUS, **BITS, **LAUNCHER, **SERVICES, **OTHERS,
}  # fmt: skip


if __name__ == "__main__":
    wanted = sys.argv[1:] or list(PROBES)
    print(json.dumps({name: in_child(PROBES[name]) for name in wanted}))

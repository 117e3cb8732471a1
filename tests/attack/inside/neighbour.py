"""Runs in a second session: everything it tries on the session of victim.py, whose pid is the first argument, as JSON."""

import ctypes
import errno
import json
import os
import signal
import socket
import sys

from probe import in_child, outcome, system_call
from victim import KEY, SECRET, libc, librt

VICTIM = int(sys.argv[1])


def reading(path):
    def attempt():
        with open(path, "rb") as file:
            return "done" if SECRET.encode() in file.read(1 << 16) else "read something else"

    return attempt


def listing(path):
    def attempt():
        os.listdir(path)
        return "done"

    return attempt


def writing(path):
    def attempt():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        os.unlink(path)
        return "done"

    return attempt


def memory():
    with open(f"/proc/{VICTIM}/maps") as maps:
        start = int(maps.readline().split("-")[0], 16)
    with open(f"/proc/{VICTIM}/mem", "rb", buffering=0) as file:
        file.seek(start)
        return "done" if file.read(4) == b"\x7fELF" else "read something else"


def traced():
    answer = outcome(system_call(101, 0x4206, VICTIM, None, None))
    system_call(101, 17, VICTIM, None, None)
    return answer


def signalled():
    os.kill(VICTIM, 0)
    return "done"


def signalled_by_descriptor():
    signal.pidfd_send_signal(os.pidfd_open(VICTIM), 0)
    return "done"


def limited():
    return outcome(system_call(302, VICTIM, 4, (ctypes.c_uint64 * 2)(), None))  # prlimit64 of RLIMIT_CORE; to read is nobody's harm


def stolen_descriptor():
    return outcome(system_call(438, os.pidfd_open(VICTIM), 0, 0))


def connected():
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect("\0victim")
    return "done"


def found(result):
    return "done" if result != -1 else errno.errorcode[ctypes.get_errno()]


STATE = "/var/lib/pi-agent/users/alice/home"
ATTEMPTS = {
    "its /proc entry": listing(f"/proc/{VICTIM}"),
    "its command line": lambda: "done" if os.path.getsize(f"/proc/{VICTIM}/cmdline") == 0 and open(f"/proc/{VICTIM}/cmdline").read() else "empty",
    "its environment": reading(f"/proc/{VICTIM}/environ"),
    "its memory": memory,
    "its descriptors": listing(f"/proc/{VICTIM}/fd"),
    "its root": listing(f"/proc/{VICTIM}/root/"),
    "its working directory": listing(f"/proc/{VICTIM}/cwd/"),
    "its project through its root": writing(f"/proc/{VICTIM}/root/home/alice/projects/demo/from-neighbour"),
    "its state through its root": listing(f"/proc/{VICTIM}/root{STATE}"),
    "its namespaces": lambda: os.close(os.open(f"/proc/{VICTIM}/ns/mnt", os.O_RDONLY)) or "done",
    "tracing it": traced,
    "a descriptor of it": stolen_descriptor,
    "its limits": limited,
    "a signal": signalled,
    "a signal by descriptor": signalled_by_descriptor,
    "its abstract socket": connected,
    "its file in /tmp": reading("/tmp/victim"),
    "its file in /var/tmp": reading("/var/tmp/victim"),
    "its file in /dev/shm": reading("/dev/shm/victim"),
    "its shared memory": lambda: found(libc.shmget(KEY, 0, 0)),
    "its System V queue": lambda: found(libc.msgget(KEY, 0)),
    "its semaphores": lambda: found(libc.semget(KEY, 0, 0)),
    "its POSIX queue": lambda: found(librt.mq_open(b"/victim", os.O_RDWR)),
    "its user's state by its path": listing(f"{STATE}/.pi"),
    "its session's directory": listing("/run/pi-agent/sessions"),
}

if __name__ == "__main__":
    print(json.dumps({name: in_child(attempt) for name, attempt in ATTEMPTS.items()}))

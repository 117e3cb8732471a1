"""A session that has something to steal: prints its session, its pid and the names of its things, and stays."""

import ctypes
import os
import signal
import socket
import sys

SECRET = "wombat-secret-5590"
IPC_CREAT, KEY = 0o1000, 0x5EC2E7
libc = ctypes.CDLL(None, use_errno=True)
librt = ctypes.CDLL("librt.so.1", use_errno=True)


def files():
    for path in ("/tmp/victim", "/var/tmp/victim", "/dev/shm/victim"):
        try:
            with open(path, "w") as file:
                file.write(SECRET)
            os.chmod(path, 0o666)
        except OSError:
            pass


def interprocess_communication():
    libc.shmget(KEY, 4096, IPC_CREAT | 0o666)
    libc.msgget(KEY, IPC_CREAT | 0o666)
    libc.semget(KEY, 1, IPC_CREAT | 0o666)
    librt.mq_open(b"/victim", os.O_CREAT | os.O_RDWR, ctypes.c_uint(0o666), None)


def main():
    os.environ["SECRET"] = SECRET
    if "again" not in sys.argv:
        os.execv(sys.executable, [sys.executable, *sys.argv, "again"])  # so that /proc shows it
    os.umask(0)
    files()
    interprocess_communication()
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0victim")
    abstract.listen()
    print(os.environ["PI_AGENT_SESSION"], os.getpid(), flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()

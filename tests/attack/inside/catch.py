"""Runs as an agent: catches a process of its own account that is none of its session, and does something to it.

catch.py ACTION NAME AGE: the first of this name that has lived for AGE seconds. Says PI_AGENT_SESSION, and when it has caught one a line
of JSON.
"""

import ctypes
import json
import os
import signal
import sys
import time

SECONDS = 30
libc = ctypes.CDLL(None, use_errno=True)
action, name, age = sys.argv[1], sys.argv[2], float(sys.argv[3])


def of_this_name():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                status = dict(line.split(":", 1) for line in file)
        except OSError:
            continue
        if status["Name"].strip() == name and int(status["Uid"].split()[0]) == os.getuid() and "Z" not in status["State"]:
            yield int(pid)


def caught():
    since = {}
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        now = time.monotonic()
        since = {pid: since.get(pid, now) for pid in of_this_name()}
        for pid, first in since.items():
            if now - first >= age:
                return pid
    return None


def pry(victim):
    """What it gives away to this process."""
    got = []
    for what in ("mem", "environ", "fd", "root", "maps", "exe"):
        path = f"/proc/{victim}/{what}"
        try:
            os.listdir(path) if what in ("fd", "root") else os.readlink(path) if what == "exe" else os.close(os.open(path, os.O_RDONLY))
            got.append(what)
        except OSError:
            pass
    if libc.ptrace(0x4206, victim, None, None) == 0:
        got.append("ptrace")
        libc.ptrace(17, victim, None, None)
    try:
        if libc.syscall(438, os.pidfd_open(victim), 0, 0) >= 0:
            got.append("pidfd_getfd")
    except OSError:
        pass
    return got


print(os.environ["PI_AGENT_SESSION"], flush=True)
victim = caught()
answer = {"victim": victim, "got": []}
if victim is not None:
    try:
        os.kill(victim, signal.SIGSTOP)
        if action == "pry":
            answer["got"] = pry(victim)
            os.kill(victim, signal.SIGCONT)
    except OSError as error:
        answer["refused"] = os.strerror(error.errno)
print(json.dumps(answer), flush=True)
time.sleep(60)

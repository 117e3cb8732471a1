"""Runs in the machine, as the user or as the agent: does each task that a line of input names, and prints as JSON how many milliseconds it
took by the clock, and of processors.
"""

import json
import mmap
import os
import resource
import subprocess
import sys
import time

PIECE = 1 << 20


def processor_time():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def run(command, directory):
    began = time.monotonic()
    done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    took = time.monotonic() - began
    if done.returncode != 0 or done.stdout or done.stderr:
        raise RuntimeError(f"status {done.returncode}: {done.stdout[:300]!r} {done.stderr[:300]!r}")
    return took


# Begins with a page. Where in a page a buffer begins says how fast the kernel copies it, and for a process that stays this would be one draw
# for all its turns: 13 % of a write's processor time, once.
buffer = mmap.mmap(-1, PIECE)


def write(path, mib):
    buffer[:] = os.urandom(PIECE)
    began = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for _ in range(mib):
            file.write(buffer)
        os.fsync(file.fileno())
    return time.monotonic() - began


def read(path, mib):
    """From the disk: what was written is synced, so the kernel gives up its pages."""
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.monotonic()
        total = 0
        while count := file.readinto(buffer):
            total += count
        took = time.monotonic() - began
    if total != mib * PIECE:
        raise RuntimeError(f"{total} bytes instead of {mib} MiB")
    return took


def do(task):
    if "anew" in task:
        place = os.path.join(task["in"], f"anew-{time.monotonic_ns()}")
        subprocess.run(["cp", "-a", task["anew"], place], check=True)
        return run(task["run"], place)
    if "run" in task:
        return run(task["run"], task["in"])
    action, name = ("write", task["write"]) if "write" in task else ("read", task["read"])
    return {"write": write, "read": read}[action](os.path.join(task["in"], name), task["mib"])


for line in sys.stdin:
    try:
        used = processor_time()
        took = do(json.loads(line))
        answer = {"clock": took * 1000, "cpu": (processor_time() - used) * 1000}
    except (OSError, RuntimeError) as failure:
        answer = str(failure)
    print(json.dumps(answer), flush=True)

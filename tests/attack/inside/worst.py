"""Runs as an agent: does what it can against its end. Arguments: what more, "its-launcher" or "its-end"."""

import os
import signal
import sys
import time

for number in range(1, signal.NSIG):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):  # KILL, STOP and those that the C library keeps
        pass
main, launcher = os.getpid(), os.getppid()
ready_to_read, ready = os.pipe()
for _ in range(3):  # deaf, and in sessions of their own
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(ready, b"x")
            while True:
                time.sleep(600)
        os._exit(0)
    os.read(ready_to_read, 1)
if os.fork() == 0:  # stops it and lets it go on, and each time root hears of it
    os.setsid()
    until = time.monotonic() + 3 if "its-end" in sys.argv else float("inf")
    os.write(ready, b"x")
    while time.monotonic() < until:
        os.kill(main, signal.SIGSTOP)
        time.sleep(0.002)
        os.kill(main, signal.SIGCONT)
        time.sleep(0.002)
    os.kill(main, signal.SIGKILL)
    os._exit(0)
os.read(ready_to_read, 1)
if "its-launcher" in sys.argv:
    os.kill(launcher, signal.SIGSTOP)
os.write(1, f"{os.environ['PI_AGENT_SESSION']} {main}\n".encode())
while True:
    time.sleep(600)

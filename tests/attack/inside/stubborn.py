"""An agent that does not want to end: it and a grandchild in a session of its own ignore every signal that can be ignored."""

import os
import signal
import time

for number in range(1, signal.NSIG):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):  # KILL, STOP and those that the C library keeps
        pass
ready_to_read, ready = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(ready, b"x")
        time.sleep(600)
    os._exit(0)
os.wait()
os.read(ready_to_read, 1)
with open("/tmp/held", "w") as held:
    print(os.environ["PI_AGENT_SESSION"], os.getpid(), flush=True)
    time.sleep(600)

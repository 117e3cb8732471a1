"""Progress lines with elapsed seconds, and quiet commands whose output is shown only when they fail."""

import os
import subprocess
import sys
import time

# Scripts that call each other share one clock.
START = float(os.environ.setdefault("PI_AGENT_TEST_START", str(time.time())))


class CommandFailed(Exception):
    pass


def say(message):
    print(f"[{time.time() - START:5.0f} s] {message}", file=sys.stderr, flush=True)


def quietly(argv, log, shown_as=None, **options):
    """Runs argv with its output in the file `log`; a failure names the command and carries the last lines of it."""
    with open(log, "ab") as output:
        status = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **options).returncode
    if status == 0:
        return
    with open(log, "rb") as output:
        tail = b"\n".join(output.read().splitlines()[-60:]).decode(errors="replace")
    command = " ".join(str(word) for word in shown_as or argv)
    raise CommandFailed(f"status {status} from: {command}\n{tail}\n(whole output: {log})")

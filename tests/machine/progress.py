"""Progress lines with elapsed seconds, and quiet commands whose output is shown only when they fail."""

import os
import subprocess
import sys
import time

HEARTBEAT_SECONDS = 20
# Scripts that call each other share one clock.
START = float(os.environ.setdefault("PI_AGENT_TEST_START", str(time.time())))


class CommandFailed(Exception):
    pass


def say(message):
    print(f"[{time.time() - START:5.0f} s] {message}", file=sys.stderr, flush=True)


def quietly(argv, log, shown_as=None, **options):
    """Runs argv with its output in the file `log`; a failure names the command and carries the last lines of it."""
    with open(log, "ab") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **options)
    try:
        while (status := waited(process)) is None:
            say("  " + last_lines(log, 1)[:100])
    except BaseException:  # an interrupt, too, must not leave it running
        process.kill()
        process.wait()
        raise
    if status != 0:
        command = " ".join(str(word) for word in shown_as or argv)
        raise CommandFailed(f"status {status} from: {command}\n{last_lines(log, 60)}\n(whole output: {log})")


def waited(process):
    try:
        return process.wait(timeout=HEARTBEAT_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def last_lines(log, count):
    with open(log, "rb") as output:
        return b"\n".join(output.read().splitlines()[-count:]).decode(errors="replace")

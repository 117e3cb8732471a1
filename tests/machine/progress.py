"""Progress lines with elapsed seconds, and quiet commands whose output is shown only when they fail."""

import os
import subprocess
import sys
import time

HEARTBEAT_SECONDS = 20
# Scripts that call each other share one clock.
START = float(os.environ.setdefault("PI_AGENT_TEST_START", str(time.time())))


_running = set()  # of every thread
_ended = False


class CommandFailed(Exception):
    pass


def end_all():
    """Kills every quiet command, of other threads too; no further one starts."""
    global _ended
    _ended = True
    for process in list(_running):
        process.kill()


def say(message):
    print(f"[{time.time() - START:5.0f} s] {message}", file=sys.stderr, flush=True)


def quietly(argv, log, shown_as=None, **options):
    """Runs argv with its output in the file `log`; a failure names the command and carries the last lines of it."""
    if _ended:
        raise CommandFailed("ended before it was done")
    with open(log, "ab") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **options)
    _running.add(process)
    try:
        while (status := waited(process)) is None:
            say("  " + last_lines(log, 1)[:100])
    except BaseException:  # an interrupt, too, must not leave it running
        process.kill()
        process.wait()
        raise
    finally:
        _running.discard(process)
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

"""An interactive shell in the machine on a pty of the test's own: what a person at a terminal types and sees."""

import contextlib
import fcntl
import os
import re
import select
import struct
import termios
import time

from launching import DEMO

# Takes the pty as controlling terminal, as a login would, and becomes the command.
TAKE_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 1); os.execvp(sys.argv[1], sys.argv[1:])"
PROMPT = b"ready> "
# Private modes that a shell expects off, and those that it expects on.
OFF_IN_A_SHELL = {9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026, 2031}
ON_IN_A_SHELL = {7, 25}


class Shell:
    """A terminal of `rows` by `columns` with bash in it. `seen` is every byte that it ever showed."""

    def __init__(self, machine, user="alice", cwd=DEMO, rows=24, columns=80, command=None, env=None):
        self.machine = machine
        self.master, slave = os.openpty()
        self.resize(rows, columns)
        uid, _ = machine.account(user)
        os.fchown(slave, uid, -1)
        argv = command or ["bash", "--norc", "--noprofile", "--noediting", "-i"]
        settings = {"PS1": PROMPT.decode(), "TERM": "xterm-256color", "PI_OFFLINE": "1", **(env or {})}
        self.process = machine.popen(["python3", "-c", TAKE_TERMINAL, *argv], user, cwd, settings, slave, slave, slave)
        os.close(slave)
        self.seen = b""
        self.position = 0
        if command is None:
            self.expect(re.escape(PROMPT))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill_all()
        self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self.master)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text if isinstance(text, bytes) else text.encode())

    def read(self, seconds):
        """What is shown within `seconds`, at most one piece; empty when nothing is, or the terminal was closed."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return b""
        try:
            piece = os.read(self.master, 1 << 20)
        except OSError:
            return b""
        self.seen += piece
        return piece

    def expect(self, pattern, seconds=15):
        """Waits until what is shown, from where the last match ended, matches; the match."""
        until = time.monotonic() + seconds
        while True:
            found = re.search(pattern if isinstance(pattern, bytes) else pattern.encode(), self.seen[self.position :], re.DOTALL)
            if found:
                self.position += found.end()
                return found
            left = until - time.monotonic()
            assert left > 0, f"{pattern!r} did not come in {seconds} s, but {self.seen[self.position:][-600:]!r}"
            self.read(left)

    def settle(self, seconds=0.3):
        """Reads until nothing new has come for so long."""
        while self.read(seconds):
            pass
        self.position = len(self.seen)

    def enter(self, line):
        """Types a command line and waits for its echo, so that what is expected next is not found in what was typed."""
        self.type(line + "\n")
        self.expect(re.escape(line.encode()) + rb"\r\n")

    def run(self, command, seconds=15):
        """Enters a command, waits for the next prompt: what it printed, and its status."""
        self.enter(command + "; echo status=$?=")
        found = self.expect(rb"(.*?)status=(\d+)=\r\n.*?" + re.escape(PROMPT), seconds)
        return found.group(1), int(found.group(2))

    def settings(self):
        return termios.tcgetattr(self.master)

    def modes_left(self):
        """Modes that the bytes shown so far left different from what a shell expects."""
        on, off, keyboard = set(), set(), 0
        for found in re.finditer(rb"\x1b(c)|\x1b\[([?<>]?)([0-9;]*)([a-zA-Z])", self.seen):
            reset, kind, numbers, final = found.groups()
            if reset:
                on, off, keyboard = set(), set(), 0
                continue
            if kind == b"?" and final in b"hl":
                for number in (int(text) for text in numbers.split(b";") if text):
                    if number in OFF_IN_A_SHELL:
                        (on.add if final == b"h" else on.discard)(number)
                    if number in ON_IN_A_SHELL:
                        (off.add if final == b"l" else off.discard)(number)
            if final == b"u" and kind in (b"<", b">"):
                keyboard = max(0, keyboard + (1 if kind == b">" else -1))
        return on, off, keyboard


def stop_and_continue(shell, times):
    """A full-screen agent is stopped and continued; each time the shell has its terminal as it was."""
    before = shell.settings()
    shell.enter(r"pi keys '\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[>1u'")
    shell.expect("here")
    for count in range(1, times + 1):
        shell.type(b"\x1a")
        shell.expect(re.escape(PROMPT))
        assert shell.settings()[:4] == before[:4]
        assert shell.modes_left() == (set(), set(), 0)
        shell.enter("fg")
        shell.expect(f"CONT{count}\\.")
        assert shell.modes_left() == ({1049, 1000}, {25}, 1)
    shell.type("q")
    shell.expect(re.escape(PROMPT))
    assert shell.run("echo code=$?")[0] == b"code=7\r\n"
    assert shell.settings()[:4] == before[:4]

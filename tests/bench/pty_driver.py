"""Runs in the machine as root: times one payload behind each of several programs, turn by turn, and prints all times as JSON."""

import fcntl
import json
import os
import pty
import pwd
import struct
import sys
import termios
import time

MARK_BEGIN, MARK_END = b"<begin>", b"<end>"
PATIENCE = 120  # seconds for one turn


class Terminal:
    """A command of a user's on a new terminal of 120 by 40, which this program reads and types into."""

    def __init__(self, command, user, cwd):
        self.command = command
        self.tail = b""
        account = pwd.getpwnam(user)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
            os.fchown(0, account.pw_uid, -1)
            os.initgroups(user, account.pw_gid)
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            os.chdir(cwd)
            os.execvpe(command[0], command, {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "HOME": account.pw_dir})
        self.until = time.monotonic() + PATIENCE

    def read(self):
        if time.monotonic() > self.until:
            raise SystemExit(f"nothing ended within {PATIENCE} s, last seen: {self.tail!r}")
        try:
            data = os.read(self.master, 1 << 20)
        except OSError as failure:
            raise SystemExit(f"{self.command} ended early, last seen: {self.tail!r}") from failure
        self.tail = (self.tail + data)[-200:]
        return data

    def read_until(self, mark, already=b""):
        """Reads past a mark; what came after it in the same piece. `already` is such a rest of an earlier call."""
        seen = already
        while mark not in seen:
            seen = seen[-len(mark) :] + self.read()
        return seen.partition(mark)[2]

    def end(self):
        try:
            while os.read(self.master, 1 << 16):
                pass
        except OSError:  # the last program has closed it
            pass
        os.close(self.master)
        _, status = os.waitpid(self.pid, 0)
        if status != 0:
            raise SystemExit(f"status {status}, last seen: {self.tail!r}")


def time_text(terminal):
    rest = terminal.read_until(MARK_BEGIN)
    started = time.perf_counter()
    terminal.read_until(MARK_END, rest)
    return time.perf_counter() - started


def time_echo(terminal, samples):
    terminal.read_until(MARK_BEGIN)
    times = []
    for count in range(samples):
        letter = b"abcdefgh"[count % 8 : count % 8 + 1]
        started = time.perf_counter()
        os.write(terminal.master, letter)
        while letter not in terminal.read():
            pass
        times.append(time.perf_counter() - started)
    os.write(terminal.master, b"q")
    terminal.read_until(MARK_END)
    return times


def main():
    plan = json.load(sys.stdin)
    names = list(plan["programs"])
    results = {name: {"text": [], "echo": []} for name in names}
    for turn in range(plan["rounds"]):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:  # nobody is always first
            for kind, arguments in (("text", ["text", str(plan["bytes"])]), ("echo", ["echo"])):
                program = plan["programs"][name]
                command = [part for word in program["command"] for part in (arguments if word == "PAYLOAD" else [word])]
                command = [word.replace("PAYLOAD", " ".join(arguments)) for word in command]
                terminal = Terminal(command, program["user"], plan["cwd"])
                measured = time_text(terminal) if kind == "text" else time_echo(terminal, plan["samples"])
                terminal.end()
                results[name][kind].append(measured)
    json.dump(results, sys.stdout)


main()

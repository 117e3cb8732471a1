"""Runs in a machine, as root: rounds in which a part of a start or session of alice's stands still, and something asks for its end. Orders are JSON."""

import contextlib
import json
import os
import pwd
import select
import signal
import subprocess
import sys
import termios
import threading
import time

WAIT_AT = "/etc/pi-agent/test-wait-at"
RESOLV = "/etc/resolv.conf"
SESSIONS = "/run/pi-agent/sessions"
DEMO = "/home/alice/projects/demo"
REACH_SECONDS = 40
CLEAN_SECONDS = 60
LIMIT = 2.0  # seconds from the signal to the end
SHELLS = {"bash": ["bash", "--noprofile", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"], "fish": ["fish", "--no-config", "-i"]}
STATUS = {"bash": "$?", "zsh": "$?", "fish": "$status"}
ALICE = pwd.getpwnam("alice")
ENVIRONMENT = {"HOME": ALICE.pw_dir, "USER": "alice", "LOGNAME": "alice", "PATH": "/usr/bin:/bin", "TERM": "xterm", "PI_OFFLINE": "1", "LANG": "C.UTF-8"}
# More than a socket takes while nobody reads it.
LARGE = {shell: "pi sh -c true $(seq 100000)" for shell in (None, "bash", "zsh")} | {"fish": "pi sh -c true (seq 100000)"}
OVER = ("agent-over", "end-unrecorded", "looking-back")  # the agent has ended
KEYS = {"ctrl-c": (b"\x03", signal.SIGINT), "ctrl-\\": (b"\x1c", signal.SIGQUIT)}


class Failed(Exception):
    pass


def wait(look, what, seconds=REACH_SECONDS):
    until = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > until:
            raise Failed(what)
        time.sleep(0.01)
    return found


def processes():
    """pid: (name, parent, uid, state) of all that live."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            found[int(pid)] = (name, int(rest.split()[1]), os.stat(f"/proc/{pid}").st_uid, rest.split()[0])
    return found


def named(name):
    return [pid for pid, (its, _, _, state) in processes().items() if its == name[:15] and state != "Z"]


class Lateness(threading.Thread):
    """How much later than asked for this machine let a thread go on: that is not the product's."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seconds = 0.0
        self.is_over = False
        self.start()

    def run(self):
        while not self.is_over:
            began = time.monotonic()
            time.sleep(0.01)
            late = time.monotonic() - began - 0.01
            self.seconds += late if late > 0.01 else 0

    def end(self):
        self.is_over = True
        self.join()
        return self.seconds


def is_pending(pid, number):
    """Not where the signal has ended the process: the kernel leaves it among what its zombie waits for."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii") as file:
        said = dict(line.split(":\t", 1) for line in file if ":\t" in line)
        return not said["State"].startswith("Z") and any(int(said[name], 16) & (1 << (number - 1)) for name in ("SigPnd", "ShdPnd"))
    return False


def is_opening(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().startswith("257 ")  # openat(2): of a FIFO that no process writes
    return False


# --- What stands still. Each context gives a function that returns once it does.


@contextlib.contextmanager
def hung_sudo():
    was_there = os.path.lexists(RESOLV)
    if was_there:
        os.rename(RESOLV, RESOLV + ".kept")
    os.mkfifo(RESOLV)
    try:
        yield lambda: [pid for pid in named("sudo") if is_opening(pid)]
    finally:
        for pid in named("sudo"):  # root's, which pi cannot end
            os.kill(pid, signal.SIGKILL)
        os.remove(RESOLV)
        if was_there:
            os.rename(RESOLV + ".kept", RESOLV)


@contextlib.contextmanager
def at_point(name):
    with open(WAIT_AT, "w", encoding="ascii") as file:
        file.write(name + "\n")
    try:
        yield lambda: named(name)
    finally:
        os.remove(WAIT_AT)


@contextlib.contextmanager
def stopped(find):
    """The process that `find` finds once the agent runs."""
    pids = []

    def stop():
        if not pids and named("sleep"):
            pids.extend(find())
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
        return [pid for pid in pids if processes().get(pid, "    ")[3] == "T"]

    try:
        yield stop
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def stopped_bus():
    pids = named("dbus-daemon")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield lambda: named("pi-agent-runner")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def hang(phase):
    if phase in ("sudo", "sudo and a large request"):
        return hung_sudo()
    if phase == "bus":
        return stopped_bus()
    if phase == "running":
        return contextlib.nullcontext(lambda: named("sleep"))
    if phase.startswith("stopped "):
        return stopped(lambda: named(phase.removeprefix("stopped ")))
    return at_point(phase.split(" ")[0])


# --- Who runs pi, and what asks for its end.


class Alone:
    """pi without a terminal."""

    def __init__(self, command, _):
        self.process = subprocess.Popen(
            ["sh", "-c", "exec " + command],
            user=ALICE.pw_uid, group=ALICE.pw_gid, extra_groups=os.getgrouplist("alice", ALICE.pw_gid), cwd=DEMO, env=ENVIRONMENT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self.pi = self.process.pid
        self.seen = b""
        os.set_blocking(self.process.stdout.fileno(), False)

    def require_end(self, number):
        status = self.process.wait(timeout=10)
        if status != (0 if number is None else -number):
            raise Failed(f"status {status}")

    def read(self):
        """What has been said so far: what stands still may have the pipe open, too."""
        with contextlib.suppress(BlockingIOError):
            self.seen += os.read(self.process.stdout.fileno(), 1 << 16)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class InShell:
    """pi as a job of an interactive shell on a terminal."""

    def __init__(self, command, shell):
        self.shell = shell
        self.seen = b""
        self.master, slave = os.openpty()
        os.fchown(slave, ALICE.pw_uid, -1)
        take = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 1); os.execvp(sys.argv[1], sys.argv[1:])"
        self.process = subprocess.Popen(
            ["python3", "-c", take, *SHELLS[shell]],
            user=ALICE.pw_uid, group=ALICE.pw_gid, extra_groups=os.getgrouplist("alice", ALICE.pw_gid), cwd=DEMO, env=ENVIRONMENT,
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.say("echo rea''dy")
        self.expect(b"ready")
        self.before = termios.tcgetattr(self.master)[:4]
        self.say(command)
        self.pi = wait(self.find_pi, "the shell starts no pi")

    def find_pi(self):
        self.read(0)
        found = [pid for pid, (name, parent, _, _) in processes().items() if parent == self.process.pid and name == "pi"]
        return found[0] if found else None

    def say(self, line):
        os.write(self.master, line.encode() + b"\n")

    def read(self, seconds):
        if self.master < 0 or not select.select([self.master], [], [], seconds)[0]:
            return
        with contextlib.suppress(OSError):
            self.seen += os.read(self.master, 1 << 16)

    def expect(self, word):
        def look():
            self.read(0.05)
            return word in self.seen

        wait(look, f"{word!r} did not come")

    def close(self):
        os.close(self.master)
        self.master = -1

    def require_end(self, number):
        if self.master < 0:
            return
        self.say(f"echo status''={STATUS[self.shell]}=")
        try:
            self.expect(f"status={0 if number is None else 128 + number}=".encode())
        except Failed:
            raise Failed(f"another status than of {number}") from None
        after = termios.tcgetattr(self.master)[:4]
        if self.shell == "bash" and after[3] & termios.ISIG == 0:
            raise Failed(f"the terminal was left as {after}")

    def end(self):
        if self.master >= 0:
            self.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def ask_for_end(who, how):
    """Returns the signal that pi ends by, and since when it should."""
    began = time.monotonic()
    if how in KEYS:
        os.write(who.master, KEYS[how][0])
        return KEYS[how][1], began
    if how == "closed terminal":
        who.close()
        return signal.SIGHUP, began
    if how == "stop":
        subprocess.run(["pi-agentctl", "stop", "--user", "alice"], check=False, capture_output=True, timeout=30)
        return None, time.monotonic()
    number = getattr(signal, f"SIG{how.split(' ')[0]}")
    os.kill(who.pi, number)
    if how.endswith(" twice"):
        wait(lambda: not is_pending(who.pi, number), "pi does not take its signal")  # the kernel makes one of two that wait
        time.sleep(0.3)  # a person's second key; sooner, both count as one
        began = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(who.pi, number)
    return number, began


def what_is_left():
    live = [f"{pid} {its[0]}" for pid, its in processes().items() if its[0].startswith(("pi-agent-", "sudo")) and its[3] != "Z"]
    return live + (os.listdir(SESSIONS) if os.path.isdir(SESSIONS) else [])


def play(round_):
    phase, how, shell = round_["phase"], round_["how"], round_["shell"]
    command = LARGE[shell] if "large" in phase else "pi sh -c true" if phase in OVER else "pi sleep 1000"
    who = None
    try:
        with hang(phase) as stands_still:
            who = (InShell if shell else Alone)(command, shell)
            pidfd = os.pidfd_open(who.pi)
            try:
                wait(stands_still, "nothing stands still")
                lateness = Lateness()
                number, began = ask_for_end(who, how)
                late = 0.0
                until = began + (0.7 if how.endswith(" twice") else LIMIT)
                while not select.select([pidfd], [], [], 0.002)[0]:
                    if time.monotonic() > until + lateness.seconds:
                        raise Failed(f"pi outlives it: {time.monotonic() - began:.2f} s, the machine was late by {lateness.seconds:.2f}")
                took = time.monotonic() - began
                late = lateness.end()
            finally:
                os.close(pidfd)
            if number is not None:
                who.require_end(None if phase == "looking-back" else number)
        wait(lambda: not what_is_left(), f"left: {what_is_left()}", CLEAN_SECONDS)
        return max(0.0, took - late)
    except Failed as failure:
        if isinstance(who, Alone):
            who.read()
        raise Failed(f"{failure}; said: {who.seen[-800:] if who else None!r}") from None
    finally:
        if who:
            who.end()


def main():
    failures, longest = [], 0.0
    orders = json.load(sys.stdin)
    for round_ in orders:
        try:
            longest = max(longest, play(round_))
        except Failed as failure:
            failures.append(f"{round_}: {failure}; left: {what_is_left()}")
            for pid in named("sudo") + named("pi"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(Failed):
                wait(lambda: not what_is_left(), "", CLEAN_SECONDS)
            if len(failures) > 5:
                break
        print(round_, file=sys.stderr, flush=True)
    json.dump({"failures": failures, "longest": longest}, sys.stdout)


main()

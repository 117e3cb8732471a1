#!/usr/bin/python3 -IS
"""An agent for tests that does what its first argument says; the tests install it in the machine as `bin/pi`."""

import hashlib
import itertools
import os
import resource
import signal
import subprocess
import sys
import termios
import threading
import time
import tty

CAUGHT = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def heed_signals():
    """read(2) sleeps through a signal that comes between Python's own look at signals and the call: wake it again and again."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)


def write(data):
    while data:
        data = data[os.write(1, data) :]


def show_arguments(arguments):
    """Every further argument, ended by NUL."""
    write(b"".join(os.fsencode(argument) + b"\0" for argument in arguments))


def show_environment(_):
    """Every variable, ended by NUL, as it was given to this program."""
    with open("/proc/self/environ", "rb") as environment:
        write(environment.read())


def name_signals(_):
    """Says `ready`, then the name of each signal that comes, until the end of standard input."""
    heed_signals()
    for number in CAUGHT:
        signal.signal(number, lambda number, _: write(signal.Signals(number).name.encode() + b"\n"))
    write(b"ready\n")
    while os.read(0, 4096):
        pass


def tell_of_continues():
    for count in itertools.count(1):
        signal.sigwait({signal.SIGCONT})
        write(f"CONT{count}.".encode())


def read_keys(arguments):
    """A full-screen program: switches terminal modes on, reads single keys, says when it is continued, ends at `q`; hard to kill."""
    settings = termios.tcgetattr(0)
    tty.setraw(0)
    raw = termios.tcgetattr(0)
    raw[3] |= termios.ISIG
    termios.tcsetattr(0, termios.TCSANOW, raw)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["/usr/bin/setsid", "/bin/sleep", "1000"])
    # Waited for: a handler would be put off until the next key where the signal comes just before the read.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
    threading.Thread(target=tell_of_continues, daemon=True).start()
    write(arguments[0].encode().decode("unicode_escape").encode() + b"here")
    while os.read(0, 1) != b"q":
        pass
    termios.tcsetattr(0, termios.TCSANOW, settings)
    sys.exit(7)


def flood(arguments):
    """Writes `count` times the same `size` random bytes to a raw terminal, and their digest into a file."""
    size, count = map(int, arguments)
    settings = termios.tcgetattr(1)
    tty.setraw(1)
    data, digest = os.urandom(size), hashlib.sha256()
    write(b"BEGIN")
    for _ in range(count):
        digest.update(data)
        write(data)
    termios.tcsetattr(1, termios.TCSADRAIN, settings)
    with open("digest", "w", encoding="ascii") as file:
        print(digest.hexdigest(), file=file)


def tell_sizes(_):
    """The terminal's size at the start and after each change, one a line, until a line is typed."""

    def tell(*_):
        write("{1}x{0}.\n".format(*os.get_terminal_size(1)).encode())

    heed_signals()
    signal.signal(signal.SIGWINCH, tell)
    tell()
    os.read(0, 100)
    write(b"end\n")


def tick(_):
    """A line every tenth of a second, until an interrupt ends it as it ends most programs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    count = 0
    while True:
        count += 1
        write(f"tick {count}.\n".encode())
        time.sleep(0.1)


def die(arguments):
    """Dies of a signal that does what it does by default, and would leave a core."""
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    number = int(arguments[0])
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(10)


def digest_input(_):
    """Reads standard input to its end, untouched by a terminal: length and digest."""
    if os.isatty(0):
        tty.setraw(0)
    write(b"ready\r\n")
    digest, length = hashlib.sha256(), 0
    while piece := os.read(0, 1 << 16):
        digest.update(piece)
        length += len(piece)
    write(f"{length} {digest.hexdigest()}\n".encode())


def run_script(arguments):
    """Becomes bash with a script and its parameters, and with the signals as Python found them."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv("/bin/bash", ["bash", "-c", arguments[0], "bash", *arguments[1:]])


ACTIONS = {
    "arguments": show_arguments,
    "environment": show_environment,
    "signals": name_signals,
    "keys": read_keys,
    "flood": flood,
    "sizes": tell_sizes,
    "ticks": tick,
    "die": die,
    "digest": digest_input,
    "sh": run_script,
}
ACTIONS[sys.argv[1]](sys.argv[2:])

#!/usr/bin/python3 -IS
"""An agent for tests that does what its first argument says; the tests install it in the machine as `bin/pi`."""

import os
import signal
import sys

CAUGHT = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


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
    for number in CAUGHT:
        signal.signal(number, lambda number, _: write(signal.Signals(number).name.encode() + b"\n"))
    write(b"ready\n")
    while os.read(0, 4096):
        pass


def run_script(arguments):
    """Becomes bash with a script and its parameters, and with the signals as Python found them."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv("/bin/bash", ["bash", "-c", arguments[0], "bash", *arguments[1:]])


ACTIONS = {"arguments": show_arguments, "environment": show_environment, "signals": name_signals, "sh": run_script}
ACTIONS[sys.argv[1]](sys.argv[2:])

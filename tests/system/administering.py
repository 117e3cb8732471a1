"""How the system tests run pi-agentctl as root, and read its answers."""

import json

USAGE, NOTHING, BUSY, SYSTEM_FAILURE = 64, 1, 75, 71


def ctl(machine, *arguments, **options):
    return machine.root(["pi-agentctl", *arguments], **options)


def answer(machine, *arguments):
    """What it answers to programs; it must have said nothing else."""
    done = ctl(machine, *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, b""), done
    shown = json.loads(done.stdout)
    assert shown["version"] == 1
    return shown


def said(machine, *arguments, status=0):
    """What it said on standard output and error, where it ended with this status."""
    done = ctl(machine, *arguments)
    assert done.returncode == status, done
    return (done.stdout + done.stderr).decode()

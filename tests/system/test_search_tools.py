"""fd and rg: found on the host, or an administrator is told what to install."""

import json

import pytest

MISSING = ("fd", "rg")
PACKAGES = {"fd": "fd-find", "rg": "ripgrep"}


def warnings(machine, command):
    done = machine.root(["pi-agentctl", command], check=True)
    return [line for line in done.stderr.decode().splitlines() if "warning" in line]


def explained(machine):
    text = machine.root(["pi-agentctl", "explain", "--user", "alice"], check=True).stdout.decode()
    seen = json.loads(machine.root(["pi-agentctl", "explain", "--user", "alice", "--json"], check=True).stdout)
    return [line for line in text.splitlines() if line.startswith("tools:")], seen["missing_tools"]


@pytest.fixture
def program(machine):
    """program(name) puts one where an administrator would."""
    made = []

    def make(name):
        machine.write(f"/usr/local/bin/{name}", "#!/bin/sh\n", mode=0o755)
        made.append(f"/usr/local/bin/{name}")

    yield make
    machine.root(["rm", "-f", "--", *made], check=True)


@pytest.mark.parametrize("command", ["check", "apply"])
def test_what_is_missing_is_a_warning_with_the_package_that_brings_it(machine, command):
    for line, name in zip(warnings(machine, command), MISSING, strict=True):
        assert line.startswith(f"pi-agentctl: warning: this host has no {name}, ") and PACKAGES[name] in line, line


@pytest.mark.parametrize("fd", ["fd", "fdfind"])
def test_what_is_there_is_not_told_under_debians_name_either(machine, program, fd):
    program(fd)
    assert [PACKAGES["rg"] in line for line in warnings(machine, "check")] == [True]
    assert explained(machine)[1] == ["rg"]
    program("rg")
    assert warnings(machine, "check") == [] and explained(machine) == ([], [])


def test_explain_tells_it_too(machine):
    lines, names = explained(machine)
    assert names == list(MISSING)
    for line, name in zip(lines, MISSING, strict=True):
        assert f"this host has no {name}, " in line and PACKAGES[name] in line, line

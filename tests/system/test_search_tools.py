"""fd and rg: found on the host, or an administrator is told what to install; not downloaded where the policy restricts the network."""

import json

import pytest
from launching import PLAYING_POLICY, agent_says, variables

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


def offline(machine):
    """PI_OFFLINE as the agent has it, and as explain tells it with what sets it."""
    inside = variables(agent_says(machine, "environment")).get(b"PI_OFFLINE", b"unset").decode()
    seen = json.loads(machine.root(["pi-agentctl", "explain", "--user", "alice", "--json"], check=True).stdout)
    told = seen["environment"]["variables"].get("PI_OFFLINE", {"value": "unset", "from": ""})
    assert told["value"] == inside
    return inside, told["from"]


POLICY = PLAYING_POLICY.replace('PI_OFFLINE: "1"', "OTHER: x")


@pytest.mark.parametrize("network", ["loopback", "none", '["192.0.2.0/24"]'])
def test_what_is_missing_is_not_downloaded_where_the_network_is_restricted(playing, playing_policy, program, network):
    playing_policy(POLICY)
    assert offline(playing)[0] == "unset"
    restricted = POLICY + f"network: {network}\n"
    playing_policy(restricted)
    assert offline(playing) == ("1", "pi-agent, because fd or rg is missing and the network is restricted")
    playing_policy(restricted.replace("OTHER: x", 'PI_OFFLINE: ""'))
    assert offline(playing) == ("", "env")
    playing_policy(restricted)
    for name in ("fdfind", "rg"):
        program(name)
    assert offline(playing)[0] == "unset"

"""Fixtures of the system tests: the agent that does what it is told, and a look at what a test leaves behind."""

from pathlib import Path

import pytest
from launching import PLAYING_AGENT, PLAYING_POLICY, STANDARD_POLICY, leftovers, wait_until_empty
from package_machine import packaged_machine


@pytest.fixture(scope="session")
def packaged(machine_name):
    """A machine of its own, with the Debian package beside it."""
    with packaged_machine(machine_name) as made:
        yield made


@pytest.fixture(scope="module")
def playing(machine):
    """The machine under a policy whose agent is playing_agent.py."""
    machine.write(PLAYING_AGENT, Path(__file__).with_name("playing_agent.py").read_text(), mode=0o755)
    machine.install_policy(PLAYING_POLICY)
    yield machine
    machine.install_policy(STANDARD_POLICY)
    machine.root(["rm", "-r", str(Path(PLAYING_AGENT).parents[1])], check=True)


@pytest.fixture
def playing_policy(playing):
    """playing_policy(text) applies another policy for one test that uses playing_agent.py, and afterwards what the rest of its file has."""
    before = playing.read("/etc/pi-agent/policy.yaml")
    yield playing.install_policy
    playing.install_policy(before)


@pytest.fixture(autouse=True)
def nothing_is_left(request):
    """After each test on the product's machine: no unit, directory, mount or process of any session."""
    if "machine" not in request.fixturenames:
        yield
        return
    machine = request.getfixturevalue("machine")
    yield
    wait_until_empty(lambda: leftovers(machine))

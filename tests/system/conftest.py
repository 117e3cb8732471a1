"""Fixtures of the system tests: the agent that does what it is told, and a look at what a test leaves behind."""

from pathlib import Path

import pytest
from launching import PLAYING_AGENT, PLAYING_POLICY, STANDARD_POLICY, wait_until_empty

# Units, directories, mounts and processes of sessions: an empty answer means that none is left.
LEFTOVERS = """
systemctl list-units --all --plain --no-legend 'pi-agent-*.service' 'pi-agent-*.scope'
ls -A /run/pi-agent/sessions 2>/dev/null
grep -o ' /run/pi-agent/sessions/[^ ]*' /proc/self/mountinfo
ps -eo user:32=,args= | grep '^pi-agent'
ps -eo args= | grep '^/usr/libexec/pi-agent/'
true
"""


@pytest.fixture(scope="module")
def playing(machine):
    """The machine under a policy whose agent is playing_agent.py."""
    machine.write(PLAYING_AGENT, Path(__file__).with_name("playing_agent.py").read_text(), mode=0o755)
    machine.install_policy(PLAYING_POLICY)
    yield machine
    machine.install_policy(STANDARD_POLICY)


@pytest.fixture
def playing_policy(playing):
    """playing_policy(text) applies another policy for one test that uses playing_agent.py."""
    yield playing.install_policy
    playing.install_policy(PLAYING_POLICY)


@pytest.fixture(autouse=True)
def nothing_is_left(request):
    """After each test on the product's machine: no unit, directory, mount or process of any session."""
    if "machine" not in request.fixturenames:
        yield
        return
    machine = request.getfixturevalue("machine")
    yield
    wait_until_empty(lambda: machine.root(LEFTOVERS, check=True).stdout.strip())

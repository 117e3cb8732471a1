"""The state of one user, after a start that ended in the middle of making it, and after somebody changed its owner."""

import contextlib

import pytest
from launching import INVALID, STATE, agent_says, assert_refused, owner_and_mode, pi

pytestmark = pytest.mark.usefixtures("playing")
HOME = f"{STATE}/alice/home"


@contextlib.contextmanager
def replaced(machine, path, script):
    """`script` makes another directory that replaces `path`."""
    machine.root(["mv", path, f"{path}-away"], check=True)
    try:
        machine.root(script, check=True)
        yield
    finally:
        machine.root(["rm", "-rf", path], check=True)
        machine.root(["mv", f"{path}-away", path], check=True)


@pytest.fixture(autouse=True)
def existing(machine):
    agent_says(machine, "sh", "true")


def test_a_home_that_was_made_and_not_yet_given_away_is_given_away(machine):
    with replaced(machine, HOME, f"mkdir -m 0700 {HOME}"):
        assert agent_says(machine, "sh", "echo written >$HOME/file; cat $HOME/file") == b"written\n"
        assert owner_and_mode(machine, HOME) == "pi-agent-alice:pi-agent-alice 700"


def test_parents_that_were_made_and_not_yet_opened_are_opened(machine):
    with replaced(machine, f"{STATE}/alice", f"mkdir -m 0700 {STATE}/alice"):
        assert agent_says(machine, "sh", "echo ran") == b"ran\n"
        assert owner_and_mode(machine, f"{STATE}/alice") == "root:root 711"
    with replaced(machine, f"{STATE}/alice", f"mkdir -m 0700 {STATE}/alice {STATE}/alice/meta"):
        assert agent_says(machine, "sh", "echo ran") == b"ran\n"


OTHERS = {
    "root's, with something in it": f"mkdir -m 0700 {HOME}; touch {HOME}/file",
    "root's, and open to others": f"mkdir {HOME}; chmod 0777 {HOME}",
    "another user's": f"install -d -o bob {HOME}",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_no_other_directory_is_given_to_the_agent(machine, kind):
    with replaced(machine, HOME, OTHERS[kind]):
        before = owner_and_mode(machine, HOME)
        assert_refused(pi(machine, "sh", "echo ran"), INVALID, f"{HOME} belongs to", "ask the administrator whether the agent's account changed")
        assert owner_and_mode(machine, HOME) == before

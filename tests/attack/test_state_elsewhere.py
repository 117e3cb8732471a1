"""The state of a user on another host's file system, where its locks and owners are that host's word: no session uses it."""

import contextlib

import pytest
from target import Outcome

pytestmark = pytest.mark.position("host")

STATE = "/var/lib/pi-agent"
ALICES = f"{STATE}/users/alice"
LEVELS = [STATE, f"{STATE}/users", ALICES, f"{ALICES}/meta", f"{ALICES}/home"]


@contextlib.contextmanager
def served(target, place):
    """Existing files, served by a program that stands for another host: it holds files as any file system does."""
    target.machine.root(["bindfs", "-o", "allow_other", place, place], check=True)
    try:
        yield
    finally:
        target.machine.root(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("place", LEVELS)
def test_no_session_starts_with_its_state_on_another_host(prove, place):
    def attack(target):
        target.warm_up()  # all of it is there
        before = target.quiet_traces()
        with served(target, place):
            done = target.pi("sh", "-c", "touch ~/here && echo here")
        target.expect_traces(before, seconds=20)
        return Outcome(done.stdout == b"here\n", done)

    on, _ = prove(attack, "state-on-this-host")
    assert on.seen.returncode == 78 and f"pi: {place} (agent.state_dir) lies on another host (FUSE)".encode() in on.seen.stderr, on

"""projects.ownership none: nothing is mapped, so the agent has its own account's rights in a project, and none of its user's."""

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("agent")

NONE = "projects: {ownership: none}"
SECRET = f"{DEMO}/secret-of-alice"


@pytest.fixture(autouse=True)
def a_secret(product, weak):
    """A file that only alice can read, in a directory where only alice can write."""
    for target in (product, weak):
        target.machine.write(SECRET, "pelican-3881\n", owner="alice", mode=0o600)
        target.machine.root(["chmod", "755", DEMO], check=True)
    with product.policy_with(NONE), weak.policy_with(NONE):
        yield
    for target in (product, weak):
        target.machine.root(["rm", "-f", SECRET, f"{DEMO}/made-by-the-agent"], check=True)


def test_a_file_of_the_users_alone_stays_closed(prove):
    def attack(target):
        done = target.pi("cat", SECRET)
        return Outcome(b"pelican" in done.stdout, done)

    prove(attack, "unmapped-projects")


def test_a_directory_of_the_users_alone_cannot_be_written(prove):
    def attack(target):
        done = target.pi("sh", "-c", "echo x >made-by-the-agent && cat made-by-the-agent; rm -f made-by-the-agent")
        return Outcome(done.stdout == b"x\n", done)

    prove(attack, "unmapped-projects")


def test_no_owner_or_mode_of_the_users_can_be_changed(prove):
    def attack(target):
        done = target.pi("chmod", "644", SECRET)
        mode = target.machine.root(["stat", "-c", "%a", SECRET], check=True).stdout
        target.machine.root(["chmod", "600", SECRET], check=True)
        return Outcome(mode == b"644\n", done)

    prove(attack, "unmapped-projects")

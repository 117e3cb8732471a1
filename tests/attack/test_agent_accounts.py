"""An agent's account that somebody changed after `pi-agentctl apply`: every launch judges it again, by number."""

import pytest
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("host")

STATE = "/var/lib/pi-agent/users"
TWIN = ATTACK_POLICY.read_text().replace("roots: [/srv/devs]", "roots: [/srv/devs]\n    run_as: twin")
POLICY = "/etc/pi-agent/policy.yaml"
# How the account is changed, how that is undone, who starts pi where, and the message.
CHANGES = {
    "the caller's primary group": (
        f"usermod -g alice -a -G pi-agent pi-agent; chgrp alice {STATE}/alice/home {STATE}/alice/staging",
        f"usermod -g pi-agent -G '' pi-agent; chgrp pi-agent {STATE}/alice/home {STATE}/alice/staging",
        ("alice", "/home/alice/projects/demo"), b"is in the primary group of alice", ("agents-numbers",),
    ),
    "a group through which a root is granted": (
        "gpasswd -a pi-agent devs", "gpasswd -d pi-agent devs",
        ("alice", "/home/alice/projects/demo"), b"is in the group devs", ("agents-groups",),
    ),
    "another user's uid": (
        f"useradd -o -u 1001 -g pi-agent twin; mv {STATE}/carol {STATE}/carol-away",
        f"userdel -f twin; rm -rf {STATE}/carol; mv {STATE}/carol-away {STATE}/carol",
        ("carol", "/srv/devs"), b"has the uid of bob, a user of the policy", ("agents-numbers",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_an_agent_does_not_get(kind, prove, product, weak):
    change, back, (user, cwd), said, defences = CHANGES[kind]
    for target in (product, weak):
        target.pi("true", user=user, cwd=cwd, check=True)
        target.machine.root(change)
        if "twin" in change:
            target.machine.write(POLICY, TWIN)

    def attack(target):
        done = target.pi("true", user=user, cwd=cwd)
        return Outcome(done.returncode == 0, done)

    try:
        on, _ = prove(attack, *defences)
    finally:
        for target in (product, weak):
            target.machine.root(back)
            target.machine.write(POLICY, ATTACK_POLICY.read_text())
            target.pi("true", user=user, cwd=cwd, check=True)
    assert on.seen.returncode == 78 and said in on.seen.stderr, on

"""A part of the policy that is a link to what is not there, such as a disk that is not mounted, is not a part that does not exist."""

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("host")

GONE = "/run/not-mounted"


@pytest.mark.parametrize("part", ["policy.d", "users.d", "users.d/alice.yaml"])
def test_a_session_writes_while_the_part_of_the_policy_is_away_that_makes_it_read_only(part, prove):
    def attack(target):
        machine, link = target.machine, f"/etc/pi-agent/{part}"
        machine.root(f"test ! -e /etc/pi-agent/policy.d -a ! -e /etc/pi-agent/users.d && mkdir -p $(dirname {link}) && ln -s {GONE}/{part} {link}", check=True)
        try:
            done = target.pi("touch", "written")
            wrote = machine.root(["rm", f"{DEMO}/written"]).returncode == 0
            checked = machine.root(["pi-agentctl", "check"])
        finally:
            machine.root("rm -rf /etc/pi-agent/policy.d /etc/pi-agent/users.d", check=True)
        return Outcome(wrote, (done, checked))

    on, off = prove(attack, "dangling-links")
    for done in on.seen:
        assert done.returncode == 78 and f"the symlink /etc/pi-agent/{part} leads nowhere".encode() in done.stderr + done.stdout, done
    assert off.seen[0].returncode == 0, off

"""What pi-agent had closed, once it is removed: the agent's program opens to nobody by that, and a number that is free again lets nobody in."""

import contextlib

import pytest
from target import ATTACK_POLICY, INSIDE, Outcome

pytestmark = pytest.mark.position("outsider")

AGENT = f"{INSIDE}/agent"
ONCE = "/opt/agent-once"
STRANGERS = "strangers"


@contextlib.contextmanager
def removed(target, *options):
    """As debian/prerm and administrators remove it; afterwards everything is applied again."""
    try:
        target.machine.root(["pi-agentctl", "remove", "--yes", *options], check=True)
        yield
    finally:
        target.machine.install_policy(ATTACK_POLICY.read_text())
        target.warm_up()


def test_who_may_not_start_the_agent_may_not_once_the_package_is_removed(prove):
    """Without pi-agent nothing would confine it: everybody's shells, build jobs and accounts of services could run it."""

    def attack(target):
        with removed(target, "--keep-hidden"):
            done = target.machine.run([AGENT, "id", "-un"], user="eve", cwd="/")
            assert target.machine.root([AGENT, "true"]).returncode == 0
        return Outcome(done.stdout == b"eve\n", done)

    on, _ = prove(attack, "keep-hidden")
    assert b"Permission denied" in on.seen.stderr, on


@contextlib.contextmanager
def next_group(machine, number):
    """The group that is made next, which gets the number that is free."""
    machine.root(["groupadd", "-g", number, STRANGERS], check=True)
    try:
        yield
    finally:
        machine.root(["groupdel", STRANGERS], check=True)


# What happens to a program that apply has hidden, and why the next group cannot have it: it gets its group back, or the agents' group stays.
LEFT = {
    "an earlier policy named": ("true", True, ("hidden-given-back", "group-left-empty")),
    "an earlier policy named and somebody opened": (f"chmod 0751 {ONCE}", True, ("group-left-empty",)),
    "the policy names and the group was given": (f"chgrp pi-agent {ONCE}/bin/pi", False, ("group-left-empty",)),
}


@pytest.mark.parametrize("program", LEFT)
def test_who_gets_the_agents_group_number_next_gets_no_program_that(program, prove):
    change, is_earlier, defences = LEFT[program]

    def attack(target):
        machine = target.machine
        number = machine.root(["getent", "group", "pi-agent"], check=True).stdout.decode().split(":")[2]
        machine.root(f"install -d -m 0755 {ONCE} {ONCE}/bin && install -m 750 {AGENT} {ONCE}/bin/pi", check=True)
        try:
            machine.install_policy(ATTACK_POLICY.read_text().replace(AGENT, f"{ONCE}/bin/pi"))
            assert machine.root(["stat", "-c", "%G %a", ONCE]).stdout == b"pi-agent 750\n"
            machine.root(change, check=True)
            if is_earlier:
                machine.install_policy(ATTACK_POLICY.read_text())
            removal = machine.root(["pi-agentctl", "remove", "--state", "--accounts", "--yes"])
            is_free = machine.root(["getent", "group", "pi-agent"]).returncode != 0
            with next_group(machine, number) if is_free else contextlib.nullcontext():
                belongs = machine.root(f"find {ONCE} -group {number}", check=True).stdout
        finally:
            machine.root(["rm", "-r", ONCE], check=True)
            machine.install_policy(ATTACK_POLICY.read_text())
            target.warm_up()
        return Outcome(is_free and bool(belongs), (removal, belongs))

    prove(attack, *defences)

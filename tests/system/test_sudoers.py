"""The rule that apply installs, as the sudo of the machine reads it."""

import pytest

SUDOERS = "/etc/sudoers.d/pi-agent"
RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"


def test_visudo_accepts_the_rule_and_refuses_a_broken_one(machine):
    assert machine.root(["visudo", "-c", "-f", SUDOERS]).returncode == 0
    broken = machine.read(SUDOERS).decode().replace("(root)", "(root")
    machine.write("/run/broken-sudoers", broken, mode=0o440)
    assert machine.root(["visudo", "-c", "-f", "/run/broken-sudoers"]).returncode != 0
    machine.root(["rm", "/run/broken-sudoers"], check=True)


@pytest.mark.parametrize("user", ["alice", "bob", "carol"])
def test_who_is_in_the_policy_may_run_one_program_without_arguments(machine, user):
    for command, allowed in (([RUNNER], True), ([RUNNER, "x"], False), ([RUNNER, ""], False), (["/usr/bin/id"], False)):
        done = machine.run(["sudo", "-n", "-l", *command], user=user)
        assert (done.returncode == 0) == allowed, (command, done)


def test_who_is_not_in_it_may_run_nothing(machine):
    assert machine.run(["sudo", "-n", "-l", RUNNER], user="eve").returncode != 0

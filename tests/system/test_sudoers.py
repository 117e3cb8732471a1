"""The rule that apply installs, as the sudo of the machine reads it."""

import pytest
from launching import KILLS_OF_OURS, finish, session

SUDOERS = "/etc/sudoers.d/pi-agent"
RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
LATER = "/etc/sudoers.d/zz-site"


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


@pytest.fixture
def waiting_sudo(playing):
    """A site wants its session modules to run: sudo stays, and closes the PAM session in the end."""
    playing.write(LATER, f"Defaults!{RUNNER} pam_session\n", mode=0o440)
    yield
    playing.root(["rm", LATER], check=True)


def parent_of_runner(machine):
    shown = machine.root("ps -o comm= -p $(ps -o ppid= -p $(pgrep -u root -o -f ^" + RUNNER + "))", check=True)
    return shown.stdout.decode().strip()


def test_sudo_becomes_the_runner(playing):
    with session(playing, "sh", "echo ready; read answer; exit 5") as process:
        assert parent_of_runner(playing) == "pi" and playing.root(["pgrep", "-x", "sudo"]).returncode == 1
        assert finish(process)[0] == 5


def test_a_sudo_that_waits_is_as_good(playing, waiting_sudo):
    with session(playing, "sh", "echo ready; read answer; exit 5") as process:
        assert parent_of_runner(playing) == "sudo"
        assert finish(process)[0] == 5


@pytest.mark.parametrize("killed", ["pkill -9 -x sudo", KILLS_OF_OURS["runner"]], ids=["sudo", "runner"])
def test_with_a_sudo_that_waits_a_session_ends_with_either(playing, waiting_sudo, killed):
    with session(playing, "sh", "echo ready; sleep 300") as process:
        playing.root(killed, check=True)
        status, _, err = finish(process)
    assert status == 71 and b"the session ended with it" in err, (status, err)

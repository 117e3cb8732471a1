"""pi-agentctl remove: what apply did is taken back, and nothing is left to who gets the agents' numbers next."""

import pytest
from administering import BUSY, USAGE, said
from launching import DEMO, INVALID, PLAYING_AGENT, PLAYING_POLICY, POLICY_FILE, owner_and_mode, pi, session

RULE = "/etc/sudoers.d/pi-agent"


def test_remove_refuses_while_sessions_live_and_then_nobody_starts_any_more(playing):
    machine = playing
    try:
        with session(machine, "sh", "echo ready; cat"):
            assert "1 session runs; end them first: pi-agentctl stop --all" in said(machine, "remove", "--yes", status=BUSY)
            assert machine.root(["test", "-e", RULE]).returncode == 0
        assert "use --yes" in said(machine, "remove", status=USAGE)
        assert "--accounts needs --state" in said(machine, "remove", "--accounts", "--yes", status=USAGE)
        would = said(machine, "remove", "--dry-run")
        assert f"would: remove the sudo rule {RULE}" in would and machine.root(["test", "-e", RULE]).returncode == 0
        done = said(machine, "remove", "--yes")
        assert done == would.replace("would: ", "done: "), (would, done)
        assert machine.root(["test", "-e", RULE]).returncode == 1
        assert owner_and_mode(machine, "/usr/lib/pi-agent/playing-agent/bin/pi").endswith(" 755")
        assert machine.root(["getent", "passwd", "pi-agent-alice"]).returncode == 0
        assert machine.root(["test", "-d", "/var/lib/pi-agent/users/alice/home"]).returncode == 0
        assert pi(machine, "sh", "echo x").returncode != 0
        assert said(machine, "remove", "--yes") == "nothing to do\n"
    finally:
        machine.install_policy(PLAYING_POLICY)
    assert pi(machine, "sh", "exit 4").returncode == 4


def test_remove_with_state_and_accounts_leaves_nothing_of_apply(playing):
    machine = playing
    assert pi(machine, "sh", "touch ~/made; mkdir -m 0 ~/closed").returncode == 0
    machine.root("mkdir -p /root/kept && cp -a /etc/passwd /etc/shadow /etc/group /etc/gshadow /root/kept/", check=True)
    machine.write("/var/lib/pi-agent/users/strange", "an administrator's\n")
    try:
        shown = said(machine, "remove", "--state", "--accounts", "--yes", status=INVALID)
        assert "/var/lib/pi-agent/users contains something that is not pi-agent's" in shown, shown
        machine.root(["rm", "/var/lib/pi-agent/users/strange"], check=True)
        shown = said(machine, "remove", "--state", "--accounts", "--yes")
        assert "done: remove the account pi-agent-alice\n" in shown, shown
        assert machine.root("ls -d /var/lib/pi-agent /etc/sudoers.d/pi-agent; getent passwd | grep '^pi-agent'; getent group | grep '^pi-agent'").stdout == b""
        assert machine.root(["test", "-e", POLICY_FILE]).returncode == 0
        assert machine.root(["visudo", "-c"]).returncode == 0
    finally:  # the same numbers again, for the tests that come after
        machine.root("cp -a /root/kept/* /etc/ && rm -r /root/kept", check=True)
        machine.install_policy(PLAYING_POLICY)
    assert pi(machine, "sh", "test ! -e ~/made").returncode == 0


# What somebody has given to the agents' group, and with which program of the agent's: nested in its directory, in pi-agent's own, and a directory
# that an earlier policy hid and somebody has opened since.
LEFT = {
    "/opt/former/lib/deep": "mkdir /opt/former/lib && touch /opt/former/lib/deep && chgrp pi-agent /opt/former/lib/deep",
    "/etc/pi-agent/keys": "mkdir /etc/pi-agent/keys && chgrp pi-agent /etc/pi-agent/keys",
    "/opt/former": "chmod 755 /opt/former",
}


@pytest.mark.parametrize("path", LEFT)
def test_the_agents_group_does_not_go_while_something_is_left_to_who_gets_its_number(playing, path):
    machine = playing
    machine.root("mkdir -p /root/kept && cp -a /etc/passwd /etc/shadow /etc/group /etc/gshadow /root/kept/", check=True)
    try:
        machine.root(f"install -D -m 755 {PLAYING_AGENT} /opt/former/bin/pi", check=True)
        machine.install_policy(PLAYING_POLICY.replace(PLAYING_AGENT, "/opt/former/bin/pi"))
        machine.root(LEFT[path], check=True)
        if path == "/opt/former":
            machine.install_policy(PLAYING_POLICY)
        for _ in range(2):  # and is not forgotten
            shown = said(machine, "remove", "--state", "--accounts", "--yes", status=INVALID)
            assert f"{path} belongs to the group pi-agent" in shown, shown
            assert machine.root(["getent", "group", "pi-agent"]).returncode == 0
        machine.root(["chgrp", "root", path], check=True)
        assert "done: remove the account pi-agent-alice\n" in said(machine, "remove", "--state", "--accounts", "--yes")
        assert machine.root(["getent", "group", "pi-agent"]).returncode == 2
    finally:
        machine.root("cp -a /root/kept/* /etc/ && rm -r /root/kept; rm -rf /opt/former /etc/pi-agent/keys", check=True)
        machine.install_policy(PLAYING_POLICY)

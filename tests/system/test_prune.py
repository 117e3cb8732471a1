"""pi-agentctl user prune: homes and accounts of agents whose people left the policy or the host go, and nothing else does."""

import contextlib
import json

import pytest
from administering import BUSY, USAGE, answer, ctl, said
from launching import DEMO, DENIED, INVALID, PLAYING_POLICY, POLICY_FILE, STATE, finish, leftovers, pi, session, wait_until_empty, written_policy

DAVE = PLAYING_POLICY.replace("  bob:\n", "  dave:\n    roots: [~/work]\n  bob:\n")
WORK = "/home/dave/work"
HOME = f"{STATE}/dave"
RECORD = "/var/lib/pi-agent/records/dave"
NOTHING_LEFT = "nothing to remove\n"

pytestmark = pytest.mark.usefixtures("playing")


def account_exists(machine, name="pi-agent-dave"):
    return machine.root(["getent", "passwd", name]).returncode == 0


def home_exists(machine, path=HOME):
    return machine.root(["test", "-e", path]).returncode == 0


def homes(machine):
    return set(machine.root(["ls", "-A", STATE], check=True).stdout.decode().split())


@pytest.fixture
def dave(machine):
    """A user of the policy whose agent has a home, with what an agent can make there."""
    said(machine, "user", "prune", "--yes")  # what other tests left
    machine.root(["useradd", "--create-home", "dave"], check=True)
    machine.root(["install", "-d", "-o", "dave", "-g", "dave", WORK], check=True)
    try:
        machine.install_policy(DAVE)
        pi(machine, "sh", "mkdir -m 0 ~/closed; ln -s /etc ~/etc; echo x >~/made", user="dave", cwd=WORK, check=True)
        yield machine
    finally:
        machine.install_policy(PLAYING_POLICY)
        machine.root(f"userdel --remove dave; userdel pi-agent-dave; rm -rf {HOME}")


def left_of(machine):
    return answer(machine, "user", "prune", "--dry-run")["left"]


def test_who_left_the_policy_is_named_by_apply_and_gone_after_prune(dave):
    machine = dave
    before = homes(machine)
    assert said(machine, "user", "prune", "--dry-run") == NOTHING_LEFT
    machine.write(POLICY_FILE, PLAYING_POLICY)
    shown = said(machine, "apply", "--no-canary")
    assert f"left behind: the home of dave's agent, {HOME}: dave left the policy\n" in shown, shown
    assert "left behind: the account pi-agent-dave: dave left the policy\n" in shown and "'sudo pi-agentctl user prune' removes" in shown, shown
    home, account = left_of(machine)
    assert (home["what"], home["user"], home["account"], home["path"], home["kept"]) == ("home", "dave", "pi-agent-dave", HOME, None)
    assert home["bytes"] > 0 and (account["what"], account["account"], account["path"], account["bytes"]) == ("account", "pi-agent-dave", None, None)
    assert f"would: remove the home of dave's agent, {HOME} (" in said(machine, "user", "prune", "-n")
    assert "use --yes" in said(machine, "user", "prune", status=USAGE)
    assert home_exists(machine) and account_exists(machine) and home_exists(machine, RECORD)
    shown = said(machine, "user", "prune", "-y")
    assert f"done: remove the home of dave's agent, {HOME}\n" in shown and "done: remove the account pi-agent-dave\n" in shown, shown
    assert not home_exists(machine) and not account_exists(machine) and not home_exists(machine, RECORD)
    assert machine.root(["getent", "group", "pi-agent-dave"]).returncode == 2
    assert homes(machine) == before - {"dave"} and account_exists(machine, "pi-agent-alice") and account_exists(machine, "pi-agent-bob")
    assert said(machine, "user", "prune", "-y") == NOTHING_LEFT and "left behind" not in said(machine, "apply", "--no-canary")
    machine.install_policy(DAVE)
    assert pi(machine, "sh", "test ! -e ~/made && echo new", user="dave", cwd=WORK).stdout == b"new\n"


def test_who_left_the_host_is_gone_too(dave):
    machine = dave
    machine.write(POLICY_FILE, PLAYING_POLICY)
    machine.root(["userdel", "dave"], check=True)
    shown = said(machine, "user", "prune", "--yes")
    assert "dave left this host" in shown and "done: remove the account pi-agent-dave\n" in shown, shown
    assert not home_exists(machine) and not account_exists(machine)


def test_while_the_policy_names_somebody_whom_the_host_does_not_know_nothing_goes(dave):
    """Their directory service may just not answer."""
    machine = dave
    machine.root("cp -a /etc/passwd /root/passwd && sed -i /^dave:/d /etc/passwd", check=True)
    try:
        shown = said(machine, "user", "prune", "--yes", status=INVALID)
        assert "this host does not know 'dave', so nobody can tell who left" in shown, shown
    finally:
        machine.root(["mv", "/root/passwd", "/etc/passwd"], check=True)
    assert home_exists(machine) and account_exists(machine)


def test_what_a_session_uses_stays(dave):
    machine = dave
    with session(machine, "sh", "echo ready; cat", user="dave", cwd=WORK) as running:
        machine.write(POLICY_FILE, PLAYING_POLICY)  # not applied, which would end it
        shown = said(machine, "user", "prune", "--yes")
        assert "dave left the policy, but dave has a session; end it first\n" in shown and shown.endswith(NOTHING_LEFT), shown
        assert [each["kept"] is not None for each in left_of(machine)] == [True, True]
        assert running.poll() is None and finish(running)[0] == 0
    assert home_exists(machine) and account_exists(machine)
    wait_until_empty(lambda: leftovers(machine))
    assert "done: remove the account pi-agent-dave\n" in said(machine, "user", "prune", "--yes")


def test_while_homes_are_not_where_the_policy_says_nothing_goes(dave):
    """The account would look as if it had no home, and whoever got its number would get the home's files."""
    machine = dave
    machine.root(["mkdir", "/srv/agents"], check=True)
    try:
        machine.write(POLICY_FILE, PLAYING_POLICY.replace("agent:\n", "agent:\n  state_dir: /srv/agents\n"))
        shown = said(machine, "user", "prune", "--yes", status=INVALID)
        assert "the agents' homes are in /var/lib/pi-agent; move them to /srv/agents: sudo pi-agentctl state move" in shown, shown
    finally:
        machine.root(["rmdir", "/srv/agents"], check=True)
    assert home_exists(machine) and account_exists(machine)


def test_links_follow_to_nothing(dave):
    """The agent's own links, and one that somebody left where homes are."""
    machine = dave
    machine.root("mkdir -p /srv/precious/home && chmod -R a+rwX /srv/precious && echo x >/srv/precious/home/file && chmod a+rw /srv/precious/home/file", check=True)
    pi(machine, "sh", "ln -s /srv/precious ~/.cache; ln -s /srv/precious/home/file ~/file", user="dave", cwd=WORK, check=True)
    machine.root(["ln", "-s", "/srv/precious", f"{STATE}/gone"], check=True)
    try:
        machine.install_policy(PLAYING_POLICY)
        assert [each["user"] for each in left_of(machine)] == ["dave", "dave"]
        said(machine, "user", "prune", "--yes")
        assert machine.read("/srv/precious/home/file") == b"x\n" and home_exists(machine, f"{STATE}/gone/home/file")
    finally:
        machine.root(["rm", "-r", f"{STATE}/gone", "/srv/precious"], check=True)


# Something of dave's that pi-agent did not make so, the change that makes it, and why it stays.
NOT_OURS = {
    "a home of a person's": (f"chown eve:eve {HOME}/home", f"chown pi-agent-dave:pi-agent-dave {HOME}/home", "it belongs to eve"),
    "a home of another group": (f"chgrp devs {HOME}/home", f"chgrp pi-agent-dave {HOME}/home", "its group is not the primary group of pi-agent-dave"),
    "an account outside of the agents' group": ("gpasswd -d pi-agent-dave pi-agent", "true", "it is not in the group pi-agent"),
    "an ordinary number": (f"usermod -u 4711 pi-agent-dave && chown -R 4711 {HOME}/home {HOME}/staging", "true", "its number is not one of"),
}


@pytest.mark.parametrize("what", NOT_OURS)
def test_what_is_not_as_apply_made_it_stays_and_is_told(dave, what):
    change, back, why = NOT_OURS[what]
    machine = dave
    machine.install_policy(PLAYING_POLICY)
    machine.root(change, check=True)
    try:
        shown = said(machine, "user", "prune", "--yes")
        assert f"dave left the policy, but {why}" in shown, shown
        assert account_exists(machine)
    finally:
        machine.root(back, check=True)


@contextlib.contextmanager
def account(machine, name, *options):
    machine.root(["useradd", *options, name], check=True)
    try:
        yield
    finally:
        machine.root(["userdel", name])


def test_accounts_of_somebody_elses_making_are_not_even_listed(machine):
    said(machine, "user", "prune", "--yes")
    with (
        account(machine, "pi-agent-zoe", "--system", "--comment", "pi-agent of zoe", "--home-dir", "/srv", "--shell", "/usr/sbin/nologin"),
        account(machine, "pi-agent-yan", "--system", "--comment", "pi-agent of yan", "--home-dir", "/var/lib/pi-agent", "--shell", "/bin/bash"),
        account(machine, "pi-agent-xia", "--system", "--comment", "of xia", "--home-dir", "/var/lib/pi-agent", "--shell", "/usr/sbin/nologin"),
    ):
        assert said(machine, "user", "prune", "--yes") == NOTHING_LEFT


def test_one_that_cannot_be_removed_keeps_no_other(dave):
    machine = dave
    machine.install_policy(PLAYING_POLICY)
    machine.root(f"mkdir -p {STATE}/gone/home && chown -R daemon {STATE}/gone/home && touch {HOME}/strange", check=True)
    try:
        done = ctl(machine, "user", "prune", "--yes")
        assert done.returncode == 71 and b"contains something that is not pi-agent's" in done.stderr, done
        assert account_exists(machine) and b"done: " not in done.stdout
        assert b"it belongs to daemon" in done.stdout, done
    finally:
        machine.root(f"rm -rf {STATE}/gone {HOME}/strange", check=True)
    said(machine, "user", "prune", "--yes")
    assert not account_exists(machine)


def test_only_root_prunes_and_only_a_list_is_for_programs(machine):
    done = machine.run(["pi-agentctl", "user", "prune"], user="alice", cwd=DEMO)
    assert done.returncode == DENIED and b"only root can run it" in done.stderr, done
    assert "needs --dry-run" in said(machine, "user", "prune", "--json", "--yes", status=USAGE)


def test_it_waits_for_no_other_command(machine, dave):
    machine.install_policy(PLAYING_POLICY)
    holder = machine.popen(["flock", "/run/pi-agentctl.lock", "sleep", "1000"], user="root")
    try:
        while machine.root(["flock", "--nonblock", "/run/pi-agentctl.lock", "true"]).returncode == 0:
            pass
        assert "another 'pi-agentctl apply' is running" in said(machine, "user", "prune", "--yes", status=BUSY)
    finally:
        holder.kill_all()
        holder.wait()
    assert json.loads(ctl(machine, "user", "prune", "-n", "--json").stdout)["left"]
    with written_policy(machine, DAVE):
        assert said(machine, "user", "prune", "-n") == NOTHING_LEFT  # they came back

"""pi-agentctl apply: what it makes of the host, that a second run changes nothing, and that it never leaves half of a rule behind."""

import contextlib
import re

import pytest
from launching import (
    DENIED, INVALID, POLICY_FILE, STANDARD_POLICY, assert_refused, owner_and_mode, picture, pi, written_policy,
)  # fmt: skip

RULE = "/etc/sudoers.d/pi-agent"
STATE = "/var/lib/pi-agent"
AWAY = "/var/lib/pi-agent-away"
DEVS = "/srv/devs"


def apply(machine, *options):
    """Status, what it did, what it complained of; without the warnings that it gives on every machine that has no fd and rg, and what others left."""
    done = machine.root(["pi-agentctl", "apply", "--no-canary", *options])
    complaints = [line for line in done.stderr.decode().splitlines(keepends=True) if ": warning: this host has no " not in line]
    return done.returncode, [line for line in done.stdout.decode().splitlines() if not line.startswith("left behind: ")], "".join(complaints)


def picture_of_host(machine):
    """What apply could change: sudo's rules, accounts, directories, the agent's program; without the time that says when it last succeeded."""
    script = "cat /etc/passwd /etc/group /etc/shadow; ls -la --time-style=full-iso /usr/lib/pi-agent /etc/sudoers.d"
    directories = b"".join(picture(machine, directory) for directory in ("/etc/sudoers.d", STATE))
    directories = re.sub(rb"(\./applied/last\.json(\|[^|]*){4}\|)[^|]*", rb"\1", directories)
    return machine.root(script, check=True).stdout + directories


@pytest.fixture
def applied(machine):
    """Whatever a test did to the host, the standard policy is in force afterwards."""
    yield machine
    machine.install_policy(STANDARD_POLICY)


@contextlib.contextmanager
def moved_away(machine, path):
    machine.root(["mv", path, f"{path}-away"], check=True)
    try:
        yield
    finally:
        machine.root(["mv", f"{path}-away", path], check=True)


@contextlib.contextmanager
def without_anything(machine):
    """A host on which apply never ran: no rule, no state directory, no agent accounts."""
    accounts = "pi-agent-alice pi-agent-bob pi-agent-carol"
    machine.root(["mv", STATE, AWAY], check=True)
    saved = machine.root("cp -a /etc/passwd /etc/shadow /etc/group /etc/gshadow /root/", check=True)
    assert saved.returncode == 0
    machine.root("chown root:root /usr/lib/pi-agent/agent && chmod 0755 /usr/lib/pi-agent/agent", check=True)
    machine.root(f"rm {RULE}; for name in {accounts}; do userdel $name; done; groupdel pi-agent; true")
    try:
        yield
    finally:  # the same numbers again: the state that was moved away belongs to them
        machine.root("cd /root && cp -a passwd shadow group gshadow /etc/ && rm passwd shadow group gshadow", check=True)
        machine.root(f"rm -rf {STATE} && mv {AWAY} {STATE}", check=True)


def test_apply_makes_all_that_a_new_host_lacks_and_says_so(applied):
    machine = applied
    with without_anything(machine):
        before = machine.root("cat /etc/passwd /etc/group; ls /etc/sudoers.d /var/lib", check=True).stdout
        status, would, _ = apply(machine, "--dry-run")
        rule = [line for line in would if line.startswith("    ")]
        would = [line for line in would if line not in rule]
        assert status == 0 and would and all(line.startswith("would: ") for line in would), would
        assert '    +alice ALL=(root) NOPASSWD: /usr/libexec/pi-agent/pi-agent-runner ""' in rule, rule
        assert machine.root("cat /etc/passwd /etc/group; ls /etc/sudoers.d /var/lib", check=True).stdout == before

        status, done, complaint = apply(machine)
        assert (status, complaint) == (0, "")
        assert [line.replace("would: ", "done: ") for line in would] == done
        for name in ("alice", "bob", "carol"):
            assert f"done: create the account pi-agent-{name}" in done
            shown = machine.root(["getent", "passwd", f"pi-agent-{name}"], check=True).stdout.decode().strip()
            uid, shell = int(shown.split(":")[2]), shown.split(":")[6]
            assert 0 < uid < 1000 and shell.endswith("nologin"), shown
        for directory, mode in ((STATE, 711), (f"{STATE}/users", 711), (f"{STATE}/sessions", 700)):
            assert owner_and_mode(machine, directory) == f"root:root {mode}"
        assert owner_and_mode(machine, RULE) == "root:root 440"
        rule = machine.read(RULE).decode()
        for who in ("alice", "bob", "%devs"):
            assert f'{who} ALL=(root) NOPASSWD: /usr/libexec/pi-agent/pi-agent-runner ""\n' in rule
        assert "eve" not in rule
        assert machine.root(["visudo", "-c"]).returncode == 0
        assert apply(machine) == (0, ["nothing to do"], "")


def test_a_second_run_changes_nothing(applied):
    assert pi(applied, "--version").returncode == 0  # nor does it take back what a launch made
    before = picture_of_host(applied)
    assert apply(applied) == (0, ["nothing to do"], "")
    assert apply(applied, "--dry-run") == (0, ["nothing to do"], "")
    assert picture_of_host(applied) == before


def test_a_dry_run_of_another_policy_changes_nothing(applied):
    machine = applied
    policy = STANDARD_POLICY.replace("  bob:\n", "  eve:\n    roots: [/srv/devs]\n    run_as: helper\n  bob:\n")
    before = picture_of_host(machine)
    with written_policy(machine, policy):
        status, would, _ = apply(machine, "--dry-run")
    assert status == 78 or any("helper" in line for line in would), would
    assert picture_of_host(machine) == before


def test_a_damaged_rule_is_made_again(applied):
    machine = applied
    good = machine.read(RULE)
    for damage in (f"echo '# more' >>{RULE}", f"chmod 0644 {RULE}", f"rm {RULE}"):
        machine.root(damage, check=True)
        status, done, _ = apply(machine)
        assert (status, done) == (0, [f"done: install the sudo rule {RULE}"])
        assert machine.read(RULE) == good and owner_and_mode(machine, RULE) == "root:root 440"


@pytest.mark.parametrize("installed", [True, False], ids=["with a rule", "without one"])
def test_where_sudo_cannot_read_its_rules_no_new_one_is_installed(applied, installed):
    """sudo stops working for everybody when one file is wrong: our rule must not be part of that."""
    machine = applied
    before = machine.read(RULE) + b"# as it was\n"
    if installed:
        machine.write(RULE, before, mode=0o440)
    else:
        machine.root(["rm", RULE], check=True)
    machine.write("/etc/sudoers.d/zz-broken", "nonsense here =\n", mode=0o440)
    try:
        status, done, complaint = apply(machine)
        assert status == INVALID and "visudo -c refuses the sudo configuration: " in complaint and done == [], (done, complaint)
        assert "zz-broken" in complaint and "parsed OK" not in complaint
        assert "zz-broken" in machine.root(["pi-agentctl", "check"]).stderr.decode()
        names = machine.root(["ls", "/etc/sudoers.d"], check=True).stdout.decode().split()
        assert "pi-agent.new" not in names and ("pi-agent" in names) == installed
        if installed:
            assert machine.read(RULE) == before
    finally:
        machine.root(["rm", "/etc/sudoers.d/zz-broken"], check=True)


def test_a_file_of_sudos_that_everybody_may_read_is_in_nobodys_way(applied):
    """sudo takes it; visudo's own check refuses its mode."""
    machine = applied
    machine.root(["rm", RULE], check=True)
    machine.write("/etc/sudoers.d/zz-open", "Defaults:eve !lecture\n", mode=0o644)
    try:
        status, done, complaint = apply(machine)
        assert (status, done, complaint) == (0, [f"done: install the sudo rule {RULE}"], "")
        assert "zz-open" not in machine.root(["pi-agentctl", "check"], check=True).stderr.decode()
        assert pi(machine, "--version").returncode == 0
    finally:
        machine.root(["rm", "/etc/sudoers.d/zz-open"], check=True)


def test_without_visudo_nothing_is_changed(applied):
    machine = applied
    machine.root(["rm", RULE], check=True)
    before = picture_of_host(machine)
    with moved_away(machine, "/usr/sbin/visudo"):
        status, done, complaint = apply(machine)
    assert status != 0 and done == [] and "visudo" in complaint, (status, done, complaint)
    assert picture_of_host(machine) == before


def test_a_user_that_leaves_the_policy_may_nothing_any_more_and_keeps_account_and_state(applied):
    """Nothing is deleted: the state is the user's work, and an account's number must not become another one's."""
    machine = applied
    pi(machine, "--version", user="bob", cwd="/home/bob/work/demo")
    account = machine.root(["getent", "passwd", "pi-agent-bob"], check=True).stdout
    state = owner_and_mode(machine, f"{STATE}/users/bob/home")
    group = '  "%devs":\n    roots: [/srv/devs]\n'  # bob is in it
    without_bob = STANDARD_POLICY.replace("  bob:\n    roots: [~/work]\n", "").replace(group, "")
    assert "bob:" not in without_bob and "devs" not in without_bob.split("users:")[1]
    with written_policy(machine, without_bob):
        assert apply(machine) == (0, [f"done: install the sudo rule {RULE}"], "")
        assert b"bob" not in machine.read(RULE)
        assert machine.run(["sudo", "-n", "/usr/libexec/pi-agent/pi-agent-runner"], user="bob").returncode == 1
        assert_refused(pi(machine, user="bob", cwd="/home/bob/work/demo"), DENIED, "does not authorise bob")
        assert machine.root(["getent", "passwd", "pi-agent-bob"], check=True).stdout == account
        assert owner_and_mode(machine, f"{STATE}/users/bob/home") == state
    assert apply(machine) == (0, [f"done: install the sudo rule {RULE}"], "")
    assert pi(machine, "--version", user="bob", cwd="/home/bob/work/demo").returncode == 0


def test_a_member_who_joins_a_group_later_is_told_what_is_missing(applied):
    machine = applied
    machine.root(["useradd", "--create-home", "--groups", "devs", "dave"], check=True)
    try:
        refused = pi(machine, "--version", user="dave", cwd=DEVS)
        assert_refused(refused, INVALID, "the agent's account pi-agent-dave", "does not exist", "joined the group", "ask the administrator to run: sudo pi-agentctl apply")
        status, done, _ = apply(machine)
        assert status == 0 and "done: create the account pi-agent-dave" in done, done
        assert pi(machine, "--version", user="dave", cwd=DEVS).returncode == 0
    finally:
        machine.root(f"userdel --remove dave; userdel pi-agent-dave; rm -rf {STATE}/users/dave")


def test_the_emergency_stop_takes_the_rule_away_whatever_else_is_wrong(applied):
    machine = applied
    with written_policy(machine, STANDARD_POLICY + "wrapper: {enable: false}\n"):
        with moved_away(machine, "/usr/sbin/visudo"):
            status, done, _ = apply(machine)
        assert status == 0 and done[-1] == f"done: remove the sudo rule {RULE}: nobody can start pi now", done
        assert machine.root(["test", "-e", RULE]).returncode == 1
    assert apply(machine) == (0, [f"done: install the sudo rule {RULE}"], "")


def test_only_root_applies(machine):
    done = machine.run(["pi-agentctl", "apply"], user="alice")
    assert done.returncode == DENIED and b"only root can run it" in done.stderr


def test_a_policy_that_is_wrong_changes_nothing(applied):
    machine = applied
    before = picture_of_host(machine)
    with written_policy(machine, STANDARD_POLICY.replace("roots: [~/work]", "roots: [/]")):
        status, done, complaint = apply(machine)
        assert status == INVALID and done == [] and f"{POLICY_FILE}:" in complaint
        assert picture_of_host(machine) == before

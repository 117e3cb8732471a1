"""users.d: a file for each user, of which a start reads its own alone."""

import pytest
from administering import USAGE, ctl, said
from launching import DENIED, INVALID, POLICY_FILE, STANDARD_POLICY, pi

RULE = "/etc/sudoers.d/pi-agent"
USERS = "/etc/pi-agent/users.d"
BOBS = f"{USERS}/bob.yaml"
BOBS_PLACE = "/home/bob/work/demo"
ALICE_ALONE = STANDARD_POLICY.replace("  bob:\n    roots: [~/work]\n", "")


@pytest.fixture
def files(machine):
    """Bob is in users.d, alice in policy.yaml."""
    assert ALICE_ALONE != STANDARD_POLICY and "accounts: per-user" in ALICE_ALONE
    machine.write(BOBS, "roots: [~/work]\n")
    machine.install_policy(ALICE_ALONE)
    yield machine
    machine.root(["rm", "-rf", USERS, POLICY_FILE + ".edit"], check=True)
    machine.install_policy(STANDARD_POLICY)


def test_a_user_of_users_d_works_as_one_of_the_policy(files):
    assert "policy is valid: " in said(files, "check")
    done = pi(files, "-p", "say hello", user="bob", cwd=BOBS_PLACE)
    assert done.returncode == 0, done
    shown = said(files, "explain", "--user", "bob", "--cwd", BOBS_PLACE)
    assert f"{BOBS}:1:" in shown, shown
    refused = pi(files, "-p", "say hello", user="bob", cwd="/tmp")
    assert refused.returncode == DENIED and f"{BOBS}:1:" in refused.stderr.decode(), refused
    assert pi(files, "-p", "say hello").returncode == 0
    assert pi(files, "-p", "say hello", user="eve", cwd="/tmp").returncode == DENIED


def test_a_mistake_in_one_file_stops_its_user_alone_and_check_tells_it(files):
    files.write(BOBS, "rots: [~/work]\n")
    stopped = pi(files, "-p", "say hello", user="bob", cwd=BOBS_PLACE)
    assert stopped.returncode == INVALID and "the administrator's policy has 2 errors, so you cannot start pi. Ask them to run: pi-agentctl check" in stopped.stderr.decode(), stopped
    assert pi(files, "-p", "say hello").returncode == 0
    told = ctl(files, "check")
    assert told.returncode == INVALID and f"{BOBS}:1:1: users.bob.rots: unknown key" in told.stderr.decode(), told


def test_a_file_that_others_can_write_is_refused(files):
    files.root(["chmod", "0666", BOBS], check=True)
    refused = pi(files, "-p", "say hello", user="bob", cwd=BOBS_PLACE)
    assert refused.returncode == INVALID and "writable by others than root" in refused.stderr.decode(), refused


def test_a_user_needs_to_read_only_the_own_file(files):
    files.root(["chmod", "0711", USERS], check=True)
    files.write(f"{USERS}/carol.yaml", "roots: [~/work]\n", mode=0o600)
    assert pi(files, "-p", "say hello", user="bob", cwd=BOBS_PLACE).returncode == 0
    told = ctl(files, "check")
    assert told.returncode == INVALID and "carol.yaml" in told.stderr.decode() and "not readable for all" in told.stderr.decode(), told


def test_apply_takes_who_left_and_rollback_brings_the_file_back(files):
    assert b"\nbob ALL" not in files.read(RULE) and b"\n%devs ALL" in files.read(RULE)  # bob is one of devs
    files.write(f"{USERS}/eve.yaml", "roots: [/srv/devs]\n")
    said(files, "apply", "--no-canary")
    assert b"\neve ALL=(root)" in files.read(RULE)
    files.root(["rm", BOBS, f"{USERS}/eve.yaml"], check=True)
    assert "-eve ALL=(root)" in said(files, "apply", "--dry-run")
    said(files, "apply", "--no-canary")
    assert pi(files, "-p", "say hello", user="bob", cwd=BOBS_PLACE).returncode == DENIED
    said(files, "rollback", "--yes")
    assert files.read(BOBS) == b"roots: [~/work]\n"
    assert pi(files, "-p", "say hello", user="bob", cwd=BOBS_PLACE).returncode == 0


def test_edit_begins_a_file_for_a_user(files):
    files.write("/usr/local/bin/test-editor", "#!/bin/sh\necho 'roots: [/srv/devs]' >>\"$1\"\n", mode=0o755)
    shown = ctl(files, "edit", "users.d/carol.yaml", env={"EDITOR": "/usr/local/bin/test-editor", "VISUAL": "/usr/local/bin/test-editor"})
    assert shown.returncode == 0, shown
    text = files.read(f"{USERS}/carol.yaml").decode()
    assert text.startswith("# What the policy says of carol") and text.endswith("roots: [/srv/devs]\n"), text
    refused = ctl(files, "edit", "users.d/../carol.yaml", env={"EDITOR": "true"})
    assert refused.returncode == USAGE and "users.d/NAME.yaml with the name of a user" in refused.stderr.decode(), refused

"""pi-agentctl apply is a transaction: under a policy with which nobody could start, nothing has changed afterwards; what fails later goes back."""

import contextlib
import json

import pytest
from administering import said
from launching import PLAYING_AGENT, PLAYING_POLICY, POLICY_FILE, finish, owner_and_mode, picture, pi, session, wait_until_empty
from shells import Shell
from test_apply import RULE, moved_away
from test_apply_first_looks import CANARY, a_sandbox_that_does_not_hold

APPLIED = "/var/lib/pi-agent/applied"
DIRECTORIES = (APPLIED, "/etc/sudoers.d", "/etc/pi-agent")
UNAVAILABLE, INVALID, CHANGED = 69, 78, 75
STOPPED = PLAYING_POLICY + "wrapper: {enable: false}\n"
OTHER = PLAYING_POLICY + "box_notes: false\n"
# A new account, another owner of the agent's program, another name of the command, and another sudo rule. The trial is alice's, so the new account has no files yet.
MORE = PLAYING_POLICY.replace('  "%devs":\n', '  eve: {roots: [/srv/devs], run_as: helper}\n  "%devs":\n') + "wrapper: {hide_direct_binary: false, command_name: agent}\n"
assert MORE.count("helper") == 1


def state_of_host(machine):
    """What apply changes, and what a session does not; without times, which are new where something went back."""
    places = f"/usr/bin /usr/bin/* /usr/lib/pi-agent {PLAYING_AGENT} /var/lib/pi-agent /var/lib/pi-agent/* {APPLIED}/* /etc/pi-agent/* /etc/sudoers.d/*"
    files = f"/etc/passwd /etc/group /etc/shadow /etc/sudoers.d/* {APPLIED}/*"
    return machine.root(f"stat -c '%n %u:%g %a' {places}; for file in {files}; do echo $file; cat $file; done", check=True).stdout.decode().splitlines()


@pytest.fixture
def host(playing):
    playing.install_policy(PLAYING_POLICY)
    yield playing
    playing.root("rm -rf /var/lib/pi-agent/users/eve", check=True)
    playing.write(POLICY_FILE, PLAYING_POLICY)
    playing.root("rm -f /etc/pi-agent/policy.yaml.edit; pi-agentctl apply --no-canary; if getent passwd helper; then userdel helper; fi", check=True)


@contextlib.contextmanager
def clashing_account(machine):
    machine.root("useradd -o -u $(id -u alice) -g nogroup -M clash", check=True)
    try:
        yield
    finally:
        machine.root(["userdel", "-f", "clash"], check=True)


WITHOUT_BOB = PLAYING_POLICY.replace("  bob:\n    roots: [~/work]\n", "")
# {what is wrong: (a policy under which nobody could start, what else is wrong meanwhile, words of the reason)}
CASES = {
    "a method whose program is missing": (WITHOUT_BOB + "sandbox: {method: bwrap}\n", lambda machine: moved_away(machine, "/usr/bin/bwrap"), "bwrap needs /usr/bin/bwrap"),
    "an agent that is missing": (WITHOUT_BOB.replace(PLAYING_AGENT, "/usr/lib/pi-agent/nowhere/bin/pi"), None, "/usr/lib/pi-agent/nowhere"),
    "a root that is a file": (WITHOUT_BOB.replace("~/projects, ", "/usr/bin/env, "), None, "it is not a directory"),
    "an account of a user's number": (WITHOUT_BOB.replace("users:\n", "users:\n  eve: {roots: [/srv/devs], run_as: clash}\n"), clashing_account, "has the uid of 'alice'"),
    "a group that opens the host": (WITHOUT_BOB.replace("  accounts: per-user\n", "  accounts: per-user\n  group: disk\n"), None, "is a group of administrators"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_under_a_policy_with_which_nobody_could_start_nothing_has_changed(host, case):
    policy, meanwhile, words = CASES[case]
    assert policy != WITHOUT_BOB
    with session(host, "sh", "echo ready; cat") as running:
        with meanwhile(host) if meanwhile else contextlib.nullcontext():
            host.write(POLICY_FILE, policy)
            before = state_of_host(host), [picture(host, directory) for directory in DIRECTORIES]
            assert words in said(host, "check", status=INVALID)
            for options in ((), ("--no-canary",)) if "method" not in case else ((),):
                done = host.root(["pi-agentctl", "apply", *options])
                assert done.returncode == INVALID and words in done.stderr.decode() and done.stdout == b"", done
                assert (state_of_host(host), [picture(host, directory) for directory in DIRECTORIES]) == before
        assert running.poll() is None
        assert finish(running)[0] == 0
    host.write(POLICY_FILE, PLAYING_POLICY)
    assert pi(host, "sh", "true").returncode == 0


def test_a_sandbox_that_does_not_hold_takes_accounts_program_and_rule_back(host):
    host.root(["rm", RULE], check=True)  # nobody could start before, so it shows only after the change
    host.write(POLICY_FILE, MORE)
    before = state_of_host(host)
    with a_sandbox_that_does_not_hold(host):
        done = host.root(["pi-agentctl", "apply"])
    assert done.returncode == UNAVAILABLE, done
    assert b"nothing is applied, and what had been changed is as it was: the sandbox (systemd) was tried as " in done.stderr, done
    for line in ("create the account helper", "make the command /usr/bin/agent, another name of /usr/bin/pi", "remove the command /usr/bin/agent", f"install the sudo rule {RULE}", "take the sudo rule back: nobody can start pi", "remove the account helper"):
        assert f"done: {line}\n" in done.stdout.decode(), (line, done)
    assert state_of_host(host) == before, done
    assert "unfinished" not in host.root(["ls", APPLIED], check=True).stdout.decode()
    # Where it holds, the same command goes through.
    assert "done: create the account helper" in said(host, "apply")
    assert owner_and_mode(host, PLAYING_AGENT).startswith("root:root")
    assert host.root(["getent", "passwd", "helper"]).returncode == 0


def test_a_rollback_that_fails_puts_the_policy_back_that_it_replaced(host):
    host.install_policy(OTHER)
    before = host.read(RULE)
    with a_sandbox_that_does_not_hold(host):
        shown = said(host, "rollback", "--yes", status=UNAVAILABLE)
    assert "nothing is applied, and what had been changed is as it was: the sandbox (systemd) was tried as alice" in shown, shown
    assert host.read(POLICY_FILE).decode() == OTHER and host.read(RULE) == before
    assert "box_notes" in host.read(f"{APPLIED}/last.json").decode()
    said(host, "rollback", "--yes", "--no-canary")
    assert host.read(POLICY_FILE).decode() == PLAYING_POLICY


def test_an_edit_that_cannot_be_applied_is_a_draft_again(host):
    host.write("/usr/local/bin/test-editor", '#!/bin/sh\necho "box_notes: false" >>"$1"\n', mode=0o755)
    command = ["sh", "-c", "pi-agentctl edit; echo status=$?="]
    with a_sandbox_that_does_not_hold(host), Shell(host, user="root", cwd="/", columns=300, command=command, env={"EDITOR": "/usr/local/bin/test-editor"}) as shell:
        shell.expect(r"Apply it now\? \(y or n\)")
        shell.type("y\n")
        shell.expect(rb"your draft is /etc/pi-agent/policy.yaml.edit", seconds=60)
        shell.expect("status=69=", seconds=60)
    assert host.read(POLICY_FILE).decode() == PLAYING_POLICY
    assert host.read(f"{POLICY_FILE}.edit").decode() == OTHER


def test_an_apply_that_waits_for_its_trial_does_not_bring_the_rule_back_after_the_emergency_stop(host):
    """The lock is free during the trial, because it is a user's process that it waits for."""
    host.root(["rm", RULE], check=True)
    with moved_away(host, CANARY):
        host.write(CANARY, "#!/bin/sh\nexec sleep 100\n", mode=0o755)
        with host.popen(["pi-agentctl", "apply"], user="root", cwd="/") as waiting:
            wait_until_empty(lambda: b"" if host.root(["test", "-e", RULE]).returncode == 0 else b"no rule yet", deadline=30)
            wait_until_empty(lambda: b"" if host.root("ls /run/pi-agent/sessions/*/user").stdout else b"no session yet", deadline=30)
            assert host.root(["test", "-e", f"{APPLIED}/unfinished.json"]).returncode == 0
            host.write(POLICY_FILE, STOPPED)
            said(host, "apply")
            status, out, err = finish(waiting, timeout=150)
    assert status == CHANGED and b"another command change" in err, (status, out, err)  # or holds the lock just then
    assert host.root(["test", "-e", RULE]).returncode == 1 and b"put the former" not in out
    assert json.loads(host.read(f"{APPLIED}/last.json"))["files"][0]["text"] == STOPPED
    assert host.root(["test", "-e", f"{APPLIED}/unfinished.json"]).returncode == 1

"""pi-agentctl as administrators expect of any tool: help, options that pass on, answers that say what is true."""

import re

import pytest
from administering import said
from launching import DEMO, INVALID, POLICY_FILE, STANDARD_POLICY, pi, written_policy
from shells import Shell

OTHER = STANDARD_POLICY + "network: loopback\n"


@pytest.fixture
def applied(machine):
    machine.install_policy(STANDARD_POLICY)
    yield machine
    machine.install_policy(STANDARD_POLICY)


def test_help_and_the_shells_options_are_as_of_other_tools(applied):
    assert said(applied, "help") == said(applied, "--help")
    assert said(applied, "help", "check") == said(applied, "check", "--help")
    for words in (["-c", "echo $0 of $(id -un)", "here"], ["--", "-c", "echo $0 of $(id -un)", "here"]):
        done = applied.run(["pi-agentctl", "shell", *words], user="alice", cwd=DEMO)
        assert done.stdout == b"here of pi-agent-alice\n", done


def test_verbose_says_what_a_command_starts_and_nothing_else_does(applied):
    told = rb"(?m)^pi-agentctl: \d\d:\d\d:\d\d\.\d{3}: process \d+ runs visudo .*\npi-agentctl: \S+: process \d+ ended with status 0$"
    quiet = applied.run(["pi-agentctl", "apply", "--show-rule"], user="root", env={"SPDLOG_LEVEL": "debug"}, check=True)
    for option in ("-v", "--verbose"):
        loud = applied.run(["pi-agentctl", "apply", "--show-rule", option], user="root", check=True)
        assert loud.stdout == quiet.stdout and re.search(told, loud.stderr), loud
    assert b"runs" not in quiet.stderr, quiet


def test_a_dry_run_of_a_rollback_says_what_it_would_do_and_no_more(applied):
    applied.install_policy(OTHER)
    shown = said(applied, "rollback", "--dry-run")
    assert f"would: write {POLICY_FILE}" in shown and "nothing to do" not in shown, shown


def test_short_options_are_the_long_ones(applied):
    applied.install_policy(OTHER)
    assert said(applied, "rollback", "-n") == said(applied, "rollback", "--dry-run")
    assert said(applied, "apply", "-n", "--no-canary") == said(applied, "apply", "--dry-run", "--no-canary")
    done = applied.root(["pi-agentctl", "rollback", "-y", "--no-canary"], check=True)
    assert done.stdout, done
    assert applied.read(POLICY_FILE).decode() == STANDARD_POLICY
    quiet = applied.root(["pi-agentctl", "check", "-q"], check=True)
    assert quiet.stdout == b"", quiet


def test_the_exit_statuses_are_in_the_long_help_alone(applied):
    for words in (["help"], ["help", "apply"], ["--help"]):
        assert "Exit status" not in said(applied, *words)
    assert "Exit status" in said(applied, "--help-all")
    assert b"Exit status" not in applied.run(["pi", "--pi-agent-help"], check=True).stdout


def test_a_refusal_names_a_code_that_explain_knows(applied):
    done = pi(applied, "sh", "true", cwd="/home/alice")
    assert done.stderr.decode().splitlines()[-1] == "pi: see: pi-agentctl explain E77-root", done
    told = applied.run(["pi-agentctl", "explain", "E77-root"], check=True).stdout.decode()
    assert told.startswith("E77-root: ") and "Administrator:" in told and max(map(len, told.splitlines())) <= 100, told
    for word in ("sudo-rule", "limits.memory", "users.alice.roots", "E64"):
        assert applied.run(["pi-agentctl", "explain", word], check=True).stdout
    unknown = applied.run(["pi-agentctl", "explain", "E77-nonsense"])
    assert unknown.returncode == 64 and unknown.stderr.endswith(b"see: pi-agentctl help explain\n"), unknown


def test_a_mistake_of_the_policy_ends_with_one_pointer(applied):
    with written_policy(applied, STANDARD_POLICY + "netwrok: none\n"):
        shown = said(applied, "check", status=INVALID)
    assert shown.count("see: ") == 1 and shown.endswith("pi-agentctl: see: pi-agentctl explain E78-policy\n"), shown


def test_tables_fit_a_terminal_and_are_whole_elsewhere(applied):
    with Shell(applied) as alice, Shell(applied, columns=300, user="root") as root:
        alice.type("pi --pi-agent-shell\n")
        alice.expect(r"[$#] $")
        whole = applied.root(["pi-agentctl", "sessions"], check=True).stdout.decode().splitlines()
        session = whole[1].split()[0]
        assert len(session) == 32 and "UNIT" in whole[0], whole
        root.type("pi-agentctl sessions\n")
        shown = root.expect(rb"SESSION +USER +AGE[^\n]*\n([0-9a-f]{8} [^\r\n]*)").group(1).decode()
        assert shown.startswith(session[:8] + " ") and len(shown) <= 100 and "~/" in shown, shown
        followed = applied.popen(["pi-agentctl", "history", "-f", session[:8]], user="root")
        alice.type("exit\n")
        out, err = followed.communicate(timeout=20)
        assert followed.returncode == 0 and b" ended: " in out, (out, err)


def test_a_key_of_the_whole_policy_is_not_suggested_for_a_user(applied):
    policy = STANDARD_POLICY.replace("    roots: [~/work]\n", "    roots: [~/work]\n    view: host\n")
    with written_policy(applied, policy):
        shown = said(applied, "check", status=INVALID)
    assert "users.bob.view: unknown key: 'view' holds for the whole policy, and cannot be set for one user or group" in shown, shown

"""pi-agentctl as administrators expect of any tool: help, options that pass on, answers that say what is true."""

import re

import pytest
from administering import said
from launching import DEMO, INVALID, POLICY_FILE, STANDARD_POLICY, written_policy

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
    quiet = applied.run(["pi-agentctl", "sudoers"], user="root", env={"SPDLOG_LEVEL": "debug"}, check=True)
    for option in ("-v", "--verbose"):
        loud = applied.run(["pi-agentctl", "sudoers", option], user="root", check=True)
        assert loud.stdout == quiet.stdout and re.search(told, loud.stderr), loud
    assert b"runs" not in quiet.stderr, quiet


def test_a_dry_run_of_a_rollback_says_what_it_would_do_and_no_more(applied):
    applied.install_policy(OTHER)
    shown = said(applied, "rollback", "--dry-run")
    assert f"would: write {POLICY_FILE}" in shown and "nothing to do" not in shown, shown


def test_a_key_of_the_whole_policy_is_not_suggested_for_a_user(applied):
    policy = STANDARD_POLICY.replace("    roots: [~/work]\n", "    roots: [~/work]\n    network: none\n")
    with written_policy(applied, policy):
        shown = said(applied, "check", status=INVALID)
    assert "users.bob.network: unknown key: 'network' holds for the whole policy, and cannot be said for one user or group" in shown, shown

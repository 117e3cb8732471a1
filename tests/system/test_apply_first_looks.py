"""pi-agentctl apply looks before it changes anything: what the method needs, whose the homes are, whether the sandbox holds."""

import contextlib
import json

import pytest
from launching import DEMO, INVALID, PLAYING_POLICY, POLICY_FILE, STATE, owner_and_mode, pi
from test_apply import RULE, moved_away, picture_of_host

UNAVAILABLE = 69


@pytest.fixture
def host(playing):
    assert pi(playing, "sh", "true").returncode == 0  # alice's agent has a home
    yield playing
    playing.write(POLICY_FILE, PLAYING_POLICY)
    playing.root("pi-agentctl state reset --user alice --yes; pi-agentctl apply --no-canary", check=True)


def errors(machine):
    done = machine.root(["pi-agentctl", "check", "--json"])
    return done.returncode, [error["message"] for error in json.loads(done.stdout)["errors"]]


def assert_nothing_is_applied(machine, words, status=INVALID):
    before = picture_of_host(machine)
    done = machine.root(["pi-agentctl", "apply"])
    assert done.returncode == status and all(word in done.stderr for word in words), done
    assert b"done: " not in done.stdout and picture_of_host(machine) == before, done
    without = machine.root(["pi-agentctl", "apply", "--no-canary", "--dry-run"])  # where no session can run yet, it is only told
    assert without.returncode == 0 and all(b"warning: " in line for line in without.stderr.splitlines() if words[0] in line), without
    assert all(word in without.stderr for word in words), without


@pytest.mark.parametrize(("method", "paths"), [("bwrap", ["/usr/bin/bwrap"]), ("podman", ["/usr/bin/podman", "/usr/bin/crun", "/usr/bin/conmon"])])
def test_a_method_whose_programs_are_missing_is_a_mistake_of_the_policy(host, method, paths):
    host.write(POLICY_FILE, PLAYING_POLICY.replace("  bob:\n    roots: [~/work]\n", "") + f"sandbox: {{method: {method}}}\n")
    with contextlib.ExitStack() as away, host.podman() if method == "podman" else contextlib.nullcontext():
        for path in paths:
            away.enter_context(moved_away(host, path))
        status, found = errors(host)
        assert status == INVALID and all(any(f"{method} needs {path}" in one for one in found) for path in paths), found
        assert_nothing_is_applied(host, [paths[0].encode(), b"install the package"])
        away.close()
        assert errors(host) == (0, [])


def test_a_homes_owner_that_is_not_the_agents_is_told_before_anything_changes(host):
    host.write(POLICY_FILE, PLAYING_POLICY.replace("accounts: per-user", "accounts: shared"))
    status, found = errors(host)
    assert status == INVALID and any(f"{STATE}/alice/home belongs to pi-agent-alice" in one and "runs as pi-agent" in one for one in found), found
    assert_nothing_is_applied(host, [b"pi-agentctl state reset --user alice"])
    # What it says helps.
    users = host.root(["ls", STATE], check=True).stdout.decode().split()
    for user in users:
        host.root(["pi-agentctl", "state", "reset", "--user", user, "--yes"])
    host.root(["pi-agentctl", "apply"], check=True)
    assert pi(host, "sh", "true").returncode == 0
    assert owner_and_mode(host, f"{STATE}/alice/home") == "pi-agent:pi-agent 700"
    host.write(POLICY_FILE, PLAYING_POLICY)
    for user in users:
        host.root(["pi-agentctl", "state", "reset", "--user", user, "--yes"])
    host.root(["pi-agentctl", "apply"], check=True)
    assert owner_and_mode(host, f"{STATE}/alice/home").startswith("pi-agent-alice:")


# Every session starts, and not one is correct: the canary is another program.
BROKEN = "#!/bin/sh\necho '{\"findings\": [{\"what\": \"a probe\", \"expected\": \"refused\", \"seen\": \"done\", \"right\": false}]}'; exit 1\n"
CANARY = "/usr/libexec/pi-agent/pi-agent-canary"


@contextlib.contextmanager
def a_sandbox_that_does_not_hold(machine):
    with moved_away(machine, CANARY):
        machine.write(CANARY, BROKEN, mode=0o755)
        yield


def test_a_sandbox_that_does_not_hold_is_found_before_anything_changes(host):
    host.write(POLICY_FILE, PLAYING_POLICY.replace("  bob:\n    roots: [~/work]\n", ""))
    before = host.read(RULE)  # a session has changed the home meanwhile
    with a_sandbox_that_does_not_hold(host):
        done = host.root(["pi-agentctl", "apply"])
    assert done.returncode == UNAVAILABLE and b"nothing is applied: the sandbox (systemd) was tried as alice" in done.stderr, done
    assert b"1 of 1 probes failed" in done.stderr and b"done: " not in done.stdout and host.read(RULE) == before, done
    host.root(["pi-agentctl", "apply"], check=True)
    assert b"bob " not in host.read(RULE)


def test_on_a_new_host_nobody_can_start_what_does_not_hold(host):
    host.root(["rm", RULE], check=True)
    with a_sandbox_that_does_not_hold(host):
        done = host.root(["pi-agentctl", "apply"])
    assert done.returncode == UNAVAILABLE and b"done: take the sudo rule back: nobody can start pi\n" in done.stdout, done
    assert host.root(["test", "-e", RULE]).returncode == 1
    assert b"done: the sandbox (systemd) was tried as alice" in host.root(["pi-agentctl", "apply"], check=True).stdout
    assert host.root(["test", "-e", RULE]).returncode == 0


def test_one_user_whose_start_fails_decides_for_nobody_else(host):
    host.root("runuser -u alice -- sh -c 'mkdir -p ~/.pi/agent; cd ~/.pi/agent; test ! -e settings.json || mv settings.json away; echo { >settings.json'", check=True)
    try:
        assert pi(host, "sh", "true").returncode == INVALID
        done = host.root(["pi-agentctl", "apply"])
        assert done.returncode == 0 and b"was tried as bob" in done.stdout, done
    finally:
        host.root("cd /home/alice/.pi/agent && rm settings.json && test ! -e away || mv away settings.json", check=True)


READ_ONLY = "/srv/only-read"  # root's, and everybody reads there


@contextlib.contextmanager
def alice_has(machine, roots):
    machine.root(["mkdir", "-p", READ_ONLY], check=True)
    machine.write(POLICY_FILE, PLAYING_POLICY.replace("  alice:\n    roots: [~/projects, /srv/shared/app]\n", f"  alice:\n    roots: {roots}\n"))
    try:
        yield machine
    finally:
        machine.write(POLICY_FILE, PLAYING_POLICY)
        machine.root(["pi-agentctl", "apply"], check=True)
        machine.root(["rmdir", READ_ONLY], check=True)


def test_the_trial_prefers_a_root_that_its_user_owns(host):
    with alice_has(host, f"[{READ_ONLY}, ~/projects]"):
        done = host.root(["pi-agentctl", "apply"])
        assert done.returncode == 0 and b"was tried as alice in /home/alice/projects: all " in done.stdout, done


def test_a_user_who_can_only_read_does_not_fail_the_trial(host):
    with alice_has(host, f"[{READ_ONLY}]"):
        done = host.root(["pi-agentctl", "apply"])
        assert done.returncode == 0 and b"was tried as bob in /home/bob/work: all " in done.stdout, done  # and so everything is tried
        done = host.root(["pi-agentctl", "doctor", "--user", "alice"])
        assert done.returncode == 0 and f"was tried as alice in {READ_ONLY}: all ".encode() in done.stdout, done
        assert f"left out: write {READ_ONLY}, and what is made there; alice may not write there".encode() in done.stdout, done
        report = json.loads(host.root(["pi-agentctl", "doctor", "--user", "alice", "--json"]).stdout)["sandbox"]
        assert report["good"] and report["left_out"] and report["wrong"] == [] and report["status"] == 0, report
        with a_sandbox_that_does_not_hold(host):
            done = host.root(["pi-agentctl", "doctor", "--user", "alice"])
            assert b"1 of 1 probes failed" in done.stderr, done


def test_a_second_run_says_what_it_did(host):
    host.root(["pi-agentctl", "apply"], check=True)
    done = host.root(["pi-agentctl", "apply"], check=True)
    tried, last = [line for line in done.stdout.decode().splitlines() if not line.startswith("left behind: ")]
    assert tried.startswith(f"done: the sandbox (systemd) was tried as alice in {DEMO.removesuffix('/demo')}: all ") and tried.endswith(" probes passed")
    assert last == "nothing to change: this host follows the policy"

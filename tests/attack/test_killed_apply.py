"""pi-agentctl apply is killed at any moment: the host is as before or as after, and the next apply finishes, or goes back."""

import os
import random
import re
import time
from pathlib import Path

import pytest
from points import WAIT_AT
from target import ATTACK_POLICY, POLICY_FILE, Outcome

pytestmark = pytest.mark.position("host")

SOURCES = Path(__file__).resolve().parents[2]
FULL = bool(os.environ.get("PI_AGENT_FULL"))
SEED = int(os.environ.get("PI_AGENT_SEED") or "1")
KILLS = 30 if FULL else 8
POINTS = ("apply-begun", "apply-accounts", "apply-hidden", "apply-ruled", "apply-tried", "apply-kept")
POLICY = ATTACK_POLICY.read_text()
AGENT = "/usr/local/lib/attack/agent"
RULE = "/etc/sudoers.d/pi-agent"
UNFINISHED = "/var/lib/pi-agent/applied/unfinished.json"
CANARY = "/usr/libexec/pi-agent/pi-agent-canary"
EVES_ROOT = "/srv/eves"
EVES_HOME = "/var/lib/pi-agent/users/eve"
BROKEN = "#!/bin/sh\necho '{\"findings\": [{\"what\": \"a probe\", \"expected\": \"refused\", \"seen\": \"done\", \"right\": false}]}'; exit 1\n"


@pytest.fixture(scope="module", autouse=True)
def root_of_eve(product, weak):
    for target in (product, weak):
        target.machine.root(["install", "-d", "-o", "eve", EVES_ROOT], check=True)
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-r", EVES_ROOT], check=True)


def policy_with(account):
    """Another account, another owner of the agent's program, another name of the command, another sudo rule."""
    return POLICY.replace("users:\n", f"users:\n  eve: {{roots: [{EVES_ROOT}], run_as: {account}}}\n") + "wrapper: {hide_direct_binary: false, command_name: agent}\n"


def forget(machine, *accounts):
    """The policy of these tests again, without what a case made."""
    for account in accounts:  # a trial that outlives its apply
        machine.root(f"for i in $(seq 600); do pgrep -u {account} >/dev/null || exit 0; sleep .1; done; exit 1", check=True)
    machine.root(f"rm -rf {EVES_HOME} {WAIT_AT}", check=True)
    machine.install_policy(POLICY)
    for account in accounts:
        machine.root(f"if getent passwd {account}; then userdel {account}; fi", check=True)


def state(machine):
    """Each part of what apply changes here."""
    rule = machine.root(["cat", RULE]).stdout
    program = machine.root(["stat", "-c", "%U:%G %a", AGENT], check=True).stdout
    command = machine.root(["readlink", "/usr/bin/agent"]).stdout
    return {"rule": rule, "program": program, "command": command}


def expect_old_or_new(target, old, new):
    now = state(target.machine)
    for part, value in now.items():
        assert value in (old[part], new[part]), (part, value)
    started = target.pi("echo", "ran")  # alice is in both policies
    assert started.stdout == b"ran\n" or b"the administrator ran pi-agentctl" in started.stderr, started


def expect_finished(target, account, new):
    done = target.machine.root(["pi-agentctl", "apply", "--no-canary"])
    assert done.returncode == 0, done
    assert state(target.machine) == new, done
    assert target.machine.root(["getent", "passwd", account]).returncode == 0
    assert target.machine.root(["test", "-e", UNFINISHED]).returncode == 1
    assert target.machine.root(["visudo", "-c"]).returncode == 0


def states_of(machine):
    """Before and after an apply that nobody disturbs, and how long it takes."""
    old = state(machine)
    machine.write(POLICY_FILE, policy_with("helper0"))
    begun = time.monotonic()
    machine.root(["pi-agentctl", "apply"], check=True)
    took = time.monotonic() - begun
    new = state(machine)
    forget(machine, "helper0")
    assert all(old[part] != new[part] for part in old), (old, new)
    return old, new, took


def test_a_kill_at_a_random_moment(product, control_seen, figures):
    machine = product.machine
    old, new, took = states_of(machine)
    draw = random.Random(SEED)
    killed = unfinished = 0
    for number in range(1, KILLS + 1):
        account = f"helper{number}"
        machine.write(POLICY_FILE, policy_with(account))
        done = machine.root(["timeout", "-s", "KILL", f"{draw.uniform(0.01, took):.3f}", "pi-agentctl", "apply"])
        assert done.returncode in (0, 137, -9), done
        killed += done.returncode != 0
        unfinished += machine.root(["test", "-e", UNFINISHED]).returncode == 0
        expect_old_or_new(product, old, new)
        expect_finished(product, account, new)
        forget(machine, account)
        assert state(machine) == old
    assert killed, "no apply was killed before its end"
    figures(f"{KILLS} kills with seed {SEED}: {killed} before the end of apply, {unfinished} in the middle of the change")
    control_seen("an apply that is not killed changes all that is looked at")


def test_every_point_of_apply_is_tried():
    found = {name for file in (SOURCES / "admin/apply").glob("*.cpp") for name in re.findall(r'fault_point\("([^"]+)"\)', file.read_text())}
    names = {name for file in (SOURCES / "admin/apply").glob("*.cpp") for name in re.findall(r'reached\("([^"]+)"', file.read_text())}
    assert found | names == set(POINTS)


def kill_at(machine, point, *options):
    machine.write(WAIT_AT, f"{point}\n")
    with machine.popen(["pi-agentctl", "apply", *options], user="root", cwd="/") as running:
        machine.root(f"for i in $(seq 1200); do pgrep -x {point[:15]} && exit; sleep .05; done; exit 1", check=True)
        machine.root(["pkill", "-9", "-x", point[:15]], check=True)
        _, said = running.communicate(timeout=60)
    machine.root(["rm", WAIT_AT], check=True)
    assert running.returncode != 0, said


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_a_named_point_is_finished_by_the_next_apply(weak, control_seen, point):
    machine = weak.machine
    old, new, _ = states_of(machine)
    machine.write(POLICY_FILE, policy_with("helper"))
    try:
        kill_at(machine, point)
        assert machine.root(["test", "-e", UNFINISHED]).returncode == 0
        assert b"unfinished: " in machine.root(["pi-agentctl", "doctor"]).stderr
        expect_old_or_new(weak, old, new)
        expect_finished(weak, "helper", new)
    finally:
        forget(machine, "helper")
    control_seen("apply waited there and was killed")


@pytest.mark.parametrize("point", ["apply-accounts", "apply-hidden", "apply-ruled"])
def test_after_a_kill_an_apply_that_fails_goes_back_to_what_was_before_the_killed_one(weak, control_seen, point):
    machine = weak.machine
    old, new, _ = states_of(machine)
    machine.write(POLICY_FILE, policy_with("helper"))
    try:
        kill_at(machine, point, "--no-canary")
        assert machine.root(["getent", "passwd", "helper"]).returncode == 0
        machine.write(POLICY_FILE, policy_with("helper").replace("~/projects", "/usr/bin/env"))
        done = machine.root(["pi-agentctl", "apply"])
        assert done.returncode == 78 and b"it is not a directory" in done.stderr, done
        assert state(machine) == old, done
        assert machine.root(["getent", "passwd", "helper"]).returncode == 2, done
        assert machine.root(["test", "-e", UNFINISHED]).returncode == 1
    finally:
        forget(machine, "helper")
    control_seen("apply waited there and was killed")


def test_an_account_with_files_keeps_its_number_when_apply_goes_back(prove):
    """Who got that number next would own them: here, the home that the trial's session made."""

    def attack(target):
        machine = target.machine
        machine.root(f"rm {RULE}; mv {CANARY} {CANARY}-away", check=True)  # nobody could start before, so the trial comes last
        machine.write(CANARY, BROKEN, mode=0o755)
        machine.write(POLICY_FILE, policy_with("helper"))
        try:
            done = machine.root(["pi-agentctl", "apply"])
            owner = machine.root(["stat", "-c", "%U", f"{EVES_HOME}/home"], check=True).stdout
        finally:
            machine.root(["mv", f"{CANARY}-away", CANARY], check=True)
            forget(machine, "helper")
        assert done.returncode == 69, done
        return Outcome(owner != b"helper\n", done)

    on, _ = prove(attack, "undone-account-empty", quick=True)
    assert b"the account helper stays, because " in on.seen.stderr, on


# What systemd does where it cannot: it goes on without (test_network.py).
NETWORKS = {"none": ("unit:PrivateNetwork",), "loopback": ("unit:IPAddressAllow", "unit:IPAddressDeny")}


@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_that_the_host_does_not_enforce_is_found_before_anything_changes(weak, network, control_seen):
    machine = weak.machine
    policy = policy_with("helper") + f"network: {network}\n"
    old = state(machine)
    running = weak.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
    try:
        machine.write(POLICY_FILE, policy)
        with weak.without(*NETWORKS[network]):
            done = machine.root(["pi-agentctl", "apply"])
        assert done.returncode == 69 and b"nothing is applied: the sandbox (systemd) was tried as alice" in done.stderr, done
        assert b"this host cannot enforce the policy's network" in done.stderr and state(machine) == old, done
        assert machine.root(["getent", "passwd", "helper"]).returncode == 2
        assert machine.root(["systemctl", "is-active", running.service]).returncode == 0
        machine.root(["pi-agentctl", "apply"], check=True)
        control_seen("the same policy is applied where the host enforces it")
    finally:
        running.end()
        forget(machine, "helper")

"""Another name of the command: root makes and removes what is pi's alone, whatever else has that name meanwhile."""

import contextlib
import re

import pytest
from points import SOURCES, WAIT_AT
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("host")

LINK = "/usr/bin/agent"
POINT = "command-named"


def named(name):
    return ATTACK_POLICY.read_text() + f"wrapper: {{command_name: {name}}}\n"


@contextlib.contextmanager
def another_name(target):
    target.machine.install_policy(named("agent"))
    try:
        yield
    finally:
        target.machine.install_policy(ATTACK_POLICY.read_text())
        target.machine.root(["rm", "-f", LINK], check=True)


def test_a_program_that_came_under_that_name_later_stays(prove):
    def attack(target):
        with another_name(target):
            target.machine.root(f"rm {LINK} && printf '#!/bin/sh\\necho other\\n' >{LINK} && chmod 755 {LINK}", check=True)
            target.machine.install_policy(ATTACK_POLICY.read_text())
            done = target.machine.run([LINK]) if target.machine.root(["test", "-e", LINK]).returncode == 0 else None
        return Outcome(done is None, done)

    on, _ = prove(attack, "own-command-name", quick=True)
    assert on.seen.stdout == b"other\n", on


def test_a_taken_name_is_refused_before_anything_changes(product, control_seen):
    before = product.machine.read("/etc/sudoers.d/pi-agent")
    product.machine.write("/etc/pi-agent/policy.yaml", named("ls"))
    try:
        applied = product.machine.root(["pi-agentctl", "apply", "--no-canary"])
    finally:
        product.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text())
    assert applied.returncode == 78 and b"wrapper.command_name: /usr/bin/ls exists already" in applied.stderr, applied
    assert product.machine.run(["ls", "/"]).returncode == 0 and product.machine.read("/etc/sudoers.d/pi-agent") == before
    control_seen("apply refused the name")


def test_a_kill_while_the_name_is_made_is_finished_by_the_next_apply(weak, control_seen):
    source = (SOURCES / "admin/host/accounts.cpp").read_text()
    assert re.findall(r'fault_point\("([^"]+)"\)', source) == [POINT]
    try:
        weak.machine.write("/etc/pi-agent/policy.yaml", named("agent"))
        weak.machine.write(WAIT_AT, f"{POINT}\n")
        with weak.machine.popen(["pi-agentctl", "apply", "--no-canary"], user="root") as running:
            weak.machine.root(f"for i in $(seq 400); do pgrep -x {POINT} && exit; sleep .05; done; exit 1; ", check=True)
            weak.machine.root(f"pkill -9 -x {POINT}", check=True)
            running.communicate(timeout=60)
        weak.machine.root(["rm", WAIT_AT], check=True)
        weak.machine.install_policy(named("coder"))
        assert weak.machine.root(["test", "-e", LINK]).returncode == 1 and weak.machine.run(["coder", "--pi-agent-help"]).returncode == 0
    finally:
        weak.machine.root(["rm", "-f", WAIT_AT], check=True)
        weak.machine.install_policy(ATTACK_POLICY.read_text())
    assert weak.machine.root(["test", "-e", "/usr/bin/coder"]).returncode == 1
    control_seen("apply waited there and was killed")

"""The keys that a gate holds, and who would like to have them, or what they open: the gate by itself, with a provider of the tests (tests/system/gate_alone.py)."""

from pathlib import Path

import pytest
from target import Outcome

SYSTEM = Path(__file__).resolve().parents[1] / "system"
GATE = "/usr/libexec/pi-agent/pi-agent-gate"
PLACE = "/root/gate_alone"
PROGRAMS = ("gate_alone.py", "gate_driver.py", "gate_route_cases.py", "gate_route_idle.py", "gate_route_attacks.py")


@pytest.fixture(scope="module")
def alone(product, weak):
    for target in (product, weak):
        for name in PROGRAMS:
            target.machine.write(f"{PLACE}/{name}", (SYSTEM / name).read_text())
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-r", PLACE], check=True)


def asking(case):
    def attack(target):
        done = target.machine.root(["timeout", "100", "python3", "-B", f"{PLACE}/gate_alone.py", GATE, case])
        assert done.returncode == 0 and done.stdout in (b"done\npassed\n", b"refused\npassed\n"), done
        return Outcome(done.stdout.startswith(b"done"), done)

    return attack


@pytest.mark.position("agent")
@pytest.mark.parametrize(
    ("case", "defences"),
    [
        ("attack_with_a_key_of_ones_own", ("route-credentials",)),
        ("attack_a_path_that_the_key_is_not_for", ("route-lists",)),
        ("attack_a_path_by_a_detour", ("route-plain-paths",)),
        ("attack_by_half_a_websocket", ("route-websocket-key",)),
        ("attack_by_a_websocket_that_is_not_opened", ("route-websocket-answer",)),
        ("attack_by_a_call_that_a_gate_never_makes", ("gate-call-filter",)),
    ],
)
def test_a_key_opens_nothing_else(case, defences, alone, prove):
    prove(asking(case), *defences)


@pytest.mark.position("outsider")
@pytest.mark.parametrize(
    ("case", "defences"),
    [("attack_from_a_page_of_another_site", ("route-pages",)), ("attack_by_a_name_that_leads_to_the_route", ("route-own-host",))],
)
def test_a_page_in_a_browser_of_the_session_spends_no_key(case, defences, alone, prove):
    prove(asking(case), *defences)


@pytest.mark.position("outsider")
@pytest.mark.parametrize(
    ("case", "defences"),
    [
        ("attack_by_a_certificate_of_another_name", ("route-host-name",)),
        ("attack_by_a_certificate_of_ones_own", ("route-trust",)),
    ],
)
def test_a_key_goes_to_its_provider_alone(case, defences, alone, prove):
    """Somebody on the way to it, or who answers for its name."""
    prove(asking(case), *defences)


@pytest.mark.position("user")
def test_a_key_that_others_can_read_starts_no_session(prove):
    section = "network: {hosts: [provider.example]}\nproviders: {openai: {key_file: /etc/pi-agent/attack.key}}"

    def attack(target):
        target.machine.write("/etc/pi-agent/attack.key", "held-outside\n", mode=0o644)
        with target.policy_with(section):
            done = target.pi("echo", "ran")
        target.machine.root(["rm", "/etc/pi-agent/attack.key"], check=True)
        return Outcome(done.stdout == b"ran\n", done)

    on, _ = prove(attack, "key-file-mode")
    assert b"readable for others than root" in on.seen.stderr, on

"""The gate's reverse route by itself: what a provider gets, what a session gets, and what nobody gets."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GATE = "/usr/libexec/pi-agent/pi-agent-gate"
PLACE = "/root/gate_alone"
CASES = re.findall(r"^def ((?!attack)\w+)\(gate, service\):$", "".join((HERE / f"gate_route_{kind}.py").read_text() for kind in ("cases", "idle")), re.MULTILINE)


@pytest.fixture(scope="module")
def alone(machine):
    for name in ("gate_alone.py", "gate_driver.py", "gate_route_cases.py", "gate_route_idle.py", "gate_route_attacks.py"):
        machine.write(f"{PLACE}/{name}", (HERE / name).read_text())
    yield machine
    machine.root(["rm", "-r", PLACE], check=True)


@pytest.mark.parametrize("case", CASES)
def test_the_route(case, alone):
    done = alone.root(["timeout", "150", "python3", "-B", f"{PLACE}/gate_alone.py", GATE, case])
    assert (done.returncode, done.stdout) == (0, b"passed\n"), done.stderr.decode()

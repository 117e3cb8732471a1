"""A gate that the agent has taken over, and what its user and the administrator read of it."""

import pytest
from target import Outcome
from test_gate import REACH, stand_in

pytestmark = pytest.mark.position("agent")


@pytest.mark.parametrize("mode", ["traitor", "empty"])
def test_a_gate_that_root_no_longer_hears_passes_nothing_on(mode, prove):
    """Its user reads that the agent reaches nothing any more. It broke the protocol, or its end only looks like one, and it still has the listeners."""

    def attack(target):
        reach = "import time; time.sleep(1)\n" + REACH.format("socket.AF_INET, socket.SOCK_STREAM, ('192.0.2.1', 443)")
        with stand_in(target, mode):
            done = target.pi("python3", "-c", reach, check=True, timeout=60)
        assert b"reaches nothing any more" in done.stderr, done
        return Outcome(done.stdout == b"outside\n", done)

    prove(attack, "gate-killed")

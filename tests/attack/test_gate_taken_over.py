"""A gate that the agent has taken over, and what its user and the administrator read of it."""

import pytest
from target import Outcome
from test_gate import REACH, denials_of, stand_in

pytestmark = pytest.mark.position("agent")


@pytest.mark.parametrize("mode", ["traitor", "farewell"])
def test_a_gate_that_root_no_longer_hears_passes_nothing_on(mode, prove):
    """Its user reads that the agent reaches nothing any more. It broke the protocol, or its end only looks like one, and it still has the listeners."""

    def attack(target):
        reach = "import time; time.sleep(1)\n" + REACH.format("socket.AF_INET, socket.SOCK_STREAM, ('192.0.2.1', 443)")
        with stand_in(target, mode):
            done = target.pi("python3", "-c", reach, check=True, timeout=60)
        assert b"reaches nothing any more" in done.stderr, done
        return Outcome(done.stdout == b"outside\n", done)

    prove(attack, "gate-killed")


def test_no_descriptor_of_the_gates_reaches_root(prove):
    """The kernel would close it in root's name, read or not, and a close takes as long as its owner said (SO_LINGER)."""

    def attack(target):
        with stand_in(target, "holding"):
            done = target.pi("sleep", "1", check=True, timeout=60)
        return Outcome(b"taken.example" in done.stderr, done)

    prove(attack, "gate-one-way")


def test_words_for_whoever_reads_the_record_are_not_taken_from_it(prove):
    """`pi-agentctl denials` shows where the rule is that almost allows a connection, beside the key that would change it."""

    def attack(target):
        since = target.machine.root(["date", "+%s.%N"]).stdout.decode().strip()
        with stand_in(target, "forging"):
            target.pi("sleep", "1", check=True, timeout=60)
        shown = denials_of(target, since)
        assert [entry["PI_AGENT_HOST"] for entry in shown] == ["host.example"], shown
        return Outcome("as root" in shown[0].get("PI_AGENT_WHERE", ""), shown)

    prove(attack, "denial-places")

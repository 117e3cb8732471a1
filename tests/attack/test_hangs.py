"""pi ends, whatever a part of it waits for: phases of a start and session that stand still, times what asks for their end."""

import itertools
import json
import os
import random
from pathlib import Path

import pytest

pytestmark = pytest.mark.position("host")

FULL = bool(os.environ.get("PI_AGENT_FULL"))
SEED = os.environ.get("PI_AGENT_SEED", "hangs")
ROUNDS = 360 if FULL else 24
GATE_ROUNDS = 40 if FULL else 4
AT_ONCE = 20
SUDO = ("sudo", "sudo and a large request")
# Before the user's state is locked, and so before `stop` finds a session.
EARLY = ("bus", "authenticated", "in-its-scope", "request-read")
LATE = ("state-locked", "tree-built", "unit-asked-for", "writing", "start-recorded", "launcher-ready", "restricted", "handed-over")
RUNNING = ("running", "agent-started", "stopped pi-agent-exec", "stopped pi-agent-runner")
OVER = ("agent-over", "end-unrecorded", "looking-back")
GATE = ("gate-asked-for", "gate-listens", "gate-open", "stopped pi-agent-gate")
SIGNALS = ("INT", "TERM", "HUP", "QUIT", "TERM twice", "INT twice")
AT_A_TERMINAL = ("ctrl-c", "ctrl-\\", "closed terminal")
SHELLS = (None, "bash", "zsh", "fish")


def cells(phases):
    """Of the table: a phase, what asks for the end, and the shell (None: no terminal)."""
    for phase, shell in itertools.product(phases, SHELLS):
        hows = [*SIGNALS, *(AT_A_TERMINAL if shell else ()), *(["stop"] if phase in (*LATE, *RUNNING) else ())]
        for how in hows:
            yield {"phase": phase, "how": how, "shell": shell}


def draw(phases, count):
    """First each phase, way and shell once, then the rest as it comes."""
    drawn = list(cells(phases))
    random.Random(SEED).shuffle(drawn)
    seen, first, rest = set(), [], []
    for cell in drawn:
        new = set(cell.values()) - seen
        (first if new else rest).append(cell)
        seen |= new
    return (first + rest)[:count]


def play(machine, orders):
    machine.write("/tmp/hang_rounds.py", Path(__file__).with_name("hang_rounds.py").read_text())
    done = machine.root(["python3", "/tmp/hang_rounds.py"], input=json.dumps(orders).encode(), timeout=120 * len(orders))
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout)


def in_batches(drawn):
    return [drawn[begin : begin + AT_ONCE] for begin in range(0, len(drawn), AT_ONCE)]


BATCHES = in_batches(draw((*SUDO, *EARLY, *LATE, *RUNNING, *OVER), ROUNDS))
GATE_BATCHES = in_batches(draw(GATE, GATE_ROUNDS))


def require_ends(machine, orders, control_seen, figures):
    seen = play(machine, orders)
    assert seen["failures"] == []
    control_seen(f"in {len(orders)} rounds a part stood still when its end was asked for")
    figures(f"{len(orders)} rounds, seed {SEED}; the longest took {seen['longest']:.2f} s")


@pytest.mark.parametrize("batch", range(len(BATCHES)))
def test_pi_ends_within_two_seconds_and_nothing_is_left(batch, weak, control_seen, figures):
    require_ends(weak.machine, BATCHES[batch], control_seen, figures)


@pytest.mark.parametrize("batch", range(len(GATE_BATCHES)))
def test_so_it_does_with_a_gate(batch, weak, control_seen, figures):
    with weak.policy_with("network: {hosts: [provider.example]}"):
        require_ends(weak.machine, GATE_BATCHES[batch], control_seen, figures)


@pytest.mark.parametrize("phase", ["sudo", "stopped pi-agent-exec", "stopped pi-agent-runner"])
def test_the_table_fails_where_nothing_ends_the_wait(phase, weak, seen_to_work):
    order = {"phase": phase, "how": "TERM", "shell": None}
    defences = ("signals-are-heard", "signals-end-pi")
    with weak.without(*defences):
        assert "pi outlives it" in str(play(weak.machine, [order])["failures"])
    assert play(weak.machine, [order])["failures"] == []
    seen_to_work(defences)

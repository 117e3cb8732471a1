"""Several of the real agent on one terminal, in the background and beside each other, in print mode."""

import pytest
from test_jobs import FULL, PATTERNS, alone, play, rounds_of  # noqa: F401

# Each is a whole start of the real agent.
ROUNDS = 10 if FULL else 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_real_agent_in_print_mode_is_never_stopped_and_leaves_the_terminal_as_it_was(machine, alone, shell):  # noqa: F811
    rounds, scripts = [], {}
    for kind, program, count in (("playing", "alone", 1), ("real", "pi", ROUNDS)):
        for pattern in PATTERNS:
            more = rounds_of(kind, program, pattern, count)
            rounds += more[0]
            scripts |= more[1]
    play(machine, shell, rounds, scripts)

"""What an agent tries inside (test_inside.py), under every other sandbox.method: each makes its sandbox in its own way, and refuses the same."""

import contextlib

import pytest
from engine import engine_of, named_method
from target import Outcome
from test_inside import BIT_PROBES, CASES, EVERYTHING, makes_32_bit_calls

pytestmark = pytest.mark.position("agent")

FILTERS = ("seccomp-filter", "call-filter")
# Where a unit's property has an errno of its own, or hides a process's directory, others say no in general.
IN_GENERAL = {"EAFNOSUPPORT": ("EPERM",), "ENOENT": ("ENOENT", "EACCES")}
ANSWERS = {probe: (answer,) if "seccomp-filter" in defences else IN_GENERAL.get(answer, (answer,)) for probe, answer, defences in CASES}
# Calls that capabilities or places deny the agent as well, or alone: without filters they are still refused.
HELD_OTHERWISE = {"NoNewPrivs"} | {probe for probe, _, defences in CASES if "unit:User" in defences or "seccomp-filter" not in defences}


@pytest.fixture(scope="module", params=["bwrap", "podman", "docker"])
def method(request, product, weak):
    with contextlib.ExitStack() as stack:
        for target in (product, weak):
            stack.enter_context(engine_of(target.machine, request.param))
            stack.enter_context(target.policy_with(f"sandbox: {named_method(request.param)}"))
        yield request.param


def test_what_is_refused_under_systemd_is_refused(method, prove, weak):
    tried = {*EVERYTHING} - (set() if makes_32_bit_calls(weak) else {"32-bit call"})

    def attack(target):
        answers = target.probe(*sorted(tried))
        wrong = {probe: answers[probe] for probe in tried & {*ANSWERS} if answers[probe] not in ANSWERS[probe]}
        wrong |= {probe: "done" for probe in BIT_PROBES if answers[probe] == "done"}
        return Outcome(bool(wrong), wrong)

    _, off = prove(attack, *FILTERS)
    still_refused = tried - {*off.seen} - HELD_OTHERWISE
    assert not still_refused, f"without filters the kernel should answer under {method}, so this proves nothing of: {still_refused}"

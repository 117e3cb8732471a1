"""The policy's lists of addresses where an engine makes the sandbox: its container's control group is the unit's, whose filter holds there."""

import contextlib

import pytest
from engine import engine_of, named_method
from test_network import ADDRESS, FILTER, LIST, greeting_of

pytestmark = pytest.mark.position("agent")


@pytest.fixture(scope="module", params=["podman", "docker"])
def engine(request, product, weak):
    """Its section of a policy, of an engine that is there; and an address of the machine itself beside loopback."""
    with contextlib.ExitStack() as stack:
        for target in (product, weak):
            stack.enter_context(engine_of(target.machine, request.param))
            target.machine.root(["ip", "address", "replace", f"{ADDRESS}/32", "dev", "lo"], check=True)
            stack.callback(target.machine.root, ["ip", "address", "del", f"{ADDRESS}/32", "dev", "lo"])
        yield f"sandbox: {named_method(request.param)}"


@pytest.mark.parametrize(("value", "allowed"), [("loopback", "127.0.0.1"), (LIST, None), (f'["{ADDRESS}/32"]', ADDRESS)])
def test_an_address_that_is_not_allowed_is_out_of_reach_in_a_container(engine, value, allowed, product, weak, prove):
    section = f"{engine}\nnetwork: {value}"
    with product.policy_with(section), weak.policy_with(section):
        if allowed:
            assert greeting_of(allowed)(product).succeeded, f"{allowed}, which is allowed"
        prove(greeting_of("127.0.0.1" if allowed == ADDRESS else ADDRESS), *FILTER, "network-check")

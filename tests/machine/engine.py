"""The container engine of a sandbox.method: in a machine for as long as it is needed, and as a policy names it."""

import contextlib

import pytest
from machine import DOCKER_IMAGE

WITH_DOCKER = ("bookworm",)  # docker.io 20.10


def engine_of(machine, method):
    """What the method needs in the machine beside what is always there, until the end; skips the test where it cannot be."""
    if method == "docker" and machine.recipe not in WITH_DOCKER:
        pytest.skip("its docker is tested on another machine")
    return {"podman": machine.podman, "docker": machine.docker}.get(method, contextlib.nullcontext)()


@contextlib.contextmanager
def under_method(machine, method, policy):
    """The policy with that sandbox.method, and what it needs in the machine; then the policy as it is."""
    with engine_of(machine, method):
        machine.install_policy(f"{policy}sandbox: {named_method(method)}\n")
        yield
        machine.install_policy(policy)


def named_method(method):
    """The section `sandbox` of a policy, as YAML."""
    return f"{{method: docker, image: {DOCKER_IMAGE}}}" if method == "docker" else f"{{method: {method}}}"

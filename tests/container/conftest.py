"""The machine that is like a container, with the product as it is installed and sandbox.method bwrap."""

import contextlib
import os

import pytest
import record_check
from cache import HERE, Build
from container import Container

POLICY = (HERE / "policy.yaml").read_text() + "sandbox: {method: bwrap}\n"


@pytest.fixture(scope="session")
def container(machine_name):
    with Container(f"tests-{os.getpid()}", machine_name) as booted:
        booted.create()
        booted.install(Build(machine_name))
        booted.boot()
        booted.install_policy(POLICY)
        yield booted
        record_check.require_valid(booted)
        booted.stop()


@pytest.fixture
def policy_with(container):
    """policy_with(text): the policy with another section, for one test."""
    yield lambda text: container.install_policy(POLICY + text)
    container.install_policy(POLICY)


@pytest.fixture
def given(container):
    """given(calls=…, capabilities=…): what commands of this test get, as `docker run` would be told."""

    @contextlib.contextmanager
    def given(**values):
        before = {name: getattr(container, name) for name in values}
        vars(container).update(values)
        yield
        vars(container).update(before)

    return given

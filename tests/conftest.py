"""What system and attack tests share: a booted machine with the product, the real agent and a scripted model."""

import os
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True  # nothing is written into the checkout
MACHINE_DIRECTORY = Path(__file__).resolve().parent / "machine"
sys.path[:0] = [str(MACHINE_DIRECTORY), str(MACHINE_DIRECTORY.with_name("nix"))]

import record_check  # noqa: E402
import sampling  # noqa: E402
from cache import Build  # noqa: E402
from machine import Machine  # noqa: E402
from recipes import MACHINES  # noqa: E402

STANDARD_POLICY = (MACHINE_DIRECTORY / "policy.yaml").read_text()


def pytest_addoption(parser):
    parser.addoption("--machine", action="append", choices=MACHINES, help="only on this machine (default: all)")


def pytest_generate_tests(metafunc):
    if "machine_name" in metafunc.fixturenames:
        names = metafunc.config.getoption("machine") or list(MACHINES)
        # Indirect: pytest 7.2 numbers other parameters test by test, and takes the modules apart to bring equal numbers together.
        metafunc.parametrize("machine_name", names, indirect=True, scope="session")


def deselect(config, items, is_wanted):
    unwanted = [item for item in items if not is_wanted(item)]
    config.hook.pytest_deselected(items=unwanted)
    items[:] = [item for item in items if item not in unwanted]


def can_run(item):
    """Debian 12 has no sudo-rs."""
    return "sudo_rs" not in item.fixturenames or "sudo-rs" in MACHINES[item.callspec.params["machine_name"]].packages


def is_always_run(item):
    """What looks at the sources alone takes no time, and is what fails first where a test is missing. A budget is always held."""
    return "machine_name" not in item.fixturenames or item.path.name == "test_root_lines.py" or bool({"with_own_numbers", "sudo_rs"} & set(item.fixturenames))


def pytest_collection_modifyitems(config, items):
    """PI_AGENT_SAMPLE is the part of the tests to run, drawn with PI_AGENT_SEED; always in it is what only some machines can run, or needs none."""
    deselect(config, items, can_run)
    part = os.environ.get("PI_AGENT_SAMPLE")
    if not part:
        return
    seed = " ".join([os.environ["PI_AGENT_SEED"], *(config.getoption("machine") or [])])  # others on each machine
    chosen = sampling.choose([item.nodeid for item in items], float(part), seed)
    deselect(config, items, lambda item: item.nodeid in chosen or is_always_run(item))


@pytest.fixture(scope="session")
def machine_name(request):
    return request.param


@pytest.fixture(scope="session")
def machine(machine_name):
    """One machine for all tests, with the standard policy applied: a test leaves it as it found it."""
    with Machine(f"tests-{os.getpid()}", machine_name) as booted:
        booted.create()
        booted.install(Build(machine_name))
        booted.boot()
        booted.install_policy(STANDARD_POLICY)
        yield booted
        record_check.require_valid(booted)
        booted.stop()


@pytest.fixture
def policy(machine):
    """policy(text) applies another policy for one test; the standard one comes back afterwards."""
    yield machine.install_policy
    machine.install_policy(STANDARD_POLICY)


@pytest.fixture(scope="module")
def sudo_rs(machine):
    """The machine with sudo-rs in the place of sudo, as its administrator does it, and the policy applied once more."""
    diversion = ["--local", "--rename", "--divert", "/usr/bin/sudo.original", "/usr/bin/sudo"]
    machine.root(["dpkg-divert", *diversion], check=True)
    machine.root(["ln", "-s", "sudo-rs", "/usr/bin/sudo"], check=True)
    machine.root(["pi-agentctl", "apply", "--no-canary"], check=True)
    yield machine
    machine.root(["rm", "/usr/bin/sudo"], check=True)
    machine.root(["dpkg-divert", "--remove", *diversion], check=True)
    machine.root(["pi-agentctl", "apply", "--no-canary"], check=True)

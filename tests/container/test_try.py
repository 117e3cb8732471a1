"""./try in a place where systemd-nspawn cannot boot a machine: it names what the place lacks before it does anything, and how to go on."""

import subprocess
from pathlib import Path

import pytest
from cache import SOURCE

UNAVAILABLE = 69
CHECKOUT = "/tmp/checkout"
NEEDED = ("try", "tests/machine/as-root", "tests/machine/can-boot", "tests/machine/install-host-packages")


@pytest.fixture
def checkout(container):
    """As much of it as is run before anything is installed."""
    for file in NEEDED:
        container.write(f"{CHECKOUT}/{file}", (SOURCE / file).read_text(), mode=0o755)
    yield container
    container.root(["rm", "-rf", CHECKOUT], check=True)


def test_what_the_place_lacks_and_how_to_go_on_is_said(checkout, given):
    with given(without_capabilities=("sys_admin",), calls=()):
        refused = checkout.root([f"{CHECKOUT}/try"])
    assert (refused.returncode, refused.stdout) == (UNAVAILABLE, b""), refused
    said = refused.stderr.decode()
    assert "root lacks capabilities: CAP_NET_ADMIN CAP_SYS_PTRACE CAP_SYS_ADMIN\n" in said, said
    assert "control groups are not delegated" in said and said.rstrip().endswith(", run: ./try --emulate"), said


def test_a_capability_more_is_not_enough(checkout):
    refused = checkout.root([f"{CHECKOUT}/tests/machine/can-boot"])
    assert refused.returncode == 1 and b"CAP_SYS_ADMIN" not in refused.stdout and b"CAP_SYS_PTRACE" in refused.stdout, refused


def test_on_a_terminal_it_asks(checkout):
    asked = checkout.root(["script", "--quiet", "--return", "--command", f"{CHECKOUT}/try", "/dev/null"], input=b"n\n")
    assert asked.returncode == UNAVAILABLE and b"Emulate the machine with qemu instead?" in asked.stdout, asked


def test_this_host_boots_machines():
    done = subprocess.run([Path(SOURCE, "tests/machine/can-boot")], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done

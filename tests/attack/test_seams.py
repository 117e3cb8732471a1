"""The seams of these tests are in no build that is installed, and in the build that has them they do what they say."""

from pathlib import Path

import pytest
from target import Outcome

pytestmark = pytest.mark.position("tests")

PROGRAMS = [
    "/usr/bin/pi",
    "/usr/bin/pi-agentctl",
    "/usr/libexec/pi-agent/pi-agent-runner",
    "/usr/libexec/pi-agent/pi-agent-exec",
    "/usr/libexec/pi-agent/pi-agent-cleanup",
    "/usr/libexec/pi-agent/pi-agent-gate",
]
SEAMS = (b"/etc/pi-agent/test-without", b"/etc/pi-agent/test-wait-at")


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_installed_program_has_no_seam(program, product, weak):
    installed = product.machine.read(program)
    assert not [seam for seam in SEAMS if seam in installed]
    # The same look finds them where they are.
    runner = weak.machine.read("/usr/libexec/pi-agent/pi-agent-runner")
    assert all(seam in runner for seam in SEAMS)


def test_the_product_takes_no_notice_of_the_file(product):
    with product.without("unit:NoNewPrivileges", "seccomp-filter", "stdio-rules", "unit:RestrictAddressFamilies"):
        shown = product.probe("NoNewPrivs", "TIOCSTI", "AF_VSOCK")
    assert shown == {"NoNewPrivs": "1", "TIOCSTI": "EPERM", "AF_VSOCK": "EAFNOSUPPORT"}


def test_every_seam_in_the_sources_is_used_by_a_test():
    """A defence that lands without its case fails here."""
    here = Path(__file__).resolve().parent
    sources = [file for area in ("common", "runner", "gate", "wrapper", "admin") for file in (here.parents[1] / area).rglob("*.cpp")]
    seams = {word.split('"')[0] for file in sources for word in file.read_text().split('defence_is_on("')[1:]} - {"unit:"}
    asked = (here.parents[1] / "runner/plan/engine_commands.cpp").read_text().split('options.is_on("')[1:]
    assert asked
    seams |= {engine + ":" + word.split('"')[0] for engine in ("docker", "podman") for word in asked} - {"podman:own-network"}  # the unit's
    tests = "".join(file.read_text() for file in here.glob("test_*.py"))
    assert len(seams) > 20
    assert not {seam for seam in seams if f'"{seam}"' not in tests}


def test_a_property_of_the_unit_is_left_out_by_its_name(prove):
    def attack(target):
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
        shown = target.machine.root(["systemctl", "show", "--property=RestrictRealtime", "--value", session.service]).stdout
        session.end()
        return Outcome(shown.strip() == b"no", shown)

    prove(attack, "unit:RestrictRealtime")

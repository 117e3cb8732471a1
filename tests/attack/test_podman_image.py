"""sandbox.image under podman: the container has the image's files and no more of it, and nothing is pulled."""

import contextlib

import pytest
from engine import engine_of
from target import Outcome

pytestmark = pytest.mark.position("host")

IMAGE = "localhost/of-the-attacks:1"
TAKES_ANY = '{"default": [{"type": "insecureAcceptAnything"}]}'
# podman may leave its storage mounted on itself.
FORGET = "umount -l /var/lib/containers/storage/overlay; rm -rf /etc/containers/policy.json /var/lib/containers; rmdir --ignore-fail-on-non-empty /etc/containers"
MAKE = "rm -rf /tmp/tree && mkdir -p {directories} && {more} && tar -C /tmp/tree -c . | podman import {changes} - {image} && rm -r /tmp/tree"


def section(image=IMAGE):
    return f'sandbox: {{method: podman, image: "{image}"}}'


@pytest.fixture(scope="module", autouse=True)
def with_podman(product, weak):
    with engine_of(product.machine, "podman"), engine_of(weak.machine, "podman"):
        for target in (product, weak):
            target.machine.root(["mkdir", "-p", "/etc/containers"], check=True)
            target.machine.write("/etc/containers/policy.json", TAKES_ANY)
        yield
        for target in (product, weak):
            target.machine.root(FORGET, check=True)


@contextlib.contextmanager
def an_image(target, more="true", changes="", image=IMAGE):
    """Made of an empty tree and what `more` puts into it."""
    made = MAKE.format(directories="/tmp/tree/of-the-image /tmp/tree/etc", more=more, changes=changes, image=image)
    target.machine.root(made, check=True)
    try:
        with target.policy_with(section(image)):
            yield
    finally:
        target.machine.root(["podman", "image", "rm", "-f", image], check=True)


def test_variables_and_volumes_of_an_image_stay_outside(prove):
    """A variable would reach the launcher before it restricts itself, and a volume is a mount that nobody asked for."""
    changes = "--change 'ENV OF_THE_IMAGE=1' --change 'VOLUME /of-the-image' --change 'ENTRYPOINT [\"/x\"]'"

    def attack(target):
        with an_image(target, changes=changes):
            target.session("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 4321")
            seen = target.machine.root("cat /proc/$(pgrep -x pi-agent-exec)/environ; grep ' /of-the-image ' /proc/$(pgrep -x pi-agent-exec)/mounts; true").stdout
            target.end_all()
        return Outcome(b"OF_THE_IMAGE" in seen or b"/of-the-image" in seen, seen)

    prove(attack, "podman:plain-image")


@pytest.mark.position("agent")
def test_what_the_host_lets_everybody_write_stays_as_it_is(prove):
    """podman makes writable what it is not told to make read-only."""

    def attack(target):
        target.machine.write("/opt/of-everybody", "kept", mode=0o666)
        with an_image(target):
            done = target.pi("sh", "-c", "cat /opt/of-everybody; echo changed >/opt/of-everybody")
        seen = target.machine.root(["cat", "/opt/of-everybody"], check=True).stdout
        target.machine.root(["rm", "/opt/of-everybody"], check=True)
        assert done.stdout == b"kept", done
        return Outcome(seen != b"kept", done)

    prove(attack, "podman:read-only")


def test_an_image_chooses_no_group_for_the_agent(product, control_seen):
    """Engines look groups up in the image's own file, where the number of the agent's group may be another group's name."""
    account = product.machine.root("getent passwd pi-agent", check=True).stdout.decode().split(":")
    with an_image(product, more=f"echo '{account[3]}:x:42:' >/tmp/tree/etc/group"):
        done = product.pi("id", "-G")
    assert b"42" not in done.stdout.split(), done
    assert done.returncode == 69 or account[3].encode() in done.stdout.split(), done
    control_seen("the session has the group of its account, or the kernel's answer ended its start")


def test_an_image_that_root_does_not_have_is_not_fetched(product, control_seen):
    with product.policy_with(section("debian@sha256:" + "0" * 64)):
        done = product.pi("true")
    assert done.returncode == 69 and b"is not among root's images" in done.stderr and b"podman pull" in done.stderr, done
    with an_image(product):
        assert product.pi("true").returncode == 0
    control_seen("a session starts with an image that is there")


def test_a_list_of_images_that_others_can_change_is_refused(product, control_seen):
    with an_image(product):
        lists = product.machine.root("ls /var/lib/containers/storage/*-images/images.json", check=True).stdout.decode().split()
        product.machine.root(["chmod", "666", *lists], check=True)
        done = product.pi("true")
        product.machine.root(["chmod", "600", *lists], check=True)
        assert done.returncode == 78 and b"images.json" in done.stderr, done
        assert product.pi("true").returncode == 0
    control_seen("with the modes that podman gives it, the same list is read")

"""Attacks by way of device nodes: those that the policy does not name, other numbers of those that it names, and what may not be named."""

import contextlib

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("agent")

NAMED, OTHER, BLOCK = "/dev/pi-named", "/dev/pi-other", "/dev/pi-block"
FUSE, TUN = "c 10 229", "c 10 200"  # devices.txt of the kernel; opening one does nothing
GROUP = "pi-devices"
OPEN = "import os, sys; os.close(os.open(sys.argv[1], os.O_RDWR)); print('opened')"
CLOSED = ("unit:DevicePolicy", "unit:DeviceAllow", "unit:PrivateDevices")


@contextlib.contextmanager
def nodes(target, devices=f"[{NAMED}]", **made):
    """On the host, for a group; and a policy that names devices."""
    numbers = {NAMED: FUSE, OTHER: FUSE, BLOCK: "b 7 0", **made}
    script = "".join(f"mknod -m 0660 {path} {what}; chgrp {GROUP} {path}\n" for path, what in numbers.items())
    target.machine.root(f"set -e; groupadd -f {GROUP}; rm -f {' '.join(numbers)}\n{script}", check=True)
    try:
        with target.policy_with(f"devices: {devices}"):
            yield
    finally:
        target.machine.root(["rm", "-f", *numbers], check=True)


def opens(target, path):
    return target.pi("python3", "-c", OPEN, path)


def test_a_device_that_the_policy_does_not_name_is_not_there(product, control_seen):
    with nodes(product):
        named, other = opens(product, NAMED), opens(product, OTHER)
        host = product.machine.root(["python3", "-c", OPEN, OTHER])
    assert (named.stdout, host.stdout) == (b"opened\n", b"opened\n"), (named, host)
    assert b"No such file or directory" in other.stderr, other
    control_seen("the same look opens the device that is named, and on the host the other one, too")


def test_a_session_makes_no_node(product, control_seen):
    with nodes(product):
        done = product.pi("sh", "-c", f"mknod $TMPDIR/node {FUSE}; mknod node {FUSE}; ls $TMPDIR node")
    made = product.machine.root(f"cd /tmp && mknod node {FUSE} && rm node")
    assert done.stderr.count(b"Operation not permitted") == 2 and made.returncode == 0, (done, made)
    control_seen("root on the host makes the same node")


def test_a_node_of_other_numbers_is_closed(prove):
    """One that somebody put into the project, with the numbers of a device that the policy does not name."""
    node = f"{DEMO}/node"

    def attack(target):
        with nodes(target, **{NAMED: TUN}):
            target.machine.root(f"rm -f {node}; mknod -m 0666 {node} {FUSE}", check=True)
            done = opens(target, node)
            target.machine.root(["rm", node], check=True)
        return Outcome(done.stdout == b"opened\n", done)

    prove(attack, "nosuid-clones", *CLOSED)


def test_a_disk_is_no_device_for_sessions_by_whatever_name(prove):
    def attack(target):
        with nodes(target, f"[{BLOCK}]"):
            done = target.pi("sh", "-c", f"test -b {BLOCK} && echo there")
        return Outcome(done.stdout == b"there\n", done)

    on, _ = prove(attack, "character-devices")
    assert on.seen.returncode == 78 and b"not a character device" in on.seen.stderr, on


def test_a_link_in_dev_is_not_followed(product, control_seen):
    link = "/dev/pi-link"
    with nodes(product, f"[{OTHER}]"):
        itself = opens(product, OTHER)
    with nodes(product, f"[{link}]"):
        product.machine.root(["ln", "-sf", OTHER, link], check=True)
        done = opens(product, link)
        product.machine.root(["rm", link], check=True)
    assert done.returncode == 78 and b"not a character device" in done.stderr, done
    assert itself.stdout == b"opened\n", itself
    control_seen("what the link leads to is opened where the policy names it itself")


def test_a_device_gives_no_session_a_group_that_opens_the_host(prove):
    def attack(target):
        with nodes(target):
            target.machine.root(["chgrp", "disk", NAMED], check=True)
            done = target.pi("sh", "-c", "id -G")
        return Outcome(len(done.stdout.split()) > 1, done)  # where the session has no number for it, as 65534

    prove(attack, "privileged-groups")

"""Of netlink a session has the protocol for routes, to ask: nothing is changed by it, nobody is spoken to, and there is no other protocol."""

import pytest
from target import Outcome
from test_inside import AS_ROOT

pytestmark = pytest.mark.position("agent")

# What changes something, by rtnetlink(7): {name: (type, body after the header)}. `lo` is interface 1 everywhere.
CHANGES = """
import errno, json, os, socket, struct
LINK, ADDRESS, ROUTE = struct.pack("=BxHiII", 0, 0, 1, 0, 0), struct.pack("=BBBBI", 2, 32, 0, 0, 1), struct.pack("=BBBBBBBBI", 2, 32, 0, 0, 254, 3, 253, 1, 0)
def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
def number(value):
    return struct.pack("=I", value)
TEST = socket.inet_aton("198.51.100.77")
NEIGHBOUR = struct.pack("=BxxxiHBB", 2, 1, 0x80, 0, 0)
MESSAGES = {
    "new address": (20, ADDRESS + attribute(2, TEST) + attribute(1, TEST)),
    "new route": (24, ROUTE + attribute(1, TEST) + attribute(4, number(1))),
    "new neighbour": (28, NEIGHBOUR + attribute(1, TEST) + attribute(2, bytes(6))),
    "new rule": (32, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 0, 0, 1, 0) + attribute(6, number(32111))),
    "another mtu": (16, LINK + attribute(4, number(1400))),
    "another name": (19, LINK + attribute(3, b"lo2\\0")),
    "new link": (16, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + attribute(3, b"attack0\\0") + attribute(18, attribute(1, b"dummy\\0"))),
    "link down": (16, struct.pack("=BxHiII", 0, 0, 1, 0, 1)),
    "less address": (21, struct.pack("=BBBBI", 2, 8, 0, 0, 1) + attribute(2, socket.inet_aton("127.0.0.1"))),
    "less route": (25, struct.pack("=BBBBBBBBI", 2, 32, 0, 0, 255, 0, 0, 0, 0) + attribute(1, socket.inet_aton("127.0.0.1"))),
    "new queue": (36, struct.pack("=BxxxiIII", 0, 1, 0, 0xFFFFFFFF, 0) + attribute(1, b"pfifo\\0")),
    "new table of neighbours": (65, struct.pack("=Bxxx", 2) + attribute(1, b"arp_cache\\0")),
    "new name of a namespace": (88, struct.pack("=Bxxx", 0) + attribute(1, number(7)) + attribute(2, number(os.getpid()))),
}
def answer(to):
    kind, body = MESSAGES[to]
    with socket.socket(16, socket.SOCK_RAW, 0) as channel:
        create = 0x400 if to.startswith("new") else 0
        channel.sendto(struct.pack("=IHHII", 16 + len(body), kind, 0x5 | create, 1, 0) + body, (0, 0))
        error = -struct.unpack_from("=i", channel.recv(8192), 16)[0]
    return "done" if error == 0 else errno.errorcode[error]
print(json.dumps({name: answer(name) for name in MESSAGES}))
"""
NAMES = ("new address", "new route", "new neighbour", "new rule", "another mtu", "another name", "new link", "link down", "less address", "less route", "new queue",
         "new table of neighbours", "new name of a namespace")  # fmt: skip


@pytest.fixture(scope="module")
def answers(product, weak):
    """answers(target, network, defences): {message: answer}, each once for the whole file."""
    known = {}

    def answers(target, network, defences=()):
        key = (target, network, defences)
        if key not in known:
            with target.policy_with(f"network: {network}"), target.without(*defences) if defences else target.intact():
                known[key] = target.python(CHANGES)
        return known[key]

    return answers


@pytest.mark.parametrize("network", ["full", "loopback", "none", "{hosts: [provider.example]}"])
@pytest.mark.parametrize("message", NAMES)
def test_nothing_is_changed_by_netlink(message, network, product, weak, answers, seen_to_work):
    assert answers(product, network)[message] == "EPERM"
    assert answers(weak, network)[message] == "EPERM"
    # In a network of its own the machine loses nothing: as root of that network, the agent gets the kernel's own answer.
    off = answers(weak, "none", AS_ROOT)[message]
    assert off != "EPERM", off
    seen_to_work(AS_ROOT)


SPEAK = """
import errno, json, os, socket, struct
def attempt(call):
    try:
        call()
        return "done"
    except OSError as failure:
        return errno.errorcode[failure.errno]
channel = socket.socket(16, socket.SOCK_RAW, 0)
channel.bind((0, 0))
message = struct.pack("=IHHII", 32, 16, 0, 1, 0) + bytes(16)
print(json.dumps({"to a process": attempt(lambda: channel.sendto(message, (PORT, 0))), "to a group": attempt(lambda: channel.sendto(message, (0, 1))),
                  "hears all namespaces": attempt(lambda: channel.setsockopt(270, 8, 1)), "asks": attempt(lambda: channel.sendto(struct.pack("=IHHIIBxHiII", 32, 18, 0x301, 1, 0, 0, 0, 0, 0, 0), (0, 0)))}))
"""
LISTENER = """
import socket
channel = socket.socket(16, socket.SOCK_RAW, 0)
channel.bind((0, 1))
print(channel.getsockname()[0], flush=True)
print(len(channel.recv(64)), flush=True)
"""


def test_nobody_is_spoken_to_by_netlink(product, control_seen):
    listener = product.machine.popen(["python3", "-c", LISTENER], user="root")
    script = SPEAK.replace("PORT", listener.stdout.readline().decode().strip())
    try:
        seen = product.python(script)
        by_root = product.machine.root(["python3", "-c", script], check=True).stdout.decode()
        heard = listener.stdout.readline()
    finally:
        listener.kill_all()
        listener.communicate()
    assert seen == {"to a process": "EPERM", "to a group": "EPERM", "hears all namespaces": "EPERM", "asks": "done"}, seen
    assert '"to a process": "done"' in by_root and heard == b"32\n", (by_root, heard)
    control_seen("what root sends the listener hears")


def test_of_another_network_nothing_is_told(product, prove):
    """With `network: none` it asks about its own network."""
    ask = "import json, socket; print(json.dumps([name for _, name in socket.if_nameindex()]))"

    def attack(target):
        target.machine.root("ip link add attack1 type dummy 2>/dev/null || ip link add attack1 type veth peer attack2", check=True)
        try:
            with target.policy_with("network: none"):
                seen = target.python(ask)
        finally:
            target.machine.root("ip link del attack1", check=True)
        return Outcome("attack1" in seen, seen)

    prove(attack, "unit:PrivateNetwork", "network-check")
    with_network = product.python(ask)
    assert "lo" in with_network, with_network


def test_the_protocol_for_routes_is_there(product, control_seen):
    seen = product.probe("netlink for routes", "netlink for uevents")
    assert seen == {"netlink for routes": "done", "netlink for uevents": "EPROTONOSUPPORT"}
    control_seen("the one protocol opens")

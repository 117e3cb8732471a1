"""Past the policy by the proxy above the gate (network.via), or by what the proxy says: the gate by itself, in networks of the driver's (tests/system/gate_driver.py)."""

import base64
import json
from pathlib import Path

import pytest
from target import Outcome

SYSTEM = Path(__file__).resolve().parents[1] / "system"
GATE = "/usr/libexec/pi-agent/pi-agent-gate"
DIRECTORY = "/var/lib/gate-above"
PROXY, PROXY_6, OUTSIDE, OWN = "45.155.1.3", "2600:64::5", "45.155.1.2", "45.155.0.1"
VIA = ["proxy.example", 8443, "policy.yaml:30: http://proxy.example:8443"]
LOGIN = "alice:the-proxys-password"
ENCODED = base64.b64encode(LOGIN.encode()).decode()
SAID = "hello from the proxy"
V4 = 2  # AF_INET
# Inside: connects by the gate's name server, or to an address, says a line, and prints what comes.
SAY = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as channel:
    channel.settimeout(10)
    channel.sendall(sys.argv[3].encode() + b"\\r\\n\\r\\n")
    data = b""
    try:
        while len(data) < 500 and (more := channel.recv(65536)): data += more
    except OSError: pass
print(data.decode("latin-1"))
"""
NESTED = "CONNECT nested.example:443 HTTP/1.1\r\nHost: nested.example:443"


@pytest.fixture(scope="module")
def driven(product, weak):
    for target in (product, weak):
        for name in ("gate_driver.py", "proxy_above.py"):
            target.machine.write(f"{DIRECTORY}/{name}", (SYSTEM / name).read_text())
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-r", DIRECTORY], check=True)


def drive(target, order, host, port, words="x", proxy=None):
    """What a session saw that asked for it, and what the proxy heard meanwhile."""
    proxy = proxy or {}
    questions = [
        {"do": "proxy", **proxy},
        {"do": "start", "order": {"via": [VIA], **order, "rules": [[name, number, "policy.yaml:1"] for name, number in order.get("rules", [(host, port)])]}},
        {"do": "run", "argv": ["python3", "-c", SAY, host, str(port), words]},
        {"do": "proxy"},
    ]
    command = ["timeout", "100", "python3", "-B", f"{DIRECTORY}/gate_driver.py", GATE, "alice", DIRECTORY]
    done = target.machine.root(command, input="".join(json.dumps(one) + "\n" for one in questions).encode())
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 5 and lines[2].get("first") == [{"ready": True}], (lines, done)
    return lines[3], lines[4]["heads"]


def asked(host, port, **order):
    """The proxy is asked to connect to what the policy does not mean."""

    def attack(target):
        ran, heads = drive(target, order, host, port)
        return Outcome(any(head.startswith("CONNECT ") for head in heads), (ran, heads))

    return attack


def nested(host, port, proxy=None, **order):
    """The session itself says to the proxy where to connect."""

    def attack(target):
        ran, heads = drive(target, order, host, port, NESTED, proxy)
        return Outcome(any("nested.example" in head for head in heads), (ran, heads))

    return attack


def heard(sign, script, **order):
    """Bytes of the proxy's own reach the session as those of the host."""

    def attack(target):
        ran, heads = drive(target, order, "only.example", 22, proxy={"script": script})
        return Outcome(sign in ran["out"], (ran, heads))

    return attack


PRIVATE = {
    "private.example": (22, ("gate-addresses", "gate-on-link")), "loop.example": (22, ("gate-addresses", "gate-own-address")), "both.example": (22, ("gate-addresses", "gate-on-link")),
    "meta.example": (22, ("gate-addresses",)), "own.example": (22, ("gate-own-address",)), "second.example": (22, ("gate-own-address",)),
    "neighbour.example": (22, ("gate-on-link",)), "neighbour6.example": (22, ("gate-on-link",)), "translated.example": (22, ("gate-translation",)),
    "metadata6.example": (22, ("gate-translation",)),
}  # fmt: skip


@pytest.mark.position("agent")
@pytest.mark.parametrize("name", PRIVATE)
def test_no_name_leads_into_a_private_network_by_the_proxy(name, driven, prove):
    """As this host knows the name; of "both" the proxy would choose an address."""
    port, defences = PRIVATE[name]
    prove(asked(name, port), *defences)


@pytest.mark.position("agent")
@pytest.mark.parametrize("host", ["169.254.169.254", "169.254.7.7", "127.0.0.7"])
def test_what_each_host_has_for_itself_is_not_the_proxys(host, driven, prove):
    """A rule names it and means this host's own; the proxy would hand out its own host's credentials."""
    prove(asked(host, 80), "via-own-places")


BY_NAME, TWICE = ("proxy.example", 8443), ("alias.example", 8443)
ITSELF = {
    "by its name": nested(*BY_NAME, direct=["*.example"]),
    "by its name, through itself": nested(*BY_NAME),
    "by another name": nested(*TWICE, direct=["*.example"]),
    "by another name, through itself": nested(*TWICE),
    "by a name that it alone knows": nested("self.example", 8443),
    "by its address": nested(PROXY, 8443, direct=[PROXY]),
    "by its address, through itself": nested(PROXY, 8443),
    "by a range": nested(PROXY, 8443, rules=[("45.155.1.0/24", 8443)], direct=["45.155.1.0/24"]),
    "by another of its ports": nested("alias.example", 22, direct=["*.example"]),
    "by an address of IPv6": nested(PROXY_6, 8443, via=[[PROXY_6, 8443, "policy.yaml:30"]], direct=[PROXY_6]),
    "on the host's loopback": nested("127.0.0.1", 8443, {"here": [[V4, "127.0.0.1", 8443]]}, via=[["127.0.0.1", 8443, "policy.yaml:30"]], rules=[("localhost", 8443)]),
    "on the host's loopback, by an address of the host": nested(OWN, 8443, {"here": [[V4, "0.0.0.0", 8443]]}, via=[["127.0.0.1", 8443, "policy.yaml:30"]], direct=[OWN]),
}


@pytest.mark.position("agent")
@pytest.mark.parametrize("way", ITSELF)
def test_no_session_reaches_the_proxy_itself(way, driven, prove):
    """It would say where the proxy connects, and no rule would be asked."""
    prove(ITSELF[way], "via-itself")


@pytest.mark.position("outsider")
@pytest.mark.parametrize("script", ["login", "refused", "redirect", "failed", "switched"])
def test_a_proxy_that_opens_no_tunnel_says_nothing_to_the_session(script, driven, prove):
    prove(heard(SAID, script), "via-status")


@pytest.mark.position("outsider")
@pytest.mark.parametrize("script", ["huge head", "endless heads"])
def test_the_head_of_a_proxys_answer_is_bounded(script, driven, prove):
    prove(heard("hello", script), "via-head")


@pytest.mark.position("outsider")
def test_a_login_does_not_come_back_from_the_proxy(driven, prove):
    """A proxy that repeats what it heard, in its status line and its body."""
    prove(heard(ENCODED, "echoes", login=LOGIN), "via-status")


@pytest.mark.position("agent")
def test_no_session_says_fields_to_the_proxy(driven, product):
    """Nor does it see a login in what the gate passes on."""
    for words in ("CONNECT only.example:22\r\nX: y HTTP/1.1", "CONNECT only.example:22 HTTP/1.1\r\nProxy-Authorization: Basic bWFsbG9yeTp4\r\nX-Odd: 1"):
        ran, heads = drive(product, {"rules": [("only.example", 22)], "login": LOGIN}, "only.example", 22, words, {"login": LOGIN})
        assert all("X-Odd" not in head and "bWFsbG9yeTp4" not in head and head.count("Proxy-Authorization") == 1 for head in heads) and heads, heads
        assert ENCODED not in ran["out"], ran

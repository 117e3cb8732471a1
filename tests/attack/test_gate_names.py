"""What a session says of a host against what it reaches: the gate by itself, in networks of the driver's (tests/system/gate_driver.py)."""

import json
from pathlib import Path

import pytest
from target import Outcome

pytestmark = pytest.mark.position("agent")

SYSTEM = Path(__file__).resolve().parents[1] / "system"
GATE = "/usr/libexec/pi-agent/pi-agent-gate"
DIRECTORY = "/var/lib/gate-names"
RULES = [[host, port, "policy.yaml:1"] for host, port in
         (("allowed.example", 443), ("allowed.example", 80), ("allowed.example", 22), ("missing.example", 443), ("private.example", 443), ("meta.example", 80), ("own.example", 22),
          ("second.example", 22), ("loop.example", 22), ("neighbour.example", 22), ("neighbour6.example", 22), ("translated.example", 22))]  # fmt: skip
# TLS to a host with the name of another one inside; prints the name that the server was asked for.
OTHER_NAME = """
import socket, ssl, sys
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
with context.wrap_socket(socket.create_connection((sys.argv[1], 443), 10), server_hostname=sys.argv[2]) as channel:
    channel.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
    data = b""
    while more := channel.recv(65536): data += more
print(data.decode())
"""
OTHER_HOST = """
import socket
with socket.create_connection(("allowed.example", 80), 10) as channel:
    channel.sendall(b"GET / HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n")
    data = b""
    while more := channel.recv(65536): data += more
print(data.decode())
"""
# A real ClientHello with one more extension: the encrypted one, of which the server here knows nothing. Prints the kind of its answer.
ENCRYPTED_NAME = """
import socket, ssl
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
half = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="allowed.example")
try: half.do_handshake()
except ssl.SSLWantReadError: pass
hello = bytearray(outgoing.read()); more = b"\\xfe\\x0d\\0\\x04\\0\\0\\0\\0"
at = 9 + 2 + 32; at += 1 + hello[at]; at += 2 + int.from_bytes(hello[at:at + 2], "big"); at += 1 + hello[at]
for place, size in ((3, 2), (6, 3), (at, 2)):
    hello[place:place + size] = (int.from_bytes(hello[place:place + size], "big") + len(more)).to_bytes(size, "big")
with socket.create_connection(("allowed.example", 443), 10) as channel:
    channel.sendall(hello + more); print("answer", channel.recv(1).hex())
"""
# At port 22 a server gives back what comes, so the session sees what passed.
RECORD_BEFORE = """
import socket, ssl
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
half = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="other.example")
try: half.do_handshake()
except ssl.SSLWantReadError: pass
with socket.create_connection(("allowed.example", 22), 10) as channel:
    channel.sendall(b"\\x14\\x03\\x03\\0\\x01\\x01" + outgoing.read()); channel.shutdown(socket.SHUT_WR)
    data = b""
    try:
        while more := channel.recv(65536): data += more
    except ConnectionError: pass
print("passed" if b"other.example" in data else data)
"""
# What follows a request for a WebSocket that the server does not open: another request, for another host of that server.
WEBSOCKET = "GET {} HTTP/1.1\\r\\nHost: allowed.example\\r\\nUpgrade: websocket\\r\\nConnection: keep-alive, Upgrade\\r\\nSec-WebSocket-Key: eA==\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n"
AFTER_UPGRADE = f"""
import socket
with socket.create_connection(("allowed.example", 80), 10) as channel:
    channel.sendall(b"{WEBSOCKET.format('/next')}"); data = channel.recv(65536)
    channel.sendall(b"GET / HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n"); channel.shutdown(socket.SHUT_WR)
    while more := channel.recv(65536): data += more
print(data.decode())
"""
ECHO = f"""
import socket
with socket.create_connection(("allowed.example", 80), 10) as channel:
    channel.sendall(b"{WEBSOCKET.format('/echo')}"); data = channel.recv(65536)
    channel.sendall(b"frame"); data += channel.recv(65536); channel.shutdown(socket.SHUT_WR)
print(data.decode())
"""
MISSING = """
import socket, time
begin = time.monotonic()
try: print(socket.getaddrinfo("missing.example", 443))
except socket.gaierror as error: print("no such name" if error.errno == socket.EAI_NONAME else error, time.monotonic() - begin < 3)
"""
GREETING = "import socket, sys; print(socket.create_connection((sys.argv[1], 22), 10).recv(6).decode())"


@pytest.fixture(scope="module")
def driven(product, weak):
    for target in (product, weak):
        target.machine.write(f"{DIRECTORY}/gate_driver.py", (SYSTEM / "gate_driver.py").read_text())
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-r", DIRECTORY], check=True)


def attack_by(sign, *argv):
    """Runs it inside, with a new gate; it succeeds if it prints the sign."""

    def attack(target):
        questions = [{"do": "start", "order": {"rules": RULES}}, {"do": "run", "argv": ["python3", "-c", *argv]}]
        command = ["timeout", "100", "python3", "-B", f"{DIRECTORY}/gate_driver.py", GATE, "alice", DIRECTORY]
        done = target.machine.root(command, input="".join(json.dumps(one) + "\n" for one in questions).encode())
        _, started, ran = [json.loads(line) for line in done.stdout.splitlines()]
        assert started.get("first") == [{"ready": True}], (started, done)
        return Outcome(sign in ran["out"], ran)

    return attack


def test_the_name_inside_tls_is_the_one_that_the_rule_allows(driven, prove):
    prove(attack_by('"said": "other.example"', OTHER_NAME, "allowed.example", "other.example"), "gate-names")


def test_the_host_of_a_plain_request_is_the_one_that_the_rule_allows(driven, prove):
    prove(attack_by("Host: other.example", OTHER_HOST), "gate-host-field")


def test_behind_a_websocket_that_the_server_does_not_open_no_other_request_passes(driven, prove):
    prove(attack_by("Host: other.example", AFTER_UPGRADE), "gate-upgrade")


def test_a_websocket_at_port_80_opens_and_carries_what_follows(driven, product):
    said = attack_by("frame", ECHO)(product).seen
    assert "101 Switching Protocols" in said["out"] and "x-seen: 1" in said["out"] and "frame" in said["out"], said


def test_an_allowed_name_that_does_not_exist_is_an_error_of_names(driven, product):
    said = attack_by("no such name True", MISSING)(product)
    assert said.succeeded, said


def test_a_name_that_only_the_server_can_read_is_refused(driven, prove):
    prove(attack_by("answer 16", ENCRYPTED_NAME), "gate-encrypted-names")


def test_no_record_before_the_first_message_hides_its_name(driven, prove):
    """At a port where anything may be said: the server takes the name, and skips or answers the rest."""
    prove(attack_by("passed", RECORD_BEFORE), "gate-records")


def test_a_name_does_not_lead_into_a_network_of_the_host(driven, prove):
    prove(attack_by('"said": "private.example"', OTHER_NAME, "private.example", "private.example"), "gate-addresses", "gate-on-link")


def test_a_name_does_not_lead_to_the_hosts_loopback(driven, prove):
    prove(attack_by("hello", GREETING, "loop.example"), "gate-addresses", "gate-own-address")


@pytest.mark.parametrize("name", ["own.example", "second.example"])
def test_a_name_does_not_lead_to_an_address_of_the_host(name, driven, prove):
    """Nor to a second one in the same network, which the kernel reaches from the first; where a socket can have any address (net.ipv4.ip_nonlocal_bind), too."""
    prove(attack_by("hello", GREETING, name), "gate-own-address")


@pytest.mark.parametrize("name", ["neighbour.example", "neighbour6.example"])
def test_a_name_does_not_lead_to_a_neighbour_of_the_host(name, driven, prove):
    """Its address is one of the Internet, and no gateway is between."""
    prove(attack_by("hello", GREETING, name), "gate-on-link")


def test_a_name_does_not_lead_into_a_network_by_its_own_translation(driven, prove):
    """From IPv6 to IPv4 (NAT64), by a prefix that the network says (RFC 7050)."""
    prove(attack_by("hello", GREETING, "translated.example"), "gate-translation")

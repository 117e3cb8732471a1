"""A port of a session's own network on its user's loopback (`pi --pi-agent-port`): HTTP and websockets pass, both ways and for as long as they like."""

import contextlib
import json

import pytest
from administering import ctl
from launching import DEMO, PLAYING_POLICY, assert_refused, pi, read_line

pytestmark = pytest.mark.usefixtures("playing")

OWN = "network: none\nwrapper: {ports: true}\n"
# A development server: a page, and a websocket that says back what it hears (RFC 6455).
SERVER = """
import base64, hashlib, socket, sys, threading
family, address = (socket.AF_INET6, "::1") if sys.argv[2:] else (socket.AF_INET, "127.0.0.1")
def frame(stream):
    head = stream.read(2); size = head[1] & 127
    size = int.from_bytes(stream.read(2), "big") if size == 126 else int.from_bytes(stream.read(8), "big") if size == 127 else size
    mask = stream.read(4)
    return bytes(byte ^ mask[at % 4] for at, byte in enumerate(stream.read(size)))
def serve(one):
    stream = one.makefile("rb"); head = {}
    line = stream.readline().decode()
    while (field := stream.readline().decode().strip()): head[field.split(":")[0].lower()] = field.split(": ", 1)[1]
    if "sec-websocket-key" not in head:
        body = f"page {line.split()[1]} for {head['host']}".encode()
        one.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n" % len(body) + body); one.close(); return
    accept = base64.b64encode(hashlib.sha1((head["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
    one.sendall(f"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: {accept}\\r\\n\\r\\n".encode())
    while True:
        said = frame(stream)
        one.sendall(b"\\x82\\x7f" + len(said).to_bytes(8, "big") + said)
server = socket.create_server((address, int(sys.argv[1])), family=family)
print("ready", flush=True)
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
WEBSOCKET = """
import os, socket, sys, time
one = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); stream = one.makefile("rb")
one.sendall(b"GET /live HTTP/1.1\\r\\nHost: localhost\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n")
head = b""
while not head.endswith(b"\\r\\n\\r\\n"): head += stream.readline()
print(head.split(b"\\r\\n")[0].decode(), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head)
for size in (1, 70000, 3000000, 5):
    said = os.urandom(size); mask = os.urandom(4); time.sleep(0.3)
    masked = bytes(a ^ b for a, b in zip(said, mask * (size // 4 + 1)))
    one.sendall(b"\\x82\\xff" + size.to_bytes(8, "big") + mask + masked)
    assert stream.read(2) == b"\\x82\\x7f"
    print(stream.read(int.from_bytes(stream.read(8), "big")) == said)
"""
GET = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


@contextlib.contextmanager
def serving(machine, *options, port="3000", further=""):
    """pi with a development server as its agent."""
    machine.write(f"{DEMO}/server.py", SERVER, owner="alice")
    process = machine.popen(["pi", *options, "sh", f"exec python3 server.py {port} {further}"], user="alice", cwd=DEMO)
    try:
        assert read_line(process) == b"ready\n"
        yield process
    finally:
        process.kill_all()
        process.communicate()
        machine.root(["rm", f"{DEMO}/server.py"], check=True)


def got(machine, url, user="alice"):
    return machine.run(["python3", "-c", GET, url], user=user)


@pytest.fixture
def own_network(playing_policy):
    playing_policy(PLAYING_POLICY + OWN)


@pytest.mark.usefixtures("own_network")
class TestOwnNetwork:
    def test_pages_come_by_every_name_of_the_loopback(self, machine):
        with serving(machine, "--pi-agent-port", "3000"):
            for name in ("127.0.0.1", "localhost", "[::1]"):
                done = got(machine, f"http://{name}:3000/a?b=c")
                assert done.stdout.decode() == f"page /a?b=c for {name}:3000\n", done

    def test_a_websocket_says_back_what_it_hears(self, machine):
        with serving(machine, "--pi-agent-port=3000"):
            done = machine.run(["python3", "-c", WEBSOCKET, "3000"], user="alice", check=True, timeout=60)
            assert done.stdout.decode().split("\n")[:-1] == ["HTTP/1.1 101 Switching Protocols True", *["True"] * 4], done

    def test_another_number_here_and_a_server_on_the_newer_loopback(self, machine):
        with serving(machine, "--pi-agent-port=8080:3000", "--pi-agent-port=8081:3000", further="six"):
            for port in (8080, 8081):
                assert got(machine, f"http://localhost:{port}/").stdout.decode() == f"page / for localhost:{port}\n"
            assert got(machine, "http://localhost:3000/").returncode == 1

    def test_a_server_that_begins_later_is_found(self, machine):
        with serving(machine, "--pi-agent-port=3000", "--pi-agent-port=3001", port="3001"):
            assert got(machine, "http://localhost:3000/").returncode == 1  # nobody listens there
            assert b"page / for" in got(machine, "http://localhost:3001/").stdout

    def test_a_port_closes_with_its_session_and_can_be_had_again(self, machine):
        for _ in range(2):
            with serving(machine, "--pi-agent-port", "3000"):
                assert b"page" in got(machine, "http://localhost:3000/").stdout
            refused = got(machine, "http://localhost:3000/")
            assert b"Connection refused" in refused.stderr, refused

    def test_a_port_that_somebody_has_is_refused(self, machine):
        taken = machine.popen(["python3", "-c", "import socket; s = socket.create_server(('::1', 3000), family=socket.AF_INET6); print('ready', flush=True); s.accept()"], user="bob")
        try:
            assert read_line(taken) == b"ready\n"
            assert_refused(pi(machine, "--pi-agent-port=3000", "true"), 77, "port 3000 of this host is taken", "--pi-agent-port=33000:3000")
        finally:
            taken.kill_all()
            taken.communicate()
        assert_refused(pi(machine, "--pi-agent-port=80", "true"), 77, "port 80 of this host is for root's programs")

    @pytest.mark.parametrize("port", ["0", "65536", "a", "3000:", ":3000", "1:2:3", "-1", ""])
    def test_what_is_no_port_is_refused(self, machine, port):
        assert pi(machine, f"--pi-agent-port={port}", "true").returncode == 64


def test_hosts_have_ports_too(machine, playing_policy):
    playing_policy(PLAYING_POLICY + "network: {hosts: [github.com]}\nwrapper: {ports: true}\n")
    with serving(machine, "--pi-agent-port", "3000"):
        assert b"page /x for localhost:3000" in got(machine, "http://localhost:3000/x").stdout


def test_without_the_key_there_is_no_port_and_a_level_gives_it(machine, playing_policy):
    playing_policy(PLAYING_POLICY + "network: none\n")
    assert_refused(pi(machine, "--pi-agent-port=3000", "sh", "echo ran"), 77, "wrapper.ports", "E77-start")
    playing_policy(PLAYING_POLICY.replace("  alice:\n", "  alice:\n    wrapper: {ports: true}\n") + "network: none\n")
    assert pi(machine, "--pi-agent-port=3000", "sh", "echo ran").stdout == b"ran\n"
    shown = json.loads(ctl(machine, "show", "--effective", "--user", "alice", "--json").stdout)
    assert shown["effective"]["wrapper.ports"]["value"] == "true", shown


def test_where_the_session_has_the_hosts_network_the_option_is_refused(machine, playing_policy):
    playing_policy(PLAYING_POLICY + "wrapper: {ports: true}\n")
    assert_refused(pi(machine, "--pi-agent-port=3000", "sh", "echo ran"), 77, "no network of its own", "E77-start")
    assert pi(machine, "--pi-agent-network=none", "--pi-agent-port=3000", "sh", "echo ran").stdout == b"ran\n"

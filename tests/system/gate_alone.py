"""pi-agent-gate by itself, in namespaces of its own: a program for root that plays the runner, the session and a provider with TLS.

    gate_alone.py GATE CASE     # a case of gate_route_cases.py, gate_route_idle.py or gate_route_attacks.py; prints "passed", or a traceback
"""

import os
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from gate_driver import KINDS, bind_file, decode_message, number, packet_pipe, send_record, text

ADDRESS = "198.51.100.7"
OLD_ADDRESS = "198.51.100.8"  # of a server that knows TLS 1.0 alone
KEY = "sk-the-key-that-no-session-has"
HOSTS = ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "openrouter.ai", "old.example", "wrong.example", "expired.example", "self.example", "common.example")
ORDER, LISTENER = 40, 41
ROUTE = 3  # the kind of its denials
ABOVE = [number(0), number(0), text("")]  # no proxy above, none that go direct, no login
RESPONSES = ["POST /v1/responses", "WEBSOCKET /v1/responses", "GET /v1/models/"]


# --- What the runner says, as runner/wire/gate_messages.hpp has it.


def texts(values):
    return number(len(values)) + b"".join(text(value) for value in values)


def provider(host, requests, header="authorization", prefix="Bearer "):
    methods, paths = zip(*(request.split(" ") for request in requests))
    return b"".join(text(field) for field in (host, header, prefix, KEY)) + texts(methods) + texts(paths) + text(f"policy.yaml:{HOSTS.index(host) + 1}")


PROVIDERS = [
    provider("api.openai.com", RESPONSES),
    provider("api.anthropic.com", ["POST /v1/messages"], "x-api-key", ""),
    provider("generativelanguage.googleapis.com", ["POST /v1beta/models/"], "x-goog-api-key", ""),
    provider("openrouter.ai", ["POST /api/v1/messages"]),
    *(provider(host, RESPONSES) for host in HOSTS[4:]),
]


def order(authorities, idle, listeners):
    rules = [text(address) + number(443) + text("policy.yaml:9") for address in (ADDRESS, OLD_ADDRESS)]
    return b"".join([number(ORDER), number(len(rules)), *rules, number(len(PROVIDERS)), *PROVIDERS, number(idle), text("0" * 32), number(listeners), text(authorities), *ABOVE])


class Gate:
    """The gate with a listener for the route, and what it says."""

    def __init__(self, program, authorities, idle=600):
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.said, says = packet_pipe()
        self.process = subprocess.Popen([program], stdin=theirs, stdout=says, stderr=subprocess.PIPE)
        theirs.close()
        os.close(says)
        send_record(self.channel, order(authorities, idle, 1))
        self.port = 809  # as in a session (runner/plan/sandbox_plan.hpp); the network is this program's own
        listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        socket.send_fds(self.channel, [number(LISTENER) + number(KINDS["reverse"]) + number(self.port)], [listener.fileno()])
        listener.close()
        assert select.select([self.said], [], [], 30)[0]
        said = os.read(self.said, 100)
        assert said and decode_message(said) == {"ready": True}, self.process.stderr.read()

    def denials(self, seconds=1.5):
        """Those that come within this time."""
        found = []
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.said], [], [], left)[0]:
                found.append(decode_message(os.read(self.said, 4096)))
        return [message for message in found if message is not None]

    def memory(self):
        """KiB that are its own."""
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

    def end(self):
        self.channel.close()
        assert self.process.wait(5) == 0, self.process.stderr.read()


# --- The provider.


def openssl(directory, *arguments):
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Authority:
    """A certificate authority, and what it signs."""

    def __init__(self, directory):
        self.directory = directory
        new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-config", "cnf"]
        Path(directory, "cnf").write_text("[req]\ndistinguished_name=name\n[name]\n[ca]\nbasicConstraints=critical,CA:true\n")
        openssl(directory, *new, "-x509", "-days", "2", "-subj", "/CN=authority", "-extensions", "ca", "-keyout", "ca.key", "-out", "ca.pem")
        openssl(directory, *new, "-subj", "/CN=leaf", "-keyout", "leaf.key", "-out", "leaf.csr")
        openssl(directory, "req", "-new", "-config", "cnf", "-key", "leaf.key", "-subj", "/CN=common.example", "-out", "common.csr")
        self.pem = Path(directory, "ca.pem").read_text()

    def sign(self, name, *hosts, dates=(("-days", "2"),), issuer=("-CA", "ca.pem", "-CAkey", "ca.key"), request="leaf.csr"):
        names = "subjectAltName=" + ",".join("DNS:" + host for host in hosts) if hosts else "basicConstraints=CA:false"
        Path(self.directory, name + ".ext").write_text(names)
        for index, when in enumerate(dates):
            try:
                openssl(self.directory, "x509", "-req", "-in", request, *issuer, *when, "-extfile", name + ".ext", "-out", name + ".pem")
                break
            except subprocess.CalledProcessError:
                if index + 1 == len(dates):
                    raise
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(self.directory, name + ".pem"), Path(self.directory, "leaf.key"))
        return context


def contexts(authority):
    """Of every host, with what is wrong with some."""
    past = (("-days", "-1"), ("-not_before", "20200101000000Z", "-not_after", "20200102000000Z"))
    made = dict.fromkeys(HOSTS, authority.sign("good", *HOSTS[:5]))
    made["wrong.example"] = authority.sign("wrong", "api.openai.com", "*.wrong.example")
    made["expired.example"] = authority.sign("expired", "expired.example", dates=past)
    made["common.example"] = authority.sign("common", request="common.csr")  # its name is the holder's own word
    made["self.example"] = authority.sign("self", "self.example", issuer=("-signkey", "leaf.key"))
    return made


def old_context(authority):
    old = authority.sign("old", "old.example")
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1
    return old


class Provider:
    """Answers each connection by `answer(connection, head)`, and remembers what came."""

    def __init__(self, authority):
        self.contexts = contexts(authority)
        self.answer = None
        self.heads = []
        self.connections = 0
        self.context = self.contexts["api.openai.com"]
        self.context.set_alpn_protocols(["h2", "http/1.1"])
        self.context.sni_callback = lambda connection, name, _: setattr(connection, "context", self.contexts.get(name, self.context))
        self.protocols = []
        for address, context in ((ADDRESS, self.context), (OLD_ADDRESS, old_context(authority))):
            threading.Thread(target=self.serve, args=(socket.create_server((address, 443), backlog=512), context), daemon=True).start()

    def serve(self, server, context):
        while True:
            accepted, _ = server.accept()
            self.connections += 1
            threading.Thread(target=self.one, args=(accepted, context), daemon=True).start()

    def one(self, accepted, context):
        try:
            with context.wrap_socket(accepted, server_side=True) as connection:
                connection.settimeout(60)
                self.protocols.append((connection.version(), connection.selected_alpn_protocol()))
                head = read_until(connection, b"\r\n\r\n")
                self.heads.append(head)
                self.answer(connection, head)
                time.sleep(0.1)  # a close with bytes unread resets the connection, and what was sent can be lost
        except OSError:
            pass  # what the cases look for they see at their own end


def read_until(connection, end):
    seen = b""
    while not seen.endswith(end):
        byte = connection.recv(1)
        if not byte:
            raise ConnectionError(f"ended after {seen!r}")
        seen += byte
    return seen


def read_exactly(connection, size):
    seen = b""
    while len(seen) < size:
        piece = connection.recv(size - len(seen))
        if not piece:
            raise ConnectionError(f"ended after {len(seen)} bytes")
        seen += piece
    return seen


def read_chunks(connection):
    """The pieces of a body, until its last one; fails where it breaks off."""
    while size := int(read_until(connection, b"\r\n"), 16):
        yield read_exactly(connection, size)
        assert read_exactly(connection, 2) == b"\r\n"
    assert read_exactly(connection, 2) == b"\r\n"


def fields(head):
    """Of a head, by their names in lower case; each once."""
    lines = head.decode("latin-1").split("\r\n")[1:-2]
    pairs = [line.split(": ", 1) for line in lines]
    assert len({name.lower() for name, _ in pairs}) == len(pairs), head
    return {name.lower(): value for name, value in pairs}


def in_namespaces(program, arguments):
    """A network with a loopback and the provider's address, and names that lead there."""
    if os.environ.get("GATE_ALONE"):
        return
    os.environ["GATE_ALONE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--", sys.executable, "-B", program, *arguments])


def set_up(directory):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (ADDRESS, OLD_ADDRESS):
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    others = [host for host in HOSTS if host != "old.example"]
    bind_file("/etc/hosts", f"127.0.0.1 localhost\n{OLD_ADDRESS} old.example\n{ADDRESS} {' '.join(others)}\n", Path(directory))
    bind_file("/etc/nsswitch.conf", "hosts: files\n", Path(directory))


def main():
    program, case = sys.argv[1:3]
    in_namespaces(__file__, sys.argv[1:])
    import gate_route_attacks  # which have what this file has
    import gate_route_cases
    import gate_route_idle

    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        set_up(directory)
        authority = Authority(directory)
        service = Provider(authority)
        gate = Gate(program, authority.pem, **gate_route_idle.SETTINGS.get(case, {}))
        module = gate_route_attacks if case.startswith("attack") else gate_route_idle if case in gate_route_idle.SETTINGS else gate_route_cases
        getattr(module, case)(gate, service)
        if case not in gate_route_cases.ENDING:
            gate.end()
        print("passed")


if __name__ == "__main__":
    main()

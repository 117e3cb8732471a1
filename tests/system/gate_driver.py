"""Runs as root on the test machine and stands for the runner: networks of its own, services outside, a session's listeners, and one gate.

    gate_driver.py GATE USER DIRECTORY

Reads one JSON object a line and answers with one. Nothing of it is seen outside: it has a network and mounts of its own, in which it is "the host",
and two more networks, "inside" and "outside".
"""

import array
import ctypes
import json
import os
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_NETWORK, NEW_MOUNTS = 0x40000000, 0x00020000
OUTSIDE, PRIVATE = "45.155.1.2", "10.77.0.2"
OWN, SECOND = "45.155.0.1", "45.155.0.3"  # of the host, in one network
NEIGHBOUR, NEIGHBOUR_6 = "45.155.0.2", "2600:45::2"  # in the same network; the gateway to OUTSIDE, too
PROXY, PROXY_6 = "45.155.1.3", "2600:64::5"
TRANSLATED = "2600:64::a4d:2"  # PRIVATE, by the network's own way from IPv6 to IPv4
NAMES = {
    "allowed.example": [OUTSIDE], "other.example": [OUTSIDE], "a.wild.example": [OUTSIDE], "private.example": [PRIVATE], "named.example": [PRIVATE],
    "both.example": [PRIVATE, OUTSIDE], "loop.example": ["127.0.0.1"], "meta.example": ["169.254.169.254"], "own.example": [OWN], "second.example": [SECOND],
    "dead.example": ["45.155.1.9"], "neighbour.example": [NEIGHBOUR], "neighbour6.example": [NEIGHBOUR_6], "translated.example": [TRANSLATED],
    "ipv4only.arpa": ["2600:64::192.0.0.170"], "metadata6.example": ["2600:64::169.254.169.254"], "proxy.example": [PROXY], "alias.example": [PROXY],
}  # fmt: skip
# A proxy above the host, which alone knows these (proxy_above.py), and has one more address.
HIDDEN = {"only.example": OUTSIDE, "deep.only.example": OUTSIDE, "inner.example": PRIVATE, "self.example": "127.0.0.1"}
PROXY_PORTS = (3128, 8443, 22)
KINDS = {"proxy": 0, "reverse": 1, "transparent": 2, "dns_udp": 3, "dns_tcp": 4}
LISTENERS = [
    ("proxy", socket.AF_INET, "127.0.0.1", 0), ("dns_udp", socket.AF_INET, "127.0.0.53", 53), ("dns_tcp", socket.AF_INET, "127.0.0.53", 53),
    ("transparent", socket.AF_INET, "127.0.0.1", 5432),
    *((kind, family, address, port) for kind in ("transparent",) for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"))
      for port in (443, 80, 22, 8443)),
]  # fmt: skip


def call(number):
    if number != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def new_network():
    """A process that holds a network of its own, with its loopback up."""
    held = "ip link set lo up && ip address add 127.0.0.2/8 dev lo && echo ready && exec sleep infinity >/dev/null"
    holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "-n", "sh", "-c", held], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"ready\n"
    return holder


def in_network(holder, function, *arguments):
    """Calls it in a thread that has entered the network; its sockets stay there."""
    result = []

    def enter():
        with open(f"/proc/{holder.pid}/ns/net") as network:
            call(LIBC.setns(network.fileno(), NEW_NETWORK))
        result.append(function(*arguments))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return result[0]


def listen(family, address, port, kind=socket.SOCK_STREAM):
    server = socket.socket(family, kind)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    server.bind((address, port))
    if kind == socket.SOCK_STREAM:
        server.listen(512)
    return server


# --- Services, outside and on the host.


def read_head(channel):
    data = b""
    while b"\r\n\r\n" not in data and (more := channel.recv(65536)):
        data += more
    return data


def answer_http(channel, said):
    """The name that was said, the request, and at which address; `/long/N` gets N bytes, `/slow/N` a byte a second, N of them. `/echo` becomes a
    WebSocket, `/next` does not, and answers the next request, too."""
    head = read_head(channel)
    target = head.split(b" ")[1].decode() if head else ""
    if target.startswith("/long/"):
        count = int(target.rpartition("/")[2])
        channel.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % count)
        piece = b"x" * 65536
        while count > 0:
            channel.sendall(piece[:count])
            count -= len(piece)
        return
    if target.startswith("/slow/"):
        count = int(target.rpartition("/")[2])
        channel.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % count)
        for _ in range(count):
            time.sleep(1)
            channel.sendall(b"x")
        return
    if target == "/echo":
        channel.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nx-seen: %d\r\n\r\n" % head.lower().count(b"upgrade: websocket"))
        while more := channel.recv(65536):
            channel.sendall(more)
        return
    if target == "/next":
        channel.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        head = read_head(channel)
    body = json.dumps({"said": said, "head": head.decode(), "at": channel.getsockname()[0]}).encode()
    channel.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))


def answer_tls(channel, context):
    with context.wrap_socket(channel, server_side=True) as safe:
        answer_http(safe, safe.said)


def answer_first(channel, _):
    """Speaks first, gives back what comes, and has a last word when the other side has ended."""
    channel.sendall(b"hello\n")
    while more := channel.recv(65536):
        channel.sendall(more)
    channel.sendall(b"bye\n")


def serve(server, answer, argument):
    def one(channel):
        try:
            with channel:
                answer(channel, argument)
                channel.shutdown(socket.SHUT_WR)
                while channel.recv(65536):
                    pass
        except OSError:
            pass  # the client has gone

    def forever():
        while True:
            channel, _ = server.accept()
            threading.Thread(target=one, args=(channel,), daemon=True).start()

    threading.Thread(target=forever, daemon=True).start()


def make_context(directory):
    names = ",".join(f"DNS:{name}" for name in (*NAMES, *HIDDEN))
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-keyout", key, "-out", certificate,
         "-subj", "/CN=pi-agent tests", "-addext", f"subjectAltName={names}"], check=True, capture_output=True)  # fmt: skip
    certificate.chmod(0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda channel, name, _: setattr(channel, "said", name)
    return context


def start_services(outside, context):
    for address in (OUTSIDE, PRIVATE):
        for port, answer, argument in ((443, answer_tls, context), (8443, answer_tls, context), (80, answer_http, None), (22, answer_first, None), (9000, answer_first, None)):
            serve(in_network(outside, listen, socket.AF_INET, address, port), answer, argument)
    for family, address in ((socket.AF_INET, NEIGHBOUR), (socket.AF_INET6, NEIGHBOUR_6), (socket.AF_INET6, TRANSLATED)):
        serve(in_network(outside, listen, family, address, 22), answer_first, None)
    for address, port in (("127.0.0.1", 5432), (OWN, 22), (SECOND, 22), ("127.0.0.1", 22)):
        serve(listen(socket.AF_INET, address, port), answer_first, None)


def bind_file(path, text, directory):
    source = directory / ("host-" + Path(path).name)
    source.write_text(text)
    source.chmod(0o644)
    subprocess.run(["mount", "--bind", source, path], check=True)


# --- What runner and gate say to each other (runner/wire/gate_messages.hpp).

REASONS = (
    "no-rule", "other-port", "private-address", "no-address", "other-name", "no-name", "encrypted-name", "not-tls", "not-http", "plain-http",
    "malformed", "too-slow", "too-many", "no-room", "no-provider", "other-method", "other-path", "other-page", "untrusted",
    "proxy-itself", "proxy-gone", "proxy-slow", "proxy-login", "proxy-refused", "proxy-failed", "proxy-unreadable",
)  # fmt: skip


def number(value):
    return struct.pack("<Q", value)


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return number(len(data)) + data


def encode_rules(rules):
    return number(len(rules)) + b"".join(text(host) + number(port) + text(where) for host, port, where in rules)


def encode_order(order, listeners):
    data = number(40) + encode_rules(order.get("rules", [])) + number(0) + number(order.get("idle", 600)) + text("0" * 32) + number(listeners) + text("")
    return data + encode_rules(order.get("via", [])) + encode_rules([[host, 443, ""] for host in order.get("direct", [])]) + text(order.get("login", ""))


def packet_pipe():
    """For what the gate says: a write is a packet, and nobody waits."""
    return os.pipe2(os.O_DIRECT | os.O_NONBLOCK | os.O_CLOEXEC)


def send_record(channel, data):
    channel.send(number(0x70692D7265630001) + number(len(data)))
    for start in range(0, len(data), 32768):
        channel.send(data[start : start + 32768])


def decode_message(data):
    """None for what the gate says twice a second, that it is alive, and for its farewell."""
    numbers = lambda at: struct.unpack_from("<Q", data, at)[0]  # noqa: E731
    if numbers(0) == 42:
        return {"ready": True}
    if numbers(0) in (44, 45):
        return None
    at, fields = 8, {}
    for name, is_text in (("kind", 0), ("host", 1), ("port", 0), ("reason", 0), ("count", 0), ("where", 1), ("address", 1)):
        value, at = numbers(at), at + 8
        if is_text:
            value, at = data[at : at + value].decode(), at + value
        fields[name] = REASONS[value] if name == "reason" else value
    return fields


class Driver:
    def __init__(self, gate, user, directory):
        self.gate, self.user, self.directory = gate, user, Path(directory)
        self.process, self.channel, self.messages = None, None, []
        call(LIBC.unshare(NEW_NETWORK | NEW_MOUNTS))
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        ip("link", "set", "lo", "up")
        self.inside, self.outside = new_network(), new_network()
        ip("link", "add", "host0", "type", "veth", "peer", "name", "out0", "netns", str(self.outside.pid))
        for address in (f"{OWN}/24", f"{SECOND}/24", "10.77.0.1/24", "2600:45::1/64"):
            ip("address", "add", address, "dev", "host0", *(["nodad"] if ":" in address else []))
        ip("link", "set", "host0", "up")
        Path("/proc/sys/net/ipv4/ip_nonlocal_bind").write_text("1")  # then a socket can have any address, which says nothing about the host's own
        outside = ["nsenter", "-t", str(self.outside.pid), "-n", "ip"]
        for address in (f"{NEIGHBOUR}/24", f"{OUTSIDE}/32", f"{PRIVATE}/24", f"{NEIGHBOUR_6}/64", f"{TRANSLATED}/128", f"{PROXY}/32", f"{PROXY_6}/128"):
            subprocess.run([*outside, "address", "add", address, "dev", "out0", *(["nodad"] if ":" in address else [])], check=True)
        subprocess.run([*outside, "link", "set", "out0", "up"], check=True)
        for route in (f"45.155.1.0/24 via {NEIGHBOUR}", "unreachable 45.155.1.9", f"2600:64::/96 via {NEIGHBOUR_6}"):
            ip("route", "add", *route.split())
        for arguments in (["route", "add", "local", "0.0.0.0/0", "dev", "lo", "src", "127.0.0.1"], ["-6", "route", "add", "local", "::/0", "dev", "lo"]):
            subprocess.run(["nsenter", "-t", str(self.inside.pid), "-n", "ip", *arguments], check=True)
        hosts = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, addresses in NAMES.items() for address in addresses)
        bind_file("/etc/hosts", hosts, self.directory)
        bind_file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n", self.directory)
        for name, content in (("inside-hosts", "127.0.0.1 localhost\n"), ("inside-resolv", "nameserver 127.0.0.53\n"), ("inside-switch", "passwd: files\nhosts: files dns\n")):
            (self.directory / name).write_text(content)
            (self.directory / name).chmod(0o644)
        start_services(self.outside, make_context(self.directory))

    def proxy(self, script="", login=None, here=None):
        """What the proxy above does from now on; `here`: at addresses of the host."""
        from proxy_above import Proxy

        if here or not hasattr(self, "above"):
            dial = lambda address: in_network(self.outside, socket.create_connection, address)  # noqa: E731
            families = {PROXY: socket.AF_INET, PROXY_6: socket.AF_INET6, "127.0.0.1": socket.AF_INET}
            places = [(family, address, port) for address, family in families.items() for port in PROXY_PORTS]
            listeners = [listen(*place) for place in here] if here else [in_network(self.outside, listen, *place) for place in places]
            self.above = Proxy(listeners, {**HIDDEN, **{name: addresses[-1] for name, addresses in NAMES.items()}}, dial)
        heads, self.above.heads = self.above.heads, []
        self.above.script = script
        self.above.expect(login)
        return {"heads": heads}

    def start(self, order):
        """Another gate, in the place of the last."""
        self.stop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        account = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
        said, says = packet_pipe()
        self.process = subprocess.Popen([*account, "--reset-env", self.gate], stdin=theirs, stdout=says, stderr=subprocess.PIPE)
        theirs.close()
        os.close(says)
        self.channel, self.said, self.messages = ours, said, []
        try:
            proxy = self.hand_over(order)
        except OSError:
            return {"failed": self.process.stderr.read().decode()}
        began = time.monotonic()
        while not self.messages and time.monotonic() < began + 30:
            if not self.receive(1) and self.process.poll() is not None:
                return {"failed": self.process.stderr.read().decode()}
        return {"pid": self.process.pid, "proxy": proxy, "first": self.messages[:1]}

    def hand_over(self, order):
        """The order, after a while, and all listeners; the port of the proxy."""
        time.sleep(order.get("after", 0))
        send_record(self.channel, encode_order(order, len(LISTENERS)))
        for kind, family, address, port in LISTENERS:
            with in_network(self.inside, listen, family, address, port, socket.SOCK_DGRAM if kind == "dns_udp" else socket.SOCK_STREAM) as server:
                port = server.getsockname()[1]
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [server.fileno()]))
                self.channel.sendmsg([number(41) + number(KINDS[kind]) + number(port)], [rights])
            if kind == "proxy":
                proxy = port
        return proxy

    def receive(self, seconds):
        if not select.select([self.said], [], [], seconds)[0]:
            return False
        data = os.read(self.said, 4096)
        message = decode_message(data) if data else None
        if message is not None:
            self.messages.append(message)
        return bool(data)

    def denials(self, seconds=1.5):
        """What the gate has told so far, with what comes in so many seconds."""
        until = time.monotonic() + seconds
        while True:
            left = max(until - time.monotonic(), 0)
            if not self.receive(left) and left == 0:
                break
        told, self.messages = [one for one in self.messages if "ready" not in one], []
        return told

    def run(self, argv, timeout=20, input=""):
        """As the user, inside: with the name server of the gate."""
        binds = "".join(f"mount --bind {self.directory}/{source} {target} && " for source, target in
                        (("inside-hosts", "/etc/hosts"), ("inside-resolv", "/etc/resolv.conf"), ("inside-switch", "/etc/nsswitch.conf")))  # fmt: skip
        account = f"exec setpriv --reuid={self.user} --regid={self.user} --clear-groups"
        line = ["nsenter", "-t", str(self.inside.pid), "-n", "unshare", "-m", "sh", "-c", f'{binds} {account} "$@"', "sh", *argv]
        began = time.monotonic()
        try:
            done = subprocess.run(line, input=input.encode(), capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired as late:
            return {"status": None, "out": (late.stdout or b"").decode(errors="replace"), "err": (late.stderr or b"").decode(errors="replace")}
        return {"status": done.returncode, "out": done.stdout.decode(errors="replace"), "err": done.stderr.decode(errors="replace"), "took": time.monotonic() - began}

    def stop(self):
        """The channel's end ends the gate."""
        if self.process is None:
            return {}
        self.channel.close()
        began = time.monotonic()
        status = self.process.wait(10)
        os.close(self.said)
        said, self.process = self.process.stderr.read().decode(), None
        return {"status": status, "took": time.monotonic() - began, "err": said}


def main(gate, user, directory):
    made = [path for path in (Path("/etc/hosts"), Path("/etc/nsswitch.conf"), Path("/etc/resolv.conf")) if not path.exists()]
    for path in made:
        path.touch()  # something is mounted there
    driver = Driver(gate, user, directory)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        answer = getattr(driver, question.pop("do"))(**question)
        print(json.dumps(answer), flush=True)
    driver.stop()
    for holder in (driver.inside, driver.outside):
        holder.kill()
    LIBC.umount2(b"/etc/hosts", 2)
    LIBC.umount2(b"/etc/nsswitch.conf", 2)
    for path in made:
        path.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])

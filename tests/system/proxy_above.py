"""A company's proxy for tests, which alone knows some names, and does what a script says instead of its work.

    proxy_above.py ADDRESS PORT NAMES [LOGIN]     # NAMES: JSON, a name or "*" to "ADDRESS:PORT"; each head that comes is a line of JSON on standard output
"""

import base64
import json
import select
import socket
import struct
import sys
import threading
import time

OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
ENDLESS = 4 << 20  # bytes


def status(line, body=b"", fields=b""):
    return b"HTTP/1.1 " + line + b"\r\n" + fields + b"Content-Length: %d\r\n\r\n" % len(body) + body


# What it answers instead of a tunnel, by the word of the script.
ANSWERS = {
    "login": status(b"407 Proxy Authentication Required", b"hello from the proxy", b'Proxy-Authenticate: Basic realm="x"\r\n'),
    "refused": status(b"403 Forbidden", b"hello from the proxy"),
    "redirect": status(b"302 Found", b"hello from the proxy", b"Location: http://elsewhere.example/\r\n"),
    "failed": status(b"502 Bad Gateway", b"hello from the proxy"),
    "unavailable": status(b"503 Service Unavailable", b"hello from the proxy"),
    "switched": b"HTTP/1.1 101 Switching Protocols\r\n\r\nhello from the proxy",
    "garbage": b"SSH-2.0-OpenSSH_9.2\r\n\r\nhello from the proxy",
    "half a line": b"HTTP/1.1 200 OK\nX: y\r\n\r\nhello from the proxy",
    "no status": b"HTTP/1.1 OK\r\n\r\nhello from the proxy",
    "half a head": b"HTTP/1.1 200 Connection esta",
}  # fmt: skip
# Before its work: what a proxy may do, and what comes of it is the host's.
ODD = {
    "interim": b"HTTP/1.1 100 Continue\r\n\r\n" + OPENED,
    "with a length": b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n",
}


class Proxy:
    def __init__(self, listeners, names, dial=socket.create_connection, login=None, tell=None):
        self.names, self.dial, self.script, self.heads, self.tell = names, dial, "", [], tell
        self.expect(login)
        for listener in listeners:
            threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def expect(self, login):
        self.expected = b"Basic " + base64.b64encode(login.encode()) if login else None

    def accept(self, listener):
        while True:
            channel, _ = listener.accept()
            threading.Thread(target=self.one, args=(channel,), daemon=True).start()

    def one(self, channel):
        try:
            with channel:
                self.serve(channel)
        except (OSError, ValueError):
            pass  # somebody has gone

    def serve(self, channel):
        script, head = self.script, b""
        if script == "closes":
            return
        while not head.endswith(b"\r\n\r\n"):
            byte = channel.recv(1)
            if not byte:
                return
            head += byte
        self.heads.append(head.decode("latin-1"))
        if self.tell:
            self.tell(self.heads[-1])
        if script == "resets":
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        if script == "silent":
            time.sleep(40)
        elif script == "echoes":  # all that it heard, in words of its own
            self.say(channel, status(b"407 " + head.replace(b"\r\n", b" "), head))
        elif script in ("endless head", "endless heads", "huge head"):
            self.flood(channel, head, script)
        elif script in ANSWERS:
            self.say(channel, ANSWERS[script])
        else:
            self.work(channel, head, script)

    def say(self, channel, answer):
        channel.sendall(answer)
        channel.shutdown(socket.SHUT_WR)
        channel.settimeout(10)
        while channel.recv(65536):
            pass

    def flood(self, channel, head, script):
        if script == "endless heads":
            channel.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000)
            return self.work(channel, head, "")
        channel.sendall(b"HTTP/1.1 200 OK\r\n")
        size = ENDLESS if script == "endless head" else 64 << 10
        for number in range(size // 8192):
            channel.sendall(b"X-%06d: " % number + b"x" * 8181 + b"\r\n")
        if script == "huge head":
            channel.sendall(b"\r\n")
            self.relay(channel, self.reach(head))

    def reach(self, head):
        method, target, _ = head.split(b"\r\n")[0].decode("latin-1").split(" ")
        host, _, port = target.rpartition(":")
        host = host.strip("[]")
        place = self.names.get(host) or self.names.get("*") or host
        address, _, other = place.rpartition(":") if place.count(":") == 1 else (place, "", "")
        return self.dial((address, int(other or port))) if method == "CONNECT" else None

    def work(self, channel, head, script):
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        if self.expected and fields.get(b"Proxy-Authorization") != self.expected:
            return self.say(channel, ANSWERS["login"])
        if script == "slow":
            time.sleep(3)
        try:
            server = self.reach(head)
        except OSError:
            return self.say(channel, ANSWERS["failed"])
        if server is None:
            return self.say(channel, ANSWERS["refused"])
        answer = ODD.get(script, OPENED)
        if script == "a byte at a time":
            for byte in answer:
                channel.sendall(bytes([byte]))
                time.sleep(0.002)
        elif script == "with the first bytes":
            channel.sendall(answer + server.recv(65536))
        else:
            channel.sendall(answer)
        self.relay(channel, server)

    def relay(self, channel, server):
        ends = {channel: server, server: channel}
        with server:
            while ends:
                for one in select.select(list(ends), [], [])[0]:
                    data = one.recv(65536)
                    other = ends[one] if data else ends.pop(one)
                    other.sendall(data) if data else other.shutdown(socket.SHUT_WR)


def main(address, port, names, login=None):
    tell = lambda head: print(json.dumps(head), flush=True)  # noqa: E731
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    Proxy([socket.create_server((address, int(port)), family=family, backlog=128)], json.loads(names), login=login, tell=tell)
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

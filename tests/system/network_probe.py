"""Runs in a session as the agent, or outside: says as JSON which of the services it reaches, and what its own loopback does.

An answer is "reached", the name of an errno, or "silence" after a second: a packet filter drops what TCP sends without a word.
"""

import errno
import json
import socket
import sys

PORT = 7007
SECONDS = 1


def reach(family, kind, address):
    try:
        with socket.socket(family, kind) as channel:
            channel.settimeout(SECONDS)
            channel.connect(address)
            if kind == socket.SOCK_DGRAM:
                channel.send(b"question")
            return "reached" if channel.recv(64) == b"answer\n" else "another answer"
    except socket.timeout:
        return "silence"
    except OSError as failure:
        return errno.errorcode[failure.errno]


def look_up(name):
    try:
        return socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
    except socket.gaierror as failure:
        return errno.errorcode[failure.errno] if failure.errno and failure.errno > 0 else "not found"


def own_loopback(family, address):
    """A server of the session's own, as a development server is."""
    with socket.socket(family) as server:
        server.bind((address, 0))
        server.listen()
        try:
            with socket.create_connection(server.getsockname()[:2], SECONDS):
                return "reached"
        except socket.timeout:
            return "silence"
        except OSError as failure:
            return errno.errorcode[failure.errno]


def main():
    found = {}
    for address in ("127.0.0.1", "::1", "198.51.100.7", "203.0.113.9", "2001:db8::7"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        found[f"TCP {address}"] = reach(family, socket.SOCK_STREAM, (address, PORT))
        found[f"UDP {address}"] = reach(family, socket.SOCK_DGRAM, (address, PORT))
    found["abstract"] = reach(socket.AF_UNIX, socket.SOCK_STREAM, "\0network-test")
    for name, path in {"path in the project": sys.argv[1], "path of the host": "/run/dbus/system_bus_socket"}.items():
        found[name] = reach(socket.AF_UNIX, socket.SOCK_STREAM, path)
    found["name"] = look_up("tests.example")
    found["own 127.0.0.1"] = own_loopback(socket.AF_INET, "127.0.0.1")
    found["own ::1"] = own_loopback(socket.AF_INET6, "::1")
    print(json.dumps(found))


main()

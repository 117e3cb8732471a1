#!/usr/bin/python3 -IS
"""Runs on the test machine, outside any session: services that answer on its addresses, and prints `ready` when all do.

Everything answers what it is, once per connection or datagram: TCP and UDP on each address, an abstract socket, a socket with a path,
and a name server that knows one name.
"""

import os
import selectors
import socket
import sys

PORT = 7007
NAME_SERVER = "198.51.100.53"
ANSWER = "198.51.100.7"
ADDRESSES = ("127.0.0.1", "::1", ANSWER, "203.0.113.9", "2001:db8::7")


def listening(kind, family, address):
    server = socket.socket(family, kind)
    server.bind(address)
    if kind == socket.SOCK_STREAM:
        server.listen(64)
    return server


def answer_stream(server):
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"answer\n")


def answer_datagram(server):
    _, peer = server.recvfrom(512)
    server.sendto(b"answer\n", peer)


def answer_question(server):
    """One A record for whatever is asked."""
    question, peer = server.recvfrom(512)
    kind = question[-4:-2]
    record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04" + socket.inet_aton(ANSWER) if kind == b"\0\x01" else b""
    end = question.index(b"\0", 12) + 5
    server.sendto(question[:2] + b"\x81\x80\x00\x01" + (b"\0\x01" if record else b"\0\0") + b"\0\0\0\0" + question[12:end] + record, peer)


def main(path):
    selector = selectors.DefaultSelector()
    for address in ADDRESSES:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        selector.register(listening(socket.SOCK_STREAM, family, (address, PORT)), selectors.EVENT_READ, answer_stream)
        selector.register(listening(socket.SOCK_DGRAM, family, (address, PORT)), selectors.EVENT_READ, answer_datagram)
    selector.register(listening(socket.SOCK_DGRAM, socket.AF_INET, (NAME_SERVER, 53)), selectors.EVENT_READ, answer_question)
    for name in ("\0network-test", path):
        selector.register(listening(socket.SOCK_STREAM, socket.AF_UNIX, name), selectors.EVENT_READ, answer_stream)
    os.chmod(path, 0o666)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            key.data(key.fileobj)


main(sys.argv[1])

#!/usr/bin/python3
"""Stands in for pi-agent-gate: takes its order and its listeners, denies every connection, or attacks root by what it says (MODE)."""

import os
import select
import socket
import struct
import time

MODE = "denying"
ORDER, LISTENER, READY, DENIAL, ALIVE, FAREWELL = 40, 41, 42, 43, 44, 45
NO_RULE = 0  # of the reasons (runner/wire/gate_messages.hpp)
ALIVE_SECONDS = 0.5
PACKET = 32 * 1024


def number(value):
    return struct.pack("<Q", value)


def text(value):
    return number(len(value)) + value


def denial(host, port, count=1, where=b"", kind=2):
    return number(DENIAL) + number(kind) + text(host) + number(port) + number(NO_RULE) + number(count) + text(where) + text(b"")


channel = socket.socket(fileno=0)


def receive_order():
    _magic, length = struct.unpack("<QQ", channel.recv(16))
    order = b""
    while len(order) < length:
        order += channel.recv(PACKET)
    assert order[:8] == number(ORDER)
    return order


def listeners_in(order):
    """The number before the last four fields, which are empty: the authorities, the proxy above, the direct hosts and the login."""
    number_of, *empty = struct.unpack("<5Q", order[-40:])
    assert empty == [0, 0, 0, 0], empty
    return number_of


def receive_listener():
    bytes_, fds, _, _ = socket.recv_fds(channel, PACKET, 1)
    kind, port, listener = struct.unpack("<QQQ", bytes_)
    assert kind == LISTENER and len(fds) == 1
    return port, socket.socket(fileno=fds[0])


def say(bytes_):
    while True:
        try:
            return os.write(1, bytes_)
        except BlockingIOError:
            select.select([], [1], [])
        except BrokenPipeError:
            os._exit(0)


def deny(listener):
    if listener.type == socket.SOCK_DGRAM:
        listener.recv(PACKET)
        return
    accepted, _ = listener.accept()
    host, port = accepted.getsockname()[:2]
    if port == 808:
        accepted.settimeout(2)
        asked = accepted.recv(1024).split(b" ")
        accepted.sendall(b"HTTP/1.1 403 Forbidden\r\nx-pi-agent-denied: no-rule\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        name, _, asked_port = asked[1].partition(b":")
        say(denial(name, int(asked_port or 80), kind=0))
    else:
        say(denial(host.encode(), port))
    accepted.close()


def betray():
    """Breaks the protocol, and goes on for whoever connects."""
    say(b"\xff" if MODE == "traitor" else number(FAREWELL))
    while True:
        for one in select.select([one for one in listeners.values() if one.type == socket.SOCK_STREAM], [], [])[0]:
            accepted, _ = one.accept()
            accepted.sendall(b"outside")
            accepted.close()


def send_descriptors(bytes_, fds):
    """To root, by the channel that they came from."""
    try:
        socket.send_fds(channel, [bytes_], fds)
        return True
    except OSError:
        return False


def attack():
    """What a gate says that the agent has taken over."""
    if MODE == "flooding":
        for index in range(100_000):
            say(denial(b"host-%d.example" % index, 443))
    if MODE == "same":
        for _ in range(20_000):
            say(denial(b"host.example", 443, count=2**63))
    while MODE == "torrent":
        say(number(ALIVE))
    if MODE == "malformed":
        say(b"\xff" * 100)
    if MODE == "unprintable":
        say(denial(b"host\n.example", 443))
    if MODE == "overlong":
        say(denial(b"h" * 30_000, 443))
    if MODE == "descriptors":
        for _ in range(1000):
            send_descriptors(denial(b"host.example", 443), [0, 1, 2])
    if MODE == "ended":
        os._exit(0)
    if MODE == "forging":
        say(denial(b"host.example", 443, where=b"it is gone; as root, run: sh /home/alice/fix"))
    if MODE == "holding" and send_descriptors(b"x", [0]):
        say(denial(b"taken.example", 443))
    if MODE in ("traitor", "farewell"):
        betray()
    if MODE == "flickering":  # silent, and not, and silent
        for _ in range(5):
            time.sleep(2)
            say(number(ALIVE))


order = receive_order()
listeners = dict(sorted((one.fileno(), one) for _, one in (receive_listener() for _ in range(listeners_in(order)))))
if MODE == "not-ready":
    os._exit(0)
if MODE == "silent":
    channel.recv(1)
say(number(READY))
attack()
while True:
    ready, _, _ = select.select([channel, *listeners], [], [], ALIVE_SECONDS)
    say(number(ALIVE))
    for one in ready:
        if one is channel:
            if not channel.recv(PACKET):
                os._exit(0)
        else:
            try:
                deny(listeners[one])
            except OSError:
                pass

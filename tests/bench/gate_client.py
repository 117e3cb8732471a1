#!/usr/bin/python3
"""Asks as it is told, by a line of JSON each, and says how many milliseconds it took: as a session's agent by its gate, or by itself on the host.

    gate_client.py [direct]

A question is {"do": TASK, …}; the tasks are the functions here that take `way`.
"""

import http.client
import json
import socket
import ssl
import sys
import time

ADDRESS = "198.51.100.7"  # of the provider (tests/bench/gate_server.py)
PROXY, ROUTE = ("127.0.0.1", 808), ("127.0.0.1", 809)
ECHO = 7007
PROVIDER = "api.openai.com"
PATIENCE = 60  # seconds


def ask_tunnel(channel, name, port):
    channel.sendall(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())


def hear_tunnel(channel):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += channel.recv(1) or sys.exit(f"gate_client: no tunnel: {head!r}")
    if not head.startswith(b"HTTP/1.1 200 "):
        sys.exit(f"gate_client: no tunnel: {head!r}")


def reach(way, name, port):
    """A connection to where the name leads."""
    channel = socket.create_connection(PROXY if way == "gate" else (ADDRESS, port), PATIENCE)
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if way == "gate":
        ask_tunnel(channel, name, port)
        hear_tunnel(channel)
    return channel


def connect(way):
    begin = time.monotonic()
    reach(way, "bench.example", 443).close()
    return time.monotonic() - begin


def bulk(way, count):
    """From the first byte of an answer to its last: by TLS from end to end, or, on the `route`, to the gate in plain text."""
    if way == "route":
        channel = socket.create_connection(ROUTE, PATIENCE)
        channel.sendall(f"GET /{PROVIDER}/v1/models/{count} HTTP/1.1\r\nHost: 127.0.0.1:809\r\n\r\n".encode())
    else:
        channel = ssl.create_default_context().wrap_socket(reach(way, "bench.example", 443), server_hostname="bench.example")
        channel.sendall(f"GET /v1/models/{count} HTTP/1.1\r\nHost: bench.example\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += channel.recv(1)
    if not head.startswith(b"HTTP/1.1 200 "):
        sys.exit(f"gate_client: {head!r}")
    begin, buffer, left = time.monotonic(), bytearray(1 << 20), count
    while left:
        left -= channel.recv_into(buffer, min(left, len(buffer))) or sys.exit(f"gate_client: {left} bytes are missing")
    channel.close()
    return time.monotonic() - begin


def begin_answer(way, seconds):
    """A request to the model, as its library makes one; what comes of the answer can be read."""
    body = json.dumps({"model": "m", "input": [{"role": "user", "content": "hello"}], "seconds": seconds})
    fields = {"content-type": "application/json", "authorization": "Bearer placeholder"}
    if way == "gate":
        connection, path = http.client.HTTPConnection(*ROUTE, timeout=PATIENCE), f"/{PROVIDER}/v1/responses"
    else:
        connection, path = http.client.HTTPSConnection(PROVIDER, timeout=PATIENCE), "/v1/responses"
    connection.request("POST", path, body, fields)
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"gate_client: {answer.status}: {answer.read()!r}")
    return answer


def first_token(way):
    begin = time.monotonic()
    answer = begin_answer(way, 0)
    line = answer.readline()
    took = time.monotonic() - begin
    if not line.startswith(b"data: "):
        sys.exit(f"gate_client: {line!r}")
    answer.read()
    return took


def many(way, count):
    """So many connections at once, each of which is made, used and answered."""
    begin = time.monotonic()
    channels = [socket.create_connection(PROXY if way == "gate" else ("127.0.0.1", ECHO), PATIENCE) for _ in range(count)]
    if way == "gate":
        for channel in channels:
            ask_tunnel(channel, "localhost", ECHO)
        for channel in channels:
            hear_tunnel(channel)
    for channel in channels:
        channel.sendall(b"x")
    if any(channel.recv(1) != b"x" for channel in channels):
        sys.exit("gate_client: another answer")
    took = time.monotonic() - begin
    for channel in channels:
        channel.close()
    return took


def stream(way, seconds):
    """An answer with an event a second; the longest time between two."""
    answer = begin_answer(way, seconds)
    longest, last, events = 0, time.monotonic(), 0
    while line := answer.readline():
        if line.startswith(b"data: "):
            longest, last, events = max(longest, time.monotonic() - last), time.monotonic(), events + 1
    if events != seconds + 1:
        sys.exit(f"gate_client: {events} events of {seconds + 1}")
    return longest


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(globals()[question.pop("do")](**question) * 1000), flush=True)


if __name__ == "__main__":
    main()

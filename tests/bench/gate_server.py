#!/usr/bin/python3
"""Runs in the machine as root: a provider with TLS that answers at once, and a server on loopback that gives back what it gets.

    gate_server.py CERTIFICATE KEY

`GET /v1/models/N` gets N bytes; what is posted gets an event, and one a second for as many seconds as its body says.
"""

import json
import socket
import ssl
import sys
import threading
import time

from gate_client import ADDRESS, ECHO

PIECE = bytes(1 << 20)


def read_until(channel, end):
    data = b""
    while end not in data:
        piece = channel.recv(65536)
        if not piece:
            return data, b""
        data += piece
    head, _, rest = data.partition(end)
    return head, rest


def answer(channel):
    head, rest = read_until(channel, b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    if len(lines[0].split(" ")) != 3:
        return
    method, target, _ = lines[0].split(" ")
    if method == "GET":
        count = int(target.rpartition("/")[2])
        channel.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % count)
        while count:
            count -= channel.send(PIECE[: min(count, len(PIECE))])
        return
    length = next(int(line.split(": ")[1]) for line in lines if line.lower().startswith("content-length: "))
    while len(rest) < length:
        rest += channel.recv(65536)
    channel.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for index in range(json.loads(rest)["seconds"] + 1):
        if index:
            time.sleep(1)
        event = b"data: %d\n\n" % index
        channel.sendall(b"%x\r\n%s\r\n" % (len(event), event))
    channel.sendall(b"0\r\n\r\n")


def one(accepted, context):
    try:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            with accepted:
                while data := accepted.recv(65536):
                    accepted.sendall(data)
            return
        with context.wrap_socket(accepted, server_side=True) as channel:
            answer(channel)
    except OSError:
        pass  # a connection that was only made


def serve(address, port, context):
    server = socket.create_server((address, port), backlog=512)
    while True:
        accepted, _ = server.accept()
        threading.Thread(target=one, args=(accepted, context), daemon=True).start()


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[1:])
    for arguments in ((ADDRESS, 443, context), ("127.0.0.1", ECHO, None)):
        threading.Thread(target=serve, args=arguments, daemon=True).start()
    time.sleep(0.2)
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

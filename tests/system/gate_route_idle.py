"""Cases of gate_alone.py, as in gate_route_cases.py: how long nothing may move on the reverse route."""

import threading
import time

from gate_alone import read_exactly, read_until
from gate_route_cases import OK, WEBSOCKET, ask, connect, head, read_all

SETTINGS = {
    "silence_shorter_than_the_limit_passes": {"idle": 4}, "silence_beyond_the_limit_ends": {"idle": 2}, "a_websocket_ends_by_silence": {"idle": 2},
    "an_answer_that_moves_is_not_idle": {"idle": 2}, "a_websocket_that_moves_is_not_idle": {"idle": 2},
}  # fmt: skip


def silence_shorter_than_the_limit_passes(gate, service):
    def answer(connection, _):
        for _ in range(3):  # longer in all than the limit
            time.sleep(2)
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(2)
        connection.sendall(OK)

    service.answer = answer
    assert ask(gate).body == b"ok"


def silence_beyond_the_limit_ends(gate, service):
    closed = threading.Event()

    def answer(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        if not connection.recv(1):
            closed.set()

    service.answer = answer
    begin = time.monotonic()
    with connect(gate, head("Content-Length: 0")) as one:
        seen = read_all(one)
    assert seen.endswith(b"1\r\nx\r\n") and 1.5 < time.monotonic() - begin < 6, seen
    assert closed.wait(5)


def an_answer_that_moves_is_not_idle(gate, service):
    """Three times as long as nothing may come, which an answer of an hour is as well."""

    def answer(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(6):
            time.sleep(1)
            connection.sendall(b"1\r\nx\r\n")
        connection.sendall(b"0\r\n\r\n")

    service.answer = answer
    assert ask(gate).body == b"xxxxxx"


def a_websocket_that_moves_is_not_idle(gate, service):
    def answer(connection, _):
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        while piece := connection.recv(65536):
            time.sleep(1)
            connection.sendall(piece)

    service.answer = answer
    with connect(gate, head(*WEBSOCKET, method="GET")) as one:
        read_until(one, b"\r\n\r\n")
        for _ in range(6):
            one.sendall(b"x")
            assert read_exactly(one, 1) == b"x"


def a_websocket_ends_by_silence(gate, service):
    def answer(connection, _):
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        connection.recv(1)

    service.answer = answer
    with connect(gate, head(*WEBSOCKET, method="GET")) as one:
        read_until(one, b"\r\n\r\n")
        begin = time.monotonic()
        assert read_all(one) == b"" and time.monotonic() - begin < 6

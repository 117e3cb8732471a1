"""What gate_alone.py does with the reverse route: each function is a case."""

import http.client
import json
import socket
import threading
import time
from pathlib import Path

from gate_alone import HOSTS, KEY, ROUTE, fields, read_chunks, read_exactly, read_until

ENDING = ("the_key_is_nowhere_but_in_memory",)  # these end the gate themselves
TARGET = "/api.openai.com/v1/responses"
WEBSOCKET = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def answer_ok(connection, _):
    connection.sendall(OK)


def ask(gate, target=TARGET, method="POST", body=b"{}", headers=()):
    """The answer, whole."""
    connection = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=30)
    connection.request(method, target, body, dict(headers))
    answer = connection.getresponse()
    answer.body = answer.read()
    return answer


def connect(gate, sent=b""):
    one = socket.create_connection(("127.0.0.1", gate.port), 30)
    one.sendall(sent)
    return one


def head(*more, method="POST", target=TARGET):
    return "".join(line + "\r\n" for line in (f"{method} {target} HTTP/1.1", "Host: 127.0.0.1:809", *more, "")).encode("latin-1")


def read_all(one):
    """Until the other side closes, or resets."""
    seen = b""
    try:
        while piece := one.recv(65536):
            seen += piece
    except ConnectionResetError:
        pass
    return seen


def wait_for(look, seconds=5):
    until = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < until, "nothing came"
        time.sleep(0.02)
    return seen


# --- What passes.


def a_request_gets_the_key_and_loses_the_callers(gate, service):
    bodies = []

    def answer(connection, sent):
        bodies.append(read_exactly(connection, int(fields(sent)["content-length"])))
        connection.sendall(OK)

    service.answer = answer
    mine = {"Authorization": "Bearer mine", "x-api-key": "mine", "x_api_key": "mine", "Cookie": "mine", "Content-Type": "application/json"}
    assert ask(gate, body=b'{"a": 1}', headers=mine).body == b"ok"
    assert bodies == [b'{"a": 1}']
    seen = fields(service.heads[0])
    assert service.heads[0].startswith(b"POST /v1/responses HTTP/1.1\r\n")
    assert (seen["host"], seen["authorization"], seen["connection"]) == ("api.openai.com", f"Bearer {KEY}", "close")
    assert b"mine" not in service.heads[0]
    assert service.protocols[0][0] in ("TLSv1.2", "TLSv1.3") and service.protocols[0][1] == "http/1.1"


def each_provider_gets_the_key_as_it_reads_it(gate, service):
    service.answer = answer_ok
    for target, name, value in (
        ("/api.anthropic.com/v1/messages?beta=true", "x-api-key", KEY),
        ("/generativelanguage.googleapis.com/v1beta/models/gemini:streamGenerateContent?alt=sse&key=mine", "x-goog-api-key", KEY),
        ("/openrouter.ai/api/v1/v1/messages?beta=true", "authorization", f"Bearer {KEY}"),
    ):
        assert ask(gate, target).status == 200, target
        assert fields(service.heads[-1])[name] == value
    lines = [sent.split(b" ")[1] for sent in service.heads]
    assert lines == [b"/v1/messages?beta=true", b"/v1beta/models/gemini:streamGenerateContent?alt=sse", b"/api/v1/messages?beta=true"]


def events_pass_as_they_come(gate, service):
    gone = []

    def answer(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for index in range(6):
            event = f"data: {index}\n\n".encode()
            gone.append(time.monotonic())
            connection.sendall(b"%x\r\n%s\r\n" % (len(event), event))
            time.sleep(0.5)
        connection.sendall(b"0\r\n\r\n")

    service.answer = answer
    with connect(gate, head("Content-Length: 0")) as one:
        assert b"text/event-stream" in read_until(one, b"\r\n\r\n")
        came = [(piece, time.monotonic()) for piece in read_chunks(one)]
    assert [piece for piece, _ in came] == [f"data: {index}\n\n".encode() for index in range(6)]
    assert all(there < after for (_, there), after in zip(came, gone[1:])), (came, gone)  # each before the next one was sent


def a_websocket_passes_both_ways(gate, service):
    def answer(connection, _):
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nfirst")
        while piece := connection.recv(65536):
            connection.sendall(piece.upper())

    service.answer = answer
    with connect(gate, head(*WEBSOCKET, method="GET") + b"early") as one:
        assert b" 101 " in read_until(one, b"\r\n\r\n")
        assert read_exactly(one, 10) == b"firstEARLY"
        for size in (1, 100, 100_000):
            one.sendall(b"a" * size)
            assert read_exactly(one, size) == b"A" * size
    seen = fields(service.heads[0])
    assert (seen["upgrade"], seen["connection"], seen["sec-websocket-key"]) == ("websocket", "upgrade", "dGhlIHNhbXBsZSBub25jZQ==")
    assert seen["authorization"] == f"Bearer {KEY}"


def memory_after_a_request(gate, service):
    """KiB; the first request has the gate read the host's certificates."""
    service.answer = answer_ok
    assert ask(gate).status == 200
    service.heads.clear()
    return gate.memory()


def large_bodies_pass_in_little_memory(gate, service):
    size = 96 * 1024 * 1024
    piece = b"x" * 65536
    counted = []

    def answer(connection, _):
        counted.append(sum(len(chunk) for chunk in read_chunks(connection)))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // len(piece)):
            connection.sendall(piece)

    before = memory_after_a_request(gate, service)
    service.answer = answer
    with connect(gate, head("Transfer-Encoding: chunked")) as one:
        for _ in range(size // len(piece)):
            one.sendall(b"10000\r\n" + piece + b"\r\n")
        one.sendall(b"0\r\n\r\n")
        read_until(one, b"\r\n\r\n")
        time.sleep(1)  # who reads slowly slows the provider, and nothing gathers
        assert gate.memory() - before < 4096, (before, gate.memory())
        left = size
        while left:
            left -= len(one.recv(min(left, 1 << 20)))
        assert one.recv(1) == b""
    assert counted == [size]
    assert gate.memory() - before < 4096, (before, gate.memory())


def a_hundred_requests_at_once(gate, service):
    meeting = threading.Barrier(100, timeout=60)

    def answer(connection, _):
        meeting.wait()
        connection.sendall(OK)

    service.answer = answer
    ones = [connect(gate, head("Content-Length: 0")) for _ in range(100)]
    assert all(read_all(one).endswith(b"ok") for one in ones)


def more_requests_than_a_session_has_are_closed_and_told(gate, service):
    service.answer = answer_ok
    held = [connect(gate, b"POST ") for _ in range(128)]
    assert read_all(connect(gate, head("Content-Length: 0"))) == b""
    assert [denial["reason"] for denial in gate.denials()] == ["too-many"]
    held.pop().close()
    wait_for(lambda: read_all(connect(gate, head("Content-Length: 0"))).endswith(b"ok"))


def a_request_with_a_large_head_holds_no_more_than_is_counted_for_it(gate, service):
    """gate/gate.hpp has the sum of all."""
    before = memory_after_a_request(gate, service)
    service.answer = lambda connection, _: connection.recv(1)
    large = head(*(f"X-{index}: " + "y" * 500 for index in range(110)), "Content-Length: 9")
    held = [connect(gate, large) for _ in range(16)]
    wait_for(lambda: len(service.heads) == len(held), 60)
    assert gate.memory() - before < len(held) * 510, (before, gate.memory())


def a_redirect_is_the_callers_to_follow(gate, service):
    service.answer = lambda connection, _: connection.sendall(b"HTTP/1.1 307 Away\r\nLocation: https://evil.example/\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
    answer = ask(gate)
    assert (answer.status, answer.headers["location"], answer.headers["set-cookie"]) == (307, "https://evil.example/", None)
    assert service.connections == 1


def an_offer_of_http_2_and_a_wait_to_send_are_no_mistakes(gate, service):
    """Java's own client makes the one with each request to plain HTTP. curl waits, with a megabyte to send."""
    service.answer = lambda connection, _: connection.sendall(OK if read_exactly(connection, 2) == b"{}" else b"")
    with connect(gate, head("Content-Length: 2", "Expect: 100-continue", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAA")) as one:
        assert read_until(one, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(b"{}")
        assert read_all(one).endswith(b"\r\n\r\nok")
    assert set(fields(service.heads[0])) == {"host", "content-length", "connection", "authorization"} and gate.denials(0.5) == []


def an_answer_before_the_bodys_end_arrives(gate, service):
    def answer(connection, _):
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        time.sleep(0.5)

    service.answer = answer
    with connect(gate, head("Content-Length: 100000000") + b"x" * 200_000) as one:
        assert read_all(one).endswith(b"\r\n\r\nbig")


def a_client_that_ends_its_side_is_answered(gate, service):
    """nc -N and old programs do; the answer in between shows whether they are there."""

    def answer(connection, _):
        time.sleep(0.5)
        connection.sendall(OK)

    service.answer = answer
    for sent in (head("Content-Length: 0"), head("Content-Length: 2") + b"{}", head("Transfer-Encoding: chunked") + b"0\r\n\r\n"):
        with connect(gate, sent) as one:
            one.shutdown(socket.SHUT_WR)
            seen = read_all(one)
        assert seen.endswith(b"\r\n\r\nok") and seen.count(b"HTTP/1.1 200 ") == 1, seen
        assert seen.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"").startswith(b"HTTP/1.1 200 "), seen


# --- What ends.


def a_caller_that_goes_ends_the_request(gate, service):
    closed = threading.Event()

    def answer(connection, _):
        try:
            more = connection.recv(1)
        except ConnectionError:  # something of the provider's was not taken yet: a ticket of TLS
            more = b""
        if not more:
            closed.set()

    service.answer = answer
    for sent in (head("Content-Length: 0"), head(*WEBSOCKET, method="GET")):
        closed.clear()
        service.heads.clear()
        with connect(gate, sent):
            wait_for(lambda: service.heads)
        assert closed.wait(3), sent


def a_head_that_comes_slowly_is_not_waited_for(gate, service):
    """However often a byte of it comes."""
    begin = time.monotonic()
    seen = b""
    with connect(gate, b"POST /api.openai.com/v1/responses HTTP/1.1\r\nX: ") as one:
        one.settimeout(1)
        while not seen and time.monotonic() - begin < 60:
            one.sendall(b"y")
            try:
                seen = one.recv(65536)
            except TimeoutError:
                pass
    assert seen.startswith(b"HTTP/1.1 408 ") and 25 < time.monotonic() - begin < 40, seen
    assert service.connections == 0


def an_answer_that_breaks_off_does_not_look_whole(gate, service):
    for begin in (b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel", b"Content-Length: 10\r\n\r\nhel", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b"\r\nhello"):
        service.answer = lambda connection, _, begin=begin: connection.sendall(b"HTTP/1.1 200 OK\r\n" + begin)
        with connect(gate, head("Content-Length: 0")) as one:
            seen = read_all(one)
        assert b"hel" in seen or b"200" in seen
        assert not seen.endswith(b"0\r\n\r\n") and len(seen.partition(b"\r\n\r\n")[2]) < 20, seen


def an_answer_that_is_none_is_an_error_of_the_provider(gate, service):
    for said in (
        b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    ):  # fmt: skip
        service.answer = lambda connection, _, said=said: connection.sendall(said)
        answer = ask(gate)
        assert (answer.status, answer.headers["x-pi-agent-denied"]) == (502, None), (said[:80], answer.status)
        assert KEY.encode() not in answer.body
    assert gate.denials(1) == []


# --- What is denied.


def refused(gate, service, sent):
    """The status of a refusal, after which nothing reached the provider."""
    before = service.connections
    with connect(gate, sent) as one:
        seen = read_all(one)
    assert service.connections == before, sent
    assert seen.startswith(b"HTTP/1.1 4") or seen.startswith(b"HTTP/1.1 5"), (sent[:200], seen)
    assert b"\r\nx-pi-agent-denied: " in seen and KEY.encode() not in seen
    json.loads(seen.partition(b"\r\n\r\n")[2])
    return int(seen[9:12])


def other_hosts_paths_and_methods(gate, service):
    service.answer = answer_ok
    for target in ("/evil.example/v1/responses", "/API.OPENAI.COM/v1/responses", "/api.openai.com:443/v1/responses", "/api.openai.com/v1/files",
                   "/api.openai.com/v1/responses/x", "/api.openai.com/", "/api.openai.com"):  # fmt: skip
        assert refused(gate, service, head("Content-Length: 0", target=target)) == 403, target
    for target in ("/api.openai.com/v1/models/../files", "/api.openai.com/v1/models/%2e%2e/files", "/api.openai.com/v1/models/..%2ffiles",
                   "/api.openai.com/v1/models/%252e%252e/x", "/api.openai.com//v1/responses", "/api.openai.com/v1/responses;x", "http://api.openai.com/v1/responses", "*"):  # fmt: skip
        assert refused(gate, service, head("Content-Length: 0", target=target)) == 400, target
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "HEAD", "post"):
        assert refused(gate, service, head("Content-Length: 0", method=method)) == 403, method
    for method in ("TRACE", "WEBSOCKET"):
        assert refused(gate, service, head("Content-Length: 0", method=method)) == 405, method
    assert refused(gate, service, head(method="CONNECT", target="api.openai.com:443")) in (400, 405)


def a_refusal_of_a_large_request_is_heard(gate, service):
    """By a client that sends all of it before it listens."""
    size = 8 * 1024 * 1024
    assert refused(gate, service, head(f"Content-Length: {size}", target="/api.openai.com/v1/files") + b"x" * size) == 403


def what_is_denied_is_told_with_its_place(gate, service):
    assert refused(gate, service, head("Content-Length: 0", target="/api.anthropic.com/v1/files?secret=1")) == 403
    told = gate.denials()
    assert told == [{"kind": ROUTE, "host": "api.anthropic.com", "port": 443, "reason": "other-path", "count": 1, "where": "policy.yaml:2", "address": ""}]


def requests_that_can_be_read_in_two_ways(gate, service):
    service.answer = answer_ok
    chunked = "Transfer-Encoding: chunked"
    for more in (
        ("Content-Length: 6", chunked), (chunked, "Content-Length: 6"), ("Content-Length: 6", "Content-Length: 6"), ("Content-Length: 6", "Content-Length: 0"),
        ("Content-Length: 6, 6",), ("Content-Length: +6",), ("Content-Length: 0x6",), ("Content-Length: 6_0",), ("Content-Length: -1",), ("Content-Length: ",),
        ("Content-Length: 18446744073709551617",), ("Transfer-Encoding: identity",), ("Transfer-Encoding: gzip, chunked",), ("Transfer-Encoding: chunked, x",),
        (chunked, "Transfer-Encoding: x"), ("Transfer-Encoding : chunked",), (" " + chunked,), ("X: y", " folded"), ("Transfer-Encoding:", " chunked"),
        ("Transfer-Encoding: \x0bchunked",), ("X: y\n" + chunked,), ("X: y\r" + chunked,), ("X: \0",), ("no colon",), (": no name",), ("Host: evil.example",),
        ("Expect: 200-ok",), ("Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket"), ("Connection: Upgrade", "Upgrade: websocket"), ("Upgrade: websocket",),
        ("X: " + "y" * 70_000,), tuple(f"X{index}: y" for index in range(200)),
    ):  # fmt: skip
        refused(gate, service, head(*more) + b"0\r\n\r\nX")
    for line in ("POST /api.openai.com/v1/responses HTTP/1.0", "POST /api.openai.com/v1/responses", "POST  /api.openai.com/v1/responses HTTP/1.1",
                 "PRI * HTTP/2.0", "POST /api.openai.com/v1/responses HTTP/1.1 HTTP/1.1", "\x16\x03\x01\x02"):  # fmt: skip
        refused(gate, service, line.encode("latin-1") + b"\r\nHost: x\r\n\r\n")


def a_body_with_bad_chunks_does_not_end_well(gate, service):
    whole = []

    def answer(connection, _):
        whole.append(b"".join(read_chunks(connection)))
        connection.sendall(OK)

    service.answer = answer
    for body in (b"0x3\r\nabc\r\n0\r\n\r\n", b"-1\r\n\r\n0\r\n\r\n", b"3\nabc\n0\n\n", b"FFFFFFFFFFFFFFFFFF\r\nabc", b"3\r\nabcXX0\r\n\r\n", b"\r\n0\r\n\r\n", b"zz\r\n\r\n"):
        with connect(gate, head("Transfer-Encoding: chunked") + body) as one:
            one.shutdown(socket.SHUT_WR)  # some of them could go on
            assert b" 200 " not in read_all(one), body
    assert whole == []
    with connect(gate, head("Transfer-Encoding: chunked") + b'3;a="b"\r\nabc\r\n0\r\nAuthorization: Bearer mine\r\n\r\n') as one:
        assert read_all(one).endswith(b"ok")
    assert whole == [b"abc"]


def what_follows_a_request_is_not_another_one(gate, service):
    def answer(connection, sent):
        read_exactly(connection, int(fields(sent)["content-length"]))
        connection.settimeout(0.5)
        try:
            after = connection.recv(100)
        except TimeoutError:
            after = b""
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(after), after))

    service.answer = answer
    with connect(gate, head("Content-Length: 2") + b"{}" + head("Content-Length: 0", target="/api.openai.com/v1/files")) as one:
        assert b"\r\ncontent-length: 0\r\n" in read_all(one)
    assert len(service.heads) == 1


def a_websocket_that_is_not_opened_is_an_error_without_the_answer(gate, service):
    for line, status in ((b"200 OK", 502), (b"401 Unauthorized", 401)):
        service.answer = lambda connection, _, line=line: connection.sendall(b"HTTP/1.1 " + line + b"\r\nX-Mine: listed\r\nContent-Length: 6\r\n\r\nlisted")
        with connect(gate, head(*WEBSOCKET, method="GET")) as one:
            seen = read_all(one)
        assert seen.startswith(b"HTTP/1.1 %d " % status) and b"listed" not in seen and b"opened no WebSocket" in seen, seen
    assert gate.denials(0.5) == []


def a_page_of_a_browser_is_no_caller(gate, service):
    service.answer = answer_ok
    sent = head("Content-Length: 0")
    for host in (b"evil.example:809", b"127.0.0.1", b"127.0.0.2:809"):
        assert refused(gate, service, sent.replace(b"127.0.0.1:809", host)) == 403, host
    for field in ("Origin: http://evil.example", "Origin: null", "Origin: http://localhost:3000", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"):
        assert refused(gate, service, head("Content-Length: 0", field)) == 403, field
    assert {(one["host"], one["reason"]) for one in gate.denials()} == {("api.openai.com", "other-page")}
    for good in (sent.replace(b"127.0.0.1:809", b"localhost:809"), head("Content-Length: 0", "Origin: http://127.0.0.1:809", "Sec-Fetch-Site: same-origin")):
        with connect(gate, good) as one:
            assert read_all(one).endswith(b"ok"), good


def only_the_hosts_own_certificate_will_do(gate, service):
    service.answer = answer_ok
    for host in ("wrong.example", "expired.example", "self.example", "common.example", "old.example"):
        answer = ask(gate, f"/{host}/v1/responses")
        assert answer.status == 502, host
        assert answer.headers["x-pi-agent-denied"] == (None if host == "old.example" else "untrusted"), (host, answer.body)
    assert service.heads == []
    assert {(one["host"], one["reason"]) for one in gate.denials()} == {(host, "untrusted") for host in ("wrong.example", "expired.example", "self.example", "common.example")}


def the_key_is_nowhere_but_in_memory(gate, service):
    service.answer = answer_ok
    assert ask(gate).status == 200
    process = Path(f"/proc/{gate.process.pid}")
    for name in ("cmdline", "environ", "maps", "status"):
        assert KEY.encode() not in process.joinpath(name).read_bytes(), name
    limits = process.joinpath("limits").read_text()
    assert next(line for line in limits.splitlines() if line.startswith("Max core file size")).split()[4:6] == ["0", "0"]
    found = 0
    with open(process / "mem", "rb") as memory:  # the test finds it where it has to be
        for line in process.joinpath("maps").read_text().splitlines():
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("rw"):
                memory.seek(begin)
                try:
                    found += memory.read(end - begin).count(KEY.encode())
                except OSError:
                    pass
    assert 0 < found <= len(HOSTS) + 2, found  # a copy for each provider, and none of a request that is over
    gate.channel.close()
    assert gate.process.wait(5) == 0
    assert KEY.encode() not in gate.process.stderr.read()

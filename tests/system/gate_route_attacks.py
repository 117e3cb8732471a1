"""Attacks on the reverse route, for tests/attack/test_gate_route.py: each ends by a word on standard output, "done" where the attack worked."""

from pathlib import Path

from gate_alone import KEY
from gate_route_cases import TARGET, WEBSOCKET, answer_ok, ask, connect, head, read_all


def say_done(worked):
    print("done" if worked else "refused")


def attack_with_a_key_of_ones_own(gate, service):
    """What the session found out goes to an account of somebody else's at the same provider."""
    service.answer = answer_ok
    ask(gate, headers={"X-Api-Key": "mine"})
    say_done(b"mine" in service.heads[0])


def attack_a_path_that_the_key_is_not_for(gate, service):
    service.answer = answer_ok
    ask(gate, "/api.openai.com/v1/files")
    say_done(any(sent.startswith(b"POST /v1/files ") for sent in service.heads))


def attack_a_path_by_a_detour(gate, service):
    service.answer = answer_ok
    ask(gate, "/api.openai.com/v1/models/../files", "GET")
    say_done(any(b"/v1/models/../files" in sent for sent in service.heads))


LISTED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nlisted"


def attack_by_half_a_websocket(gate, service):
    """Servers take it for a plain GET, which no list has."""
    service.answer = lambda connection, _: connection.sendall(LISTED)
    with connect(gate, head(*WEBSOCKET[:2], method="GET", target=TARGET + "?limit=100")) as one:
        read_all(one)
    say_done(any(sent.startswith(b"GET /v1/responses?limit=100 ") for sent in service.heads))


def attack_by_a_websocket_that_is_not_opened(gate, service):
    service.answer = lambda connection, _: connection.sendall(LISTED)
    with connect(gate, head(*WEBSOCKET, method="GET", target=TARGET + "?limit=100")) as one:
        say_done(read_all(one).endswith(b"listed"))


def attack_from_a_page_of_another_site(gate, service):
    service.answer = answer_ok
    ask(gate, headers={"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})
    say_done(bool(service.heads))


def attack_by_a_name_that_leads_to_the_route(gate, service):
    """Of a page's own owner: for its browser both are one site."""
    service.answer = answer_ok
    ask(gate, headers={"Host": "evil.example:809", "Origin": "http://127.0.0.1:809", "Sec-Fetch-Site": "same-origin"})
    say_done(bool(service.heads))


def attack_by_a_certificate_of_another_name(gate, service):
    service.answer = answer_ok
    ask(gate, "/wrong.example/v1/responses")
    say_done(any(KEY.encode() in sent for sent in service.heads))


def attack_by_a_certificate_of_ones_own(gate, service):
    service.answer = answer_ok
    ask(gate, "/self.example/v1/responses")
    say_done(any(KEY.encode() in sent for sent in service.heads))


def filters_of(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("Seccomp_filters:")))


def attack_by_a_call_that_a_gate_never_makes(gate, service):
    """Whoever takes it over has the calls that no filter of its own keeps away; what that one refuses is its unit test's."""
    say_done(filters_of(gate.process.pid) == filters_of("self"))

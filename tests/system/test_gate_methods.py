"""A network of hosts under each sandbox.method that has a gate: the same as under systemd (tests/system/test_gate_inside.py)."""

import json

import pytest
from engine import under_method
from launching import PLAYING_POLICY, pi
from test_gate_inside import INSIDE, SECTION, SERVER, python


@pytest.fixture(scope="module", params=["podman", "docker"])
def method(request, playing):
    with under_method(playing, request.param, PLAYING_POLICY + SECTION):
        yield request.param
    playing.install_policy(PLAYING_POLICY)


def test_what_a_rule_names_is_reached_and_all_else_is_denied_and_told(playing, method):
    with playing.popen(["python3", "-c", SERVER], user="root") as server:
        assert server.stdout.readline() == b"ready\n"
        done = python(playing, INSIDE)
        server.kill_all()
    assert done.returncode == 0, done
    seen = json.loads(done.stdout)
    assert seen["variables"]["HTTP_PROXY"] == "http://127.0.0.1:808" and "nameserver 127.0.0.53\n" in seen["names"], seen
    assert seen["own"] == ["outside", True]
    assert seen["address"][0] != "outside" and seen["address"][1], seen
    assert "192.0.2.1:8443: " in seen["denials"] and "192.0.2.1:8443" in done.stderr.decode(), (seen, done)


def test_the_agent_asks_why(playing, method):
    done = pi(playing, "sh", "pi-agent-why provider.example; pi-agent-why other.example")
    assert b"allowed: a rule names it (provider.example)" in done.stdout and b"denied: no rule names it" in done.stdout, done


def test_a_name_leads_to_the_gate(playing, method):
    script = "import socket; print(sorted({one[4][0] for one in socket.getaddrinfo('provider.example', 443)}))"
    assert "198.18." in python(playing, script).stdout.decode()
    assert pi(playing, "sh", "exec getent ahostsv4 provider.example").stdout.startswith(b"198.18.")  # asks for IPv4 alone, if there is any

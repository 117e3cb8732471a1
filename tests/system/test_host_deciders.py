"""The real gate, pi-agent-why in the session and pi-agentctl why outside say the same of a host (unit/gate/host_deciders_test.cpp has 10,000 pairs)."""

import json

import pytest
from launching import DEMO, PLAYING_POLICY, pi

RULES = ["a.example", "*.b.example", "c.example:22", "xn--bcher-kva.example", "a_b.example", "localhost:7801", "10.20.0.0/16", "10.21.0.5:8080",
         "fd00:1::/64", "[2001:db8::5]:22", "169.254.0.0/16"]
GRANTS = ["*.granted.example", "198.0.0.0/8"]
# What somebody asks for, and whether a rule names it.
PAIRS = [
    ("a.example:443", True),
    ("A.EXAMPLE.:443", True),
    ("a.example:80", False),
    ("xa.example:443", False),
    ("b.a.example:443", False),
    ("x.b.example:443", True),
    ("x.y.b.example:443", True),
    ("-x.b.example:443", True),
    ("b.example:443", False),
    ("xb.example:443", False),
    ("c.example:22", True),
    ("c.example:443", False),
    ("XN--bcher-kva.example:443", True),
    ("a_b.example:443", True),
    ("a_b.example..:443", False),
    ("localhost:7801", True),
    ("app.localhost:7801", True),
    ("127.0.0.1:7801", True),
    ("127.1:7801", False),
    ("[::1]:7801", True),
    ("[0:0:0:0:0:0:0:1]:7801", True),
    ("localhost:7802", False),
    ("10.20.3.4:443", True),
    ("[::ffff:10.20.3.4]:443", True),
    ("[64:ff9b::a14:304]:443", True),
    ("10.21.3.4:443", False),
    ("10.21.0.5:8080", True),
    ("10.21.0.5:443", False),
    ("010.20.3.4:443", False),
    ("[FD00:1:0::7]:443", True),
    ("[fd00:2::7]:443", False),
    ("[2001:DB8:0::5]:22", True),
    ("[2001:db8::6]:22", False),
    ("169.254.7.7:443", True),
    ("169.254.169.254:443", False),
    ("[64:ff9b::a9fe:a9fe]:443", False),
    ("x.granted.example:443", False),
]
INSIDE = """
import json, socket, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
def gate(asked):
    # Allowed unless it says that no rule names it, or that it is no host: whether anything answers there does not count.
    with socket.create_connection(("127.0.0.1", 808), 10) as one:
        one.sendall(f"CONNECT {asked} HTTP/1.1\\r\\nHost: {asked}\\r\\n\\r\\n".encode())
        one.settimeout(4)
        try: said = one.recv(4096).decode()
        except TimeoutError: said = ""
    return not any(f"x-pi-agent-denied: {reason}\\r\\n" in said for reason in ("no-rule", "other-port", "malformed")), said
def why(asked):
    done = subprocess.run(["pi-agent-why", asked], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr
asked = json.loads(sys.argv[1])
with ThreadPoolExecutor(16) as pool: print(json.dumps([list(zip(asked, pool.map(decide, asked))) for decide in (gate, why)]))
"""


@pytest.fixture(scope="module")
def hosts(playing):
    playing.install_policy(f"{PLAYING_POLICY}network: {{hosts: {json.dumps(RULES)}, may_grant: {json.dumps(GRANTS)}}}\n")
    yield playing
    playing.install_policy(PLAYING_POLICY)


def test_gate_and_why_inside_and_outside_say_the_same(hosts):
    asked = [host for host, _ in PAIRS]
    inside = pi(hosts, "sh", 'exec python3 -c "$1" "$2"', INSIDE, json.dumps(asked), timeout=120)
    assert inside.returncode == 0, inside
    outside = json.loads(hosts.run(["pi-agentctl", "why", "--json", "--", *asked], user="alice", cwd=DEMO, check=True).stdout)
    reached = {f"[{seen['host']}]:{seen['port']}" if ":" in seen["host"] else f"{seen['host']}:{seen['port']}" for seen in outside["hosts"] if seen["reach"]}
    by_gate, by_why = json.loads(inside.stdout)
    for (host, expected), (_, (gate, told)), (_, (why, said)) in zip(PAIRS, by_gate, by_why, strict=True):
        assert (host, gate, why) == (host, expected, expected), (told, said)
    # As many outside: each in the one form that a host has there.
    assert len(outside["hosts"]) == sum(not host.startswith(("127.1:", "010.", "a_b.example..")) for host in asked), outside
    forms = {"A.EXAMPLE.:443": "a.example:443", "XN--bcher-kva.example:443": "xn--bcher-kva.example:443", "[0:0:0:0:0:0:0:1]:7801": "[::1]:7801",
             "[::ffff:10.20.3.4]:443": "10.20.3.4:443", "[FD00:1:0::7]:443": "[fd00:1::7]:443", "[2001:DB8:0::5]:22": "[2001:db8::5]:22"}  # fmt: skip
    assert reached == {forms.get(host, host) for host, expected in PAIRS if expected}


@pytest.mark.parametrize(("asked", "is_taken"), [
    ("x.granted.example", True),
    ("198.20.0.1", True),
    ("-x.granted.example", False),  # no rule can be written like this
    ("198.18.0.5", False),
    ("x.granted.example:80", False),
    ("other.example", False),
])  # fmt: skip
def test_what_may_be_added_is_said_only_of_what_pi_takes(asked, is_taken, hosts):
    said = pi(hosts, "sh", 'pi-agent-why "$1"', asked).stdout.decode()
    assert (f"its user may add it: pi --pi-agent-allow {asked} " in said) == is_taken and ("--pi-agent-allow" in said) == is_taken, said
    outside = json.loads(hosts.run(["pi-agentctl", "why", "--json", "--", asked], user="alice", cwd=DEMO, check=True).stdout)
    assert [seen["may_be_added"] for seen in outside["hosts"]] == [is_taken], outside
    assert (pi(hosts, f"--pi-agent-allow={asked}", "sh", "true").returncode == 0) == is_taken

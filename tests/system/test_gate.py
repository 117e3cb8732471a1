"""The gate of a session by itself: a driver stands for the runner, and real programs ask from a network that has nothing but the gate."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
GATE = "/usr/libexec/pi-agent/pi-agent-gate"
DIRECTORY = "/var/lib/gate-test"
DRIVER = f"{DIRECTORY}/gate_driver.py"
CERTIFICATE = f"{DIRECTORY}/certificate.pem"
OUTSIDE, PRIVATE = "45.155.1.2", "10.77.0.2"
RULES = [
    ["allowed.example", 443, "policy.yaml:1"], ["allowed.example", 80, "policy.yaml:2"], ["allowed.example", 22, "policy.yaml:3"],
    ["allowed.example", 8443, "policy.yaml:4"], ["*.wild.example", 443, "policy.yaml:5"], ["private.example", 443, "policy.yaml:6"],
    ["both.example", 443, "policy.yaml:7"], ["loop.example", 22, "policy.yaml:8"], ["meta.example", 443, "policy.yaml:9"],
    ["own.example", 22, "policy.yaml:10"], ["named.example", 22, "policy.yaml:11"], [PRIVATE, 22, "policy.yaml:12"],
    ["localhost", 5432, "policy.yaml:13"], ["dead.example", 443, "policy.yaml:14"], ["unknown.example", 443, "policy.yaml:15"],
    ["second.example", 22, "policy.yaml:16"], ["neighbour.example", 22, "policy.yaml:17"], ["neighbour6.example", 22, "policy.yaml:18"],
    ["translated.example", 22, "policy.yaml:19"], ["metadata6.example", 22, "policy.yaml:20"],
]  # fmt: skip

# Inside: TLS to a host by one way, asking for `name`; prints the answer, or what went wrong.
ASK_TLS = """
import socket, ssl, sys
proxy, target, name, port, request = sys.argv[1:]
context = ssl.create_default_context(cafile="%s")
context.check_hostname = name != ""
if proxy:
    channel = socket.create_connection(("127.0.0.1", int(proxy)), 10)
    channel.sendall(f"CONNECT {target}:{port} HTTP/1.1\\r\\nHost: {target}:{port}\\r\\n\\r\\n".encode())
    head = b""
    while b"\\r\\n\\r\\n" not in head and (more := channel.recv(1)):
        head += more
    if not head.startswith(b"HTTP/1.1 200 "):
        print(head.decode(), channel.recv(4096).decode())
        sys.exit(3)
else:
    channel = socket.create_connection((target, int(port)), 10)
channel.settimeout(10)
with context.wrap_socket(channel, server_hostname=name or None) as safe:
    safe.sendall(f"GET {request} HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n".encode())
    data = bytearray()  # long ones too
    while more := safe.recv(65536):
        data += more
print(len(data) if request.startswith("/long/") else data.partition(b"\\r\\n\\r\\n")[2].decode())
""" % CERTIFICATE
# Inside: sends bytes to an address, ends its side, and prints all that comes, or what went wrong.
SAY = """
import socket, sys
target, port, text = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode().decode("unicode_escape").encode("latin-1")
with socket.create_connection((target, port), 10) as channel:
    channel.settimeout(15)
    channel.sendall(text)
    if "keep" not in sys.argv[4:]:
        channel.shutdown(socket.SHUT_WR)
    data = b""
    while more := channel.recv(65536):
        data += more
sys.stdout.write(data.decode("latin-1"))
"""


class Driver:
    """Asks the driver in the machine."""

    def __init__(self, machine):
        self.machine = machine
        machine.write(DRIVER, (HERE / "gate_driver.py").read_text(), mode=0o755)
        self.process = machine.popen(["python3", "-B", DRIVER, GATE, "alice", DIRECTORY], user="root")
        self.read()

    def read(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def ask(self, do, **question):
        self.process.stdin.write(json.dumps({"do": do, **question}).encode() + b"\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        self.machine.root(["rm", "-r", DIRECTORY], check=True)


class Gate:
    """A running gate, and the session's network."""

    def __init__(self, driver, rules=RULES, **order):
        self.driver = driver
        self.started = driver.ask("start", order={"rules": rules, **order})
        assert self.started.get("first") == [{"ready": True}], self.started
        self.proxy, self.pid = str(self.started["proxy"]), self.started["pid"]

    def run(self, *argv, **options):
        return self.driver.ask("run", argv=list(argv), **options)

    def denials(self, seconds=1.5):
        return self.driver.ask("denials", seconds=seconds)

    def tls(self, target, name=None, *, proxy=True, port=443, request="/"):
        return self.run("python3", "-c", ASK_TLS, self.proxy if proxy else "", target, target if name is None else name, str(port), request)

    def say(self, target, port, text, *options):
        return self.run("python3", "-c", SAY, target, str(port), text, *options)


@pytest.fixture(autouse=True)
def nothing_is_left():
    """One gate serves all tests of this file, so conftest.py must not look for it after each: the driver ends it."""


@pytest.fixture(scope="module")
def driver(machine):
    made = Driver(machine)
    yield made
    made.close()


@pytest.fixture(scope="module")
def gate(driver):
    return Gate(driver)


@pytest.fixture(autouse=True)
def forget(request):
    """Each test sees its own denials."""
    yield
    if "gate" in request.fixturenames:
        request.getfixturevalue("gate").denials(0)


def reasons(told):
    return [(one["host"], one["port"], one["reason"]) for one in told]


BOTH_WAYS = pytest.mark.parametrize("proxy", [True, False], ids=["by the proxy", "by itself"])


@BOTH_WAYS
@pytest.mark.parametrize("host", ["allowed.example", "a.wild.example"])
def test_tls_to_a_host_that_a_rule_names_passes(gate, proxy, host):
    done = gate.tls(host, proxy=proxy)
    assert done["status"] == 0, done
    assert json.loads(done["out"])["said"] == host
    assert gate.denials(0.2) == []


@BOTH_WAYS
@pytest.mark.parametrize(
    ("host", "port", "reason", "where"),
    [("other.example", 443, "no-rule", ""), ("wild.example", 443, "no-rule", ""), ("private.example", 443, "private-address", "policy.yaml:6"),
     ("meta.example", 443, "private-address", "policy.yaml:9"), ("a.wild.example", 8443, "other-port", "policy.yaml:5"),
     ("unknown.example", 443, "no-address", "policy.yaml:15")],
)  # fmt: skip
def test_another_host_fails_at_once_and_is_told_with_its_reason(gate, proxy, host, port, reason, where):
    done = gate.tls(host, proxy=proxy, port=port)
    assert done["status"] not in (0, None), done
    assert done["took"] < 5
    if reason == "no-address" and not proxy:  # its name server says so, as the host's own would
        assert gate.denials(1.2) == [] and "name" in done["err"].lower(), done
        return
    [told] = gate.denials(1.2)
    assert (told["host"], told["port"], told["reason"], told["where"], told["count"]) == (host, port, reason, where, 1)
    address = {"private.example": PRIVATE, "meta.example": "169.254.169.254"}.get(host, "")
    assert told["address"] == address
    if proxy:
        assert f"x-pi-agent-denied: {reason}" in done["out"]
        assert not address or f"and no rule names that address: {address}." in done["out"], done
        assert "policy" in done["out"] or reason == "no-address"
    elif port == 443:
        assert "alert" in done["err"].lower(), done


@BOTH_WAYS
def test_the_name_inside_is_the_name_outside(gate, proxy):
    done = gate.tls("allowed.example", "other.example", proxy=proxy)
    assert done["status"] not in (0, None)
    assert "alert" in done["err"].lower() or "unrecognized" in done["err"].lower(), done
    assert reasons(gate.denials(1.2)) == [("allowed.example", 443, "other-name")]


@BOTH_WAYS
def test_tls_without_a_name_is_denied(gate, proxy):
    done = gate.run("openssl", "s_client", "-noservername", *(["-proxy", f"127.0.0.1:{gate.proxy}"] if proxy else []), "-connect", "allowed.example:443")
    assert done["status"] != 0
    assert reasons(gate.denials(1.2)) == [("allowed.example", 443, "no-name")]


def test_a_raw_address_is_denied_and_one_that_a_rule_names_passes(gate):
    assert gate.say(OUTSIDE, 22, "x")["out"] == ""
    assert gate.say(PRIVATE, 22, "x")["out"] == "hello\nxbye\n"
    assert reasons(gate.denials(1.2)) == [(OUTSIDE, 22, "no-rule")]


def test_a_name_may_lead_to_an_address_that_another_rule_names(gate):
    for name in ("named.example", "translated.example"):  # the second one by the network's own way from IPv6 to IPv4
        assert gate.say(name, 22, "x")["out"] == "hello\nxbye\n"


def test_tls_to_a_raw_address_passes_by_its_name_alone(gate):
    for address in (OUTSIDE, PRIVATE, "192.0.2.7"):  # whoever has it: the name says where the connection goes
        done = json.loads(gate.tls(address, "allowed.example", proxy=False)["out"])
        assert (done["said"], done["at"]) == ("allowed.example", OUTSIDE), (address, done)
    assert gate.tls(OUTSIDE, "other.example", proxy=False)["status"] != 0


def test_of_several_addresses_only_a_good_one_is_dialled(gate):
    """The other one comes first in the host's list."""
    for _ in range(3):
        done = json.loads(gate.tls("both.example")["out"])
        assert (done["said"], done["at"]) == ("both.example", OUTSIDE), done


@pytest.mark.parametrize(("host", "port"), [(f"{name}.example", 22) for name in ("loop", "own", "second", "neighbour", "neighbour6", "metadata6")])
def test_a_name_never_leads_to_the_host_itself_or_beside_it(gate, host, port):
    assert gate.say(host, port, "x")["out"] == ""
    assert reasons(gate.denials(1.2)) == [(host, port, "private-address")]


def test_localhost_is_the_host_where_a_rule_says_so(gate):
    assert gate.say("localhost", 5432, "x")["out"] == "hello\nxbye\n"
    assert gate.say("127.0.0.1", int(gate.proxy), "CONNECT localhost:22 HTTP/1.1\\r\\n\\r\\n")["out"].startswith("HTTP/1.1 403 ")


def test_a_server_that_speaks_first_and_has_the_last_word_is_heard(gate):
    assert gate.say("allowed.example", 22, "some words")["out"] == "hello\nsome wordsbye\n"


def test_the_proxy_tunnels_to_other_ports(gate):
    said = gate.say("127.0.0.1", int(gate.proxy), "CONNECT allowed.example:22 HTTP/1.1\\r\\n\\r\\nwords")["out"]
    assert said == "HTTP/1.1 200 Connection established\r\n\r\nhello\nwordsbye\n"


def test_a_names_address_inside_stands_for_it_at_the_proxy_too(gate):
    address = gate.run("python3", "-c", "import socket; print(socket.gethostbyname('allowed.example'))")["out"].strip()
    assert json.loads(gate.tls(address, "allowed.example")["out"])["said"] == "allowed.example"
    assert gate.tls(address, "other.example")["status"] != 0
    assert reasons(gate.denials(1.2)) == [("allowed.example", 443, "other-name")]


@pytest.mark.parametrize("proxy", [True, False])
def test_plain_http_passes_where_a_rule_says_so(gate, proxy):
    target = ("127.0.0.1", int(gate.proxy), "http://allowed.example/x") if proxy else ("allowed.example", 80, "/x")
    said = gate.say(*target[:2], f"GET {target[2]} HTTP/1.1\\r\\nHost: allowed.example\\r\\nProxy-Authorization: secret\\r\\n\\r\\n")["out"]
    head = json.loads(said.partition("\r\n\r\n")[2])["head"]
    assert head == "GET /x HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n"


def test_plain_http_to_another_host_is_denied_with_words(gate):
    said = gate.say("127.0.0.1", int(gate.proxy), "GET http://other.example/ HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n")["out"]
    assert said.startswith("HTTP/1.1 403 Forbidden\r\n")
    assert "other.example:80 is denied" in said and "network.hosts" in said
    said = gate.say("allowed.example", 80, "GET / HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n")["out"]
    assert "x-pi-agent-denied: other-name" in said


def test_a_second_request_on_one_connection_goes_nowhere(gate):
    second = "GET /second HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n"
    said = gate.say("allowed.example", 80, "GET /first HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n" + second)["out"]
    assert said.count("HTTP/1.1 200 OK") == 1 and "second" not in said


def test_every_name_has_an_address_and_nothing_else(gate):
    look = "import socket, sys; print(sorted({one[4][0] for one in socket.getaddrinfo(sys.argv[1], 443)}))"
    first = gate.run("python3", "-c", look, "some.other.example")["out"]
    assert "198.18." in first and "fd70:692d:6761:7465" in first
    assert gate.run("python3", "-c", look, "some.other.example")["out"] == first
    assert gate.run("getent", "hosts", "localhost")["status"] == 0


def test_names_are_answered_over_tcp_as_well(gate):
    done = gate.run("env", "RES_OPTIONS=use-vc", "getent", "ahostsv4", "over-tcp.example")
    assert done["out"].startswith("198.18."), done


def test_the_same_denial_is_told_once_a_second_with_its_count(gate):
    many = "import socket\nfor _ in range(20):\n try: socket.create_connection(('%s', 22), 5).recv(1)\n except OSError: pass\n" % OUTSIDE
    gate.run("python3", "-c", many)
    told = gate.denials(3)
    assert sum(one["count"] for one in told) == 20
    assert len(told) < 6


def test_git_asks_by_the_proxy_and_says_why_it_may_not(gate):
    environment = ["env", f"https_proxy=http://127.0.0.1:{gate.proxy}", f"GIT_SSL_CAINFO={CERTIFICATE}", "HOME=/tmp"]
    assert "403" in gate.run(*environment, "git", "ls-remote", "https://other.example/x")["err"]
    assert "403" not in gate.run(*environment, "git", "ls-remote", "https://allowed.example/x")["err"]
    assert reasons(gate.denials(1.2)) == [("other.example", 443, "no-rule")]


def test_two_hundred_connections_at_once_and_a_long_answer(gate):
    many = (
        "import socket\nchannels = [socket.create_connection(('allowed.example', 22), 10) for _ in range(200)]\n"
        "for one in channels:\n assert one.recv(6) == b'hello\\n'; one.sendall(b'x'); assert one.recv(1) == b'x'\nprint('all')"
    )
    assert gate.run("python3", "-c", many, timeout=60)["out"] == "all\n"
    done = gate.tls("allowed.example", request=f"/long/{64 * 1024 * 1024}")
    assert int(done["out"]) > 64 * 1024 * 1024
    pss = int(gate.driver.machine.root(["grep", "-m1", "^Pss:", f"/proc/{gate.pid}/smaps_rollup"], check=True).stdout.split()[1])
    assert pss < 10 * 1024


def test_more_connections_than_a_session_may_have_are_closed_and_told(gate):
    many = (
        "import socket\nchannels = [socket.create_connection(('127.0.0.1', %s), 10) for _ in range(600)]\n"
        "for one in channels[512:]:\n one.settimeout(5)\n try: assert one.recv(1) == b''\n except ConnectionError: pass\nprint('all')" % gate.proxy
    )
    assert gate.run("python3", "-c", many, timeout=60)["out"] == "all\n"
    assert "too-many" in [one["reason"] for one in gate.denials(1.2)]
    assert gate.tls("allowed.example")["status"] == 0


def test_an_allowed_host_is_not_denied_as_another_where_descriptors_are_missing(gate):
    """The name is known still, and one descriptor is left: for the session's connection."""
    ask, root = ("allowed.example", 22, "x"), gate.driver.machine.root
    assert gate.say(*ask)["out"] == "hello\nxbye\n"
    taken = {int(name) for name in root(["ls", f"/proc/{gate.pid}/fd"], check=True).stdout.split()}
    last = next(number for number in range(len(taken) + 1) if number not in taken)
    limit = ["setpriv", "--reuid=alice", "--regid=alice", "--clear-groups", "prlimit", f"--pid={gate.pid}"]
    soft = root([*limit, "--nofile", "--noheadings", "--output=SOFT"], check=True).stdout.decode().strip()
    root([*limit, f"--nofile={last + 1}:"], check=True)
    try:
        assert gate.say(*ask)["out"] == ""
    finally:
        root([*limit, f"--nofile={soft}:"], check=True)
    told = {one for one in reasons(gate.denials(1.2)) if one[0]}  # one without a host is about connections that wait
    assert told == {("allowed.example", 22, "no-room")}
    assert gate.say(*ask)["out"] == "hello\nxbye\n"


def test_who_says_nothing_is_not_waited_for(gate):
    done = gate.say("127.0.0.1", int(gate.proxy), "CONNECT allowed", "keep")
    assert done["out"].startswith("HTTP/1.1 408 ")
    assert 8 < done["took"] < 15
    # Told when there is room: the gate says twice a second that it is alive, and the driver has not read its pipe meanwhile.
    assert reasons(gate.denials(1.5)) == [("", 0, "too-slow")]


def test_a_connection_that_nobody_needed_is_no_denial(gate):
    done = gate.say("127.0.0.1", int(gate.proxy), "", "keep")
    assert done["out"] == "" and 8 < done["took"] < 15, done
    assert gate.denials(1.2) == []


def test_a_dead_host_is_no_denial(gate):
    done = gate.tls("dead.example")
    assert done["out"].startswith("HTTP/1.1 504 "), done
    assert gate.denials(0.2) == []


def status_of(machine, pid):
    lines = machine.root(["cat", f"/proc/{pid}/status"], check=True).stdout.decode().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_the_gate_can_do_nothing_else(gate):
    """Calls that a filter refuses: of each thread, and one filter more than whoever started it has."""
    machine = gate.driver.machine
    status = status_of(machine, gate.pid)
    assert status["NoNewPrivs"] == "1" and status["CapEff"] == "0" * 16, status
    before = int(status_of(machine, status["PPid"])["Seccomp_filters"])
    threads = machine.root(["ls", f"/proc/{gate.pid}/task"], check=True).stdout.decode().split()
    assert len(threads) > 1, "the resolver has threads"
    for thread in threads:
        assert int(status_of(machine, f"{gate.pid}/task/{thread}")["Seccomp_filters"]) == before + 1, thread
    assert gate.driver.machine.run(["cat", f"/proc/{gate.pid}/environ"]).returncode != 0  # not even by its own account


@pytest.mark.parametrize("proxy", [True, False])
def test_a_connection_with_a_byte_a_second_is_not_idle(driver, gate, proxy):
    """Each moves for three times as long as nothing may."""
    other = Gate(driver, idle=2)
    done = other.tls("allowed.example", proxy=proxy, request="/slow/6")
    assert done["out"].strip() == "xxxxxx", done
    Gate.__init__(gate, driver)


def test_a_connection_that_nobody_used_is_no_denial(gate):
    """As browsers and pools open them ahead."""
    ahead = "import socket\nwith socket.create_connection(('allowed.example', 443), 10) as one:\n one.settimeout(20)\n print(one.recv(1))"
    assert gate.run("python3", "-c", ahead, timeout=40)["out"] == "b''\n"
    assert gate.denials(1.2) == []


def test_an_idle_connection_ends(driver, gate):
    other = Gate(driver, idle=2)
    done = other.say("allowed.example", 22, "x", "keep")
    assert 1.5 < done["took"] < 10
    Gate.__init__(gate, driver)


@pytest.mark.parametrize("rule", [["a..b", 443, "policy.yaml:7"], ["10.0.0.1/8", 443, "policy.yaml:7"]])
def test_a_rule_that_is_none_ends_the_gate_with_words(driver, gate, rule):
    answer = driver.ask("start", order={"rules": [rule]})
    assert "policy.yaml:7" in answer["failed"]
    Gate.__init__(gate, driver)


def test_an_order_that_comes_late_is_waited_for(driver, gate):
    """The gate is started before the configuration is read, which may take minutes."""
    assert Gate(driver, after=32).tls("allowed.example")["status"] == 0
    Gate.__init__(gate, driver)


def test_the_channels_end_is_the_gates(driver, gate):
    stopped = driver.ask("stop")
    assert stopped["status"] == 0 and stopped["took"] < 2 and stopped["err"] == ""
    Gate.__init__(gate, driver)


def test_nothing_passes_when_the_gate_is_gone(driver, gate):
    driver.machine.root(["kill", "-KILL", str(gate.pid)], check=True)
    assert gate.tls("allowed.example", proxy=False)["status"] not in (0, None)
    assert gate.tls("allowed.example", proxy=True)["status"] not in (0, None)
    Gate.__init__(gate, driver)

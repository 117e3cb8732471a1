"""A proxy above the gate (network.via), which alone knows some names: what passes by it, and what a user hears of one that is gone, slow or odd."""

import base64
import json
import time

import pytest
from launching import read_line
from test_gate import DIRECTORY, HERE, OUTSIDE, PRIVATE, RULES, Gate, driver, nothing_is_left, reasons  # noqa: F401 (fixtures)

PROXY, PROXY_6 = "45.155.1.3", "2600:64::5"
PLACE = "policy.yaml:30: http://proxy.example:3128"
VIA = ["proxy.example", 3128, PLACE]
HIDDEN_RULES = [["only.example", port, "policy.yaml:31"] for port in (443, 80, 22, 8443)] + [["*.only.example", 443, "policy.yaml:32"]]
LOGIN = "DOMAIN\\alice:pass:word-é".encode("ascii", "ignore").decode()
TOLD = 2.5  # seconds, in which a user hears; half a second of it starts the program that asks

# The host's own name server, for one test: what it says of a name, and after how many seconds. No other name exists.
SLOW = 0.9  # seconds: longer than the gate waits where nothing answers
ANSWERS = {
    "late.example": (SLOW, PRIVATE, None), "good.example": (SLOW, OUTSIDE, None),
    "alias6.example": (0, None, "2600:64::2d9b:103"), "ipv4only.arpa": (0, None, "2600:64::192.0.0.170"),
}  # fmt: skip
OWN_RULES = [*([name, 443, "policy.yaml:33"] for name in ANSWERS if name != "ipv4only.arpa"), ["*.slow.example", 443, "policy.yaml:34"]]
NAME_SERVER = """
import json, socket, sys, threading
answers = json.loads(sys.argv[1])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready", flush=True)
def answer(question, place):
    end = question.index(b"\\0", 12)
    labels, at = [], 12
    while at < end:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    name = ".".join(labels)
    if name.endswith(".slow.example"): return
    wait, v4, v6 = answers.get(name, (0, None, None))
    kind = int.from_bytes(question[end + 1 : end + 3], "big")
    address = socket.inet_pton(socket.AF_INET, v4) if v4 and kind == 1 else socket.inet_pton(socket.AF_INET6, v6) if v6 and kind == 28 else b""
    head = question[:2] + (b"\\x81\\x80" if name in answers else b"\\x81\\x83") + b"\\0\\1" + (b"\\0\\1" if address else b"\\0\\0") + bytes(4)
    record = b"\\xc0\\x0c" + kind.to_bytes(2, "big") + b"\\0\\1" + bytes(4) + len(address).to_bytes(2, "big") + address if address else b""
    threading.Timer(wait, server.sendto, (head + question[12 : end + 5] + record, place)).start()
while True:
    answer(*server.recvfrom(2000))
"""
# Inside: more names at once than may wait, then this one; prints what the gate says about it.
MANY = """
import socket, sys, time
def ask(host):
    channel = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
    channel.sendall(f"CONNECT {host}:443 HTTP/1.1\\r\\n\\r\\n".encode())
    return channel
waiting = [ask(f"n{number}.slow.example") for number in range(64)]
time.sleep(0.2)
print(ask("private.example").recv(4096).decode())
"""


class Above(Gate):
    """A gate with a proxy above it, which remembers what it was asked."""

    def __init__(self, driver, rules=(), via=(VIA,), **order):  # noqa: F811
        super().__init__(driver, [*RULES, *HIDDEN_RULES, *rules], via=list(via), **order)

    def heads(self, script="", **options):
        """What the proxy heard since the last call; from now on it does this."""
        return self.driver.ask("proxy", script=script, **options)["heads"]

    def asked(self, script=""):
        return [head.split(" ")[1] for head in self.heads(script)]


@pytest.fixture(scope="module")
def above(driver):  # noqa: F811
    driver.machine.write(f"{DIRECTORY}/proxy_above.py", (HERE / "proxy_above.py").read_text())
    driver.ask("proxy")
    return Above(driver)


@pytest.fixture(autouse=True)
def forget(above):
    """Each test sees its own denials and requests."""
    above.heads()
    yield
    above.denials(1.2)  # the same denial, within a second of the last, is counted and told later


# --- What passes.


@pytest.mark.parametrize("proxy", [True, False], ids=["by the gate's proxy", "by itself"])
@pytest.mark.parametrize("host", ["only.example", "deep.only.example", "allowed.example"])
def test_the_proxy_resolves_what_the_host_cannot(above, host, proxy):
    done = above.tls(host, proxy=proxy)
    assert done["status"] == 0 and f'"said": "{host}"' in done["out"], done
    head = above.heads()[-1]
    assert head.startswith(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n"), head
    assert above.denials() == []


@pytest.mark.parametrize("script", ["interim", "with a length", "a byte at a time"])
def test_an_odd_answer_of_a_good_proxy_passes(above, script):
    above.heads(script)
    assert above.tls("only.example")["status"] == 0


def test_a_host_that_speaks_first_loses_no_byte(above):
    above.heads("with the first bytes")
    for script in ("with the first bytes", ""):
        above.heads(script)
        assert above.say("only.example", 22, "ping\\n")["out"] == "hello\nping\nbye\n"


def test_plain_http_passes_by_a_tunnel(above):
    done = above.run("python3", "-c", "import urllib.request as r; print(r.urlopen('http://only.example/x').read().decode())")
    assert "GET /x" in done["out"], done
    assert above.asked() == ["only.example:80"]


def test_ipv6_in_the_proxys_address(driver, above):  # noqa: F811
    other = Above(driver, via=[[PROXY_6, 3128, PLACE]])
    assert other.tls("only.example")["status"] == 0
    assert other.asked() == ["only.example:443"]
    Above.__init__(above, driver)


def test_an_address_of_a_rule_is_asked_of_the_proxy_too(driver, above):  # noqa: F811
    other = Above(driver, [["2600:45::2", 22, "policy.yaml:40"], [OUTSIDE, 22, "policy.yaml:41"]])
    assert other.say(OUTSIDE, 22, "x")["out"] == "hello\nxbye\n"
    other.say("2600:45::2", 22, "x")
    assert other.asked() == [f"{OUTSIDE}:22", "[2600:45::2]:22"]
    Above.__init__(above, driver)


def test_what_goes_direct_is_not_asked_of_the_proxy(driver, above):  # noqa: F811
    other = Above(driver, direct=["allowed.example", "*.wild.example"])
    assert other.tls("allowed.example")["status"] == 0 and other.tls("a.wild.example")["status"] == 0
    assert other.say("allowed.example", 22, "x")["out"] == "hello\nxbye\n"  # at each port
    assert other.say("127.0.0.1", 5432, "x")["out"] == "hello\nxbye\n"  # this host's own loopback always does
    assert other.asked() == []
    assert other.tls("only.example")["status"] == 0 and other.asked() == ["only.example:443"]
    Above.__init__(above, driver)


def test_a_login_is_the_proxys_alone(driver, above):  # noqa: F811
    other = Above(driver, login=LOGIN)
    other.heads(login=LOGIN)
    assert other.tls("only.example")["status"] == 0
    expected = "Proxy-Authorization: Basic " + base64.b64encode(LOGIN.encode()).decode()
    assert expected in other.heads(login=LOGIN)[-1].split("\r\n")
    done = other.run("python3", "-c", "import urllib.request as r; print(r.urlopen('http://only.example/x').read().decode())")
    assert "GET /x" in done["out"] and "uthorization" not in done["out"], done  # as the host saw it
    other.heads()
    Above.__init__(above, driver)


# --- What does not.


def test_what_no_rule_names_is_not_asked_of_the_proxy(above):
    assert "is denied: no rule" in above.tls("elsewhere.example")["out"]
    assert "is denied: no rule" in above.tls("10.77.0.3")["out"]
    assert above.asked() == []
    assert reasons(above.denials()) == [("elsewhere.example", 443, "no-rule"), ("10.77.0.3", 443, "no-rule")]


FAULTS = {
    "login": "proxy-login", "refused": "proxy-refused", "redirect": "proxy-refused", "failed": "proxy-failed", "unavailable": "proxy-failed",
    "closes": "proxy-gone", "resets": "proxy-gone", "garbage": "proxy-unreadable", "half a line": "proxy-unreadable", "no status": "proxy-unreadable",
    "half a head": "proxy-unreadable", "switched": "proxy-unreadable", "endless head": "proxy-unreadable", "endless heads": "proxy-unreadable",
}  # fmt: skip


def require_told(above, done, reason):
    """The program, in its own language, and the user: by the proxy's name."""
    assert done["status"] == 3 and PLACE in done["out"] and " 502 " in done["out"].replace("403", "502"), done
    assert done["took"] < TOLD, done
    assert [(one["host"], one["port"], one["reason"], one["where"]) for one in above.denials(0.5)] == [("only.example", 443, reason, PLACE)]


@pytest.mark.parametrize("script", FAULTS)
def test_a_fault_of_the_proxy_is_told_with_its_name(above, script):
    above.heads(script)
    require_told(above, above.tls("only.example"), FAULTS[script])


@pytest.mark.parametrize("where", [["proxy.example", 3999], ["45.155.1.9", 3128], ["45.155.0.77", 3128], ["nowhere.example", 3128]], ids=["refuses", "unreachable", "silent", "no address"])
def test_a_proxy_that_is_gone_is_told_with_its_name(driver, above, where):  # noqa: F811
    other = Above(driver, via=[[*where, PLACE]])
    require_told(other, other.tls("only.example"), "proxy-gone")
    assert other.say("127.0.0.1", 5432, "x")["out"] == "hello\nxbye\n"  # what needs no proxy
    Above.__init__(above, driver)


def test_a_proxy_that_is_slow_is_told_and_waited_for(above):
    above.heads("slow")
    began = time.monotonic()
    done = above.tls("only.example")
    assert done["status"] == 0 and 3 < time.monotonic() - began < 8, done
    assert [(one["reason"], one["where"]) for one in above.denials(0)] == [("proxy-slow", PLACE)]


def test_a_proxy_that_says_nothing_is_told_while_it_is_waited_for(above):
    above.heads("silent")
    done = above.run("timeout", "2.5", "python3", "-c", f"import socket; s = socket.create_connection(('127.0.0.1', {above.proxy})); s.sendall(b'CONNECT only.example:443 HTTP/1.1\\r\\n\\r\\n'); print(s.recv(99))")
    assert done["status"] == 124, done
    assert [one["reason"] for one in above.denials(0)] == ["proxy-slow"]


def test_a_program_without_proxy_gets_an_alert_at_once(above):
    above.heads("refused")
    done = above.tls("only.example", proxy=False)
    assert done["status"] == 1 and "alert" in done["err"].lower() and done["took"] < TOLD, done


# --- Names that the host asks a name server for.


@pytest.fixture
def resolving(driver, above):  # noqa: F811
    """A gate whose host asks a name server, which begins to answer with it."""
    machine, host = driver.machine, ["nsenter", "-t", str(driver.ask("start", order={"rules": []})["pid"]), "-m", "-n"]
    files = {"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n", "/etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n"}
    for path, text in files.items():
        source = f"{DIRECTORY}/resolving-{path.rpartition('/')[2]}"
        machine.write(source, text)
        machine.root([*host, "mount", "--bind", source, path], check=True)
    server = machine.popen([*host, "python3", "-c", NAME_SERVER, json.dumps(ANSWERS)], user="root")
    assert read_line(server) == b"ready\n"
    made = Above(driver, OWN_RULES)
    yield made
    for path in files:
        machine.root([*host[:2], str(made.pid), *host[3:], "umount", path], check=True)
    server.kill_all()
    server.communicate()
    Above.__init__(above, driver)


def test_a_name_that_is_answered_late_is_judged_all_the_same(resolving):
    """Its owner chooses how long that takes. The first connection of a gate, and a later one."""
    for _ in range(2):
        done = resolving.tls("late.example")
        assert done["status"] == 3 and PRIVATE in done["out"], done
        assert [(one["host"], one["reason"], one["address"]) for one in resolving.denials(0.5)] == [("late.example", "private-address", PRIVATE)]
        assert resolving.asked() == []
    resolving.tls("good.example")
    assert resolving.asked() == ["good.example:443"]


def test_the_proxy_is_itself_by_the_networks_way_from_ipv6_as_well(resolving):
    done = resolving.tls("alias6.example")
    assert done["status"] == 3 and reasons(resolving.denials(0.5)) == [("alias6.example", 443, "proxy-itself")], done
    assert resolving.asked() == []


def test_a_name_that_nobody_could_be_asked_for_does_not_pass(resolving):
    """More names wait than may; the session chooses which, and the proxy would connect to whatever the last one leads to."""
    assert resolving.tls("only.example")["status"] == 0  # the proxy's own name is known
    done = resolving.run("python3", "-c", MANY, resolving.proxy)
    assert "x-pi-agent-denied: no-room" in done["out"], done
    assert "private.example:443" not in resolving.asked()

"""A network of hosts as its users meet it: names and addresses that no policy names are denied at once, and everybody is told what would change it."""

import json
import time

import pytest
from launching import DEMO, PLAYING_POLICY, pi, read_line

SECTION = "network: {hosts: [provider.example, \"*.example.org:22\", \"localhost:7801\", \"10.20.0.0/16:8080\"]}\n"
INSIDE = """
import json, os, socket, time
def ask(address):
    begin = time.monotonic()
    try:
        with socket.create_connection(address, 10) as one: seen = one.recv(10).decode()
    except OSError as failure: seen = type(failure).__name__
    return [seen, time.monotonic() - begin < 2]
print(json.dumps({
    "variables": {name: os.environ.get(name) for name in ("HTTP_PROXY", "https_proxy", "NO_PROXY", "NODE_USE_ENV_PROXY")},
    "names": open("/etc/resolv.conf").read(),
    "rules": open("/run/pi-agent/network").read().splitlines(),
    "address": ask(("192.0.2.1", 8443)),
    "own": ask(("localhost", 7801)),
    "denials": (time.sleep(0.5), open("/run/pi-agent/denials").read())[1],
}))
"""
ASK_BY_NAME = """
import socket, time
try: print(socket.create_connection(("internal.example", 8443), 5).recv(1))
except OSError as failure: print(failure)
time.sleep(0.5); print(open("/run/pi-agent/denials").read())
"""
OWN_SERVER = """
import http.server, socket, threading, urllib.request
server = http.server.ThreadingHTTPServer(("0.0.0.0", 8000), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
with socket.socket(type=socket.SOCK_DGRAM) as one:  # how programs find out their own address: nothing is sent
    one.connect(("192.0.2.1", 80))
    own = one.getsockname()[0]
for host in (own, "0.0.0.0", "127.0.0.1", "localhost"):
    print(urllib.request.urlopen(f"http://{host}:8000/", timeout=5).status)
"""
SERVER = "import socket\nserver = socket.create_server(('127.0.0.1', 7801)); print('ready', flush=True)\nwhile True: server.accept()[0].sendall(b'outside')"


def python(machine, script):
    return pi(machine, "sh", 'exec python3 -c "$1"', script)


@pytest.fixture(scope="module")
def hosts(playing):
    playing.install_policy(PLAYING_POLICY + SECTION)
    yield playing
    playing.install_policy(PLAYING_POLICY)


@pytest.fixture
def inside(hosts):
    """What a session sees, and what its user was told."""
    with hosts.popen(["python3", "-c", SERVER], user="root") as server:
        assert server.stdout.readline() == b"ready\n"
        hosts.began = hosts.root(["date", "+@%s"], check=True).stdout.decode().strip()  # other tests have their own denials
        done = python(hosts, INSIDE)
        server.kill_all()
    assert done.returncode == 0, done
    return json.loads(done.stdout), done.stderr.decode()


def line_of(word):
    text = PLAYING_POLICY + SECTION
    return next(number for number, line in enumerate(text.splitlines(), 1) if word in line)


def test_a_session_finds_its_gate_and_its_rules(inside, hosts):
    seen, _ = inside
    hosts_name = hosts.root(["uname", "-n"], check=True).stdout.decode().strip()
    assert seen["variables"] == {
        "HTTP_PROXY": "http://127.0.0.1:808",
        "https_proxy": "http://127.0.0.1:808",
        "NO_PROXY": "127.0.0.1,localhost,::1,0.0.0.0," + hosts_name,
        "NODE_USE_ENV_PROXY": None,  # node 22 would warn at each start
    }
    assert "nameserver 127.0.0.53\n" in seen["names"]
    network, *rules = seen["rules"]
    assert network.startswith("network /etc/pi-agent/policy.yaml:"), seen
    assert [rule.split()[:2] for rule in rules] == [["host", host] for host in ("provider.example:443", "*.example.org:22", "localhost:7801", "10.20.0.0/16:8080")]
    assert all(f"/etc/pi-agent/policy.yaml:{line_of('network:')}:" in rule for rule in seen["rules"]), seen


def test_a_name_has_an_address_for_who_asks_for_ipv4_alone(hosts):
    """As getent asks: only where the session has an IPv4 address of its own beside 127.0.0.1."""
    assert pi(hosts, "sh", "exec getent ahostsv4 provider.example").stdout.startswith(b"198.18.")


def test_a_service_of_the_host_that_the_policy_names_is_where_it_is_outside(inside):
    seen, _ = inside
    assert seen["own"] == ["outside", True]


def test_a_server_of_the_session_is_found_at_the_address_that_it_prints(hosts):
    """Or finds out. By programs that read the proxy variables, too: the gate would deny it."""
    done = python(hosts, OWN_SERVER)
    assert (done.returncode, done.stdout) == (0, b"200\n" * 4), done
    assert b"denied" not in done.stderr, done


def test_a_server_of_the_session_is_found_by_the_hosts_name_and_by_names_that_its_files_give_the_loopback(hosts):
    """But for a name that a rule has: this one is reached outside, and here nobody answers there."""
    hosts.root("cp /etc/hosts /root/hosts.before; echo '127.0.0.1 app.test www.app.test # mine' >>/etc/hosts; echo 127.0.0.1 provider.example >>/etc/hosts", check=True)
    try:
        done = python(hosts, OWN_SERVER.replace('"0.0.0.0", "127', '"app.test", "www.app.test", socket.gethostname(), "127'))
        named = pi(hosts, "sh", "grep -c provider.example /etc/hosts; echo $no_proxy")
    finally:
        hosts.root("cat /root/hosts.before >/etc/hosts; rm /root/hosts.before", check=True)
    assert (done.returncode, done.stdout) == (0, b"200\n" * 6), done
    assert b"denied" not in done.stderr, done
    assert named.stdout.startswith(b"0\n") and b"app.test" in named.stdout and b"provider.example" not in named.stdout, named


def test_the_agent_hears_that_its_gate_has_ended(hosts):
    with hosts.popen(["pi", "sh", "echo $PI_AGENT_SESSION; read go; pi-agent-why provider.example || echo $?"], cwd=DEMO) as process:
        identity = read_line(process).decode().strip()
        unit = f"pi-agent-gate-{identity}.service"
        hosts.root(f"systemctl kill --signal=KILL {unit}; for i in $(seq 100); do systemctl -q is-active {unit} || exit 0; sleep 0.1; done; exit 1", check=True)
        out, err = process.communicate(b"go\n", timeout=30)
    assert b"the gate of this session has ended" in out and out.endswith(b"1\n"), (out, err)


def test_what_is_denied_is_denied_at_once_and_told_to_agent_and_user(inside, hosts):
    seen, told = inside
    assert seen["address"][0] != "outside" and seen["address"][1], seen
    assert "192.0.2.1:8443: " in seen["denials"] and "network.hosts" in seen["denials"], seen
    (notice,) = [line for line in told.splitlines() if "denied" in line]
    assert notice == "pi: the policy's network denied 1 connection: 192.0.2.1:8443; why: pi-agentctl denials"
    hosts.root(["journalctl", "--sync"], check=True)
    for ask in (hosts.root, hosts.run):
        denials = json.loads(ask(["pi-agentctl", "denials", "--json", "--since", hosts.began], check=True).stdout)["denials"]
        assert {"192.0.2.1"} == {denial["host"] for denial in denials}, denials
        assert {(denial["user"], denial["port"], denial["key"]) for denial in denials} == {("alice", 8443, "network.hosts")}
    shown = hosts.run(["pi-agentctl", "denials"], check=True).stdout.decode()
    assert "192.0.2.1:8443" in shown and "network.hosts" in shown, shown
    assert hosts.run(["pi-agentctl", "denials"], user="bob").returncode == 1


def test_who_follows_sees_what_is_denied_from_then_on(hosts):
    with hosts.popen(["pi-agentctl", "denials", "--follow", "--json"], user="root") as following:
        time.sleep(1)  # nothing says that it looks
        python(hosts, "import socket; socket.create_connection(('192.0.2.2', 8443), 5).recv(1)")
        seen = json.loads(following.stdout.readline())
        following.kill_all()
    assert (seen["host"], seen["port"], seen["user"]) == ("192.0.2.2", 8443, "alice"), seen


@pytest.mark.parametrize(("asked", "status", "said"), [
    ("provider.example", 0, "allowed: a rule names it (provider.example)"),
    ("https://provider.example/v1", 0, "allowed: a rule names it (provider.example)"),
    ("a.example.org:22", 0, "allowed: a rule names it (*.example.org:22)"),
    ("a.example.org", 1, "not this port (*.example.org:22)"),
    ("example.org:22", 1, "denied: no rule names it"),
    ("10.20.3.4:8080", 0, "allowed: a rule names it (10.20.0.0/16:8080)"),
    ("10.21.3.4:8080", 1, "denied: no rule names it"),
    ("127.0.0.1:7801", 0, "allowed: a rule names it (localhost:7801)"),
    ("other.example", 1, "the administrator can add it to network.hosts"),
    ("other.example/\x1b[31m", 1, "other.example/\\x1b[31m: not here"),
    ("/etc/shadow", 1, "not here"),
    ("/usr/bin/env", 1, "mounted read-only"),
    ("/usr/bin/env", 1, "the user sees outside with: pi-agentctl why /usr/bin/env"),
    (".", 0, "can be read and changed"),
])  # fmt: skip
def test_the_agent_asks_why(asked, status, said, hosts):
    done = pi(hosts, "sh", 'pi-agent-why "$1"', asked)
    assert done.returncode == status and said in done.stdout.decode(), done
    assert "--pi-agent-allow" not in done.stdout.decode(), done  # this policy lets nobody add a host


def test_a_name_in_a_file_of_the_hosts_is_a_name_inside_too(hosts):
    """Rules name it, so its address of the host's /etc/hosts must not take its place there."""
    hosts.root("cp /etc/hosts /root/hosts.before; echo 192.0.2.77 internal.example >>/etc/hosts", check=True)
    done = python(hosts, ASK_BY_NAME)
    hosts.root("cat /root/hosts.before >/etc/hosts; rm /root/hosts.before", check=True)
    assert done.returncode == 0 and b"internal.example:8443: " in done.stdout and b"192.0.2.77" not in done.stdout, done
    assert b"internal.example:8443" in done.stderr, done


@pytest.mark.parametrize("how", ["a file", "a link into /run"])
def test_in_the_hosts_own_view_names_are_asked_of_the_gate_too(how, playing, playing_policy):
    """As systemd-resolved keeps the list of name servers: in a directory of an account of its own."""
    link = "install -d -o games /run/resolver; echo 'nameserver 192.0.2.1' >/run/resolver/stub; ln -s ../run/resolver/stub /etc/resolv.conf"
    arrange = "echo 'nameserver 192.0.2.1' >/etc/resolv.conf" if how == "a file" else link
    playing_policy(PLAYING_POLICY + "view: host\n" + SECTION)
    playing.root(f"test ! -e /etc/resolv.conf -a ! -L /etc/resolv.conf || mv /etc/resolv.conf /root/; {arrange}", check=True)
    try:
        done = pi(playing, "sh", "cat /etc/resolv.conf /etc/hosts; exec getent ahostsv4 provider.example")
    finally:
        playing.root("rm -rf /etc/resolv.conf /run/resolver; test ! -e /root/resolv.conf || mv /root/resolv.conf /etc/", check=True)
    assert done.returncode == 0 and b"nameserver 127.0.0.53\n" in done.stdout and b"192.0.2.1" not in done.stdout, done
    assert b"gate answers for every other name" in done.stdout and b"\n198.18." in done.stdout, done


def test_sessions_without_hosts_have_nothing_of_a_gate(playing, playing_policy):
    playing_policy(PLAYING_POLICY)
    done = pi(playing, "sh", "echo $HTTP_PROXY; ls /run/pi-agent; pi-agent-why provider.example")
    assert b"network" not in done.stdout.splitlines() and b"808" not in done.stdout, done
    assert b"has no list of hosts" in done.stdout, done


def test_the_gates_unit_has_its_own_bounds_and_few_lines_of_the_journal(hosts):
    """A gate that the agent has taken over would fill the journal. limits.cpu, which not every host has, is in tests/unit/runner/plan/gate_plan_test.cpp."""
    asked = ("ActiveState", "MemoryMax", "TasksMax", "LogRateLimitIntervalUSec", "LogRateLimitBurst")
    with hosts.popen(["pi", "sh", "echo $PI_AGENT_SESSION; exec cat"], cwd=DEMO) as process:
        gate = f"pi-agent-gate-{read_line(process).decode().strip()}.service"
        shown = hosts.root(["systemctl", "show", *(f"--property={name}" for name in asked), gate], check=True).stdout.decode()
        ended = process.communicate(timeout=20), process.returncode
    assert dict(line.split("=", 1) for line in shown.splitlines()) == dict(zip(asked, ("active", str(256 << 20), "64", "1min", "20"))), (shown, gate, ended)

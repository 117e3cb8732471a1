"""What each mode of `network` lets through, from inside and from outside, and its messages (docs/concepts/network.md)."""

import json
from pathlib import Path

import pytest
from launching import DEMO, DENIED, INVALID, PLAYING_POLICY, agent_says, assert_refused, messages, pi, place_of, read_line, session, written_policy

HERE = Path(__file__).resolve().parent
PROBE = (HERE / "network_probe.py").read_text()
SOCKET = f"{DEMO}/host.sock"
SERVICES = "/usr/local/bin/network-services"
ADDRESSES = ("198.51.100.7/32", "198.51.100.53/32", "203.0.113.9/32", "2001:db8::7/128 nodad")
NEAR, FAR = ("127.0.0.1", "::1"), ("198.51.100.7", "203.0.113.9", "2001:db8::7")
LIST = '["198.51.100.0/24", "2001:db8::/32"]'
LIST_AND_LOOPBACK = '["198.51.100.7/32", "127.0.0.0/8", "::1/128"]'
MODES = {"full": "full", "loopback": "loopback", "none": "none", "a list": LIST, "a list with loopback": LIST_AND_LOOPBACK}
REACHED = {
    "full": {*NEAR, *FAR, "name", "own"},
    "loopback": {*NEAR, "own"},
    "none": {"own"},
    "a list": {"198.51.100.7", "2001:db8::7", "name"},
    "a list with loopback": {*NEAR, "198.51.100.7", "own"},
}
# Serves "callback" over HTTP, as an agent does that waits for a login in the browser; says its port first.
LISTENER = """
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"callback " + self.path.encode())
    def log_message(self, *_): pass
server = http.server.HTTPServer((sys.argv[1], 0), Answer)
print("ready", server.server_port, sep="\\n", flush=True)
server.serve_forever()
"""



@pytest.fixture(scope="module")
def services(playing):
    """The machine with addresses beyond loopback, a name server in its resolv.conf, and services on all of them, outside any session."""
    resolver = playing.root("cat /etc/resolv.conf").stdout
    playing.root("; ".join(f"ip address add {address} dev lo" for address in ADDRESSES), check=True)
    playing.write("/etc/resolv.conf", "nameserver 198.51.100.53\noptions timeout:1 attempts:1\n")
    playing.write(SERVICES, (HERE / "network_services.py").read_text(), mode=0o755)
    running = playing.popen([SERVICES, SOCKET], user="root")
    assert read_line(running) == b"ready\n", running.stderr.read()
    yield playing
    running.kill_all()
    for stream in (running.stdin, running.stdout, running.stderr):
        stream.close()
    running.wait()
    playing.write("/etc/resolv.conf", resolver)
    playing.root(["rm", SERVICES, SOCKET], check=True)
    playing.root("; ".join(f"ip address del {address} dev lo" for address in ADDRESSES), check=True)


@pytest.fixture(scope="module", params=MODES)
def mode(request, services):
    """The name of a mode that is in force."""
    services.install_policy(PLAYING_POLICY + f"network: {MODES[request.param]}\n")
    yield request.param
    services.install_policy(PLAYING_POLICY)


def probed(machine, *options):
    return json.loads(agent_says(machine, *options, "sh", 'exec python3 -c "$1" "$2"', PROBE, SOCKET))


def reached(found):
    """The probes of an answer that came through."""
    return {name for name, answer in found.items() if answer in ("reached", "198.51.100.7")}


def expected_in(mode):
    """Path sockets are the view's matter in every mode; abstract ones Landlock's, or the network namespace's."""
    through = REACHED[mode]
    expected = {f"{kind} {address}" for kind in ("TCP", "UDP") for address in (*NEAR, *FAR) if address in through}
    expected |= {"own 127.0.0.1", "own ::1"} if "own" in through else set()
    return expected | {"path in the project"} | {"name"} & through


def test_the_services_are_there_for_everybody_outside(services):
    done = services.run(["python3", "-c", PROBE, SOCKET], check=True)
    found = json.loads(done.stdout)
    assert reached(found) == set(found) - {"path of the host"}, found


def test_a_session_reaches_what_its_mode_says(services, mode):
    found = probed(services)
    assert reached(found) == expected_in(mode), found
    assert found["abstract"] == ("ECONNREFUSED" if mode == "none" else "EPERM"), found
    assert found["path of the host"] == "ENOENT", found


def test_what_is_not_allowed_is_silence_for_tcp_and_refused_for_udp(services, mode):
    """As docs/concepts/network.md tells; without a network of the host's, everything is refused at once."""
    found = probed(services)
    refused = {name: answer for name, answer in found.items() if name not in expected_in(mode) and name[:3] in ("TCP", "UDP")}
    words = {"TCP": {"silence"}, "UDP": {"EPERM"}}
    if mode == "none":
        words = {kind: {"ENETUNREACH", "ECONNREFUSED"} for kind in words}
    assert all(answer in words[name[:3]] for name, answer in refused.items()), found


def test_a_start_may_leave_itself_loopback_alone(services, mode):
    if mode in ("none", "a list"):  # which have none
        assert_refused(pi(services, "--pi-agent-network=loopback", "sh", "true"), DENIED, "allows no loopback; leave the option out, or say none", "E77-start")
    else:
        found = probed(services, "--pi-agent-network=loopback")
        assert reached(found) == expected_in("loopback"), found


def test_an_agent_that_fails_is_told_of_with_what_closed_its_network(services, mode):
    """By the policy's place, or by the user's own option, with who can change it."""
    said = messages(pi(services, "sh", "exit 1"))
    place = place_of(PLAYING_POLICY + f"network: {MODES[mode]}\n", MODES[mode])
    assert [place in line and "ask the administrator to change that key" in line for line in said] == ([] if mode == "full" else [True]), said
    (line,) = messages(pi(services, "--pi-agent-network=none", "sh", "exit 1"))
    own = "--pi-agent-network=none allows no connection out of the session, so no model provider; start without that option"
    assert (own in line) == (mode != "none") and "if the agent could not connect: " in line, line


def fetched(machine, address, port):
    """What a browser on this machine gets from there within a second, or nothing."""
    script = "import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(sys.argv[1], timeout=1).read())"
    return machine.run(["python3", "-c", script, f"http://{address}:{port}/?code=1"]).stdout


@pytest.mark.parametrize(("bound", "address", "through"), [
    ("127.0.0.1", "127.0.0.1", {"full", "loopback", "a list with loopback"}),
    ("0.0.0.0", "198.51.100.7", {"full", "a list", "a list with loopback"}),
    ("0.0.0.0", "203.0.113.9", {"full"}),
])  # fmt: skip
def test_a_login_or_development_server_inside_is_reached_by_the_users_browser(services, mode, bound, address, through):
    with session(services, "sh", 'exec python3 -c "$1" "$2"', LISTENER, bound) as running:
        got = fetched(services, address, int(read_line(running)))
    assert got == (b"callback /?code=1" if mode in through else b""), mode


def test_a_reload_of_systemd_keeps_a_session_in_its_mode(services, mode):
    with session(services, "sh", 'echo ready; read; exec python3 -c "$1" "$2"', PROBE, SOCKET) as running:
        services.root(["systemctl", "daemon-reload"], check=True)
        running.stdin.write(b"\n")
        running.stdin.flush()
        assert reached(json.loads(read_line(running))) == expected_in(mode)


TOLD = {
    "full": ("full", "the host's, not restricted", "full: the host's"),
    "loopback": ("loopback", "the host's loopback alone", "loopback (/etc/pi-agent/policy.yaml:"),
    "none": ("none", "none, but a loopback of your own", "none (/etc/pi-agent/policy.yaml:"),
    "a list": ("list", "these addresses alone, in both directions: 198.51.100.0/24, 2001:db8::/32.", "only 198.51.100.0/24, 2001:db8::/32 ("),
    "a list with loopback": (
        "list", "these addresses alone, in both directions: 198.51.100.7/32, 127.0.0.0/8, ::1/128.", "only 198.51.100.7/32, 127.0.0.0/8, ::1/128 ("
    ),
}  # fmt: skip


def test_agent_user_and_administrator_are_told_the_mode(services, mode):
    kind, notes, explained = TOLD[mode]
    assert f"- Network: {notes}" in agent_says(services, "sh", "cat /AGENTS.md").decode()
    assert f"\nnetwork:  {explained}" in services.run(["pi", "--pi-agent-explain"], cwd=DEMO, check=True).stdout.decode()
    shown = json.loads(services.root(["pi-agentctl", "explain", "--user", "alice", "--json"], check=True).stdout)
    assert shown["network"]["mode"] == kind, shown


def test_a_list_that_is_wrong_is_refused_with_its_place(services):
    text = PLAYING_POLICY + "network: [198.51.100.0/24, 10.1.2.3/8, any]\n"
    with written_policy(services, text):
        checked = services.root(["pi-agentctl", "check"])
        done = pi(services, "sh", "true")
    assert checked.returncode == INVALID, checked
    place = place_of(text, "10.1.2.3")
    said = checked.stdout + checked.stderr
    assert f"{place}: network[1]: '10.1.2.3/8' has bits beyond its prefix length; write 10.0.0.0/8".encode() in said, said
    assert b"network[2]: 'any' is not a range of addresses; say 'network: full'" in said, said
    assert_refused(done, INVALID, "the administrator's policy has 2 errors, so nobody can start pi. Ask them to run: pi-agentctl check")


def test_servers_inside_talk_to_each_other_without_a_network(services):
    """Two sessions without a network are not in the same one either."""
    services.install_policy(PLAYING_POLICY + "network: none\n")
    with session(services, "sh", 'exec python3 -c "$1" "$2"', LISTENER, "127.0.0.1") as running:
        port = int(read_line(running))
        script = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"
        assert pi(services, "sh", script).stdout == b""
    both = 'python3 -c "$1" 127.0.0.1 >/tmp/out & for i in $(seq 100); do sleep 0.05; port=$(sed -n 2p /tmp/out); [ -z "$port" ] || break; done;'
    both += ' exec 3<>/dev/tcp/127.0.0.1/$port && echo reached; kill %1'
    assert agent_says(services, "sh", both, LISTENER) == b"reached\n"
    services.install_policy(PLAYING_POLICY)

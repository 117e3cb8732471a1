"""What the policy's network denies stays denied, and where the host does not deny it no agent starts."""

import pytest
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("agent")

UNAVAILABLE = 69
ADDRESS = "198.51.100.7"  # of the machine itself, beside loopback
LIST = '["203.0.113.0/24", "fd00::/8"]'
FILTER = ("unit:IPAddressDeny", "unit:IPAddressAllow")
# Says the first bytes that a service of the host sends: sshd listens on every address of the machine.
GREETING = "import socket; print(socket.create_connection(('{}', 22), 2).recv(4).decode())"
LISTENER = """
import os, socket
server = socket.create_server(("", 0))
print(os.environ["PI_AGENT_SESSION"], server.getsockname()[1], flush=True)
while True: server.accept()[0].sendall(b"inside")
"""
CALL = "import socket; print(socket.create_connection(('{}', {}), 2).recv(6).decode())"
ABSTRACT = """
import socket
server = socket.socket(socket.AF_UNIX); server.bind("\\0attack-network"); server.listen(8); print("ready", flush=True)
while True: server.accept()[0].sendall(b"host")
"""
REACH_ABSTRACT = "import socket; channel = socket.socket(socket.AF_UNIX); channel.connect('\\0attack-network'); print(channel.recv(4).decode())"


@pytest.fixture
def network(product, weak):
    """network(value) puts it into the policy of both machines, for one test."""
    both = (product, weak)
    for target in both:
        target.machine.root(["ip", "address", "replace", f"{ADDRESS}/32", "dev", "lo"], check=True)

    def apply(value):
        for target in both:
            target.machine.install_policy(ATTACK_POLICY.read_text() + f"network: {value}\n")

    yield apply
    for target in both:
        target.machine.install_policy(ATTACK_POLICY.read_text())
        target.machine.root(["ip", "address", "del", f"{ADDRESS}/32", "dev", "lo"], check=True)


def greeting_of(address):
    def attack(target):
        done = target.pi("python3", "-c", GREETING.format(address))
        return Outcome(b"SSH-" in done.stdout, done)

    return attack


def test_without_a_network_the_hosts_loopback_services_are_out_of_reach(network, prove):
    network("none")
    prove(greeting_of("127.0.0.1"), "unit:PrivateNetwork", "network-check")


def test_without_a_network_abstract_sockets_of_the_host_are_out_of_reach(network, prove, product, weak):
    network("none")
    servers = [target.machine.popen(["python3", "-c", ABSTRACT]) for target in (product, weak)]
    assert [server.stdout.readline() for server in servers] == [b"ready\n"] * 2

    def attack(target):
        done = target.pi("python3", "-c", REACH_ABSTRACT)
        return Outcome(done.stdout == b"host\n", done)

    # Either is enough.
    prove(attack, "unit:PrivateNetwork", "network-check", "landlock")
    with weak.without("landlock"):
        assert not attack(weak).succeeded
    for server in servers:
        server.kill_all()
        server.communicate()


@pytest.mark.parametrize("value", ["loopback", LIST])
def test_an_address_that_is_not_allowed_is_out_of_reach(value, network, prove):
    network(value)
    prove(greeting_of(ADDRESS), *FILTER, "network-check")


@pytest.mark.position("outsider")
@pytest.mark.parametrize("value", ["loopback", LIST])
def test_who_is_not_allowed_does_not_reach_a_server_inside(value, network, prove):
    network(value)

    def attack(target):
        session = target.session("python3", "-c", LISTENER)
        done = target.machine.run(["python3", "-c", CALL.format(ADDRESS, session.words[0])], user="bob")
        session.end()
        return Outcome(done.stdout == b"inside\n", done)

    prove(attack, *FILTER, "network-check")


# What systemd does where it cannot: it goes on without. Taking the property out leaves the unit in that state.
@pytest.mark.position("host")
@pytest.mark.parametrize(("value", "missing", "said"), [
    ("none", ("unit:PrivateNetwork",), "no network namespace was made for the session"),
    ("loopback", FILTER, "systemd attached no packet filter to the session"),
    (LIST, FILTER, "systemd attached no packet filter to the session"),
])  # fmt: skip
def test_no_agent_starts_where_the_host_does_not_enforce_it(value, missing, said, network, weak, nothing_left, seen_to_work):
    network(value)
    with weak.without(*missing):
        refused = weak.pi("sh", "-c", "echo started; touch started")
    assert (refused.returncode, refused.stdout) == (UNAVAILABLE, b""), refused
    line = ATTACK_POLICY.read_text().count("\n") + 1
    place = f"this host cannot enforce the policy's network (/etc/pi-agent/policy.yaml:{line}:10): {said}; the kernel needs CONFIG_"
    assert place in refused.stderr.decode() and "or change the policy" in refused.stderr.decode(), refused
    with weak.without(*missing, "network-check"):
        assert weak.pi("echo", "started").stdout == b"started\n"
    seen_to_work((*missing, "network-check"))


@pytest.mark.position("host")
def test_an_administrators_own_filter_does_not_pass_for_the_policys(network, weak, seen_to_work):
    """Programs on the slice above a session do not prove that the session has its own."""
    network("loopback")
    drop_in = "/etc/systemd/system/pi-agent-.slice.d/60-accounting.conf"
    weak.machine.write(drop_in, "[Slice]\nIPAccounting=yes\n")
    weak.machine.root(["systemctl", "daemon-reload"], check=True)
    with weak.without(*FILTER):
        refused = weak.pi("true")
    with weak.without(*FILTER, "network-check"):
        started = weak.pi("true")
    weak.machine.root(f"rm {drop_in}; systemctl daemon-reload", check=True)
    assert refused.returncode == UNAVAILABLE and b"no packet filter" in refused.stderr, refused
    assert started.returncode == 0, started
    seen_to_work((*FILTER, "network-check"))

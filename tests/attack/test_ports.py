"""Ports of a session on the host's loopback (`pi --pi-agent-port`): for the user of that session alone, and a way into the session, never out of it."""

import contextlib
import os
import time

import pytest
from points import read_line
from session import main_pid
from target import Outcome

pytestmark = pytest.mark.position("outsider")

OWN = "network: none\nwrapper: {ports: true}"
PORT = 3900
# The session's server: says on standard output what it hears, and answers.
SERVER = """
import os, socket
server = socket.create_server(("127.0.0.1", 3900))
print(os.environ["PI_AGENT_SESSION"], flush=True)
while True:
    one = server.accept()[0]; heard = one.recv(100); print("heard", heard, flush=True)
    try: one.sendall(b"from the session")
    except OSError: pass
    one.close()
"""
# What an attacker does with the port; prints what came back.
TALK = "import socket\none = socket.create_connection(({address!r}, 3900), 5); one.settimeout(5)\ntry: one.sendall(b'from outside'); print(one.recv(100))\nexcept OSError as failure: print(repr(failure))"
# Bytes that wait on their way while their sender is gone: its socket is nobody's then.
HIT_AND_RUN = "import socket\none = socket.create_connection(('127.0.0.1', 3900), 5); one.sendall(b'from outside'); one.close()"
HALF = "import socket, time\none = socket.create_connection(('127.0.0.1', 3900), 5); one.sendall(b'from outside'); one.shutdown(1); time.sleep(1)"
MAPPED = "import socket\none = socket.socket(socket.AF_INET6); one.settimeout(5); one.connect(('::ffff:127.0.0.1', 3900))\ntry: one.sendall(b'from outside'); print(one.recv(100))\nexcept OSError as failure: print(repr(failure))"
ANSWER = b"from the session"


@contextlib.contextmanager
def serving(target, *options, section=OWN, server=SERVER, **more):
    with target.policy_with(section):
        session = target.session(*(options or (f"--pi-agent-port={PORT}",)), "python3", "-u", "-c", server, **more)
        try:
            yield session
        finally:
            session.end()


def talk(target, script=TALK.format(address="127.0.0.1"), user="bob"):
    return target.machine.run(["python3", "-c", script], user=user, timeout=30)


def lines_until(process, end):
    """What it says before these words. Several lines may come at once, so none is waited for by itself."""
    seen, until = b"", time.monotonic() + 20
    os.set_blocking(process.stdout.fileno(), False)
    while end not in seen:
        assert time.monotonic() < until, seen
        seen += process.stdout.read() or b""
        time.sleep(0.05)
    return seen[: seen.index(end)]


def heard(session):
    """The user's own words come after all that was let in before."""
    return lines_until(session.process, b"the end")


LAST_WORDS = "import socket\none = socket.create_connection(('127.0.0.1', 3900), 5); one.sendall(b'the end'); one.recv(100)"


def reaching(script, user):
    def attack(target):
        with serving(target) as session:
            done = talk(target, script, user)
            target.machine.run(["python3", "-c", LAST_WORDS], user="alice", check=True, timeout=30)
            lines = heard(session)
        return Outcome(ANSWER in done.stdout or b"from outside" in lines, (done, lines))

    return attack


OTHERS = {
    "another user": (TALK.format(address="127.0.0.1"), "bob"),
    "another user by the newer loopback": (TALK.format(address="::1"), "bob"),
    "another user by a mapped address": (MAPPED, "bob"),
    "another user who is gone already": (HIT_AND_RUN, "bob"),
    "another user who has said all": (HALF, "bob"),
    "root": (TALK.format(address="127.0.0.1"), "root"),
    "root who is gone already": (HIT_AND_RUN, "root"),
    "an account of the system": (TALK.format(address="127.0.0.1"), "daemon"),
}


@pytest.mark.parametrize("who", OTHERS)
def test_the_port_is_not_for(who, prove):
    prove(reaching(*OTHERS[who]), "port-owner", quick=who != "another user")


@pytest.mark.position("agent")
@pytest.mark.parametrize("user", ["alice", "bob"])
def test_the_port_is_not_for_an_agent_with_the_hosts_network(user, prove):
    """Also not for another agent of the same user: it would get around what its own session may reach."""

    def attack(target):
        with serving(target):
            target.machine.write("/etc/pi-agent/policy.yaml", target.machine.read("/etc/pi-agent/policy.yaml").decode().replace("network: none", "network: full"))
            cwd = "/home/alice/projects/demo" if user == "alice" else "/home/bob/work/demo"
            done = target.pi("python3", "-c", TALK.format(address="127.0.0.1"), user=user, cwd=cwd)
        return Outcome(ANSWER in done.stdout, done)

    prove(attack, "port-owner", quick=True)


def test_the_user_has_the_port(product, control_seen):
    with serving(product):
        done = talk(product, user="alice")
        assert ANSWER in done.stdout, done
    control_seen("what others fail to do works for the user")


def test_a_crowd_of_others_keeps_the_user_from_nothing(product, control_seen):
    crowd = "import socket\nall = []\nfor _ in range(600):\n    try: all.append(socket.create_connection(('127.0.0.1', 3900), 2))\n    except OSError: pass\nprint(len(all), flush=True)\ninput()"
    with serving(product):
        others = product.machine.popen(["python3", "-c", crowd], user="bob")
        assert int(read_line(others)) > 300
        control_seen("they are connected")
        assert ANSWER in talk(product, user="alice").stdout
        others.kill_all()
        others.communicate()


# --- Whose the ports of this host are.


@pytest.mark.parametrize("family", ["socket.AF_INET, '127.0.0.1'", "socket.AF_INET6, '::1'", "socket.AF_INET, '0.0.0.0'"])
def test_nobody_stands_in_for_the_session(family, product, control_seen):
    """Where another program has the port at one of the addresses, no session starts with it."""
    family, address = family.split(", ")
    taking = f"import socket\nserver = socket.create_server(({address}, {PORT}), family={family})\nprint('there', flush=True)\nserver.accept()[0].sendall(b'from bob')"
    other = product.machine.popen(["python3", "-c", taking], user="bob")
    try:
        assert read_line(other) == b"there\n"
        with product.policy_with(OWN):
            done = product.pi(f"--pi-agent-port={PORT}", "echo", "ran")
        assert (done.returncode, done.stdout) == (77, b"") and b"is taken by another program" in done.stderr, done
        where = "::1" if "INET6" in family else "127.0.0.1"
        assert b"from bob" in talk(product, TALK.format(address=where), "alice").stdout
        control_seen("the other program answers there")
    finally:
        other.kill_all()
        other.communicate()


def test_nobody_takes_the_port_of_a_session(product, control_seen):
    taking = "import socket\nfor family, address in ((2, '127.0.0.1'), (10, '::1'), (2, '0.0.0.0'), (10, '::')):\n one = socket.socket(family)\n for option in (2, 15): one.setsockopt(1, option, 1)\n try: one.bind((address, 3900)); one.listen(); print('taken')\n except OSError as failure: print(failure.errno)"
    with serving(product):
        assert talk(product, taking).stdout == b"98\n" * 4
    assert talk(product, taking).stdout.count(b"taken") >= 2
    control_seen("without the session they are free")


# --- What the policy gives.


@pytest.mark.position("user")
def test_without_the_key_a_user_has_no_port(prove):
    def attack(target):
        with target.policy_with("network: none"):
            done = target.pi(f"--pi-agent-port={PORT}", "echo", "ran")
        return Outcome(done.stdout == b"ran\n", done)

    on, _ = prove(attack, "granted-ports")
    assert on.seen.returncode == 77 and b"E77-start" in on.seen.stderr, on


ASKING = "channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\nchannel.shutdown(socket.SHUT_RD)\n"


def asking(ports, fd="other.fileno()", more="", arguments="['true']"):
    """By hand, past all that `pi` looks at."""
    return f"{ASKING}tell(call(lambda c, s: (ask(c, s, {arguments}, ports={ports}, connections=[{fd}]), {more or None})))"


@pytest.mark.position("user")
def test_a_request_by_hand_has_no_port_either(prove):
    def attack(target):
        with target.policy_with("network: none"):
            answer = target.play(asking([PORT]))
        return Outcome(answer["ended"] is not None, answer)

    prove(attack, "granted-ports", quick=True)


# Where the session has the host's network, its first process would connect there as the agent's account, for its user.
PEER = """
import socket, subprocess
server = socket.create_server(("127.0.0.1", 7811)); print("there", flush=True)
while True:
    one, (_, port) = server.accept()
    shown = [line.split() for line in open("/proc/net/tcp")]
    owner = [line[7] for line in shown[1:] if int(line[1].split(":")[1], 16) == port and int(line[2].split(":")[1], 16) == 7811]
    print("owner", *owner, flush=True); one.close()
"""


@pytest.mark.position("user")
def test_a_user_reaches_no_service_of_the_host_as_the_agent(prove):
    def attack(target):
        service = target.machine.popen(["python3", "-c", PEER], user="root")
        try:
            assert read_line(service) == b"there\n"
            with target.policy_with("network: full\nwrapper: {ports: true}"):
                talking = "import socket, subprocess, time\npi = subprocess.Popen(['pi', '--pi-agent-port=3900:7811', 'sh', '-c', 'echo in; exec sleep 20'], stdout=-1, cwd='/home/alice/projects/demo')\nif pi.stdout.readline() == b'in\\n':\n time.sleep(1); one = socket.create_connection(('127.0.0.1', 3900), 5); one.recv(1)\npi.terminate(); pi.wait()"
                target.machine.run(["python3", "-c", talking], user="alice", timeout=60)
            mine = target.machine.run(["python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 7811), 5).recv(1)"], user="alice")
            owners = lines_until(service, b"owner 1000\n")
        finally:
            service.kill_all()
            service.communicate()
        return Outcome(owners != b"", (owners, mine))

    prove(attack, "ports-of-own-network", quick=True)


# --- The channel.



@pytest.mark.position("user")
def test_only_the_ports_of_the_request_are_reached(prove):
    """So that what was asked for is what the record could say."""

    script = (
        ASKING
        + """
import select
made = {}
def knock(c, s):
    ask(c, s, ['python3', '-c', 'import socket, time\\nservers = [socket.create_server(("127.0.0.1", port)) for port in (3900, 3901)]\\nfor one in servers: one.setblocking(True)\\nimport threading\\nfor one in servers: threading.Thread(target=lambda s=one: s.accept()[0].sendall(b"hello"), daemon=True).start()\\ntime.sleep(6)'], ports=[3900], connections=[other.fileno()])
    wait_for_agent('python3'); time.sleep(2)
    for port in (3900, 3901):
        into, back = os.pipe(), os.pipe()
        send(channel, number(port), [into[0], back[1]]); os.close(back[1]); os.close(into[0])
        made[port] = os.read(back[0], 10).decode() if select.select([back[0]], [], [], 3)[0] else ''
call(knock)
tell(made)
"""
    )

    def attack(target):
        with target.policy_with(OWN):
            answer = target.play(script)
        assert answer["3900"] == "hello", answer
        return Outcome(answer["3901"] == "hello", answer)

    prove(attack, "named-ports", quick=True)


CHANNELS = {
    "a directory": "os.open('/home/alice', os.O_RDONLY)",
    "a socket of the host's network": "socket.create_server(('127.0.0.1', 0)).detach()",
    "a file": "os.open('/etc/passwd', os.O_RDONLY)",
}


@pytest.mark.position("user")
@pytest.mark.parametrize("what", CHANNELS)
def test_the_channel_is_not(what, prove):
    def attack(target):
        with target.policy_with(OWN):
            answer = target.play(asking([PORT], CHANNELS[what]))
        return Outcome(answer["ended"] is not None, answer)

    prove(attack, "channel-of-ports", quick=True)


MALFORMED = {
    "no channel": ("tell(call(lambda c, s: ask(c, s, ['true'], ports=[3900])))", "exactly 5 descriptors, this one has 4"),
    "the port 0": (asking([0]), "impossible port"),
    "a port beyond": (asking([65536 + 3900]), "impossible port"),
    "17 ports": (asking(list(range(3900, 3917))), "too many ports"),
}


@pytest.mark.position("user")
@pytest.mark.parametrize("kind", MALFORMED)
def test_a_request_with(kind, product, right_call_seen):
    script, said = MALFORMED[kind]
    with product.policy_with(OWN):
        answer = product.play(script)
    assert answer["status"] == 77 and said in answer["said"], answer


# --- Out of the session.


@pytest.mark.position("agent")
def test_a_session_with_a_port_reaches_nothing_outside(product, control_seen):
    """Neither the listener itself nor another service of its user's: its loopback is its own."""
    outside = "import socket\nserver = socket.create_server(('127.0.0.1', 7812)); print('there', flush=True)\nserver.accept()[0].sendall(b'from alice')"
    reach = "import socket\nfor port in (3900, 7812):\n    try: print(socket.create_connection(('127.0.0.1', port), 3).recv(20))\n    except OSError as failure: print(failure.errno)"
    service = product.machine.popen(["python3", "-c", outside], user="alice")
    try:
        assert read_line(service) == b"there\n"
        with product.policy_with(OWN):
            assert product.pi(f"--pi-agent-port={PORT}", "python3", "-c", reach).stdout == b"111\n111\n"
        assert b"from alice" in talk(product, reach.replace("3900, 7812", "7812,"), "alice").stdout
        control_seen("outside, the service answers")
    finally:
        service.kill_all()
        service.communicate()


@pytest.mark.position("agent")
def test_no_process_of_a_session_gets_a_socket_of_the_host(product, control_seen):
    """What comes in are pipes, and only to the first process."""
    with serving(product) as session:
        assert ANSWER in talk(product, user="alice").stdout
        holder = product.machine.popen(["python3", "-c", "import socket\none = socket.create_connection(('127.0.0.1', 3900), 5); print('held', flush=True); input()"], user="alice")
        assert read_line(holder) == b"held\n"
        launcher = main_pid(product.machine, session.service)
        inodes = "cat /proc/net/tcp /proc/net/tcp6 | awk '{print $10}' | sort >/tmp/all"
        shown = "ls -l /proc/PID/fd 2>/dev/null | grep -o 'socket:.[0-9]*' | tr -dc '0-9\\n' | sort >/tmp/fds; " + inodes + "; comm -12 /tmp/fds /tmp/all"
        pids = [launcher, *session.agent_pids()]
        assert all(product.machine.root(shown.replace("PID", str(pid)), check=True).stdout == b"" for pid in pids)
        control_seen("the wrapper has one")
        assert product.machine.root(shown.replace("PID", str(session.wrapper_pid())), check=True).stdout != b""
        holder.kill_all()
        holder.communicate()


@pytest.mark.position("agent")
def test_a_server_that_takes_nothing_holds_up_no_end(product, control_seen):
    """Full pipes and connections that nobody accepts."""
    deaf = SERVER.replace("one = server.accept()[0]; heard = one.recv(100);", "import time; time.sleep(60); heard = b'';")
    flood = "import socket\nall = []\nfor _ in range(60):\n    one = socket.create_connection(('127.0.0.1', 3900), 5); one.setblocking(False); all.append(one)\n    try:\n        while True: one.send(bytes(65536))\n    except OSError: pass\nprint('full', flush=True)\ninput()"
    with serving(product, server=deaf) as session:
        flooder = product.machine.popen(["python3", "-c", flood], user="alice")
        assert read_line(flooder, 60) == b"full\n"
        control_seen("the connections are full")
        product.machine.root(["kill", str(session.wrapper_pid())], check=True)
        session.process.wait(timeout=15)
        flooder.kill_all()
        flooder.communicate()


@pytest.mark.position("agent")
def test_two_sessions_have_their_own_ports(product, control_seen):
    with product.policy_with(OWN):
        first = product.session("--pi-agent-port=3900", "python3", "-u", "-c", SERVER.replace("from the session", "first"))
        second = product.session("--pi-agent-port=3910:3900", "python3", "-u", "-c", SERVER.replace("from the session", "second"), user="bob", cwd="/home/bob/work/demo")
        try:
            assert b"first" in talk(product, user="alice").stdout
            control_seen("each user reaches their own")
            other = TALK.format(address="127.0.0.1").replace("3900", "3910")
            assert b"second" in talk(product, other, "bob").stdout
            assert b"second" not in talk(product, other, "alice").stdout
        finally:
            first.end()
            second.end()

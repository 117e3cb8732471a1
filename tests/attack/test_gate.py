"""A network of hosts: nothing leads out of a session but its gate, which nobody but root reaches in another way, and which root does not believe."""

import contextlib
import json
import time

import pytest
from points import read_line
from record_check import IDS
from session import main_pid, pids_in
from target import ATTACK_POLICY, INSIDE, Outcome

pytestmark = pytest.mark.position("agent")

GATE = "/usr/libexec/pi-agent/pi-agent-gate"
HOSTS = "network: {hosts: [provider.example]}"
ADDRESS = "198.51.100.7"  # of the machine itself, beside loopback
OPEN = ("unit:PrivateNetwork", "network-check", "gate")
STAYING = ("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 60")
BOB = {"user": "bob", "cwd": "/home/bob/work/demo"}
SERVICE = """
import socket, threading
def tcp(family, address, port):
    server = socket.create_server((address, port), family=family)
    while True: server.accept()[0].sendall(b"outside")
def udp(address, port):
    server = socket.socket(type=socket.SOCK_DGRAM); server.bind((address, port))
    while True: server.sendto(b"outside", server.recvfrom(100)[1])
for task in ((tcp, socket.AF_INET, "0.0.0.0", 7001), (tcp, socket.AF_INET, "0.0.0.0", 443), (tcp, socket.AF_INET6, "::1", 7002), (udp, "0.0.0.0", 7003)):
    threading.Thread(target=task[0], args=task[1:]).start()
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\\0attack-gate"); abstract.listen(8); print("ready", flush=True)
while True: abstract.accept()[0].sendall(b"outside")
"""
REACH = """
import socket, sys
def reach(family, kind, address):
    with socket.socket(family, kind) as one:
        one.settimeout(3)
        one.connect(address)
        if kind == socket.SOCK_DGRAM: one.send(b"hello")
        return one.recv(7).decode()
try: print(reach({}))
except OSError as failure: print(repr(failure))
"""
WAYS = {
    "address of the host": f"socket.AF_INET, socket.SOCK_STREAM, ('{ADDRESS}', 7001)",
    "loopback of the host": "socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', 7001)",
    "port of https": f"socket.AF_INET, socket.SOCK_STREAM, ('{ADDRESS}', 443)",
    "IPv6": "socket.AF_INET6, socket.SOCK_STREAM, ('::1', 7002)",
    "IPv4 written as IPv6": f"socket.AF_INET6, socket.SOCK_STREAM, ('::ffff:{ADDRESS}', 7001)",
    "datagram": f"socket.AF_INET, socket.SOCK_DGRAM, ('{ADDRESS}', 7003)",
}


@contextlib.contextmanager
def service(target):
    """Servers of the host, at one more address of it."""
    target.machine.root(["ip", "address", "replace", f"{ADDRESS}/32", "dev", "lo"], check=True)
    server = target.machine.popen(["python3", "-c", SERVICE], user="root")
    assert server.stdout.readline() == b"ready\n", server.stderr.read()
    try:
        yield
    finally:
        server.kill_all()
        server.communicate()
        target.machine.root(["ip", "address", "del", f"{ADDRESS}/32", "dev", "lo"], check=True)


@pytest.fixture(scope="module")
def services(product, weak):
    with service(product), service(weak):
        yield


def reached(way, section=HOSTS):
    def attack(target):
        with target.policy_with(section):
            done = target.pi("python3", "-c", REACH.format(way))
        return Outcome(done.stdout == b"outside\n", done)

    return attack


# --- Past the gate.


@pytest.mark.parametrize("name", WAYS)
def test_what_listens_on_the_host_is_out_of_reach_by(name, services, prove):
    prove(reached(WAYS[name]), *OPEN)


def test_abstract_sockets_of_the_host_are_out_of_reach(services, prove):
    prove(reached("socket.AF_UNIX, socket.SOCK_STREAM, '\\0attack-gate'"), *OPEN, "landlock")


@pytest.mark.parametrize("way", [WAYS["address of the host"], WAYS["datagram"]])
def test_what_is_denied_is_denied_at_once(way, services, product, control_seen):
    """And not after the patience of a client."""
    with product.policy_with(HOSTS):
        begin = "import time; begin = time.monotonic()\n" + REACH.format(way) + "\nprint(time.monotonic() - begin)"
        done = product.pi("python3", "-c", begin, check=True)
    assert float(done.stdout.splitlines()[-1]) < 2, done
    control_seen("the same connection of the host's own is answered")
    assert product.machine.root(["python3", "-c", REACH.format(way)]).stdout == b"outside\n"


@pytest.mark.parametrize("family", ["socket.AF_INET, socket.SOCK_RAW, 1", "socket.AF_PACKET, socket.SOCK_RAW, 0", "socket.AF_INET, socket.SOCK_DGRAM, 1"])
def test_there_are_no_raw_sockets(family, product, control_seen):
    script = f"import socket\ntry: socket.socket({family}); print('made')\nexcept OSError as failure: print(failure.errno)"
    with product.policy_with(HOSTS):
        assert product.pi("python3", "-c", script).stdout in (b"1\n", b"13\n", b"97\n")
    if "DGRAM" in family:
        script = "print('made')"  # who may is the host's own setting (icmp(7))
    assert product.machine.root(["python3", "-c", script]).stdout == b"made\n"
    control_seen("root of the host makes one")


def test_an_address_with_a_zone_does_not_end_the_gate(product, control_seen):
    """Root takes a letter that no host has for a gate that somebody has taken over, and closes its channel."""
    zone = "socket.AF_INET6, socket.SOCK_STREAM, ('fe80::1', 8443, 0, socket.if_nametoindex('lo'))"
    then = REACH.format("socket.AF_INET, socket.SOCK_STREAM, ('192.0.2.3', 8443)")
    with product.policy_with(HOSTS):
        done = product.pi("python3", "-c", REACH.format(zone) + "\nimport time; time.sleep(0.5)\n" + then)
    assert done.returncode == 0 and b"gate has ended" not in done.stderr, done
    assert b"192.0.2.3:8443" in done.stderr, done
    control_seen("the next connection is denied and told")


def test_a_server_of_the_session_has_any_port_and_the_gate_keeps_what_goes_elsewhere(product, control_seen):
    """Connections that the gate took for a port do not hold it, and a server at all addresses does not take the gate's."""
    script = """
import json, socket, threading
def greet(server):
    while True:
        accepted = server.accept()[0]; accepted.sendall(b"inside"); accepted.close()
def ask(address):
    try:
        with socket.create_connection(address, 3) as one: return one.recv(6).decode()
    except OSError: return ""
before = ask(("192.0.2.1", 8080))
server = socket.create_server(("0.0.0.0", 8080))
threading.Thread(target=greet, args=(server,), daemon=True).start()
print(json.dumps([before, ask(("127.0.0.1", 8080)), ask(("192.0.2.1", 8080))]))
"""
    with product.policy_with(HOSTS):
        assert product.python(script) == ["", "inside", ""]
    control_seen("the session's own server answers at its own address")


def test_the_agent_cannot_listen_where_the_gate_does(product, control_seen):
    """Not while it is there, and not when it has gone: programs believe what is there."""
    script = """
import errno, json, socket
def listen(address, port):
    try:
        socket.create_server((address, port)).close()
        return "done"
    except OSError as failure: return errno.errorcode[failure.errno]
print(json.dumps([listen("127.0.0.1", 808), listen("127.0.0.1", 809), listen("127.0.0.53", 53), listen("127.0.0.1", 8080)]))
"""
    with product.policy_with(HOSTS):
        *gates, own = product.python(script)
    assert set(gates) <= {"EACCES", "EADDRINUSE"} and own == "done", (gates, own)
    control_seen("it listens at another port")


# --- At the gate of somebody else.


def test_each_session_reaches_the_hosts_of_its_own_policy_alone(services, product, control_seen):
    """At the same address and port as another user's session, which may."""
    own = ATTACK_POLICY.read_text().replace("  alice:\n", '  alice:\n    network: {hosts: ["localhost:7001"]}\n')
    own = own.replace("  bob:\n", "  bob:\n    network: {hosts: [provider.example]}\n")
    assert own.count("network:") == 2
    product.machine.write("/etc/pi-agent/policy.yaml", own)
    try:
        staying = product.session(*STAYING)
        ask = ["python3", "-c", REACH.format(WAYS["loopback of the host"])]
        alices, bobs = product.pi(*ask), product.pi(*ask, **BOB)
        staying.end()
    finally:
        product.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text())
    assert bobs.stdout != b"outside\n", bobs
    assert alices.stdout == b"outside\n", alices
    control_seen("the session whose policy names it reaches it")


def gate_of(session):
    return f"pi-agent-gate-{session.id}.service"


TOUCH = """
import ctypes, json, os, signal, sys
pid, answers = int(sys.argv[1]), {}
def attempt(name, call):
    try: result = call(); answers[name] = "refused" if result == -1 or result is False else "done"
    except OSError as failure: answers[name] = "refused"
attempt("kill", lambda: os.kill(pid, signal.SIGCONT) is None)
attempt("memory", lambda: bool(open(f"/proc/{pid}/mem", "rb")))
attempt("environment", lambda: bool(open(f"/proc/{pid}/environ", "rb").read(1)) or True)
attempt("descriptors", lambda: bool(os.listdir(f"/proc/{pid}/fd")))
attempt("trace", lambda: ctypes.CDLL(None, use_errno=True).ptrace(0x4206, pid, 0, 0))
attempt("descriptor", lambda: ctypes.CDLL(None, use_errno=True).syscall(438, os.pidfd_open(pid), 0, 0))
print(json.dumps(answers))
"""


@pytest.mark.parametrize("who", [pytest.param("alice", marks=pytest.mark.position("user")), "agent"])
def test_nobody_but_root_touches_the_gates_process(who, product, control_seen):
    with product.policy_with(HOSTS):
        session = product.session(*STAYING)
    pid = main_pid(product.machine, gate_of(session))
    try:
        if who == "agent":
            account = product.machine.root(["ps", "-o", "user:32=", "-p", str(session.agent_pids()[0])]).stdout.decode().strip()
            command = ["setpriv", f"--reuid={account}", "--clear-groups", "--regid=nogroup"]
        else:
            command = ["setpriv", "--reuid=alice", "--clear-groups", "--regid=alice"]
        seen = json.loads(product.machine.root([*command, "python3", "-c", TOUCH, str(pid)], check=True).stdout)
        assert set(seen.values()) == {"refused"}, seen
        roots = json.loads(product.machine.root(["python3", "-c", TOUCH, str(pid)], check=True).stdout)
        assert roots["kill"] == roots["memory"] == roots["trace"] == "done", roots
        control_seen("root does each of it")
    finally:
        product.end_all()


def test_the_gate_is_an_account_of_its_own_with_no_right_and_no_file(product, control_seen):
    with product.policy_with(HOSTS):
        sessions = [product.session(*STAYING) for _ in range(2)]
    try:
        accounts = set()
        for session in sessions:
            (pid,) = pids_in(product.machine, gate_of(session))
            status = dict(line.split(":\t", 1) for line in product.machine.read(f"/proc/{pid}/status").decode().splitlines() if ":\t" in line)
            assert status["CapEff"] == status["CapBnd"] == "0" * 16 and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
            uids = set(status["Uid"].split())
            assert len(uids) == 1 and 61184 <= int(*uids) <= 65519, uids  # those of DynamicUser= (systemd.exec(5))
            accounts |= uids
            kernels = " ".join(f"/proc/{pid}/root/{place}" for place in ("proc", "sys", "dev"))
            assert product.machine.root(f"find {kernels} -mindepth 1 2>/dev/null").stdout == b""
            shown = product.machine.root(f"ls /proc/{pid}/root/ /proc/{pid}/root/home /proc/{pid}/root/var /proc/{pid}/root/run 2>/dev/null").stdout.decode()
            assert not {"srv", "opt", "boot", "alice", "lib/pi-agent", "dbus", "pi-agent"} & set(shown.split()), shown
            assert product.machine.root(["stat", f"/proc/{pid}/root/etc/ssl"]).returncode == 0
            assert product.machine.root(["test", "-e", f"/proc/{pid}/root/etc/pi-agent/policy.yaml"]).returncode != 0
        assert len(accounts) == 2, "two gates are one account"
        control_seen("what it needs of the host is there")
    finally:
        product.end_all()


# --- The gate's end.

ASK_AGAIN = """
import os, socket, sys, time
print(os.environ["PI_AGENT_SESSION"], flush=True)
sys.stdin.read()
for address in (("127.0.0.1", 808), ("127.0.0.1", 809), ("192.0.2.1", 443), ("198.51.100.7", 7001)):
    begin = time.monotonic()
    try:
        with socket.create_connection(address, 5) as one: seen = "connected " + repr(one.recv(1))
    except OSError as failure: seen = type(failure).__name__
    print(seen, time.monotonic() - begin < 2, flush=True)
"""


@pytest.mark.position("host")
@pytest.mark.usefixtures("nothing_left")
def test_without_its_gate_a_session_reaches_nothing_and_its_user_is_told(services, product, control_seen):
    with product.policy_with(HOSTS):
        process = product.machine.popen(["pi", "python3", "-c", ASK_AGAIN], cwd="/home/alice/projects/demo")
        identity = process.stdout.readline().decode().strip()  # by then the policy has been read
    gate = f"pi-agent-gate-{identity}.service"
    (pid,) = pids_in(product.machine, gate)
    product.machine.root(["kill", "-KILL", str(pid)], check=True)
    begin = time.monotonic()
    line = process.stderr.readline()
    while line and b"gate has ended" not in line:
        line = process.stderr.readline()
    assert b"reaches nothing any more" in line and time.monotonic() - begin < 2, line
    control_seen("its user was told of the end that was seen to come")
    out, _ = process.communicate(timeout=20)
    assert [answer.split() for answer in out.decode().splitlines()] == [["ConnectionRefusedError", "True"]] * 4, out
    assert process.returncode == 0


WHILE_IT_IS_STOPPED = """
import os, socket, sys
print(os.environ["PI_AGENT_SESSION"], flush=True)
sys.stdin.readline()
with socket.create_connection(("127.0.0.1", 808), 5) as one:
    one.sendall(b"CONNECT other.example:443 HTTP/1.1\\r\\nHost: other.example:443\\r\\n\\r\\n")
    for seconds in (1, 20):
        one.settimeout(seconds)
        try: print(one.recv(12).decode(), flush=True)
        except TimeoutError: print("nothing", flush=True)
"""


@pytest.mark.position("host")
@pytest.mark.usefixtures("nothing_left")
def test_a_gate_that_is_stopped_passes_nothing_and_its_user_is_told(prove):
    """By root, or because it hangs: it has no end that would be seen."""

    def attack(target):
        with target.policy_with(HOSTS):
            process = target.machine.popen(["pi", "python3", "-c", WHILE_IT_IS_STOPPED], cwd="/home/alice/projects/demo")
            identity = process.stdout.readline().decode().strip()
        (pid,) = pids_in(target.machine, f"pi-agent-gate-{identity}.service")
        target.machine.root(["kill", "-STOP", str(pid)], check=True)
        process.stdin.write(b"\n")
        process.stdin.flush()
        target.machine.root(f"sleep 2; kill -CONT {pid}", check=True)
        out, told = process.communicate(timeout=30)
        assert out.decode().splitlines() == ["nothing", "HTTP/1.1 403"], (out, told)
        return Outcome(b"said nothing for two seconds" not in told, told)

    on, _ = prove(attack, "gate-silence")
    assert b"goes on" in on.seen, on


@pytest.mark.position("host")
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("gate", ["gate that runs", "gate that is stopped"])
@pytest.mark.parametrize("victim", ["runner", "wrapper"])
def test_the_gate_ends_with_its_session(victim, gate, product, control_seen):
    with product.policy_with(HOSTS):
        session = product.session(*STAYING)
    (gates_pid,) = pids_in(product.machine, gate_of(session))
    if "stopped" in gate:
        product.machine.root(["kill", "-STOP", str(gates_pid)], check=True)
    pid = session.runner_pid() if victim == "runner" else session.wrapper_pid()
    product.machine.root(["kill", "-KILL", str(pid)], check=True)
    until = time.monotonic() + 10
    while pids_in(product.machine, gate_of(session)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not pids_in(product.machine, gate_of(session))
    control_seen("the gate ran until then")
    product.end_all()


@pytest.mark.position("host")
@pytest.mark.usefixtures("nothing_left")
def test_no_agent_starts_without_a_gate(product, control_seen):
    """Its program is missing."""
    product.machine.root(["mv", GATE, f"{GATE}.away"], check=True)
    try:
        with product.policy_with(HOSTS):
            refused = product.pi("echo", "ran")
    finally:
        product.machine.root(["mv", f"{GATE}.away", GATE], check=True)
    assert refused.returncode == 69 and b"ran" not in refused.stdout and b"gate does not serve" in refused.stderr, refused
    with product.policy_with(HOSTS):
        assert product.pi("echo", "ran").stdout == b"ran\n"
    control_seen("with it, the same start runs")


# --- Too much of it.

MANY = """
import os, socket
print(os.environ["PI_AGENT_SESSION"], flush=True)
held = []
try:
    for _ in range(9000):
        one = socket.socket(); one.settimeout(1); one.connect(("127.0.0.1", 808)); held.append(one)
except OSError as failure: pass
import time; time.sleep(0.5)  # what is denied is told a moment later
print(len(held), "too many connections" in open("/run/pi-agent/denials").read(), flush=True)
time.sleep(60)
"""
HELD = 1000  # that it gets at least: twice what a gate serves


@pytest.mark.usefixtures("nothing_left")
def test_connections_without_number_keep_nobody_else_from_theirs(product, control_seen):
    with product.policy_with(HOSTS):
        greedy = product.session("sh", "-c", 'ulimit -n $(ulimit -Hn); exec python3 -c "$1"', "sh", MANY)
        held, is_told = read_line(greedy.process).split()
        assert int(held) > HELD and is_told == b"True", (held, is_told)
        other = product.pi("python3", "-c", REACH.format("socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', 808)").replace("recv(7).decode()", "send(b'x')"), **BOB)
        assert other.returncode == 0 and b"refused" not in other.stdout, other
        assert product.pi("echo", "ran").stdout == b"ran\n"
    control_seen("the greedy session lived meanwhile")
    greedy.end()
    product.end_all()


def denials_of(target, since):
    target.machine.root(["journalctl", "--sync"], check=True)
    shown = target.machine.root(["journalctl", "--output=json", f"--since=@{since}", f"MESSAGE_ID={IDS['connection-denied']}"], check=True)
    return [json.loads(line) for line in shown.stdout.splitlines()]


# --- A gate that the agent has taken over: it reads what the agent sends.


@contextlib.contextmanager
def stand_in(target, mode):
    program = target.machine.read(f"{INSIDE}/gate.py").decode().replace('MODE = "denying"', f'MODE = "{mode}"')
    target.machine.root(["mv", GATE, f"{GATE}.away"], check=True)
    target.machine.write(GATE, program, mode=0o755)
    try:
        with target.policy_with(HOSTS):
            yield
    finally:
        target.machine.root(["mv", f"{GATE}.away", GATE], check=True)


def test_the_record_is_not_filled_by_what_an_agent_asks_for(prove):
    """The gate counts what is alike; an agent that asks for a name after the other, or takes the gate over, meets root's own bound."""

    def attack(target):
        since = target.machine.root(["date", "+%s.%N"]).stdout.decode().strip()
        with stand_in(target, "flooding"):
            target.pi("sleep", "3", check=True, timeout=60)
        entries = denials_of(target, since)
        return Outcome(len(entries) > 300, len(entries))

    prove(attack, "bounded-denials")


def test_a_gate_that_never_stops_talking_is_closed(prove):
    """Each of its packets would cost root a turn of its loop, for as long as the session runs."""

    def attack(target):
        with stand_in(target, "torrent"):
            done = target.pi("sleep", "4", check=True, timeout=60)
        return Outcome(b"gate has ended" not in done.stderr, done)

    prove(attack, "gate-rate")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("mode", ["flooding", "same", "malformed", "unprintable", "overlong", "descriptors", "ended"])
def test_root_does_not_believe_the_gate(mode, product, control_seen):
    """Whatever it says, the session goes on to its end, the record stays small, and the next start works."""
    since = product.machine.root(["date", "+%s.%N"]).stdout.decode().strip()
    with stand_in(product, mode):
        done = product.pi("sh", "-c", "sleep 2; echo ran", timeout=60)
    assert (done.returncode, done.stdout) == (0, b"ran\n"), done
    assert len(denials_of(product, since)) < 300
    assert len(done.stderr) < 4000 and b"host\n" not in done.stderr, done.stderr
    with stand_in(product, "denying"):
        denied = product.pi("python3", "-c", REACH.format("socket.AF_INET, socket.SOCK_STREAM, ('192.0.2.9', 443)"))
    assert b"192.0.2.9:443" in denied.stderr, denied
    control_seen("what a gate says is told")


def test_a_gate_that_is_silent_again_and_again_is_told_a_few_times(product, control_seen):
    with stand_in(product, "flickering"):
        done = product.pi("sleep", "11", check=True, timeout=60)
    assert 1 <= done.stderr.count(b"said nothing") <= 3, done
    control_seen("its silence is told")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("mode", ["not-ready", "silent"])
def test_no_agent_starts_before_its_gate_serves(mode, product, control_seen):
    with stand_in(product, mode):
        refused = product.pi("echo", "ran", timeout=60)
    assert refused.returncode == 69 and refused.stdout == b"" and b"gate does not serve" in refused.stderr, refused
    with stand_in(product, "denying"):
        assert product.pi("echo", "ran").stdout == b"ran\n"
    control_seen("a gate that serves is waited for")


# --- The record.


def test_a_users_own_word_is_no_denial(product, control_seen):
    """Anybody can write to the journal."""
    forged = ["logger", "--journald"]
    entry = f"MESSAGE_ID={IDS['connection-denied']}\nMESSAGE=x\nPI_AGENT_EVENT=connection-denied\nPI_AGENT_HOST=forged.example\nPI_AGENT_USER=alice\nPI_AGENT_UID=1000\n"
    product.machine.run(forged, input=entry.encode(), check=True)
    with product.policy_with(HOSTS):
        product.pi("python3", "-c", REACH.format("socket.AF_INET, socket.SOCK_STREAM, ('192.0.2.7', 8443)"))
    product.machine.root(["journalctl", "--sync"], check=True)
    for ask in (product.machine.root, product.machine.run):
        shown = json.loads(ask(["pi-agentctl", "denials", "--json"], check=True).stdout)["denials"]
        assert "192.0.2.7" in {denial["host"] for denial in shown}, shown
        assert "forged.example" not in {denial["host"] for denial in shown}, shown
    control_seen("what root recorded is shown")


@pytest.mark.position("user")
def test_a_user_sees_their_own_denials_alone(prove):
    def attack(target):
        ask = ("python3", "-c", REACH.format("socket.AF_INET, socket.SOCK_STREAM, ('192.0.2.8', 8443)"))
        target.machine.root(["rm", "-rf", "/var/lib/pi-agent/records"], check=True)  # this build makes it
        with target.policy_with(HOSTS):
            target.pi(*ask)
            target.pi(*ask, **BOB)
        read = [target.machine.run(["cat", f"/var/lib/pi-agent/records/{user}/denials.jsonl"]).stdout for user in ("alice", "bob")]
        assert b'"192.0.2.8"' in read[0], read
        return Outcome(b'"192.0.2.8"' in read[1], read)

    prove(attack, "own-record")

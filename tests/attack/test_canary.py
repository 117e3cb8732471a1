"""The canary sees what is missing: for each defence that can be seen from inside, taking it out makes it fail, and says where."""

import contextlib
import json

import pytest
from engine import engine_of, named_method
from keyring import ADD_KEY, READ_KEY, SECRET
from target import USER_NAMESPACE, Outcome
from test_inside import ALL_FILTERS, FILTERS, LAUNCHER, NO_SUID_BITS

pytestmark = pytest.mark.position("host")

HOSTS = "network: {hosts: [provider.example]}"
OPEN = ("unit:PrivateNetwork", "network-check", "gate")
# (what the policy says besides, defences that are taken out, an answer that is wrong then)
OF_SYSTEMD = (
    ("", ("unit:ProtectSystem",), "/ is read-only"),
    ("", USER_NAMESPACE, "user namespace"),
    ("", ("unit:PrivateIPC",), "ipc namespace"),
    ("", ("unit:ProtectHostname",), "uts namespace"),
    ("network: none", ("unit:PrivateNetwork", "network-check"), "net namespace"),
    (HOSTS, OPEN, "net namespace"),
    (HOSTS, OPEN, "the gate about a host that no policy names"),
    (HOSTS, ("gate",), "the gate about a host that no policy names"),
    ("", ("unit:CapabilityBoundingSet",), "capabilities (CapBnd)"),
    ("", (*ALL_FILTERS, "unit:NoNewPrivileges", "landlock"), "no new privileges"),
    ("", (*ALL_FILTERS, "unit:NoNewPrivileges", "landlock"), "system call filter"),
    ("", FILTERS, "io_uring_setup"),
    ("", LAUNCHER, "ptrace of the launcher"),
    ("", LAUNCHER, "process_vm_readv of the launcher"),
    ("", LAUNCHER, "kcmp with the launcher"),
    ("", FILTERS, "keyctl"),
    ("", (*FILTERS, "unit:RestrictNamespaces"), "a user namespace (unshare)"),
    ("", (*FILTERS, "unit:RestrictNamespaces"), "a user namespace (clone)"),
    ("", ("seccomp-filter",), "another personality"),
    ("", ("unit:RestrictAddressFamilies",), "a socket of another family"),
    ("", ("seccomp-filter",), "a netlink socket for more than routes"),
    ("", ("seccomp-filter",), "a key pressed for the terminal (TIOCSTI)"),
    ("", NO_SUID_BITS, "a setuid file in the project"),
    ("", FILTERS, "openat2"),
    ("", ("unit:RootDirectory", "unit:BindReadOnlyPaths"), "find /run/dbus/system_bus_socket"),
    ("", ("unit:RootDirectory", "unit:BindReadOnlyPaths"), "find /run/systemd/journal/socket"),
)
OF_BWRAP = (
    ("", ("bwrap:read-only",), "/ is read-only"),
    ("", ("bwrap:read-only",), "/home is read-only"),
    ("", ("bwrap:own-processes", "bwrap:require-confined"), "pid namespace"),
    ("", ("bwrap:own-processes", "bwrap:require-confined"), "the host's first process"),
    ("", ("bwrap:own-ipc", "bwrap:require-confined"), "ipc namespace"),
    ("network: none", ("bwrap:own-network", "network-check"), "net namespace"),
    ("", ("bwrap:no-capabilities",), "capabilities (CapBnd)"),
    ("", ("seccomp-filter",), "another personality"),
    ("", ("call-filter",), "a socket of another family"),
    ("", ("seccomp-filter",), "a netlink socket for more than routes"),
    ("", ("call-filter", "seccomp-filter"), "a user namespace (clone)"),
    ("", ("call-filter", "seccomp-filter"), "system call filter"),
    ("", ("call-filter", "seccomp-filter"), "io_uring_setup"),
    ("", ("seccomp-filter",), "a key pressed for the terminal (TIOCSTI)"),
    ("", ("seccomp-filter",), "a setuid file in the project"),
)
OF_PODMAN = (
    ("", ("podman:read-only",), "/ is read-only"),
    ("", ("podman:read-only",), "/home is read-only"),
    ("", ("podman:own-ipc", "podman:require-confined"), "ipc namespace"),
    ("network: none", ("unit:PrivateNetwork", "network-check"), "net namespace"),
    ("", ("podman:no-capabilities",), "capabilities (CapBnd)"),
    ("", ("seccomp-filter",), "another personality"),
    ("", ("call-filter", "seccomp-filter"), "system call filter"),
    ("", ("seccomp-filter",), "a setuid file in the project"),
)
OF_DOCKER = (
    ("", ("docker:read-only",), "/ is read-only"),
    ("", ("docker:read-only",), "/dev is read-only"),
    ("", ("docker:own-ipc", "docker:require-confined"), "ipc namespace"),
    ("network: none", ("docker:own-network", "network-check"), "net namespace"),
    ("", ("docker:no-capabilities",), "capabilities (CapBnd)"),
    ("", ("seccomp-filter",), "another personality"),
    ("", ("call-filter", "seccomp-filter"), "system call filter"),
    ("", ("seccomp-filter",), "a setuid file in the project"),
)
HAS_TERMINAL = "holds the terminal"
# Replaces `pi`: does what its user could make it do by tracing it.
STAND_IN = f"""#!/usr/bin/python3
{READ_KEY}
try:
    os.close(os.open("/dev/tty", os.O_RDWR))
    print({HAS_TERMINAL!r})
except OSError as error:
    print(error)
"""
CASES = [("systemd", *case) for case in OF_SYSTEMD] + [("bwrap", *case) for case in OF_BWRAP] + [("podman", *case) for case in OF_PODMAN]
CASES += [("docker", *case) for case in OF_DOCKER]


def canary(target, method, section):
    """What is wrong by the canary's own word, and how `pi` ended."""
    with engine_of(target.machine, method), target.policy_with(f"sandbox: {named_method(method)}\n{section}"):
        done = target.machine.run(["pi", "--pi-agent-canary"], user="alice", cwd="/home/alice/projects/demo")
    lines = [line for line in done.stdout.splitlines() if line.startswith(b"{")]
    assert lines, done
    report = json.loads(lines[0])
    return {finding["what"]: finding for finding in report["findings"] if not finding["right"]}, done.returncode


@pytest.mark.parametrize("method", ["systemd", "bwrap", "podman", "docker"])
def test_nothing_is_wrong_while_every_defence_is_in(product, weak, method):
    for target in (product, weak):
        assert canary(target, method, "") == ({}, 0)
        assert canary(target, method, "network: none") == ({}, 0)


@pytest.mark.parametrize("method", ["systemd", "podman", "docker"])  # bwrap has no gate
def test_nothing_is_wrong_with_a_gate_while_every_defence_is_in(product, weak, method):
    for target in (product, weak):
        assert canary(target, method, HOSTS) == ({}, 0)


@pytest.mark.parametrize(("method", "section", "defences", "answer"), CASES, ids=[f"{case[0]}-{'+'.join(case[2][:2])}-{case[3]}" for case in CASES])
def test_a_defence_that_is_out_is_found(weak, method, section, defences, answer, seen_to_work):
    with weak.without(*defences):
        wrong, status = canary(weak, method, section)
    assert answer in wrong and status == 1, wrong
    seen_to_work(defences)


def test_apply_and_doctor_refuse_a_host_that_does_not_hold(weak, control_seen):
    with weak.without("unit:PrivateIPC"):
        for command in (["doctor"], ["apply"]):
            done = weak.machine.root(["pi-agentctl", *command])
            assert done.returncode == 69, done
            for word in (b"the sandbox (systemd) was tried as alice", b"1 of ", b"ipc namespace: expected its own, found the host's"):
                assert word in done.stderr, done
        assert weak.machine.root(["pi-agentctl", "apply", "--no-canary"]).returncode == 0
    assert weak.machine.root(["pi-agentctl", "apply"]).returncode == 0
    done = weak.machine.root(["pi-agentctl", "doctor", "--json"])  # which has more to say of this machine than of its sandbox
    assert json.loads(done.stdout)["sandbox"]["good"], done
    control_seen("without the canary apply goes on there, and with it on a host that holds")


NOBODYS = {"192.0.2.1": "32", "2001:db8::1": "128"}  # whom the canary asks (runner/inside/canary.cpp), here somebody's
WEB = """
import socket, threading
def answer(address):
    server = socket.create_server((address, 8443), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    print("ready", flush=True)
    while True:
        accepted = server.accept()[0]; accepted.recv(100); accepted.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n"); accepted.close()
for address in %r: threading.Thread(target=answer, args=(address,)).start()
"""


@contextlib.contextmanager
def somebody_at_nobodys_addresses(target):
    for address, bits in NOBODYS.items():
        target.machine.root(["ip", "address", "replace", f"{address}/{bits}", "dev", "lo"], check=True)
    server = target.machine.popen(["python3", "-c", WEB % list(NOBODYS)], user="root")
    assert [server.stdout.readline() for _ in NOBODYS] == [b"ready\n"] * len(NOBODYS), server.stderr.read()
    try:
        yield
    finally:
        server.kill_all()
        server.communicate()
        for address, bits in NOBODYS.items():
            target.machine.root(["ip", "address", "del", f"{address}/{bits}", "dev", "lo"], check=True)


def test_doctor_asks_from_inside_whether_somebody_else_than_the_gate_answers(weak, seen_to_work):
    """A server of the host's, at addresses that no policy names: out of reach while the defences are in."""
    wrong = {f"a server at {address} port 8443" for address in NOBODYS}
    with somebody_at_nobodys_addresses(weak):
        assert canary(weak, "systemd", HOSTS) == ({}, 0)
        with weak.without(*OPEN):
            found, status = canary(weak, "systemd", HOSTS)
            with weak.policy_with(HOSTS):
                done = weak.machine.root(["pi-agentctl", "doctor"])
        with weak.policy_with(HOSTS):
            sandbox = json.loads(weak.machine.root(["pi-agentctl", "doctor", "--json"]).stdout)["sandbox"]
    assert wrong <= set(found) and status == 1, found
    assert done.returncode == 69 and b"a server at 192.0.2.1 port 8443: expected no answer, found an answer" in done.stderr, done
    assert sandbox["good"], sandbox
    seen_to_work(OPEN)


@pytest.mark.position("user")
@pytest.mark.parametrize("what", [HAS_TERMINAL, SECRET])
def test_the_users_process_holds_nothing_of_the_administrators(prove, what):
    """doctor begins as root, on root's terminal and with root's keyring, and goes on as a user."""

    def attack(target):
        target.machine.root("mv /usr/bin/pi /usr/bin/pi.away", check=True)
        try:
            target.machine.write("/usr/bin/pi", STAND_IN, mode=0o755)
            target.machine.write("/tmp/add-key.py", ADD_KEY)
            done = target.machine.root(["script", "-qec", "python3 /tmp/add-key.py pi-agentctl doctor", "/dev/null"])
        finally:
            target.machine.root("mv /usr/bin/pi.away /usr/bin/pi; rm /tmp/add-key.py", check=True)
        assert b"no session came about" in done.stdout, done
        return Outcome(what.encode() in done.stdout, done)

    prove(attack, "canary-apart")


STAYS = "sleep 4711"
PROFILE = "/home/alice/.profile"
# What a start file leaves behind, out of its process group, once it has looked where it is.
LEAVES_A_PROCESS = f"""
rm -f ~/seen; setsid -f sh -c '{{ grep ^0:: /proc/self/cgroup; cat /proc/self/loginuid; echo; ulimit -Hn; grep NoNewPrivs: /proc/self/status; }} >~/seen.part; mv ~/seen.part ~/seen; exec {STAYS}' </dev/null >/dev/null 2>&1
until test -s ~/seen; do sleep 0.05; done
"""
# An administrator with a login uid and a limit of their own, as PAM would have set them.
ADMINISTRATOR = "ulimit -n 777; echo 4242 >/proc/self/loginuid; grep ^0:: /proc/self/cgroup; cat /proc/self/loginuid; echo; pi-agentctl doctor --json"


@contextlib.contextmanager
def start_file(machine, text):
    machine.root(f"mv {PROFILE} {PROFILE}.away && cat {PROFILE}.away >{PROFILE}", check=True)
    try:
        machine.root(["sh", "-c", f"cat >>{PROFILE}"], input=text.encode(), check=True)
        yield
    finally:
        machine.root(f"mv {PROFILE}.away {PROFILE}; rm -f /home/alice/seen; pkill -KILL -x -f '{STAYS}'; true", check=True)


def leave_a_process(target):
    """What doctor reports, the administrator's and the left process' groups and ids, and whether that process lives on."""
    machine = target.machine
    with start_file(machine, LEAVES_A_PROCESS):
        done = machine.root(["sh", "-c", ADMINISTRATOR])
        seen = machine.root(["cat", "/home/alice/seen"], check=True).stdout.decode().split()
        alive = machine.root(["pgrep", "-x", "-f", STAYS]).returncode == 0
    own, brace, report = done.stdout.decode().partition("{")
    group, login, limit, _, gains_nothing = seen
    said = {"group": group, "login uid": login, "files": limit, "no new privileges": gains_nothing, "lives": alive, "administrator": own.split(), "report": json.loads(brace + report)}
    return Outcome(alive and group == own.split()[0], said)


@pytest.mark.position("user")
def test_what_a_users_start_file_leaves_ends_with_the_question(prove, weak):
    on, off = prove(leave_a_process, "program-unit", "program-group")
    alice = int(weak.machine.root(["id", "-u", "alice"], check=True).stdout)
    assert f"/user-{alice}.slice/pi-agent-program-" in on.seen["group"], on
    assert not on.seen["lives"] and on.seen["report"]["sandbox"]["good"], on
    # Without audit(8) in the kernel nobody has one.
    assert on.seen["login uid"] == "4294967295" and on.seen["files"] != "777" and on.seen["no new privileges"] == "1", on
    assert off.seen["login uid"] == off.seen["administrator"][1] and off.seen["files"] == "777", off
    with weak.without("program-unit"):  # as on a host without systemd
        grouped = leave_a_process(weak)
    assert not grouped.seen["lives"] and "/pi-agent/program-" in grouped.seen["group"], grouped


@pytest.mark.position("user")
@pytest.mark.parametrize("defences", [(), ("program-unit",)], ids=["unit", "group"])
def test_a_start_file_that_never_ends_is_ended(weak, defences, control_seen):
    with start_file(weak.machine, f"{STAYS}\n"), weak.without(*defences):
        done = weak.machine.root(["pi-agentctl", "doctor", "--json"])
        left = weak.machine.root(["pgrep", "-x", "-f", STAYS])
    report = json.loads(done.stdout)
    assert report["sandbox"]["good"], report
    faults = [fault["what"] for fault in report["faults"] if fault["about"] == "shell"]
    assert len(faults) == 1 and "does not answer: a program did not end in time" in faults[0], done
    control_seen("doctor tells that it did not end by itself")
    assert left.returncode == 1, left
    units = weak.machine.root("systemctl list-units --all --plain --no-legend 'pi-agent-program-*'; ls /sys/fs/cgroup/pi-agent/ 2>/dev/null | grep program", check=False)
    assert units.stdout == b"", units


@pytest.mark.position("user")
def test_what_a_user_keeps_waiting_ends_though_doctor_was_killed(product, control_seen):
    kill = f"pi-agentctl doctor >/dev/null 2>&1 & until pgrep -x -f '{STAYS}'; do sleep 0.1; done; kill -KILL $!"
    with start_file(product.machine, f"{STAYS}\n"):
        product.machine.root(f"{kill}; pgrep -x -f '{STAYS}'", check=True, timeout=60)  # it lives on for now
        control_seen("the same look finds it right after doctor was killed")
        done = product.machine.root(f"for i in $(seq 30); do pgrep -x -f '{STAYS}' || exit 0; sleep 1; done; exit 1")
    assert done.returncode == 0, done

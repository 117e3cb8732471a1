"""The canary sees what is missing: for each defence that can be seen from inside, taking it out makes it fail, and says where."""

import json

import pytest
from keyring import ADD_KEY, READ_KEY, SECRET
from target import Outcome
from test_inside import ALL_FILTERS, FILTERS, NO_SUID_BITS

# (what the policy says besides, defences that are taken out, an answer that is wrong then)
OF_SYSTEMD = (
    ("", ("unit:ProtectSystem",), "/ is read-only"),
    ("", ("unit:PrivateUsers",), "user namespace"),
    ("", ("unit:PrivateIPC",), "ipc namespace"),
    ("", ("unit:ProtectHostname",), "uts namespace"),
    ("network: none", ("unit:PrivateNetwork", "network-check"), "net namespace"),
    ("", ("unit:CapabilityBoundingSet",), "capabilities (CapBnd)"),
    ("", (*ALL_FILTERS, "unit:NoNewPrivileges", "landlock"), "no new privileges"),
    ("", (*ALL_FILTERS, "unit:NoNewPrivileges", "landlock"), "system call filter"),
    ("", FILTERS, "io_uring_setup"),
    ("", FILTERS, "ptrace"),
    ("", FILTERS, "keyctl"),
    ("", (*FILTERS, "unit:RestrictNamespaces"), "a user namespace (unshare)"),
    ("", (*FILTERS, "unit:RestrictNamespaces"), "a user namespace (clone)"),
    ("", ("unit:LockPersonality",), "another personality"),
    ("", ("unit:RestrictAddressFamilies",), "a netlink socket"),
    ("", ("seccomp-filter",), "a key pressed for the terminal (TIOCSTI)"),
    ("", NO_SUID_BITS, "a setuid file in the project"),
    ("", (*FILTERS, "unit:RestrictSUIDSGID"), "openat2"),
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
    ("", ("call-filter",), "another personality"),
    ("", ("call-filter",), "a netlink socket"),
    ("", ("call-filter",), "a user namespace (clone)"),
    ("", ("call-filter", "seccomp-filter"), "system call filter"),
    ("", ("call-filter", "seccomp-filter"), "io_uring_setup"),
    ("", ("seccomp-filter",), "a key pressed for the terminal (TIOCSTI)"),
    ("", ("seccomp-filter",), "a setuid file in the project"),
)
HAS_TERMINAL = "holds the terminal"
# In the place of `pi`: what its user could have it do by tracing it.
STAND_IN = f"""#!/usr/bin/python3
{READ_KEY}
try:
    os.close(os.open("/dev/tty", os.O_RDWR))
    print({HAS_TERMINAL!r})
except OSError as error:
    print(error)
"""
CASES = [("systemd", *case) for case in OF_SYSTEMD] + [("bwrap", *case) for case in OF_BWRAP]


def canary(target, method, section):
    """What is wrong by the canary's own word, and how `pi` ended."""
    with target.policy_with(f"sandbox: {{method: {method}}}\n{section}"):
        done = target.machine.run(["pi", "--pi-agent-canary"], user="alice", cwd="/home/alice/projects/demo")
    lines = [line for line in done.stdout.splitlines() if line.startswith(b"{")]
    assert lines, done
    report = json.loads(lines[0])
    return {finding["what"]: finding for finding in report["findings"] if not finding["right"]}, done.returncode


@pytest.mark.parametrize("method", ["systemd", "bwrap"])
def test_nothing_is_wrong_while_every_defence_is_in(product, weak, method):
    for target in (product, weak):
        assert canary(target, method, "") == ({}, 0)
        assert canary(target, method, "network: none") == ({}, 0)


@pytest.mark.parametrize(("method", "section", "defences", "answer"), CASES, ids=[f"{case[0]}-{'+'.join(case[2][:2])}-{case[3]}" for case in CASES])
def test_a_defence_that_is_out_is_found(weak, method, section, defences, answer):
    with weak.without(*defences):
        wrong, status = canary(weak, method, section)
    assert answer in wrong and status == 1, wrong


def test_apply_and_doctor_refuse_a_host_that_does_not_hold(weak):
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

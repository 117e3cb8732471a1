"""What the policy's hardening refuses stays refused, whatever calls it; and what it lets through opens no other call."""

import contextlib
import json

import pytest
from engine import engine_of, named_method
from target import Outcome

pytestmark = pytest.mark.position("agent")

LOOK = """
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
def answer(number, *arguments):
    ctypes.set_errno(0)
    return "done" if libc.syscall(number, *map(ctypes.c_long, arguments)) >= 0 else errno.errorcode[ctypes.get_errno()]
print(json.dumps({name: answer(*call) for name, call in json.loads(sys.argv[1]).items()}))
"""
# With arguments with which the kernel itself answers otherwise than EPERM.
REFUSABLE = {"munlockall": [152], "memfd_create": [319, 0, 0xFFFF], "inotify_init1": [294, 0]}
ALLOWABLE = {"personality": [135, 0x0400000], "name_to_handle_at": [303, -1, 0, 0, 0, 0], "mincore": [27, 0, 0, 0]}
NEVER = {
    "mount": [165, 0, 0, 0, 0, 0], "umount2": [166, 0, 0], "unshare": [272, 0x10000000], "setns": [308, -1, 0], "keyctl": [250, 0, -3, 1],
    "bpf": [321, -1, 0, 0], "open_by_handle_at": [304, -1, 0, 0], "pidfd_getfd": [438, -1, -1, 0], "userfaultfd": [323, 1],
    "io_uring_setup": [425, -1, 0], "perf_event_open": [298, 0, 0, 0, 0, 0], "add_key": [248, 0, 0, 0, 0, 0],
}  # fmt: skip
DENY = "hardening: {deny_system_calls: ['@memlock', memfd_create, inotify_init1]}"
ALLOW = "hardening: {allow_system_calls: [personality, name_to_handle_at, mincore]}"
FAMILIES = "hardening: {address_families: [unix]}"
SOCKETS = "import socket; print([name for name in ('AF_UNIX', 'AF_INET', 'AF_INET6', 'AF_NETLINK') if can(getattr(socket, name))])"
CAN = """
def can(family):
    try:
        return bool(socket.socket(family, socket.SOCK_DGRAM))
    except OSError as refused:
        return refused.errno != 97
"""
METHODS = ("systemd", "bwrap", "podman", "docker")


def look(target, calls):
    """{call: answer} as the agent."""
    done = target.pi("python3", "-c", LOOK, json.dumps(calls))
    assert done.returncode == 0, done
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def under(targets, method, section):
    """The policy with this section, and with the method in all of them."""
    with contextlib.ExitStack() as stack:
        for target in targets:
            stack.enter_context(engine_of(target.machine, method))
            stack.enter_context(target.policy_with(f"{section}\nsandbox: {named_method(method)}"))
        yield


@pytest.mark.parametrize("method", METHODS)
def test_a_call_that_the_policy_refuses_fails(method, prove, product, weak):
    def attack(target):
        answers = look(target, REFUSABLE)
        return Outcome(any(answer != "EPERM" for answer in answers.values()), answers)

    with under((product, weak), method, DENY):
        prove(attack, "policy-calls")


def test_a_program_that_the_agent_starts_is_refused_it_as_well(prove, product, weak):
    def attack(target):
        script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LOOK!r}, {json.dumps(REFUSABLE)!r}], check=True)"
        done = target.pi("python3", "-c", script)
        assert done.returncode == 0, done
        answers = json.loads(done.stdout.splitlines()[-1])
        return Outcome(any(answer != "EPERM" for answer in answers.values()), answers)

    with product.policy_with(DENY), weak.policy_with(DENY):
        prove(attack, "policy-calls")


@pytest.mark.parametrize("method", METHODS)
def test_a_socket_of_another_kind_than_the_policys_cannot_be_made(method, prove, product, weak):
    def attack(target):
        done = target.pi("python3", "-c", "import socket\n" + CAN + SOCKETS)
        assert done.returncode == 0, done
        return Outcome(done.stdout != b"['AF_UNIX']\n", done.stdout)

    with under((product, weak), method, FAMILIES):
        prove(attack, "policy-families")


@pytest.mark.parametrize("method", METHODS)
def test_what_the_policy_allows_works_and_opens_no_other_call(method, product, control_seen):
    refused = look(product, ALLOWABLE)
    assert set(refused.values()) == {"EPERM"}, refused
    with under((product,), method, ALLOW):
        answers = look(product, {**ALLOWABLE, **NEVER})
    assert "EPERM" not in {answers[name] for name in ALLOWABLE}, answers
    assert {answers[name] for name in NEVER} == {"EPERM"}, answers
    control_seen("the calls that the policy names were refused before, and work with it")


@pytest.mark.position("tests")
@pytest.mark.parametrize("call", [*NEVER, "openat2", "clone3", "ptrace", "process_vm_writev", "kexec_load", "init_module", "reboot", "'@mount'", "execve"])
def test_no_policy_lets_a_call_out(call, product, control_seen):
    def check(name):
        product.machine.write("/root/draft.yaml", f"version: 1\nusers: {{alice: {{roots: [~/projects]}}}}\nhardening: {{allow_system_calls: [{name}]}}\n")
        done = product.machine.root(["pi-agentctl", "check", "/root/draft.yaml"])
        product.machine.root(["rm", "/root/draft.yaml"], check=True)
        return (done.stdout + done.stderr).decode()

    assert "/root/draft.yaml:3:34: hardening.allow_system_calls[0]: " in check(call)
    assert "hardening" not in check("personality")
    control_seen("a policy with a call that it can allow has no such mistake")

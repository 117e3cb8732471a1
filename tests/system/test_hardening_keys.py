"""hardening.deny_system_calls, allow_system_calls and address_families: what programs meet in a session, and what administrators are told."""

import pytest
from engine import engine_of, named_method
from launching import PLAYING_POLICY, POLICY_FILE, agent_says, pi, place_of, written_policy

METHODS = ("systemd", "bwrap", "podman", "docker")
DENY = "hardening: {deny_system_calls: ['@memlock', symlink, symlinkat]}\n"
ALLOW = "hardening: {allow_system_calls: [personality, name_to_handle_at, mincore]}\n"
FAMILIES = "hardening: {address_families: [unix, inet]}\n"
LOCK = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); print(libc.munlockall(), ctypes.get_errno())"
SOCKETS = """
import socket
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
    try:
        socket.socket(family, socket.SOCK_DGRAM)
        print(family.name, "made")
    except OSError as refused:
        print(family.name, refused.strerror)
"""


@pytest.fixture(params=METHODS)
def under(playing, request):
    """under(section): another policy, with each method in turn."""
    with engine_of(playing, request.param):
        yield lambda section: playing.install_policy(f"{PLAYING_POLICY}{section}sandbox: {named_method(request.param)}\n")
        playing.install_policy(PLAYING_POLICY)


def python(machine, script):
    return agent_says(machine, "sh", f"python3 -c '{script}'").decode().splitlines()


def test_what_the_policy_refuses_fails_and_the_rest_works(under, playing):
    under("")
    assert python(playing, LOCK) == ["0 0"]
    under(DENY)
    assert python(playing, LOCK) == ["-1 1"]
    done = pi(playing, "sh", "ln -s there link; echo text >file && cat file; rm -f file link")
    assert done.returncode == 0 and done.stdout == b"text\n" and b"Operation not permitted" in done.stderr, done


def test_what_the_policy_allows_works(under, playing):
    under("")
    refused = pi(playing, "sh", "setarch -X echo with memory that can be run")
    assert refused.returncode != 0 and refused.stdout == b"", refused
    under(ALLOW)
    assert agent_says(playing, "sh", "setarch -X echo with memory that can be run") == b"with memory that can be run\n"
    assert pi(playing, "sh", "unshare --user true").returncode != 0


def test_sockets_are_those_of_the_policy(under, playing):
    no = "Address family not supported by protocol"
    under(FAMILIES)
    assert python(playing, SOCKETS.replace("'", '"')) == ["AF_UNIX made", "AF_INET made", f"AF_INET6 {no}", f"AF_NETLINK {no}"]


@pytest.mark.parametrize("section", [DENY, ALLOW, FAMILIES], ids=["deny", "allow", "families"])
def test_the_canary_finds_no_fault_with_what_the_policy_says(playing_policy, playing, section):
    playing_policy(PLAYING_POLICY + section)
    done = pi(playing, "--pi-agent-canary")
    assert done.returncode == 0, done


def test_explain_names_each_with_its_place(playing_policy, playing):
    text = PLAYING_POLICY + "hardening:\n  deny_system_calls: ['@memlock']\n  allow_system_calls: [mincore]\n  address_families: [unix, inet]\n  tracing: never\n"
    playing_policy(text)
    said = playing.root(["pi-agentctl", "explain", "--user", "alice"], check=True).stdout.decode()
    for line, mark in (
        ("calls:    refused besides: @memlock (hardening.deny_system_calls, {})", "'@memlock'"),
        ("calls:    not refused: mincore (hardening.allow_system_calls, {})", "mincore"),
        ("sockets:  only unix, inet (hardening.address_families, {})", "unix"),
    ):
        assert line.format(place_of(text, mark)) in said.splitlines(), said
    assert "tracing:  refused (hardening.tracing: never): programs of a session cannot debug others of the same session" in said.splitlines(), said


def test_the_agent_is_told_what_the_administrator_refuses(playing_policy, playing):
    playing_policy(PLAYING_POLICY + DENY)
    assert b"refuses these system calls (EPERM): `mlock`" in agent_says(playing, "sh", "cat /AGENTS.md")


@pytest.mark.parametrize(
    ("key", "mark", "words"),
    [
        ("hardening: {allow_system_calls: [mount]}", "mount", "hardening.allow_system_calls[0]: 'mount' would change what the session sees"),
        ("hardening: {deny_system_calls: [execve]}", "execve", "hardening.deny_system_calls[0]: 'execve' is not a system call or group"),
        ("hardening: {address_families: [vsock]}", "vsock", "hardening.address_families[0]: 'vsock' is not a kind of socket"),
        ("sandbox: {method: none}\nhardening: {deny_system_calls: [mlock]}", "mlock", "hardening.deny_system_calls: sandbox.method none"),
    ],
)
def test_what_cannot_be_said_is_refused_at_its_place(playing, key, mark, words):
    text = f"{PLAYING_POLICY}{key}\n"
    with written_policy(playing, text):
        checked = playing.root(["pi-agentctl", "check"])
        assert pi(playing, "sh", "echo ran").stdout == b""
    said = (checked.stdout + checked.stderr).decode()
    assert f"{place_of(text, mark, POLICY_FILE)}: {words}" in said, said

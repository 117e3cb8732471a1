"""Sockets of the host that speak with whoever reaches them: agents for keys, the user's bus, the package daemon. None is in a session's view."""

import json

import pytest
from target import Outcome

pytestmark = pytest.mark.position("agent")

VIEW = ("unit:RootDirectory", "unit:BindReadOnlyPaths", "unit:ProtectHome", "unit:TemporaryFileSystem", "unit:ProtectSystem")
# where it is: (whose, the defences that keep it away)
SOCKETS = {
    "/tmp/ssh-attack/agent.1": ("alice", ("own-tmp", "unit:PrivateTmp", *VIEW)),
    "/run/user/1000/keyring/ssh": ("alice", VIEW),
    "/run/user/1000/bus": ("alice", VIEW),
    "/run/user/1000/gnupg/S.gpg-agent": ("alice", VIEW),
    "/home/alice/.ssh/agent/s.attack": ("alice", VIEW),
    "/nix/var/nix/daemon-socket/socket": ("root", VIEW),
    "/run/docker.sock": ("root", VIEW),
    "/run/podman/podman.sock": ("root", VIEW),
    "/var/run/libvirt/libvirt-sock": ("root", VIEW),
    "/var/lib/attack/server.sock": ("root", VIEW),
}
# Open to everybody, as if its owner had been careless: what keeps the agent away is not the socket's mode.
LISTEN = """
import os, socket, sys
os.umask(0)
path = sys.argv[1]
os.makedirs(os.path.dirname(path), exist_ok=True)
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(64)
print("listening", flush=True)
while True:
    peer, _ = server.accept()
    peer.sendall(b"secret")
    peer.close()
"""
CONNECT = """
import errno, json, socket, sys
def asked(path):
    try:
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(path)
        return peer.recv(16).decode()
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps({path: asked(path) for path in sys.argv[1:]}))
"""


@pytest.fixture(scope="module", autouse=True)
def servers(product, weak):
    listening = []
    for target in (product, weak):
        target.machine.root("install -d -o alice -g alice -m 711 /run/user/1000; install -d -m 755 /nix /nix/store; chmod 711 /home/alice; rm -rf /home/alice/.ssh", check=True)
        for path, (user, _) in SOCKETS.items():
            process = target.machine.popen(["python3", "-c", LISTEN, path], user=user)
            assert process.stdout.readline() == b"listening\n", process.stderr.read()
            listening.append(process)
    yield
    for process in listening:
        process.kill_all()
        process.communicate()
    for target in (product, weak):
        target.machine.root(f"rm -rf {' '.join(SOCKETS)} /tmp/ssh-attack /nix /var/lib/attack /run/libvirt; chmod 700 /home/alice", check=True)


@pytest.fixture(scope="module")
def answers(product, weak):
    """answers(target, defences taken out): what an agent of alice hears from each."""
    known = {}

    def answers(target, defences=()):
        if (target, defences) not in known:
            with target.without(*defences) if defences else target.intact():
                done = target.pi("python3", "-c", CONNECT, *SOCKETS, cwd="/srv/shared/app")
            assert done.returncode == 0, done
            known[target, defences] = json.loads(done.stdout)
        return known[target, defences]

    return answers


@pytest.mark.parametrize("path", SOCKETS)
def test_an_agent_does_not_reach(path, product, weak, answers, seen_to_work):
    assert answers(product)[path] != "secret"
    assert answers(weak)[path] != "secret"
    off = answers(weak, SOCKETS[path][1])[path]
    assert off == "secret", f"without the view the agent should reach it, so this test proves nothing: {off}"
    seen_to_work(SOCKETS[path][1])


def test_a_package_daemon_is_reached_only_where_the_policy_shows_its_socket(product):
    """A socket in a directory of view_paths answers, read-only or not: docs/concepts/view.md says so."""

    def attack(view_paths):
        with product.policy_with(f"view_paths: {view_paths}"):
            done = product.pi("python3", "-c", CONNECT, "/nix/var/nix/daemon-socket/socket", cwd="/srv/shared/app")
        return Outcome(b"secret" in done.stdout, done)

    assert not attack("[/nix/store]").succeeded
    assert attack("[/nix]").succeeded

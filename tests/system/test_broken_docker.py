"""Hosts on which sandbox.method docker cannot work: refused before anything is mounted, with the cause and what to do."""

import contextlib

import pytest
from engine import engine_of, named_method
from launching import PLAYING_POLICY, assert_refused, leftovers, pi, place_of, session, wait_until_empty
from machine import DOCKER_IMAGE, DOCKER_SETTINGS
from test_broken_hosts import UNAVAILABLE, replaced

SOCKET = "/run/docker.sock"
POLICY = PLAYING_POLICY + f"sandbox: {named_method('docker')}\n"
# A socket of root's on which another account listens.
LISTEN_AS_ALICE = f"""
import os, pwd, socket, time
door = socket.socket(socket.AF_UNIX)
door.bind({SOCKET!r})
os.chmod({SOCKET!r}, 0o600)
os.setuid(pwd.getpwnam("alice").pw_uid)
door.listen()
time.sleep(600)
"""


@pytest.fixture(scope="module")
def with_docker(playing):
    with engine_of(playing, "docker"):
        yield playing


@pytest.fixture
def docker(with_docker):
    with_docker.install_policy(POLICY)
    assert pi(with_docker, "sh", "echo well").stdout == b"well\n"
    yield with_docker
    with_docker.install_policy(PLAYING_POLICY)


@contextlib.contextmanager
def no_daemon(machine):
    machine.root(f"systemctl stop docker.socket docker; rm {SOCKET}", check=True)
    try:
        yield
    finally:
        machine.root(f"rm -f {SOCKET}; systemctl start docker", check=True)


def refused(machine, status, *words):
    assert_refused(pi(machine, "sh", "echo ran"), status, *words)


def test_the_client_is_missing(docker):
    assert_refused(replaced(docker, "/usr/bin/docker"), UNAVAILABLE, "sandbox.method docker needs /usr/bin/docker", "No such file or directory",
                   "install the package docker.io")  # fmt: skip


def test_a_client_that_somebody_else_can_change_is_not_run(docker):
    assert_refused(replaced(docker, "/usr/bin/docker", "#!/bin/sh\necho ran\n", mode="0777"), 78, "/usr/bin/docker")


def test_the_daemon_does_not_run(docker):
    with no_daemon(docker):
        refused(docker, UNAVAILABLE, "needs docker's daemon at /run/docker.sock", "looking for it failed: No such file or directory",
                "look at it (systemctl status docker)")  # fmt: skip


def test_nobody_listens_at_the_socket(docker):
    with no_daemon(docker):
        docker.root(["python3", "-c", f"import os, socket; socket.socket(socket.AF_UNIX).bind({SOCKET!r}); os.chmod({SOCKET!r}, 0o600)"], check=True)
        refused(docker, UNAVAILABLE, "connecting to it failed: Connection refused")


def test_who_listens_is_not_root(docker):
    with no_daemon(docker), docker.popen(["python3", "-c", LISTEN_AS_ALICE], user="root") as listening:
        docker.root(f"until ss -xl | grep -q {SOCKET}; do sleep 0.1; done", check=True)
        refused(docker, UNAVAILABLE, "the program that listens there is not root's (uid 1000)")
        listening.kill_all()


def test_the_daemon_gives_no_answer_of_dockers(docker):
    with no_daemon(docker), docker.popen(["socat", f"UNIX-LISTEN:{SOCKET},mode=600,fork", "SYSTEM:read question; echo hello"], user="root") as listening:
        docker.root(f"until ss -xl | grep -q {SOCKET}; do sleep 0.1; done", check=True)
        refused(docker, UNAVAILABLE, "its answer is not one of docker")
        listening.kill_all()


def test_the_image_is_missing(docker):
    text = POLICY.replace(DOCKER_IMAGE, "nobody/has-it:1")
    docker.install_policy(text)
    refused(docker, UNAVAILABLE, f"the image nobody/has-it:1 of sandbox.image ({place_of(text, 'nobody/has-it:1')}) is not on this host",
            "the administrator runs: docker pull nobody/has-it:1")  # fmt: skip


@pytest.mark.parametrize(("change", "words"), [("ENV LD_PRELOAD=/x.so", "sets the variable LD_PRELOAD"), ("VOLUME /data", "declares volumes")])
def test_an_image_that_brings_more_than_files(docker, change, words):
    docker.root(f"mkdir /tmp/empty && tar -C /tmp/empty -c . | docker import --change '{change}' - brings-more; rmdir /tmp/empty", check=True)
    docker.install_policy(POLICY.replace(DOCKER_IMAGE, "brings-more"))
    refused(docker, UNAVAILABLE, "the image brings-more of sandbox.image", words)
    docker.root("docker image rm brings-more", check=True)


def test_a_socket_that_others_may_write(docker):
    for wrong, right in ((f"chmod 0666 {SOCKET}", f"chmod 0660 {SOCKET}"), (f"chgrp users {SOCKET}", f"chgrp docker {SOCKET}")):
        docker.root(wrong, check=True)
        refused(docker, 78, "/run/docker.sock must be a socket that only root and the group docker can write to", "mode 0660")
        docker.root(right, check=True)


def test_an_agent_that_could_ask_the_daemon(docker):
    docker.root("gpasswd -a pi-agent-alice docker", check=True)
    try:
        refused(docker, 77, "denied")
    finally:
        docker.root("gpasswd -d pi-agent-alice docker", check=True)


def test_a_daemon_that_puts_containers_elsewhere(docker):
    docker.write("/etc/docker/daemon.json", DOCKER_SETTINGS.replace("cgroupfs", "systemd"))
    docker.root("systemctl restart docker", check=True)
    refused(docker, UNAVAILABLE, "docker's daemon has the control group driver systemd", "native.cgroupdriver=cgroupfs")
    docker.write("/etc/docker/daemon.json", DOCKER_SETTINGS)
    docker.root("systemctl restart docker", check=True)


def test_what_docker_complains_of_is_told(docker):
    done = replaced(docker, "/usr/bin/docker", "#!/bin/sh\necho 'docker: no space for a container' >&2\nexit 125\n")
    assert_refused(done, UNAVAILABLE, "docker could not prepare the sandbox", "no space for a container")


def test_a_runtime_that_fails_is_told(docker):
    done = replaced(docker, "/usr/sbin/runc", "#!/bin/sh\necho 'no such system call' >&2\nexit 1\n")
    assert_refused(done, UNAVAILABLE, "docker could not prepare the sandbox")


def test_the_launcher_of_a_container_is_missing(docker):
    done = replaced(docker, "/usr/libexec/pi-agent/pi-agent-engine")
    assert_refused(done, UNAVAILABLE, "could not prepare the sandbox", "journalctl -u")
    done = replaced(docker, "/usr/libexec/pi-agent/pi-agent-exec")
    assert_refused(done, UNAVAILABLE, "docker could not prepare the sandbox", "pi-agent-exec")


def test_the_daemon_dies_in_a_session(docker):
    with session(docker, "sh", "echo ready; sleep 300") as running:
        docker.root("pkill -9 -x dockerd", check=True)
        assert running.wait() == 71
        assert b"neither its unit nor the process inside reported it" in running.stderr.read()
    wait_until_empty(lambda: leftovers(docker))
    docker.root("systemctl reset-failed docker; systemctl start docker; until docker version >/dev/null; do sleep 0.2; done", check=True)
    assert docker.root(["docker", "ps", "-aq"], check=True).stdout == b""

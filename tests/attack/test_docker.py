"""What only the sandbox that docker makes needs: a daemon of root's, an image, and a control socket that is fetched."""

import contextlib
import json
import time

import pytest
from engine import engine_of, named_method
from machine import DOCKER_IMAGE
from target import DEMO, Outcome

pytestmark = pytest.mark.position("host")

SECTION = f"sandbox: {named_method('docker')}"
SECONDS = 6
SOCKET = "/run/docker.sock"
STUBBORN = ("sh", "-c", "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; exec sleep 4321' & echo $PI_AGENT_SESSION; exec sleep 4321")
RUNNER = "-f ^/usr/libexec/pi-agent/pi-agent-runner"
# Runs the launcher and makes nothing around it.
NO_SANDBOX = """#!/bin/sh
for word; do case $word in --name=pi-agent-*) id=${word#--name=pi-agent-};; esac; done
exec /usr/libexec/pi-agent/pi-agent-exec /run/pi-agent/sessions/$id/run/pi-agent/door
"""
# Makes the container and is gone.
ONLY_CREATES = """#!/bin/bash
words=()
for word; do case $word in run) words+=(create);; --sig-proxy*) ;; *) words+=("$word");; esac; done
/usr/bin/docker.away "${words[@]}"
exit 1
"""
KNOCK = "import socket; d = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); d.connect('/run/pi-agent/door'); print('reached the runner')"


@pytest.fixture(scope="module", autouse=True)
def with_docker(product, weak):
    with engine_of(product.machine, "docker"), engine_of(weak.machine, "docker"):
        yield


@pytest.fixture(autouse=True)
def method_docker(with_docker, product, weak):
    with product.policy_with(SECTION), weak.policy_with(SECTION):
        yield
    for target in (product, weak):
        target.machine.root("pkill -9 -x sleep; true")


def sleepers(target):
    return target.machine.root(["pgrep", "-f", "^sleep 4321"]).stdout.split()


def wait_for(look):
    """What `look` still finds when it must find nothing."""
    until = time.monotonic() + SECONDS
    while (found := look()) and time.monotonic() < until:
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def changed(target, change, back):
    target.machine.root(change, check=True)
    try:
        yield
    finally:
        target.machine.root(back, check=True)


@pytest.mark.position("user")
def test_no_agent_survives_its_runner(prove):
    """The container's processes are below the unit's control group: no engine's keeps them."""

    def attack(target):
        target.session(*STUBBORN)
        assert len(sleepers(target)) == 2, "the agent and its grandchild"
        target.machine.root(f"pkill -KILL {RUNNER}", check=True)
        left = wait_for(lambda: sleepers(target))
        target.machine.root("pkill -9 -x sleep; true")
        return Outcome(bool(left), left)

    prove(attack, "unit:BindsTo", "runner-eof", quick=True)


@pytest.mark.position("user")
@pytest.mark.parametrize("victim", ["-x docker", "-f containerd-shim", "-x pi-agent-exec", RUNNER])
def test_whoever_of_the_engine_is_killed_nothing_is_left(product, victim, control_seen):
    session = product.session(*STUBBORN)
    assert len(sleepers(product)) == 2
    product.machine.root(f"pkill -KILL {victim}", check=True)
    assert not wait_for(lambda: sleepers(product))
    assert session.process.wait(timeout=30) != 0
    product.end_all()
    look = "docker ps -aq && find /sys/fs/cgroup -name 'pi-agent-*.service'"
    assert not wait_for(lambda: product.machine.root(look, check=True).stdout)
    control_seen("the agent and its grandchild were there before")


@pytest.mark.position("user")
def test_no_container_stays_of_a_client_that_was_killed_too_early(prove):
    """Between the two questions of `docker run`: the daemon removes only what has run."""

    def attack(target):
        with changed(target, "mv /usr/bin/docker /usr/bin/docker.away", "mv /usr/bin/docker.away /usr/bin/docker"):
            target.machine.write("/usr/bin/docker", ONLY_CREATES, mode=0o755)
            assert target.pi("true").returncode == 69
        left = wait_for(lambda: target.machine.root(["docker", "ps", "-aq"], check=True).stdout)
        target.machine.root("docker ps -aq | xargs -r docker rm -f", check=True)
        return Outcome(bool(left), left)

    prove(attack, "docker:removed")


@pytest.mark.position("user")
def test_a_container_that_came_after_its_sessions_end_goes_at_the_next_start(prove):
    """The client was killed while the daemon made it, and the session's cleanup asked too early. Others' containers are not touched."""
    left_behind = f"pi-agent-{'0123456789abcdef' * 2}"

    def attack(target):
        names = (left_behind, "pi-agent-of-others", "of-others")
        make = " && ".join(f"docker create --name {name} {DOCKER_IMAGE} /x" for name in names)
        with changed(target, make, "docker ps -aq | xargs -r docker rm -f"):
            target.pi("true", check=True)
            found = target.machine.root(["docker", "ps", "-a", "--format", "{{.Names}}"], check=True).stdout.decode().split()
        assert {*names[1:]} <= set(found), found
        return Outcome(left_behind in found, found)

    prove(attack, "docker:sweep")


@pytest.mark.position("agent")
def test_the_agent_finds_no_door_and_no_engine(prove):
    """The door is gone before the agent is there; the daemon's socket never was."""

    def attack(target):
        done = target.pi("python3", "-c", KNOCK)
        return Outcome(b"reached" in done.stdout, done)

    on, _ = prove(attack, "door-closed")
    assert b"No such file or directory" in on.seen.stderr


@pytest.mark.position("agent")
def test_the_agent_sees_nothing_of_docker(product, control_seen):
    script = "ls -d /run/docker.sock /run/docker /run/containerd /var/lib/docker $HOME; cat /proc/[0-9]*/comm; id -G"
    found = product.pi("sh", "-c", script, cwd=DEMO).stdout.split()
    assert found[0] == b"/var/lib/pi-agent/users/alice/home", found
    assert not {b"docker", b"dockerd", b"containerd", b"containerd-shim"} & set(found) and not [name for name in found if name.startswith(b"/run")], found
    control_seen("the same look finds the agent's home")


def test_nothing_is_handed_to_a_launcher_without_a_sandbox(prove):
    """A host whose docker does nothing: a broken package, or an administrator's way around an error."""

    def attack(target):
        with changed(target, "mv /usr/bin/docker /usr/bin/docker.away", "mv /usr/bin/docker.away /usr/bin/docker"):
            target.machine.write("/usr/bin/docker", NO_SANDBOX, mode=0o755)
            done = target.pi("sh", "-c", "echo ran outside", cwd="/srv/shared/app")
        return Outcome(b"ran outside" in done.stdout, done)

    prove(attack, "door-guest", "docker:require-confined", "late-mounts")


def test_a_socket_that_others_may_write_is_not_asked(prove):
    """Who can write there is root on this host, and who listens decides what is run."""

    def attack(target):
        with changed(target, f"chmod 0666 {SOCKET}", f"chmod 0660 {SOCKET}"):
            done = target.pi("echo", "ran")
        return Outcome(done.stdout == b"ran\n", done)

    prove(attack, "docker:socket-of-root")


def test_an_agent_in_the_group_docker_is_not_started(prove):
    def attack(target):
        account = target.pi("id", "-un", check=True).stdout.decode().strip()
        with changed(target, f"gpasswd -a {account} docker", f"gpasswd -d {account} docker"):
            group = target.machine.root("getent group docker | cut -d: -f3", check=True).stdout.strip()
            done = target.pi("id", "-G")
        return Outcome(group in done.stdout.split(), done)

    prove(attack, "docker:no-group", "privileged-groups")


def test_nothing_of_an_image_runs(prove):
    """An image's variables would reach the launcher before it restricts itself: a library of the image's would run in it."""

    def attack(target):
        make = "mkdir /tmp/empty && tar -C /tmp/empty -c . | docker import --change 'ENV OF_THE_IMAGE=1' --change 'ENTRYPOINT [\"/x\"]' - brings-more"
        with changed(target, f"{make}; rmdir /tmp/empty", "docker image rm -f brings-more"), target.policy_with(SECTION.replace(DOCKER_IMAGE, "brings-more")):
            try:
                target.session(*STUBBORN)
            except Exception:  # it was refused: asked again for how
                return Outcome(False, target.pi("true"))
            seen = target.machine.root("cat /proc/$(pgrep -x pi-agent-exec)/environ", check=True).stdout
            target.end_all()
        return Outcome(b"OF_THE_IMAGE" in seen, seen)

    on, _ = prove(attack, "docker:plain-image")
    assert on.seen.returncode == 69 and b"sets the variable OF_THE_IMAGE" in on.seen.stderr, on


def test_an_image_chooses_no_group_for_the_agent(prove):
    """docker looks each group up in the image's own file, names first: there the number of the agent's group may be another group's name."""

    def attack(target):
        account = target.machine.root("getent passwd pi-agent", check=True).stdout.decode().split(":")
        assert b"42" not in target.pi("id", "-G", check=True).stdout.split()
        files = f"mkdir -p /tmp/chooses/etc && echo '{account[3]}:x:42:' > /tmp/chooses/etc/group"
        make = f"{files} && tar -C /tmp/chooses -c . | docker import - chooses-groups && rm -r /tmp/chooses"
        with changed(target, make, "docker image rm -f chooses-groups"), target.policy_with(SECTION.replace(DOCKER_IMAGE, "chooses-groups")):
            done = target.pi("id", "-G")
        return Outcome(b"42" in done.stdout.split(), done)

    on, _ = prove(attack, "engine-account")
    assert on.seen.returncode == 69 and b"docker gave the session other rights" in on.seen.stderr, on


def test_the_callers_and_the_hosts_settings_for_docker_reach_nobody(product, control_seen):
    """Those that choose another daemon, a context, or variables for every container. The control: docker itself takes them."""
    machine = product.machine
    settings = json.dumps({"proxies": {"default": {"httpProxy": "http://chosen.example:1"}}, "currentContext": "nowhere"})
    names = ["DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "HTTP_PROXY", "DOCKER_TLS_VERIFY"]
    variables = {name: f"tcp://{name.lower()}.example:1" for name in names}
    with changed(product, "mkdir -p /root/.docker", "rm -r /root/.docker"):
        machine.write("/root/.docker/config.json", settings)
        assert b"nowhere" in machine.root("docker version").stderr
        session = product.session(*STUBBORN, env=variables)
        of_client = machine.root("cat /proc/$(pgrep -x docker | head -1)/environ /proc/$(pgrep -x pi-agent-exec)/environ", check=True).stdout
        assert b"PATH=" in of_client and b"example" not in of_client, of_client
        session.end()
    control_seen("root's own client goes by the settings")

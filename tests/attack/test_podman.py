"""What only the sandbox that podman makes needs: an engine of root's with settings, hooks and places of its own."""

import contextlib
import time

import pytest
from recipes import MACHINES
from target import DEMO, Outcome

pytestmark = pytest.mark.position("host")

PODMAN = "sandbox: {method: podman}"
SECONDS = 6
SETTINGS = "/etc/containers/containers.conf"
STUBBORN = ("sh", "-c", "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; exec sleep 4321' & echo $PI_AGENT_SESSION; exec sleep 4321")
# Runs the launcher and makes nothing around it.
NO_SANDBOX = '#!/bin/sh\nwhile [ "$1" != --rootfs ]; do shift; done; exec "$3" "${2%root}$4"\n'


@pytest.fixture(scope="module", autouse=True)
def with_podman(product, weak):
    with product.machine.podman(), weak.machine.podman():
        yield


@pytest.fixture(autouse=True)
def method_podman(with_podman, product, weak):
    with product.policy_with(PODMAN), weak.policy_with(PODMAN):
        yield
    weak.machine.root("pkill -9 -x sleep; true")


def sleepers(target):
    return target.machine.root(["pgrep", "-f", "^sleep 4321"]).stdout.split()


def wait_for_both(target):
    """Until the agent and its grandchild sleep: the id is said before."""
    until = time.monotonic() + SECONDS
    while len(sleepers(target)) != 2:
        assert time.monotonic() < until, sleepers(target)
        time.sleep(0.05)


def wait_for(look):
    """What `look` still finds when it must find nothing."""
    until = time.monotonic() + SECONDS
    while (found := look()) and time.monotonic() < until:
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def a_file(target, path, text):
    """A file of the host's that does not exist otherwise."""
    directory = path.rsplit("/", 1)[0]
    target.machine.root(["mkdir", "-p", directory], check=True)
    target.machine.write(path, text)
    try:
        yield
    finally:
        target.machine.root(["rm", path], check=True)


@pytest.mark.position("user")
def test_no_agent_survives_its_runner(prove):
    """The container's processes are the unit's: no engine's control group keeps them."""

    def attack(target):
        target.session(*STUBBORN)
        wait_for_both(target)
        target.machine.root(["pkill", "-KILL", "-f", "^/usr/libexec/pi-agent/pi-agent-runner"], check=True)
        left = wait_for(lambda: sleepers(target))
        target.machine.root("pkill -9 -x sleep; true")
        return Outcome(bool(left), left)

    prove(attack, "unit:BindsTo", "runner-eof", quick=True)


@pytest.mark.position("user")
def test_no_agent_survives_what_watches_its_container(prove, product, machine_name):
    """Without conmon nobody tells podman 4.3 of the container's end; 5.4 sees by itself that conmon is gone."""

    def attack(target):
        target.session(*STUBBORN)
        target.machine.root(["pkill", "-KILL", "-x", "conmon"], check=True)
        left = wait_for(lambda: sleepers(target))
        target.machine.root("pkill -9 -x sleep; true")
        return Outcome(bool(left), left)

    if MACHINES[machine_name].number == 12:
        prove(attack, "die-with-engine", quick=True)
    else:
        assert not attack(product).succeeded


@pytest.mark.position("user")
@pytest.mark.parametrize("victim", ["podman", "conmon", "pi-agent-runner"])
def test_whoever_of_the_engine_is_killed_nothing_is_left(product, victim):
    traces = product.quiet_traces()
    session = product.session(*STUBBORN)
    wait_for_both(product)
    product.machine.root(["pkill", "-KILL", *(["-f", "^/usr/libexec/pi-agent/pi-agent-runner"] if "runner" in victim else ["-x", victim])], check=True)
    assert not wait_for(lambda: sleepers(product))
    assert session.process.wait(timeout=30) != 0
    product.end_all()
    product.expect_traces(traces, 20)


def test_the_hosts_settings_for_containers_give_the_agent_nothing(prove):
    """An administrator's containers.conf may give every container a directory of the host and variables: that is for containers."""

    def attack(target):
        with a_file(target, SETTINGS, '[containers]\nvolumes = ["/var/lib/dpkg:/srv:ro"]\n'):
            done = target.pi("ls", "/srv")
        return Outcome(b"status" in done.stdout, done)

    prove(attack, "podman:no-settings")


def test_the_hosts_list_of_mounts_gives_the_agent_nothing(prove):
    """mounts.conf names directories of the host of which each container gets a copy, secrets of a subscription for instance."""

    def attack(target):
        with a_file(target, "/etc/containers/mounts.conf", "/var/lib/dpkg:/srv\n"):
            done = target.pi("ls", "/srv")
        return Outcome(b"status" in done.stdout, done)

    prove(attack, "podman:no-default-mounts")


def test_nothing_is_handed_to_a_launcher_without_a_sandbox(prove):
    """A host whose podman does nothing: a broken package, or an administrator's way around an error."""

    def attack(target):
        target.machine.root("mv /usr/bin/podman /usr/bin/podman.away", check=True)
        try:
            target.machine.write("/usr/bin/podman", NO_SANDBOX, mode=0o755)
            done = target.pi("sh", "-c", "echo ran outside", cwd="/srv/shared/app")
        finally:
            target.machine.root("mv /usr/bin/podman.away /usr/bin/podman", check=True)
        return Outcome(b"ran outside" in done.stdout, done)

    prove(attack, "door-guest", "podman:require-confined", "late-mounts")


@pytest.mark.position("user")
def test_the_callers_variables_reach_no_engine(product):
    """Those that choose another engine, its files or its programs. The control: each is there in the caller's own processes."""
    names = ["CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "DOCKER_HOST", "DOCKER_CONTEXT", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"]
    variables = [f"{name}=/home/alice/{name}" for name in names]
    seen = product.machine.run(["env", *variables, "cat", "/proc/self/environ"], user="alice", check=True).stdout
    assert all(variable.encode() in seen for variable in variables), seen
    product.session(*STUBBORN, env=dict(variable.split("=", 1) for variable in variables))
    of_engine = product.machine.root("cat /proc/$(pgrep -x podman | head -1)/environ /proc/$(pgrep -x conmon | head -1)/environ", check=True).stdout
    assert b"CONTAINERS_CONF=/dev/null" in of_engine and b"/home/alice" not in of_engine, of_engine


@pytest.mark.position("outsider")
def test_nobody_finds_the_engines_own_files(product):
    """They are in the unit's own mount table: not even root finds them outside. The control: they are there in it."""
    product.session(*STUBBORN)
    look = "ls /run/pi-agent/podman"
    inside = product.machine.root(f"nsenter -t $(pgrep -x podman | head -1) -m {look}", check=True).stdout.split()
    assert b"root" in inside, inside
    assert product.machine.root(look, check=True).stdout == b""
    assert product.machine.run(look.split(), user="eve", cwd="/").returncode != 0


@pytest.mark.position("agent")
def test_the_agent_finds_no_engine(product):
    """Neither its processes, nor its files, nor a socket of its own. The control: the look finds the agent's own home."""
    script = "ls -d /run/pi-agent/podman /run/podman /run/crun /run/.containerenv $HOME; cat /proc/[0-9]*/comm"
    done = product.pi("sh", "-c", script, cwd=DEMO)
    found = done.stdout.split()
    assert found[0] == b"/var/lib/pi-agent/users/alice/home", done
    assert not {b"podman", b"conmon", b"crun"} & set(found) and not [name for name in found if name.startswith(b"/run")], done

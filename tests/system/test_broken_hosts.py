"""Hosts on which a method cannot work: refused before anything is mounted, with the cause and what to do, and never another method instead."""

import json
import shlex

import pytest
from launching import DEMO, PLAYING_POLICY, assert_refused, pi, wait_until_empty

UNAVAILABLE = 69
# A container: process 1 is not systemd, and its sockets do not exist. What follows is run as root in it.
CONTAINER = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def with_method(request, playing):
    playing.install_policy(PLAYING_POLICY + f"sandbox: {{method: {request.param}}}\n")
    yield request.param
    playing.install_policy(PLAYING_POLICY)


method = pytest.fixture(params=["systemd", "bwrap", "none"])(with_method)
of_systemd = pytest.fixture(params=["systemd", "none"])(with_method)
# What is missing before podman is looked for.
of_units = pytest.fixture(params=["systemd", "podman", "none"])(with_method)


@pytest.fixture
def bwrap(playing):
    playing.install_policy(PLAYING_POLICY + "sandbox: {method: bwrap}\n")
    yield playing
    playing.install_policy(PLAYING_POLICY)


@pytest.fixture
def podman(playing):
    with playing.podman():
        playing.install_policy(PLAYING_POLICY + "sandbox: {method: podman}\n")
        yield playing
        playing.install_policy(PLAYING_POLICY)


def in_container(machine, script, prepare="", capabilities=(), user="alice"):
    """Runs `script` as a user in a container of this machine; `capabilities` are those that its root lacks."""
    lacking = f"setpriv --bounding-set {','.join(f'-{name}' for name in capabilities)}" if capabilities else ""
    make = f"mount --make-rprivate / && mount -t tmpfs -o mode=0755 none /run && {prepare or 'true'}"
    # The container ends with its first process, and what a session left is removed after `pi` has ended.
    end = "status=$?; while pgrep -f ^/usr/libexec/pi-agent/ >/dev/null; do sleep 0.05; done; exit $status"
    return machine.root([*CONTAINER, "sh", "-c", f'{make} && {lacking} runuser -u {user} -- sh -c "cd {DEMO} && $1"; {end}', "sh", script])


def replaced(machine, path, text=None, mode="0755", cwd=DEMO):
    """pi as alice while another file replaces `path`, or none does; in one go, since the tests' own commands may need that file."""
    other = f"printf %s {shlex.quote(text)} >{path} && chmod {mode} {path}" if text is not None else "true"
    run = f"runuser -u alice -- sh -c 'cd {cwd} && exec pi sh \"echo ran\"'; status=$?"
    return machine.root(f"mv {path} {path}.away; {other}; {run}; rm -f {path}; mv {path}.away {path}; exit $status")


@pytest.mark.parametrize(("path", "package"), [("/usr/bin/bwrap", "bubblewrap"), ("/usr/bin/setpriv", "util-linux")])
def test_a_program_that_bwrap_needs_is_missing(bwrap, path, package):
    done = replaced(bwrap, path)
    assert_refused(done, UNAVAILABLE, f"sandbox.method bwrap needs {path}", "No such file or directory", f"install the package {package}")


def test_a_bwrap_that_somebody_else_can_change_is_not_run(bwrap):
    done = replaced(bwrap, "/usr/bin/bwrap", "#!/bin/sh\necho ran\n", mode="0777")
    assert_refused(done, 78, "/usr/bin/bwrap")


def test_what_bwrap_complains_of_is_told(bwrap):
    done = replaced(bwrap, "/usr/bin/bwrap", "#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    assert_refused(done, UNAVAILABLE, "bwrap could not prepare the sandbox", "No permissions to create a new namespace")


def test_a_bwrap_that_runs_the_command_without_a_sandbox_runs_no_agent(bwrap):
    """It makes no namespace and tells no first process: nothing is handed to what runs there."""
    done = replaced(bwrap, "/usr/bin/bwrap", '#!/bin/sh\nshift 3; exec "$@"\n', cwd="/srv/shared/app")
    assert_refused(done, UNAVAILABLE, "bwrap")


@pytest.mark.parametrize("package", ["podman", "crun", "conmon"])
def test_a_program_that_podman_needs_is_missing(podman, package):
    done = replaced(podman, f"/usr/bin/{package}")
    assert_refused(done, UNAVAILABLE, f"sandbox.method podman needs /usr/bin/{package}", "No such file or directory", f"install the package {package}")


@pytest.mark.parametrize("program", ["podman", "crun", "conmon"])
def test_a_podman_that_somebody_else_can_change_is_not_run(podman, program):
    done = replaced(podman, f"/usr/bin/{program}", "#!/bin/sh\necho ran\n", mode="0777")
    assert_refused(done, 78, f"/usr/bin/{program}")


def test_what_podman_complains_of_is_told(podman):
    done = replaced(podman, "/usr/bin/podman", "#!/bin/sh\necho 'Error: no space for a container' >&2\nexit 125\n")
    assert_refused(done, UNAVAILABLE, "podman could not prepare the sandbox", "no space for a container")


def test_what_the_runtime_of_podman_complains_of_is_told(podman):
    done = replaced(podman, "/usr/bin/crun", "#!/bin/sh\necho 'crun: no such system call' >&2\nexit 1\n")
    assert_refused(done, UNAVAILABLE, "podman could not prepare the sandbox")


def test_a_podman_that_runs_the_command_without_a_sandbox_runs_no_agent(podman):
    program = '#!/bin/sh\nwhile [ "$1" != --rootfs ]; do shift; done; exec "$3" "${2%root}$4"\n'
    done = replaced(podman, "/usr/bin/podman", program, cwd="/srv/shared/app")
    assert_refused(done, UNAVAILABLE, "podman started the launcher outside the session's unit")


def test_the_launcher_of_a_container_is_missing(podman):
    done = replaced(podman, "/usr/libexec/pi-agent/pi-agent-engine")
    assert_refused(done, UNAVAILABLE, "could not prepare the sandbox", "journalctl -u")
    done = replaced(podman, "/usr/libexec/pi-agent/pi-agent-exec")
    assert_refused(done, UNAVAILABLE, "podman could not prepare the sandbox", "pi-agent-exec")


def test_root_of_a_container_may_not_mount(bwrap):
    done = in_container(bwrap, "pi sh true", capabilities=("sys_admin",))
    assert done.returncode == UNAVAILABLE, done
    for word in (b"lacks CAP_SYS_ADMIN", b"choose another method"):
        assert word in done.stderr, done


def test_the_callers_control_group_cannot_be_left(bwrap):
    """Its owner could freeze the runner."""
    prepare = "mkdir -p /sys/fs/cgroup/of-alice && chown alice: /sys/fs/cgroup/of-alice/cgroup.procs && echo 1 >/sys/fs/cgroup/of-alice/cgroup.procs"
    prepare += " && mount -o remount,bind,ro /sys/fs/cgroup"
    done = in_container(bwrap, "pi sh true", prepare=prepare)
    bwrap.root("for i in 1 2 3 4 5; do rmdir /sys/fs/cgroup/of-alice && break; sleep 0.2; done", check=True)
    assert done.returncode == UNAVAILABLE and b"cannot leave the caller's control group" in done.stderr, done


def test_a_container_has_no_systemd_and_the_policy_asks_for_it(of_units, playing):
    done = in_container(playing, "pi sh true")
    assert done.returncode == UNAVAILABLE, done
    for word in (b"connecting to systemd failed", b"whether systemd and its system bus run"):
        assert word in done.stderr, done


def test_a_container_where_bwrap_works(bwrap):
    done = in_container(bwrap, "pi sh \"touch made; id -un; cat /proc/1/comm\" && stat -c %U made && rm made")
    assert (done.returncode, done.stdout.decode().split()) == (0, ["pi-agent-alice", "bwrap", "alice"]), done


def test_the_canary_of_a_container(bwrap):
    done = in_container(bwrap, "pi --pi-agent-canary >/dev/null")
    assert (done.returncode, done.stderr) == (0, b""), done


def test_doctor_in_a_container(bwrap):
    """It starts users' programs in control groups of its own, for no systemd makes any."""
    done = in_container(bwrap, "pi-agentctl doctor --json", user="root")
    report = json.loads(done.stdout)
    assert report["sandbox"]["good"] and not [fault for fault in report["faults"] if fault["about"] == "shell"], done
    assert bwrap.root("ls /sys/fs/cgroup/pi-agent | grep program").stdout == b""


def test_the_place_of_sessions_is_taken(method, playing):
    playing.root("umount -l /run/pi-agent/sessions; mv /run/pi-agent /run/pi-agent.away; echo x >/run/pi-agent", check=True)
    try:
        done = pi(playing, "sh", "echo ran")
    finally:
        playing.root("rm /run/pi-agent; rm -rf /run/pi-agent.away", check=True)
    assert done.returncode in (71, 78) and done.stdout == b"" and b"/run/pi-agent" in done.stderr, done


def test_a_project_on_a_file_system_that_cannot_map_ids(method, playing):
    """Each method needs it, and says so by the mount's name. `pi` may end before the runner, which has the project open."""
    script = "mkdir -p /srv/shared/app/.old && mount -t proc none /srv/shared/app && mkdir -p /tmp/x"
    playing.root(script, check=True)
    try:
        done = pi(playing, "sh", "echo ran", cwd="/srv/shared/app")
    finally:
        wait_until_empty(lambda: playing.root("umount /srv/shared/app").stderr)
        playing.root("rmdir /srv/shared/app/.old /tmp/x", check=True)
    assert done.returncode in (UNAVAILABLE, 77) and done.stdout == b"" and b"/srv/shared/app" in done.stderr, done


def test_systemds_bus_is_silent(of_units, playing):
    """Its socket is there and nobody answers."""
    playing.root("mv /run/dbus/system_bus_socket /run/dbus/away; mv /run/systemd/private /run/systemd/away", check=True)
    try:
        done = pi(playing, "sh", "echo ran")
    finally:
        playing.root("mv /run/dbus/away /run/dbus/system_bus_socket; mv /run/systemd/away /run/systemd/private", check=True)
    assert_refused(done, UNAVAILABLE, "connecting to systemd failed", "systemctl status")


def test_the_launcher_is_missing(of_systemd, playing):
    done = replaced(playing, "/usr/libexec/pi-agent/pi-agent-exec")
    assert_refused(done, UNAVAILABLE, "could not prepare the sandbox", "journalctl -u")

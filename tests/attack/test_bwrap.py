"""What only bubblewrap's sandbox needs: there is no systemd that binds lifetimes, makes groups and takes keyrings away."""

import subprocess
import time

import pytest
from keyring import ADD_KEY, READ_KEY, SECRET
from points import waiting_at
from target import SESSIONS, Outcome

pytestmark = pytest.mark.position("user")

BWRAP = "sandbox: {method: bwrap}"
SECONDS = 6
# Deaf to what asks it to end, and with a grandchild in a session of its own.
STUBBORN = ("sh", "-c", "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; exec sleep 4321' & echo $PI_AGENT_SESSION; exec sleep 4321")


@pytest.fixture(autouse=True)
def method_bwrap(product, weak):
    with product.policy_with(BWRAP), weak.policy_with(BWRAP):
        yield
    weak.machine.root(["pkill", "-9", "-x", "sleep"])


def sleepers(target):
    return target.machine.root(["pgrep", "-f", "^sleep 4321"]).stdout.split()


def wait_for(look):
    """What `look` still finds when it must find nothing."""
    until = time.monotonic() + SECONDS
    while (found := look()) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def runner_of(target):
    return target.machine.root("pgrep -u root -f ^/usr/libexec/pi-agent/pi-agent-runner | tail -1", check=True).stdout.decode().strip()


def start(target):
    session = target.session(*STUBBORN)
    until = time.monotonic() + SECONDS
    while len(sleepers(target)) != 2:  # the grandchild becomes one after the agent has told its session
        assert time.monotonic() < until, "the agent and its grandchild"
    return session


@pytest.mark.parametrize("signal", ["KILL", "SEGV"])
def test_no_agent_survives_its_runner(prove, signal):
    def attack(target):
        start(target)
        target.machine.root(["pkill", f"-{signal}", "-f", "^/usr/libexec/pi-agent/pi-agent-runner"], check=True)
        left = wait_for(lambda: sleepers(target))
        target.machine.root("pkill -9 -x sleep; true")
        return Outcome(bool(left), left)

    prove(attack, "bwrap:die-with-parent", "runner-eof", "session-keeper", quick=True)


def test_what_a_killed_runner_leaves_is_removed_without_another_start(prove):
    def attack(target):
        session = start(target)
        target.machine.root(["pkill", "-KILL", "-f", "^/usr/libexec/pi-agent/pi-agent-runner"], check=True)
        places = [f"{SESSIONS}/{session.id}", f"/var/lib/pi-agent/sessions/{session.id}", f"/sys/fs/cgroup/pi-agent/{session.id}"]
        left = wait_for(lambda: [place for place in places if target.machine.root(["test", "-e", place]).returncode == 0])
        return Outcome(bool(left), left)

    prove(attack, "session-keeper", quick=True)


def test_a_group_that_its_user_made_first_is_none_of_roots(prove):
    """Whoever may write to a group freezes and kills what is below it (`cgroups(7)`): alice, in a container that delegates its groups."""
    group = "/sys/fs/cgroup/pi-agent"

    def attack(target):
        target.machine.root(f"mkdir -p {group} && chown -R alice {group}", check=True)
        try:
            done = target.pi("echo", "ran")
        finally:
            target.machine.root(f"chown -R root {group}", check=True)
        if not done.returncode:
            return Outcome(True, done.stdout)
        assert b"belongs to the caller, who could freeze it" in done.stderr, done
        return Outcome(False, done.stderr)

    prove(attack, "top-group-owner")


@pytest.mark.position("host")
def test_a_session_that_its_runner_removes_is_nobody_elses_to_remove(weak, seen_to_work):
    """It has given up the session's lock by then. Whoever else removes it waits at the same point."""

    def start_meanwhile():
        with waiting_at(weak, "removing") as reached:
            bob = weak.machine.popen(["pi", "echo", "ran"], user="bob", cwd="/home/bob/work/demo")
            try:
                return bob.communicate(timeout=10)[0]
            except subprocess.TimeoutExpired:
                return b""
            finally:
                reached.release()
                bob.wait()
                reached.end()

    assert start_meanwhile() == b"ran\n"
    with weak.without("bwrap:one-remover"):
        assert start_meanwhile() == b""
    seen_to_work(["bwrap:one-remover"])


def test_a_users_program_does_not_pass_for_the_runner_of_a_session(prove):
    """With the name of the runner, and the number of one that was killed together with its keeper: nobody would remove that session."""
    left = f"{SESSIONS}/{'0123456789abcdef' * 2}"
    find = "for i in $(seq 100); do pgrep -u alice -x pi-agent-runner && exit; sleep 0.05; done; exit 1"

    def attack(target):
        impostor = target.machine.popen(["sh", "-c", "cp /bin/sh ~/pi-agent-runner && exec ~/pi-agent-runner -c 'sleep 60; true'"])
        try:
            number = target.machine.root(find, check=True).stdout.decode().split()[0]
            target.machine.root(f"mkdir -p {left}/root && ln -s {number} {left}/runner", check=True)
            target.pi("true", user="bob", cwd="/home/bob/work/demo", check=True)
            stays = target.machine.root(["test", "-e", left]).returncode == 0
        finally:
            impostor.kill_all()
            impostor.communicate()
            target.machine.root(["rm", "-rf", left, "/home/alice/pi-agent-runner"], check=True)
        return Outcome(stays, number)

    prove(attack, "runner-ids", quick=True)


def test_the_callers_control_group_is_frozen(prove):
    """As under systemd: the runner leaves it, here by its own hand."""

    def attack(target):
        session = start(target)
        wrapper = str(session.wrapper_pid())
        (session.process.group.path / "cgroup.freeze").write_text("1")
        target.machine.root(["kill", "-KILL", wrapper], check=True)
        left = wait_for(lambda: sleepers(target))
        session.end()
        target.machine.root("pkill -9 -x sleep; true")
        return Outcome(bool(left), left)

    prove(attack, "own-group", quick=True)


def test_the_runner_is_in_no_group_of_its_caller(prove):
    def attack(target):
        start(target)
        group = target.machine.root(f"cat /proc/{runner_of(target)}/cgroup", check=True).stdout.decode().strip().splitlines()[-1]
        target.machine.root("pkill -9 -x sleep; true")
        return Outcome("/pi-agent/" not in group, group)

    prove(attack, "own-group")


@pytest.mark.position("agent")
def test_the_callers_keyring_stays_outside(prove):
    def attack(target):
        done = target.machine.run(["python3", "-c", ADD_KEY, "pi", "python3", "-c", READ_KEY], user="alice", cwd="/home/alice/projects/demo")
        return Outcome(SECRET.encode() in done.stdout, done)

    prove(attack, "bwrap:own-keyring", "reset-memory-and-keys", "call-filter", "seccomp-filter")


# Runs its command and makes nothing around it.
NO_SANDBOX = '#!/bin/sh\nshift 3; exec "$@"\n'


@pytest.mark.position("host")
def test_nothing_is_handed_to_a_launcher_without_a_sandbox(prove):
    """A host whose /usr/bin/bwrap does nothing: a broken package, or an administrator's way around an error."""

    def attack(target):
        target.machine.root("mv /usr/bin/bwrap /usr/bin/bwrap.away", check=True)
        try:
            target.machine.write("/usr/bin/bwrap", NO_SANDBOX, mode=0o755)
            done = target.pi("sh", "-c", "echo ran outside", cwd="/srv/shared/app")
        finally:
            target.machine.root("mv /usr/bin/bwrap.away /usr/bin/bwrap", check=True)
        return Outcome(b"ran outside" in done.stdout, done)

    prove(attack, "bwrap:require-confined", "late-mounts")

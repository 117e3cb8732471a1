"""kill -9 of each process of a session whose agent refuses to die: within five seconds nothing is left of the session."""

import contextlib
import time

import pytest
from target import DEMO, INSIDE, Outcome

pytestmark = pytest.mark.position("user")

CLEAN_SECONDS = 5
STUBBORN = ("python3", f"{INSIDE}/stubborn.py")


def pid_of(session, victim):
    return {
        "wrapper": session.wrapper_pid,
        "sudo": session.sudo_pid,
        "receiver": session.receiver_pid,
        "runner": session.runner_pid,
        "exec": session.exec_pid,
        "agent": session.agent_pid,
    }[victim]()


def left_after(target, act, session, before):
    """What is there after act() and the time allowed; None when all is as it was before."""
    act()
    try:
        target.expect_traces(before, CLEAN_SECONDS)
    except AssertionError as found:
        target.clear()
        return str(found)
    session.end()
    return None


def killing(*victims, signal="KILL", command=STUBBORN):
    """The attack that kills these processes of a session; it succeeds when something is left after the time allowed."""

    def attack(target):
        before = target.quiet_traces()
        with target.sudo_that_waits() if "sudo" in victims else contextlib.nullcontext():
            session = target.session(*command)
        assert len(session.agent_pids()) == 2, "the agent and its grandchild"
        pids = [str(pid_of(session, victim)) for victim in victims]
        left = left_after(target, lambda: target.machine.root(f"kill -{signal} {' '.join(pids)}; true"), session, before)
        return Outcome(left is not None, left)

    return attack


# What each death is caught by. Without it the session would outlive the one that was killed.
CAUGHT_BY = {
    ("wrapper",): ["wrapper-eof"],
    ("sudo",): ["wrapper-eof"],
    ("receiver",): ["wrapper-eof"],
    ("runner",): ["unit:BindsTo", "runner-eof"],
    ("runner", "wrapper"): ["unit:BindsTo", "runner-eof"],
    # With TERM as the signal, systemd is done with the unit as soon as the launcher is gone, whoever is left in it.
    # The launcher is the first process of a PID namespace: when it dies, all in the namespace die.
    ("runner", "exec"): ["cleanup-kills", "unit:KillSignal", "unit:TimeoutStopUSec", "unit:PrivatePIDs"],
}


@pytest.mark.parametrize("victims", CAUGHT_BY, ids=" and ".join)
def test_nothing_is_left_after_kill_9_of(victims, prove):
    prove(killing(*victims), *CAUGHT_BY[victims], quick=True)


def test_the_mounts_of_a_runner_that_was_killed_are_removed_by_the_unit(prove):
    prove(killing("runner"), "unit:StopWhenUnneeded", quick=True)


def test_nothing_is_left_after_kill_9_of_the_runner_although_systemd_was_reloaded_meanwhile(prove):
    """What systemd cannot read again of a transient unit, it forgets at a reload; ExecStopPost= was once lost so."""

    def attack(target):
        before = target.quiet_traces()
        session = target.session(*STUBBORN)
        target.machine.root(["systemctl", "daemon-reload"], check=True)
        for unit in (session.service, f"pi-agent-cleanup-{session.id}.service"):
            state = target.machine.root(["systemctl", "show", "--property=LoadState", "--value", unit], check=True).stdout
            assert state == b"loaded\n", f"{unit}: {state}"
        runner = str(session.runner_pid())
        left = left_after(target, lambda: target.machine.root(["kill", "-KILL", runner], check=True), session, before)
        return Outcome(left is not None, left)

    prove(attack, "unit:StopWhenUnneeded", quick=True)


@pytest.mark.position("agent")
def test_an_agent_that_answers_term_by_killing_its_launcher_ends_all_the_same(prove):
    script = """
import os, runpy, signal
launcher = os.getppid()
def answer(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        os.kill(launcher, signal.SIGKILL)
    except ProcessLookupError:
        pass
keep = signal.signal
def ignoring_all_but_term(number, action):
    keep(number, answer if number == signal.SIGTERM else action)
signal.signal = ignoring_all_but_term
runpy.run_path("/usr/local/lib/attack/stubborn.py")
"""
    attack = killing("wrapper", command=("python3", "-c", script))
    prove(attack, "cleanup-kills", "unit:KillSignal", "unit:TimeoutStopUSec", "unit:PrivatePIDs", quick=True)


WITHOUT_CONTROL_GROUP = "/etc/systemd/system/pi-agent-.service.d/attack.conf"


@pytest.fixture
def agents_outlive_their_launcher(weak):
    """systemd's default is what the unit says too, so only an administrator's drop-in can take it out."""
    weak.machine.write(WITHOUT_CONTROL_GROUP, "[Service]\nKillMode=process\n")
    weak.machine.root(["systemctl", "daemon-reload"], check=True)
    yield
    weak.machine.root(f"rm -r {WITHOUT_CONTROL_GROUP.rsplit('/', 1)[0]}; systemctl daemon-reload", check=True)


@pytest.mark.position("agent")
@pytest.mark.parametrize("victim", ["exec", "agent"])
def test_the_grandchild_does_not_outlive(victim, prove, agents_outlive_their_launcher):
    prove(killing(victim), "cleanup-kills", "unit:PrivatePIDs", "unit-drop-ins", quick=True)


@pytest.mark.position("agent")
def test_an_agent_that_ignores_term_is_killed_within_the_time_allowed(prove):
    # systemd's own patience is 90 s.
    prove(killing("wrapper"), "unit:TimeoutStopUSec", "unit:KillSignal", quick=True)


@pytest.mark.parametrize("signal", ["TERM", "HUP", "INT", "QUIT"])
def test_the_runner_is_ended_by(signal, product, control_seen):
    assert not killing("runner", signal=signal)(product).succeeded
    control_seen("the agent and its grandchild are there before the signal")


@pytest.mark.position("agent")
def test_a_stopped_launcher_keeps_nothing_alive(product, control_seen):
    """The agent has the launcher's uid and can stop it; not where that is the first of its session's own processes, so root does it too."""
    before = product.quiet_traces()
    script = "import os, signal, runpy; os.kill(os.getppid(), signal.SIGSTOP); runpy.run_path('/usr/local/lib/attack/stubborn.py')"
    session = product.session("python3", "-c", script)
    launcher = str(session.exec_pid())
    product.machine.root(["kill", "-STOP", launcher], check=True)
    assert product.machine.root(["ps", "-o", "stat=", "-p", launcher]).stdout.startswith(b"T")
    control_seen("the launcher was seen stopped")
    session.process.kill_all()
    product.expect_traces(before)
    session.end()


BUS_AGAIN = """systemctl restart dbus.service systemd-logind.service
for name in systemd1 login1; do until busctl status org.freedesktop.$name >/dev/null 2>&1; do sleep 0.2; done; done"""


@pytest.mark.position("host")
def test_an_agent_ends_with_a_runner_that_gives_up(prove):
    """The unit is bound to the runner's scope, which lasts as long as anything of the user's in it; the launcher can be stopped."""

    def attack(target):
        session = target.session(*STUBBORN)
        agents = " ".join(map(str, session.agent_pids()))
        group = target.machine.root(["systemctl", "show", "--property=ControlGroup", "--value", session.scope]).stdout.decode().strip()
        stay = f"sleep 60 <&- >&- 2>&- & echo $! >/sys/fs/cgroup{group}/cgroup.procs; kill -STOP {session.exec_pid()}"
        target.machine.root(stay, check=True)
        target.machine.root("pkill -KILL -x dbus-daemon; sleep 6", check=True)
        alive = target.machine.root(f"ps -o pid= -p {agents.replace(' ', ',')}").stdout.split()
        # systemd and logind come back to the bus by themselves, but only when they notice.
        target.machine.root(BUS_AGAIN, check=True, timeout=60)
        target.machine.root(f"pkill -x sleep; systemctl stop {session.service} {session.scope}; true")
        session.end()
        return Outcome(bool(alive), alive)

    prove(attack, "end-kills", quick=True)


@pytest.mark.position("host")
def test_an_unrelated_service_keeps_no_mount_of_a_session(product, control_seen):
    """One that starts meanwhile with a mount namespace of its own gets a copy of every mount there is.

    Two things take the copies away, and either is enough: the file system of all sessions is shared, so what is unmounted goes
    everywhere; and the kernel detaches what is mounted on a directory that is removed, in every namespace.
    """
    before = product.quiet_traces()
    session = product.session(*STUBBORN)
    with_namespace = "systemd-run --quiet --unit=attack-bystander --property=PrivateMounts=yes --property=PrivateTmp=yes sleep 60"
    product.machine.root(with_namespace, check=True)
    bystander = product.machine.root(["systemctl", "show", "--property=MainPID", "--value", "attack-bystander"]).stdout.decode().strip()
    looking = ["grep", "-c", session.id, f"/proc/{bystander}/mountinfo"]
    assert int(product.machine.root(looking).stdout) > 0, "the bystander has no copy, so this shows nothing"
    product.machine.root(["kill", "-KILL", str(session.runner_pid())], check=True)
    product.expect_traces(before, CLEAN_SECONDS)
    assert int(product.machine.root(looking).stdout) == 0
    control_seen("while the session runs the bystander has a copy")
    product.machine.root(["systemctl", "stop", "attack-bystander"], check=True)


def test_the_callers_control_group_is_frozen(prove):
    """sudo leaves the runner where the caller is, and the caller may freeze and kill that."""

    def attack(target):
        before = target.quiet_traces()
        session = target.session(*STUBBORN)
        wrapper = str(session.wrapper_pid())

        def freeze_and_kill():
            (session.process.group.path / "cgroup.freeze").write_text("1")
            target.machine.root(["kill", "-KILL", wrapper], check=True)

        left = left_after(target, freeze_and_kill, session, before)
        return Outcome(left is not None, left)

    # Without a scope of its own there is nothing that the unit could be bound to.
    prove(attack, "own-scope", "late-mounts", "unit:BindsTo", "unit:After", quick=True)


def test_a_session_goes_on_while_its_callers_control_group_is_frozen(product, control_seen):
    session = product.session("sh", "-c", f"echo $PI_AGENT_SESSION; sleep 0.5; touch {DEMO}/went-on; sleep 60")
    (session.process.group.path / "cgroup.freeze").write_text("1")
    until = time.monotonic() + CLEAN_SECONDS
    while product.machine.root(["test", "-e", f"{DEMO}/went-on"]).returncode != 0:
        assert time.monotonic() < until, "the agent stands still"
        time.sleep(0.1)
    assert "frozen 1" in (session.process.group.path / "cgroup.events").read_text()
    control_seen("the kernel says that the group was frozen")
    (session.process.group.path / "cgroup.freeze").write_text("0")
    session.end()
    product.machine.root(["rm", f"{DEMO}/went-on"], check=True)


@pytest.mark.position("host")
def test_what_a_crash_of_everything_left_is_swept_by_the_next_session(product, control_seen):
    """A runner and a cleanup that both died: the directory and its mounts are gone after anybody's next session."""
    orphan = "0123456789abcdef" * 2
    directory = f"/run/pi-agent/sessions/{orphan}"
    product.machine.root(f"mkdir -p {directory}/root/home && mount --bind /home/alice/projects {directory}/root/home", check=True)
    assert product.machine.root(["findmnt", f"{directory}/root/home"]).returncode == 0
    control_seen("before, the directory is there, and its mount")
    product.pi("true", check=True)
    assert product.machine.root(["test", "-e", directory]).returncode == 1
    assert product.machine.root(["test", "-d", DEMO]).returncode == 0


@pytest.mark.position("agent")
def test_a_leftover_that_cannot_be_removed_is_nobodys_refusal(prove, product, weak):
    """One user's session can end so that its directory stays; the next launch of everybody looks at it."""
    orphan = "/run/pi-agent/sessions/" + "fedcba9876543210" * 2
    more_than_a_sweep_takes = f"mkdir -p {orphan}/root; for i in $(seq 100); do mount -t tmpfs none {orphan}/root; done"
    for target in (product, weak):
        target.machine.root(more_than_a_sweep_takes, check=True)

    def attack(target):
        done = target.pi("true", user="bob", cwd="/home/bob/work/demo")
        assert target.machine.root(["test", "-d", orphan]).returncode == 0, "the leftover is gone, so this shows nothing"
        return Outcome(done.returncode != 0, done)

    try:
        _, off = prove(attack, "sweep-goes-on")
        assert b"removing a session's mount points" in off.seen.stderr, off
    finally:
        for target in (product, weak):
            target.machine.root(f"while umount {orphan}/root; do :; done 2>/dev/null; rm -r {orphan}", check=True)

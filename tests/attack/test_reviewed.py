"""Attacks that a review found to work; each was seen to succeed before its defence was built."""

import time

import pytest
from sent_directory import TAKE, sent
from target import ATTACK_POLICY, DEMO, Outcome

pytestmark = pytest.mark.position("user")

RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"


@pytest.fixture
def victim(product, weak):
    """A mount of the host's that has nothing to do with sessions."""
    for target in (product, weak):
        target.machine.root("mkdir -p /srv/victim/mnt; mount -t tmpfs victim /srv/victim/mnt", check=True)
    yield "/srv/victim/mnt"
    for target in (product, weak):
        target.machine.root("umount /srv/victim/mnt; rm -r /srv/victim", check=True)


def test_the_name_of_a_root_does_not_become_a_mount_point_that_root_unmounts(prove, victim):
    """The kernel leaves a form feed in a name as it is, and white space is what readers of mountinfo divide at."""

    def attack(target):
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 60")
        point = f"/run/pi-agent/sessions/{session.id}/project/s"
        parent = f"/home/alice/x\f{point}"
        target.machine.run(["mkdir", "-p", parent], check=True)
        target.machine.run(["ln", "-s", "/srv/victim", "/home/alice/projects/s"], check=True)
        target.machine.run(["mv", "/home/alice/projects", f"{parent}/mnt"], check=True)
        # The runner itself would take the project's mounts away by its own name for them.
        target.machine.root(["kill", "-9", str(session.runner_pid())], check=True)
        session.end()
        target.machine.root(f"for i in $(seq 100); do test -e /run/pi-agent/sessions/{session.id} || break; sleep 0.1; done", check=True)
        target.machine.run(["mv", f"{parent}/mnt", "/home/alice/projects"], check=True)
        target.machine.run("rm -r ~/projects/s ~/x*", check=True)
        mounted = target.machine.root(["findmnt", "-n", victim]).returncode == 0
        if not mounted:
            target.machine.root(["mount", "-t", "tmpfs", "victim", victim], check=True)
        return Outcome(not mounted, session.id)

    prove(attack, "strict-mountinfo")


def test_a_root_that_its_user_can_exchange_in_a_tree_that_the_agent_sees_is_refused(prove, product, weak):
    """systemd resolves the root's path in the session's tree; a link in its place led root to run the project's program."""
    for target in (product, weak):
        target.machine.root("install -d -o alice -g alice /opt/alice /opt/alice/app", check=True)
        # As it stands: apply refuses it, too.
        target.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text().replace("/srv/shared/app]", "/srv/shared/app, /opt/alice/app]"))

    def attack(target):
        done = target.pi("true", cwd="/opt/alice/app")
        return Outcome(done.returncode == 0, done)

    try:
        on, _ = prove(attack, "root-place")
        assert on.seen.returncode == 78 and b"others could replace while a session runs" in on.seen.stderr
    finally:
        for target in (product, weak):
            target.machine.install_policy(ATTACK_POLICY.read_text())
            target.machine.root("rm -r /opt/alice", check=True)


LIST = f"""{TAKE}
try:
    told = os.listdir(os.open("srv/shared", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd))
except OSError as error:
    told = str(error)
print(json.dumps(told))
"""


@pytest.mark.position("agent")
def test_a_directory_sent_over_a_socket_leads_nowhere(prove):
    def attack(target):
        with sent(target, "/"):
            told = target.python(LIST)
        return Outcome(isinstance(told, list), told)

    prove(attack, "landlock")


SLACK = f"""
import ctypes, json, socket, subprocess
ctypes.CDLL(None).prctl(29, ctypes.c_ulong(9 * 10**18), 0, 0, 0)  # PR_SET_TIMERSLACK
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
runner = subprocess.Popen(["sudo", "-n", "{RUNNER}"], stdin=theirs, stderr=subprocess.DEVNULL)
theirs.close()
"""


def test_a_callers_timer_slack_does_not_stop_roots_deadlines(prove):
    def attack(target):
        before = target.quiet_traces()
        process = target.machine.popen(["python3", "-c", SLACK + "runner.wait()\n"])
        until = time.monotonic() + 12
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        succeeded = process.poll() is None
        process.kill_all()
        process.wait()
        target.machine.root(f"pkill -KILL -f ^{RUNNER}; true")
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        target.expect_traces(before)
        return Outcome(succeeded)

    prove(attack, "timer-slack", quick=True)


DEBUGGED = """
import os, signal, time
signal.signal(signal.SIGUSR1, lambda *_: print("debugger opened", flush=True))
print(os.environ["PI_AGENT_SESSION"], flush=True)
time.sleep(2)
"""


def test_the_signal_that_opens_nodes_debugger_is_not_passed_on(prove):
    def attack(target):
        session = target.session("python3", "-c", DEBUGGED)
        target.machine.run(["kill", "-USR1", str(session.wrapper_pid())], check=True)
        said = session.process.stdout.read()
        session.end()
        return Outcome(b"debugger opened" in said, said)

    prove(attack, "no-debugger")


CONFIG = "/home/alice/.pi/agent"
KERNELS_FILES = {
    "the memory map of a fork of root's process": ("/proc/self/maps", "pi-agent-runner"),
    "the mounts of the host": ("/proc/self/mountinfo", "pi-agent-sessions"),
    "a file of sysfs": ("/sys/class/net/lo/address", "00:00:00"),
}


@pytest.mark.parametrize("kind", KERNELS_FILES)
def test_a_link_in_the_configuration_does_not_bring_the_agent(kind, prove):
    goal, mark = KERNELS_FILES[kind]
    # Many, so that the process that opened one still lives when that is read: /proc of one that has ended is empty.
    arrange = f"mkdir {CONFIG}/many && cd {CONFIG}/many && seq 3000 | xargs touch && for i in $(seq 50); do ln -s {goal} stolen-$i.md; done"

    def attack(target):
        target.machine.run(arrange, check=True)
        done = target.pi("sh", "-c", "cat $HOME/.pi/agent/many/stolen-*.md; rm -rf $HOME/.pi/agent/many")
        target.machine.run(["rm", "-r", f"{CONFIG}/many"], check=True)
        return Outcome(mark.encode() in done.stdout, done)

    # Each of the two is enough: what the kernel makes up says that it has no bytes, and no more are copied.
    on, _ = prove(attack, "kernels-files", "copied-size")
    assert b".md: the kernel makes that file" in on.seen.stderr and on.seen.stdout == b"", on


def test_a_file_that_takes_no_room_of_the_users_takes_none_of_the_hosts(prove):
    """A file of holes costs its owner nothing, and its copy cost /var gigabytes."""

    def attack(target):
        target.machine.run(["truncate", "-s", "257M", f"{CONFIG}/holes"], check=True)
        done = target.pi("sh", "-c", "stat -c %s $HOME/.pi/agent/holes; rm -f $HOME/.pi/agent/holes")
        target.machine.run(["rm", f"{CONFIG}/holes"], check=True)
        return Outcome(done.stdout.strip() == str(257 << 20).encode(), done)

    on, _ = prove(attack, "file-limit")
    assert b"holes: larger than 256 MiB" in on.seen.stderr, on


def with_root(target, root):
    target.machine.install_policy(ATTACK_POLICY.read_text().replace("/srv/shared/app]", f"/srv/shared/app, {root}]"))


def test_a_root_with_a_colon_which_systemd_would_divide_there_after_a_reload(product, control_seen):
    """It is a mistake of the policy's text, so no build reads further."""
    places = ["/srv/shared/c:d", "/srv/shared/c_d"]
    product.machine.root(["install", "-d", "-o", "alice", "-g", "alice", *places], check=True)
    try:
        product.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text().replace("/srv/shared/app]", f"/srv/shared/app, {places[0]}]"))
        done = product.pi("true", cwd=places[0])
        checked = product.machine.root(["pi-agentctl", "check"])
        assert done.returncode == 78 and b"holds a character other than" in checked.stderr + checked.stdout, (done, checked)
        with_root(product, places[1])
        assert product.pi("true", cwd=places[1]).returncode == 0
        control_seen("a root beside it, without the colon, starts")
    finally:
        product.machine.install_policy(ATTACK_POLICY.read_text())
        product.machine.root(["rmdir", *places], check=True)


# Each of the two alone must be enough: the path may change after the first has looked.
@pytest.mark.parametrize("taken_out", [[], ["root-place-early", "root-alphabet"], ["root-place"]], ids=["nothing", "the first look", "the second look"])
def test_a_root_that_is_really_a_place_of_the_systems(taken_out, prove, product, weak):
    """The policy names it harmlessly; where root's own link leads is seen at the launch."""
    for target in (product, weak):
        target.machine.root("install -d -o alice -g alice /boot/project && ln -sfn /srv/shared/app /srv/shared/harmless", check=True)
        with_root(target, "/srv/shared/harmless")
        target.machine.root("ln -sfn /boot/project /srv/shared/harmless", check=True)

    def attack(target):
        done = target.pi("true", cwd="/boot/project")
        return Outcome(done.returncode == 0, done)

    try:
        if taken_out:
            with weak.without(*taken_out):
                assert not attack(weak).succeeded, "one look alone is not enough"
        else:
            on, _ = prove(attack, "root-place", "root-place-early", "root-alphabet")
            assert on.seen.returncode == 78 and b"belongs to the system" in on.seen.stderr, on
    finally:
        for target in (product, weak):
            target.machine.install_policy(ATTACK_POLICY.read_text())
            target.machine.root("rm -r /boot/project /srv/shared/harmless", check=True)

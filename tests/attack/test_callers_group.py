"""The control group in which sudo leaves the runner belongs to the caller: they kill it or freeze it before the runner has left, and after."""

import json
import os
import time

import pytest
from target import ATTACK_POLICY, INSIDE, POLICY_FILE, Outcome
from test_record import LOGS, without_journal

pytestmark = pytest.mark.position("user")

STUBBORN = ("python3", f"{INSIDE}/stubborn.py")
ROUNDS = 40
CLEAN_SECONDS = 10

# As root, for a group that is delegated to alice: starts `command` in it as alice, again and again, and acts when look(pid) says of a
# process of root's in it that the moment has come.
IN_A_GROUP = """
import json, os, random, signal, subprocess, sys, time
ALICE = ["setpriv", "--reuid=alice", "--regid=alice", "--init-groups", "env", "-i", "PATH=/usr/bin:/bin", "HOME=/home/alice"]

class Group:
    def __init__(self, name):
        self.path = f"/sys/fs/cgroup/{name}"
        os.mkdir(self.path)
        for file in ("", "cgroup.procs"):
            os.chown(f"{self.path}/{file}", 1000, 1000)

    def start(self, command):
        enter = lambda: open(f"{self.path}/cgroup.procs", "w").write("0")
        return subprocess.Popen(ALICE + command, cwd="/home/alice/projects/demo", preexec_fn=enter,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def runners(self):
        for pid in open(f"{self.path}/cgroup.procs").read().split():
            try:
                if open(f"/proc/{pid}/comm").read().strip() == "pi-agent-runner":
                    yield pid
            except OSError:
                pass

    def say(self, word, what="1"):
        with open(f"{self.path}/cgroup.{word}", "w") as file:
            file.write(what)

    def end(self):
        self.say("freeze", "0")
        while open(f"{self.path}/cgroup.procs").read():
            self.say("kill")
            time.sleep(0.01)
        os.rmdir(self.path)
"""

KILLING = IN_A_GROUP + """
caught, draw = 0, random.Random(sys.argv[2])
for turn in range(int(sys.argv[1])):
    group = Group(f"of-alice-{turn}")
    wrapper = group.start(["pi", "true"])
    delay = draw.uniform(0, 0.004)
    while wrapper.poll() is None and not list(group.runners()):
        pass
    time.sleep(delay)
    caught += bool(list(group.runners()))
    group.say("kill")
    wrapper.wait()
    group.end()
print(json.dumps(caught))
"""


def killed_in_the_record(target, session):
    """Whether its end was recorded by somebody else than its runner."""
    target.machine.root(["journalctl", "--sync"], check=True)
    said = target.machine.root(["pi-agentctl", "history", session]).stdout
    return b"did not record how" in said


def test_a_runner_ends_a_session_in_order_though_its_callers_control_group_is_killed(prove):
    def attack(target):
        traces = target.quiet_traces()
        session = target.session(*STUBBORN)
        (session.process.group.path / "cgroup.kill").write_text("1")
        target.expect_traces(traces, CLEAN_SECONDS)
        killed = killed_in_the_record(target, session.id)
        session.end()
        return Outcome(killed, killed)

    prove(attack, "own-scope", "late-mounts", "unit:BindsTo", "unit:After", quick=True)


def test_nothing_is_left_of_starts_whose_callers_control_group_is_killed_before_they_have_left_it(product):
    traces = product.quiet_traces()
    seed = os.environ.get("PI_AGENT_SEED", "0")
    done = product.machine.root(["python3", "-c", KILLING, str(ROUNDS), seed], timeout=120, check=True)
    caught = json.loads(done.stdout)
    assert caught >= ROUNDS // 4, f"seed {seed}: only {caught} of {ROUNDS} runners were killed before they had left"
    product.pi("true", user="bob", cwd="/home/bob/work/demo", check=True)  # sweeps
    product.expect_traces(traces, CLEAN_SECONDS)


# She calls a group of hers as systemd calls the runner's scope, and moves the runner there: that needs the right to write to the groups above
# both (`cgroups(7)`), and no right over the process. The name is everybody's to ask systemd for; here the bus tells it at once.
NAMING = IN_A_GROUP + """
import re, select
monitor = subprocess.Popen(["dbus-monitor", "--system", "member='StartTransientUnit'"], stdout=subprocess.PIPE, bufsize=0)

def name_of_scope():
    seen, until = b"", time.monotonic() + 10
    while time.monotonic() < until:
        if select.select([monitor.stdout], [], [], 0.1)[0]:
            seen += monitor.stdout.read(65536)
        found = re.search(rb"pi-agent-run-[0-9a-f]{32}[.]scope", seen)
        if found:
            return found.group().decode()

def children():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == 1000 and open(f"/proc/{pid}/comm").read().strip() == "pi-agent-runner":
                yield open(f"/proc/{pid}/cgroup").read().strip().splitlines()[-1]
        except OSError:
            pass

def as_alice(script):
    return subprocess.run(ALICE + ["sh", "-c", script], stderr=subprocess.DEVNULL).returncode == 0

monitor.stdout.read(1)
group = Group("of-alice-named")
wrapper = group.start(["pi", "sleep", "1"])
named = f"{group.path}/in/{name_of_scope()}"
runner = next(group.runners(), None)
moved = bool(runner) and as_alice(f"mkdir -p {named} && echo {runner} >{named}/cgroup.procs")
seen = set()
while wrapper.poll() is None:
    seen.update(children())
    time.sleep(0.01)
for path in filter(os.path.exists, (named, f"{group.path}/in")):
    while open(f"{path}/cgroup.procs").read():
        time.sleep(0.05)
    os.rmdir(path)
group.end()
monitor.kill()
print(json.dumps({"moved": moved, "seen": sorted(seen), "status": wrapper.returncode}))
"""
# How long and how much systemd is kept busy. An idle host answers what a busy one is held up by, and on that the start gives up where there is more.
BUSY = [(seconds, at_once) for at_once in (20, 100, 300) for seconds in (2, 1, 0.5, 0.25)]


def test_a_group_that_its_user_calls_as_the_runners_scope_is_not_taken_for_it(prove):
    def attack(target):
        answers = []
        for seconds, at_once in BUSY:
            # Meanwhile systemd moves nobody, as a rule.
            eve = target.machine.popen(["python3", f"{INSIDE}/bus.py", "busy", str(seconds), str(at_once)], user="eve")
            time.sleep(0.5)
            answers.append(json.loads(target.machine.root(["python3", "-c", NAMING], timeout=120, check=True).stdout))
            eve.communicate(timeout=30)
            if any("of-alice-named" in group for group in answers[-1]["seen"]):
                return Outcome(True, answers[-1])
        assert any(answer["moved"] and answer["seen"] for answer in answers), f"the runner was never moved, so this shows nothing: {answers}"
        return Outcome(False, answers)

    prove(attack, "scope-place", quick=True)


# As root, what systemd makes of a runner that was killed in the moment of the move: a scope in which nobody ever was. None gets empty any
# more, which is when systemd removes a scope.
EMPTY_SCOPE = """
import os, subprocess, time
dead = os.fork()
if dead == 0:
    os._exit(0)
time.sleep(0.2)
name = f"pi-agent-run-{'7' * 32}.scope"
subprocess.run(["busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
                "StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail", "2", "PIDs", "au", "1", str(dead), "Slice", "s", "pi-agent-u1000.slice", "0"], check=True)
time.sleep(0.5)
print(subprocess.run(["systemctl", "is-active", name], capture_output=True, text=True).stdout)
"""


def test_an_empty_scope_that_a_killed_start_left_goes_with_the_next_start_of_anybody(prove):
    def attack(target):
        traces = target.quiet_traces()
        other = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
        made = target.machine.root(["python3", "-c", EMPTY_SCOPE], check=True).stdout
        assert b"\nactive\n" in made, f"this systemd leaves no such scope, so this shows nothing: {made}"
        target.pi("true", user="bob", cwd="/home/bob/work/demo", check=True)
        assert other.process.poll() is None, "a scope that somebody is in was taken for an empty one"
        other.end()
        try:
            target.expect_traces(traces, CLEAN_SECONDS)
        except AssertionError as left:
            target.machine.root("systemctl stop 'pi-agent-run-*.scope'", check=True)
            return Outcome(True, str(left))
        return Outcome(False, made)

    prove(attack, "sweep-scopes", quick=True)


@pytest.mark.parametrize("policy", ["", "wrapper: {enable: false}\n"], ids=["remove", "apply with enable: false"])
def test_an_empty_scope_goes_where_nobody_starts_any_more(policy, prove):
    """With the user's slice, which it keeps."""

    def attack(target):
        traces = target.quiet_traces()
        made = target.machine.root(["python3", "-c", EMPTY_SCOPE], check=True).stdout
        assert b"\nactive\n" in made, f"this systemd leaves no such scope, so this shows nothing: {made}"
        try:
            target.machine.write(POLICY_FILE, ATTACK_POLICY.read_text() + policy)
            done = target.machine.root(["pi-agentctl", "apply"] if policy else ["pi-agentctl", "remove", "--yes"], check=True)
            target.expect_traces(traces, CLEAN_SECONDS)
        except AssertionError as left:
            target.machine.root("systemctl stop 'pi-agent-run-*.scope'", check=True)
            return Outcome(True, str(left))
        finally:
            target.machine.install_policy(ATTACK_POLICY.read_text())
        assert f"done: stop pi-agent-run-{'7' * 32}.scope".encode() in done.stdout, done
        return Outcome(False, made)

    prove(attack, "sweep-scopes", quick=True)


# A direct call with no socket is refused, and recorded, before the runner has left. Before it writes it reads the last byte of the record's file.
# The kernel asks here whether it may (fanotify(7)): the group is told to freeze, and then the answer is yes, so that the runner stops with the
# file open between what comes before that byte and the write.
FREEZING = IN_A_GROUP + f"""
import ctypes, select, struct
RECORD = "{LOGS}/record.jsonl"
CLASS_CONTENT, CLOEXEC, MARK_ADD, ACCESS_PERM, ALLOW, AT_FDCWD = 4, 1, 1, 0x20000, 1, -100
EVENT = struct.Struct("=IBBHQii")
libc = ctypes.CDLL(None, use_errno=True)
asked = libc.fanotify_init(CLASS_CONTENT | CLOEXEC, os.O_RDONLY | os.O_CLOEXEC)
if libc.fanotify_mark(asked, MARK_ADD, ctypes.c_uint64(ACCESS_PERM), AT_FDCWD, RECORD.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))

def freeze_at_the_record(group):
    sudo = group.start(["sudo", "-n", "/usr/libexec/pi-agent/pi-agent-runner"])
    while not select.select([asked], [], [], 0.1)[0]:
        if sudo.poll() is not None:
            return False
    *_, file, pid = EVENT.unpack(os.read(asked, EVENT.size))
    reads = str(pid) in group.runners()
    group.say("freeze")
    os.write(asked, struct.pack("=iI", file, ALLOW))
    os.close(file)
    os.close(asked) # others are not asked any more
    while "frozen 1" not in open(f"{{group.path}}/cgroup.events").read():
        time.sleep(0.01)
    return reads

group = Group("of-alice-frozen")
print(json.dumps(freeze_at_the_record(group)), flush=True)
sys.stdin.read()
group.end()
"""


def test_a_runner_that_is_frozen_while_it_records_keeps_nobody_from_starting(prove):
    """On a host without a journal, all append to one file."""

    def attack(target):
        with without_journal(target, f"install -d -m 700 {LOGS} && umask 077 && echo '{{}}' >{LOGS}/record.jsonl"):
            freezer = target.machine.popen(["python3", "-c", FREEZING], user="root")
            held = json.loads(freezer.stdout.readline())
            done = target.pi("echo", "ran", user="bob", cwd="/home/bob/work/demo", timeout=20) if held else None
            freezer.communicate(timeout=30)
        assert held, "no runner was frozen at the file, so this shows nothing"
        return Outcome(done.stdout != b"ran\n", done)

    prove(attack, "record-without-lock", quick=True)

"""Sessions that come and go while an administrator's command looks at them: nobody keeps it from its work by starting and failing."""

import json

import pytest
from target import ATTACK_POLICY, POLICY_FILE, SESSIONS, Outcome

pytestmark = pytest.mark.position("user")

WORK = "/home/bob/work/demo"
CONFIG = "/home/alice/.pi/agent"
HALF_MADE = "5" * 32
TURNS = 12
STOP = ATTACK_POLICY.read_text() + "wrapper: {enable: false}\n"
# What a start is for a moment: a directory that its runner has locked, in which nothing is yet.
MAKING = f"""
import fcntl, os, sys
os.mkdir("{SESSIONS}/{HALF_MADE}", 0o700)
fcntl.flock(os.open("{SESSIONS}/{HALF_MADE}", os.O_RDONLY), fcntl.LOCK_EX)
print("made", flush=True)
sys.stdin.read()
os.rmdir("{SESSIONS}/{HALF_MADE}")
"""
COMMANDS = {
    "the emergency stop": (STOP, ["pi-agentctl", "apply", "--no-canary"]),
    "the end of all sessions": (ATTACK_POLICY.read_text(), ["pi-agentctl", "stop", "--all"]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_start_that_has_just_begun_does_not_break(command, prove):
    policy, line = COMMANDS[command]

    def attack(target):
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60", user="bob", cwd=WORK)
        making = target.machine.popen(["python3", "-c", MAKING], user="root")
        assert making.stdout.readline() == b"made\n"
        target.machine.write(POLICY_FILE, policy)
        done = target.machine.root(line)
        lives = target.machine.root(["systemctl", "is-active", "--quiet", session.service]).returncode == 0
        making.communicate(timeout=20)
        target.machine.install_policy(ATTACK_POLICY.read_text())
        session.end()
        return Outcome(lives, done)

    on, _ = prove(attack, "half-made-sessions", quick=True)
    assert on.seen.returncode == 0, on


FAILING = "while test ! -e /tmp/enough; do pi true </dev/null >/dev/null 2>&1; echo x >>/tmp/failed; done"


def test_a_user_who_starts_and_fails_all_the_time_keeps_apply_and_the_emergency_stop_from_nothing(product):
    keep, restore = f"test ! -e {CONFIG} || cp -a {CONFIG} /root/config-before", f"rm -rf {CONFIG}; test ! -e /root/config-before || mv /root/config-before {CONFIG}"
    product.machine.root(f"{keep}; install -d -o alice -g alice {CONFIG}; rm -f /tmp/enough /tmp/failed", check=True)
    product.machine.write(f"{CONFIG}/settings.json", "{", owner="alice")
    loops = [product.machine.popen(FAILING, cwd="/home/alice/projects/demo") for _ in range(3)]
    try:
        for turn in range(TURNS):
            session = product.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60", user="bob", cwd=WORK)
            product.machine.write(POLICY_FILE, STOP)
            stopped = product.machine.root(["pi-agentctl", "apply", "--no-canary"], timeout=40)
            lives = product.machine.root(["systemctl", "is-active", "--quiet", session.service]).returncode == 0
            product.machine.write(POLICY_FILE, ATTACK_POLICY.read_text())
            applied = product.machine.root(["pi-agentctl", "apply", "--no-canary"], timeout=40)
            listed = product.machine.root(["pi-agentctl", "sessions", "--json"], timeout=20)
            session.end()
            for done in (stopped, applied, listed):
                assert done.returncode == 0, f"turn {turn}: {done}"
            assert not lives, f"turn {turn}: {stopped}"
            json.loads(listed.stdout)
    finally:
        product.machine.root(f"touch /tmp/enough; {restore}", check=True)
        for loop in loops:
            loop.communicate(timeout=30)
        product.machine.install_policy(ATTACK_POLICY.read_text())
    failed = int(product.machine.root("wc -l </tmp/failed; rm -f /tmp/failed /tmp/enough", check=True).stdout)
    assert failed > TURNS, f"only {failed} starts failed meanwhile"


# A session whose unit is there and whose runner is not, or has told its end.
ENDING = "4" * 32
MANY_STARTS = "n=0; while test $n -lt 25; do pi true </dev/null || exit; n=$((n + 1)); done"


def test_a_session_in_the_middle_of_its_end_takes_the_place_of_no_other(product):
    """Each start looks for leftovers of the session, and holds none of them while it asks systemd."""
    begin = f"systemd-run -q --collect --unit=pi-agent-{ENDING} sleep 600; mkdir -m 700 {SESSIONS}/{ENDING}; ln -s $(id -u alice) {SESSIONS}/{ENDING}/user"
    with product.policy_with("limits: {sessions: 1}"):
        product.machine.run("pi true", cwd="/home/alice/projects/demo", check=True)
        product.machine.root(f"rm -f /tmp/enough /tmp/failed; {begin}", check=True)
        loops = [product.machine.popen(FAILING, user="bob", cwd=WORK) for _ in range(3)]
        try:
            done = product.machine.run(MANY_STARTS, cwd="/home/alice/projects/demo", timeout=120)
        finally:
            product.machine.root(f"touch /tmp/enough; systemctl stop pi-agent-{ENDING}; rm -rf {SESSIONS}/{ENDING}", check=True)
            for loop in loops:
                loop.communicate(timeout=30)
    looked = int(product.machine.root("wc -l </tmp/failed; rm -f /tmp/failed /tmp/enough", check=True).stdout)
    assert done.returncode == 0 and done.stderr == b"", done
    assert looked > TURNS, f"only {looked} starts looked at it meanwhile"


# As root: a session that is over and takes long to remove, and a start whose directory is there before it is locked. The kernel lists the
# newest first. When the sweep is at the one, the start comes to locking the other.
OVERTAKING = f"""
import fcntl, os, subprocess, sys, time
BEGUN, OVER = "{SESSIONS}/" + "1" * 32, "{SESSIONS}/" + "2" * 32
os.mkdir(BEGUN, 0o700)
os.makedirs(OVER + "/root")
for number in range(60000):
    os.mkdir(f"{{OVER}}/root/{{number}}")
PI = ["setpriv", "--reuid=alice", "--regid=alice", "--init-groups", "env", "-i", "PATH=/usr/bin:/bin", "HOME=/home/alice", "pi", "true"]
sweeping = subprocess.Popen(PI, cwd="/home/alice/projects/demo", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
until = time.monotonic() + 20
while os.stat(OVER + "/root").st_nlink == 60002 and time.monotonic() < until:
    pass
lock = os.open(BEGUN, os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
assert os.path.exists(OVER), "the sweep was over before, so this shows nothing"
assert sweeping.wait() == 0
print(os.path.exists(BEGUN), flush=True)
subprocess.run(["rm", "-rf", BEGUN, OVER])
"""


@pytest.mark.parametrize("method", ["systemd", "bwrap"])
def test_a_start_that_locks_its_directory_while_another_one_sweeps_keeps_it(method, prove, product, weak):
    def attack(target):
        done = target.machine.root(["python3", "-c", OVERTAKING], check=True)
        return Outcome(done.stdout != b"True\n", done)

    section = f"sandbox: {{method: {method}}}"
    with product.policy_with(section), weak.policy_with(section):
        prove(attack, "sweep-lock", quick=True)

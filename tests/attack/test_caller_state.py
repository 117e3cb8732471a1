"""What a caller can choose for a program that sudo runs: the runner takes all of it back, and the agent never sees it."""

import json
import time

import pytest
from session import main_pid, pid_of_user, pids_in
from target import Outcome

pytestmark = pytest.mark.position("user")

CONVERSATION = "lambda c, s: ask(c, s, ['sh', '-c', 'echo $PI_AGENT_SESSION; sleep 60'])"
# In the caller, before sudo: everything that can be made worse.
WORSEN = """
import signal
def worsen():
    for which, value in LIMITS:
        limit(which, value, resource.getrlimit(which)[1])
    os.nice(19)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    libc.syscall(251, 1, 0, 3 << 13)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR2})
    os.umask(0)
    libc.personality(STICKY_TIMEOUTS)
STICKY_TIMEOUTS = 0x4000000
# Soft limits: a machine inside another one may not be allowed to raise a hard one again.
LIMITS = [(resource.RLIMIT_NPROC, 500), (resource.RLIMIT_STACK, 1 << 20),
          (resource.RLIMIT_NOFILE, 100), (resource.RLIMIT_AS, 1 << 32), (resource.RLIMIT_DATA, 1 << 32), (resource.RLIMIT_CPU, 30),
          (resource.RLIMIT_FSIZE, 1 << 30), (resource.RLIMIT_MEMLOCK, 0), (resource.RLIMIT_SIGPENDING, 10)]
"""
# As root, looking at a process from outside.
LOOK = """
import json, os, sys
def look(pid):
    status = dict(line.rstrip("\\n").split(":", 1) for line in open(f"/proc/{pid}/status"))
    stat = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return {
        "limits": [line.split("  ")[0] + ": " + " ".join(line[26:].split()[:2]) for line in open(f"/proc/{pid}/limits").read().splitlines()[1:]],
        "nice": int(stat[16]), "policy": int(stat[38]), "session leader": int(stat[3]) == int(pid), "terminal": int(stat[4]),
        "oom_score_adj": int(open(f"/proc/{pid}/oom_score_adj").read()),
        "processors": status["Cpus_allowed_list"].strip(), "umask": status["Umask"].strip(),
        "ignored": int(status["SigIgn"], 16), "blocked": int(status["SigBlk"], 16),
        "groups": status["Groups"].strip(), "uid": status["Uid"].split(), "cwd": os.readlink(f"/proc/{pid}/cwd"),
        "descriptors": sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd")),
        "personality": int(open(f"/proc/{pid}/personality").read(), 16),
        "control group": open(f"/proc/{pid}/cgroup").read().strip(),
    }
print(json.dumps([look(pid) for pid in sys.argv[1:]]))
"""
STICKY_TIMEOUTS = 0x4000000
SIGPIPE, TERM_HUP_INT_QUIT = 1 << 12, 1 << 14 | 1 << 0 | 1 << 1 | 1 << 2


class BadlyCalled:
    """A session whose runner was called in the worst way, and what runner, agent and PID 1 then have."""

    def __init__(self, target, how="", user="alice"):
        target.quiet_traces()
        script = f"{WORSEN}\nprint(json.dumps(call({CONVERSATION}, prepare=worsen{how})))"
        self.process = target.machine.popen(["python3", "-c", target.prelude + script], user=user)
        finding = "until systemctl list-units --no-legend --plain 'pi-agent-????????????????????????????????.service' | grep ' running '; do sleep 0.1; done"
        unit = target.machine.root(finding, timeout=20).stdout.decode().split()[0]
        self.id = unit.removeprefix("pi-agent-").removesuffix(".service")
        runner = pid_of_user(target.machine, f"pi-agent-run-{self.id}.scope", "root")
        until = time.monotonic() + 10
        while len(processes := pids_in(target.machine, unit)) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        launcher = main_pid(target.machine, unit)
        agent = next(pid for pid in processes if pid != launcher)
        caller = target.machine.root(["ps", "-o", "ppid=", "-p", str(runner)], check=True).stdout.decode().strip()
        done = target.machine.root(["python3", "-c", LOOK, str(runner), str(agent), "1", caller], check=True)
        self.runner, self.agent, self.init, self.caller = json.loads(done.stdout)
        self.process.kill_all()
        self.process.communicate(timeout=20)


@pytest.fixture(scope="module")
def worst(product):
    return BadlyCalled(product)


def test_the_runners_limits_are_those_of_the_host(prove, product):
    def attack(target):
        # Not through sudo, whose PAM modules reset soft limits on some hosts.
        called = BadlyCalled(target, ", argv=DIRECT, pair=socket_made_by(1000), env={'SUDO_UID': '1000'}", user="root")
        own = ("Max core", "Max open files")
        expected = [line for line in called.init["limits"] if not line.startswith(own)]
        return Outcome(not set(expected) <= set(called.runner["limits"]), called.runner["limits"])

    on, _ = prove(attack, "reset-limits", quick=True)
    assert "Max core file size: 0 0" in on.seen


def test_the_runner_is_scheduled_as_any_other_program(prove):
    def attack(target):
        called = BadlyCalled(target)
        seen = {name: called.runner[name] for name in ("nice", "policy", "oom_score_adj", "processors")}
        return Outcome(seen != {"nice": 0, "policy": 0, "oom_score_adj": 0, "processors": called.init["processors"]}, seen)

    prove(attack, "reset-scheduling", quick=True)


def test_the_runner_answers_as_this_host_does(prove):
    """Bits of a personality(2) that running a set-id program does not clear."""

    def attack(target):
        seen = BadlyCalled(target).runner["personality"]
        return Outcome(seen != 0, seen)

    prove(attack, "reset-memory-and-keys", quick=True)


def test_the_runner_ignores_and_blocks_no_signal_that_the_caller_chose(prove):
    def attack(target):
        runner = BadlyCalled(target).runner
        return Outcome((runner["ignored"], runner["blocked"]) != (SIGPIPE, TERM_HUP_INT_QUIT), [hex(runner["ignored"]), hex(runner["blocked"])])

    prove(attack, "reset-signals", quick=True)


def test_the_runner_leaves_the_callers_session(prove):
    def attack(target):
        runner = BadlyCalled(target).runner
        return Outcome(not runner["session leader"] or runner["terminal"] != 0, runner)

    prove(attack, "leave-session", quick=True)


# A keyboard whose ^Z stops root in the middle of what it holds. sudo becomes the runner, so that may lead the caller's session.
LOCKED_TERMINAL = """
import fcntl, select, termios
TIOCSPTLCK = 0x40045431
master, slave = os.openpty()
def lead_a_session_with_a_terminal_that_nobody_can_open():
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    fcntl.ioctl(master, TIOCSPTLCK, struct.pack("i", 1))
def look(channel, stdio):
    ask(channel, stdio, ["sleep", "2"])
    select.select([channel], [], [], PATIENCE)
    (runner,) = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    seen["terminal"] = int(open(f"/proc/{runner}/stat").read().rsplit(")", 1)[1].split()[4])
seen = {}
answer = call(look, prepare=lead_a_session_with_a_terminal_that_nobody_can_open)
tell(answer | seen)
"""


def test_the_runner_keeps_no_terminal_of_a_session_that_it_leads(prove):
    def attack(target):
        answer = target.play(LOCKED_TERMINAL)
        return Outcome(answer["ended"] is not None and answer["terminal"] != 0, answer)

    on, _ = prove(attack, "leave-session")
    assert on.seen["status"] == 77 and "opening the terminal" in on.seen["said"], on


def test_the_runner_keeps_no_descriptor_of_its_caller(prove):
    # As root: sudo closes what is above standard error, a call without it does not.
    script = """
os.dup2(os.open("/etc/hostname", os.O_RDONLY), 50, inheritable=True)
own, theirs = socket_made_by(1000)
stdio = Stdio()
child = subprocess.Popen(DIRECT, stdin=theirs, env={"SUDO_UID": "1000"}, close_fds=False, stderr=subprocess.DEVNULL)
ask(own, stdio, ["sleep", "60"])
wait_for_agent('sleep')
tell([os.readlink(f"/proc/{child.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{child.pid}/fd")])
child.kill()
"""

    def attack(target):
        seen = target.play(script, user="root")
        return Outcome("/etc/hostname" in seen, seen)

    on, _ = prove(attack, "close-descriptors", quick=True)
    assert len(on.seen) > 4, "the look itself does not work"


def test_nothing_of_the_callers_state_reaches_the_agent(worst, product, control_seen):
    agent, runner = worst.agent, worst.runner
    # systemd's own niceness, and the score of the unit: the agent goes before the runner when memory runs out
    assert (agent["nice"], agent["policy"], agent["oom_score_adj"]) == (worst.init["nice"], 0, 500)
    assert agent["processors"] == worst.init["processors"]
    assert (agent["ignored"], agent["blocked"]) == (0, 0)
    assert "Max core file size: 0 0" in agent["limits"]
    lowered = ("Max cpu", "Max file size", "Max address", "Max data", "Max stack", "Max pending")
    assert [line for line in agent["limits"] if line.startswith(lowered)] == [line for line in worst.init["limits"] if line.startswith(lowered)]
    assert runner["groups"] == "" and set(runner["uid"]) == {"0"} and runner["cwd"] == "/" and runner["umask"] == "0077"
    assert f"pi-agent-run-{worst.id}.scope" in runner["control group"] and "harness" not in agent["control group"]
    with product.sudo_that_waits():
        sudo = BadlyCalled(product).caller
    assert (sudo["nice"], sudo["oom_score_adj"], sudo["personality"]) == (19, 1000, STICKY_TIMEOUTS), sudo
    control_seen("the same look finds it in a sudo that stays between the caller and the runner")


def test_the_agent_has_the_callers_umask_for_its_files_and_nothing_else_of_it(product):
    answer = product.play("tell(call(lambda c, s: ask(c, s, ['sh', '-c', 'umask; touch x; stat -c %a x; rm x'], umask=0o027)))")
    assert answer["out"].split() == ["0027", "640"], answer


BAD_BUS = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/tmp/bus-of-alice"


def test_a_variable_that_would_send_root_to_another_bus(prove, product, weak):
    # sudo keeps nothing for the runner by our own rule, so an administrator's careless line about that very program is needed, too.
    def attack(target):
        name, value = BAD_BUS.split("=", 1)
        with target.site_default("!env_reset"):
            answer = target.play(f"tell(call(lambda c, s: ask(c, s, ['true']), env={{**os.environ, {name!r}: {value!r}}}))")
        return Outcome(answer["ended"] is None, answer)

    prove(attack, "empty-environment")


@pytest.mark.parametrize(
    "variable", ["GCONV_PATH=/tmp", "LD_PRELOAD=/tmp/x.so", "GLIBC_TUNABLES=glibc.malloc.check=3", "SPDLOG_LEVEL=trace", "TZ=/tmp/x", "X=() { :; }"]
)
def test_a_variable_of_the_caller_changes_nothing(variable, product, control_seen):
    name, value = variable.split("=", 1)
    script = f"tell(call(lambda c, s: ask(c, s, ['env']), env={{**os.environ, {name!r}: {value!r}, 'LC_ALL': 'C'}}))"
    answer = product.play(script)
    assert answer["ended"] == 0 and not any(line.startswith(name + "=") for line in answer["out"].splitlines()), answer
    assert "MANAGED_MARKER=" in answer["out"]
    control_seen("the same look at the agent's variables finds the policy's")


LOWERED = {"RLIMIT_NOFILE": 8, "RLIMIT_AS": 1 << 24, "RLIMIT_FSIZE": 0, "RLIMIT_CPU": 1, "RLIMIT_STACK": 1 << 16, "RLIMIT_NPROC": 1}


@pytest.mark.parametrize("limit", LOWERED)
def test_a_hard_limit_lowered_by_the_caller_is_raised_again_or_refused_in_words(limit, product):
    """Root may raise it where nothing outside the machine forbids that. Some are so low that sudo itself cannot run."""
    before = product.quiet_traces()
    answer = product.play(f"tell(call(lambda c, s: ask(c, s, ['true']), prepare=lambda: limit(resource.{limit}, {LOWERED[limit]})))")
    assert answer["ended"] == 0 or answer["status"] not in (0, None), answer
    product.expect_traces(before)

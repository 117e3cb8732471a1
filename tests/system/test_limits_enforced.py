"""The limits of the policy: enforced where the host has the controllers (the legacy boot), refused by name where it has not."""

import json
import os
import time
from pathlib import Path

import pytest
import record_check
from administering import answer
from cache import Build
from engine import engine_of, named_method
from launching import DEMO, PLAYING_AGENT, PLAYING_POLICY, assert_refused, finish, leftovers, pi, place_of, session, wait_until_empty, written_policy
from legacy import NoLegacyHierarchy
from machine import Machine

UNAVAILABLE = 69
LIMIT = 75
INVALID = 78
KILLED = -9

HOG = "python3 -c 'held = []\nwhile True: held.append(bytearray(b\"x\" * (8 << 20)))'"
# Threads, because bash would wait for a fork that fails.
BOMB = """python3 -c '
import os, threading, time
threading.stack_size(32768)
count = 0
try:
    while count < 500: threading.Thread(target=time.sleep, args=(600,), daemon=True).start(); count += 1
except RuntimeError: pass
print(count, flush=True)
os._exit(0)'"""
BUSY = """python3 -c '
import os, time
until = time.monotonic() + 3
if os.fork() == 0:
    while time.monotonic() < until: pass
    os._exit(0)
while time.monotonic() < until: pass
os.wait()
times = os.times()
print(times.user + times.system + times.children_user + times.children_system)'
cat /proc/self/cgroup"""
STAYING = "echo ready; cat"


@pytest.fixture(scope="module")
def legacy(machine_name):
    """A machine whose systemd has the controllers, under the policy of playing_agent.py."""
    try:
        machine = Machine(f"legacy-{os.getpid()}", machine_name, legacy=True)
    except NoLegacyHierarchy as reason:
        pytest.skip(str(reason))
    with machine as booted:
        booted.create(agent=None)
        booted.install(Build(machine_name))
        booted.boot()
        booted.write(PLAYING_AGENT, Path(__file__).with_name("playing_agent.py").read_text(), mode=0o755)
        booted.install_policy(PLAYING_POLICY)
        yield booted
        wait_until_empty(lambda: left(booted))
        record_check.require_valid(booted)
        booted.stop()


@pytest.fixture
def limited(legacy):
    """limited(section) applies a policy with these limits, for one test, and returns its text."""

    def apply(section):
        text = PLAYING_POLICY + f"limits: {section}\n"
        legacy.install_policy(text)
        return text

    yield apply
    legacy.install_policy(PLAYING_POLICY)


def only_message(done):
    """What pi said; bash tells of a killed command, too."""
    (message,) = [line for line in done.stderr.decode().splitlines() if line.startswith("pi: ")]
    return message


def used_processor(done):
    """Seconds, by the word of BUSY."""
    assert (done.returncode, done.stderr) == (0, b""), done
    return float(done.stdout.split()[0])


def times_throttled(legacy):
    """How often the kernel held a session back that would use six seconds of processors in three; however busy the host is."""
    with session(legacy, "sh", f"echo ready; {BUSY} >/dev/null; cat") as process:
        time.sleep(3)
        (path,) = legacy.root("find /sys/fs/cgroup/cpu/ -name 'pi-agent-*.service' ! -name '*cleanup*'", check=True).stdout.decode().split()
        counters = dict(line.split() for line in legacy.read(f"{path}/cpu.stat").decode().splitlines())
        assert finish(process)[0] == 0
    return int(counters["nr_throttled"])


def left(machine):
    """Without the runners' scopes: under version 1 a systemd in a container is not told that a control group is empty, and keeps them, with the slice
    that holds them."""
    lines = leftovers(machine)
    kept = ("pi-agent-run-", "pi-agent-u") if any(line.startswith("pi-agent-run-") for line in lines) else ()
    return [line for line in lines if not line.startswith(kept)]


def test_a_command_that_takes_too_much_memory_is_killed_and_the_agent_goes_on(legacy, limited):
    text = limited("{memory: 256M}")
    done = pi(legacy, "sh", f"{HOG}; echo status $?; echo still here")
    assert (done.returncode, done.stdout) == (0, b"status 137\nstill here\n"), done
    message = only_message(done)
    assert f"out of memory: the session reached its limit of 256M (limits.memory, {place_of(text, '256M')})" in message
    assert "the kernel killed one of its processes, and the agent went on; let it do less at once" in message


def test_an_agent_that_takes_too_much_memory_is_killed_and_its_user_is_told_why(legacy, limited):
    limited("{memory: 256M}")
    done = pi(legacy, "sh", f"exec {HOG}")
    assert (done.returncode, done.stdout) == (KILLED, b""), done
    assert "and the kernel killed the agent, or what it ran" in only_message(done)
    # Neither the runner nor the next session takes harm.
    assert pi(legacy, "sh", "echo well").stdout == b"well\n"


@pytest.mark.parametrize("method", ["podman", "docker"])
def test_the_limits_hold_a_container(legacy, limited, method):
    """podman's has no control group of its own, docker's is below the unit's: the unit's limits hold both."""
    with engine_of(legacy, method):
        text = limited(f"{{memory: 256M, tasks: 100, cpu: 100%}}\nsandbox: {named_method(method)}")
        done = pi(legacy, "sh", f"{HOG}; echo status $?; echo still here")
        assert (done.returncode, done.stdout) == (0, b"status 137\nstill here\n"), done
        assert f"out of memory: the session reached its limit of 256M (limits.memory, {place_of(text, '256M')})" in only_message(done)
        done = pi(legacy, "sh", f"exec {HOG}")
        assert (done.returncode, done.stdout) == (KILLED, b""), done
        assert "and the kernel killed the agent, or what it ran" in only_message(done)
        done = pi(legacy, "sh", BOMB)
        assert done.returncode == 0 and int(done.stdout) < 100 and "limits.tasks" in only_message(done), done
        limited(f"{{cpu: 10%}}\nsandbox: {named_method(method)}")
        assert used_processor(pi(legacy, "sh", BUSY)) < 1  # of six seconds; that the limit held it, and no busy host, is what the kernel says:
        assert times_throttled(legacy) > 5
        wait_until_empty(lambda: left(legacy))
        # Of version 1 an engine makes groups in hierarchies that systemd does not look after. Machines that run now share those.
        ours = {f"pi-agent-{start['id']}.service" for start in answer(legacy, "history")["starts"]}
        groups = legacy.root("find /sys/fs/cgroup -path '*/pi.slice/*' -name 'pi-agent-[0-9a-f]*.service'", check=True).stdout.decode().split()
        assert len(ours) >= 4 and not [group for group in groups if Path(group).name in ours], groups


def test_a_share_is_of_this_hosts_memory(legacy, limited):
    limited("{memory: 25%}")
    with session(legacy, "sh", STAYING) as process:
        (path,) = legacy.root("find /sys/fs/cgroup/memory -name 'pi-agent-*.service' ! -name '*cleanup*'", check=True).stdout.decode().split()
        limit = int(legacy.read(f"{path}/memory.limit_in_bytes"))
        assert finish(process)[0] == 0
    total = 1024 * int(legacy.root("grep ^MemTotal /proc/meminfo", check=True).stdout.split()[1])
    assert abs(limit / total - 0.25) < 0.01


def test_a_bomb_of_tasks_is_held_and_told(legacy, limited):
    text = limited("{tasks: 64}")
    done = pi(legacy, "sh", BOMB)
    assert done.returncode == 0 and 20 < int(done.stdout) < 64, done
    message = only_message(done)
    assert f"out of processes: the session reached its limit of 64 (limits.tasks, {place_of(text, '64')})" in message
    assert "failed inside (EAGAIN)" in message


def test_a_session_has_as_much_processor_as_the_policy_says(legacy, limited):
    limited("{cpu: 30%}")
    done = pi(legacy, "sh", BUSY)
    used = float(done.stdout.split()[0])
    assert (done.returncode, done.stderr) == (0, b""), done
    assert used < 1.5, done  # of six seconds; that the limit held it, and no busy host, is what the next test shows


def test_the_kernel_counts_the_throttling(legacy, limited):
    limited("{cpu: 10%}")  # less than a busy host leaves to each of ten
    assert times_throttled(legacy) > 5


def test_a_session_ends_when_its_time_is_over_and_says_so(legacy, limited):
    text = limited("{runtime: 10s}")
    started = time.monotonic()
    done = pi(legacy, "sh", "trap '' TERM; setsid sleep 1000 & echo begun; sleep 60; echo not here")
    assert 8 < time.monotonic() - started < 16
    assert (done.returncode, done.stdout) == (KILLED, b"begun\n"), done
    assert f"out of time: a session may last 10s (limits.runtime, {place_of(text, '10s')}), and this one was ended; start pi again" in only_message(done)
    wait_until_empty(lambda: left(legacy))


def test_no_more_sessions_start_than_the_policy_says(legacy, limited):
    text = limited("{sessions: 2}")
    with session(legacy, "sh", STAYING) as one, session(legacy, "sh", STAYING) as two:
        refused = pi(legacy, "sh", "echo third")
        assert_refused(refused, LIMIT, f"limit: alice has 2 sessions, the most that a user may have at once (limits.sessions, {place_of(text, '2}')})")
        assert finish(one)[0] == 0
        assert finish(two)[0] == 0
    assert pi(legacy, "sh", "echo third").stdout == b"third\n"


def test_the_runner_is_in_no_group_that_the_limits_hold(legacy, limited):
    limited("{memory: 256M, tasks: 64, cpu: 50%}")
    with session(legacy, "sh", STAYING) as process:
        groups = legacy.root("cat /proc/$(pgrep -f ^/usr/libexec/pi-agent/pi-agent-runner | head -1)/cgroup", check=True).stdout.decode()
        adjusted = legacy.root("cat /proc/$(pgrep -x pi-agent-exec)/oom_score_adj /proc/$(pgrep -f ^/usr/libexec/pi-agent/pi-agent-runner | head -1)/oom_score_adj").stdout
        assert finish(process)[0] == 0
    assert "pi-agent-run-" in groups and ".service" not in groups, groups
    assert adjusted == b"500\n0\n"


def test_a_session_below_its_limits_ends_without_a_word(legacy, limited):
    limited("{memory: 1G, tasks: 1000, cpu: 100%, runtime: 1h, sessions: 3}")
    done = pi(legacy, "sh", "git --version >/dev/null && cat /AGENTS.md")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert b"- Limits of the session: 1G of memory, 1000 processes and threads, 100% of one processor, 1h of time." in done.stdout


def test_the_limits_are_explained(legacy, limited):
    text = limited("{memory: 1G, runtime: 1h}")
    shown = legacy.run(["pi-agentctl", "explain"], cwd=DEMO, check=True).stdout.decode()
    assert f"limits:   a session: memory 1G ({place_of(text, '1G')}), tasks 4096 (default), cpu not limited, runtime 1h" in shown
    assert "not enforced" not in shown
    data = json.loads(legacy.run(["pi-agentctl", "explain", "--json"], cwd=DEMO, check=True).stdout)
    assert data["limits"]["memory"] == {"value": "1G", "where": place_of(text, "1G")}
    assert data["limits"]["not_enforced"] == []
    assert b"not enforced" not in legacy.root(["pi-agentctl", "check"], check=True).stdout


@pytest.fixture
def idle(playing):
    """The usual machine, whose control groups have no controllers."""
    controllers = playing.read("/sys/fs/cgroup/cgroup.controllers").split()
    if {b"memory", b"pids", b"cpu"} & {*controllers}:
        pytest.skip(f"this host's unified hierarchy has controllers ({controllers}), so the machine lacks none")
    return playing


@pytest.mark.parametrize(("key", "value", "controller"), [("memory", "8G", "memory"), ("tasks", "100", "pids"), ("cpu", "50%", "cpu")])
def test_a_limit_that_the_host_cannot_enforce_is_refused_before_anything_is_made(idle, key, value, controller):
    text = PLAYING_POLICY + f"limits: {{{key}: {value}}}\n"
    with written_policy(idle, text):
        words = (f"this host cannot enforce the policy's limits.{key}: {value} ({place_of(text, value)})", f"have no controller {controller};",
                 f"cgroup_disable={controller}", "or remove the key from the policy")  # fmt: skip
        assert_refused(pi(idle, "sh", "echo started"), UNAVAILABLE, *words)
        checked = idle.root(["pi-agentctl", "check"])
        assert checked.returncode == INVALID
        assert f"{place_of(text, value)}: limits.{key}: {value} cannot be enforced on this host".encode() in checked.stderr
        explained = idle.run(["pi-agentctl", "explain"], cwd=DEMO).stdout
        assert f"no start is possible: limits.{key}: {value}".encode() in explained


def test_defaults_that_hold_nobody_are_told_and_stop_nobody(idle):
    assert pi(idle, "sh", "echo started").stdout == b"started\n"
    assert b"limits.memory (default) is not enforced: " in idle.root(["pi-agentctl", "check"], check=True).stdout
    assert b"limits.tasks (default) is not enforced: " in idle.run(["pi-agentctl", "explain"], cwd=DEMO, check=True).stdout


def test_time_and_sessions_need_no_controller(idle, playing_policy):
    text = PLAYING_POLICY + "limits: {runtime: 1h, sessions: 1}\n"
    playing_policy(text)
    with session(idle, "sh", STAYING) as process:
        assert_refused(pi(idle, "sh", "echo second"), LIMIT, f"limit: alice has 1 session, the most that a user may have at once (limits.sessions, {place_of(text, '1}')})")
        assert finish(process)[0] == 0


def test_what_a_session_uses_now_is_what_its_control_group_holds(legacy, limited):
    limited("{memory: 1G}")
    held = "echo ready; exec python3 -c 'held = bytearray(b\"x\" * (96 << 20)); import sys; print(\"held\", flush=True); sys.stdin.read()'"
    with session(legacy, "sh", held) as running:
        assert running.stdout.readline() == b"held\n"
        shown = legacy.root(["pi-agentctl", "sessions", "--json"], check=True)
        (one,) = json.loads(shown.stdout)["sessions"]
        assert 96 << 20 <= one["memory_bytes"] < 400 << 20, one
        assert one["processes"] >= 1 and one["cpu_usec"] is None, one  # that is known of version 2 alone
        finish(running)

"""Method bwrap in a container with docker's capabilities and SYS_ADMIN, docker's system-call filter and pivot_root, and no systemd."""

import json
import re
import signal
import time
from pathlib import Path

import pytest

DEMO = "/home/alice/projects/demo"
UNAVAILABLE = 69
SYSTEM_FAILURE = 71
INVALID = 78
LEFTOVERS = """
ls -A /run/pi-agent/sessions; ls -A /var/lib/pi-agent/sessions
grep -o ' /run/pi-agent/sessions/[^ ]*' /proc/self/mountinfo
ps -eo stat=,user:32= | grep -E '^[^Z][^ ]* +pi-agent'
ps -eo args= | grep ^/usr/libexec/pi-agent/
true
"""
# Puts a key into the session keyring and becomes its arguments; and looks for it there (keyctl(2)).
ADD_KEY = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
key = libc.syscall(248, b"user", b"of-caller", b"quokka-key", 10, -3)
assert key > 0 and libc.syscall(250, 5, key, 0x3f3f3f3f) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
READ_KEY = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
key = libc.syscall(250, 10, -3, b"user", b"of-caller", 0)
print("found" if key > 0 else f"errno {ctypes.get_errno()}")
"""


@pytest.fixture(autouse=True)
def nothing_is_left(container):
    yield
    until = time.monotonic() + 15
    while left := container.root(LEFTOVERS).stdout:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def has_capability(number):
    """Whether root of this host, which plays the engine, has it."""
    (own,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    return bool(int(own, 16) >> number & 1)


def pi(container, *arguments, **options):
    return container.run(["pi", *arguments], cwd=DEMO, **options)


def shell(container, script, before=(), **options):
    """Runs a script in a session; `before`: what runs pi."""
    return container.run([*before, "pi", "--pi-agent-shell", "-c", script], cwd=DEMO, **options)


def test_it_is_what_docker_makes(container):
    """Seen from inside, as root: docker's documented defaults."""
    status = dict(line.split(":\t") for line in container.root(["cat", "/proc/self/status"], check=True).stdout.decode().splitlines())
    assert [status[name] for name in ("CapEff", "CapBnd", "Seccomp", "NoNewPrivs")] == ["00000000a82425fb", "00000000a82425fb", "2", "0"], status
    assert container.root(["cat", "/proc/1/comm"]).stdout == b"sleep\n"
    refused = container.root(["python3", "-c", READ_KEY], check=True).stdout
    assert refused == b"errno 1\n"
    for forbidden in ("echo x >/proc/sys/kernel/hostname", "mkdir /sys/fs/cgroup/mine", "renice -n -1 $$", "unshare --net ip link set lo up", "pivot_root / /"):
        assert container.root(forbidden).returncode != 0, forbidden


def test_a_session_of_the_real_agent(container):
    """The scripted model lets it run a command and write a file."""
    try:
        done = pi(container, "-p", "Write a greeting")
        assert (done.returncode, done.stderr) == (0, b"") and b"hello.txt" in done.stdout, done
        assert container.root(["stat", "-c", "%U:%G", f"{DEMO}/hello.txt"]).stdout == b"alice:alice\n"
    finally:
        container.root(["rm", "-f", f"{DEMO}/hello.txt"])


def test_who_the_agent_is(container):
    done = shell(container, "id -un; cat /proc/1/comm; grep ^Cap /proc/self/status; touch made; ls -A /run/pi-agent/sessions 2>&1")
    try:
        assert done.returncode != 0 and done.stderr == b"", done
        assert done.stdout.decode().split()[:2] == ["pi-agent-alice", "bwrap"] and re.findall(rb"Cap\w+:\t(\w+)", done.stdout) == [b"0" * 16] * 5, done
        assert container.root(["stat", "-c", "%U", f"{DEMO}/made"]).stdout == b"alice\n"
    finally:
        container.root(["rm", "-f", f"{DEMO}/made"])


def test_the_canary_finds_nothing(container):
    done = pi(container, "--pi-agent-canary")
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr, report["right"]) == (0, b"", True) and len(report["findings"]) > 90, done
    (landlock,) = [finding for finding in report["findings"] if finding["what"] == "Landlock"]
    assert landlock["seen"] == "refused by a system-call filter around this host", landlock


def test_doctor_finds_nothing_and_says_what_is_not_there(container):
    done = container.root(["pi-agentctl", "doctor"])
    assert done.returncode == 0, done
    assert b"Landlock: refused by a system-call filter around this host" in done.stdout, done


def test_landlock_holds_where_the_profile_knows_it(container, given):
    with given(calls=("pivot_root", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")):
        done = pi(container, "--pi-agent-canary")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert {"what": "Landlock", "expected": "there", "seen": "there", "right": True} in json.loads(done.stdout)["findings"], done


def test_apply_tries_it(container):
    done = container.root(["pi-agentctl", "apply"])
    assert done.returncode == 0, done


# --- what a container lacks, in words


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ({"calls": ()}, "a system-call filter around this container refuses pivot_root"),
        ({"calls": ("pivot_root",), "without_calls": ("mount_setattr", "open_tree")}, "refuses open_tree, mount_setattr"),
    ],
    ids=["docker's own filter", "an older filter"],
)
def test_what_to_give_it_is_said(container, given, lacking, words):
    with given(**lacking):
        refused = pi(container, "-p", "hello")
        doctor = container.root(["pi-agentctl", "doctor"])
    assert refused.returncode == UNAVAILABLE and refused.stdout == b"", refused
    assert doctor.returncode == UNAVAILABLE, doctor
    for said in (refused.stderr, doctor.stderr):
        assert words in said.decode() and "start the container with" in said.decode(), said


def test_a_first_process_that_may_more_is_not_looked_at(container, given):
    """Its namespaces are what a start compares with."""
    with given(without_capabilities=("setpcap",)):
        refused = pi(container, "-p", "hello")
    assert refused.returncode == 77 and refused.stdout == b"", refused
    for word in (b"mnt namespace cannot be seen from here", b"give it CAP_SYS_PTRACE"):
        assert word in refused.stderr, refused


def test_no_network_takes_a_capability(container, given, policy_with):
    policy_with("network: none\n")
    refused, checked = pi(container, "-p", "hello"), container.root(["pi-agentctl", "check"])
    assert refused.returncode == UNAVAILABLE and refused.stdout == b"", refused
    assert checked.returncode == INVALID, checked
    for said in (refused.stderr, checked.stderr):
        for word in (b"lacks CAP_NET_ADMIN", b"for the policy's network (/etc/pi-agent/policy.yaml:", b"start the container with that capability"):
            assert word in said, said
    with given(capabilities=("net_admin",)):
        assert container.root(["pi-agentctl", "check"]).returncode == 0
        done = shell(container, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")
    assert (done.returncode, done.stdout) == (0, b"lo\n"), done


def test_an_agent_that_cannot_connect_is_told_of_with_the_key(container, given, policy_with):
    policy_with("network: none\n")
    with given(capabilities=("net_admin",)):
        done = pi(container, "-p", "hello")
    assert done.returncode == 1 and b"Connection error." in done.stderr, done
    (line,) = [line for line in done.stderr.decode().splitlines() if line.startswith("pi: ")]
    assert "the policy's network (/etc/pi-agent/policy.yaml:" in line and "no connection out of the session" in line, done


# --- what a caller chose, and root of a container cannot take back


def test_a_caller_that_is_nice_stays_so(container):
    done = shell(container, "nice", before=["nice", "-n", "7"])
    assert (done.returncode, done.stdout, done.stderr) == (0, b"7\n", b""), done


def test_a_caller_that_may_get_no_time_is_refused(container, given):
    idle = ["chrt", "--idle", "0"]
    refused = shell(container, "true", before=idle)
    assert refused.returncode == SYSTEM_FAILURE, refused
    for word in (b"resetting the scheduling policy", b"SCHED_IDLE", b"CAP_SYS_NICE"):
        assert word in refused.stderr, refused
    with given(capabilities=("sys_nice",)):
        done = shell(container, "chrt -p $$; nice", before=["nice", "-n", "7", *idle])
    assert done.returncode == 0 and b"SCHED_OTHER" in done.stdout and done.stdout.endswith(b"\n0\n"), done


@pytest.mark.parametrize("limit", ["NOFILE", "NPROC", "STACK"])
def test_a_limit_that_cannot_be_raised_again_is_named(container, limit):
    """Root of such a container has no CAP_SYS_RESOURCE: what the caller lowered stays."""
    lower = "import os, resource, sys; k = getattr(resource, 'RLIMIT_' + sys.argv[1]); resource.setrlimit(k, (int(sys.argv[2]),) * 2); os.execvp('pi', ['pi', '-p', 'hello'])"
    value = {"NOFILE": 200, "NPROC": 500, "STACK": 1 << 20}[limit]
    refused = container.run(["python3", "-c", lower, limit, str(value)], cwd=DEMO)
    assert refused.returncode == SYSTEM_FAILURE and refused.stdout == b"", refused
    assert f"resetting the resource limit RLIMIT_{limit} (lowered in the calling shell; raise it there)".encode() in refused.stderr, refused


@pytest.mark.parametrize(("of_container", "of_agent"), [(0, 500), (300, 500), (900, 900)])
def test_a_container_that_is_killed_before_others(container, of_container, of_agent):
    """docker run --oom-score-adj: the lowest score that root has there. What a caller adds is taken back to it."""
    if of_container and not has_capability(24):
        pytest.skip("this host's root has no CAP_SYS_RESOURCE, and so can set no lowest score")
    container.set_oom_score(of_container)
    try:
        done = container.run(f"echo 1000 >/proc/self/oom_score_adj && exec pi --pi-agent-shell -c 'cat /proc/self/oom_score_adj; sleep 5' &"
                             " until pgrep -x sleep -u pi-agent-alice >/dev/null; do sleep 0.1; done;"
                             " cat /proc/$(pgrep -o -f ^/usr/libexec/pi-agent/pi-agent-runner)/oom_score_adj; wait", cwd=DEMO)  # fmt: skip
    finally:
        container.set_oom_score(0)
    assert (done.returncode, sorted(done.stdout.split()), done.stderr) == (0, sorted([b"%d" % of_container, b"%d" % of_agent]), b""), done


# --- keyrings, which nobody can leave where the filter forbids the calls


def test_a_key_of_the_callers_cannot_be_reached_from_a_session(container, given):
    """It is in the keyring that the session inherits; but the filter that kept root from leaving it is the session's, too."""
    with given(before_filter=["python3", "-c", ADD_KEY]):
        assert container.run(["python3", "-c", READ_KEY]).stdout == b"errno 1\n"
        inside = shell(container, f"python3 -c '{READ_KEY}'; grep -c of-caller /proc/keys; true")
        assert inside.returncode == 0 and inside.stdout.split(b"\n")[0] == b"errno 1" and b"of-caller" not in inside.stdout + inside.stderr, inside
        with given(calls=("pivot_root", "keyctl")):
            # Where the calls can be made, the caller has it, and the runner left that keyring behind.
            assert container.run(["python3", "-c", READ_KEY]).stdout == b"found\n"
            assert shell(container, f"python3 -c '{READ_KEY}'").stdout == b"errno 1\n"


# --- ends


@pytest.mark.parametrize("victim", ["pkill -9 -u alice -x pi", "pkill -9 -f ^/usr/libexec/pi-agent/pi-agent-runner", "pkill -9 -x pi-agent-exec", "pkill -9 -x bwrap"])
def test_whoever_is_killed_nothing_stays(container, victim):
    """Nobody reaps there whose parent is gone, as under `docker run` without --init."""
    with container.popen(["pi", "--pi-agent-shell", "-c", "trap '' TERM HUP; setsid sleep 300 & echo ready; sleep 300"], cwd=DEMO) as running:
        assert running.stdout.readline() == b"ready\n"
        container.root(victim, check=True)
        assert running.wait(timeout=20) != 0


def test_sessions_are_listed_and_ended(container):
    with container.popen(["pi", "--pi-agent-shell", "-c", "echo ready; sleep 300"], cwd=DEMO) as running:
        assert running.stdout.readline() == b"ready\n"
        listed = json.loads(container.root(["pi-agentctl", "sessions", "--json"], check=True).stdout)
        assert [session["user"] for session in listed["sessions"]] == ["alice"], listed
        container.root(["pi-agentctl", "stop", "--all"], check=True)
        assert running.wait(timeout=20) in (-signal.SIGTERM, -signal.SIGKILL, 75, 71, 143, 137), running.returncode

"""What root's processes of a session may still do while it runs: little, should a hole in one of them be found."""

import contextlib
import json
import re
import time

import pytest
from engine import engine_of, named_method
from target import DEMO, INSIDE, Outcome

pytestmark = pytest.mark.position("user")

AGENT = ("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 300")
# By method: the processes of root's that are not ours and come with a session. What an engine runs as root stays as the engine has it.
METHODS = {"systemd": set(), "bwrap": {"bwrap"}, "none": set(), "podman": {"podman", "conmon"}, "docker": {"docker", "containerd-shim"}}
# Linux, capability.h: CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID and SYS_ADMIN, which unmounting needs.
KEPT = {0, 1, 3, 5, 6, 7, 21}
# Ours, by the 15 bytes that the kernel keeps of a name; sudo is the caller's way in, and what runs a command of these tests in the machine is theirs.
OURS = {"pi-agent-runner", "pi-agent-cleanu"}

# As root: {pid: [name, effective, permitted, bounding and inheritable capabilities, NoNewPrivs, Seccomp]} of root's processes.
LOOKING = """
import json, os
seen = {}
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        status = dict(line.rstrip("\\n").split(":\\t", 1) for line in open(f"/proc/{pid}/status"))
        own = int(pid) == os.getpid() or not os.readlink(f"/proc/{pid}/exe")
    except (OSError, ValueError):
        continue
    if not own and status["Uid"].split()[0] == "0":
        seen[pid] = [status["Name"], *(status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "NoNewPrivs", "Seccomp"))]
print(json.dumps(seen))
"""


def roots_processes(target):
    return json.loads(target.machine.root(["python3", "-c", LOOKING], check=True).stdout)


def came_with_a_session(target, policy):
    """What of root's runs while a session is idle and did not before."""
    before = target.quiet_traces() and roots_processes(target)
    with target.policy_with(policy):
        session = target.session(*AGENT)
        now = roots_processes(target)
        session.end()
    return {pid: facts for pid, facts in now.items() if pid not in before}


def capabilities(mask):
    return {number for number in range(64) if int(mask, 16) >> number & 1}


def unconfined(processes):
    """Those that may more than they need."""
    return {
        pid: facts
        for pid, facts in processes.items()
        if not all(capabilities(mask) <= KEPT for mask in facts[1:4]) or capabilities(facts[4]) or facts[5:] != ["1", "2"]
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("defence", ["runner-capabilities", "runner-call-filter"])
def test_every_process_of_roots_that_a_session_has_is_confined(method, defence, prove, product, weak):
    def attack(target):
        found = came_with_a_session(target, f"sandbox: {named_method(method)}")
        names = {facts[0] for facts in found.values()}
        assert "pi-agent-runner" in names and names <= OURS | METHODS[method], f"other processes than known: {found}"
        assert METHODS[method] <= names, f"the method is seen by its own processes: {names}"
        # bubblewrap's own has no capability at all; what it may call is its own affair.
        ours = {pid: facts for pid, facts in found.items() if facts[0] in OURS}
        assert not [facts for facts in found.values() if facts[0] == "bwrap" and int(facts[1], 16)], found
        return Outcome(bool(unconfined(ours)), found)

    with engine_of(product.machine, method), engine_of(weak.machine, method):
        prove(attack, defence, quick=True)


def test_no_privilege_comes_with_a_program_that_it_starts(prove):
    def attack(target):
        found = came_with_a_session(target, "")
        return Outcome(any(facts[5] != "1" for facts in found.values()), found)

    # The library that installs the filter asks for it too.
    prove(attack, "runner-no-new-privileges", "runner-call-filter", quick=True)


FILTER, CAPABILITIES = "runner-call-filter", "runner-capabilities"
# A call of the runner's, made for it from outside, and what refuses it.
CALLS = {
    "execve": [FILTER],
    "mount": [FILTER],
    "unshare": [FILTER],
    "chroot": [FILTER, CAPABILITIES],
    "mknod": [FILTER, CAPABILITIES],
    "ptrace": [FILTER, CAPABILITIES],
    "sethostname": [FILTER, CAPABILITIES],
    "raw socket": [CAPABILITIES],
    "setpriority": [CAPABILITIES],
}
UNDO = "rm -f /run/attack-injected; umount /mnt 2>/dev/null; hostname {}; true"


@pytest.mark.parametrize("call", CALLS)
def test_a_runner_that_somebody_took_over_cannot(call, prove):
    def attack(target):
        name = target.machine.root(["hostname"], check=True).stdout.decode().strip()
        session = target.session(*AGENT)
        command = ["python3", f"{INSIDE}/injecting.py", str(session.runner_pid()), call]
        made = json.loads(target.machine.root(command, check=True).stdout)
        if call == "execve" and made == "done":
            until = time.monotonic() + 5
            while target.machine.root(["test", "-e", "/run/attack-injected"]).returncode != 0:
                assert time.monotonic() < until, "the program has not run"
                time.sleep(0.05)
        with contextlib.suppress(AssertionError):
            session.end()
        target.machine.root(UNDO.format(name), check=True)
        return Outcome(made == "done", made)

    on, _ = prove(attack, *CALLS[call], quick=True)
    assert on.seen in ("EPERM", "EACCES"), on


def test_a_confined_runner_brings_a_session_to_its_end(product, control_seen):
    """What it needs to the end is left to it: what the agent made is removed, mounts go, and the record has the end."""
    traces = product.quiet_traces()
    making = "mkdir -p $TMPDIR/a/b /tmp/c; echo x >$TMPDIR/a/b/c; chmod 0 /tmp/c; echo $PI_AGENT_SESSION; exec sleep 300"
    session = product.session("sh", "-c", making)
    runner = str(session.runner_pid())
    assert roots_processes(product)[runner][6] == "2"
    control_seen("the runner that ends it was seen under its filter")
    product.machine.root(["pi-agentctl", "stop", session.id], check=True)
    session.process.wait(timeout=20)
    product.expect_traces(traces)


# A step of giving up that the kernel refuses, or only seems to take, by strace's hand. `{ARGUMENTS}`: the turn of the runner's call that begins so.
TRACE = "/run/attack-trace"
ABORTED = b"was killed by signal 6"  # it looked, and went no further
STEPS = {
    "is refused": ("capset:error=EPERM", b"giving up capabilities"),
    "does nothing": ("capset:retval=0", b"kept capabilities that it gave up"),
    "is not told of a capability": ("prctl:error=EPERM:when={PR_CAPBSET_READ, CAP_AUDIT_CONTROL)}", b"asking for capability 30"),
    "is told that there is no such capability": ("prctl:error=EINVAL:when={PR_CAPBSET_READ, CAP_AUDIT_CONTROL)}", b"and of none before it"),
    "may not shrink the bounding set": ("prctl:error=EPERM:when={PR_CAPBSET_DROP, CAP_AUDIT_CONTROL)}", b"giving up capability 30"),
    "does not shrink the bounding set": ("prctl:retval=0:when={PR_CAPBSET_DROP, CAP_AUDIT_CONTROL)}", b"kept capability 30"),
    "may not set no_new_privs": ("prctl:error=EPERM:when={PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)}", b"setting no_new_privs"),
    "does not set no_new_privs": ("prctl:retval=0:when={PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)}", b"may gain privileges by exec"),
    "may install no filter": ("seccomp:error=EINVAL:when={SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, {len}", b"installing the list of root's calls"),
    "installs no filter": ("seccomp:retval=0:when={SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, {len}", ABORTED),
    "finds a thread that cannot have it": ("seccomp:retval=7:when={SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, {len}", b"has a filter of its own"),
}


def run_under_strace(target, injection, trace="/dev/null"):
    command = f"strace -f -qq -o {trace} --trace=prctl,seccomp,capset,getppid --inject={injection} runuser -u alice -- sh -c 'cd {DEMO} && pi echo ran'"
    return target.machine.root(command, timeout=60)


def turn_of(call, arguments, trace):
    """Which of the runner's calls of that name begins so; it is the one process that gives up capability after capability."""
    lines = [line.split(maxsplit=1) for line in trace.decode().splitlines()]
    runner = next(pid for pid, made in lines if "PR_CAPBSET_DROP" in made)
    calls = [made for pid, made in lines if pid == runner and made.startswith(f"{call}(")]
    return 1 + next(turn for turn, made in enumerate(calls) if made.startswith(f"{call}({arguments}"))


@pytest.mark.position("host")
@pytest.mark.parametrize("step", STEPS)
def test_no_agent_starts_where_giving_up(step, product, control_seen):
    injection, said = STEPS[step]
    traces = product.quiet_traces()
    assert run_under_strace(product, "getppid:retval=1:when=9999", TRACE).stdout == b"ran\n"
    control_seen("traced, with nothing injected, the agent runs")
    trace = product.machine.read(TRACE)
    injection = re.sub(r"\{(.*)\}", lambda found: str(turn_of(injection.split(":")[0], found[1], trace)), injection)
    done = run_under_strace(product, injection, TRACE)
    assert done.returncode != 0 and done.stdout == b"" and said in done.stderr, (done, injection)
    assert b"(INJECTED)" in product.machine.read(TRACE)
    product.expect_traces(traces, 10)

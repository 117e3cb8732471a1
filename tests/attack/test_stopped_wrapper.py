"""A wrapper, or a runner, that stands still: nobody else waits for it, its session goes on, and so does it when it is continued."""

import os
import time

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("user")

# Longer than anything of root's waits for a wrapper (10 s); in a full run longer than anything waits for anybody.
STOPPED_SECONDS = 60 if os.environ.get("PI_AGENT_FULL") else 12
TICKS = f"{DEMO}/ticks"
TICKING = f"echo $PI_AGENT_SESSION; while test ! -e {DEMO}/enough; do echo tick | tee -a {TICKS}; sleep 0.1; done; exit 7"
# What entered the machine for a command stops with it, and for good: so the wrapper is a command of a shell's.
BY_A_SHELL = ("sh", "-c", 'pi "$@"; exit $?', "sh")
BOBS = "/home/bob/work/demo"


def signal_to(machine, pid, name):
    machine.root(["kill", f"-{name}", str(pid)], check=True)


def wrapper_of(session):
    found = session.machine.root(["pgrep", "--parent", str(session.wrapper_pid()), "--exact", "pi"], check=True)
    return int(found.stdout)


def stop(session):
    signal_to(session.machine, wrapper_of(session), "STOP")


def go_on(session):
    signal_to(session.machine, wrapper_of(session), "CONT")


def ticks(target):
    return len(target.machine.read(TICKS).splitlines())


def goes_on(target):
    before = ticks(target)
    time.sleep(1)
    return ticks(target) > before


def clear(target):
    target.machine.root(["rm", "-f", TICKS, f"{DEMO}/enough"], check=True)


@pytest.mark.parametrize("who", ["wrapper", "runner"])
def test_a_session_goes_on_while_one_is_stopped_and_that_one_afterwards(who, product, control_seen):
    traces = product.quiet_traces()
    session = product.session("sh", "-c", TICKING, program=BY_A_SHELL)
    stopped = wrapper_of(session) if who == "wrapper" else session.runner_pid()
    try:
        signal_to(product.machine, stopped, "STOP")
        time.sleep(STOPPED_SECONDS)
        assert product.machine.root(["ps", "-o", "stat=", "-p", str(stopped)]).stdout.startswith(b"T")
        control_seen(f"the {who} was seen stopped after {STOPPED_SECONDS} seconds")
        assert goes_on(product), "the agent stands still"
        for user, cwd in (("alice", DEMO), ("bob", BOBS)):
            began = time.monotonic()
            product.pi("true", user=user, cwd=cwd, check=True)
            assert time.monotonic() - began < 5, f"a start of {user}'s waits for the {who}"
        listed = product.machine.root(["pi-agentctl", "sessions"], check=True, timeout=5).stdout
        assert session.id.encode() in listed, listed

        signal_to(product.machine, stopped, "CONT")
        product.machine.run(["touch", f"{DEMO}/enough"], check=True)
        assert session.process.wait(timeout=10) == 7
        assert not goes_on(product), "an agent that is gone cannot be told from one that goes on"
    finally:
        clear(product)
    product.expect_traces(traces, 10)


def test_what_ended_while_the_wrapper_was_stopped_is_gone_and_the_wrapper_tells_how_it_ended(product):
    """root's part waits for nobody: neither to clean up nor to record."""
    traces = product.quiet_traces()
    session = product.session("sh", "-c", TICKING, program=BY_A_SHELL)
    stop(session)
    wrapper = [name for name in product.traces()["processes"] if name.startswith("/usr/bin/pi ")]
    assert wrapper, "the wrapper is not seen, so this shows nothing"
    product.machine.run(["touch", f"{DEMO}/enough"], check=True)
    product.expect_traces({**traces, "processes": traces["processes"] + wrapper}, STOPPED_SECONDS)
    assert b"ended" in product.machine.root(["pi-agentctl", "history", session.id], check=True).stdout
    go_on(session)
    assert session.process.wait(timeout=10) == 7
    clear(product)


# As alice: a wrapper of her own, whose end of the socket takes hardly anything and which never reads; it lives until its input ends.
NEVER_READING = """
own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
stdio = Stdio()
child = subprocess.Popen(SUDO, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
theirs.close()
ask(own, stdio, arguments=["touch", "enough"], debug=1)
try:
    child.wait(timeout=PATIENCE)
    late = False
except subprocess.TimeoutExpired:
    late = True
tell({"late": late, "ran": os.path.exists(DEMO + "/enough")})
"""
LINKS = "mkdir -p /home/alice/.pi/agent/skills && cd /home/alice/.pi/agent/skills && for i in $(seq 30); do ln -sf /etc/shadow s$i; done"


def test_a_wrapper_that_never_reads_keeps_neither_its_agent_nor_its_runner(prove, product, weak):
    """Root has more to say than such a socket takes."""
    for target in (product, weak):
        target.machine.run(LINKS, check=True)

    def attack(target):
        clear(target)
        traces = target.quiet_traces()
        seen = target.play(NEVER_READING, timeout=60)
        assert seen["late"] or seen["ran"], seen
        target.expect_traces(traces, 10)
        return Outcome(seen["late"], seen)

    prove(attack, "wrapper-deadline", quick=True)
    for target in (product, weak):
        clear(target)
        target.machine.root("rm -rf /home/alice/.pi/agent/skills", check=True)

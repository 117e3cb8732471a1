"""An end that somebody does not come to: a runner that stands still, and a lock that somebody holds for long."""

import signal
import time

import pytest
from target import SESSIONS
from test_worst_agent import ends_of

WAIT_SECONDS = 20


def wait_until(look, what):
    until = time.monotonic() + WAIT_SECONDS
    while not look():
        assert time.monotonic() < until, what
        time.sleep(0.05)


@pytest.mark.position("host")
@pytest.mark.parametrize("then", ["KILL", "CONT"])
def test_an_end_that_a_standing_runner_has_not_recorded_waits_for_it_and_nothing_else_does(then, product, control_seen, request):
    """The cleanup takes away what is mounted, and leaves what the end is recorded from; the runner itself has locked the temporary files."""
    machine, traces = product.machine, product.quiet_traces()
    session = product.session("sh", "-c", "touch $TMPDIR/left; echo $PI_AGENT_SESSION; exec sleep 4321")
    place, runner = f"{SESSIONS}/{session.id}", str(session.runner_pid())
    machine.root(["kill", "-STOP", runner], check=True)
    request.addfinalizer(lambda: machine.root(["kill", "-CONT", runner]))
    machine.root(["pkill", "-KILL", "-f", "^sleep 4321"], check=True)
    cleanup = ["systemctl", "is-active", f"pi-agent-cleanup-{session.id}.service"]
    wait_until(lambda: machine.root(cleanup).stdout.strip() == b"inactive", "the cleanup does not end")
    assert machine.root(["ps", "-o", "stat=", "-p", runner]).stdout.startswith(b"T"), "the runner did not stand still"
    assert machine.root(["grep", "-c", session.id, "/proc/self/mountinfo"]).stdout == b"0\n"
    assert machine.root(["test", "-d", place]).returncode == 0 and not ends_of(machine, session.id)
    control_seen("before the runner goes on or is killed, the end is not recorded")
    machine.root(["kill", f"-{then}", runner], check=True)
    session.process.wait(timeout=WAIT_SECONDS)
    if then == "KILL":
        product.warm_up()  # sweeps
    product.expect_traces(traces, WAIT_SECONDS)
    (end,) = ends_of(machine, session.id)
    assert ("did not record how" in end.get("PI_AGENT_REASON", "")) == (then == "KILL"), end
    assert then == "KILL" or end["PI_AGENT_EXIT_SIGNAL"] == str(int(signal.SIGKILL)), end


@pytest.mark.position("host")
def test_temporary_files_that_somebody_else_is_long_removing_are_not_taken_for_gone(product, control_seen):
    """Of the runner and the cleanup one works and the other waits for it; here both wait. The link to them stays for whoever comes next."""
    machine, traces = product.machine, product.quiet_traces()
    session = product.session("sh", "-c", "touch $TMPDIR/left; echo $PI_AGENT_SESSION; exec sleep 4321")
    files, runner = f"/var/lib/pi-agent/sessions/{session.id}", str(session.runner_pid())
    holder = machine.popen(["flock", "--shared", files, "-c", "echo locked; read line"], user="root")
    assert holder.stdout.readline() == b"locked\n"
    machine.root(["pkill", "-KILL", "-f", "^sleep 4321"], check=True)
    wait_until(lambda: machine.root(["test", "-e", f"/proc/{runner}"]).returncode, "the runner does not give up")
    wait_until(lambda: not product.traces()["units"], "the cleanup does not give up")
    left = machine.root(["readlink", f"{SESSIONS}/{session.id}/on-disk"]).stdout
    assert left == files.encode() + b"\n" and machine.root(["test", "-d", files]).returncode == 0, left
    control_seen("somebody held the lock meanwhile")
    holder.communicate(b"\n", timeout=10)
    product.warm_up()  # sweeps
    product.expect_traces(traces, WAIT_SECONDS)

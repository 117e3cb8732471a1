"""pi-agentctl apply ends what the policy does not allow any more: sessions of removed users, and all of them under the emergency stop."""

import contextlib

import pytest
from launching import DENIED, PLAYING_POLICY, POLICY_FILE, assert_refused, finish, pi, session, wait_until_empty
from record_check import read_entries

pytestmark = pytest.mark.usefixtures("playing")

WORK = "/home/bob/work/demo"
WITHOUT_BOB = PLAYING_POLICY.replace("  bob:\n    roots: [~/work]\n", "").replace('  "%devs":\n    roots: [/srv/devs]\n', "")
STOPPED = PLAYING_POLICY + "wrapper: {enable: false}\n"
WHY = f"the policy {POLICY_FILE} does not authorise bob any more"
assert "bob" not in WITHOUT_BOB.split("users:")[1]


@contextlib.contextmanager
def policy_written(machine, text):
    machine.write(POLICY_FILE, text)
    try:
        yield
    finally:
        machine.install_policy(PLAYING_POLICY)


def apply(machine, *options):
    done = machine.root(["pi-agentctl", "apply", "--no-canary", *options])
    assert done.returncode == 0, done
    return done.stdout.decode()


def of_bob(machine, *arguments):
    return session(machine, *arguments, user="bob", cwd=WORK)


def ended_reason(machine):
    ends = [entry for entry in read_entries(machine) if entry["PI_AGENT_EVENT"] == "ended" and entry["PI_AGENT_USER"] == "bob"]
    return ends[-1].get("PI_AGENT_REASON")


def test_a_removed_users_session_ends_and_the_user_reads_why_and_others_go_on(machine):
    with session(machine, "sh", "echo ready; cat") as other, of_bob(machine, "sh", "echo ready; exec sleep 1000") as running:
        with policy_written(machine, WITHOUT_BOB):
            would = apply(machine, "--dry-run")
            assert f"would: end the session " in would and WHY in would
            assert running.poll() is None
            assert f": {WHY}\n" in apply(machine)
            status, _, said = finish(running)
            assert status == -15 and said == f"pi: the session was ended: {WHY}\n".encode(), (status, said)
            assert ended_reason(machine) == WHY
            assert "nothing to do" in apply(machine)
            assert_refused(pi(machine, user="bob", cwd=WORK), DENIED, "does not authorise bob")
        assert other.poll() is None
        assert finish(other)[0] == 0


def test_one_that_is_deaf_to_signals_ends_all_the_same(machine):
    with of_bob(machine, "sh", "trap '' TERM HUP INT; (setsid sleep 4802 &) ; echo ready; while :; do sleep 1; done") as running:
        with policy_written(machine, WITHOUT_BOB):
            apply(machine)
            assert machine.root(["pgrep", "-f", "^sleep 4802"]).returncode == 1
            status, _, said = finish(running)
            assert status == -9 and WHY.encode() in said, (status, said)


def test_one_whose_runner_does_not_get_to_it_ends_all_the_same(machine):
    with of_bob(machine, "sh", "echo ready; exec sleep 1000") as running:
        machine.root(["systemctl", "freeze", "pi-agent-run-*.scope"], check=True)
        with policy_written(machine, WITHOUT_BOB):
            assert WHY in apply(machine)
            assert machine.root(["pgrep", "-u", "pi-agent-bob"]).returncode == 1
            finish(running)
    assert "did not record how" in ended_reason(machine)


@pytest.mark.parametrize("runner", ["alive", "frozen"])
def test_one_that_is_still_being_prepared_ends_too(machine, runner):
    """It waits for the lock of its user's state."""
    lock = "/var/lib/pi-agent/users/bob/meta/lock"
    pi(machine, "sh", "true", user="bob", cwd=WORK, check=True)
    holder = machine.popen(["flock", lock, "sleep", "1000"], user="root")
    try:
        running = machine.popen(["pi", "sh", "echo ran"], user="bob", cwd=WORK)
        wait_until_empty(lambda: not machine.root("ls /run/pi-agent/sessions/*/user").stdout)
        if runner == "frozen":
            machine.root(["systemctl", "freeze", "pi-agent-run-*.scope"], check=True)
        with policy_written(machine, WITHOUT_BOB):
            assert WHY in apply(machine)
            status, out, said = finish(running)
    finally:
        holder.kill_all()
        holder.wait()
    assert status != 0 and out == b"", (status, out, said)
    assert runner == "frozen" or f"pi: the session was ended: {WHY}\n".encode() in said, said
    pi(machine, "sh", "true", check=True)  # sweeps what a killed runner left


def test_the_emergency_stop_ends_every_session(machine):
    why = b"the administrator has switched the agent off ("
    with session(machine, "sh", "echo ready; exec sleep 1000") as first, of_bob(machine, "sh", "echo ready; exec sleep 1000") as second:
        with policy_written(machine, STOPPED):
            done = apply(machine)
            assert done.count("done: end the session ") == 2 and why.decode() in done, done
            for running in (first, second):
                status, _, said = finish(running)
                assert status == -15 and b"pi: the session was ended: " + why in said, (status, said)
            assert_refused(pi(machine), DENIED, "switched the agent off")


def test_the_emergency_stop_ends_every_session_though_the_rule_cannot_be_removed(machine):
    with session(machine, "sh", "echo ready; exec sleep 1000") as running, policy_written(machine, STOPPED):
        machine.root(["chmod", "g+w", "/etc/sudoers.d"], check=True)
        try:
            done = machine.root(["pi-agentctl", "apply"])
        finally:
            machine.root(["chmod", "g-w", "/etc/sudoers.d"], check=True)
        assert done.returncode == 71 and b"all sessions have ended, but the sudo rule stays: " in done.stderr, done
        assert b"done: end the session " in done.stdout and finish(running)[0] == -15, done
        assert "sudo rule" in apply(machine)

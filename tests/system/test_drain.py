"""pi-agentctl drain and stop --message: no session starts, those that run go on, and their users read the administrator's words."""

import json

import pytest
from administering import NOTHING, USAGE, answer, ctl, said
from launching import DEMO, DENIED, agent_says, assert_refused, finish, pi, read_line, session, wait_until_empty
from record_check import read_entries

BUSY = 75
WORDS = "a new kernel; back at 14:00"
WAIT = ("sh", "echo ready; cat >/dev/null")

pytestmark = pytest.mark.usefixtures("playing")


@pytest.fixture
def open_afterwards(machine):
    yield
    ctl(machine, "drain", "--off", check=True)


@pytest.mark.usefixtures("open_afterwards")
def test_on_a_drained_host_no_session_starts_and_those_that_run_go_on(machine):
    assert answer(machine, "sessions")["drain"] is None
    with session(machine, *WAIT) as running:
        shown = said(machine, "drain", "--message", WORDS)
        assert shown.startswith("no session starts from now on, until 'pi-agentctl drain --off' or a boot; 1 session runs\n"), shown
        for program in ([], ["--pi-agent-shell"], ["--pi-agent-canary"]):
            done = machine.run(["pi", *program], user="alice", cwd=DEMO)
            assert_refused(done, BUSY, "the administrator lets no session start on this host for now", f"The administrator says: {WORDS}", "E75-drain")
        assert running.poll() is None
        shown = answer(machine, "sessions")
        assert len(shown["sessions"]) == 1 and shown["drain"]["message"] == WORDS and shown["drain"]["since"].endswith("Z"), shown
        assert f"so no session starts ({WORDS})\n" in said(machine, "sessions")
        assert finish(running)[0] == 0
    denied = [entry for entry in read_entries(machine) if entry.get("PI_AGENT_CODE") == "E75-drain"][-3:]
    assert len(denied) == 3 and {entry["_UID"] for entry in denied} == {"0"} and WORDS in denied[0]["PI_AGENT_REASON"], denied
    assert said(machine, "drain").startswith("this host is drained already, until ")
    assert answer(machine, "sessions")["drain"]["message"] == WORDS  # what was said stays, unless it is said anew
    assert said(machine, "drain", "--off") == "sessions start again\n"
    assert said(machine, "drain", "--off") == "nothing to do: this host is not drained\n"
    assert agent_says(machine, "sh", "echo x") == b"x\n"


@pytest.mark.usefixtures("open_afterwards")
def test_wait_ends_with_the_last_session(machine):
    with session(machine, *WAIT) as first, session(machine, *WAIT, user="bob", cwd="/home/bob/work/demo") as second:
        waiting = machine.popen(["pi-agentctl", "drain", "--wait"], user="root")
        assert b"2 sessions run\n" in read_line(waiting)
        finish(first)
        assert waiting.poll() is None
        finish(second)
        out, err = waiting.communicate(timeout=20)
        assert (waiting.returncode, out, err) == (0, b"no session runs any more\n", b"")


@pytest.mark.usefixtures("open_afterwards")
def test_who_waits_is_told_that_somebody_ended_the_drain(machine):
    with session(machine, *WAIT):
        waiting = machine.popen(["pi-agentctl", "drain", "--wait"], user="root")
        assert b"1 session runs\n" in read_line(waiting)
        said(machine, "drain", "--off")
        _, err = waiting.communicate(timeout=20)
        assert waiting.returncode == BUSY and b"somebody ended the drain" in err, err


@pytest.mark.usefixtures("open_afterwards")
def test_the_administrator_goes_on_trying_the_sandbox_on_a_drained_host(machine):
    said(machine, "drain")
    shown = said(machine, "apply")
    assert "probes passed" in shown, shown
    notes = json.loads(ctl(machine, "doctor", "--json").stdout)["notes"]
    assert any("this host is drained since" in note and "sudo pi-agentctl drain --off" in note for note in notes), notes
    assert_refused(pi(machine, "sh", "true"), BUSY, "lets no session start")


def test_a_boot_ends_a_drain(machine):
    """What keeps sessions from starting lies below /run alone, which is empty after a boot."""
    said(machine, "drain")
    try:
        assert machine.root(["stat", "-f", "--format=%T", "/run/pi-agent/drain"], check=True).stdout == b"tmpfs\n"
    finally:
        machine.root(["rm", "/run/pi-agent/drain"], check=True)
    assert agent_says(machine, "sh", "echo x") == b"x\n"


def test_users_of_stopped_sessions_read_the_administrators_words_and_so_does_the_record(machine):
    why = f"the administrator ended it (pi-agentctl stop): {WORDS}"
    with session(machine, "sh", "echo ready; exec sleep 1000") as running:
        assert "ended the session " in said(machine, "stop", "--all", "--message", WORDS)
        status, _, told = finish(running)
        assert status == -15 and told == f"pi: the session was ended: {why}\n".encode(), (status, told)
    assert [entry.get("PI_AGENT_REASON") for entry in read_entries(machine) if entry["PI_AGENT_EVENT"] == "ended"][-1] == why
    wait_until_empty(lambda: answer(machine, "sessions")["sessions"])
    assert "no session runs" in said(machine, "stop", "--all", "--message", WORDS, status=NOTHING)


@pytest.mark.parametrize("command", [("stop", "--all"), ("drain",)], ids=["stop", "drain"])
@pytest.mark.parametrize("words", ["", "two\nlines", "\033]0;title\a", "back\\slash", "x" * 501, "\u202edesrever"])
def test_what_is_no_line_of_words_is_refused_and_nothing_happens(machine, command, words):
    with session(machine, *WAIT) as running:
        assert "--message takes" in said(machine, *command, "--message", words, status=USAGE)
        assert running.poll() is None and answer(machine, "sessions")["drain"] is None
        assert finish(running)[0] == 0


def test_only_root_drains(machine):
    done = machine.run(["pi-agentctl", "drain"], user="alice", cwd=DEMO)
    assert done.returncode == DENIED and b"only root can run it" in done.stderr, done
    assert "--off excludes --wait and --message" in said(machine, "drain", "--off", "--wait", status=USAGE)
    assert pi(machine, "sh", "exit 4").returncode == 4

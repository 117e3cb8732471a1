"""Users see and end their own sessions without root: as root would see them, and nothing of others'."""

import contextlib
import json
from datetime import datetime

import pytest
from administering import NOTHING, USAGE, answer
from launching import DEMO, DENIED, PLAYING_POLICY, finish, pi, session
from record_check import read_entries
from test_sessions import WAIT, from_now, ids_of

METHODS = ("systemd", "bwrap")
PLACES = {"alice": DEMO, "bob": "/home/bob/work/demo"}
ENDED = b"pi: the session was ended: its user ended it (pi-agentctl stop)"
# What goes on while two look one after the other.
MOVING = ("processes", "memory_bytes", "cpu_usec", "started")


@pytest.fixture(scope="module", params=METHODS)
def method(request, playing):
    playing.install_policy(PLAYING_POLICY + f"sandbox: {{method: {request.param}}}\n")
    yield request.param
    playing.install_policy(PLAYING_POLICY)


def without_times(starts):
    return [{**one, "started": None, "ended": None} for one in starts]


def times_of(starts):
    return [datetime.fromisoformat(one[name].replace("Z", "+00:00")) for one in starts for name in ("started", "ended") if one[name]]


def own(machine, *arguments, user="alice"):
    """What a user gets who is not root."""
    return machine.run(["pi-agentctl", *arguments], user=user)


def own_answer(machine, *arguments, user="alice"):
    done = own(machine, *arguments, "--json", user=user)
    assert (done.returncode, done.stderr) == (0, b""), done
    shown = json.loads(done.stdout)
    assert shown["version"] == 1
    return shown


@contextlib.contextmanager
def running(machine, *users):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(session(machine, *WAIT, user=user, cwd=PLACES[user])) for user in users]


def still(shown):
    return [{name: value for name, value in one.items() if name not in MOVING} for one in shown]


def test_a_users_list_is_roots_list_of_that_user(playing, method):
    with running(playing, "alice", "bob", "alice") as processes:
        of_root = answer(playing, "sessions", "--user", "alice")["sessions"]
        shown = own_answer(playing, "sessions")["sessions"]
        assert len(shown) == 2 and still(shown) == still(of_root)
        assert [list(one) for one in shown] == [list(one) for one in of_root]
        assert all(one["processes"] >= 2 and one["cpu_usec"] > 0 for one in shown), shown
        assert still(shown) == still(own_answer(playing, "sessions", "--user", "alice")["sessions"])
        (bobs,) = own_answer(playing, "sessions", user="bob")["sessions"]
        assert bobs["user"] == "bob" and bobs["id"] not in ids_of(shown)
        table = own(playing, "sessions").stdout.decode()
        assert all(one["id"] in table for one in shown) and bobs["id"] not in table and "bob" not in table, table
        for process in processes:
            finish(process)
    assert own(playing, "sessions").stdout == b"no session\n"


def test_a_user_ends_one_session_by_the_beginning_of_its_id_and_then_all_of_theirs(playing, method):
    with running(playing, "alice", "bob", "alice", "alice") as processes:
        ids = sorted(ids_of(own_answer(playing, "sessions")["sessions"]))
        (bobs,) = answer(playing, "sessions", "--user", "bob")["sessions"]
        first = ids[0]
        done = own(playing, "stop", first[:12])
        assert (done.returncode, done.stdout, done.stderr) == (0, f"ended the session {first} of alice in /home/alice/projects\n".encode(), b""), done
        assert ids_of(answer(playing, "sessions")["sessions"]) == {*ids[1:], bobs["id"]}
        done = own(playing, "stop", "--user", "alice")
        assert done.returncode == 0 and done.stdout.count(b"ended the session ") == 2, done
        assert ids_of(answer(playing, "sessions")["sessions"]) == {bobs["id"]}
        for process in (processes[0], *processes[2:]):
            assert ENDED in finish(process)[2]
        finish(processes[1])
    entries = {entry["PI_AGENT_SESSION"]: entry for entry in read_entries(playing) if entry["PI_AGENT_EVENT"] == "ended"}
    assert all(entries[one]["PI_AGENT_REASON"] == "its user ended it (pi-agentctl stop)" for one in ids)


def test_anothers_session_is_as_one_that_nobody_has(playing, method):
    with running(playing, "bob") as (process,):
        (bobs,) = answer(playing, "sessions")["sessions"]
        for word in (bobs["id"], bobs["id"][:8], "0" * 32):
            done = own(playing, "stop", word)
            expected = f"pi-agentctl: no session begins with {word}; 'pi-agentctl sessions' lists them\n"
            assert (done.returncode, done.stdout, done.stderr.decode()) == (NOTHING, b"", expected), done
        assert own(playing, "stop", "--user", "alice").returncode == NOTHING
        assert own(playing, "stop").returncode == USAGE
        assert ids_of(answer(playing, "sessions")["sessions"]) == {bobs["id"]}
        finish(process)


def test_a_users_history_is_roots_history_of_that_user(playing, method):
    begun = from_now()
    assert pi(playing, "sh", "exit 3").returncode == 3
    assert pi(playing, cwd="/").returncode == DENIED
    assert pi(playing, "sh", "exit 0", user="bob", cwd=PLACES["bob"]).returncode == 0
    with running(playing, "alice") as (process,):
        playing.root(["journalctl", "--sync"], check=True)
        shown = own_answer(playing, "history", "--since", begun)["starts"]
        of_root = answer(playing, "history", "--since", begun, "--user", "alice")["starts"]
        assert without_times(shown) == without_times(of_root)
        # The journal has the time at which an entry reached it, the user's file that at which root wrote there.
        apart = [abs((one - other).total_seconds()) for one, other in zip(times_of(shown), times_of(of_root), strict=True)]
        assert len(apart) >= 3 and max(apart) < 1, apart
        assert [(one["user"], one["state"], one["exit_code"]) for one in shown] == [("alice", "ended", 3), ("alice", "denied", None), ("alice", "running", None)]
        finish(process)
    assert len(own_answer(playing, "history", "--since", begun, "--failed")["starts"]) == 2
    (bobs,) = own_answer(playing, "history", "--since", begun, user="bob")["starts"]
    assert (bobs["user"], bobs["exit_code"]) == ("bob", 0)
    assert own(playing, "history", "--since", "@9000000000").returncode == NOTHING


def test_without_a_journal_a_users_history_is_in_the_file(playing, method):
    socket = "/run/systemd/journal/socket"
    playing.root(["mv", socket, f"{socket}-away"], check=True)
    try:
        begun = from_now()
        assert pi(playing, "sh", "exit 5").returncode == 5
        assert pi(playing, "sh", "exit 6", user="bob", cwd=PLACES["bob"]).returncode == 6
        (one,) = own_answer(playing, "history", "--since", begun)["starts"]
        assert (one["exit_code"], one["user"], one["said_by"]) == (5, "alice", "root")
    finally:
        playing.root(["mv", f"{socket}-away", socket], check=True)


def test_a_users_state_is_roots_look_at_it(playing, method):
    assert pi(playing, "sh", "mkdir -p ~/.cache && head -c 3M /dev/urandom >~/.cache/x").returncode == 0
    assert pi(playing, "sh", "true", user="bob", cwd=PLACES["bob"]).returncode == 0
    shown = own_answer(playing, "state")["states"]
    assert shown == answer(playing, "state", "--user", "alice")["states"]
    assert len(shown) == 1 and shown[0]["user"] == "alice" and shown[0]["caches_bytes"] >= 3 << 20, shown
    with session(playing, "sh", "head -c 3M /dev/urandom >$TMPDIR/x; echo ready; cat >/dev/null") as process:
        (state,) = own_answer(playing, "state")["states"]
        assert state["sessions"] == 1 and state["scratch_bytes"] >= 3 << 20, state
        finish(process)
    assert "bob" not in own(playing, "state").stdout.decode()


def test_what_is_not_for_users_is_told_with_what_is(playing, method):
    for arguments, words in (
        (["sessions", "--user", "bob"], "sessions is about the sessions of other users, so only root can run it with --user bob (without --user it is about your own)"),
        (["stop", "--all"], "stop --all ends the sessions of all users, so only root can run it; the administrator can run: sudo pi-agentctl stop --all"),
        (["stop", "--user", "bob"], "without --user it is about your own); the administrator can run: sudo pi-agentctl stop --user bob"),
        (["history", "--user", "nobody-here"], "only root can run it with --user nobody-here"),
    ):
        done = own(playing, *arguments)
        assert done.returncode == DENIED and words in done.stderr.decode() and b"E77-admin" in done.stderr, done
    done = own(playing, "sessions", user="eve")
    assert done.returncode == DENIED and b"the policy gives you no sessions of your own, so only root can run it" in done.stderr, done


def test_in_a_session_nobody_asks(playing, method):
    done = pi(playing, "sh", "pi-agentctl sessions; echo $?")
    assert done.stdout != b"0\n" and b"sudo cannot work in this shell" in done.stderr, done

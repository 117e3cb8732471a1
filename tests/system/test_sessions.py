"""pi-agentctl sessions, stop and history: what they say is what systemd and the record say, under both methods that confine."""

import contextlib
import json
import re
import time

import pytest
from administering import BUSY, NOTHING, USAGE, answer, ctl
from launching import DEMO, DENIED, PLAYING_POLICY, finish, pi, session, wait_until_empty
from record_check import IDS, read_entries

METHODS = ("systemd", "bwrap")
MANY = "sandbox: {{method: {}}}\nlimits: {{sessions: 12}}\n"
WAIT = ("sh", "echo ready; cat >/dev/null")
# Ten of alice and ten of bob, and of each where.
PLACES = {"alice": DEMO, "bob": "/home/bob/work/demo"}


@pytest.fixture(scope="module", params=METHODS)
def method(request, playing):
    playing.install_policy(PLAYING_POLICY + MANY.format(request.param))
    yield request.param
    playing.install_policy(PLAYING_POLICY)


def sessions(machine, *arguments):
    return answer(machine, "sessions", *arguments)["sessions"]


def history(machine, *arguments):
    return answer(machine, "history", *arguments)["starts"]


def units(machine):
    shown = machine.root("systemctl list-units --plain --no-legend 'pi-agent-*.service'", check=True).stdout.decode()
    return set(re.findall(r"^pi-agent-([0-9a-f]{32})\.service ", shown, re.MULTILINE))


def groups(machine):
    shown = machine.root("ls /sys/fs/cgroup/pi-agent 2>/dev/null; true", check=True).stdout.decode()
    return {name for name in shown.split() if re.fullmatch("[0-9a-f]{32}", name)}


def recorded(machine, event, ids):
    return {entry["PI_AGENT_SESSION"] for entry in read_entries(machine) if entry["PI_AGENT_EVENT"] == event} & set(ids)


@contextlib.contextmanager
def running(machine, *users):
    """One session for each of these, of which several may be the same."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(session(machine, *WAIT, user=user, cwd=PLACES[user])) for user in users]


def from_now():
    """A time that is later than all that was, as an option says it: those are whole seconds."""
    beginning = int(time.time()) + 1
    while time.time() < beginning:
        time.sleep(0.01)
    return f"@{beginning}"


def ids_of(shown):
    return {one["id"] for one in shown}


def test_twenty_sessions_are_listed_stopped_and_remembered_as_they_were(playing, method):
    machine = playing
    begun = from_now()
    with running(machine, *["alice", "bob"] * 10) as processes:
        shown = sessions(machine)
        living = ids_of(shown)
        assert len(shown) == len(living) == 20
        assert living == (units(machine) if method == "systemd" else groups(machine))
        assert recorded(machine, "started", living) == living and not recorded(machine, "ended", living)
        assert {one["id"] for one in history(machine, "--since", begun) if one["state"] == "running"} == living
        for one in shown:
            assert (one["method"], one["state"], one["program"]) == (method, "running", "agent")
            assert one["account"] == f"pi-agent-{one['user']}" and one["project"] == PLACES[one["user"]].removesuffix("/demo")
            assert one["unit"] == (f"pi-agent-{one['id']}.service" if method == "systemd" else None)
            assert one["processes"] >= 2 and one["cpu_usec"] > 0, one  # the shell and cat
        assert [one["started"] for one in shown] == sorted(one["started"] for one in shown)
        bobs = sessions(machine, "--user", "bob")
        assert len(bobs) == 10 and ids_of(bobs) == {one["id"] for one in shown if one["user"] == "bob"}

        first = min(living - ids_of(bobs))
        done = ctl(machine, "stop", first[:16])
        assert (done.returncode, done.stdout) == (0, f"ended the session {first} of alice in /home/alice/projects\n".encode()), done
        assert ids_of(sessions(machine)) == living - {first}

        done = ctl(machine, "stop", "--user", "bob")
        assert done.returncode == 0 and done.stdout.count(b"ended the session ") == 10, done
        assert ids_of(sessions(machine)) == living - {first} - ids_of(bobs)
        assert recorded(machine, "ended", living) == {first} | ids_of(bobs)

        done = ctl(machine, "stop", "--all")
        assert done.returncode == 0 and done.stdout.count(b"ended the session ") == 9, done
        assert sessions(machine) == [] and recorded(machine, "ended", living) == living
        for process in processes:
            assert b"pi: the session was ended: the administrator ended it (pi-agentctl stop)" in finish(process)[2]
    if method == "systemd":
        wait_until_empty(lambda: units(machine))

    past = [one for one in history(machine, "--since", begun) if one["id"] in living]
    assert ids_of(past) == living and len(past) == 20
    entries = {entry["PI_AGENT_SESSION"]: entry for entry in read_entries(machine) if entry["PI_AGENT_EVENT"] == "ended"}
    for one in past:
        entry = entries[one["id"]]
        assert one["state"] == "ended" and one["reason"] == entry["PI_AGENT_REASON"]
        assert str(one["duration_usec"]) == entry["PI_AGENT_DURATION_USEC"]
        assert str(one["exit_code"]) == entry.get("PI_AGENT_EXIT_CODE", "None")
        assert str(one["exit_signal"]) == entry.get("PI_AGENT_EXIT_SIGNAL", "None")
    assert len([one for one in history(machine, "--since", begun, "--user", "bob") if one["id"] in living]) == 10


def test_nothing_to_stop_is_said_and_has_its_own_status(playing, method):
    for arguments, words in (
        (["--all"], "no session runs"),
        (["--user", "alice"], "alice has no session"),
        (["0123"], "no session begins with 0123; 'sudo pi-agentctl sessions' lists them"),
    ):
        done = ctl(playing, "stop", *arguments)
        assert (done.returncode, done.stdout, done.stderr.decode()) == (NOTHING, b"", f"pi-agentctl: {words}\n"), done
    assert ctl(playing, "sessions").stdout == b"no session\n"


def test_what_is_meant_must_be_said(playing, method):
    for arguments in (["stop"], ["stop", "0", "--all"], ["stop", "--user", "alice", "--all"], ["stop", "--user", "nobody-here"], ["logs"]):
        done = ctl(playing, *arguments)
        assert done.returncode == USAGE and done.stderr.startswith(b"pi-agentctl: "), done
    with running(playing, *["alice"] * 2):
        ids = sorted(ids_of(sessions(playing)))
        shared = next(length for length in range(33) if ids[0][:length] != ids[1][:length]) - 1
        if shared:
            done = ctl(playing, "stop", ids[0][:shared])
            assert done.returncode == USAGE and b"2 sessions begin with" in done.stderr, done
        done = ctl(playing, "stop", "")
        assert done.returncode == USAGE and b"name a session by its first digits; 'sudo pi-agentctl sessions' lists them" in done.stderr, done
        assert ids_of(sessions(playing)) == set(ids)


def test_an_agent_that_does_not_want_to_end_is_ended_all_the_same(playing, method):
    with session(playing, "sh", "trap '' TERM INT HUP; echo ready; while :; do sleep 0.1; done") as process:
        (one,) = sessions(playing)
        assert ctl(playing, "stop", one["id"]).returncode == 0
        assert sessions(playing) == []
        process.wait(timeout=20)
    (past,) = [entry for entry in history(playing) if entry["id"] == one["id"]]
    assert past["exit_signal"] == 9 or past["exit_code"] == 137, past


def test_history_shows_how_each_start_went(playing, method):
    begun = from_now()
    assert pi(playing, "sh", "exit 0").returncode == 0
    assert pi(playing, "sh", "exit 3").returncode == 3
    assert pi(playing, "sh", "kill -9 $$").returncode == -9
    assert pi(playing, cwd="/").returncode == DENIED
    good, bad, killed, refused = history(playing, "--since", begun, "--user", "alice")
    assert (good["exit_code"], bad["exit_code"], killed["exit_signal"], refused["denied_status"]) == (0, 3, 9, DENIED)
    assert refused["state"] == "denied" and refused["reason"] and refused["id"] is None
    assert refused["said_by"] == "user" and good["said_by"] == "root"  # the wrapper refuses first
    assert history(playing, "--since", begun, "--failed") == [bad, killed, refused]
    for directory in ("/home/alice", "/home/alice/", "../home/alice"):  # as shells complete it, and from /root
        assert history(playing, "--since", begun, "--project", directory) == [good, bad, killed]
    assert history(playing, "--since", begun, "--project", DEMO) == [good, bad, killed]
    assert (good["directory"], good["project"]) == (DEMO, "/home/alice/projects")
    assert history(playing, "--since", begun, "--project", "/home/ali") == []
    assert history(playing, "--until", begun, "--since", begun) == []
    shown = ctl(playing, "history", "--since", begun)
    lines = shown.stdout.decode().splitlines()
    assert shown.returncode == 0 and len(lines) == 5 and lines[0].startswith("TIME "), shown
    assert [word in line for word, line in zip(("exit 0", "exit 3", "signal 9", "denied (77)"), lines[1:])] == [True] * 4, lines
    assert ctl(playing, "history", "--since", "@9000000000").returncode == NOTHING
    for wrong in ("soon", "2026-02-31", "@", "5", "-2h"):
        done = ctl(playing, "history", f"--since={wrong}")
        assert done.returncode == USAGE and b"is not valid: write 2026-03-01" in done.stderr, (wrong, done)


def test_a_users_entry_in_the_journal_does_not_enter_history(playing, method):
    """Anybody can send anything to the journal; a `started` that root did not send does not count."""
    forged = ("f" if method == "systemd" else "e") * 32
    fields = {
        "MESSAGE": "forged", "MESSAGE_ID": IDS["started"], "PI_AGENT_EVENT": "started",
        "PI_AGENT_SESSION": forged, "PI_AGENT_USER": "bob", "PI_AGENT_UID": "0",
    }  # fmt: skip
    text = "".join(f"{name}={value}\n" for name, value in fields.items())
    playing.run(["logger", "--journald"], user="eve", input=text.encode(), check=True)
    playing.root(["journalctl", "--sync"], check=True)
    assert playing.root(["journalctl", "-q", "-o", "cat", f"PI_AGENT_SESSION={forged}"], check=True).stdout == b"forged\n"
    assert not [one for one in history(playing) if one["id"] == forged]
    assert ctl(playing, "history", forged).returncode == NOTHING


def test_logs_has_the_record_and_what_systemd_said(playing, method):
    with running(playing, "alice") as (process,):
        (one,) = sessions(playing)
        finish(process)
    playing.root(["journalctl", "--sync"], check=True)
    done = ctl(playing, "history", one["id"][:20])
    said = done.stdout.decode()
    assert done.returncode == 0 and f"pi-agent-runner: session {one['id']} started: user alice" in said, done
    assert f"pi-agent-runner: session {one['id']} ended: exit code 0" in said
    if method == "systemd":
        assert re.search(rf"systemd\S*: Started .*pi-agent-{one['id']}|systemd\S*: pi-agent-{one['id']}", said), said


def test_logs_of_a_start_that_came_to_no_session_are_followed_to_their_end(playing, method):
    """It has no end that could be waited for."""
    begun = from_now()
    ctl(playing, "drain", check=True)
    try:
        assert pi(playing, "sh", "true").returncode == BUSY
    finally:
        ctl(playing, "drain", "--off", check=True)
    playing.root(["journalctl", "--sync"], check=True)
    (one,) = [start for start in history(playing, "--since", begun) if start["denied_code"] == "E75-drain"]
    done = ctl(playing, "history", "-f", one["id"], timeout=20)
    assert done.returncode == 0 and b"lets no session start on this host" in done.stdout, done


def test_without_a_journal_the_file_is_what_there_is(playing, method):
    socket = "/run/systemd/journal/socket"
    playing.root(["mv", socket, f"{socket}-away"], check=True)
    try:
        begun = from_now()
        assert pi(playing, "sh", "exit 5").returncode == 5
        (one,) = history(playing, "--since", begun)
        assert (one["exit_code"], one["user"], one["said_by"]) == (5, "alice", "root")
        done = ctl(playing, "history", one["id"])
        assert done.returncode == 0 and f"session {one['id']} ended: exit code 5" in done.stdout.decode(), done
    finally:
        playing.root(["mv", f"{socket}-away", socket], check=True)


def test_others_than_root_are_told_so(playing, method):
    others = (["sessions", "--user", "bob"], ["stop", "--user", "bob"], ["history", "--user", "bob"], ["state", "--user", "bob"])
    of_alice = (*others, ["stop", "--all"], ["history", "0123"], ["state", "prune", "--yes"])
    of_eve = (["sessions"], ["stop", "0123"], ["history"], ["state"], *of_alice)  # in no entry of the policy
    for user, commands in (("alice", of_alice), ("eve", of_eve)):
        for arguments in commands:
            done = playing.run(["pi-agentctl", *arguments], user=user)
            assert (done.returncode, done.stdout) == (DENIED, b"") and b"only root" in done.stderr, done


def test_who_may_read_the_journal_may_read_history(playing, method):
    assert pi(playing, "sh", "exit 0").returncode == 0
    playing.root(["gpasswd", "--add", "eve", "systemd-journal"], check=True)
    try:
        done = playing.run("pi-agentctl history --json", user="eve")
        assert done.returncode == 0 and json.loads(done.stdout)["starts"], done
        assert b"only root can tell which sessions are running" in done.stderr
    finally:
        playing.root(["gpasswd", "--delete", "eve", "systemd-journal"], check=True)

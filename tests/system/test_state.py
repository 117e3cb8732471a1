"""pi-agentctl state: sizes, pruning, resetting, and the export that no identity can turn against another."""

import pytest
from administering import BUSY, NOTHING, USAGE, answer, ctl, said
from launching import DEMO, PLAYING_POLICY, POLICY_FILE, STATE, owner_and_mode, pi, session

MEBIBYTE = 1 << 20
HOME = f"{STATE}/alice/home"
OUT = "/home/alice/exported"

pytestmark = pytest.mark.usefixtures("playing")


@pytest.fixture
def emptied(playing):
    """alice's agent as before its first start, before and after."""
    if playing.root(["test", "-d", HOME]).returncode == 0:
        said(playing, "state", "reset", "--user", "alice", "--yes")
    yield playing
    assert ctl(playing, "stop", "--user", "alice").returncode in (0, NOTHING)  # whose wrapper was killed ends a moment later
    if playing.root(["test", "-d", HOME]).returncode == 0:
        said(playing, "state", "reset", "--user", "alice", "--yes")


def state_of(machine, user="alice"):
    (state,) = answer(machine, "state", "--user", user)["states"]
    return state


def fill(path, size=4):
    return f"mkdir -p $(dirname {path}); head -c {size}M /dev/urandom >{path}"


def test_sizes_are_those_of_the_files(emptied):
    machine = emptied
    assert pi(machine, "sh", f"{fill('~/.cache/pip/x')}; {fill('~/made/y', 2)}; ln ~/made/y ~/made/z").returncode == 0
    state = state_of(machine)
    assert (state["account"], state["sessions"], state["scratch_bytes"], state["problem"]) == ("pi-agent-alice", 0, 0, None)
    assert 4 * MEBIBYTE <= state["caches_bytes"] < 5 * MEBIBYTE
    assert 6 * MEBIBYTE <= state["home_bytes"] < 8 * MEBIBYTE  # a second name does not make a second file
    used = int(machine.root(["du", "-s", "--block-size=1", HOME], check=True).stdout.split()[0])
    assert state["home_bytes"] == used
    assert "pi-agent-alice" in said(machine, "state") and "bob" not in said(machine, "state", "--user", "alice")
    with session(machine, "sh", "head -c 3M /dev/urandom >$TMPDIR/x; echo ready; cat"):
        state = state_of(machine)
        assert state["sessions"] == 1 and 3 * MEBIBYTE <= state["scratch_bytes"] < 4 * MEBIBYTE, state


def test_no_state_is_an_empty_list_for_programs_and_nothing_for_people(playing):
    assert answer(playing, "state", "--user", "daemon")["states"] == []
    assert said(playing, "state", "--user", "daemon", status=NOTHING) == "pi-agentctl: no state is kept of daemon\n"


def test_temporary_files_in_memory_count_too(emptied, playing_policy):
    playing_policy(PLAYING_POLICY + "scratch: tmpfs\n")
    with session(emptied, "sh", "head -c 3M /dev/urandom >$TMPDIR/x; echo ready; cat"):
        assert 3 * MEBIBYTE <= state_of(emptied)["scratch_bytes"] < 4 * MEBIBYTE


def test_prune_takes_caches_and_nothing_else_and_leaves_live_sessions_alone(emptied):
    machine = emptied
    script = f"{fill('~/.cache/pip/x')}; {fill('~/.local/share/go/pkg/mod/m/f')}; chmod -R a-w ~/.local/share/go/pkg/mod; {fill('~/.config/kept', 1)}"
    assert pi(machine, "sh", script).returncode == 0
    with session(machine, "sh", "echo ready; cat"):
        assert "alice: has a session, nothing is removed\n" in said(machine, "state", "prune", "--user", "alice", "--yes")
        assert state_of(machine)["caches_bytes"] > 8 * MEBIBYTE
    assert ctl(machine, "state", "prune").returncode == USAGE  # there is nobody to ask
    shown = said(machine, "state", "prune", "--yes")
    assert "alice: 8.0M removed, " in shown, shown
    assert state_of(machine)["caches_bytes"] < MEBIBYTE
    assert machine.root(["test", "-s", f"{HOME}/.config/kept"]).returncode == 0
    assert pi(machine, "sh", "mkdir ~/.cache && echo x >~/.cache/again").returncode == 0


def test_what_is_said_before_a_command_below_state_is_not_forgotten(emptied):
    for arguments in (["prune", "--yes"], ["reset", "--user", "alice", "--yes"], ["export", "--user", "alice", OUT]):
        assert f"write --user after '{arguments[0]}'" in said(emptied, "state", "--user", "alice", *arguments, status=USAGE)


def test_prune_follows_no_link_that_the_agent_planted(emptied):
    machine = emptied
    machine.root("mkdir -p /srv/precious/pip && chmod -R a+rwX /srv/precious && echo x >/srv/precious/pip/file && chmod a+rw /srv/precious/pip/file", check=True)
    try:
        script = "rm -rf ~/.cache ~/.npm ~/.local/share/go; ln -s /srv/precious ~/.cache; ln -s /srv/precious/pip ~/.npm; mkdir -p ~/.local/share; ln -s /srv/precious ~/.local/share/cargo"
        assert pi(machine, "sh", script).returncode == 0
        said(machine, "state", "prune", "--user", "alice", "--yes")
        assert machine.read("/srv/precious/pip/file") == b"x\n"
    finally:
        machine.root(["rm", "-r", "/srv/precious"], check=True)


def test_reset_refuses_while_a_session_lives_and_then_leaves_nothing(emptied):
    machine = emptied
    assert pi(machine, "sh", f"{fill('~/made/x')}; mkdir -m 0 ~/closed; ln -s /etc ~/etc").returncode == 0
    with session(machine, "sh", "echo ready; cat"):
        assert "alice has a session; end it first: pi-agentctl stop --user alice" in said(machine, "state", "reset", "--user", "alice", "--yes", status=BUSY)
    assert "use --yes" in said(machine, "state", "reset", "--user", "alice", status=USAGE)
    assert machine.root(["test", "-e", f"{HOME}/made/x"]).returncode == 0
    assert "the next start is like the first" in said(machine, "state", "reset", "--user", "alice", "--yes")
    assert machine.root(["ls", "-A", HOME], check=True).stdout == b""
    assert machine.root(["ls", "-A", f"{STATE}/alice/meta"], check=True).stdout == b"lock\n"
    assert owner_and_mode(machine, HOME) == "pi-agent-alice:pi-agent-alice 700"
    done = pi(machine, "sh", "test -e ~/.bashrc && test ! -e ~/made && echo new")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"new\n", b""), done
    assert "no state of nobody-here is kept" in said(machine, "state", "reset", "--user", "nobody-here", "--yes", status=NOTHING)


def test_an_empty_home_does_not_keep_the_next_policy_from_another_account(emptied):
    machine = emptied
    assert pi(machine, "sh", "true").returncode == 0
    said(machine, "state", "reset", "--user", "alice", "--yes")
    shared = PLAYING_POLICY.replace("accounts: per-user", "accounts: shared")
    assert shared != PLAYING_POLICY
    try:
        machine.write(POLICY_FILE, shared)
        assert "done: give the empty home of the agent of alice to pi-agent\n" in said(machine, "apply", "--no-canary")
        assert owner_and_mode(machine, HOME) == "pi-agent:pi-agent 700"
        assert pi(machine, "sh", "id -un; touch ~/own").stdout == b"pi-agent\n"
        machine.write(POLICY_FILE, PLAYING_POLICY)
        assert "give the" not in said(machine, "apply", "--no-canary")  # what is not empty is nobody else's
    finally:
        said(machine, "state", "reset", "--user", "alice", "--yes")
        machine.install_policy(PLAYING_POLICY)
    assert owner_and_mode(machine, HOME).startswith("pi-agent-alice:") and pi(machine, "sh", "id -un").stdout == b"pi-agent-alice\n"


@pytest.fixture
def exportable(emptied):
    machine = emptied
    script = """
    mkdir -p ~/.pi/agent/sessions/--home-alice--/deep; cd ~/.pi/agent/sessions
    echo one >--home-alice--/1.jsonl; echo two >--home-alice--/deep/2.jsonl; printf x >"odd
name"
    ln -s /etc/passwd link; ln -s /etc directory; mkfifo fifo
    """
    assert pi(machine, "sh", script).returncode == 0
    machine.root(["rm", "-rf", OUT], check=True)
    yield machine
    machine.root(["rm", "-rf", OUT], check=True)


def test_an_export_is_the_users_and_holds_files_alone(exportable):
    machine = exportable
    shown = said(machine, "state", "export", "--user", "alice", OUT)
    assert "3 files, 9, copied to /home/alice/exported, of alice" in shown and "3 entries left out" in shown, shown
    assert machine.run("find . -type f | sort | tr '\\n' ' '; cat ./--home-alice--/1.jsonl ./--home-alice--/deep/2.jsonl", cwd=OUT).stdout == (
        b"./--home-alice--/1.jsonl ./--home-alice--/deep/2.jsonl ./odd name one\ntwo\n"
    )
    assert machine.root(f"find {OUT} ! -user alice -o -type l -o -type p", check=True).stdout == b""
    assert owner_and_mode(machine, OUT) == "alice:alice 700"
    assert "is not empty" in said(machine, "state", "export", "--user", "alice", OUT, status=USAGE)


def test_an_export_goes_only_where_its_user_may_write(exportable):
    machine = exportable
    machine.root(["mkdir", "-p", "/srv/roots-own"], check=True)
    machine.run(["ln", "-s", "/srv/roots-own", OUT], user="alice", check=True)
    try:
        for place in ("/srv/roots-own/x", "/etc/exported"):
            done = ctl(machine, "state", "export", "--user", "alice", place)
            assert done.returncode == 71 and b"alice cannot " in done.stderr and b": Permission denied" in done.stderr, done
        for place in (OUT, f"{OUT}/x", f"{OUT}/x/../y/"):
            assert "is behind a symlink" in said(machine, "state", "export", "--user", "alice", place, status=USAGE)
        assert machine.root("ls -A /srv/roots-own; ls -d /etc/exported", check=False).stdout == b""
    finally:
        machine.root(["rm", "-r", OUT, "/srv/roots-own"], check=True)


def test_sessions_that_are_a_link_are_none(exportable):
    machine = exportable
    assert pi(machine, "sh", "cd ~/.pi/agent; mv sessions kept; ln -s /etc sessions").returncode == 0
    assert "has no sessions to export" in said(machine, "state", "export", "--user", "alice", OUT, status=NOTHING)
    assert machine.root(["test", "-e", OUT]).returncode == 1


def test_temporary_files_of_a_dead_session_are_shown_and_pruned(emptied):
    machine = emptied
    left = "/var/lib/pi-agent/sessions/" + "0" * 32
    machine.root(f"mkdir -m 0700 {left} && mkdir -m 0700 {left}/tmp && head -c 2M /dev/urandom >{left}/tmp/x && chown -R pi-agent-alice: {left}/tmp", check=True)
    states = answer(machine, "state")["states"]
    assert [state["scratch_bytes"] >= 2 * MEBIBYTE for state in states if state["user"] is None] == [True], states
    said(machine, "state", "prune", "--yes")
    assert machine.root(["test", "-e", left]).returncode == 1

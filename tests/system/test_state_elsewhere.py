"""agent.state_dir elsewhere: the homes move to another file system and back, sessions work there under each method, and remove finds them."""

import json

import pytest
from administering import NOTHING, answer, ctl, said
from launching import INVALID, PLAYING_POLICY, STATE, agent_says, assert_refused, owner_and_mode, pi, session, wait_until_empty
from test_apply_first_looks import UNAVAILABLE, a_sandbox_that_does_not_hold

PLACE = "/srv/agents"
POLICY = PLAYING_POLICY.replace("agent:\n", f"agent:\n  state_dir: {PLACE}\n")
HOME = f"{PLACE}/users/alice/home"


@pytest.fixture(scope="module")
def another_disk(playing):
    """A file system of its own, as an administrator mounts one; the homes are at their usual place before and after."""
    agent_says(playing, "sh", "mkdir -p ~/kept; echo mine >~/kept/file; ln -sfn file ~/kept/link")
    playing.root(f"mkdir {PLACE} && mount -t tmpfs -o mode=755 agents {PLACE}", check=True)
    yield playing
    playing.write("/etc/pi-agent/policy.yaml", PLAYING_POLICY)
    assert ctl(playing, "state", "move", "--yes").returncode in (0, NOTHING)
    playing.install_policy(PLAYING_POLICY)
    playing.root(f"umount {PLACE} && rmdir {PLACE}", check=True)


@pytest.fixture(scope="module")
def moved(another_disk):
    """The homes are there; the test of the move itself comes first."""
    another_disk.write("/etc/pi-agent/policy.yaml", POLICY)
    assert ctl(another_disk, "state", "move", "--yes").returncode in (0, NOTHING)
    another_disk.install_policy(POLICY)
    return another_disk


def test_homes_move_to_another_file_system(another_disk):
    machine = another_disk
    machine.write("/etc/pi-agent/policy.yaml", POLICY)
    assert_refused(pi(machine, "sh", "true"), INVALID, f"the agents' homes are not in {PLACE} (agent.state_dir)", "sudo pi-agentctl state move")
    refused = ctl(machine, "apply", "--no-canary")
    assert refused.returncode == INVALID and b"agent.state_dir: the agents' homes are in /var/lib/pi-agent; move them to /srv/agents: sudo pi-agentctl state move" in refused.stderr, refused
    told = said(machine, "state", "move", "--yes")
    assert f"copying the agents' homes from /var/lib/pi-agent to {PLACE}\n" in told and told.endswith("next: sudo pi-agentctl apply\n"), told
    assert machine.root("ls /var/lib/pi-agent | grep -v undo").stdout == b"applied\netc\nrecords\n"
    assert ctl(machine, "state", "move", "--yes").returncode == NOTHING
    assert ctl(machine, "apply", "--no-canary").returncode == 0
    assert ctl(machine, "apply", "--no-canary").stdout == b"nothing to do\n"
    assert agent_says(machine, "sh", "cat ~/kept/file ~/kept/link; echo $HOME") == f"mine\nmine\n{HOME}\n".encode()


def test_modes_sizes_and_explanations_are_of_the_new_place(moved):
    agent_says(moved, "sh", "true")
    for path, expected in ((PLACE, "root:root 711"), (f"{PLACE}/users", "root:root 711"), (f"{PLACE}/sessions", "root:root 700"), (f"{PLACE}/users/alice/meta", "root:root 700"), (HOME, "pi-agent-alice:pi-agent-alice 700")):
        assert owner_and_mode(moved, path) == expected, path
    [state] = answer(moved, "state", "--user", "alice")["states"]
    assert state["path"] == f"{PLACE}/users/alice", state
    assert HOME.encode() in moved.root(["pi-agentctl", "explain", "--user", "alice"], check=True).stdout
    with session(moved, "sh", "echo x >$TMPDIR/file; echo ready; cat"):
        assert moved.root(f"find {PLACE}/sessions -name file").stdout.strip()
    wait_until_empty(lambda: moved.root(["ls", "-A", f"{PLACE}/sessions"], check=True).stdout)
    told = json.loads(moved.root(["pi-agentctl", "doctor", "--json"], timeout=300).stdout)
    assert not [fault for fault in told["faults"] if fault["about"] == "state"], told["faults"]


@pytest.mark.parametrize("method", ["systemd", "bwrap", "none"])
def test_sessions_work_there_under_each_method(moved, method):
    moved.install_policy(POLICY + f"sandbox: {{method: {method}}}\n")
    try:
        done = pi(moved, "sh", "echo $HOME; echo again >~/written; cat ~/written")
        assert (done.returncode, done.stdout) == (0, f"{HOME}\nagain\n".encode()), done
        if method != "none":
            assert pi(moved, "sh", f"ls {PLACE}/users").stdout == b"alice\n", "nobody else's home is in the view"
    finally:
        moved.install_policy(POLICY)


def test_a_disk_that_is_not_mounted_gives_nobody_an_empty_home(moved):
    moved.root(["umount", PLACE], check=True)
    try:
        assert_refused(pi(moved, "sh", "true"), INVALID, f"the agents' homes are not in {PLACE}", "mount its file system")
        assert not moved.root(["ls", "-A", PLACE]).stdout
    finally:  # a new file system: what was on a tmpfs is gone
        moved.root(["mount", "-t", "tmpfs", "-o", "mode=755", "agents", PLACE], check=True)
        moved.install_policy(POLICY)


def test_a_place_for_a_host_without_homes_needs_no_move_and_goes_back_with_apply(moved):
    said(moved, "remove", "--state", "--yes")
    moved.install_policy(PLAYING_POLICY)
    moved.write("/etc/pi-agent/policy.yaml", POLICY)
    note = "/var/lib/pi-agent/applied/state.json"
    with a_sandbox_that_does_not_hold(moved):
        done = moved.root(["pi-agentctl", "apply"])
    assert done.returncode == UNAVAILABLE and b"what had been changed is as it was" in done.stderr, done
    assert f"warning: homes that sessions made in {PLACE}/users meanwhile stay there".encode() in done.stderr, done
    assert moved.root(["test", "-e", note]).returncode == 1 and moved.root(["ls", PLACE]).stdout == b"users\n", done
    told = said(moved, "apply")
    assert f"done: note that the agents' homes are in {PLACE}\n" in told and "done: the sandbox (systemd) was tried as alice" in told, told
    assert json.loads(moved.read(note)) == {"place": PLACE}


def test_remove_takes_the_homes_from_there_and_leaves_the_mount_point(moved):
    agent_says(moved, "sh", "true")
    said(moved, "remove", "--state", "--yes")
    assert not moved.root(["ls", "-A", PLACE], check=True).stdout
    moved.install_policy(POLICY)
    assert agent_says(moved, "sh", "ls -A ~/kept 2>/dev/null; echo new") == b"new\n"
    assert not moved.root(f"ls {STATE} 2>/dev/null").stdout


def test_a_removal_that_something_stops_finds_the_homes_again(moved):
    """Where they are is known from a note that goes with them; an account that goes before them would leave them to whoever gets its number."""
    agent_says(moved, "sh", "true")
    moved.write(f"{PLACE}/users/strange", "an administrator's\n")
    shown = said(moved, "remove", "--state", "--yes", status=INVALID)
    assert f"{PLACE}/users contains something that is not pi-agent's" in shown, shown
    moved.root(["rm", f"{PLACE}/users/strange"], check=True)
    said(moved, "remove", "--state", "--yes")
    assert not moved.root(["ls", "-A", PLACE], check=True).stdout
    moved.install_policy(POLICY)

"""What a machine's systemd has beyond the oldest that serves: told by explain, and used by a session."""

import json

from launching import DEMO, finish, session
from recipes import MACHINES


def test_explain_tells_what_the_running_systemd_has(machine):
    version = MACHINES[machine.recipe].systemd
    shown = machine.run(["pi-agentctl", "explain", "--json"], cwd=DEMO, check=True).stdout
    newer = version >= 257
    assert json.loads(shown)["systemd"] == {"version": version, "private_pids": newer, "log_sockets": newer, "identity_ids": newer}
    text = machine.run(["pi-agentctl", "explain"], cwd=DEMO, check=True).stdout.decode()
    assert f"systemd:  {version}: sessions " in text
    assert machine.root(["systemctl", "--version"]).stdout.startswith(f"systemd {version} ".encode())


def test_a_session_has_what_explain_told(playing):
    with session(playing, "signals") as process:
        listed = playing.root("systemctl list-units --plain --no-legend 'pi-agent-*.service' | cut -d ' ' -f 1", check=True).stdout
        (unit,) = [name for name in listed.decode().split() if not name.startswith("pi-agent-cleanup-")]
        shown = playing.root(["systemctl", "show", "--property=PrivatePIDs,BindLogSockets,ProtectProc", unit]).stdout.decode().split()
        finish(process)
    newer = {"PrivatePIDs=yes", "BindLogSockets=no"} if MACHINES[playing.recipe].systemd >= 257 else set()
    assert set(shown) == {"ProtectProc=invisible"} | newer


def test_the_end_is_told_by_a_systemd_that_was_restarted_meanwhile(playing):
    """On the bus it is somebody else then, whose signals alone prove nothing."""
    with session(playing, "signals") as process:
        playing.root(["systemctl", "daemon-reexec"], check=True)
        assert finish(process)[0] == 0


def test_no_zombie_stays_of_what_the_agents_children_leave_behind(playing):
    script = "for i in 1 2 3 4 5; do (sleep 0.1 &); done; sleep 0.5; ps -eo stat=,comm= | grep -c ^Z"
    done = playing.run(["pi", "sh", script], cwd=DEMO)
    assert done.stdout == b"0\n", done

"""Data that others keep, beside a project (`readable: [/data/sets]`), roots with the user's name (`/scratch/{user}`), and transcripts that users export."""

import json

import pytest
from administering import ctl
from launching import DEMO, PLAYING_POLICY, agent_says, assert_refused, pi

pytestmark = pytest.mark.usefixtures("playing")

READABLE = PLAYING_POLICY.replace("  alice:\n", "  alice:\n    readable: [/data/sets, /data/closed, /data/none]\n")
SEEN = "cat /data/sets/open /data/sets/group; ls /data"


@pytest.fixture(scope="module", autouse=True)
def data(machine):
    """Of root and a group with alice in it; another one without her."""
    machine.root(
        "groupadd -f genomes; usermod -aG genomes alice; mkdir -p /data/sets/deep /data/closed /scratch/alice/p /scratch/bob/p;"
        "echo all >/data/sets/open; echo group >/data/sets/group; echo own >/data/sets/own; chgrp -R genomes /data/sets; chmod 750 /data/sets; chmod 640 /data/sets/group;"
        "chown alice /data/sets/own; chmod 600 /data/sets/own; chmod 700 /data/closed; chown -R alice /scratch/alice; chown -R bob /scratch/bob; chmod 700 /scratch/*",
        check=True,
    )
    yield
    machine.root("gpasswd -d alice genomes; rm -rf /data /scratch; groupdel genomes", check=True)


def test_a_session_sees_the_data_as_its_user_does_and_changes_nothing(machine, playing_policy):
    playing_policy(READABLE)
    done = pi(machine, "sh", f"{SEEN}; cat /data/sets/own; ls -A /data; touch /data/sets/new 2>&1; echo x >>/data/sets/own")
    assert done.stdout.decode().splitlines()[:4] == ["all", "group", "closed", "sets"], done
    assert b"/data/sets/own: Permission denied" in done.stderr, "what only its owner may read"
    assert b"Read-only file system" in done.stdout + done.stderr, done
    told = done.stderr.decode().splitlines()
    assert any("not shown to the agent: /data/none (users.alice.readable): it does not exist" in line for line in told), told
    assert machine.read("/data/sets/own") == b"own\n" and not machine.root("ls /data/sets/new").returncode == 0


def test_who_may_not_read_it_sees_nothing(machine, playing_policy):
    playing_policy(READABLE.replace("  bob:\n", "  bob:\n    readable: [/data/sets]\n"))
    done = pi(machine, "sh", "cat /data/sets/open; ls /data/sets", user="bob", cwd="/home/bob/work")
    assert b"all" not in done.stdout and b"group" not in done.stdout, done
    done = pi(machine, "sh", "ls /data/closed")
    assert b"Permission denied" in done.stderr or b"No such file" in done.stderr, done


def test_explain_why_and_show_name_it(machine, playing_policy):
    playing_policy(READABLE)
    explained = json.loads(ctl(machine, "explain", "--user", "alice", "--json").stdout)
    found = {one["path"]: one["state"] for one in explained["toolchains"]["readable"]}
    assert (found["/data/sets"], found["/data/none"]) == ("shown", "not shown"), found
    shown = machine.run(["pi-agentctl", "show", "--effective"], user="alice", check=True).stdout.decode()
    assert "/data/sets" in shown, shown
    why = machine.run(["pi-agentctl", "why", "/data/sets/open"], user="alice", cwd=DEMO).stdout.decode()
    assert "read-only" in why and "readable" in why, why


@pytest.mark.parametrize("path", ["/", "/home/bob", "/run/user", "/var/lib/pi-agent/users", "/data//sets", "/data/../etc", "/etc/ssl", "/tmp/x"])
def test_what_is_no_data_is_refused(machine, path):
    machine.write("/root/draft.yaml", READABLE.replace("/data/none", path))
    done = machine.root(["pi-agentctl", "check", "/root/draft.yaml"])
    assert done.returncode == 78 and b"users.alice.readable" in done.stdout + done.stderr, done


def test_a_root_with_the_users_name_is_each_users_own(machine, playing_policy):
    own = PLAYING_POLICY.replace("[~/projects, /srv/shared/app]", "['/scratch/{user}']").replace("[~/work]", "['/scratch/{user}']")
    playing_policy(own)
    for user, other in (("alice", "bob"), ("bob", "alice")):
        assert agent_says(machine, "sh", "pwd; touch made; ls -A /scratch", user=user, cwd=f"/scratch/{user}/p") == f"/scratch/{user}/p\n{user}\n".encode()
        assert machine.root(["stat", "-c", "%U", f"/scratch/{user}/p/made"], check=True).stdout.decode() == f"{user}\n"
        machine.root(f"setfacl -m u:{user}:rx /scratch/{other} 2>/dev/null || chmod 755 /scratch/{other}", check=True)
        assert_refused(pi(machine, "sh", "echo ran", user=user, cwd=f"/scratch/{other}"), 77, "is outside")
    assert "/scratch/alice" in machine.run(["pi-agentctl", "explain"], user="alice", check=True).stdout.decode()


@pytest.mark.parametrize("root", ["/scratch/{usr}", "/scratch/{user", "/srv/{}"])
def test_other_braces_are_refused(machine, root):
    machine.write("/root/draft.yaml", PLAYING_POLICY.replace("[~/work]", f"['{root}']"))
    done = machine.root(["pi-agentctl", "check", "/root/draft.yaml"])
    assert done.returncode == 78 and b"users.bob.roots" in done.stdout + done.stderr, done


def test_a_user_exports_a_transcript_by_its_id(machine, playing_policy):
    playing_policy(PLAYING_POLICY)
    sessions = "$PI_CODING_AGENT_DIR/sessions"
    made = f'mkdir -p {sessions}/--p--; for id in 0a1b-one 0a1c-two; do echo "{{\\"id\\":\\"$id\\"}}" >{sessions}/--p--/2026-01-01T00-00-00-000Z_$id.jsonl; done'
    assert pi(machine, "sh", made).returncode == 0
    try:
        listed = machine.run(["pi-agentctl", "export"], user="alice", cwd=DEMO, check=True).stdout.decode()
        assert [line.split()[0] for line in listed.splitlines() if "--p--" in line] == ["0a1b-one", "0a1c-two"], listed
        one = machine.run(["pi-agentctl", "export", "0a1b"], user="alice", cwd=DEMO)
        assert (one.returncode, one.stdout) == (0, b'{"id":"0a1b-one"}\n'), one
        for wrong, status in (("0a1", 64), ("ffff", 1), ("*", 1), ("../..", 1)):
            assert machine.run(["pi-agentctl", "export", wrong], user="alice", cwd=DEMO).returncode == status
        assert machine.run(["pi-agentctl", "export", "0a1b"], user="bob", cwd="/home/bob/work").returncode == 1
    finally:
        pi(machine, "sh", f"rm -r {sessions}/--p--")

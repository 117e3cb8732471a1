"""What would be said at every start alike is said once, again when it changes, and always by doctor and with --pi-agent-debug."""

import json

import pytest
from launching import DEMO, messages, pi

ENV = "/home/alice/.pi/agent/env"
LINK = "/home/alice/.pyenv"


@pytest.fixture
def nagging(playing):
    playing.root("pi-agentctl state reset --user alice --yes; true")
    as_alice = ["runuser", "-u", "alice", "--", "sh", "-c"]
    playing.root([*as_alice, f"mkdir -p ~/.pi/agent; echo LD_PRELOAD=x >{ENV}; mkdir ~/else; ln -s else {LINK}"], check=True)
    yield playing
    playing.root(f"rm -r {ENV} {LINK} /home/alice/else", check=True)


def said(machine, *options):
    done = pi(machine, *options, "sh", "true")
    assert done.returncode == 0, done
    return [line for line in messages(done) if "LD_PRELOAD" in line or ".pyenv" in line]


def test_a_start_tells_it_once_and_again_when_it_changes(nagging):
    first = said(nagging)
    assert len(first) == 2, first
    assert said(nagging) == []
    assert said(nagging, "--pi-agent-debug") == first
    nagging.root(f"echo LD_AUDIT=x >>{ENV}", check=True)
    changed = said(nagging)
    assert any("LD_PRELOAD" in line for line in changed) and said(nagging) == [], changed
    nagging.root(["truncate", "-s0", ENV], check=True)
    assert said(nagging) == []
    nagging.root(f"echo LD_PRELOAD=x >{ENV}", check=True)
    assert len(said(nagging)) == 1


def test_what_a_project_hides_is_told_once(nagging):
    nagging.root(f"mkdir {DEMO}/mounted && mount -t tmpfs inner {DEMO}/mounted", check=True)
    try:
        told = [[line for line in messages(pi(nagging, "sh", "true")) if "/mounted" in line] for _ in range(2)]
    finally:
        nagging.root(f"umount {DEMO}/mounted; rmdir {DEMO}/mounted", check=True)
    assert [len(lines) for lines in told] == [1, 0], told


def test_doctor_tells_it_always(nagging):
    said(nagging)
    for _ in range(2):
        notes = json.loads(nagging.root(["pi-agentctl", "doctor", "--json"]).stdout)["notes"]
        assert [any(word in note for note in notes) for word in ("LD_PRELOAD", ".pyenv")] == [True, True], notes
        assert all(note.startswith(("alice: ", "bob: ", "carol: ", "network: full")) for note in notes), notes

"""Repositories that are laid out or masked in unusual ways: git works inside, or pi says why it cannot."""

import pytest
from launching import PLAYING_POLICY, agent_says, messages, pi, wait_until_empty

BASE = "/home/alice/projects/work"
PLACE = f"{BASE}/app"
ELSEWHERE = "/home/alice/mirror"
COMMIT = "git -c user.name=A -c user.email=a@example.org commit -q"


@pytest.fixture
def project(playing):
    playing.run(f"rm -rf {BASE}; mkdir -p {PLACE}; cd {PLACE}; git init -q -b main; {COMMIT} --allow-empty -m one", cwd="/home/alice", check=True)
    yield playing
    playing.root(["rm", "-rf", BASE, ELSEWHERE], check=True)


def test_what_the_policy_masks_counts_as_ignored(project, playing_policy):
    """By name anywhere, by path from the root and from the repository; and the user's own list still counts."""
    project.run("mkdir -p ~/.config/git deploy/keys sub; echo '*.user' >~/.config/git/ignore; echo x | tee .env sub/.env deploy/keys/a '!odd' x.user new >/dev/null", cwd=PLACE, check=True)
    try:
        playing_policy(PLAYING_POLICY + "projects: {mask: [.env, '!odd', work/app/deploy/keys]}\n")
        for section in ("", ", scope: project"):
            playing_policy(PLAYING_POLICY + f"projects: {{mask: [.env, '!odd', work/app/deploy/keys]{section}}}\n")
            done = pi(project, "sh", "git add -A && git status --porcelain && git reset -q", cwd=PLACE)
            assert (done.returncode, done.stdout) == (0, b"A  new\n"), done
    finally:
        project.run("rm ~/.config/git/ignore", check=True)
    notes = agent_says(project, "sh", "cat /AGENTS.md", cwd=PLACE).decode()
    assert "does not track yet count as ignored" in notes


def test_a_repository_that_borrows_objects_from_a_place_that_is_not_shown_is_told(project):
    project.run(f"git clone -q --bare {PLACE} {ELSEWHERE}; rm -rf {PLACE}; git clone -q --shared {ELSEWHERE} {PLACE}", cwd="/home/alice", check=True)
    done = pi(project, "sh", "git log -1 --format=%s", cwd=PLACE)
    (notice,) = messages_about_objects(done)
    assert f"objects in {ELSEWHERE}/objects (objects/info/alternates)" in notice and done.stdout == b"", done
    project.run("git repack -q -a -d && rm .git/objects/info/alternates", cwd=PLACE, check=True)
    done = pi(project, "sh", "git log -1 --format=%s", cwd=PLACE)
    assert (done.stdout, messages_about_objects(done)) == (b"one\n", []), done


def test_objects_of_another_repository_of_the_root_are_there_and_nothing_is_told(project):
    project.run(f"git clone -q --shared {PLACE} {BASE}/other; echo ../../../app/.git/objects >{BASE}/other/.git/objects/info/alternates", cwd="/home/alice", check=True)
    done = pi(project, "sh", "git log -1 --format=%s", cwd=f"{BASE}/other")
    assert (done.stdout, messages(done)) == (b"one\n", []), done


def messages_about_objects(done):
    return [line for line in done.stderr.decode().splitlines() if line.startswith("pi: git: this repository has objects")]


def test_a_repository_with_a_reftable_takes_commits_inside_and_outside(project):
    made = project.run("git init -q --ref-format=reftable -b main ../tables && git -C ../tables config user.name A && git -C ../tables config user.email a@b", cwd=PLACE)
    if made.returncode != 0:
        assert b"ref-format" in made.stderr or b"unknown option" in made.stderr, made  # Debian 12's git knows no reftables
        return
    outside = "git commit -q --allow-empty -m outside"
    done = pi(project, "sh", f"git commit -q --allow-empty -m inside && {outside} && git log --format=%s", cwd=f"{BASE}/tables")
    assert (done.returncode, done.stdout) == (0, b"outside\ninside\n"), done
    assert any("as a reftable" in line for line in messages(done)), done
    project.run(outside, cwd=f"{BASE}/tables", check=True)
    wait_until_empty(lambda: project.root(f"find {BASE}/tables/.git -name commondir").stdout)

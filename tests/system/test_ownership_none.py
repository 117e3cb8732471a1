"""projects.ownership none: files of a project keep the owners that they have, and the agent has the access of its own account."""

import pytest
from launching import PLAYING_POLICY, agent_says, owner_and_mode, pi

NONE = "projects: {ownership: none}\n"
SHARED = "/home/alice/projects/shared"
CLOSED = "/home/alice/projects/closed"


@pytest.fixture(scope="module")
def unmapped(playing):
    """A directory of alice's that everybody may write, and one of hers alone."""
    playing.install_policy(PLAYING_POLICY + NONE)
    playing.run(["mkdir", "-m", "700", CLOSED], check=True)
    playing.run(["mkdir", "-m", "777", SHARED], check=True)
    playing.root(["chmod", "777", SHARED], check=True)
    yield playing
    playing.root(["rm", "-rf", SHARED, CLOSED], check=True)
    playing.install_policy(PLAYING_POLICY)


def shell(machine, script, **options):
    return pi(machine, "sh", script, cwd=SHARED, **options)


def test_what_the_agent_makes_belongs_to_its_account(unmapped):
    assert agent_says(unmapped, "sh", "mkdir made; echo text >made/file; stat -c %U . made/file", cwd=SHARED)
    assert owner_and_mode(unmapped, f"{SHARED}/made/file").split(":")[0] == "pi-agent-alice"
    assert owner_and_mode(unmapped, SHARED).split(":")[0] == "alice"


def test_the_user_removes_what_lies_in_their_own_directory_and_changes_no_more_than_modes_allow(unmapped):
    agent_says(unmapped, "sh", "echo text >single; mkdir -p tree; echo text >tree/inner", cwd=SHARED)
    assert unmapped.run(["rm", "-f", "single"], cwd=SHARED).returncode == 0
    assert unmapped.run(["cat", "tree/inner"], cwd=SHARED).stdout == b"text\n"
    refused = unmapped.run(["rm", "-f", "tree/inner"], cwd=SHARED)
    assert refused.returncode != 0 and b"Permission denied" in refused.stderr, refused


def test_files_of_the_users_alone_are_closed_to_the_agent(unmapped, playing_policy):
    unmapped.write(f"{SHARED}/private", "private\n", owner="alice", mode=0o600)
    done = shell(unmapped, "cat private")
    assert done.stdout == b"" and b"Permission denied" in done.stderr, done
    playing_policy(PLAYING_POLICY)
    assert agent_says(unmapped, "sh", "cat private", cwd=SHARED) == b"private\n"
    playing_policy(PLAYING_POLICY + NONE)


def test_a_directory_that_the_agent_may_not_enter_is_named_with_the_remedy(unmapped):
    unmapped.install_policy(PLAYING_POLICY + NONE)
    done = pi(unmapped, "sh", "echo ran", cwd=CLOSED)
    assert done.returncode != 0 and done.stdout == b"", done
    assert b"that account needs access of its own" in done.stderr and b"docs/concepts/ownership.md" in done.stderr, done


def test_git_takes_the_users_repository_for_its_own_and_no_other(unmapped):
    unmapped.install_policy(PLAYING_POLICY + NONE)
    make = "git init -q repository && cd repository && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && chmod -R a+rwX ."
    unmapped.run(["sh", "-c", make], cwd=SHARED, check=True)
    unmapped.root(["cp", "-a", f"{SHARED}/repository", f"{SHARED}/bobs"], check=True)
    unmapped.root(["chown", "-R", "bob:bob", f"{SHARED}/bobs"], check=True)
    said = agent_says(unmapped, "sh", "git log --format=%s; git status --porcelain", cwd=f"{SHARED}/repository")
    assert said == b"first\n", said
    done = pi(unmapped, "sh", "git log --format=%s", cwd=f"{SHARED}/bobs")
    assert done.returncode != 0 and b"first" not in done.stdout, done


def test_a_temporary_directory_of_the_users_is_refused(unmapped):
    unmapped.install_policy(PLAYING_POLICY + NONE)
    done = pi(unmapped, "--pi-agent-tmpdir=made/tmp", "sh", "echo ran", cwd=SHARED)
    assert done.returncode == 77 and done.stdout == b"", done
    assert b"projects.ownership: none" in done.stderr, done
    assert unmapped.root(["test", "-e", f"{SHARED}/made/tmp"]).returncode == 1


def test_explain_and_the_agents_notes_say_so(unmapped):
    unmapped.install_policy(PLAYING_POLICY + NONE)
    said = unmapped.root(["pi-agentctl", "explain", "--user", "alice"], check=True).stdout
    assert b"the agent's account has its own rights there, and no others" in said, said
    assert b"Files that you make in the project belong to this account" in agent_says(unmapped, "sh", "cat /AGENTS.md", cwd=SHARED)


@pytest.mark.parametrize("method", ["bwrap", "none"])
def test_every_method_leaves_owners_as_they_are(unmapped, method):
    unmapped.install_policy(f"{PLAYING_POLICY}{NONE}sandbox: {{method: {method}}}\n")
    done = shell(unmapped, f"echo text >by-{method}")
    assert done.returncode == 0, done
    assert owner_and_mode(unmapped, f"{SHARED}/by-{method}").split(":")[0] == "pi-agent-alice"
    unmapped.install_policy(PLAYING_POLICY + NONE)

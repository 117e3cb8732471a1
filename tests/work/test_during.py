"""What the user does outside, in a project, while a session works in it: as if there were none, but for what reasons.GIT_OUTSIDE_WAITS says."""

import pytest
from case import Case
from cases.git import REMOTE
from launching import leftovers, session, wait_until_empty
from sides import ENVIRONMENT, PLACE

OUTSIDE = {
    "git config": "git config core.commentChar ';' && git config core.commentChar",
    "git switch --track": "git switch -q --track origin/other && git status --short --branch",
    "git push with an upstream": "git push -q -u origin main:pushed && git status --short --branch",
    "git branch with an upstream": "git branch -q -u origin/other && git branch -m renamed",
    "git remote add": "git remote add second ./up.git && git fetch -q second",
    "git worktree add and remove": "git worktree add -q wt -b wt && git worktree remove wt",
    "git submodule add": "git -c protocol.file.allow=always submodule --quiet add $PWD/up.git lib",
    "a commit": "echo x >>file && git commit -qam x",
    "a hook": "printf '#!/bin/sh\\n' >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && rm .git/hooks/pre-commit",
    "the project's removal of a directory": "rm -r src && mkdir src",
    "the removal of a worktree": "git worktree remove old && git worktree list | wc -l",
}
# They write .git/config.
WAITING = ("git config", "git switch --track", "git push with an upstream", "git branch with an upstream", "git remote add", "git submodule add")


@pytest.fixture
def project(sides):
    sides.prepare(Case("", "", REMOTE + "git push -q origin main:other; git fetch -q; git worktree add -q old -b old; echo old >>.git/info/exclude"))
    yield sides.machine
    wait_until_empty(lambda: leftovers(sides.machine))


def working(project):
    """A session that has looked at the project, and stays in it."""
    return session(project, "sh", "git status --porcelain; echo ready; read -r line", cwd=PLACE, env=ENVIRONMENT)


def complaints(done):
    return done.returncode, [line for line in done.stderr.decode().splitlines() if line.startswith(("error", "fatal"))]


@pytest.mark.parametrize("name", [name for name in OUTSIDE if name not in WAITING])
def test_the_user_works_outside_meanwhile(project, name):
    with working(project):
        done = project.run(OUTSIDE[name], cwd=PLACE, env=ENVIRONMENT)
    assert complaints(done) == (0, [])


@pytest.mark.parametrize("name", WAITING)
def test_what_writes_the_settings_waits_for_the_sessions_end(project, name):
    command = OUTSIDE[name].split(" && ")[0]
    with working(project):
        busy = project.run(command, cwd=PLACE, env=ENVIRONMENT)
    assert b"Device or resource busy" in busy.stderr, busy
    wait_until_empty(lambda: leftovers(project))
    assert complaints(project.run("git config core.commentChar ';'", cwd=PLACE, env=ENVIRONMENT)) == (0, [])

"""Git in a protected repository: twelve everyday workflows inside, and the same repository healthy outside afterwards."""

import pytest
from launching import PLAYING_POLICY, agent_says, pi, wait_until_empty

pytestmark = pytest.mark.usefixtures("playing")

BASE = "/home/alice/projects/work"
PLACE = f"{BASE}/app"
GIT = "git -c user.name=A -c user.email=a@example.org -c protocol.file.allow=always"
# app is a clone of upstream.git, has a submodule and a worktree, and a branch that conflicts with none.
MAKE = f"""
set -e
rm -rf {BASE}; mkdir {BASE}; cd {BASE}
git init -q --bare -b main upstream.git
git init -q -b main library; {GIT} -C library commit -q --allow-empty -m one
git init -q -b main first; cd first
for i in 1 2 3 4 5 6; do echo $i >file$i; git add .; {GIT} commit -qm "commit $i"; done
git checkout -q -b feature HEAD~2; echo f >feature; git add .; {GIT} commit -qm feature; git checkout -q main
{GIT} submodule --quiet add {BASE}/library library; {GIT} commit -qm library
git push -q {BASE}/upstream.git main feature
cd ..; {GIT} clone -q --recurse-submodules upstream.git app; rm -rf first
cd app; git config user.name A; git config user.email a@example.org; git -C library config user.name A; git -C library config user.email a@example.org
git worktree add -q ../side -b side
"""
OK = "git status --porcelain"
WORKFLOWS = {
    "clone": "git clone -q . ../copy && cd ../copy && git log --oneline | wc -l && git status --porcelain",
    "clone and first commit": "git init -q ../fresh && cd ../fresh && git config user.name A && git config user.email a@b && git commit -q --allow-empty -m one",
    "commit": "echo new >new; git add new; git commit -qm new; echo more >>new; git commit -qam more; git commit -q --amend -m most; git show --stat HEAD",
    "branch": "git branch one; git switch -q one; git switch -q -c two; git switch -q main; git branch -a",
    "branch from a remote one": "git checkout -q feature && git log -1 --format=%s && git checkout -q -b other origin/feature && git checkout -q main",
    "fetch": "git fetch -q origin; git fetch -q --all --prune; git remote -v; git log -1 origin/main",
    "pull": "git pull -q --rebase origin main; git pull -q --ff-only",
    "push": "echo p >p; git add p; git commit -qm p; git push -q origin HEAD:refs/heads/pushed; git push -q origin :pushed; git reset -q --hard HEAD~1",
    "stash": "echo x >>file1; echo u >untracked; git stash -q -u; test ! -e untracked; git stash list; git stash pop -q; git checkout -q file1; rm untracked",
    "rebase": "git checkout -q -b moving origin/feature; git rebase -q main; GIT_SEQUENCE_EDITOR=true git rebase -q -i HEAD~2; git checkout -q main",
    "rebase with a conflict": "git checkout -q -b clash HEAD~2; echo z >file6; git add file6; git commit -qm z; ! git rebase main; git rebase --abort; git checkout -q main",
    "merge": "git merge -q --no-edit origin/feature; git merge -q --no-ff -m m main; git reset -q --hard origin/main",
    "tag": "git tag v1; git tag -a v2 -m two; git describe; git tag -d v1 v2",
    "cherry-pick and revert": "git cherry-pick origin/feature; git revert --no-edit HEAD; git reset -q --hard origin/main",
    "bisect": "git bisect start HEAD HEAD~4; git bisect run sh -c 'test ! -e file5'; git bisect reset",
    "worktree": "git worktree add -q ../made -b made; cd ../made; echo w >w; git add w; git commit -qm w; git status; cd -; git worktree list; git worktree remove ../made",
    "gc": "git gc -q --prune=now; git fsck --no-progress; git pack-refs --all; git repack -adq; git maintenance run --quiet",
    "submodule": "cd library; echo l >l; git add l; git commit -qm l; cd ..; git submodule status; git add library; git commit -qm bump; git submodule --quiet foreach 'git status --porcelain'; git -C library checkout -q HEAD~1",
    "apply and am": "git format-patch -q -1 -o ../patches; git reset -q --hard HEAD~1; git am -q ../patches/*; git diff HEAD~1 >../p; git apply --check -R ../p; rm -r ../patches ../p",
    "clean and reset": "touch junk; git clean -fdq; echo x >>file2; git restore file2; git reset -q --soft HEAD~1; git commit -qm again; git reset -q --hard origin/main",
    "the worktree made outside": "cd ../side; echo s >s; git add s; git commit -qm s; git status --porcelain; git log -1 --format=%s; git merge -q --no-edit main",
    "grep, blame and log": "git grep -n 1; git blame file1; git log --stat --graph --all; git shortlog -s HEAD; git reflog",
}
# What cannot work, because it writes .git/config; whether it fails, and what was done anyway.
REFUSED = {
    "git config a.b c": (True, "! git config a.b"),
    "git remote add other ../upstream.git": (True, "! git remote get-url other"),
    "git branch -m main renamed": (True, "true"),
    "git push -q -u origin HEAD:refs/heads/up": (False, "git ls-remote origin | grep -q up"),
    "git branch -D side2": (False, "! git rev-parse -q --verify side2"),
    "git sparse-checkout set file1": (True, "test -e file2"),
    "git submodule update": (True, "git submodule status"),
    "git worktree remove ../side": (True, "test -e .git/worktrees/side/commondir"),
}


@pytest.fixture
def project(machine):
    machine.run(MAKE, cwd="/home/alice", check=True)
    yield PLACE
    machine.root(["rm", "-rf", BASE], check=True)


def odd_files(machine):
    """Files of other owners, empty files that git does not make, and what is not in git's own layout."""
    others = machine.root(f"find {BASE} ! -user alice -o ! -group alice").stdout.decode().split()
    empty = machine.root(f"find {BASE} -path '*/.git/*' -type f -empty ! -name '*.lock' ! -path '*/refs/*' ! -name '*gc.log' ! -name 'FETCH_HEAD'").stdout.decode().split()
    placeholders = machine.root(f"find {BASE} -type d -perm -1000; find {BASE} -path '*/.git/*' ! -path '*/worktrees/*' -name commondir; find {BASE} -name attributes").stdout.decode().split()
    return [*others, *empty, *placeholders]


def healthy(machine, place):
    """What git outside has to complain of, in the repository, its submodule and its worktree."""
    for directory in (place, f"{place}/library", f"{BASE}/side"):
        done = machine.run("set -e; git fsck --no-progress --no-dangling; git status --ignored; git worktree list; git log -1; git stash list; git branch -a", cwd=directory)
        assert done.returncode == 0 and b"error" not in done.stderr and b"fatal" not in done.stderr, done
    return True


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_works_inside_and_the_repository_is_healthy_outside(machine, project, name):
    done = pi(machine, "sh", f"set -e; {WORKFLOWS[name]}", cwd=project)
    complaints = [line for line in done.stderr.splitlines() if line.startswith((b"error:", b"fatal:")) and b"could not apply" not in line]
    assert (done.returncode, complaints) == (0, []), done
    wait_until_empty(lambda: odd_files(machine))
    assert healthy(machine, project)
    locks = machine.run("find .git -name '*.lock'", cwd=project).stdout
    assert locks == b"", locks


@pytest.mark.parametrize("command", REFUSED)
def test_what_writes_the_config_fails_in_words_and_breaks_nothing(machine, project, command):
    fails, after = REFUSED[command]
    before = machine.read(f"{project}/.git/config")
    done = pi(machine, "sh", f"git branch -q side2; {command}", cwd=project)
    assert (done.returncode != 0) == fails, done
    assert done.stderr != b"", done
    wait_until_empty(lambda: odd_files(machine))
    assert machine.run(after, cwd=project).returncode == 0
    assert machine.read(f"{project}/.git/config") == before
    assert healthy(machine, project)


def test_the_same_works_without_protection(machine, project, playing_policy):
    playing_policy(PLAYING_POLICY + "projects: {protect: []}\n")
    agent_says(machine, "sh", "git config a.b c; git remote add other ../upstream.git; git branch -m side2 side3 2>/dev/null || true", cwd=project)
    assert machine.run("git config a.b; git remote get-url other", cwd=project).stdout == b"c\n../upstream.git\n"


def test_user_and_agent_do_not_make_each_other_read_all_files_again(machine, project):
    """The owner of each file is another inside than outside, and git by itself takes that for a change."""
    machine.run("git status", cwd=project, check=True)
    index = machine.root(["sha256sum", f"{project}/.git/index"]).stdout
    agent_says(machine, "sh", "git status >/dev/null", cwd=project)
    assert machine.root(["sha256sum", f"{project}/.git/index"]).stdout == index

"""Undo where a session worked with git-lfs itself: the large files are back as they were, and git-lfs finds nothing wrong."""

import pytest
from cases.git import BINARY, LFS
from test_undo import PROJECT, act, ctl, is_as_before

MADE = f"""
set -e
rm -rf {PROJECT}; mkdir -p {PROJECT}; cd {PROJECT}
{LFS}
{BINARY}
git add big.bin; git commit -qm big; head -c 90000 /dev/urandom >big.bin; git commit -qam second
head -c 80000 /dev/urandom >big.bin; echo text >beside.txt
rm -rf {PROJECT}.copy; cp -a {PROJECT} {PROJECT}.copy; sleep 0.1
"""


@pytest.mark.parametrize("script", [
    "git reset -q --hard HEAD~1; rm beside.txt",
    "git stash -q -u; git lfs prune >/dev/null; git checkout -q HEAD~1",
    "rm -rf .git/lfs; git checkout -q -f HEAD~1 2>/dev/null; rm big.bin beside.txt",
])  # fmt: skip
def test_what_a_session_did_with_git_lfs_is_taken_back(work_machine, script):
    machine = work_machine
    machine.run(["sh", "-c", MADE], cwd="/", check=True)
    try:
        act(machine, script)
        assert not is_as_before(machine)
        assert ctl(machine, "undo", "--yes", ".").returncode == 0
        assert ctl(machine, "undo", "--yes", ".git").returncode in (0, 1)  # 1: git's own files are as they were
        assert is_as_before(machine)
        status = [machine.run(["git", "status", "--porcelain"], cwd=path, check=True).stdout for path in (PROJECT, f"{PROJECT}.copy")]
        assert status[0] == status[1], status
        assert machine.run(["git", "lfs", "fsck"], cwd=PROJECT).returncode == 0
    finally:
        machine.root(["rm", "-rf", PROJECT, f"{PROJECT}.copy"], check=True)

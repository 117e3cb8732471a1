"""Repositories of the size of large projects: they start, what is in them is protected, and a session leaves nothing behind."""

import os

import pytest
from large_repositories import LAYOUTS, MAKE
from launching import KILLS_OF_OURS, agent_says, leftovers, session, wait_until_empty

pytestmark = pytest.mark.usefixtures("playing")

FULL = bool(os.environ.get("PI_AGENT_FULL"))
PLACE = "/home/alice/projects/large"
COMMIT = "git -c user.name=A -c user.email=a@example.org commit -q"
# {layout: (one of its git directories, its working tree)}
ONE = {
    "three hundred submodules": (".git/modules/contrib/lib{last}", "contrib/lib{last}"),
    "submodules of submodules": (".git/modules/libs/group0/lib0/modules/deep/inner", "libs/group0/lib0/deep/inner"),
    "a thousand worktrees": (".git/worktrees/{last}", "wt/{last}"),
}


@pytest.fixture(scope="module", params=LAYOUTS)
def large(request, machine):
    """A layout: its working tree, one of its git directories, and the working tree of that."""
    kind, count = LAYOUTS[request.param]
    machine.run(f"rm -rf {PLACE}; mkdir {PLACE}", cwd="/home/alice/projects", check=True, timeout=120)
    machine.run(["python3", "-", kind, str(count)], input=MAKE.encode(), cwd=PLACE, timeout=300, check=True)
    yield [PLACE, *(part.format(last=count - 1) for part in ONE[request.param])]
    machine.root(["rm", "-rf", PLACE], check=True, timeout=120)


def listed(machine):
    script = r"find .git -type d -printf '%p %u:%g %m\n' -o -not -name index -printf '%p %u:%g %m %s %T@ %l\n' | sort"
    return machine.root(script, cwd=PLACE, timeout=120).stdout.decode().splitlines()


def wait_until_as_before(machine, was):
    wait_until_empty(lambda: sorted(set(listed(machine)) ^ set(was)), 20)
    wait_until_empty(lambda: leftovers(machine), 20)


def test_work_goes_on_what_git_runs_is_read_only_and_nothing_is_left(machine, large):
    place, gitdir, tree = large
    was = listed(machine)
    tries = [f"{gitdir}/{name}" for name in ("config", "hooks", "commondir", "info/attributes")] if "modules" in gitdir else [f"{gitdir}/{name}" for name in ("commondir", "gitdir")]
    tries += [".git/config", ".git/hooks", ".git/commondir", f"{tree}/.git", gitdir, tree]
    opened = "; ".join(f"(test -f {path} && echo x >>{path} || mv {path} {path}.x || rm -f {path}) 2>/dev/null && echo opened {path}" for path in tries)
    assert agent_says(machine, "sh", f"{opened}; true", cwd=place, timeout=60) == b""
    wait_until_as_before(machine, was)
    done = agent_says(machine, "sh", f"cd {tree} && git checkout -q -B work && echo y >y && git add y && {COMMIT} -m y && git log --format=%s -1; cd {place}; git status --porcelain | wc -l", cwd=place, timeout=60)
    assert done.split()[0] == b"y", done
    assert not [line for line in listed(machine) if "/commondir " in line and "/worktrees/" not in line]


def test_a_session_begins_within_one_of_them(machine, large):
    place, _, tree = large
    assert agent_says(machine, "sh", "git log --format=%s -1 && git config a.b c 2>/dev/null || echo kept", cwd=f"{place}/{tree}", timeout=60).endswith(b"kept\n")


@pytest.mark.parametrize("who", KILLS_OF_OURS if FULL else ["runner"])
def test_nothing_is_left_whoever_is_killed(machine, large, who):
    was = listed(machine)
    with session(machine, "sh", "echo ready; sleep 60", cwd=large[0]):
        machine.root(f"{KILLS_OF_OURS[who]}; true", check=True)
        wait_until_as_before(machine, was)


def test_the_host_has_at_most_one_mount_for_each_of_them(machine, large):
    """systemd makes a unit of each, and every start on the host reads them all."""
    place, gitdir, _ = large
    with session(machine, "sh", "echo ready; sleep 60", cwd=place):
        mounts = machine.root(["cat", "/proc/self/mountinfo"], check=True).stdout.decode()
        inner = [line for line in mounts.splitlines() if "/run/pi-agent/" in line and ("/modules/" in line or "/worktrees/" in line)]
        assert all(line.split()[4].endswith("/config") for line in inner), inner[:3]
        assert ("modules" in gitdir) == bool(inner)

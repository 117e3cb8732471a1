"""What an agent arranges so that a later session shows it more of the user's than the policy says (projects.scope, projects.paths)."""

import time

import pytest
from target import Outcome

pytestmark = pytest.mark.position("agent")

ROOT = "/home/alice/projects"
TRAP = "/srv/alias-trap"


def projects(target, section):
    return target.policy_with(f"projects: {section}")


@pytest.fixture
def two_repositories(product, weak):
    """~/projects/{open,closed} on both machines: the agent is started in the first, the second is none of its business."""
    for target in (product, weak):
        script = f"""for name in open closed; do mkdir -p {ROOT}/$name; cd {ROOT}/$name; git init -q .; echo $name >secret; git add secret
        git -c user.name=a -c user.email=a@example.org commit -qm first; done"""
        target.machine.run(["sh", "-ec", script], user="alice", check=True)
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-rf", f"{ROOT}/open", f"{ROOT}/closed", f"{ROOT}/w"], check=True)


def test_the_neighbour_of_a_repository_is_out_of_reach(prove, two_repositories):
    def attack(target):
        with projects(target, "{scope: project}"):
            seen = target.pi("cat", f"{ROOT}/closed/secret", cwd=f"{ROOT}/open").stdout
        return Outcome(seen == b"closed\n", seen)

    prove(attack, "project-scope")


# The agent's own text names the neighbour's data as that of a repository of its own making. With an answer planted beside it, as far as
# an agent can plant any: in its own repository.
CLAIMS = {
    "by its own path": f"echo gitdir: {ROOT}/closed/.git >.git",
    "through a link of its own": f"ln -s {ROOT}/closed/.git there; echo gitdir: $PWD/there >.git",
    "as the common directory of a worktree of its own": (
        f"mkdir -p ../own/worktrees/w; echo {ROOT}/closed/.git >../own/worktrees/w/commondir; echo $PWD/.git >../own/worktrees/w/gitdir;"
        " echo gitdir: $PWD/../own/worktrees/w >.git"
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_git_file_of_the_agents_own_shows_it_no_other_repository(claim, prove, two_repositories):
    def attack(target):
        with projects(target, "{scope: project}"):
            target.pi("sh", "-ec", f"rm -rf claimed own; mkdir claimed; cd claimed; {CLAIMS[claim]}", cwd=f"{ROOT}/open", check=True)
            done = target.pi("sh", "-c", f"cat {ROOT}/closed/.git/HEAD", cwd=f"{ROOT}/open/claimed")
        return Outcome(done.stdout != b"", done)

    prove(attack, "git-back-link")


SWAPPING = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.chdir(os.environ["HOME"])
name = [name for name in os.listdir("projects") if name.startswith("projects-")][0]
os.makedirs("swap", exist_ok=True)
try:
    os.symlink(sys.argv[1], "swap/" + name)
except FileExistsError:
    pass
print(os.environ["PI_AGENT_SESSION"], flush=True)
while True:  # RENAME_EXCHANGE: there is always something of that name
    libc.renameat2(-100, b"projects/" + name.encode(), -100, b"swap/" + name.encode(), 2)
"""


def test_a_link_in_the_place_of_an_alias_puts_no_project_onto_the_host(prove):
    """The mount point of the alias is in the agent's home: root that followed a symlink there would mount it anywhere on the host."""

    def mounted_after_a_start(target):
        with projects(target, "{paths: alias}"):
            target.pi("true", cwd=ROOT)  # may fail in words
        return target.machine.root(f"grep ' {TRAP} ' /proc/self/mountinfo; true", check=True).stdout

    def attack(target):
        target.machine.root(["mkdir", "-p", TRAP], check=True)
        target.pi("true", check=True)  # the alias is there
        planted = f"cd ~/projects && for name in projects-*; do rm $name; ln -s {TRAP} $name; done"
        target.pi("sh", "-c", planted, check=True)
        try:
            mounted = mounted_after_a_start(target)
            if not mounted:  # the link was replaced before it mattered: now it comes and goes
                session = target.session("python3", "-c", SWAPPING, TRAP)
                until = time.monotonic() + 5
                while time.monotonic() < until and not mounted:
                    mounted = mounted_after_a_start(target)
                session.end()
        finally:
            target.machine.root(f"while umount {TRAP} 2>/dev/null; do :; done; rmdir {TRAP}", check=True)
            target.machine.root("rm -rf /var/lib/pi-agent/users/alice/home/projects /var/lib/pi-agent/users/alice/home/swap", check=True)
        return Outcome(bool(mounted), mounted)

    prove(attack, "beneath", quick=True)


# --- what one session arranges for the next


def in_turn(target, section, *scripts, cwd=f"{ROOT}/open"):
    """Each script in a session of its own; what the last one wrote."""
    with projects(target, section):
        done = [target.pi("sh", "-c", script, cwd=cwd) for script in scripts]
    return done[-1]


@pytest.mark.parametrize("common, goal", [("echo ../.. >worktrees/w/commondir; ", "secret"), ("", "worktrees/w/secret")], ids=["all", "a part"])
def test_a_worktree_forged_in_another_repository_does_not_show_that(common, goal, prove, two_repositories):
    """A session in a worktree below closed/worktrees/ can write there what git would have in .git/worktrees/."""

    def attack(target):
        forge = f"""rm -rf worktrees; mkdir -p worktrees/w; cp secret worktrees/w; {common}echo {ROOT}/open/claimed/.git >worktrees/w/gitdir
        mkdir -p {ROOT}/open/claimed; echo gitdir: {ROOT}/closed/worktrees/w >{ROOT}/open/claimed/.git"""
        target.machine.run(["sh", "-ec", f"cd {ROOT}/closed; {forge}"], user="alice", check=True)
        done = in_turn(target, "{scope: project}", f"cat {ROOT}/closed/{goal}", cwd=f"{ROOT}/open/claimed")
        return Outcome(done.stdout == b"closed\n", done)

    prove(attack, "git-directory")


def test_a_repository_that_loses_its_git_directory_does_not_show_the_next_session_more(prove, two_repositories):
    def attack(target):
        target.machine.run(["sh", "-ec", f"rm -rf {ROOT}/open/inner; mkdir {ROOT}/open/inner; cd {ROOT}/open/inner; git init -q ."], user="alice", check=True)
        inner = f"{ROOT}/open/inner"
        done = in_turn(target, "{scope: project, protect: []}", "rm -rf .git; mv .git away", f"cat {ROOT}/open/secret", cwd=inner)
        return Outcome(done.stdout == b"open\n", done)

    prove(attack, "project-stays")


def test_a_directory_of_gits_that_cannot_be_read_at_the_start_leaves_nothing_unprotected(prove, two_repositories):
    """What git never lists can lose that right without anybody noticing, and get it back inside."""

    def attack(target):
        module = f"{ROOT}/open/.git/modules/sub"
        script = f"chmod -f 755 {ROOT}/open/.git/modules; mkdir -p {module}/hooks; echo ref: refs/heads/main >{module}/HEAD; echo '[core]' >{module}/config"
        target.machine.run(["sh", "-c", script], user="alice", check=True)
        writing = f"chmod 755 .git/modules; echo '[alias]' >>{module}/config"
        in_turn(target, "{}", "chmod 0311 .git/modules", writing)
        return Outcome(b"alias" in target.machine.read(f"{module}/config"))

    prove(attack, "protect-unreadable")


def test_a_closed_directory_on_the_way_to_what_is_protected_leaves_nothing_unprotected(prove, two_repositories):
    def attack(target):
        worktree = f"{ROOT}/open/.git/worktrees/w"
        script = f"chmod -f 755 {worktree}; cd {ROOT}/open; git worktree remove -f ../w; git worktree prune; git worktree add -q ../w"
        target.machine.run(["sh", "-c", script], user="alice")
        in_turn(target, "{}", f"chmod 0 {worktree}", f"chmod 755 {worktree}; echo {ROOT}/open/forged >{worktree}/commondir")
        return Outcome(b"forged" in target.machine.read(f"{worktree}/commondir"))

    prove(attack, "protect-unreadable")


CLOSED = {
    "nothing": ("chmod 0 top/sub", "chmod 700 top/sub"),
    "passing": ("chmod 0311 top/sub", "chmod 700 top/sub"),
    "reading": ("chmod 0444 top/sub", "chmod 700 top/sub"),
    "nothing, further up": ("chmod 0 top", "chmod 700 top"),
}


@pytest.mark.parametrize("left", CLOSED)
def test_what_the_agent_closes_before_a_start_is_masked_all_the_same(left, prove, two_repositories):
    """The search runs as the user, and cannot look into it; the agent opens it again once the search is over."""

    def attack(target):
        script = f"cd {ROOT}/open; [ ! -e top ] || chmod -R u+rwX top; rm -rf top; mkdir -p top/sub/deep; echo masked-secret | tee top/sub/.env >top/sub/deep/.env"
        target.machine.run(["sh", "-ec", script], user="alice", check=True)
        shut, open_again = CLOSED[left]
        done = in_turn(target, "{mask: ['.env']}", shut, f"{open_again}; cat top/sub/.env top/sub/deep/.env; true")
        return Outcome(b"masked-secret" in done.stdout, done)

    on, _ = prove(attack, "mask-closed")
    assert b"masked as a whole, because you may not search it" in on.seen.stderr


@pytest.mark.parametrize("left", ["chmod 0 top/sub", "chmod 0400 top/sub", "chmod 0 top/keys/deep"])
def test_what_the_agent_closes_before_a_start_hides_no_other_name_of_what_is_masked(left, prove, two_repositories):
    """The file is looked at in there alone; the other name is an ordinary one in a directory that is open."""

    def attack(target):
        script = f"""cd {ROOT}/open; [ ! -e top ] || chmod -R u+rwX top; rm -rf top; mkdir -p top/sub top/keys/deep top/other
        echo masked-secret | tee top/sub/.env >top/keys/deep/key; ln top/sub/.env top/other/one; ln top/keys/deep/key top/other/two"""
        target.machine.run(["sh", "-ec", script], user="alice", check=True)
        # The directory that a mask covers can be closed by a session that began before the policy had the mask.
        in_turn(target, "{}", left)
        done = in_turn(target, "{mask: ['.env', keys]}", "cat top/other/one top/other/two; true")
        return Outcome(b"masked-secret" in done.stdout, done)

    on, _ = prove(attack, "mask-other-names")
    assert b"perhaps in a directory that you may not search" in on.seen.stderr


@pytest.mark.parametrize("make", ["mkdir -p src/.git", "mkdir -p src && cd src && git init -q ."], ids=["an empty .git", "a repository"])
def test_a_directory_that_looks_like_a_repository_takes_no_protection_from_the_one_around_it(make, prove, two_repositories):
    """Git passes over an empty `.git`; so would the protection of the nearest one."""

    def attack(target):
        in_turn(target, "{}", make)
        done = in_turn(target, "{}", "echo '[alias]' >>../.git/config; echo x >../.git/hooks/post-commit", cwd=f"{ROOT}/open/src")
        changed = b"[alias]" in target.machine.read(f"{ROOT}/open/.git/config")
        hooked = target.machine.root(["rm", f"{ROOT}/open/.git/hooks/post-commit"]).returncode == 0
        target.machine.root(["rm", "-rf", f"{ROOT}/open/src"], check=True)
        return Outcome(changed or hooked, done)

    on, _ = prove(attack, "protect", quick=True)
    assert on.seen.stderr.count(b"Read-only file system") == 2, on


def test_a_directory_above_what_is_masked_cannot_be_renamed_out_of_the_pattern(prove, two_repositories):
    def attack(target):
        script = f"cd {ROOT}/open; rm -rf sub .cache; mkdir sub; echo masked-secret >sub/.env"
        target.machine.run(["sh", "-ec", script], user="alice", check=True)
        done = in_turn(target, "{mask: ['.env']}", "mkdir .cache; mv sub .cache/.git; ln -s .cache/.git sub", "cat sub/.env sub/sub/.env")
        return Outcome(b"masked-secret" in done.stdout, done)

    prove(attack, "protect-prefixes")

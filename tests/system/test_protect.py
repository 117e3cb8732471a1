"""`projects.protect` and `projects.mask`: what the agent sees of them, and that they leave nothing in the project."""

import pytest
from launching import KILLS_OF_OURS, PLAYING_POLICY, agent_says, assert_refused, finish, pi, session, wait_until_empty

pytestmark = pytest.mark.usefixtures("playing")

PLACE = "/home/alice/projects/guarded"
ON_TERMINAL = ["python3", "-c", "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"]
GIT = "git -c user.name=A -c user.email=a@example.org -c protocol.file.allow=always"
SUBMODULE = f"git init -q ../library && {GIT} -C ../library commit -q --allow-empty -m one && {GIT} submodule --quiet add {PLACE}/../library library"


@pytest.fixture
def repository(machine):
    """repository(script) makes one of alice's, fresh, and does `script` in it; gives its path."""

    def make(script="true"):
        machine.run(f"rm -rf {PLACE}; git init -q -b main {PLACE} && cd {PLACE} && {GIT} commit -q --allow-empty -m one && ({script})", cwd="/home/alice/projects", check=True, timeout=300)
        return PLACE

    yield make
    machine.root("cd /home/alice/projects && rm -rf guarded guarded-* library", check=True, timeout=300)


def policy_with(projects):
    return PLAYING_POLICY + "projects:\n" + "".join(f"  {line}\n" for line in projects.splitlines())


READ_ONLY = [".git/config", ".git/hooks", ".git/commondir", ".git/info/attributes"]


def protected(machine, place, paths, cwd=None):
    """Those of `paths` that a session can neither write nor make nor move."""
    tries = "; ".join(f"(test -w {path} || touch {path} || mkdir {path} || mv {path} {path}.x) 2>/dev/null && echo {path}" for path in paths)
    opened = pi(machine, "sh", f"cd {place}; {tries}; true", cwd=cwd or place).stdout.decode().split()
    return [path for path in paths if path not in opened]


@pytest.mark.parametrize("before", ["true", "rm -rf .git/hooks .git/info", "chmod 500 .git/hooks", "git config extensions.worktreeConfig true"])
def test_what_git_executes_is_read_only_and_the_project_is_as_before(machine, repository, before):
    place = repository(before)
    paths = [*READ_ONLY, *([".git/config.worktree"] if "worktreeConfig" in before else [])]
    was = listed(machine, place)
    assert protected(machine, place, paths) == paths
    wait_until_as_before(machine, place, was)


def listed(machine, place):
    """What is in the project, without the times of directories, which the parent of a placeholder cannot keep."""
    script = r"find . -type d -printf '%p %u:%g %m\n' -o -printf '%p %u:%g %m %s %T@ %l\n' | sort"
    return machine.root(script, cwd=place).stdout.decode().splitlines()


def wait_until_as_before(machine, place, before, deadline=5):
    wait_until_empty(lambda: sorted(set(listed(machine, place)) ^ set(before)), deadline)


@pytest.mark.parametrize("who", [*KILLS_OF_OURS, "wrapper", "all"])
def test_no_placeholder_is_left_whoever_is_killed(machine, repository, who):
    place = repository("rm -rf .git/hooks .git/info")
    was = listed(machine, place)
    with session(machine, "sh", "echo ready; sleep 60", cwd=place) as process:
        assert machine.root(["ls", f"{place}/.git/info/attributes", f"{place}/.git/hooks", f"{place}/.git/commondir"]).returncode == 0
        if who == "wrapper":
            process.kill_all()
        elif who == "all":
            machine.root("pkill -9 -f ^/usr/libexec/pi-agent/; true", check=True)
        else:
            machine.root(f"{KILLS_OF_OURS[who]}; true", check=True)
        wait_until_as_before(machine, place, was, deadline=10)


def test_the_next_start_of_anybody_removes_what_the_cleanup_could_not(machine, repository):
    place = repository()
    was = listed(machine, place)
    cleanup = "/usr/libexec/pi-agent/pi-agent-cleanup"
    machine.root(["mv", cleanup, f"{cleanup}.aside"], check=True)
    try:
        with session(machine, "sh", "echo ready; sleep 60", cwd=place):
            machine.root(f"{KILLS_OF_OURS['runner']}; true", check=True)
            wait_until_empty(lambda: machine.root("systemctl list-units --plain --no-legend 'pi-agent-*.service' 'pi-agent-*.scope'").stdout.split())
            assert machine.root(["cat", f"{place}/.git/commondir"], check=True).stdout == b"././.\n"
    finally:
        machine.root(["mv", f"{cleanup}.aside", cleanup], check=True)
    agent_says(machine, "sh", "echo x", user="bob", cwd="/home/bob/work/demo")
    wait_until_as_before(machine, place, was)


def test_what_a_power_cut_left_goes_with_the_next_session(machine, repository):
    place = repository("rm -rf .git/hooks .git/info")
    was = listed(machine, place)
    left = "cp -a .git/commondir .git/hooks .git/info /home/alice/projects/guarded-left/"
    with session(machine, "sh", "echo ready; read line", cwd=place) as process:
        machine.run(f"mkdir ../guarded-left; {left}", cwd=place, check=True)
        finish(process)
    wait_until_as_before(machine, place, was)
    machine.run(f"cp -a ../guarded-left/. .git/ && git status && git fsck && {GIT} commit -q --allow-empty -m two && git gc -q && git worktree add -q ../guarded-side", cwd=place, check=True)
    machine.run("git worktree remove ../guarded-side; rm -f .git/info/refs; rmdir .git/worktrees", cwd=place)
    assert agent_says(machine, "sh", "echo x", cwd=place) == b"x\n"
    gone = "! ls .git/commondir .git/hooks .git/info"
    wait_until_empty(lambda: [] if machine.run(gone, cwd=place).returncode == 0 else [machine.run("ls -la .git .git/info", cwd=place).stdout])


def test_what_the_user_made_of_a_placeholder_stays(machine, repository):
    place = repository("rm -rf .git/hooks")
    with session(machine, "sh", "echo ready; read line; ls .git/hooks", cwd=place) as process:
        machine.run("printf 'true\\n' >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit", cwd=place, check=True)
        assert finish(process)[1] == b"pre-commit\n"
    wait_until_empty(lambda: machine.run("ls .git/commondir 2>/dev/null", cwd=place).stdout.split())
    assert machine.run("cat .git/hooks/pre-commit; stat -c %a .git/hooks", cwd=place).stdout.endswith(b"true\n755\n")


def test_two_sessions_in_a_repository_share_placeholders_and_the_last_removes_them(machine, repository):
    place = repository()
    was = listed(machine, place)
    with session(machine, "sh", "echo ready; read line; echo x >.git/commondir || echo kept", cwd=place) as last:
        for _ in range(3):
            agent_says(machine, "sh", "echo x", cwd=place)
        assert finish(last)[1] == b"kept\n"
    wait_until_as_before(machine, place, was)


def test_starts_one_after_another_do_not_trip_over_each_others_placeholders(machine, repository):
    place = repository()
    done = machine.run("for i in $(seq 12); do pi sh 'echo x >.git/commondir || echo kept'; done", cwd=place, timeout=60)
    assert done.stdout == b"kept\n" * 12, done


def test_what_was_protected_can_be_changed_and_renamed_as_soon_as_pi_is_back(machine, repository):
    place = repository()
    script = "for i in $(seq 8); do pi sh 'echo x' && git config a.b $i && mv .git/hooks .git/h && mv .git/h .git/hooks && mv .git g && mv g .git || exit 1; done"
    done = machine.run(script, cwd=place, timeout=60)
    assert (done.returncode, done.stderr) == (0, b""), done


def test_submodules_and_worktrees_are_protected_too_and_from_a_worktree_the_same(machine, repository):
    place = repository(f"{SUBMODULE} && git worktree add -q ../guarded-side -b side")
    side = f"{place}-side"
    common = [f"{place}/{path}" for path in (*READ_ONLY, ".git/worktrees/guarded-side/commondir", ".git/worktrees/guarded-side/gitdir")]
    modules = [f"{place}/.git/modules/library/{name}" for name in ("config", "hooks", "commondir", "info/attributes")]
    files = [f"{place}/library/.git", f"{side}/.git"]
    for cwd in (place, side):
        assert protected(machine, place, [*common, *modules, *files], cwd) == [*common, *modules, *files]


@pytest.mark.parametrize("more", ["projects: {paths: alias}", "projects: {scope: project}", "sandbox: {method: bwrap}"])
def test_submodules_are_protected_by_whatever_way_they_are_shown(machine, repository, playing_policy, more):
    place = repository(SUBMODULE)
    playing_policy(f"{PLAYING_POLICY}{more}\n")
    paths = [*READ_ONLY, *(f".git/modules/library/{name}" for name in ("config", "hooks", "commondir", "info/attributes")), "library/.git"]
    assert protected(machine, ".", paths, place) == paths


def test_a_list_takes_the_place_of_the_default_and_an_empty_one_protects_nothing(machine, repository, playing_policy):
    place = repository("echo x >Makefile; mkdir ci; echo x >ci/steps")
    playing_policy(policy_with("protect: [Makefile, ci, missing/file]"))
    asked = ["Makefile", "ci/steps", "ci/new", "missing/file", ".git/config"]
    assert protected(machine, place, asked) == asked[:4]
    wait_until_empty(lambda: machine.run("ls -d missing 2>/dev/null", cwd=place).stdout.split())
    playing_policy(policy_with("protect: []"))
    assert protected(machine, place, asked[:1] + asked[4:]) == []
    assert agent_says(machine, "sh", "git config a.b c && git config a.b", cwd=place) == b"c\n"


def test_what_stands_for_a_missing_path_of_a_list_is_of_its_kind_and_in_the_repository_alone(machine, repository, playing_policy):
    place = repository()
    was = listed(machine, place)
    playing_policy(policy_with("protect: [Makefile, ci/, deep/er/file]"))
    kinds = "stat -c '%F %n' Makefile ci deep/er/file; make -n 2>&1 | grep -c 'Is a directory'; true"
    with session(machine, "sh", "echo ready; read line", cwd=place) as process:
        seen = machine.run(kinds, cwd=place).stdout.decode().splitlines()
        assert seen == ["regular file Makefile", "directory ci", "regular file deep/er/file", "0"], seen
        finish(process)
    wait_until_as_before(machine, place, was)
    # In no repository.
    above = "/home/alice/projects"
    with session(machine, "sh", "echo ready; read line", cwd=above) as process:
        assert machine.run("ls -d Makefile ci deep", cwd=above).stdout == b""
        finish(process)


def test_at_a_terminal_pi_says_once_for_each_repository_which_git_commands_wait_outside(machine, repository, playing_policy):
    place = repository(f"git init -q {PLACE}-2; git -C {PLACE}-2 commit -q --allow-empty -m one")
    machine.root("rm -f /var/lib/pi-agent/users/alice/meta/told-git", check=True)
    busy = b"Device or resource busy"

    def shown(cwd, *options):
        return machine.run([*ON_TERMINAL, "pi", *options, "sh", "echo agents"], cwd=cwd).stdout

    assert busy not in pi(machine, "sh", "true", cwd=place).stderr  # nobody at a terminal was told
    assert busy not in shown("/home/alice/projects")
    for cwd in (place, f"{place}-2"):
        said = shown(cwd)
        assert said.count(busy) == 1 and b"git config, remote, push -u" in said and b"agents" in said, said
    for cwd in (place, f"{place}-2", place):
        assert busy not in shown(cwd), cwd
    # Found again by who looks for it.
    assert busy in shown(place, "--pi-agent-debug")
    assert busy in machine.run(["pi-agentctl", "why", ".git/config"], cwd=place).stdout
    assert busy in machine.run(["pi-agentctl", "explain"], cwd=place).stdout
    playing_policy(policy_with("protect: []"))
    assert busy not in shown(place, "--pi-agent-debug")
    assert busy not in machine.run(["pi-agentctl", "explain"], cwd=place).stdout


def test_more_than_can_be_protected_is_refused_with_what_to_do(machine, repository):
    place = repository("seq 5500 | sed s,^,.git/worktrees/w, | xargs mkdir -p; for i in $(seq 5500); do : >.git/worktrees/w$i/commondir; done")
    assert_refused(pi(machine, "sh", "true", cwd=place), 75, "limit: the repository", "git worktree prune", "projects.protect")


def test_the_agent_is_told(machine, repository, playing_policy):
    place = repository("echo x >.env")
    playing_policy(policy_with("mask: [.env]"))
    notes = agent_says(machine, "sh", "cat /AGENTS.md", cwd=place)
    assert b"Read-only in the repository, because git runs things from there" in notes and b"Some files of the project cannot be read" in notes
    assert b"Read-only in the repository" not in agent_says(machine, "sh", "cat /AGENTS.md", cwd="/home/alice/projects")


def test_git_passes_over_what_is_masked_and_untracked(machine, repository, playing_policy):
    place = repository("mkdir -p deploy/keys sub; echo hidden >.env; echo hidden >sub/.env.local; echo hidden >deploy/keys/k; echo new >new")
    playing_policy(policy_with("mask: ['.env*', guarded/deploy/keys]\nprotect: []"))
    done = pi(machine, "sh", "git add -A; echo $?; git diff --cached --name-only; git status --porcelain --untracked-files=all", cwd=place)
    assert done.stdout == b"0\nnew\nA  new\n" and done.stderr == b"", done
    assert b"Git ignores those that it does not track" in b" ".join(agent_says(machine, "sh", "cat /AGENTS.md", cwd=place).split())


MASKED = "mkdir -p a/b .secrets c; echo hidden >.env; echo hidden >a/b/.env.local; echo hidden >.secrets/key; echo hidden >c/key; echo shown >a/key; ln -s .env link; ln -s a/key .env.link; echo shown >.envrc"


def test_masked_files_and_directories_are_unreadable(machine, repository, playing_policy):
    place = repository(MASKED)
    was = listed(machine, place)
    playing_policy(policy_with("mask: ['.env', '.env.*', .secrets, guarded/c/key]\nprotect: []"))
    script = "cat .env link a/b/.env.local .secrets/key c/key 2>/dev/null; ls .secrets 2>/dev/null; cat a/key .envrc"
    script += "; for f in .env a/b/.env.local .secrets c/key; do (chmod 700 $f || mv $f x || rm -rf $f || ln $f y || echo new >$f) 2>/dev/null && echo gone $f; done; stat -c '%a %s' .env; mv a z; cat a/b/.env.local"
    done = pi(machine, "sh", script, cwd=place)
    assert done.stdout == b"shown\nshown\n0 0\n", done
    assert b"Permission denied" in done.stderr and b"cannot move 'a'" in done.stderr, done
    assert b"pi: not masked, because it is a symlink: /home/alice/projects/guarded/.env.link\n" in done.stderr
    wait_until_as_before(machine, place, was)


def test_a_project_that_is_too_large_to_be_searched_is_refused(machine, repository, playing_policy):
    place = repository("mkdir many; cd many; seq 60000 | xargs touch; for i in 1 2 3; do mkdir ../m$i; (cd ../m$i; seq 60000 | xargs touch); done")
    playing_policy(policy_with("mask: [.env]"))
    assert_refused(pi(machine, "sh", "true", cwd=place), 75, "limit: ", "more than 200000 entries", "projects.scope")
    playing_policy(PLAYING_POLICY)
    assert agent_says(machine, "sh", "echo x", cwd=place) == b"x\n"


@pytest.mark.parametrize(
    ("closed", "word"),
    [(".git", "directory of git that you may not enter"), (".git/worktrees", "directory of git that you may not enter"), (".git/config", "file of git that you cannot read")],
)
def test_what_of_git_the_user_may_not_look_at_is_named_and_so_is_who_can_change_that(machine, repository, closed, word):
    place = repository("git worktree add -q ../guarded-tree && touch .git/config")
    machine.run(["chmod", "0", closed], cwd=place, check=True)
    try:
        assert_refused(pi(machine, "sh", "echo ran", cwd=place), 78, f"{place}/{closed} is a {word}", "it is yours: give yourself access to it")
        machine.root(f"chown bob {place}/{closed}", check=True)
        assert_refused(pi(machine, "sh", "echo ran", cwd=place), 78, f"{place}/{closed} is a {word}", "ask its owner")
    finally:
        machine.root(f"chown alice {place}/{closed}; chmod 755 {place}/{closed}", check=True)


def test_a_link_without_an_end_is_protected_and_no_notice_says_otherwise(machine, repository):
    place = repository("rm -rf .git/hooks && ln -s hooks .git/hooks")
    done = pi(machine, "sh", "rm -f .git/hooks; mkdir .git/hooks; mv .git/hooks .git/away; test -L .git/hooks && echo kept", cwd=place)
    assert b"not protected" not in done.stderr and done.stdout == b"kept\n", done

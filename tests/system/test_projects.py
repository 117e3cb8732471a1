"""Where and how much of a project a session shows: projects.paths, projects.scope, and git's data that lies elsewhere."""

import pytest
from launching import DEMO, DENIED, INVALID, PLAYING_POLICY, STATE, agent_says, assert_refused, messages, pi

ROOT = "/home/alice/projects"
SHARED = "/srv/shared/app"
HOME = f"{STATE}/alice/home"
SCOPED = PLAYING_POLICY + "projects: {scope: project}\n"
ALIASED = PLAYING_POLICY + "projects: {paths: alias}\n"
BOTH = PLAYING_POLICY + "projects: {paths: alias, scope: project}\n"
GIT = "git -c user.name=a -c user.email=a@example.org"


def as_alice(machine, script, *arguments):
    """Runs a script as alice, outside of any session; its standard output."""
    done = machine.run(["sh", "-ec", script, "sh", *arguments], user="alice", cwd="/home/alice")
    assert done.returncode == 0, done
    return done.stdout.decode()


@pytest.fixture
def repositories(machine, playing):
    """~/projects/{one,two}, each a repository with a commit, and ~/projects/one/deep/er."""
    as_alice(
        machine,
        f"""for name in one two; do mkdir -p {ROOT}/$name/deep/er; cd {ROOT}/$name
        git init -q .; echo $name >file; git add file; {GIT} commit -qm first; done""",
    )
    yield ROOT
    machine.root(["rm", "-rf", f"{ROOT}/one", f"{ROOT}/two", f"{ROOT}/side", "/srv/shared/app/side", "/home/alice/elsewhere"], check=True)


def shown_by(machine, cwd):
    """What of alice's root a session that starts in `cwd` shows."""
    return sorted(agent_says(machine, "sh", f"cd {ROOT}; ls -A", cwd=cwd).decode().split())


# --- scope


def test_the_whole_root_is_shown_unless_the_policy_says_otherwise(machine, repositories):
    assert {"demo", "one", "two"} <= set(shown_by(machine, f"{ROOT}/one"))


def test_with_the_scope_of_a_project_only_the_repository_is_shown(machine, repositories, playing_policy):
    playing_policy(SCOPED)
    assert shown_by(machine, f"{ROOT}/one") == ["one"]
    done = pi(machine, "sh", f"pwd; git rev-parse --show-toplevel; echo made >../../made; ls {ROOT}/two", cwd=f"{ROOT}/one/deep/er")
    assert done.stdout.decode().split() == [f"{ROOT}/one/deep/er", f"{ROOT}/one"], done
    assert b"No such file" in done.stderr
    assert machine.run(["stat", "-c", "%U", f"{ROOT}/one/made"], user="alice").stdout == b"alice\n"


@pytest.mark.parametrize("layout, word", [
    ("mv one/.git gits; ln -s ../gits one/.git", "a symlink leads to it, which an agent could have made"),
    ("mkdir gits; mv one/.git/objects one/.git/refs gits; ln -s ../../gits/objects ../../gits/refs one/.git", "one/.git/objects is a link out of what the session shows"),
], ids=["a link", "links in it"])
def test_a_git_directory_that_links_hold_together_is_told(machine, repositories, playing_policy, layout, word):
    """As the tool `repo` makes it. An agent could have made these links, so they show nothing."""
    as_alice(machine, f"cd {ROOT}; {layout}")
    try:
        playing_policy(SCOPED)
        done = pi(machine, "sh", f"ls {ROOT}", cwd=f"{ROOT}/one")
        assert done.stderr.decode().count(word) == 1 and b"projects.scope: root" in done.stderr and done.stdout == b"one\n", done
        playing_policy(PLAYING_POLICY)
        assert b"first" in pi(machine, "sh", "git log --format=%s", cwd=f"{ROOT}/one").stdout
    finally:
        machine.root(["rm", "-rf", f"{ROOT}/gits"], check=True)


def test_the_directories_on_the_way_to_the_repository_hold_nothing_else_and_nobody_can_write_them(machine, repositories, playing_policy):
    playing_policy(SCOPED)
    done = pi(machine, "sh", f"cd {ROOT}; stat -c '%U %a' .; echo x >new; mkdir new2; mv one other; rm -r one/deep; ls", cwd=f"{ROOT}/one")
    assert done.stdout.decode().splitlines() == ["root 755", "one"], done
    assert machine.run(["ls", f"{ROOT}/two/file", f"{ROOT}/one/file"], user="alice").returncode == 0


def test_without_a_repository_the_directory_itself_is_shown(machine, repositories, playing_policy):
    playing_policy(SCOPED)
    assert shown_by(machine, DEMO) == ["demo"]
    agent_says(machine, "sh", "echo x >made", cwd=DEMO)
    assert as_alice(machine, f"stat -c %U {DEMO}/made; rm {DEMO}/made") == "alice\n"


def test_a_repository_of_any_name_is_shown_alone(machine, repositories, playing_policy):
    playing_policy(SCOPED)
    name = "x\nExecStopPost=+touch %h \udcff:\\"
    odd = f"{ROOT}/{name}"
    machine.run(["mkdir", "-p", f"{odd}/.git/x", f"{odd}/in"], user="alice", check=True)
    try:
        assert agent_says(machine, "sh", "pwd; echo made >../made", cwd=f"{odd}/in") == f"{odd}/in\n".encode(errors="surrogateescape")
        assert machine.read(f"{odd}/made") == b"made\n"
    finally:
        machine.root(["rm", "-rf", odd], check=True)


def test_a_temporary_directory_must_lie_in_what_is_shown(machine, repositories, playing_policy):
    playing_policy(SCOPED)
    done = machine.run(["pi", f"--pi-agent-tmpdir={ROOT}/one/tmp", "sh", "echo $TMPDIR; echo x >$TMPDIR/y"], user="alice", cwd=f"{ROOT}/one")
    assert (done.returncode, done.stdout) == (0, f"{ROOT}/one/tmp\n".encode()), done
    done = machine.run(["pi", f"--pi-agent-tmpdir={ROOT}/two/tmp", "true"], user="alice", cwd=f"{ROOT}/one")
    assert_refused(done, DENIED, "is not in", f"{ROOT}/one")


# --- paths


def test_an_alias_is_the_same_at_every_start_and_leads_to_the_project(machine, repositories):
    """In both modes the agent's home has the project under one name."""
    names = {agent_says(machine, "sh", "ls ~/projects | grep ^projects-").decode() for _ in range(2)}
    assert len(names) == 1
    name = names.pop().strip()
    assert agent_says(machine, "sh", f"cd ~/projects/{name}/one; cat file; pwd -P").decode().split() == ["one", f"{ROOT}/one"]


def test_with_aliases_no_home_is_there_and_the_project_lies_in_the_agents(machine, repositories, playing_policy):
    playing_policy(ALIASED)
    script = "pwd; cat file; echo made >made; stat -c %U made; ls -A /home /root 2>&1 | head -3; git status --short"
    lines = agent_says(machine, "sh", script, cwd=f"{ROOT}/one").decode().splitlines()
    assert lines[0].startswith(f"{HOME}/projects/projects-") and lines[0].endswith("/one")
    assert lines[1] == "one"
    assert "?? made" in lines
    assert not any("alice" in line for line in lines if line.startswith("/home"))
    assert as_alice(machine, f"stat -c '%U %G' {ROOT}/one/made") == "alice alice\n"


def test_with_aliases_a_project_outside_of_homes_has_a_link_at_its_own_path(machine, playing, playing_policy):
    playing_policy(ALIASED)
    lines = agent_says(machine, "sh", f"cd {SHARED} && pwd -P; echo x >{SHARED}/made; ls -A /home 2>&1; true", cwd=SHARED).decode().splitlines()
    assert lines[0].startswith(f"{HOME}/projects/app-") and lines[1:] == ["ls: cannot open directory '/home': Permission denied"]
    machine.root(["rm", f"{SHARED}/made"], check=True)


def test_with_aliases_a_repository_alone_has_a_name_of_its_own(machine, repositories, playing_policy):
    playing_policy(BOTH)
    lines = agent_says(machine, "sh", "pwd; ls ~/projects", cwd=f"{ROOT}/two/deep").decode().splitlines()
    assert lines[0].startswith(f"{HOME}/projects/two-") and lines[0].endswith("/deep")
    assert lines[0].split("/")[-2] in lines[1:]


def test_with_aliases_a_root_may_have_a_name_that_systemd_would_misread(machine, playing, playing_policy):
    odd = "/srv/shared/my project: 100%"
    machine.root(["mkdir", "-p", odd], check=True)
    machine.root(["chown", "alice:", odd], check=True)
    try:
        playing_policy(ALIASED.replace("/srv/shared/app", f"'{odd}'"))
        assert agent_says(machine, "sh", "echo made >made; pwd", cwd=odd).decode().startswith(f"{HOME}/projects/my_project__100_-")
        assert machine.read(f"{odd}/made") == b"made\n"
    finally:
        machine.root(["rm", "-rf", odd], check=True)


def test_what_the_agent_put_in_the_place_of_an_alias_leads_nowhere_else(machine, repositories, playing_policy):
    """In alias mode something is mounted there: a link is replaced, and never followed."""
    name = agent_says(machine, "sh", "ls ~/projects | grep ^projects-").decode().strip()
    playing_policy(ALIASED)
    for obstacle in (f"ln -sfn /tmp ~/projects/{name}", f"rm -rf ~/projects; ln -s /tmp ~/projects", f"rm -rf ~/projects; echo x >~/projects"):
        machine.run(["sh", "-ec", f"HOME={HOME}; rm -rf ~/projects/{name}; mkdir -p ~/projects; {obstacle}"], user="pi-agent-alice", cwd="/", check=True)
        assert agent_says(machine, "sh", "cat one/file; pwd", cwd=ROOT).decode().split() == ["one", f"{HOME}/projects/{name}"]


# --- git's data elsewhere


def test_a_worktree_works_where_its_repository_lies_in_the_same_root(machine, repositories, playing_policy):
    as_alice(machine, f"cd {ROOT}/one; git worktree add -q {ROOT}/side")
    for policy in (PLAYING_POLICY, SCOPED):
        playing_policy(policy)
        script = f"git status --short; date +%N >new; git add new; {GIT} commit -qm inside; git log --oneline | wc -l"
        assert int(agent_says(machine, "sh", script, cwd=f"{ROOT}/side")) >= 2
    assert as_alice(machine, f"cd {ROOT}/one; git log --oneline side | wc -l; find . {ROOT}/side ! -user alice") == "3\n"


def test_a_worktree_works_where_its_repository_lies_in_another_root(machine, repositories):
    as_alice(machine, f"cd {ROOT}/one; git worktree add -q {SHARED}/side")
    script = f"echo x >new; git add new; {GIT} commit -qm inside; git log --oneline | wc -l; ls {ROOT}/one; ls {ROOT}/two"
    done = pi(machine, "sh", script, cwd=f"{SHARED}/side")
    assert done.stdout == b"2\n", done  # git's directory alone is shown of the other root
    assert done.stderr.count(b"No such file") == 1
    assert as_alice(machine, f"cd {ROOT}/one; git log --oneline side | wc -l; find .git {SHARED}/side ! -user alice") == "2\n"


def test_a_worktree_whose_repository_lies_in_no_root_is_told(machine, repositories):
    as_alice(machine, f"git clone -q {ROOT}/one elsewhere; cd elsewhere; git worktree add -q {ROOT}/side")
    done = pi(machine, "sh", "echo ran", cwd=f"{ROOT}/side")
    assert (done.returncode, done.stdout) == (0, b"ran\n"), done
    (line,) = messages(done)
    assert "/home/alice/elsewhere/.git/worktrees/side, is not shown to the agent: it is in none of your project roots" in line


def test_a_submodule_alone_has_its_data_from_its_superproject(machine, repositories, playing_policy):
    as_alice(machine, f"cd {ROOT}/one; git -c protocol.file.allow=always submodule add -q {ROOT}/two sub; {GIT} commit -qm sub")
    playing_policy(SCOPED)
    script = f"git log --oneline | wc -l; echo x >new; git add new; {GIT} commit -qm inside; git log --oneline | wc -l; ls {ROOT}/one"
    assert agent_says(machine, "sh", script, cwd=f"{ROOT}/one/sub").decode().split() == ["1", "2", "sub"]
    assert as_alice(machine, f"cd {ROOT}/one/sub; git log --oneline | wc -l; find {ROOT}/one ! -user alice") == "2\n"


def test_a_git_file_that_the_agent_wrote_shows_it_nothing(machine, repositories, playing_policy):
    """The agent writes its text: what it names must name the directory in turn, and be where only the user could have put it."""
    playing_policy(SCOPED)
    done = pi(machine, "sh", f"mkdir -p claimed; echo gitdir: {ROOT}/two/.git >claimed/.git", cwd=f"{ROOT}/one")
    assert b"claimed/.git: .git file that points elsewhere appeared" in done.stderr, done
    done = pi(machine, "sh", f"ls {ROOT}/two", cwd=f"{ROOT}/one/claimed")
    assert b"does not name this directory in turn" in done.stderr and b"No such file" in done.stderr, done


def test_unknown_values_are_refused(machine, playing_policy):
    machine.write("/tmp/odd.yaml", PLAYING_POLICY + "projects: {paths: alias, scope: repo}\n")
    done = machine.root(["pi-agentctl", "check", "/tmp/odd.yaml"])
    machine.root(["rm", "/tmp/odd.yaml"], check=True)
    assert done.returncode == INVALID and b"projects.scope: unknown value 'repo'" in done.stderr, done


# --- with what else there is


def test_what_is_protected_and_masked_is_so_under_an_alias_too(machine, repositories, playing_policy):
    as_alice(machine, f"echo secret >{ROOT}/one/.env")
    playing_policy(PLAYING_POLICY + "projects: {paths: alias, mask: ['.env']}\n")
    script = "cat .env; echo x >.git/hooks/post-commit; echo x >>.git/config; echo x >.git/commondir; mv .git away; git status --short; exit 3"
    done = pi(machine, "sh", script, cwd=f"{ROOT}/one")
    assert done.returncode == 3 and done.stderr.count(b"Read-only file system") == 3, done
    assert b"Permission denied" in done.stderr and b"cannot move '.git'" in done.stderr and b"secret" not in done.stdout, done
    assert as_alice(machine, f"cd {ROOT}/one; ls .git/commondir .git/hooks/post-commit 2>&1 | grep -c 'No such'; cat .env") == "2\nsecret\n"


def test_a_list_takes_the_place_of_what_git_executes(machine, repositories, playing_policy):
    as_alice(machine, f"cd {ROOT}/one; mkdir ci; echo x >ci/deploy; echo x >Makefile")
    playing_policy(PLAYING_POLICY + "projects: {protect: [Makefile, ci, later/file], aftermath: false}\n")
    script = "echo y >Makefile; echo y >ci/deploy; echo y >ci/new; mkdir -p later/file; git config alias.x status; exit 4"
    done = pi(machine, "sh", script, cwd=f"{ROOT}/one")
    assert done.returncode == 4 and done.stderr.count(b"Read-only file system") == 3, done
    assert b"cannot create directory" in done.stderr, done  # what stands for the missing one is a file
    assert as_alice(machine, f"cd {ROOT}/one; cat Makefile ci/deploy; ls ci; ls -d later 2>/dev/null || echo none; git config alias.x") == "x\nx\ndeploy\nnone\nstatus\n"


def test_what_a_repository_shown_alone_has_left_is_told(machine, repositories, playing_policy):
    playing_policy(SCOPED)
    done = pi(machine, "sh", "echo x >../../.envrc", cwd=f"{ROOT}/one/deep/er")
    assert f"{ROOT}/one/.envrc: ".encode() in done.stderr and b"appeared" in done.stderr, done
    playing_policy(BOTH)
    done = pi(machine, "sh", "echo y >../../.envrc", cwd=f"{ROOT}/one/deep/er")
    assert f"{ROOT}/one/.envrc: ".encode() in done.stderr and b"changed" in done.stderr, done

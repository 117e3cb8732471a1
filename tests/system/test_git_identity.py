"""What the agent's git has of the user's: name and address, what starts no program, and nothing else."""

import time

import pytest
from launching import DEMO, PLAYING_POLICY, STATE, agent_says, messages, pi

pytestmark = pytest.mark.usefixtures("playing")

SET = ["user.name=Alice Ünal", "user.email=alice@example.org"]


@pytest.fixture(autouse=True)
def host(machine):
    """host(*settings) is alice's whole ~/.gitconfig for one test; without settings, she does not have the file."""
    before = machine.read("/home/alice/.gitconfig")

    def write(*settings, file="/home/alice/.gitconfig"):
        for setting in settings:
            name, _, value = setting.partition("=")
            machine.run(["git", "config", "--file", file, name, value], cwd="/", check=True)

    machine.root("rm -rf /home/alice/.gitconfig /home/alice/.config/git", check=True)
    yield write
    machine.root(f"rm -rf /home/alice/.gitconfig /home/alice/.config/git {STATE}/alice/home/.gitconfig", check=True)
    machine.write("/home/alice/.gitconfig", before, "alice")


@pytest.fixture
def repository(machine):
    """A fresh repository of alice's."""
    path = "/home/alice/projects/identity"
    machine.run(["git", "init", "-q", path], cwd="/", check=True)
    yield path
    machine.root(["rm", "-rf", path], check=True)


COMMIT = "set -e; echo x >>file; git status --porcelain >&2; git add file; git commit -qm one >&2; git log -1 --format='%an|%ae|%cn|%ce'"


def commit(machine, repository, before="true"):
    done = pi(machine, "sh", f"{before}; {COMMIT}", cwd=repository)
    assert done.returncode == 0, done
    return done.stdout.decode().rstrip("\n")


def inside(machine, name, cwd=DEMO):
    """The value that git inside has for a setting, None where it does not have the setting."""
    done = pi(machine, "sh", f"git config --get {name}", cwd=cwd)
    assert done.returncode in (0, 1) and done.stderr == b"", done
    return done.stdout[:-1] if done.returncode == 0 else None


def test_status_and_commit_work_and_the_commit_is_the_users(machine, host, repository):
    host(*SET)
    assert commit(machine, repository) == "Alice Ünal|alice@example.org|Alice Ünal|alice@example.org"
    log = machine.run(["git", "log", "--format=%an"], cwd=repository, check=True)
    assert log.stdout.decode() == "Alice Ünal\n"


def test_without_an_identity_none_is_invented(machine, repository):
    done = pi(machine, "sh", COMMIT, cwd=repository)
    assert done.returncode != 0 and b"Please tell me who you are" in done.stderr, done
    assert b"pi: " not in done.stderr  # a user without one needs no notice
    assert agent_says(machine, "sh", "echo $GIT_CONFIG_SYSTEM; ls -d /run/pi-agent 2>/dev/null; echo end") == b"/run/pi-agent/gitconfig\n/run/pi-agent\nend\n"


def test_what_the_user_has_not_set_is_not_set(machine, host):
    host("user.email=only@example.org")
    assert (inside(machine, "user.name"), inside(machine, "user.email")) == (None, b"only@example.org")


def test_what_starts_no_program_and_is_no_secret_gets_in_and_nothing_else(machine, host):
    host(*SET, "core.editor=true", "alias.x=!true", "user.signingkey=K", "url.git@x:.insteadOf=https://x/", "core.eol=lf")
    listed = agent_says(machine, "sh", "git config --list --name-only --show-scope", cwd="/home/alice/projects")
    own = {"include.path", "user.name", "user.email", "core.checkstat", "gc.worktreepruneexpire"}
    assert set(listed.decode().split("\n")) - {""} == {f"system\t{name}" for name in own | {"core.eol", "url.git@x:.insteadof"}}


def test_files_that_settings_name_are_copies_that_the_agent_cannot_change(machine, host, repository):
    host(*SET, "core.excludesFile=~/ignored")
    machine.write("/home/alice/ignored", "*.o\n", "alice")
    script = "touch a.o b.c; git status --porcelain; echo x >>$(git config core.excludesFile) && echo changed; rm -rf /run/pi-agent/git && echo gone"
    done = pi(machine, "sh", f"({script}) 2>/dev/null", cwd=repository)
    machine.root("rm /home/alice/ignored", check=True)
    assert done.stdout == b"?? b.c\n", done


def test_an_unsigned_commit_is_told_once_and_recorded(machine, host, repository):
    host(*SET)
    machine.root(f"rm -f {STATE}/alice/meta/told-git-settings", check=True)
    machine.run("git config commit.gpgSign true; git config user.signingKey K", cwd=repository, check=True)
    said = []
    for _ in range(2):
        done = pi(machine, "sh", f"({COMMIT}) 2>/dev/null; git tag -a -m x v$PI_AGENT_SESSION; echo $PI_AGENT_SESSION", cwd=repository)
        assert done.returncode == 0, done
        said.append([line for line in messages(done) if "git: " in line])
    assert len(said[0]) == 1 and "this repository's settings sign commits, and a session has no key of yours" in said[0][0], said
    assert said[1] == []
    session = done.stdout.decode().split()[-1]
    entries = machine.root(f"journalctl -o json PI_AGENT_SESSION={session} PI_AGENT_EVENT=started", check=True).stdout
    assert b'"PI_AGENT_SIGNING":"off"' in entries
    assert machine.run("git log --format=%G?", cwd=repository, check=True).stdout == b"N\nN\n"


def test_a_filter_that_is_not_there_inside_is_told_once(machine, host, repository):
    host(*SET, "filter.strip.clean=sed /secret/d")
    machine.root(f"rm -f {STATE}/alice/meta/told-git-settings", check=True)
    machine.write(f"{repository}/.gitattributes", "*.cfg filter=strip\n", "alice")
    said = [[line for line in messages(pi(machine, "sh", "true", cwd=repository)) if "filter" in line] for _ in range(2)]
    assert len(said[0]) == 1 and "the filter 'strip' of this repository's .gitattributes does not run in a session" in said[0][0] and said[1] == [], said


def told(machine, repository, part):
    """The lines with `part` of two starts, of which the second one tells nothing again."""
    machine.root(f"rm -f {STATE}/alice/meta/told-git-settings", check=True)
    said = [[line for line in messages(pi(machine, "sh", "true", cwd=repository)) if part in line] for _ in range(2)]
    assert said[1] == [], said
    return said[0]


def test_borrowed_objects_are_told_once_where_the_session_does_not_have_them(machine, host, repository, playing_policy):
    machine.run(f"rm -rf {repository} ~/lender; git init -q ~/lender; git -C ~/lender -c user.name=a -c user.email=a@b commit -q --allow-empty -m lent; "
                f"git clone -q --shared ~/lender {repository}", cwd="/", check=True)
    said = told(machine, repository, "borrows")
    assert len(said) == 1 and "borrows objects from /home/alice/lender/.git/objects (" in said[0] and "git repack -a -d" in said[0], said
    assert b"lent" not in pi(machine, "sh", "git log --format=%s; ls /home/alice/lender", cwd=repository).stdout, "what a file in the project names is not shown"
    playing_policy(PLAYING_POLICY.replace("  alice:\n", "  alice:\n    readable: [~/lender]\n"))
    assert told(machine, repository, "borrows") == []
    assert agent_says(machine, "sh", "git log --format=%s", cwd=repository) == b"lent\n"
    playing_policy(PLAYING_POLICY)
    machine.run(f"git repack -q -a -d; rm .git/objects/info/alternates ~/lender -r", cwd=repository, check=True)
    assert told(machine, repository, "borrows") == []
    assert agent_says(machine, "sh", "git log --format=%s", cwd=repository) == b"lent\n"


def test_a_repository_with_a_reftable_is_told_what_works(machine, host, repository):
    machine.run("git config core.repositoryFormatVersion 1; git config extensions.refStorage reftable", cwd=repository, check=True)
    said = told(machine, repository, "reftable")
    assert len(said) == 1 and "git worktree add" in said[0] and "git refs migrate" in said[0], said


def test_git_works_in_somebody_elses_repository_where_the_user_trusts_it(machine, host, repository):
    machine.root(["chown", "-R", "bob:bob", repository], check=True)
    machine.root(["chmod", "-R", "a+rX", repository], check=True)
    assert b"dubious ownership" in pi(machine, "sh", "git status", cwd=repository).stderr
    host(f"safe.directory={repository}")
    assert agent_says(machine, "sh", "git status --porcelain; git config --get-all safe.directory", cwd=repository).decode() == f"{repository}\n"
    assert inside(machine, "safe.directory", cwd="/srv/shared/app") is None  # a session that does not show it


def test_it_is_off_when_the_policy_says_so(machine, host, playing_policy):
    host(*SET)
    playing_policy(PLAYING_POLICY + "git_identity: false\n")
    assert inside(machine, "user.name") is None
    shown = machine.run(["pi", "--pi-agent-explain"], cwd=DEMO, check=True).stdout
    assert b"git_identity: false" in shown


def test_the_agents_own_settings_and_the_repositorys_win(machine, host, repository):
    host(*SET)
    machine.run(["git", "config", "user.email", "local@example.org"], cwd=repository, check=True)
    assert commit(machine, repository).startswith("Alice Ünal|local@example.org|")
    agent_says(machine, "sh", "git config --global user.name Robot")
    assert commit(machine, repository).startswith("Robot|local@example.org|")


def test_what_the_systems_configuration_says_still_counts(machine, host):
    host("user.name=Alice")
    machine.write("/etc/gitconfig", "[user]\n\tname = everybody\n\temail = all@example.org\n[core]\n\tabbrev = 11\n")
    seen = [inside(machine, name) for name in ("user.name", "user.email", "core.abbrev")]
    machine.root(["rm", "/etc/gitconfig"], check=True)
    assert seen == [b"Alice", b"all@example.org", b"11"]


@pytest.mark.parametrize(
    "name",
    ["O\"Neil \\ '", " leading # and ; more ", "two\nlines", "x\n[core]\n\tpager = touch pwned", "tab\tand\r\nreturn", "\x1b[31mred", "名前"],
)
def test_odd_names_survive(machine, host, name):
    host("user.name=" + name, "user.email=<>")
    assert (inside(machine, "user.name"), inside(machine, "core.pager")) == (name.encode(), None)


def test_both_files_of_the_user_and_includes_by_directory_count(machine, host, repository):
    machine.run(["mkdir", "-p", "/home/alice/.config/git"], cwd="/", check=True)
    host("user.name=from xdg", "user.email=xdg@example.org", file="/home/alice/.config/git/config")
    host(f"includeIf.gitdir:{repository}/.path=work")
    host("user.email=work@example.org", file="/home/alice/work")
    assert [inside(machine, "user.name"), inside(machine, "user.email")] == [b"from xdg", b"xdg@example.org"]
    assert inside(machine, "user.email", cwd=repository) == b"work@example.org"
    machine.root(["rm", "/home/alice/work"], check=True)


@pytest.mark.parametrize("broken", ["echo junk >.git", "mkdir .git; echo x >.git/HEAD", "git init -q .; echo '[core' >.git/config"])
def test_a_broken_repository_is_not_taken_for_a_broken_gitconfig(broken, machine, host, repository):
    host(*SET)
    machine.run(f"rm -rf .git; {broken}", cwd=repository, check=True)
    done = pi(machine, "sh", "grep -c 'Alice Ünal' $GIT_CONFIG_SYSTEM", cwd=repository)
    assert done.stdout == b"1\n" and b"git could not read" not in done.stderr, done
    host(f"includeIf.gitdir:{repository}/.path=work")
    done = pi(machine, "sh", "grep -c 'Alice Ünal' $GIT_CONFIG_SYSTEM", cwd=repository)
    assert done.stdout == b"1\n" and b"git could not read /home/alice/.gitconfig" not in done.stderr, done


def test_the_agent_cannot_change_it(machine, host):
    host(*SET)
    script = "for f in $GIT_CONFIG_SYSTEM; do echo x >$f; rm -f $f; mv $f $f.x; chmod u+w $f; done; mkdir /run/pi-agent/x; git config --system user.name Robot"
    done = pi(machine, "sh", f"({script}) 2>/dev/null; git config user.name")
    assert done.stdout.decode() == "Alice Ünal\n", done


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        ("ln -s /etc/shadow .gitconfig", "Permission denied"),
        ("mkfifo .gitconfig", "did not read /home/alice/.gitconfig within 2 seconds"),
        ("mkfifo pipe; printf '[include]\\npath = pipe\\n' >.gitconfig", "did not read /home/alice/.gitconfig within 2 seconds"),
        ("printf '[user\\n' >.gitconfig", "bad config line"),
        ("printf '[user]\\nname = ' >.gitconfig; head -c 20000 /dev/zero | tr '\\0' x >>.gitconfig", "longer than 16384 bytes"),
        ("mkdir .gitconfig", "git could not read /home/alice/.gitconfig"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_told_and_keeps_nobody(machine, plant, words):
    machine.run(plant, cwd="/home/alice", check=True)
    begun = time.monotonic()
    done = pi(machine, "sh", "echo ran; git config user.name")
    took = time.monotonic() - begun
    machine.root("rm -rf /home/alice/pipe", check=True)
    assert (done.returncode, done.stdout) == (1, b"ran\n"), done
    (line,) = messages(done)
    assert line.startswith("pi: git: the agent's commits do not carry your name and address: ") and words in line, line
    assert took < 6, took


def test_ctrl_c_is_heeded_while_a_pipe_keeps_git(machine):
    machine.run("mkfifo .gitconfig", cwd="/home/alice", check=True)
    done = machine.run("timeout --preserve-status -s INT 0.8 pi sh 'echo ran'; echo $?", cwd=DEMO)
    assert done.stdout == b"130\n", done


def test_another_file_named_by_the_policy_counts_instead(machine, host, playing_policy):
    host(*SET)
    playing_policy(PLAYING_POLICY + "  GIT_CONFIG_SYSTEM: /dev/null\n")
    assert inside(machine, "user.name") is None

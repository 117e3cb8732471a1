"""What a session changed is listed, shown and taken back by its user, without root and without git."""

import contextlib
import json
import re
import subprocess
import time

import pytest
from launching import PLAYING_POLICY, finish, messages, pi, read_line, session
from shells import Shell

pytestmark = pytest.mark.usefixtures("playing")

PROJECT = "/home/alice/projects/undo"
STORE = "/var/lib/pi-agent/undo/alice"
MADE = """
set -e
rm -rf "$1"; mkdir -p "$1/src" "$1/empty"; cd "$1"
git init -q; printf 'int a;\\n' >src/a.c; echo KEY=1 >.env; echo .env >.gitignore; ln -s src/a.c link; chmod 600 .env
git add src .gitignore link; git commit -qm one; echo 'not committed' >>src/a.c; rm -rf "$1.copy"; cp -a "$1" "$1.copy"; sleep 0.1
"""


def newest(machine):
    """When the last checkpoint of alice's began, and whether all of it is kept."""
    name = machine.root(f"cd {STORE} && ls | grep -v copies | sort | tail -1").stdout.decode().strip()
    return name[:20], "-new-" not in name and machine.root(["test", "-e", f"{STORE}/{name}/before"]).returncode == 0


@contextlib.contextmanager
def until_kept(machine):
    """Returns when all is kept of what begins inside."""
    before, _ = newest(machine)
    yield
    until = time.monotonic() + 30
    while not ((kept := newest(machine))[0] > before and kept[1]):
        assert time.monotonic() < until, kept
        time.sleep(0.02)


@contextlib.contextmanager
def acting(machine, script, cwd, **options):
    """A session whose agent does this once all is kept, as one that waits for its model's first answer."""
    with contextlib.ExitStack() as stack:
        with until_kept(machine):
            running = stack.enter_context(session(machine, "sh", f"echo ready; read go; {script}", cwd=cwd, **options))
        running.stdin.write(b"go\n")
        running.stdin.flush()
        yield running


def act(machine, script, cwd=PROJECT):
    with acting(machine, script, cwd) as running:
        return subprocess.CompletedProcess(script, *finish(running, timeout=60))


@pytest.fixture
def project(machine):
    machine.run(["sh", "-c", MADE, "sh", PROJECT], cwd="/", check=True)
    yield PROJECT
    machine.root(["rm", "-rf", PROJECT, f"{PROJECT}.copy"], check=True)


def ctl(machine, *arguments, cwd=PROJECT, **options):
    return machine.run(["pi-agentctl", *arguments], cwd=cwd, **options)


def changes(machine):
    done = ctl(machine, "changes", "--json", check=True)
    return {one["path"]: one["change"] for one in json.loads(done.stdout)["changes"] if not one["of_git"]}


def is_as_before(machine):
    """All but git's own files, byte for byte, with modes and targets."""
    listing = "cd $1 && find . -path ./.git -prune -o -printf '%p %m %y %l\\n' | sort && find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum"
    return len({machine.run(["sh", "-c", listing, "sh", path], cwd="/", check=True).stdout for path in (PROJECT, f"{PROJECT}.copy")}) == 1


@pytest.mark.parametrize("script", [
    "git checkout -q . && git clean -qfdx",
    "git reset -q --hard && rm -rf empty link",
    "rm -rf src .env; mkdir -p new/tree; echo x >new/tree/file",
    "git stash -q -u; mv .gitignore ignore; chmod 644 .env || true",
    "rm link; mkdir link; echo x >link/file; mv src lib; echo y >>lib/a.c",
    "git commit -qam two && git checkout -q HEAD~1 -- .; rm -f .env",
    "git stash -q && git stash drop -q",
    "git checkout -qb other && git rm -qf src/a.c && git commit -qm gone",
    "git add -A && git commit -qm all && git reset -q --hard HEAD~1",
    "git commit -qam two && git reset -q --hard HEAD~1 && git clean -qfdx",
    "git mv -f src/a.c b.c && git commit -qam moved && git rebase -q --root",
    "chmod -R go-rwx src; rm -rf .gitignore; git clean -qfdX",
])  # fmt: skip
def test_changes_are_listed_and_taken_back(machine, project, script):
    done = act(machine, script, cwd=project)
    assert done.returncode == 0, done
    assert changes(machine)
    assert not is_as_before(machine)
    assert ctl(machine, "undo", "--yes").returncode == 0
    assert is_as_before(machine)
    assert changes(machine) == {}
    assert ctl(machine, "undo", "--yes").returncode == 1  # nothing is left to do


def test_the_place_belongs_to_the_user_alone_and_no_session_sees_it(machine, project):
    seen = pi(machine, "sh", f"ls -A /var/lib/pi-agent/undo {STORE} 2>&1; true", cwd=project)
    assert b"No such file" in seen.stdout or b"Permission denied" in seen.stdout, seen
    assert machine.root(["stat", "-c", "%U %a", "/var/lib/pi-agent/undo", STORE]).stdout == b"root 711\nalice 700\n"
    names = machine.root(["ls", STORE]).stdout.split()
    assert names and not [name for name in names if b"-new-" in name], names


def at_a_terminal(machine, script, cwd=PROJECT):
    """What a session shows there, to its end."""
    with Shell(machine, cwd=cwd, columns=200) as shell:
        with until_kept(machine):
            shell.type(f"pi sh 'read go; {script}'; echo over-$?\n")
        shell.type("go\n")
        shell.expect(rb"over-\d")
        return shell.seen.decode()


def test_pi_says_once_how_to_see_many_changes(machine, project):
    said = at_a_terminal(machine, "for n in $(seq 20); do echo $n >new-$n; done")
    assert said.count("pi: 20 files changed during this session. See them: pi-agentctl changes. Take them back: pi-agentctl undo") == 1, said
    assert "during this session" not in at_a_terminal(machine, "echo x >new")
    assert messages(act(machine, "for n in $(seq 20); do echo x >new-$n; done", cwd=project)) == []  # nobody is there to read it


def test_an_undo_is_taken_back_by_its_id(machine, project):
    act(machine, "echo agent >src/a.c; rm .env", cwd=project)
    done = ctl(machine, "undo", "--yes", check=True)
    undone = done.stdout.split(b"--session ")[1].split()[0].decode()
    assert is_as_before(machine)
    assert ctl(machine, "undo", "--yes", "--session", undone).returncode == 0
    assert machine.run(["cat", f"{project}/src/a.c"]).stdout == b"agent\n"
    assert machine.run(["test", "-e", f"{project}/.env"]).returncode == 1


def test_what_the_user_changed_since_stays(machine, project):
    act(machine, "echo agent >src/a.c; echo agent >new", cwd=project)
    machine.run(["sh", "-c", "echo own >src/a.c; echo own >own"], cwd=project, check=True)
    done = ctl(machine, "undo", "--yes", check=True)
    assert b"because they changed since the session" in done.stdout, done
    assert machine.run(["sh", "-c", "cat src/a.c own; ls"], cwd=project).stdout == b"own\nown\nempty\nlink\nown\nsrc\n"
    assert ctl(machine, "undo", "--yes", "src/a.c").returncode == 0
    assert machine.run(["cat", "src/a.c"], cwd=project).stdout == b"int a;\nnot committed\n"


def test_what_happened_in_another_project_meanwhile_stays(machine, project):
    other = f"{PROJECT}-other"
    machine.run(["sh", "-c", f"mkdir -p {other}; echo old >{other}/text; sleep 0.1"], cwd="/", check=True)
    with acting(machine, "echo agent >src/a.c; echo done; read line", project) as running:
        assert read_line(running) == b"done\n"
        machine.run(["sh", "-c", f"echo own >{other}/text"], cwd="/", check=True)
        finish(running)
    elsewhere = {one["path"]: one["elsewhere"] for one in json.loads(ctl(machine, "changes", "--json", check=True).stdout)["changes"]}
    assert (elsewhere["undo/src/a.c"], elsewhere["undo-other/text"]) == (False, True), elsewhere
    done = ctl(machine, "undo", "--yes", check=True)
    assert b" elsewhere in /home/alice/projects (pi-agentctl changes)" in done.stdout, done
    assert is_as_before(machine) and machine.run(["cat", f"{other}/text"]).stdout == b"own\n"
    done = ctl(machine, "undo", "--yes", cwd=other)
    assert done.returncode == 1 and b"the last one worked in /home/alice/projects/undo," in done.stderr, done
    assert ctl(machine, "undo", "--yes", other).returncode == 0
    assert machine.run(["cat", f"{other}/text"]).stdout == b"old\n"
    machine.root(["rm", "-r", other], check=True)


def test_undo_is_refused_while_a_session_lives_there(machine, project):
    with acting(machine, "echo agent >src/a.c; echo done; read line", project) as running:
        assert read_line(running) == b"done\n"
        done = ctl(machine, "undo", "--yes")
        assert (done.returncode, b"a session lives in" in done.stderr) == (75, True), done
        finish(running)


def test_diff_has_gits_form_and_runs_nothing_of_the_project(machine, project):
    script = f"echo agent >>src/a.c; git config diff.external 'touch {PROJECT}/owned'; echo '* diff=x' >.gitattributes; git config diff.x.textconv 'touch {PROJECT}/owned'"
    act(machine, script, cwd=project)
    done = ctl(machine, "diff", "src", check=True)
    assert done.stdout.startswith(b"diff --git a/undo/src/a.c b/undo/src/a.c\n--- a/undo/src/a.c\n+++ b/undo/src/a.c\n@@ "), done
    assert b"\n+agent\n" in done.stdout
    assert machine.run(["test", "-e", f"{PROJECT}/owned"]).returncode == 1


def test_the_journal_has_the_counts(machine, project):
    act(machine, "echo agent >src/a.c; rm .env; echo x >new", cwd=project)
    session = json.loads(ctl(machine, "changes", "--json", check=True).stdout)["session"]
    machine.root(["journalctl", "--sync"])
    entry = json.loads(machine.root(["journalctl", "-o", "json", f"PI_AGENT_SESSION={session}", "MESSAGE_ID=8d0f3c5ae1b24f7c9a6be4c1f20d7735"], check=True).stdout)
    assert json.loads(entry["PI_AGENT_CHANGES"]) == {"changed": 1, "created": 1, "deleted": 1}, entry
    assert entry["_UID"] == "1000", entry


def test_pi_speaks_of_what_git_does_not_track(machine, project):
    assert "during this session" not in at_a_terminal(machine, "echo x >>src/a.c")
    assert "pi: 1 file changed during" in at_a_terminal(machine, "rm .env")


def test_review_shows_each_change_and_takes_back_what_is_marked(machine, project):
    act(machine, "echo agent >>src/a.c; rm .env; mkdir made; echo x >made/x; printf 'x\\033]0;owned\\a\\033Pq\\n' >new", cwd=project)
    with Shell(machine, cwd=project, command=["pi-agentctl", "review"]) as shell:
        shell.expect(b"TAB marks")
        shell.expect(b"KEY=1")  # the first one's difference, beside the list
        shell.type("\t\t")  # the deletion, and what was made in a new directory
        shell.expect(b"owned")
        assert not re.search(rb"\x1b\]0;owned|\x1bP", shell.seen), shell.seen
        shell.type("\x1b[B")
        shell.expect(rb"\+agent")
        shell.type("\t\r")
        shell.expect(rb"These changes are taken back.*Take them back\?")
        shell.type("y\n")
        shell.expect(b"took back 4 of 4")
    assert changes(machine) == {"undo/new": "created"}
    with Shell(machine, cwd=project, command=["pi-agentctl", "review"]) as shell:
        shell.expect(b"TAB marks")
        shell.type("\x1b")
        shell.expect(b"everything was kept")
    assert changes(machine) == {"undo/new": "created"}
    assert ctl(machine, "review").returncode == 64  # nobody to ask
    assert b"new file mode" in ctl(machine, "diff", "--change", "0", check=True).stdout
    assert ctl(machine, "diff", "--change", "99").returncode == 1


def test_explain_says_what_undo_covers(machine, project):
    told = ctl(machine, "explain", check=True).stdout
    assert b"1G in all, files of at most 100M" in b" ".join(told.split()), told
    assert json.loads(ctl(machine, "explain", "--json", check=True).stdout)["projects"]["undo"] == {"size": "1G", "file": "100M"}


def test_root_has_no_changes_and_off_is_off(machine, project):
    assert machine.root(["pi-agentctl", "changes"]).returncode == 64
    machine.install_policy(PLAYING_POLICY + "projects: {undo: false}\n")
    before = machine.root(["ls", STORE]).stdout
    pi(machine, "sh", "rm .env", cwd=project)
    after = machine.root(["ls", STORE]).stdout
    machine.install_policy(PLAYING_POLICY)
    assert before == after


def test_a_killed_undo_is_finished_by_the_next(machine, project):
    machine.run(["sh", "-c", "mkdir many; for n in $(seq 300); do echo $n >many/$n; done; rm -rf ../undo.copy; cp -a . ../undo.copy; sleep 0.1"], cwd=project, check=True)
    act(machine, "rm -rf src many; echo x >new", cwd=project)
    for wait in ("0.01", "0.02", "0.03", "0.05", "0.08"):
        machine.run(["timeout", "-s", "KILL", wait, "pi-agentctl", "undo", "--yes"], cwd=project)
    done = ctl(machine, "undo", "--yes")
    assert is_as_before(machine), (done, machine.run("diff -r --exclude=.git ../undo ../undo.copy", cwd=project))


def test_a_project_without_git_has_it_too(machine):
    machine.run(["sh", "-c", f"rm -rf {PROJECT}; mkdir {PROJECT}; echo one >{PROJECT}/notes; sleep 0.1"], cwd="/", check=True)
    assert "pi: 1 file changed during" in at_a_terminal(machine, "rm notes")
    assert ctl(machine, "undo", "--yes").returncode == 0
    assert machine.run(["cat", "notes"], cwd=PROJECT).stdout == b"one\n"
    machine.root(["rm", "-r", PROJECT], check=True)


# Repositories of every kind below one directory: a plain one with a worktree beside it, one with a submodule, one whose filter keeps another
# content in git (as git-lfs does), one that is bare of commits, and files without git.
REPOSITORIES = """
set -e
rm -rf "$1"; mkdir "$1"; cd "$1"; git config --global protocol.file.allow always
made() { git init -q "$1"; cd "$1"; printf 'int a;\\n' >a.c; echo build >.gitignore; echo KEY=1 >.env; git add a.c .gitignore; git commit -qm one; cd ..; }
made plain; git -C plain worktree add -q ../tree -b side; echo dirty >>plain/a.c; echo dirty >>tree/a.c
made above; git -C above submodule --quiet add ../plain below; git -C above commit -qm sub; echo dirty >>above/below/a.c
made large; cd large; git config filter.part.clean 'sed s/WHOLE/pointer/'; git config filter.part.smudge 'sed s/pointer/WHOLE/'
echo '*.bin filter=part' >.gitattributes; echo WHOLE >x.bin; git add .; git commit -qm bin; echo WHOLE more >x.bin; cd ..
git init -q fresh; echo staged >fresh/f; git -C fresh add f; mkdir loose; echo text >loose/notes
rm -rf "$1.copy"; cp -a "$1" "$1.copy"; sleep 0.1
"""
HARM = """
for one in plain tree above above/below large; do git -C $one reset -q --hard; git -C $one clean -qfdx; done
git -C plain worktree remove --force ../tree; git -C above submodule --quiet deinit -f below; git -C plain commit -q --allow-empty -m x
git -C large rm -qf x.bin; rm -rf loose fresh/f; git -C fresh rm -q --cached f; git -C above checkout -qb other
"""
WHOLE = "cd $1 && find . -printf '%p %y %l\\n' | grep -v '/[.]git/' | sort && find . -type f -print0 | grep -zv '/[.]git/' | sort -z | xargs -0 sha256sum"


def test_repositories_of_every_kind_come_back_and_git_where_it_is_named(machine):
    script = ["sh", "-c", REPOSITORIES, "sh", PROJECT]
    machine.run(script, cwd="/", check=True)
    wholes = [["sh", "-c", WHOLE, "sh", path] for path in (PROJECT, f"{PROJECT}.copy")]
    assert len({machine.run(whole, cwd="/", check=True).stdout for whole in wholes}) == 1
    state = "for one in plain tree above above/below large fresh; do git -C $one status --porcelain -b; git -C $one rev-parse -q --verify HEAD; done"
    before = machine.run(["sh", "-c", state], cwd=PROJECT).stdout
    assert act(machine, HARM, cwd=PROJECT).returncode == 0
    assert machine.run(["sh", "-c", state], cwd=PROJECT).stdout != before
    done = ctl(machine, "undo", "--yes", check=True)
    assert b"git's own files stay" in done.stdout, done
    repositories = [f"{one}/.git" for one in ("plain", "tree", "above", "above/below", "large", "fresh")]
    assert ctl(machine, "undo", "--yes", *repositories).returncode == 0
    assert len({machine.run(whole, cwd="/", check=True).stdout for whole in wholes}) == 1
    assert machine.run(["sh", "-c", state], cwd=PROJECT).stdout == before
    assert machine.run(["sh", "-c", "for one in plain above large; do git -C $one fsck --no-dangling || exit; done"], cwd=PROJECT).returncode == 0
    machine.root(["rm", "-rf", PROJECT, f"{PROJECT}.copy"], check=True)


def test_two_sessions_at_once_are_taken_back_each_alone(machine, project):
    other = f"{PROJECT}-two"
    machine.run(["sh", "-c", MADE, "sh", other], cwd="/", check=True)
    with acting(machine, "echo agent >src/a.c; read line; rm .env", project) as one:
        with acting(machine, "rm -rf src; read line", other) as two:
            finish(one)
            assert ctl(machine, "undo", "--yes").returncode == 75
            finish(two)
    assert ctl(machine, "undo", "--yes").returncode == 0
    assert is_as_before(machine) and machine.run(["test", "-e", f"{other}/src"]).returncode == 1
    assert ctl(machine, "undo", "--yes", cwd=other).returncode == 0
    assert machine.run(["cat", f"{other}/src/a.c"]).stdout == b"int a;\nnot committed\n"
    machine.root(["rm", "-rf", other, f"{other}.copy"], check=True)


def test_all_is_kept_where_others_want_every_processor(machine):
    """The look that leaves the start its processors does not end here in half a minute: the agent's begin starts another."""
    files = "import os\nfor n in range(30000):\n if n % 100 == 0: os.makedirs(f'd{n}')\n open(f'd{n // 100 * 100}/{n}', 'w')"
    machine.run(["sh", "-c", f"rm -rf {PROJECT}; mkdir -p {PROJECT}; cd {PROJECT}; python3 -c \"{files}\"; sleep 0.1"], cwd="/", check=True)
    busy = 'for n in $(seq $((8 * $(nproc)))); do while :; do :; done >/dev/null 2>&1 & done; exec pi "$@"'  # of the same control group, which is what counts
    try:
        with acting(machine, "rm -rf *", PROJECT, program=("sh", "-c", busy, "sh")) as running:
            try:
                finish(running, timeout=60)
            finally:
                running.kill_all()
        assert ctl(machine, "undo", "--yes").returncode == 0
        assert machine.run(["sh", "-c", "find . -type f | wc -l"], cwd=PROJECT).stdout.strip() == b"30000"
    finally:
        machine.root(["rm", "-rf", PROJECT], check=True)


def test_a_full_disk_is_said_and_keeps_no_session_from_working(machine, project):
    act(machine, "true", cwd=project)
    machine.run(["sh", "-c", "seq 400000 >numbers; rm -rf ../undo.copy; cp -a . ../undo.copy; sleep 0.1"], cwd=project, check=True)
    machine.root(["mount", "-t", "tmpfs", "-o", "size=1M,mode=0700,uid=alice", "none", STORE], check=True)
    try:
        done = act(machine, "rm numbers .env; sleep 1", cwd=project)
        assert done.returncode == 0, done
        listed = ctl(machine, "changes", check=True).stdout
        assert b"numbers (not saved: projects.undo.size or the disk had no room)" in listed, listed
        done = ctl(machine, "undo", "--yes")
        assert b"These cannot be taken back" in done.stdout and machine.run(["cat", ".env"], cwd=project).stdout == b"KEY=1\n", done
    finally:
        machine.root(["umount", "-l", STORE], check=True)


def test_what_a_host_lost_when_it_went_down_is_no_end_of_undo(machine, project):
    """The last session's end, a copy, and a whole manifest are empty, as after a power cut."""
    for lost, status in (("after", 0), ("../copies/*", 71), ("before", 69)):
        machine.run(["sh", "-c", f"rm -rf {STORE}/*; rm -rf ./*; cp -a ../undo.copy/. .; sleep 0.1"], cwd=project, check=True)
        act(machine, "rm -rf src; echo x >new", cwd=project)
        machine.run(["sh", "-c", f"for file in {STORE}/*/{lost}; do : >$file; done"], cwd=project, check=True)
        done = ctl(machine, "undo", "--yes")
        assert done.returncode == status, (lost, done)
        assert act(machine, "true", cwd=project).returncode == 0
    machine.run(["sh", "-c", f"rm -rf {STORE}/*"], cwd=project, check=True)

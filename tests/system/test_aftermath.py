"""What a session leaves that runs code outside later is told at its end: every door when the agent opens it, none that was open before."""

import json
import re
import signal
import time
import tomllib
from pathlib import Path

import pytest
from launching import PLAYING_POLICY, finish, pi, session
from shells import PROMPT, Shell

pytestmark = pytest.mark.usefixtures("playing")

# With protection most doors of git could not be opened.
UNPROTECTED = PLAYING_POLICY + "projects: {protect: []}\n"

PROJECT = "/home/alice/projects/after"
BEGIN = "pi: Review before you go on: this session added or changed files that run code outside the sandbox:"
END = "pi: Until then use neither git nor an editor nor these programs there."
MESSAGE_ID = "52af8656c170442e831913a168dda90c"
PATH = f"{PROJECT}/tools:/usr/bin:/bin"

# A repository with a bit of everything, in which none of the doors below is open.
MADE = """
set -e
mkdir -p "$1"; cd "$1"
git init -q; echo x >file; mkdir -p node_modules/.bin venv/bin .venv/bin bin tools sub/deep
printf '{"name": "x", "version": "1.0.0", "scripts": {"test": "true"}}' >package.json
echo 'repos: []' >.pre-commit-config.yaml
git add file package.json; git commit -qm one
mkdir -p .git/modules/part .git/worktrees/tree .git/modules/a/b
for d in part a/b; do echo 'ref: refs/heads/main' >.git/modules/$d/HEAD; printf '[core]\\n\\tbare = false\\n' >.git/modules/$d/config; done
echo ../.. >.git/worktrees/tree/commondir; echo 'ref: refs/heads/x' >.git/worktrees/tree/HEAD
"""
PROGRAM = "echo '#!/bin/sh' >{0}; chmod +x {0}"


def setting(name, value="./x", file=".git/config", shown=None):
    return f"git config --file {file} '{name}' '{value}'", f"{file}: git setting {shown or name.lower()}"


def written(path, what, text="x"):
    return f"mkdir -p $(dirname {path}); echo '{text}' >{path}", f"{path}: {what}"


def program(path, what="program"):
    return f"mkdir -p $(dirname {path}); {PROGRAM.format(path)}", f"{path}: {what}"


TASKS, EDITOR, SHELL, PACKAGES = "editor's tasks", "editor's settings", "commands for a shell that enters", "package manager's programs"
# name: what opens it, in the project; and how the notice begins to tell it.
DOORS = {
    "a hook": program(".git/hooks/pre-commit", "git hook"),
    "a hook that is a link": ("ln -s ../../file .git/hooks/post-merge", ".git/hooks/post-merge: git hook"),
    "hooks elsewhere": ("rm -r .git/hooks; ln -s ../tools .git/hooks", ".git/hooks: link to a directory of git hooks"),
    "a hook of a submodule": program(".git/modules/part/hooks/post-checkout", "git hook"),
    "a hook of a submodule with a path for a name": program(".git/modules/a/b/hooks/post-checkout", "git hook"),
    "a husky hook": written(".husky/pre-commit", "git hook"),
    "core.fsmonitor": setting("core.fsmonitor"),
    "core.hooksPath": setting("core.hooksPath", "tools"),
    "core.sshCommand": setting("core.sshCommand"),
    "core.pager": setting("core.pager"),
    "core.editor": setting("core.editor"),
    "core.gitProxy": setting("core.gitProxy"),
    "core.alternateRefsCommand": setting("core.alternateRefsCommand"),
    "core.worktree": setting("core.worktree", "/home/alice"),
    "sequence.editor": setting("sequence.editor"),
    "a filter's clean": setting("filter.x.clean"),
    "a filter's smudge": setting("filter.x.smudge"),
    "a filter's process": setting("filter.x.process"),
    "diff.external": setting("diff.external"),
    "a diff command": setting("diff.x.command"),
    "a textconv": setting("diff.x.textconv"),
    "a merge driver": setting("merge.x.driver"),
    "an alias": setting("alias.st", "!x"),
    "a credential helper": setting("credential.https://example.org.helper", "!x"),
    "gpg.program": setting("gpg.program"),
    "gpg.ssh.program": setting("gpg.ssh.program"),
    "include.path": setting("include.path", "/tmp/x"),
    "includeIf": setting("includeIf.gitdir:/.path", "/tmp/x", shown="includeif.gitdir:/.path"),
    "an address that is a command": setting("remote.o.url", "ext::sh -c x"),
    "all addresses rewritten to a command": setting("url.ext::sh -c x .insteadOf", "https://", shown="url.ext::sh -c x .insteadof"),
    "a remote's upload-pack": setting("remote.o.uploadpack"),
    "a remote's receive-pack": setting("remote.o.receivepack"),
    "a remote's helper": setting("remote.o.vcs"),
    "a remote's proxy": setting("remote.o.proxy"),
    "a submodule's update": setting("submodule.part.update", "!x"),
    "a pager of one command": setting("pager.log"),
    "a browser": setting("browser.x.cmd"),
    "a difftool": setting("difftool.x.cmd"),
    "a mergetool": setting("mergetool.x.cmd"),
    "init.templateDir": setting("init.templateDir"),
    "a trailer command": setting("trailer.x.command"),
    "a trailer cmd": setting("trailer.x.cmd"),
    "uploadpack.packObjectsHook": setting("uploadpack.packObjectsHook"),
    "protocol.ext.allow": setting("protocol.ext.allow", "always"),
    "a setting of a submodule": setting("core.fsmonitor", file=".git/modules/part/config"),
    "a setting of a worktree": setting("core.fsmonitor", file=".git/worktrees/tree/config.worktree"),
    "a setting in config.worktree": setting("core.fsmonitor", file=".git/config.worktree"),
    "a configuration that is a link": (
        "mv .git/config tools/c; ln -s ../tools/c .git/config", ".git/config: git configuration that is a link"),
    "commondir": written(".git/commondir", "commondir that points elsewhere", "../tools"),
    "a worktree's commondir": written(".git/worktrees/tree/commondir", "commondir that points elsewhere", "../../../tools"),
    "a commondir of a repository in the repository": (
        "mkdir objects refs; git init -q sub/deep; echo ../.. >sub/deep/.git/commondir", "sub/deep/.git/commondir: commondir that points elsewhere"),
    "info/attributes": written(".git/info/attributes", "git attributes", "* filter=x"),
    "a .git file": written("sub/.git", ".git file that points elsewhere", "gitdir: ../tools"),
    "a .git link": ("ln -s ../tools sub/.git", "sub/.git: link to a git directory"),
    "a nested repository's hook": (
        f"git init -q sub/deep; {PROGRAM.format('sub/deep/.git/hooks/pre-push')}", "sub/deep/.git/hooks/pre-push: git hook"),
    "an embedded bare repository": ("git init -q --bare sub/deep/docs", "sub/deep/docs: embedded bare repository"),
    "an embedded repository with a common directory": (
        "mkdir sub/c; echo 'ref: refs/heads/x' >sub/c/HEAD; echo ../../tools >sub/c/commondir", "sub/c: embedded bare repository"),
    "a second name of the configuration": ("ln .git/config tools/c", ".git/config: git configuration with another name (a hard link)"),
    "a second name of a hook": (
        f"{PROGRAM.format('.git/hooks/pre-commit')}; ln .git/hooks/pre-commit x", ".git/hooks/pre-commit: git hook with another name (a hard link)"),
    "a rebase that runs something": written(
        ".git/rebase-merge/git-rebase-todo", "command in the list of an unfinished rebase", "pick 1234567 one\n exec ./x"),
    "a rebase that runs something, in short": written(
        ".git/worktrees/tree/rebase-merge/git-rebase-todo", "command in the list of an unfinished rebase", "x ./x"),
    "a list of a rebase that is a link": (
        "mkdir .git/rebase-merge; ln -s /tmp/x .git/rebase-merge/git-rebase-todo",
        ".git/rebase-merge/git-rebase-todo: list of an unfinished rebase that is a link"),
    "a bisection's paths": written(".git/BISECT_NAMES", "paths of an unfinished bisection", "$(./x)"),
    ".envrc": written("sub/.envrc", SHELL),
    "mise.toml": written("mise.toml", SHELL, '[hooks]\nenter = "x"'),
    ".tool-versions": written(".tool-versions", SHELL, "nodejs path:./tools"),
    "tasks.json": written(".vscode/tasks.json", TASKS, "{}"),
    "settings.json": written(".vscode/settings.json", EDITOR, "{}"),
    "launch.json": written("sub/.vscode/launch.json", TASKS, "{}"),
    "an .idea run configuration": written(".idea/runConfigurations/x.xml", TASKS),
    "a workspace": written("x.code-workspace", TASKS),
    "a devcontainer": written(".devcontainer/devcontainer.json", TASKS),
    ".exrc": written(".exrc", EDITOR),
    ".nvimrc": written(".nvimrc", EDITOR),
    ".nvim.lua": written(".nvim.lua", EDITOR),
    ".dir-locals.el": written(".dir-locals.el", EDITOR),
    ".gdbinit": written(".gdbinit", "debugger's commands"),
    ".npmrc": written(".npmrc", PACKAGES, "script-shell=./x"),
    ".yarnrc.yml": written(".yarnrc.yml", PACKAGES, "yarnPath: ./x"),
    "cargo's runner": written(".cargo/config.toml", PACKAGES, '[target.x]\nrunner = "./x"'),
    "cargo's rustc-wrapper": written(".cargo/config", PACKAGES, '[build]\nrustc-wrapper = "./x"'),
    "package scripts": ("sed -i s/true/evil/ package.json", "package.json: package scripts"),
    "a new package's install script": written("sub/package.json", "package scripts", '{"scripts": {"prepare": "x"}}'),
    "a program in PATH": program("tools/ls"),
    "a program of node_modules": program("node_modules/.bin/git"),
    "a program of venv": program("venv/bin/python"),
    "a program of .venv": program(".venv/bin/pip"),
    "a venv's activate": written("venv/bin/activate", "program"),
    "a program of bin": program("bin/setup"),
    "a directory that hides": ("mkdir sub/dark; chmod 0 sub/dark", "sub/dark: directory that cannot be looked into"),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def unprotected(playing):
    playing.install_policy(UNPROTECTED)


@pytest.fixture
def project(machine):
    machine.run(["bash", "-c", MADE, "bash", PROJECT], cwd="/", check=True)
    time.sleep(0.02)  # a tick of the file system's clock
    yield PROJECT
    machine.root(["rm", "-rf", PROJECT], check=True)


def run(machine, script, cwd=PROJECT, **options):
    return pi(machine, "sh", script, cwd=cwd, env={"PATH": PATH}, **options)


def told(done):
    """The findings that the notice names, one a line, without what every notice has."""
    lines = done.stderr.decode().splitlines()
    if not lines:
        return []
    assert (lines[0], lines[-1]) == (BEGIN, END), done
    return [line.removeprefix("pi:   ") for line in lines[1:-1]]


@pytest.mark.parametrize("door", DOORS)
def test_a_door_that_the_agent_opens_is_told_and_one_that_was_open_is_not(door, machine, project):
    script, begin = DOORS[door]
    done = run(machine, script)
    assert (done.returncode, done.stdout) == (0, b""), done
    assert any(line in (f"{begin} appeared", f"{begin} changed") for line in told(done)), done
    # It is as it was when the next session begins.
    assert told(run(machine, "(echo x >work; git add work; git commit -qm two --no-verify) >/dev/null 2>&1; true")) == []


def test_a_door_that_was_open_is_told_when_it_changes(machine, project):
    machine.run(f"echo old >.git/hooks/pre-commit; {DOORS['core.pager'][0]}; echo old >.envrc", cwd=project, check=True)
    time.sleep(0.02)
    done = run(machine, "echo new >.git/hooks/pre-commit; git config core.pager new; echo new >.envrc")
    assert told(done) == [
        ".git/config: git setting core.pager changed", ".git/hooks/pre-commit: git hook changed", f".envrc: {SHELL} changed"]  # fmt: skip
    assert told(run(machine, "touch .git/hooks/pre-commit .envrc; git config core.abbrev 9")) == []


SOURCE = Path(__file__).resolve().parents[2]
WRITING = """
import json, os, sys
for path, text in json.load(open('samples.json')).items():
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    open(path, 'w').write(text + sys.argv[1])
"""


def samples():
    """{path: (what, text)}: a file for each pattern of the table, in a directory of its own. {path: text}: what must be beside some."""
    files, beside = {}, {}
    for row in tomllib.loads((SOURCE / "common/as_user/doors.toml").read_text())["door"]:
        for pattern in row["paths"].split() if row["what"] else ():
            directory = f"d{len(files)}"
            files[f"{directory}/{pattern.replace('*', 'x')}"] = (row["what"], row.get("words", "").split(" ")[0] + "\n")
            if "beside" in row:
                beside[f"{directory}/{row['beside']}"] = "x"
    return files, beside


def writes(machine, files, more=""):
    """What the journal has of a session that writes these files."""
    machine.write(f"{PROJECT}/samples.json", json.dumps(files), "alice")
    time.sleep(0.02)
    done = run(machine, f"echo $PI_AGENT_SESSION; python3 -c \"$WRITING\" '{more}'".replace("$WRITING", WRITING))
    assert done.returncode == 0, done
    machine.root(["journalctl", "--sync"], check=True)
    read = ["journalctl", "--all", "--output=json", f"PI_AGENT_SESSION={done.stdout.decode().strip()}", f"MESSAGE_ID={MESSAGE_ID}"]
    entries = [json.loads(line) for line in machine.root(read, check=True).stdout.splitlines()]
    return {(one["path"], one["kind"], one["change"]) for entry in entries for one in json.loads(entry["PI_AGENT_AFTERMATH"])}


def test_each_file_that_runs_code_later_is_told_when_it_is_made_and_when_it_is_changed(machine, project):
    files, beside = samples()
    assert len(files) >= 44, files
    for path, text in beside.items():
        machine.run(f"mkdir -p $(dirname {path}); echo {text} >{path}", cwd=project, check=True)
    texts = {path: text for path, (_, text) in files.items()}
    assert {(f"{project}/{path}", what, "appeared") for path, (what, _) in files.items()} - writes(machine, texts) == set()
    assert {(f"{project}/{path}", what, "changed") for path, (what, _) in files.items()} - writes(machine, texts, "more") == set()


def test_no_ordinary_file_is_told(machine, project):
    files = json.loads((SOURCE / "tests/unit/data/ordinary_files.json").read_text())
    assert len(files) >= 50, files
    assert writes(machine, files) == set()
    assert writes(machine, files, "# more") == set()


# Ordinary work, in a fresh directory with a commit in it.
CLEAN = {
    "git": "git checkout -qb b; echo y >>file; git commit -qam two; git stash -q 2>/dev/null; git checkout -q main; echo z >new; git add new;"
    " git commit -qm three; git rebase -q main b; git tag t; git notes add -m n; git gc -q; git remote add o https://example.org/x;"
    " GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -qi HEAD~1; test -e .git/rebase-merge/git-rebase-todo; git bisect start;"
    " git config user.name X; git branch --set-upstream-to=main b 2>/dev/null; git fsck --no-progress",
    "a clone": "git clone -q . $TMPDIR/c; git clone -q $TMPDIR/c copy; cd copy; git fetch -q; git checkout -qb x; git push -q origin x",
    "worktrees": "git worktree add -q wt -b wt; cd wt; echo 1 >a; git add a; git commit -qm wt; git config extensions.worktreeConfig true;"
    " git sparse-checkout set --no-cone a",
    "submodules": "git clone -q . $TMPDIR/c; git -c protocol.file.allow=always submodule add -q $TMPDIR/c part; git commit -qm sub;"
    " git submodule update --init -q; cd part; git checkout -qb x",
    "python": "python3 -m venv .venv; . .venv/bin/activate; python -c 'print(1)' >out; mkdir pkg; touch pkg/__init__.py pyproject.toml setup.py",
    "node": 'mkdir -p local/bin node_modules; echo \'{"name":"local","version":"1.0.0","bin":{"l":"bin/l.js"}}\' >local/package.json;'
    " echo x >local/bin/l.js; chmod +x local/bin/l.js;"
    ' echo \'{"name":"app","dependencies":{"local":"file:local"},"scripts":{"test":"true"}}\' >package.json;'
    " if command -v npm >/dev/null; then npm install --offline --no-audit --no-fund >/dev/null; else"
    " mkdir node_modules/.bin; ln -s ../local node_modules/local; ln -s ../local/bin/l.js node_modules/.bin/l; fi; test -x node_modules/.bin/l",
    "packages that bring their own": "mkdir -p node_modules/a/.vscode node_modules/a/.husky vendor/b/.idea/runConfigurations;"
    " for f in node_modules/a/.vscode/settings.json node_modules/a/.envrc node_modules/a/.npmrc vendor/b/.exrc; do echo x >$f; done;"
    ' echo \'{"scripts":{"install":"x"}}\' >node_modules/a/package.json; echo x >vendor/b/.idea/runConfigurations/x.xml',
    "cargo": "mkdir -p src .cargo target/debug; echo '[package]' >Cargo.toml; echo 'fn main() {}' >src/main.rs;"
    " printf '[build]\\njobs = 2\\n' >.cargo/config.toml; echo x >target/debug/app; chmod +x target/debug/app; echo target >.gitignore",
    "cmake": "mkdir -p build/CMakeFiles; echo 'project(x)' >CMakeLists.txt; echo x >build/app; chmod +x build/app; echo x >build/Makefile",
    "go": "mkdir -p cmd/app; echo 'module x' >go.mod; echo 'package main' >cmd/app/main.go; printf 'go 1.22\\n' >.tool-versions",
    "make": "printf 'all:\\n\\ttrue\\n' >Makefile; echo x >configure; chmod +x configure; mkdir -p .github/workflows;"
    " echo x >.github/workflows/ci.yml; echo x >.editorconfig; echo '* text=auto' >.gitattributes; echo x >.clang-format",
    "a new repository": "git init -q inner; cd inner; echo x >f; git add f; git commit -qm x; mkdir bin; echo x >bin/run; chmod +x bin/run",
    "mise": "printf '[tools]\\nnode = \"20\"\\n' >mise.toml; echo 'save-exact=true' >.npmrc; echo 'nodeLinker: node-modules' >.yarnrc.yml",
}  # fmt: skip


@pytest.mark.parametrize("kind", CLEAN)
def test_ordinary_work_leaves_nothing_to_say(kind, machine):
    machine.run(f"git init -q {PROJECT} && cd {PROJECT} && echo x >file && git add file && git commit -qm one", cwd="/", check=True)
    time.sleep(0.02)
    done = run(machine, f"(set -e; {CLEAN[kind]}) >$TMPDIR/log 2>&1 || {{ cat $TMPDIR/log; exit 9; }}")
    machine.root(["rm", "-rf", PROJECT], check=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done


def test_the_status_is_the_agents_and_standard_output_too(machine, project):
    done = run(machine, "echo mine; touch .git/hooks/pre-push; exit 7")
    assert (done.returncode, done.stdout, told(done)) == (7, b"mine\n", [".git/hooks/pre-push: git hook appeared"])
    killed = run(machine, "touch .git/hooks/pre-merge-commit; kill -9 $$")
    assert killed.returncode == -signal.SIGKILL, killed
    assert told(killed) == [".git/hooks/pre-merge-commit: git hook appeared"]


def test_it_is_told_in_the_journal_as_the_users_own_word(machine, project):
    done = run(machine, "echo $PI_AGENT_SESSION; touch .git/hooks/pre-push sub/.envrc")
    name = done.stdout.decode().strip()
    read = ["journalctl", "--all", "--output=json", f"PI_AGENT_SESSION={name}", f"MESSAGE_ID={MESSAGE_ID}"]
    machine.root(["journalctl", "--sync"], check=True)
    (entry,) = map(json.loads, machine.root(read, check=True).stdout.splitlines())
    assert (entry["_UID"], entry["SYSLOG_IDENTIFIER"]) == ("1000", "pi")
    assert json.loads(entry["PI_AGENT_AFTERMATH"]) == [
        {"path": f"{PROJECT}/.git/hooks/pre-push", "kind": "git hook", "change": "appeared"},
        {"path": f"{PROJECT}/sub/.envrc", "kind": SHELL, "change": "appeared"},
    ]


def test_the_notice_is_short_and_names_are_harmless(machine, project):
    script = r"""for i in $(seq 10 30); do touch .git/hooks/$'\e[31m\n'$i; done"""
    lines = told(run(machine, script))
    assert len(lines) == 11 and lines[0] == r".git/hooks/\x1b[31m\x0a10: git hook appeared", lines
    assert lines[-1].startswith("and 11 more: journalctl "), lines


def test_paths_outside_the_working_directory_are_whole(machine, project):
    done = run(machine, f"touch {PROJECT}/.git/hooks/pre-push ../../.envrc", cwd=f"{PROJECT}/sub")
    machine.root(["rm", "/home/alice/projects/.envrc"], check=True)
    assert told(done) == [f"{PROJECT}/.git/hooks/pre-push: git hook appeared", f"/home/alice/projects/.envrc: {SHELL} appeared"]


def test_it_is_off_when_the_policy_says_so(machine, project):
    machine.install_policy(PLAYING_POLICY + "projects: {aftermath: false, protect: []}\n")
    said = told(run(machine, "touch .git/hooks/pre-push"))
    machine.install_policy(UNPROTECTED)
    assert said == []


def test_who_is_outside_the_repository_hears_of_it_in_the_next_one_too(machine, project):
    """Everything that was shown counts, not only the repository at hand."""
    machine.run(["git", "init", "-q", "/home/alice/projects/neighbour"], cwd="/", check=True)
    done = run(machine, "git -C ../neighbour config core.pager ./x")
    machine.root(["rm", "-r", "/home/alice/projects/neighbour"], check=True)
    assert told(done) == ["/home/alice/projects/neighbour/.git/config: git setting core.pager appeared"]


def processes(machine):
    return machine.root("pgrep -u alice -x pi; true").stdout.split()


def test_nothing_is_said_and_nothing_stays_when_the_wrapper_is_killed(machine, project):
    script = "touch .git/hooks/pre-push; echo ready; exec sleep 60"
    with session(machine, "sh", script, cwd=project) as process:
        machine.root(["kill", "-9", str(process.inside_pid())], check=True)
        status, _, err = finish(process)
        assert (status, err) == (-signal.SIGKILL, b"")
    until = time.monotonic() + 5
    while processes(machine):
        assert time.monotonic() < until, processes(machine)
        time.sleep(0.02)


def test_a_runner_that_is_killed_keeps_nothing_from_being_told(machine, project):
    with session(machine, "sh", "touch .git/hooks/pre-push; echo ready; exec sleep 60", cwd=project) as process:
        machine.root("pkill -9 -f ^/usr/libexec/pi-agent/pi-agent-runner", check=True)
        status, _, err = finish(process)
    assert status == 71 and b"pi:   .git/hooks/pre-push: git hook appeared\n" in err, err


@pytest.fixture
def large_tree(machine, project):
    """320,000 files beside the repository: more than one look takes."""
    script = "import os\nfor d in range(320):\n os.makedirs(f'large/{d:03}/x')\n for f in range(1000): open(f'large/{d:03}/x/{f}', 'w').close()"
    machine.run(["python3", "-c", script], cwd="/home/alice/projects", check=True, timeout=180)
    yield
    machine.root(["rm", "-rf", "/home/alice/projects/large"], check=True, timeout=180)


def test_a_large_tree_is_not_looked_at_for_ever_and_the_repository_is(machine, large_tree):
    begun = time.monotonic()
    assert run(machine, "true").returncode == 0
    print(f"a session with nothing to do beside 320,000 files: {time.monotonic() - begun:.2f} s")
    done = run(machine, "sleep 3; touch .git/hooks/pre-push tools/tool; chmod +x tools/tool")
    took = time.monotonic() - begun
    assert took < 15, took
    lines = done.stderr.decode().splitlines()
    assert lines[1:3] == ["pi:   .git/hooks/pre-push: git hook appeared", "pi:   tools/tool: program appeared"], lines
    assert "not complete" not in done.stderr.decode(), "the tree was as large before the session"
    done = run(machine, "cp -rl ../large large")
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("pi: the search for files that run code outside the sandbox was not complete") and " large/" in last, done


def test_a_path_that_no_call_takes_is_what_the_notice_says(machine, project):
    deep = "import os\nfor _ in range(25): os.mkdir('d' * 200); os.chdir('d' * 200)"
    (line,) = run(machine, f"python3 -c \"{deep}\"").stderr.decode().splitlines()
    machine.run("rm -r dddd*", cwd=project, check=True)
    assert line.startswith("pi: the search for files that run code outside the sandbox was not complete (a path of more than 4096 bytes cannot be opened); not searched: "), line


def test_a_look_that_was_killed_is_told_as_that(machine, project):
    with session(machine, "sh", "echo ready; read line; exit 5", cwd=PROJECT) as process:
        machine.root(f"kill -KILL $(pgrep --parent {process.inside_pid()} --exact pi)", check=True)
        status, _, err = finish(process)
    assert status == 5, err
    assert err == b"pi: what this session left could not be looked at: the look was killed; look at the project yourself before you run git, an editor or programs there\n", err


def test_an_interrupt_ends_the_look_and_changes_nothing_else(machine, project):
    with session(machine, "sh", "echo ready; touch .git/hooks/commit-msg; read line; exit 5", cwd=PROJECT) as process:
        wrapper = process.inside_pid()
        machine.root(f"kill -STOP $(pgrep --parent {wrapper} --exact pi)", check=True)  # a look that takes its time
        process.stdin.close()
        machine.root("while pgrep -u pi-agent-alice >/dev/null; do sleep 0.02; done", check=True)  # the agent has ended
        time.sleep(0.5)
        assert process.poll() is None
        machine.root(["kill", "-INT", str(wrapper)], check=True)
        assert (process.wait(timeout=10), process.stderr.read()) == (5, b"")  # not a word of a look that did not end


def test_a_look_that_does_not_end_is_not_waited_for(machine, project):
    with session(machine, "sh", "echo ready; read line; exit 5", cwd=PROJECT) as process:
        machine.root(f"kill -STOP $(pgrep --parent {process.inside_pid()} --exact pi)", check=True)
        begun = time.monotonic()
        status, out, err = finish(process)
        assert (status, out) == (5, b"") and 2 < time.monotonic() - begun < 6
        assert err.startswith(b"pi: what this session left could not be looked at"), err


def test_on_a_terminal_it_comes_when_the_screen_is_the_users_again(machine, project):
    with Shell(machine, cwd=project, columns=120) as shell:
        said, status = shell.run("pi sh 'printf \"\\033[?1049hscreen\"; touch .git/hooks/pre-push; exit 3'")
    notice = f"{BEGIN}\r\npi:   .git/hooks/pre-push: git hook appeared\r\n{END}\r\n".encode()
    assert status == 3 and 0 < said.find(b"\x1b[?1049l") < said.find(notice), said


def test_ctrl_c_ends_the_look(machine, project):
    with Shell(machine, cwd=project) as shell:
        shell.enter("pi sh 'echo here; read line; touch .git/hooks/pre-push; exit 5'")
        shell.expect("here\r\n")
        machine.root("kill -STOP $(pgrep -u alice --newest --exact pi)", check=True)
        shell.type("\n")
        time.sleep(0.5)
        begun = time.monotonic()
        shell.type(b"\x03")
        shell.expect(re.escape(PROMPT))
        assert time.monotonic() - begun < 2
        assert shell.run("echo status $?")[0] == b"status 5\r\n"
        assert BEGIN.encode() not in shell.seen

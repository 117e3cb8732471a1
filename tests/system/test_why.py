"""pi-agentctl why agrees with what a session can do, path by path, and names the rule."""

import json

import pytest
from launching import DEMO, STATE
from path_probe import POLICY, facts_inside, paths_for, places


@pytest.fixture(scope="module", params=["systemd", "bwrap"])
def asked(request, playing):
    with places(playing, POLICY + f"sandbox: {{method: {request.param}}}\n") as machine:
        yield machine


def why(machine, paths, *options, user=None, cwd="/"):
    command = ["pi-agentctl", "why", "--json", *options, *paths]
    done = machine.run(command, user=user, cwd=cwd) if user else machine.root(command)
    assert done.returncode == 0, done
    return {answer["path"]: answer for answer in json.loads(done.stdout)["paths"]}


@pytest.mark.parametrize(("user", "project"), [("alice", DEMO), ("carol", "/srv/devs")])
def test_it_agrees_with_a_session(asked, user, project):
    paths = paths_for(asked, f"/home/{user}", project)
    assert len(paths) > 200
    facts = facts_inside(asked, paths, user, project)
    answers = why(asked, paths, "--user", user, "--cwd", project)
    unstable = ("/proc/", "/dev/std", "/dev/fd")  # of processes that come and go, and their own streams
    wrong = {
        path: (facts[path], answers[path])
        for path in paths
        if not path.startswith(unstable) and facts[path][1:] != [answers[path][kind] for kind in ("read", "write", "execute")]
    }
    assert not wrong, wrong
    assert all(answers[path]["rule"] for path in paths)
    assert {path for path in paths if facts[path][2] and answers[path]["key"] == "view_paths"} == set()


def test_whose_roots_would_show_it_is_the_entry_that_counts(asked):
    """An entry of carol's own would take the roots of her group from her."""
    assert why(asked, ["/home/bob"], "--user", "carol", "--cwd", "/srv/devs")["/home/bob"]["key"] == "users.%devs.roots"


OF_PROJECT = "projects.mask, projects.protect or projects.read_only"  # what would take a file of the project from sessions
RULES = {
    f"{DEMO}/new": (False, False, False, "", "project's root"),
    f"{DEMO}/sub/deep/file": (True, True, True, OF_PROJECT, "project's root"),
    f"{DEMO}/other-name": (True, False, False, "projects.mask", "another name (a hard link)"),
    f"{DEMO}/.env": (True, False, False, "projects.mask", "keeps it from agents"),
    f"{DEMO}/.git/config": (True, True, False, "projects.protect", "while a session runs nobody outside can replace it either (\"Device or resource busy\")"),
    f"{DEMO}/closed": (True, False, False, "", "its own mode"),
    "/home/alice/.nvm/file": (True, True, False, "toolchains.readable", "toolchain"),
    f"{STATE}/alice/home/.npm/file": (True, True, True, "toolchains.caches", "cache"),
    "/home/alice/.ssh/id": (False, False, False, "", "credentials"),
    "/home/alice/.ssh": (False, False, False, "", "credentials"),
    "/home/alice/.config": (False, False, False, "", "holds ~/.config/"),
    "/home/alice/.bashrc": (False, False, False, "", "a file in a home itself"),
    "/home/alice/.tools/bin/tool": (False, False, False, "toolchains.readable", "homes are hidden"),
    "/home/alice/other/file": (False, False, False, "users.alice.roots, or of programs toolchains.readable", "homes are hidden"),
    "/home/bob": (False, False, False, "users.alice.roots", "homes are hidden"),
    f"{DEMO}/outward": (True, False, False, "toolchains.readable", "leads to /home/alice/.tools/bin/tool: homes are hidden"),
    "/srv/never/was": (False, False, False, "", "nothing is there on the host"),
    "/home/alice/never": (False, False, False, "", "nothing is there on the host"),
    "/var/lib/dpkg": (True, True, False, "", "the host's"),
    "/etc/shadow": (False, False, False, "view, or view_paths", "minimal view"),
    "/usr/bin/env": (True, True, False, "", "programs"),
    "/srv/tools/file": (True, True, False, "view_paths", "shown besides"),
    "/srv": (True, True, False, "", "no part of the host"),
    "/tmp": (True, True, True, "scratch", "session's own"),
    f"{STATE}/alice/home": (True, True, True, "", "agent's home"),
}


def test_rule_and_key_are_named(asked):
    answers = why(asked, list(RULES), user="alice", cwd=DEMO)
    for path, (exists, read, write, key, word) in RULES.items():
        answer = answers[path]
        assert (answer["exists"], answer["read"], answer["write"], answer["key"]) == (exists, read, write, key) and word in answer["rule"], answer
    assert answers[f"{DEMO}/.env"]["where"].startswith("/etc/pi-agent/policy.yaml:")


def test_in_words(asked):
    done = asked.run(["pi-agentctl", "why", ".env", "/etc/passwd"], user="alice", cwd=DEMO)
    assert done.returncode == 0, done
    assert done.stdout.decode().splitlines()[0] == f"{DEMO}/.env: may not be read, written or executed", done
    assert b"to change: projects.mask" in done.stdout and b"/etc/passwd: may read\n" in done.stdout, done


def test_a_directory_that_is_named_and_not_shown_is_not_called_shown(asked):
    asked.run("mv .nvm .nvm-kept && ln -s .nvm-kept .nvm", cwd="/home/alice", check=True)
    try:
        told = why(asked, ["/home/alice/.nvm/file"], user="alice", cwd=DEMO)["/home/alice/.nvm/file"]
    finally:
        asked.run("rm .nvm && mv .nvm-kept .nvm", cwd="/home/alice", check=True)
    assert (told["exists"], told["key"]) == (False, "toolchains.readable"), told
    assert "~/.nvm is not shown: it is a symlink or not a directory" in told["rule"], told


def test_a_host_is_asked_about_anywhere(asked):
    done = asked.run(["pi-agentctl", "why", "github.com"], user="alice", cwd="/home/alice")
    assert done.returncode == 0 and b"github.com:443: may be reached\n" in done.stdout and b"this directory is in no root" in done.stdout, done
    assert b"no root" not in asked.run(["pi-agentctl", "why", "github.com"], user="alice", cwd=DEMO).stdout
    done = asked.run(["pi-agentctl", "why", "github.com", "./README.md"], user="alice", cwd="/home/alice")
    assert done.returncode == 77 and b"/home/alice" in done.stderr, done


def test_who_may_ask_and_where(asked):
    for command, user, status, word in (
        (["why", "--user", "alice", "--cwd", DEMO, "/etc"], "bob", 77, b"only root can ask for another"),
        (["why", "/etc"], None, 64, b"--user NAME"),
        (["why", "--user", "alice", "/etc"], None, 64, b"--cwd DIRECTORY"),
        (["why", "--user", "alice", "--cwd", "/home/alice", "/etc"], None, 77, b"/home/alice"),
        (["why"], "alice", 64, b"PATH"),
    ):
        done = asked.run(["pi-agentctl", *command], user=user, cwd="/") if user else asked.root(["pi-agentctl", *command])
        assert done.returncode == status and word in done.stderr, done

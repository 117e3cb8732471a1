"""Repositories for attacks on what git executes: made again for each attack, with something that shows when a program ran outside."""

import contextlib

PLACE = "/home/alice/projects/guarded"
RAN = "/home/alice/ran"
PLANT = "/home/alice/plant"
IDENTITY = "-c user.name=A -c user.email=a@example.org -c protocol.file.allow=always"
# A repository with a submodule, a worktree beside it and a program that agent and user can both run, except for the mark that it leaves.
MAKE = f"""
set -e
rm -rf {PLACE} {PLACE}-side {PLACE}-library {RAN}
git init -q -b main {PLACE}-library
git -C {PLACE}-library {IDENTITY} commit -q --allow-empty -m one
git init -q -b main {PLACE}
cd {PLACE}
mkdir src; echo one >src/file; echo '*.tmp' >.gitignore
git add .
git {IDENTITY} commit -qm one
git {IDENTITY} submodule --quiet add {PLACE}-library library
git {IDENTITY} commit -qm library
git worktree add -q ../guarded-side -b side
printf '#!/bin/sh\\ntouch {RAN}\\ncat 2>/dev/null\\n' >program; chmod 755 program
"""
# What the user does outside afterwards: everyday commands that run what was planted.
USE = "git status; git diff; touch src/file; git add -A; git commit -qm x; git stash; git stash pop; git checkout -q -b b$$; git -C library status; git log -1"
USE += f"; git -C library {IDENTITY} commit -q --allow-empty -m x; cd {PLACE}-side && git status && git {IDENTITY} commit -q --allow-empty -m x"
# How a session's script begins that goes on when its user makes the file `go`.
WAIT = "echo $PI_AGENT_SESSION; while ! test -e go; do sleep 0.05; done"


@contextlib.contextmanager
def repository(target, more="true"):
    """The repository, with `more` done to it by its user."""
    target.machine.run(f"{MAKE}\n{more}", cwd="/home/alice", check=True)
    try:
        yield PLACE
    finally:
        target.machine.root(f"rm -rf {PLACE} {PLACE}-side {PLACE}-library {RAN}", check=True)


def something_ran_outside(target, use=USE):
    """Whether everyday work of the user in the repository ran what was planted."""
    target.machine.run(f"export GIT_PAGER=cat; {use}", cwd=PLACE, timeout=60)
    return target.machine.root(["test", "-e", RAN]).returncode == 0


@contextlib.contextmanager
def after_anothers_end(target, script):
    """A session in the repository that runs `script` once another one there has ended and all of it is away."""
    first = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60", cwd=PLACE)
    second = target.session("sh", "-c", f"{WAIT}; {script}; sleep 60", cwd=PLACE)
    first.end()
    target.machine.root(f"for i in $(seq 100); do test -e /run/pi-agent/sessions/{first.id} || break; sleep 0.05; done; sleep 0.2")
    target.machine.run("touch go; sleep 0.5", cwd=PLACE, check=True)
    yield
    second.end()


def planting(script, more="true", use=USE):
    """The attack: the agent runs `script` in the repository, and then the user works there."""
    from target import Outcome

    def attack(target):
        with repository(target, more):
            done = target.pi("sh", "-c", script, cwd=PLACE)
            return Outcome(something_ran_outside(target, use), done)

    return attack

"""A second name of a protected or masked file, made by a session in another repository of the root, or by whoever it was: nothing is written or read by it."""

import pytest
from repositories import PLACE, repository, something_ran_outside
from target import ATTACK_POLICY, Outcome
from test_protect import FILTER, RUN, WORKTREE_ON

pytestmark = pytest.mark.position("agent")

OTHER = "/home/alice/projects/other"
NAME = "/home/alice/projects/zz"  # where `other` is a mount of its own, and names do not cross
MAKE_OTHER = f"rm -rf {OTHER}; git init -q {OTHER}"
FSMONITOR = f"echo '[core] fsmonitor = {RUN}' >>{NAME}"
HOOK = f"cat {PLACE}/program >{NAME}"
MINE = f"cp -r .git copied; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = {RUN}\\n' >copied/config; echo {PLACE}/copied >{NAME}"
A_HOOK = "echo '#!/bin/sh' >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit"
# The file: what its user did before, what the agent writes by the other name.
FILES = {
    ".git/config": ("true", FSMONITOR),
    ".git/hooks/pre-commit": (A_HOOK, HOOK),
    ".git/info/attributes": (f"{FILTER}; mkdir -p .git/info; echo '*.o binary' >.git/info/attributes", f"echo '* filter=lfs' >{NAME}"),
    ".git/config.worktree": (f"{WORKTREE_ON}; echo >.git/config.worktree", FSMONITOR),
    ".git/modules/library/config": ("true", FSMONITOR),
    ".git/worktrees/guarded-side/commondir": ("true", MINE),
    # What a session left of its placeholders, or another one has just now.
    ".git/commondir": ("printf '././.\\n' >.git/commondir", MINE),
    # The copy is made by another call where nobody may list the directory that holds it; git still runs the hook.
    ".git/hooks/pre-push": ("cp .git/hooks/pre-push.sample .git/hooks/pre-push; chmod 755 .git/hooks/pre-push", HOOK),
}
USE = {".git/hooks/pre-push": f"git init -q --bare ../guarded-library/to; git push -q {PLACE}-library/to main"}


@pytest.fixture(autouse=True)
def other(product, weak):
    for target in (product, weak):
        target.machine.run(MAKE_OTHER, cwd="/home/alice", check=True)
    yield
    for target in (product, weak):
        target.end_all()
        target.machine.root(["rm", "-rf", OTHER, NAME, f"{NAME}2"], check=True)


def writing_by_another_name(file, write, use=None):
    """One session in another repository makes the name, the next one in this repository writes by it."""

    def attack(target):
        with repository(target, FILES[file][0]):
            first = target.pi("sh", "-c", f"ln -f {PLACE}/{file} {NAME}", cwd=OTHER, check=True)
            assert target.machine.root(f"test {PLACE}/{file} -ef {NAME}").returncode == 0, first
            second = target.pi("sh", "-c", write, cwd=PLACE)
            ran = something_ran_outside(target, use) if use else something_ran_outside(target)
            return Outcome(ran, (first, second))

    return attack


@pytest.mark.parametrize("file", FILES)
def test_what_git_runs_is_not_written_by_another_name(file, prove):
    on, _ = prove(writing_by_another_name(file, FILES[file][1], USE.get(file)), "protect-single-names", quick=True)
    first, second = on.seen
    assert b"with another name (a hard link) appeared" in first.stderr or "worktrees" in file or file.endswith(".git"), first
    assert f"is protected: {PLACE}/{file}\n".encode() in second.stderr and second.returncode == 0, second


LISTED = {"Makefile": "echo all: >Makefile", "ci/deep/steps": "mkdir -p ci/deep; echo all: >ci/deep/steps"}


@pytest.mark.parametrize("file", LISTED)
def test_what_the_policy_names_is_not_written_by_another_name(file, prove, product, weak):
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text() + "projects: {protect: [Makefile, ci]}\n")

    def attack(target):
        with repository(target, f"{LISTED[file]}; ln -f {file} {NAME}"):
            done = target.pi("sh", "-c", f"echo planted >>{NAME}", cwd=PLACE)
            return Outcome(b"planted" in target.machine.read(f"{PLACE}/{file}"), done)

    try:
        prove(attack, "protect-single-names", quick=True)
    finally:
        for target in (product, weak):
            target.machine.install_policy(ATTACK_POLICY.read_text())


def test_a_directory_that_lets_itself_not_be_listed_hides_no_other_name(prove):
    """git runs a hook in it by its name."""

    def attack(target):
        with repository(target, f"{A_HOOK}; ln -f .git/hooks/pre-commit {NAME}; chmod 311 .git/hooks"):
            done = target.pi("sh", "-c", HOOK, cwd=PLACE)
            ran = something_ran_outside(target)
            target.machine.root(f"chmod 755 {PLACE}/.git/hooks", check=True)
            return Outcome(ran, done)

    on, _ = prove(attack, "protect-unreadable", quick=True)
    assert on.seen.returncode == 78 and b"cannot be listed" in on.seen.stderr and b"give its owner the rights" in on.seen.stderr, on


def test_a_file_of_somebody_else_that_cannot_be_made_single_refuses_the_start(prove):
    def attack(target):
        with repository(target):
            target.machine.root(f"chown bob {PLACE}/.git/config; chmod 666 {PLACE}/.git/config; ln -f {PLACE}/.git/config {NAME}", check=True)
            done = target.pi("sh", "-c", FSMONITOR, cwd=PLACE)
            written = b"fsmonitor" in target.machine.read(f"{PLACE}/.git/config")
            return Outcome(written, done)

    on, _ = prove(attack, "protect-single-names", quick=True)
    assert on.seen.returncode == 78 and f"{PLACE}/.git/config has 2 names".encode() in on.seen.stderr, on
    assert b"belongs to somebody else" in on.seen.stderr, on


def test_a_name_made_while_a_session_lives_keeps_the_next_one_out(prove):
    """What another session protects cannot be replaced: it is a mount point."""

    def attack(target):
        with repository(target):
            session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60", cwd=PLACE)
            target.pi("ln", "-f", f"{PLACE}/.git/config", NAME, cwd=OTHER, check=True)
            done = target.pi("sh", "-c", FSMONITOR, cwd=PLACE)
            session.end()
            written = b"fsmonitor" in target.machine.read(f"{PLACE}/.git/config")
            again = target.pi("sh", "-c", FSMONITOR, cwd=PLACE)
            return Outcome(written, (done, again))

    on, _ = prove(attack, "protect-single-names", quick=True)
    done, again = on.seen
    assert done.returncode == 75 and b"another session protects it just now; end that session" in done.stderr, on
    assert again.returncode == 0, on


def test_a_file_is_made_single_through_no_link_and_keeps_what_it_was(product, control_seen):
    """And who exchanges the names all the time gets nothing written elsewhere."""
    facts = "stat -c '%U:%G %a %Y %s' .git/config; getfattr --absolute-names -d .git/config 2>/dev/null; cat .git/config"
    swap = "import ctypes, os\nl = ctypes.CDLL(None)\nwhile not os.path.exists('stop'): l.renameat2(-100, b'.git/hooks', -100, b'.git/other', 2)"
    with repository(product, f"chmod 640 .git/config; touch -d 2001-02-03 .git/config; ln .git/config {NAME}; {A_HOOK}; ln .git/hooks/pre-commit {NAME}2; ln -s {OTHER} .git/other"):
        before = product.machine.run(facts, cwd=PLACE).stdout
        swapper = product.machine.popen(["python3", "-c", swap], user="alice", cwd=PLACE)
        try:
            for _ in range(5):
                product.pi("true", cwd=PLACE)
            assert swapper.poll() is None
            control_seen("in the end they are still being exchanged")
        finally:
            product.machine.run(["touch", "stop"], cwd=PLACE, check=True)
            swapper.wait(timeout=10)
        product.machine.root(f"cd {PLACE}/.git; test -L hooks && mv other o && mv hooks other && mv o hooks; true")
        product.pi("true", cwd=PLACE, check=True)
        assert product.machine.run(facts, cwd=PLACE).stdout == before
        assert product.machine.root(f"stat -c %h {PLACE}/.git/config {PLACE}/.git/hooks/pre-commit {NAME} {NAME}2").stdout == b"1\n" * 4
        assert product.machine.run(["ls", OTHER]).stdout == b""
        assert product.machine.run("ls .git | grep new-", cwd=PLACE).stdout == b""


SECRET = "mkdir -p keys/deep src; for f in .env keys/deep/key; do echo quokka-masked-7702 >$f; done"
OTHER_NAMES = {"a file": f"ln -f .env {NAME}", "a file in a directory": f"ln -f keys/deep/key {NAME}", "in .git": "ln .env .git/zz"}


@pytest.mark.parametrize("what", OTHER_NAMES)
def test_what_is_masked_is_not_read_by_another_name(what, prove, product, weak):
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text() + "projects: {mask: ['.env*', keys]}\n")

    def attack(target):
        with repository(target, f"{SECRET}; {OTHER_NAMES[what]}"):
            done = target.pi("sh", "-c", f"cat {NAME} .git/zz; true", cwd=PLACE)
            return Outcome(b"quokka-masked-7702" in done.stdout, done)

    try:
        on, _ = prove(attack, "mask-other-names", quick=True)
        assert b"masked too, because it is another name" in on.seen.stderr, on
    finally:
        for target in (product, weak):
            target.machine.install_policy(ATTACK_POLICY.read_text())

"""The user's name and address for commits: bytes that try to be more than that, and files that try to hold up a start."""

import time

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("user")

HOSTILE = "x\n[core]\n\tfsmonitor = touch /tmp/pwned #\n\tpager = touch /tmp/pwned\n[alias]\n\tpwned = !echo pwned\n[user]\n\tname = y"


@pytest.fixture
def gitconfig(product, weak):
    """gitconfig(target, script) makes alice's ~/.gitconfig for one test."""
    before = {target: target.machine.read("/home/alice/.gitconfig") for target in (product, weak)}

    def make(target, script, input=b""):
        target.machine.run(f"rm -rf ~/.gitconfig ~/pipe; {script}", cwd="/home/alice", input=input, check=True)

    yield make
    for target, text in before.items():
        make(target, "true")
        target.machine.write("/home/alice/.gitconfig", text, "alice")


def test_bytes_of_a_name_do_not_become_other_settings(prove, gitconfig):
    def attack(target):
        gitconfig(target, "git config --global user.name \"$(cat)\"", HOSTILE.encode())
        done = target.pi("sh", "-c", "git config core.fsmonitor; git config core.pager; git pwned; git config user.name")
        return Outcome(b"pwned\n" in done.stdout.replace(HOSTILE.encode(), b""), done)

    on, _ = prove(attack, "git-config-quoting")
    assert on.seen.stdout == HOSTILE.encode() + b"\n"


@pytest.mark.parametrize("script", ["mkfifo .gitconfig", "mkfifo pipe; git config --global include.path ~/pipe"])
def test_a_pipe_does_not_hold_up_a_start(script, prove, gitconfig):
    def attack(target):
        gitconfig(target, script)
        begun = time.monotonic()
        done = target.machine.run(["timeout", "-s", "KILL", "12", "pi", "echo", "ran"], cwd="/home/alice/projects/demo")
        target.end_all()
        return Outcome(b"ran" not in done.stdout, (time.monotonic() - begun, done))

    on, _ = prove(attack, "git-deadline", quick=True)
    assert on.seen[0] < 8 and b"within 2 seconds" in on.seen[1].stderr


def test_a_link_to_a_file_that_only_root_reads_gives_nothing_away(product, gitconfig):
    product.machine.root("printf '[user]\\n\\tname = quokka-root-4417\\n' >/root/gitconfig; chmod 600 /root/gitconfig", check=True)
    gitconfig(product, "ln -s /root/gitconfig .gitconfig; ! cat .gitconfig")
    done = product.pi("sh", "-c", "git config user.name; cat /run/pi-agent/gitconfig; true")
    product.machine.root("rm /root/gitconfig", check=True)
    assert done.returncode == 0 and b"quokka-root-4417" not in done.stdout + done.stderr, done


@pytest.mark.position("agent")
def test_settings_of_the_project_run_nothing_outside(product, gitconfig):
    """Whoever wrote the project's .git/config (the agent, under `protect: []`): the next start asks git, as the user, in that project."""
    gitconfig(product, "git config --global user.name n")
    ran = "/home/alice/ran"
    keys = ("core.fsmonitor", "core.pager", "pager.config", "core.editor", "core.sshCommand", "credential.helper", "trace2.eventTarget", "diff.external")
    planted = "; ".join(f"git config {key} 'touch {ran}'" for key in keys)
    product.machine.run(f"cp .git/config .git/kept; {planted}; git config alias.config '!touch {ran}'", cwd=DEMO, check=True)
    done = product.pi("sh", "-c", "git config user.name")
    product.machine.run("mv .git/kept .git/config", cwd=DEMO, check=True)
    assert done.stdout == b"n\n", done
    assert product.machine.root(["ls", ran]).returncode != 0

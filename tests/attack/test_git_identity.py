"""What the user's git says: bytes that try to be more than a value, what starts programs or is secret, and files that try to hold up a start."""

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


# What alice's git has that is for her alone: setting, and what tells it inside.
TOKEN = "quokka-token-5130"
FOR_ALICE = {
    "a token in an address": f"url.https://{TOKEN}@github.com/.insteadOf https://github.com/",
    "a password in an address": f"url.https://alice:{TOKEN}@example.org/.pushInsteadOf https://example.org/",
    "a header": f"http.extraHeader 'Authorization: Bearer {TOKEN}'",
    "a helper of credentials": f"credential.helper '!f() {{ echo password={TOKEN}; }}; f'",
    "an alias with a header": f"alias.cl 'clone -c http.extraHeader={TOKEN}'",
    "the password of a mail server": f"sendemail.smtpPass {TOKEN}",
}


@pytest.mark.position("agent")
@pytest.mark.parametrize("what", FOR_ALICE)
def test_secrets_of_the_users_settings_stay_outside(what, prove, gitconfig):
    def attack(target):
        gitconfig(target, f"git config --global user.name n; git config --global {FOR_ALICE[what]}")
        done = target.pi("sh", "-c", "git config --list; cat /run/pi-agent/gitconfig")
        return Outcome(TOKEN.encode() in done.stdout, done)

    on, _ = prove(attack, "git-settings-list", quick=True)
    assert b"user.name=n" in on.seen.stdout and TOKEN.encode() not in on.seen.stderr


RAN = "/tmp/git-ran-it"
# What the user's settings may name, and a command of git's that starts it.
PROGRAMS = {
    "core.fsmonitor": ("core.fsmonitor 'touch {ran}; false'", "git status"),
    "core.sshCommand": ("core.sshCommand 'touch {ran}; false'", "git ls-remote ssh://git@localhost/x"),
    "core.editor": ("core.editor 'touch {ran}; true'", "git commit --allow-empty"),
    "sequence.editor": ("sequence.editor 'touch {ran}; true'", "git stash -q; git rebase -i --root"),
    "core.hooksPath": ("core.hooksPath /tmp/hooks", "mkdir -p /tmp/hooks; printf '#!/bin/sh\ntouch {ran}\n' >/tmp/hooks/post-index-change; chmod +x /tmp/hooks/*; git add -f file"),
    "diff.external": ("diff.external 'touch {ran}; true'", "git diff"),
    "diff.NAME.textconv": ("diff.x.textconv 'touch {ran}; cat'", "git diff"),
    "diff.NAME.command": ("diff.x.command 'touch {ran}; true'", "git diff"),
    "merge.NAME.driver": ("merge.x.driver 'touch {ran}; true'", "git merge other"),
    "filter.NAME.clean": ("filter.x.clean 'touch {ran}; cat'", "git add file"),
    "filter.NAME.process": ("filter.x.process 'touch {ran}; false'", "git add file"),
    "credential.helper": ("credential.helper '!touch {ran} #'", "printf 'url=https://example.org/\n\n' | GIT_TERMINAL_PROMPT=0 git credential fill"),
    "gpg.program": ("gpg.program /tmp/gpg", "printf '#!/bin/sh\ntouch {ran}\n' >/tmp/gpg; chmod +x /tmp/gpg; git commit -S --allow-empty -m x"),
    "url with ext::": ("url.ext::.insteadOf run-", "GIT_ALLOW_PROTOCOL=ext git ls-remote 'run-touch {ran}'"),
    "an alias with !": ("alias.go '!touch {ran}'", "git go"),
    "an alias with an option": ("alias.go \"-c alias.on='!touch {ran}' on\"", "git go"),
    "submodule.NAME.update": ("submodule.s.update '!touch {ran} #'", "git config submodule.s.update >{ran}.1 && mv {ran}.1 {ran}"),
    "interactive.diffFilter": ("interactive.diffFilter 'touch {ran}; cat'", "echo q | TERM=xterm script -qec 'git add -p' /dev/null"),
}
PLACE = """
rm -rf /home/alice/projects/programs; mkdir /home/alice/projects/programs; cd /home/alice/projects/programs; git init -q -b main
echo '* diff=x merge=x filter=x' >.gitattributes; seq 9 >file; git add .; git commit -qm one
git checkout -qb other; sed -i 1s/^/o/ file; git commit -qam o; git checkout -q main; sed -i 1s/^/m/ file; git commit -qam m; echo x >>file
"""


@pytest.mark.parametrize("what", PROGRAMS)
def test_programs_of_the_users_settings_do_not_start(what, prove, gitconfig):
    """They are for the user's own hands, and what they name may be in the session another program, or the agent's."""
    setting, command = (text.format(ran=RAN) for text in PROGRAMS[what])

    def attack(target):
        gitconfig(target, "git config --global user.name n; git config --global user.email a@b")
        target.machine.run(PLACE, cwd="/home/alice", check=True)
        target.machine.run(f"git config --global {setting}", cwd="/home/alice", check=True)
        merging = "git checkout -q -- file; " if "merge" in command else ""
        done = target.pi("sh", "-c", f"{merging}({command}) </dev/null >/dev/null; test -e {RAN} && echo it ran", cwd="/home/alice/projects/programs")
        target.machine.root("rm -rf /home/alice/projects/programs", check=True)
        return Outcome(b"it ran" in done.stdout, done)

    prove(attack, "git-settings-list", quick=True)


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


def test_a_link_to_a_file_that_only_root_reads_gives_nothing_away(prove, gitconfig):
    def attack(target):
        target.machine.root("chmod 711 /root; printf '[user]\\n\\tname = quokka-root-4417\\n' >/root/gitconfig; chmod 600 /root/gitconfig", check=True)
        gitconfig(target, "ln -s /root/gitconfig .gitconfig; ! cat .gitconfig")
        done = target.pi("sh", "-c", "git config user.name; cat /run/pi-agent/gitconfig; true")
        # A start without `become-user` has made root's directories in the agent's home.
        target.machine.root("rm -rf /root/gitconfig /var/lib/pi-agent/users/alice; chmod 700 /root", check=True)
        return Outcome(b"quokka-root-4417" in done.stdout + done.stderr, done)

    on, _ = prove(attack, "become-user", quick=True)
    assert on.seen.returncode == 0, on


@pytest.mark.position("agent")
def test_settings_of_the_project_run_nothing_outside(product, gitconfig, control_seen):
    """Whoever wrote the project's .git/config (the agent, under `protect: []`): the next start asks git, as the user, in that project."""
    gitconfig(product, "git config --global user.name n")
    ran = "/home/alice/ran"
    keys = ("core.fsmonitor", "core.pager", "pager.config", "core.editor", "core.sshCommand", "credential.helper", "trace2.eventTarget", "diff.external")
    planted = "; ".join(f"git config {key} 'touch {ran} #'" for key in keys)
    product.machine.run(f"cp .git/config .git/kept; {planted}; git config alias.config '!touch {ran}'", cwd=DEMO, check=True)
    done = product.pi("sh", "-c", "git config user.name")
    it_ran = product.machine.root(["test", "-e", ran]).returncode == 0
    product.machine.run("git status", cwd=DEMO)
    runs = product.machine.root(["rm", ran]).returncode == 0
    product.machine.run("mv .git/kept .git/config", cwd=DEMO, check=True)
    assert done.stdout == b"n\n" and not it_ran, done
    assert runs, "what was planted does not run, so this shows nothing"
    control_seen("the user's own `git status` runs what was planted")

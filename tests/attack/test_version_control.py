"""Other version control than git: what the agent plants where it takes programs from does not run when the user works there later."""

import pytest
from repositories import PLACE, RAN
from target import Outcome

pytestmark = pytest.mark.position("agent")

HOOK = f"[hooks]\\nprecommit = {PLACE}/program\\npre-status = {PLACE}/program\\n"
PARENT = PLACE.rpartition("/")[0]
MAKE = f"""
set -e
rm -rf {PLACE} {PLACE}-main {RAN}
hg init {PLACE}-main; cd {PLACE}-main; echo one >file; hg commit -q -u alice -Am one
cd ..; hg --config extensions.share= share -q {PLACE}-main {PLACE}
cd {PLACE}
printf '#!/bin/sh\\ntouch {RAN}\\n' >program; chmod 755 program
"""
OWN = f"cd ..; rm -r {PLACE}; mv {PLACE}-main {PLACE}; cd {PLACE}; printf '#!/bin/sh\\ntouch {RAN}\\n' >program; chmod 755 program"
USE = "hg status; echo two >>file; hg commit -u alice -m two"
# What the agent does, and what the user did before, to a repository that shares the history of another one.
HG = {
    "a hook where there are no settings": (f"printf '{HOOK}' >.hg/hgrc", OWN),
    "a hook in the settings": (f"printf '{HOOK}' >>.hg/hgrc", f"{OWN}; printf '[ui]\\nverbose = no\\n' >.hg/hgrc"),
    "other settings in their place": (f"printf '{HOOK}' >evil; mv -f evil .hg/hgrc", f"{OWN}; printf '[ui]\\nverbose = no\\n' >.hg/hgrc"),
    "a second name of the settings": (f"printf '{HOOK}' >>other", f"{OWN}; echo >.hg/hgrc; ln .hg/hgrc other"),
    "another directory in the place of .hg": (f"mv .hg aside; cp -r aside .hg; rm -f .hg/hgrc; printf '{HOOK}' >.hg/hgrc", OWN),
    "settings that are not shared": (f"printf '{HOOK}' >.hg/hgrc-not-shared", "true"),
    "the place of another repository": (
        f"cp -r {PLACE}-main copied; rm -f copied/.hg/hgrc; printf '{HOOK}' >copied/.hg/hgrc; printf %s {PLACE}/copied/.hg >.hg/sharedpath", "true"),
    "a repository that begins to share": (
        f"cp -r . ../copied; rm -f ../copied/.hg/hgrc; printf '{HOOK}' >../copied/.hg/hgrc; printf %s {PLACE}/../copied/.hg >.hg/sharedpath; echo shared >>.hg/requires",
        OWN),
}  # fmt: skip


@pytest.fixture(scope="module")
def mercurial(product, weak):
    with product.machine.mercurial():
        if weak.machine is product.machine:
            yield
        else:
            with weak.machine.mercurial():
                yield


@pytest.mark.parametrize("what", HG)
def test_no_hook_of_mercurial_is_planted(what, prove, mercurial):
    script, before = HG[what]

    def attack(target):
        target.machine.run(f"{MAKE}\n{before}", cwd="/home/alice", check=True)
        try:
            done = target.pi("sh", "-c", script, cwd=PLACE)
            target.machine.run(USE, cwd=PLACE, timeout=60)
            return Outcome(target.machine.root(["test", "-e", RAN]).returncode == 0, done)
        finally:
            target.machine.root(f"rm -rf {PLACE} {PLACE}-main {PARENT}/copied {RAN}", check=True)

    prove(attack, "protect", "protect-prefixes", "protect-missing", "protect-version-control", quick=True)


# Files by which Jujutsu and Breezy take programs, in directories as these make them; neither is in a machine.
OTHERS = {
    "Jujutsu's settings": (".jj/repo/config.toml", "mkdir -p .jj/repo/store; echo git >.jj/repo/store/type"),
    "a workspace's settings": (".jj/workspace-config.toml", "mkdir -p .jj/repo/store"),
    "the git directory that Jujutsu works with": (".jj/repo/store/git_target", "mkdir -p .jj/repo/store; echo ../../../.git >.jj/repo/store/git_target"),
    "git's settings in Jujutsu's repository": (".jj/repo/store/git/config", "mkdir -p .jj/repo/store; git init -q --bare .jj/repo/store/git"),
    "the common directory of Jujutsu's repository": (".jj/repo/store/git/commondir", "mkdir -p .jj/repo/store; git init -q --bare .jj/repo/store/git"),
    "a hook in Jujutsu's repository": (".jj/repo/store/git/hooks/pre-push", "mkdir -p .jj/repo/store; git init -q --bare .jj/repo/store/git"),
    "a workspace's place of its repository": (".jj/repo", "mkdir .jj; echo ../../main/.jj/repo >.jj/repo"),
    "a branch's settings": (".bzr/branch/branch.conf", "mkdir -p .bzr/branch"),
    "the kind of a branch": (".bzr/branch/format", "mkdir -p .bzr/branch; echo 'Bazaar Branch Format 7' >.bzr/branch/format"),
    "a checkout's place of its branch": (".bzr/branch/location", "mkdir -p .bzr/branch; echo file:///x >.bzr/branch/location"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_others_take_programs_from_is_not_changed(what, prove):
    path, before = OTHERS[what]

    def attack(target):
        target.machine.run(f"rm -rf {PLACE}; mkdir {PLACE}; cd {PLACE}; {before}", cwd="/home/alice", check=True)
        try:
            done = target.pi("sh", "-c", f"echo planted >>{path} || (echo planted >evil; mv -f evil {path})", cwd=PLACE)
            return Outcome(target.machine.root(["grep", "-q", "planted", f"{PLACE}/{path}"]).returncode == 0, done)
        finally:
            target.machine.root(["rm", "-rf", PLACE], check=True)

    prove(attack, "protect", "protect-missing", "protect-version-control", quick=True)

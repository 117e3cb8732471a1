"""`projects.protect`: what the agent plants where git runs things from does not run when the user works in the repository later."""

import pytest
from repositories import PLACE, WAIT, after_anothers_end, planting, repository, something_ran_outside
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("agent")

RUN = f"{PLACE}/program"
EVIL = f"[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = {RUN}\\n\\thooksPath = {PLACE}/planted\\n"
HOOK = f"mkdir -p planted; for h in pre-commit post-checkout post-commit; do cp program planted/$h; done"
REPLACE_CONFIG = f"printf '{EVIL}' >evil; mv -f evil"
HERE = "sed -i s,../../../library,../../library, .git/copy/config"
WORKTREE_ON = "git config extensions.worktreeConfig true"
FILTER = f"git config filter.lfs.clean {RUN}"

# Written in place, or a new file in the old one's place.
IN_PLACE = {
    "a hook": "cp program .git/hooks/pre-commit",
    "a hook by a hard link": "ln program .git/hooks/post-checkout",
    "core.fsmonitor": f"git config core.fsmonitor {RUN}; echo '[core] fsmonitor = {RUN}' >>.git/config",
    "core.hooksPath": f"{HOOK}; echo '[core] hooksPath = {PLACE}/planted' >>.git/config",
    "a filter": f"echo '* filter=x' >.gitattributes; printf '[filter \"x\"]\\n\\tclean = {RUN}\\n' >>.git/config",
    "another config in its place": f"{REPLACE_CONFIG} .git/config",
    "a link in the config's place": f"printf '{EVIL}' >evil; ln -sf ../evil .git/config",
    "a hard link in the config's place": f"printf '{EVIL}' >evil; ln -f evil .git/config",
    "a link in the place of the hooks": f"{HOOK}; rm -rf .git/hooks; ln -s ../planted .git/hooks",
    "a submodule's config": f"echo '[core] fsmonitor = {RUN}' >>.git/modules/library/config",
    "a submodule's hook": "cp program .git/modules/library/hooks/pre-commit",
    "a submodule's .git file": f"cp -r .git/modules/library .git/copy; echo '[core] fsmonitor = {RUN}' >>.git/copy/config; {HERE}; echo 'gitdir: ../.git/copy' >library/.git",
    "a worktree's commondir": f"cp -r .git copied; printf '{EVIL}' >copied/config; echo {PLACE}/copied >.git/worktrees/guarded-side/commondir",
    "by /proc/self/root": f"echo '[core] fsmonitor = {RUN}' >>/proc/self/root{PLACE}/.git/config",
    "by /proc/self/cwd": f"echo '[core] fsmonitor = {RUN}' >>/proc/self/cwd/.git/config",
    "with other modes": f"chmod u+w .git/config .git; rm -f .git/config; printf '{EVIL}' >.git/config",
}
MISSING = {
    "commondir": (f"cp -r .git copied; printf '{EVIL}' >copied/config; rm -f .git/commondir; echo {PLACE}/copied >.git/commondir", "true"),
    "commondir of a submodule": (
        f"cp -r .git/modules/library copied; echo '[core] fsmonitor = {RUN}' >>copied/config; rm -f .git/modules/library/commondir; echo {PLACE}/copied >.git/modules/library/commondir",
        "true",
    ),
    "config.worktree": (f"printf '{EVIL}' >.git/config.worktree", WORKTREE_ON),
    "config.worktree of a worktree": (f"printf '{EVIL}' >.git/worktrees/guarded-side/config.worktree", WORKTREE_ON),
    "hooks": ("mkdir -p .git/hooks; cp program .git/hooks/pre-commit", "rm -rf .git/hooks"),
    "attributes": ("mkdir -p .git/info; echo '* filter=lfs' >.git/info/attributes", FILTER),
    "attributes without their directory": ("mkdir -p .git/info; echo '* filter=lfs' >.git/info/attributes", f"{FILTER}; rm -rf .git/info"),
}
# What is above: renamed away, and another put there.
SHED = {
    ".git": f"mv .git aside && cp -r aside .git && rm -f .git/config && printf '{EVIL}' >.git/config",
    "the repository": f"cd .. && mv guarded aside && cp -r aside guarded && rm -f guarded/.git/config && printf '{EVIL}' >guarded/.git/config",
    ".git exchanged": f"cp -r .git other; rm -f other/config; printf '{EVIL}' >other/config; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\".git\", -100, b\"other\", 2)'",
    ".git/modules": f"cd .git && mv modules aside && cp -r aside modules && rm -f modules/library/config && (cat aside/library/config; echo '[core] fsmonitor = {RUN}') >modules/library/config",
    ".git/modules/library": f"cd .git/modules && mv library aside && cp -r aside library && rm -f library/config && (cat aside/config; echo '[core] fsmonitor = {RUN}') >library/config",
    ".git/worktrees": f"cp -r .git copied; printf '{EVIL}' >copied/config; cd .git && mv worktrees aside && cp -r aside worktrees && rm -f worktrees/*/commondir && echo {PLACE}/copied >worktrees/guarded-side/commondir",
    "a submodule": f"cp -r .git/modules/library .git/copy; echo '[core] fsmonitor = {RUN}' >>.git/copy/config; {HERE}; mv library aside && mkdir library && echo 'gitdir: ../.git/copy' >library/.git",
}
AWAY = f"rm -rf /home/alice/projects/aside {PLACE}/aside"


@pytest.mark.parametrize("what", IN_PLACE)
def test_what_git_runs_is_not_changed_in_place(what, prove):
    prove(planting(IN_PLACE[what]), "protect", "protect-prefixes", "protect-missing", quick=True)


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_not_made(what, prove):
    script, before = MISSING[what]
    prove(planting(script, before), "protect-missing", quick=True)


@pytest.mark.parametrize("what", SHED)
def test_nothing_above_is_renamed_away(what, prove):
    def attack(target):
        try:
            return planting(SHED[what])(target)
        finally:
            target.machine.root(AWAY, check=True)

    prove(attack, "protect-prefixes", quick=True)


@pytest.mark.position("tests")
def test_the_build_with_seams_protects_as_the_product_does(prove):
    prove(planting(IN_PLACE["core.fsmonitor"]), "protect", "protect-prefixes")


LINKED = {
    "hooks lead into the tree": ("rm -rf .git/hooks; mkdir tools; ln -s ../tools .git/hooks", "cp program tools/pre-commit"),
    "config leads into the tree": ("mkdir dot; mv .git/config dot/config; ln -s ../dot/config .git/config", f"echo '[core] fsmonitor = {RUN}' >>dot/config"),
    "the link itself": (
        "rm -rf .git/hooks; mkdir tools; ln -s ../tools .git/hooks",
        "mkdir mine; cp program mine/pre-commit; ln -sfn ../mine .git/hooks || (rm .git/hooks; ln -s ../mine .git/hooks)",
    ),
    ".git is a link": ("mv .git real; ln -s real .git; git config core.worktree $PWD", f"echo '[core] fsmonitor = {RUN}' >>real/config"),
    ".git is another link": (
        "mv .git real; ln -s real .git",
        f"cp -r real mine; rm -f mine/config; printf '{EVIL}' >mine/config; rm .git && ln -s mine .git",
    ),
}


@pytest.mark.parametrize("what", LINKED)
def test_links_and_what_they_lead_to_are_protected(what, prove):
    before, script = LINKED[what]
    prove(planting(script, before), "protect", "protect-prefixes", quick=True)


def test_a_git_directory_that_is_shown_by_itself_is_protected(prove, product, weak):
    """Of a worktree under `scope: project`: its own place is another than the project's."""
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text() + "projects: {scope: project}\n")
    script = f"echo '[core] fsmonitor = {RUN}' >>{PLACE}/.git/config; rm -f {PLACE}/.git/commondir; mv {PLACE}/.git {PLACE}/g"

    def attack(target):
        with repository(target):
            done = target.pi("sh", "-c", script, cwd=f"{PLACE}-side")
            return Outcome(something_ran_outside(target), done)

    try:
        prove(attack, "protect", quick=True)
    finally:
        for target in (product, weak):
            target.machine.install_policy(ATTACK_POLICY.read_text())


def test_a_link_out_of_the_project_makes_root_open_nothing_there(product):
    with repository(product, "rm -rf .git/hooks; ln -s /etc .git/hooks; rm .git/info/exclude; ln -s /root .git/info/attributes"):
        done = product.pi("sh", "-c", "ls -d .git/hooks; touch .git/hooks/x; echo x >.git/info/attributes; rm -f .git/hooks .git/info/attributes; true", cwd=PLACE)
        links = product.machine.root(["readlink", f"{PLACE}/.git/hooks", f"{PLACE}/.git/info/attributes"]).stdout
    assert done.returncode == 0 and links == b"/etc\n/root\n", (done, links)
    assert product.machine.root("test -e /etc/x").returncode != 0


@pytest.mark.parametrize("script", ["umount .git/config; umount -l .git", "mount -t tmpfs none .git/hooks", "unshare -rm umount .git/config", "mount --bind . ../other"])
def test_the_mounts_cannot_be_taken_away(script, prove):
    prove(planting(f"({script}); echo '[core] fsmonitor = {RUN}' >>.git/config"), "protect", "protect-prefixes", quick=True)


@pytest.mark.position("user")
def test_the_user_cannot_take_the_protection_away_by_accident(prove):
    """git outside replaces .git/config by renaming: during a session that fails, instead of uncovering it inside."""

    def attack(target):
        with repository(target):
            session = target.session("sh", "-c", f"{WAIT}; echo '[core] fsmonitor = {RUN}' >>.git/config; sleep 60", cwd=PLACE)
            outside = target.machine.run("git config a.b c; rm -f .git/commondir; mv .git/hooks .git/h; mv .git g; git status --porcelain", cwd=PLACE)
            target.machine.root(f"cd {PLACE}; mv g .git; touch go; sleep 0.3", check=True)  # back, where it could be renamed
            config = target.machine.read(f"{PLACE}/.git/config")
            session.end()
            after = target.machine.run("git config a.b c && git config a.b", cwd=PLACE)
        return Outcome(b"fsmonitor" in config, (outside, after))

    on, _ = prove(attack, "protect", "protect-prefixes", "protect-missing", quick=True)
    outside, after = on.seen
    assert b"Device or resource busy" in outside.stderr and outside.returncode == 0, outside
    assert after.stdout == b"c\n", after


def test_one_session_does_not_take_away_what_protects_another(prove, product, weak):
    """They share what stands for missing paths: the end of the first must leave it to the second."""

    def attack(target):
        script = f"cp -r .git copied; printf '{EVIL}' >copied/config; rm -f .git/commondir; echo {PLACE}/copied >.git/commondir"
        with repository(target), after_anothers_end(target, script):
            text = target.machine.run(["cat", ".git/commondir"], cwd=PLACE).stdout
        return Outcome(b"copied" in text, text)

    prove(attack, "protect-missing", quick=True)


def test_a_repository_that_never_stops_changing_is_refused_or_protected(product, control_seen):
    """Somebody exchanges what leads to the protected paths as fast as they can."""
    swap = f"import ctypes, os\nl = ctypes.CDLL(None)\nos.chdir('{PLACE}')\nwhile not os.path.exists('{PLACE}-stop'): l.renameat2(-100, b'.git/hooks', -100, b'.git/other', 2)"
    with repository(product, "mkdir .git/other"):
        swapper = product.machine.popen(["python3", "-c", swap], user="alice", cwd="/home/alice")
        try:
            for _ in range(5):
                done = product.pi("sh", "-c", "touch .git/hooks/x && echo got-in", cwd=PLACE)
                assert b"got-in" not in done.stdout, done
                assert done.returncode != 0
            swapped = product.machine.run("for i in $(seq 100); do stat -c %i .git/hooks; done | sort -u | wc -l", cwd=PLACE, check=True).stdout
            assert swapped == b"2\n", swapped
            control_seen("in the end they are still being exchanged")
        finally:
            product.machine.run(["touch", f"{PLACE}-stop"], cwd="/home/alice", check=True)
            swapper.wait(timeout=10)
            product.machine.root(["rm", f"{PLACE}-stop"], check=True)


def test_nothing_stays_in_the_project_of_what_stood_for_missing_paths(prove):
    """Other sandboxes leave empty files where they protect missing paths."""

    def attack(target):
        with repository(target):
            looked = f"cd {PLACE}; for i in $(seq 50); do test -e .git/commondir || exit 1; sleep 0.1; done"
            inside = target.pi("test", "-e", ".git/commondir", cwd=PLACE)
            return Outcome(inside.returncode != 0 or target.machine.root(looked).returncode == 0, inside)

    prove(attack, "remove-placeholders")

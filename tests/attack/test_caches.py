"""Attacks by way of what a session sees of its user's home: the caches below overlays, the toolchains, and what must never be among them."""

import contextlib

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("agent")

HOME = "/home/alice"
AGENTS_HOME = "/var/lib/pi-agent/users/alice/home"
SCRATCH = "/var/lib/pi-agent/sessions"
TRAP = "/srv/cache-trap"
SECRET = "wombat-cache-7719"
VIEW = ("unit:RootDirectory", "unit:BindReadOnlyPaths", "unit:ProtectSystem", "unit:PrivateTmp")
# What holds credentials by these names, and programs or downloads beside them.
MASKED = {
    ".cache/huggingface": ("token", "stored_tokens"),
    ".dotnet": ("corefx/my/key.pfx",),
    ".opam": ("plugins/opam-publish/user.token",),
    "miniforge3": (".condarc", "condarc.d/more.yml"),
}
OWN = (".npm", ".nvm", ".gradle", ".m2", ".ssh", "projects/cache", *MASKED)


@pytest.fixture(autouse=True)
def furnished(product, weak):
    """On both machines a cache, a toolchain and credentials of alice's."""
    script = f"""mkdir -p .npm/deep .nvm .gradle/caches .gradle/init.d .m2/repository .ssh projects/cache
    for file in .npm/deep/file .nvm/file .gradle/caches/file .m2/repository/file projects/cache/file; do echo whole >$file; done
    for file in .gradle/gradle.properties .gradle/init.d/x.gradle .m2/settings.xml .ssh/id; do echo {SECRET} >$file; chmod 600 $file; done"""
    script += "".join(f"\nmkdir -p $(dirname {place}/{name}); echo {SECRET} >{place}/{name}" for place, names in MASKED.items() for name in names)
    for target in (product, weak):
        target.machine.run(["sh", "-ec", script], cwd=HOME, check=True)
    yield
    for target in (product, weak):
        target.end_all()
        target.machine.root(f"cd {HOME} && rm -rf {' '.join(OWN)}; cd {AGENTS_HOME} && rm -rf .npm .nvm .gradle .m2 .ssh projects {' '.join(MASKED)}", check=True)


@contextlib.contextmanager
def mounted(target, *mount, at):
    target.machine.root(["mount", *mount, at], check=True)
    try:
        yield
    finally:
        target.machine.root(["umount", at], check=True)


WRITES = {
    "writing to a file": "echo poison >>deep/file",
    "replacing a file": "echo poison >new; mv -f new deep/file",
    "adding a file": "echo poison >deep/more",
    "removing all": "rm -rf deep",
    "renaming the directory above": "mv deep shallow",
    "a link to what is there": "ln deep/file deep/more",
    "rights": "chmod 777 deep deep/file",
}


@pytest.mark.parametrize("write", WRITES)
def test_a_session_poisons_no_cache_of_its_users(write, prove):
    def attack(target):
        look = ["sh", "-ec", "cd .npm; find . -printf '%p %m\\n' | sort; find . -type f -exec cat {} +"]
        before = target.machine.run(look, cwd=HOME, check=True).stdout
        done = target.pi("sh", "-ec", f"cd ~/.npm; {WRITES[write]}", check=True)
        after = target.machine.run(look, cwd=HOME, check=True).stdout
        target.machine.run(["sh", "-ec", "rm -rf .npm/*; mkdir .npm/deep; echo whole >.npm/deep/file"], cwd=HOME, check=True)
        return Outcome(before != after, (after, done))

    prove(attack, "cache-overlay")


@pytest.mark.parametrize("place", ["~/.nvm", f"{HOME}/.nvm"], ids=["where tools look", "its own path"])
def test_a_session_changes_no_toolchain(place, prove):
    defences = ("read-only-clones",) if place[0] == "~" else ("read-only-clones", "unit:ProtectSystem")

    def attack(target):
        done = target.pi("sh", "-c", f"echo poison >{place}/file")
        now = target.machine.run(["cat", ".nvm/file"], cwd=HOME, check=True).stdout
        return Outcome(now == b"poison\n", done)

    prove(attack, *defences)


BINDS = {
    "what holds credentials": (".gradle", ".gradle/caches"),
    "credentials themselves": (".gradle/init.d", ".gradle/caches"),
    "keys": (".ssh", ".npm"),
    "settings beside it": (".m2", ".m2/repository"),
    "the home": ("", ".npm"),
    "an environment with keys in it": (".dotnet", ".npm"),
    "keys in the place of an environment": (".ssh", ".dotnet"),
}


@pytest.mark.parametrize("bind", BINDS)
def test_a_mount_in_the_place_of_a_cache_shows_no_credentials(bind, prove):
    source, place = BINDS[bind]

    def attack(target):
        with mounted(target, "--bind", f"{HOME}/{source}", at=f"{HOME}/{place}"):
            done = target.pi("sh", "-c", f"grep -r {SECRET} ~/{place}")
        return Outcome(SECRET.encode() in done.stdout, done)

    prove(attack, "hidden-inodes")


UNMASKING = {
    "looking": "true",
    "making it anew": "touch $name; rm $name",
    "removing it": "rm -rf $name; rmdir $name",
    "moving what holds it": "mv $PWD $PWD.moved && cd $PWD.moved",
    "linking it": "ln $name other; ln -s $name more; cat more",
}


@pytest.mark.parametrize("place", MASKED)
@pytest.mark.parametrize("way", UNMASKING)
def test_credentials_beside_programs_are_in_no_environment_and_no_cache(way, place, prove):
    """Where tools look, and at its own path."""

    def attack(target):
        tops = " ".join(sorted({name.split("/")[0] for name in MASKED[place]}))
        each = f"grep -rs {SECRET} .; for name in {tops}; do {UNMASKING[way]}; done; grep -rs {SECRET} ."
        done = target.pi("sh", "-c", f"(cd ~/{place} && {each}); cd {HOME}/{place} && {each}")
        return Outcome(SECRET.encode() in done.stdout, done)

    prove(attack, "masked-names")


def test_a_token_that_the_user_is_given_during_a_session_is_not_in_it(prove):
    def attack(target):
        place = f"{HOME}/.cache/huggingface"
        target.machine.run(["rm", "-f", f"{place}/token", f"{place}/stored_tokens"], cwd=HOME, check=True)
        target.session("sh", "-c", f"echo $PI_AGENT_SESSION; until [ -e go ]; do sleep 0.05; done; grep -rs {SECRET} ~/.cache/huggingface >said; mv said found; sleep 60")
        look = f"echo {SECRET} >{place}/token; touch go; until [ -e found ]; do sleep 0.05; done; cat found; rm go found"
        found = target.machine.run(["sh", "-ec", look], cwd=DEMO, check=True).stdout
        target.end_all()
        return Outcome(SECRET.encode() in found, found)

    prove(attack, "masked-names")


def test_what_another_mount_hides_in_a_cache_is_not_uncovered(prove):
    def attack(target):
        target.machine.root(f"echo {SECRET} >{HOME}/.npm/deep/hidden; chown alice: {HOME}/.npm/deep/hidden", check=True)
        with mounted(target, "-t", "tmpfs", "tmpfs", at=f"{HOME}/.npm/deep"):
            done = target.pi("sh", "-c", "cat ~/.npm/deep/hidden")
        return Outcome(SECRET.encode() in done.stdout, done)

    prove(attack, "cover-submounts")


def test_a_cache_that_a_session_exchanged_for_a_link_shows_the_next_one_nothing(prove):
    """A cache in a project, where an agent can write."""

    def attack(target):
        with target.policy_with("toolchains: {caches: [~/projects/cache]}"):
            target.pi("sh", "-ec", f"cd {HOME}/projects; rm -rf cache; ln -s ../.ssh cache", check=True)
            done = target.pi("sh", "-c", "cat ~/projects/cache/id")
        target.machine.run(["sh", "-ec", "rm -rf cache; mkdir cache"], cwd=f"{HOME}/projects", check=True)
        return Outcome(SECRET.encode() in done.stdout, done)

    prove(attack, "beneath", "hidden-inodes", "same-place")


@pytest.mark.parametrize("place", [".npm", ".nvm"])
def test_a_link_in_the_place_of_a_mount_point_puts_nothing_onto_the_host(place, product, control_seen):
    """The mount points are in the agent's home. They are mounted over in the session's own mount table, so that not even root that followed
    the symlink could mount elsewhere: there is no defence to take out to show that."""
    machine = product.machine
    machine.root(["mkdir", "-p", TRAP], check=True)
    # What the agent does in a session of a user who has no such directory.
    machine.root(f"cd {AGENTS_HOME}; rm -rf {place}; ln -s {TRAP} {place}; chown -h --reference=. {place}", check=True)
    session = product.session("sh", "-c", f"echo $PI_AGENT_SESSION $(ls ~/{place}); sleep 60")
    look = f"grep -e {TRAP} -e /home/{place} -e pi-agent-cache /proc/{{}}/mountinfo; true"
    mounted = machine.root(look.format("self"), check=True).stdout
    inside = machine.root(look.format(session.exec_pid()), check=True).stdout
    session.end()
    machine.root(f"rmdir {TRAP}", check=True)
    assert (session.words, mounted) == ([{".npm": "deep", ".nvm": "file"}[place]], b"")
    assert f"/home/{place} ".encode() in inside, inside
    control_seen("the same look finds the mount in the session's own table")


def test_a_neighbour_does_not_reach_what_a_session_changes(prove):
    def attack(target):
        victim = target.session("sh", "-c", f"echo {SECRET} >~/.npm/changed; echo $PI_AGENT_SESSION; sleep 60")
        done = target.pi("sh", "-c", f"cd {SCRATCH}/{victim.id}; for n in $(seq 0 20); do cat cache$n/changed; done; cat ~/.npm/changed", cwd=DEMO)
        target.end_all()
        return Outcome(SECRET.encode() in done.stdout, done)

    prove(attack, *VIEW, "closed-scratch")


def test_a_users_program_does_not_become_the_agents_in_a_cache(prove):
    """An overlay copies a file's mode up and then its owner, which inside is the agent: setuid for the agent's account (as CVE-2023-0386)."""

    def attack(target):
        target.machine.run(["sh", "-ec", "cp /usr/bin/id .npm/evil; chmod 4755 .npm/evil"], cwd=HOME, check=True)
        session = target.session("sh", "-ec", "cd ~/.npm; mv evil e; chmod 755 .; echo $PI_AGENT_SESSION; sleep 60")
        done = target.machine.run(["sh", "-c", f"for n in $(seq 0 20); do {SCRATCH}/{session.id}/cache$n/e -un; done"], cwd=HOME)
        target.end_all()
        return Outcome(b"pi-agent" in done.stdout, done)

    prove(attack, "closed-scratch")


def test_what_an_overlay_does_is_not_done_as_root(prove):
    """Else its files could use what a file system keeps back for root, to the last block."""

    def attack(target):
        session = target.session("sh", "-c", "echo x >~/.npm/x; echo $PI_AGENT_SESSION; sleep 60")
        owners = target.machine.root(f"stat -c %U {SCRATCH}/{session.id}/cache*-work/work", check=True).stdout.split()
        target.end_all()
        assert len(owners) >= 3
        return Outcome(b"root" in owners, owners)

    prove(attack, "overlay-identity")


def test_nothing_of_others_in_a_cache_is_left_on_the_disk(prove):
    """What root once put into a user's cache would be copied up with its owner, and the agent's account could not remove it."""

    def attack(target):
        target.machine.root(f"cd {HOME}/.npm && mkdir foreign && echo whole >foreign/file && chown alice: foreign/file", check=True)
        target.pi("sh", "-c", "echo changed >>~/.npm/foreign/file; cat ~/.npm/foreign/file", check=True)
        left = target.machine.root(f"sleep 3; ls -A {SCRATCH}", check=True).stdout
        target.machine.root(f"rm -rf {SCRATCH}/* {HOME}/.npm/foreign", check=True)
        return Outcome(left != b"", left)

    prove(attack, "others-unmapped")


def test_what_an_overlay_needs_for_itself_is_out_of_reach(product, control_seen):
    """None of its layers is anywhere in the view; and it takes no notes from attributes that the agent can write (user.overlay.*)."""
    layers = ["-name", "cache[0-9]*", "-o", "-name", "lower", "-path", "*pi-agent*"]
    found = product.pi("find", "/", *layers).stdout.decode()
    product.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
    assert product.machine.root(["find", SCRATCH, *layers], check=True).stdout.count(b"/cache") >= 3
    control_seen("root finds the layers of a session by the same names")
    mounts = product.pi("grep", "pi-agent-cache", "/proc/self/mountinfo", check=True).stdout.decode().splitlines()
    assert found == ""
    assert len(mounts) >= 3
    for mount in mounts:
        assert "nosuid,nodev" in mount and "userxattr" not in mount and "metacopy=on" not in mount and "redirect_dir=on" not in mount, mount

"""Attacks on sessions' temporary directories: by a neighbour of the same account, on their removal, on the directory that a user names."""

import time

import pytest
from target import DEMO, INSIDE, Outcome

pytestmark = pytest.mark.position("agent")

SCRATCH = "/var/lib/pi-agent/sessions"
USERS = "/var/lib/pi-agent/users"
BOBS = "/home/bob/work/demo"
# In the home of bob's agent: the same account, so that nothing but the removal's own care keeps it out of there.
TRAP = f"{USERS}/bob/home/trap"
CLEAN_SECONDS = 15
VIEW = ("unit:RootDirectory", "unit:BindReadOnlyPaths", "unit:ProtectSystem", "unit:PrivateTmp")


@pytest.fixture(autouse=True)
def trap(product, weak):
    """On both machines; afterwards neither has a leftover."""
    for target in (product, weak):
        target.machine.root(f"rm -rf {TRAP}; install -d -m 700 -o pi-agent -g pi-agent {TRAP} {TRAP}/deep", check=True)
        target.machine.root(f"for f in {TRAP}/canary {TRAP}/deep/canary; do echo alive >$f; chown pi-agent: $f; done", check=True)
    yield
    for target in (product, weak):
        target.end_all()
        target.machine.root(f"chmod -R u+rwX {TRAP}; rm -rf {TRAP} {SCRATCH}/*", check=True)


def trap_is_intact(target):
    looked = target.machine.root(f"cat {TRAP}/canary {TRAP}/deep/canary; stat -c %a {TRAP} {TRAP}/deep; ls -A {TRAP} | wc -l")
    return looked.stdout.split() == [b"alive", b"alive", b"700", b"700", b"2"]


def left_on_disk(target, seconds=CLEAN_SECONDS):
    """What is there of sessions' directories after the time allowed."""
    until = time.monotonic() + seconds
    while True:
        left = target.machine.root(f"ls -A {SCRATCH}", check=True).stdout.split()
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.1)


# --- neighbours


NEIGHBOURS = {"the same user": ("alice", DEMO), "another user": ("bob", BOBS)}


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_a_neighbour_does_not_reach_it_by_its_path_on_the_host(neighbour, prove):
    user, cwd = NEIGHBOURS[neighbour]

    def attack(target):
        victim = target.session("sh", "-c", "echo wombat-3317 >$TMPDIR/secret; echo $PI_AGENT_SESSION; sleep 60")
        tmp = f"{SCRATCH}/{victim.id}/tmp"
        done = target.pi("cat", f"{tmp}/secret", user=user, cwd=cwd)
        target.end_all()
        return Outcome(b"wombat" in done.stdout, done)

    prove(attack, *VIEW, "closed-scratch")


@pytest.mark.position("user")
@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_a_name_that_can_be_known_before_is_never_used(neighbour, prove):
    """What somebody put there before would be waiting for the next session."""
    user, cwd = NEIGHBOURS[neighbour]

    def attack(target):
        target.session("sh", "-c", "for d in /tmp /var/tmp; do echo planted >$d/planted; done; echo $PI_AGENT_SESSION; sleep 60")
        done = target.pi("sh", "-c", "cat /tmp/planted /var/tmp/planted", user=user, cwd=cwd)
        target.end_all()
        return Outcome(b"planted" in done.stdout, done)

    prove(attack, "unique-scratch")


@pytest.mark.position("outsider")
def test_nobody_on_the_host_can_make_or_look_into_the_directories(prove, product):
    opened = ("sh", "-c", "echo x >$TMPDIR/x; chmod 777 /tmp; echo $PI_AGENT_SESSION; sleep 60")

    def attack(target):
        session = target.session(*opened)
        done = target.machine.run(["cat", f"{SCRATCH}/{session.id}/tmp/x"], user="eve")
        session.end()
        return Outcome(done.stdout == b"x\n", done)

    prove(attack, "closed-scratch")
    session = product.session(*opened)
    for script in (f"ls {SCRATCH}", f"mkdir {SCRATCH}/{'ab' * 16}", f"ls {SCRATCH}/{session.id}", f"ls {SCRATCH}/{session.id}/tmp", f"mv {SCRATCH}/{session.id} /tmp/"):
        assert product.machine.run(script, user="eve").returncode != 0, script
    session.end()


# --- removal


LINKS = {
    "a directory": "ln -s {trap} $TMPDIR/link; ln -s {trap} /var/tmp/link",
    "deep below": "mkdir -p $TMPDIR/$(seq -s / 40); ln -s {trap} $TMPDIR/$(seq -s / 40)/link",
    "what holds it": "ln -s {trap}/.. $TMPDIR/link",
}


@pytest.mark.parametrize("place", LINKS)
def test_removal_goes_through_no_link_at(place, prove):
    def attack(target):
        target.pi("sh", "-c", LINKS[place].format(trap=TRAP), check=True)
        left_on_disk(target)
        intact = trap_is_intact(target)
        target.machine.root(f"mkdir -p {TRAP}/deep; for f in {TRAP}/canary {TRAP}/deep/canary; do echo alive >$f; done; chown -R pi-agent: {USERS}/bob/home", check=True)
        return Outcome(not intact, place)

    prove(attack, "beneath", quick=True)


RESISTING = {
    "closed directories": ("mkdir -p a/b/c; touch a/b/c/d; chmod 0 a/b/c a/b a; chmod 0 /tmp", "removal-rights"),
    "depth": ("python3 -c 'import os\nfor i in range(DEPTH): os.mkdir(\"d\"); os.chdir(\"d\")'", "removal-depth"),
}


@pytest.mark.parametrize("kind", RESISTING)
def test_nothing_in_it_keeps_it_from_being_removed(kind, prove, weak):
    script, defence = RESISTING[kind]
    # Deeper than there are descriptors, two for each level, of whoever removes: root takes its limits from PID 1, and of these at most 4096
    # (runner/root/door/process_state.cpp). Each level more is only work, for which a busy host has no time.
    limit = weak.machine.root("awk '/open files/ {print $4}' /proc/1/limits", check=True).stdout
    script = script.replace("DEPTH", str(min(int(limit), 4096) // 2 + 1000))

    def attack(target):
        target.pi("sh", "-c", f"cd $TMPDIR; {script}", check=True)
        for _ in range(3 if kind == "depth" else 1):  # a busy host needs a sweep or two for so many levels: each ends after ten seconds
            if not (left := left_on_disk(target)):
                break
            target.pi("true", check=True)
        return Outcome(bool(left), left)

    prove(attack, defence, quick=True)
    # And what was left is taken by the next sweeps: each ends after ten seconds, which a machine with much to do needs for so many levels.
    for _ in range(6):
        weak.pi("true", check=True)
        if not left_on_disk(weak):
            break
    assert left_on_disk(weak) == []


SWAPPING = f"""
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    try:
        names = [name for name in sys.argv[2:]]
        for top in names:
            os.symlink("{TRAP}", top + "/link") if not os.path.lexists(top + "/link") else None
            for name in ("a", "a/b", "a/b/c"):
                libc.renameat2(-100, (top + "/" + name).encode(), -100, (top + "/link").encode(), 2)
                libc.renameat2(-100, (top + "/" + name).encode(), -100, (top + "/moved").encode(), 1)
    except OSError:
        pass
"""


def test_directories_renamed_and_exchanged_with_links_while_they_are_removed_lead_nowhere(product, control_seen):
    """As the account itself on the host, which no agent is: its sessions do not see each other's directories."""
    for turn in range(15):
        product.session("sh", "-c", "echo $PI_AGENT_SESSION; mkdir -p /tmp/a/b/c; for i in $(seq 200); do echo x >/tmp/a/b/c/$i; mkdir -p /tmp/a/$i/b; done; sleep 60")
        session = product.sessions[-1]
        time.sleep(0.3)
        swapper = product.machine.popen(
            ["setpriv", "--reuid=pi-agent", "--regid=pi-agent", "--clear-groups", "python3", "-c", SWAPPING, "2", f"{SCRATCH}/{session.id}/tmp"], user="root"
        )
        session.end()
        swapper.communicate(timeout=20)
        assert trap_is_intact(product), f"turn {turn}"
        product.pi("true", check=True)
        assert left_on_disk(product) == [], f"turn {turn}"
    product.machine.root(["rm", f"{TRAP}/deep/canary"], check=True)
    assert not trap_is_intact(product)
    control_seen("the same look misses a file that root removes from the trap")


IMMUTABLE = 0x10


def set_flags(target, path, flags):
    """As chattr does, which not every host has (ioctl_iflags(2))."""
    script = f"import fcntl, struct; fcntl.ioctl(open({path!r}), 0x40086602, struct.pack('l', {flags}))"
    target.machine.root(["python3", "-c", script], check=True)


def test_a_sweep_that_cannot_go_on_is_nobodys_refusal_and_nobodys_wait(product, control_seen):
    """One file cannot be removed by anybody (immutable), beside 20,000 that can: it costs a start of somebody else nothing."""
    top = f"{SCRATCH}/{'0123456789abcdef' * 2}"
    product.machine.root(f"mkdir -p {top}/tmp/d {top}/var-tmp; cd {top}/tmp/d; seq 20000 | xargs touch; chmod 711 {top}; chown -R pi-agent: {top}/tmp {top}/var-tmp", check=True)
    set_flags(product, f"{top}/tmp/d/1", IMMUTABLE)  # even what root alone can remove
    assert product.machine.root(["rm", "-f", f"{top}/tmp/d/1"]).returncode != 0
    control_seen("not even root can remove the file meanwhile")
    began = time.monotonic()
    product.pi("true", user="bob", cwd=BOBS, check=True)
    assert time.monotonic() - began < 10
    set_flags(product, f"{top}/tmp/d/1", 0)
    product.pi("true", check=True)
    assert left_on_disk(product, 10) == []


# --- the directory that a user names


@pytest.mark.position("user")
def test_a_directory_of_somebody_else_is_no_temporary_directory(prove, product, weak):
    for target in (product, weak):
        target.machine.run("mkdir -m 777 /srv/devs/tmp", user="bob", check=True)

    def attack(target):
        done = target.pi(user="carol", cwd="/srv/devs", *("--pi-agent-tmpdir=tmp", "sh", "-c", "echo $TMPDIR"))
        return Outcome(done.returncode == 0, done)

    on, _ = prove(attack, "tmpdir-owner")
    assert on.seen.returncode == 77 and b"tmp belongs to another user" in on.seen.stderr, on
    for target in (product, weak):
        target.machine.root("rm -r /srv/devs/tmp", check=True)


def test_a_link_that_the_agent_planted_makes_nothing_outside_the_project(prove):
    def attack(target):
        target.machine.run("rm -rf ~/.private; mkdir ~/.private", check=True)
        target.pi("ln", "-sfn", "/home/alice/.private", f"{DEMO}/build", check=True)
        done = target.pi("--pi-agent-tmpdir=build/tmp", "true")
        made = target.machine.root(["test", "-e", "/home/alice/.private/tmp"]).returncode == 0
        target.machine.root(["rm", f"{DEMO}/build"], check=True)
        return Outcome(made, done)

    on, _ = prove(attack, "tmpdir-beneath")
    assert on.seen.returncode == 77 and b"is a symlink" in on.seen.stderr, on


@pytest.mark.position("user")
def test_a_path_in_a_forged_request_is_bounded(product, right_call_seen):
    for tmpdir in ("'x' * 5000", "'a\\0b'"):
        answer = product.play(f"tell(call(lambda c, s: ask(c, s, tmpdir={tmpdir})))")
        assert "impossible path" in answer["said"], answer

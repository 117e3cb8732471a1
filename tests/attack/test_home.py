"""Attacks on what a start makes in the agent's home: symlinks instead of what it seeds, and a forged version stamp."""

import pytest
from target import Outcome

pytestmark = pytest.mark.position("agent")

USERS = "/var/lib/pi-agent/users"
HOME = f"{USERS}/alice/home"
SHARE = "/usr/share/pi-agent"
# In the home of bob's agent, the same account: nothing but the seeding's own care keeps it out of there.
TRAP = f"{USERS}/bob/home/trap"


@pytest.fixture(scope="module", autouse=True)
def share(product, weak):
    """Both machines: default files at two depths, and a hook that an old home is to see; afterwards as it was."""
    for target in (product, weak):
        target.machine.root(f"cp -a {SHARE} /root/share-kept", check=True)
        target.machine.write(f"{SHARE}/defaults/.of-an-attack", "x\n")
        target.machine.write(f"{SHARE}/defaults/.config/of-an-attack/deep/file", "x\n")
        target.machine.write(f"{SHARE}/migrations/0.0.2-x.sh", "echo ran >ran\n")
    yield
    for target in (product, weak):
        target.machine.root(f"rm -rf {SHARE} && mv /root/share-kept {SHARE}; rm -rf {USERS}/alice {TRAP}", check=True)


def arrange(target, script):
    """A home that was used once, in which the agent then did something; an empty trap."""
    target.machine.root(f"rm -rf {USERS}/alice {TRAP}; install -d -m 700 -o pi-agent -g pi-agent {TRAP} {TRAP}/of-an-attack", check=True)
    target.pi("sh", "-c", "cd && " + script.format(trap=TRAP), check=True)


def in_the_trap(target):
    return target.machine.root(f"cd {TRAP} && find . -mindepth 1 ! -path ./of-an-attack", check=True).stdout


# What the agent arranges, and the defence that keeps the start from following it.
LINKS = {
    "a directory": ("rm -r .config; ln -s {trap} .config", "beneath"),
    "a directory further down": ("rm -r .config/of-an-attack; ln -s {trap} .config/of-an-attack", "beneath"),
    "a directory, by two links": ("rm -r .config; ln -s {trap} l; ln -s l .config", "beneath"),
    "a relative one": ("rm -r .config; ln -s ../../bob/home/trap .config", "beneath"),
    "a file": ("rm .of-an-attack; ln -s {trap}/new .of-an-attack", "seed-new"),
    "a file further down": ("rm .config/of-an-attack/deep/file; ln -s {trap}/new .config/of-an-attack/deep/file", "seed-new"),
    "the home of the stamp's copy": ("rm -r .local; ln -s {trap} .local", "beneath"),
    "the directory of the stamp's copy": ("rm -r .local/state; ln -s {trap} .local/state", "beneath"),
}


@pytest.mark.parametrize("place", LINKS)
def test_nothing_is_made_where_a_link_of_the_agents_leads(place, prove):
    script, defence = LINKS[place]

    def attack(target):
        arrange(target, script)
        done = target.pi("true")
        made = in_the_trap(target)
        return Outcome(made != b"", (made, done))

    on, _ = prove(attack, defence)
    assert on.seen[1].returncode == 0, on


def test_links_and_directories_that_come_and_go_while_starts_seed_lead_nowhere(product, control_seen):
    """The agent exchanges the directory with a link and back, as fast as it can, while other starts seed it."""
    arrange(product, "true")
    swapping = """
import os
home = os.environ["HOME"] + "/.config/"
print(os.environ["PI_AGENT_SESSION"], flush=True)
os.makedirs(home + "kept", exist_ok=True)
while True:
    for step in (lambda: os.rename(home + "of-an-attack", home + "kept/d"), lambda: os.symlink(TRAP, home + "of-an-attack"),
                 lambda: os.unlink(home + "of-an-attack"), lambda: os.rename(home + "kept/d", home + "of-an-attack"),
                 lambda: os.unlink(home + "of-an-attack/deep/file"), lambda: os.unlink(home + "../.of-an-attack"),
                 lambda: os.symlink(TRAP + "/new", home + "../.of-an-attack"), lambda: os.unlink(home + "../.of-an-attack")):
        try:
            step()
        except OSError:
            pass
""".replace("TRAP", repr(TRAP))
    product.session("python3", "-c", swapping)
    starts = [product.pi("true", timeout=90) for _ in range(25)]
    statuses = [start.returncode for start in starts]
    product.end_all()
    assert in_the_trap(product) == b""
    product.machine.root(["touch", f"{TRAP}/new"], check=True)
    assert in_the_trap(product) != b""
    control_seen("the same look sees a file that root makes in the trap")
    # After three tries a start gives up and says that the home changes (75): rare, and the agent's own doing.
    assert set(statuses) <= {0, 75} and statuses.count(0) > 15, [start for start in starts if start.returncode]


def test_a_forged_copy_of_the_stamp_keeps_no_migration_from_running(prove):
    def attack(target):
        arrange(target, 'echo "$PI_AGENT_VERSION" >.local/state/.pi-agent-version')
        target.machine.write(f"{USERS}/alice/meta/version", "0.0.1\n", mode=0o600)
        done = target.pi("sh", "-c", "cat ~/ran")
        return Outcome(done.stdout != b"ran\n", done)

    on, _ = prove(attack, "root-stamp")
    assert b"last used by pi-agent 0.0.1" in on.seen.stderr, on


def test_a_forged_copy_of_the_stamp_makes_no_migration_run_and_ends_no_start(prove):
    def attack(target):
        arrange(target, "echo 0.0.1 >.local/state/.pi-agent-version")
        done = target.pi("sh", "-c", "cat ~/ran 2>/dev/null; true")
        return Outcome(done.stdout != b"" or done.stderr != b"", done)

    prove(attack, "root-stamp")


def test_the_stamp_itself_is_out_of_the_agents_reach(product, control_seen):
    arrange(product, "true")
    script = f"for f in {USERS}/alice/meta/version ~/../meta/version; do cat $f || echo 0.0.1 >$f; done 2>/dev/null; true"
    assert product.pi("sh", "-c", script).stdout == b""
    assert product.machine.read(f"{USERS}/alice/meta/version") not in (b"", b"0.0.1\n")
    control_seen("root reads it there")


def test_a_hook_keeps_nothing_of_the_runners_and_cannot_become_root(prove, product):
    """What the agent made of its home may run in a hook: it is no more than the agent's account."""
    look = "{ ls -l /proc/self/fd; grep -E '^(Uid|Gid|Groups|CapEff|NoNewPrivs)' /proc/self/status; sudo -n id; cat ../meta/version; } >seen 2>&1; true\n"

    def attack(target):
        arrange(target, "true")
        target.machine.write(f"{SHARE}/migrations/0.0.3-look.sh", look)
        target.machine.write(f"{USERS}/alice/meta/version", "0.0.1\n", mode=0o600)
        target.pi("true", check=True)
        seen = target.machine.read(f"{HOME}/seen").decode()
        target.machine.root(["rm", f"{SHARE}/migrations/0.0.3-look.sh"], check=True)
        return Outcome("Uid:\t0\t0" in seen, seen)

    on, _ = prove(attack, "become-user", quick=True)
    seen = on.seen
    descriptors = [line.split()[-3:] for line in seen.splitlines() if " -> " in line]
    # ls itself has the script's output and its own directory; the shell's others are of the redirections.
    assert all(target.startswith(("/dev/null", f"{HOME}/seen", "/proc/", "pipe:")) for *_, target in descriptors), seen
    account = product.machine.root("id -u pi-agent; id -g pi-agent", check=True).stdout.decode().split()
    assert f"Uid:\t{account[0]}\t{account[0]}\t{account[0]}\t{account[0]}" in seen, seen
    assert f"Gid:\t{account[1]}\t{account[1]}\t{account[1]}\t{account[1]}" in seen, seen
    assert "CapEff:\t0000000000000000" in seen and "NoNewPrivs:\t1" in seen, seen
    assert "uid=0" not in seen and "0.0.1" not in seen, seen

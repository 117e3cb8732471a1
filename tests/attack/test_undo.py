"""An agent against the checkpoints of its user, and undo as a deputy: it reads and writes nothing outside of the project, and nothing newer."""

import time

import pytest
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("agent")

PLACE = "/home/alice/projects/undo-attack"
OUTSIDE = "/home/alice/undo-outside"
STORE = "/var/lib/pi-agent/undo/alice"


def arrange(target, script=""):
    target.machine.run(f"chmod -R u+rwX {PLACE} 2>/dev/null; rm -rf {PLACE} {OUTSIDE}; mkdir -p {PLACE}/d {OUTSIDE}; cd {PLACE}; echo secret >{OUTSIDE}/file; "
                       f"echo inside >d/file; echo kept >a; {script} sleep 0.1", cwd="/", check=True)  # fmt: skip


def undo(target, *arguments):
    return target.machine.run(["pi-agentctl", "undo", "--yes", *arguments], cwd=PLACE)


def read(target, path):
    return target.machine.run(["cat", path], cwd="/").stdout


@pytest.fixture(scope="module", autouse=True)
def whole_root(product, weak):
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text() + "projects: {protect: [], aftermath: false}\n")
    yield
    for target in (product, weak):
        target.machine.run(["rm", "-rf", PLACE, OUTSIDE], cwd="/")
        target.machine.install_policy(ATTACK_POLICY.read_text())


def test_nothing_is_restored_through_a_link(prove):
    """The directory above is a link to the user's own by the time of the undo."""

    def attack(target):
        arrange(target)
        target.pi("sh", "-c", "echo agent >d/file", cwd=PLACE)
        target.machine.run(f"mv d moved; ln -s {OUTSIDE} d", cwd=PLACE, check=True)
        done = undo(target, "d/file")
        return Outcome(read(target, f"{OUTSIDE}/file") != b"secret\n", done)

    prove(attack, "undo-beneath")


def test_nothing_behind_a_link_is_kept(prove):
    def attack(target):
        arrange(target, f"ln -s {OUTSIDE}/file link; ln -s {OUTSIDE} way;")
        done = target.pi("true", cwd=PLACE)
        found = target.machine.run(f"grep -rl secret {STORE}", cwd="/").stdout
        return Outcome(bool(found), (done, found))

    prove(attack)


def test_what_the_agent_wrote_is_not_restored_as_the_users(prove):
    """A file that changes while the checkpoint is made: its copy would be the agent's text."""

    def attack(target):
        arrange(target, "for n in $(seq 3000); do echo $n >n-$n; done; dd if=/dev/zero of=z bs=1M count=20 2>/dev/null;")
        target.pi("sh", "-c", "printf agent | dd of=z conv=notrunc 2>/dev/null; sleep 2; rm z", cwd=PLACE)
        done = undo(target, "z")
        return Outcome(read(target, f"{PLACE}/z").startswith(b"agent"), done)

    prove(attack)


def test_what_the_user_wrote_since_is_not_replaced(prove):
    def attack(target):
        arrange(target)
        target.pi("sh", "-c", "echo agent >a", cwd=PLACE)
        target.machine.run("echo own >a", cwd=PLACE, check=True)
        done = undo(target)
        return Outcome(read(target, f"{PLACE}/a") != b"own\n", done)

    prove(attack, "undo-conflicts")


def test_a_place_open_to_others_is_not_used(prove):
    def attack(target):
        arrange(target)
        target.pi("sh", "-c", "echo agent >a", cwd=PLACE)
        target.machine.run(["chmod", "777", STORE], cwd="/", check=True)
        done = undo(target)
        target.machine.run(["chmod", "700", STORE], cwd="/", check=True)
        return Outcome(done.returncode == 0, done)

    prove(attack, "undo-own-store")


def test_pipes_do_not_hang_the_end(prove):
    def attack(target):
        arrange(target, "mkfifo pipe;")
        begun = time.monotonic()
        done = target.pi("sh", "-c", "rm a; mkfifo a more; rm d/file; mkfifo d/file", cwd=PLACE)
        took = time.monotonic() - begun
        return Outcome(took > 5 or undo(target).returncode != 0 or read(target, f"{PLACE}/a") != b"kept\n", (took, done))

    prove(attack)


def test_names_do_not_reach_the_terminal_as_they_are(prove):
    def attack(target):
        arrange(target)
        target.pi("bash", "-c", r"touch $'\e]0;owned\a' $'x\npi: all is well'", cwd=PLACE)
        shown = [target.machine.run(["pi-agentctl", *words], cwd=PLACE).stdout for words in (["changes"], ["changes", "--json"], ["diff"], ["undo", "--dry-run"])]
        return Outcome(any(b"\x1b" in text or b"\npi: all" in text for text in shown), shown)

    prove(attack)


def test_no_session_reads_or_writes_checkpoints(prove):
    def attack(target):
        arrange(target)
        done = target.pi("sh", "-c", f"ls {STORE}/*; touch {STORE}/x /var/lib/pi-agent/undo/x && echo written", cwd=PLACE)
        return Outcome(b"written" in done.stdout or b"copies" in done.stdout, done)

    prove(attack)


def test_another_user_reads_none(prove):
    def attack(target):
        arrange(target)
        target.pi("true", cwd=PLACE)
        done = target.machine.run(f"ls {STORE}; ls /var/lib/pi-agent/undo", user="bob", cwd="/")
        return Outcome(bool(done.stdout), done)

    prove(attack)


def test_sizes_are_bounded(prove):
    """What the policy gives a user is what is kept, whatever an agent leaves for the next start."""

    def attack(target):
        arrange(target)
        target.machine.install_policy(ATTACK_POLICY.read_text() + "projects: {protect: [], aftermath: false, undo: {size: 16M, file: 1M}}\n")
        target.pi("sh", "-c", "for n in $(seq 60); do dd if=/dev/urandom of=n-$n bs=900K count=1 2>/dev/null; done", cwd=PLACE)
        done = target.pi("sleep", "3", cwd=PLACE)
        target.machine.install_policy(ATTACK_POLICY.read_text() + "projects: {protect: [], aftermath: false}\n")
        kept = int(target.machine.run(f"du -sm {STORE}", cwd="/").stdout.split()[0])
        return Outcome(kept > 40, (kept, done))

    prove(attack, "undo-bounds")

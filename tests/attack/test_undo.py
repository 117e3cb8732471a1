"""An agent against the checkpoints of its user, and undo as a deputy: it reads and writes nothing outside of the project, and nothing newer."""

import time

import pytest
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("agent")

PLACE = "/home/alice/projects/undo-attack"
OUTSIDE = "/home/alice/undo-outside"
STORE = "/var/lib/pi-agent/undo/alice"
PROJECTS = "projects: {protect: [], aftermath: false}\n"
LOOK = 'for top; do cd "$top" && find . -printf "%p|%y|%m|%l\\0" | sort -z; find . -type f -size -1048577c -print0 | sort -z | xargs -0r sha256sum; done'


def arrange(target, script=""):
    target.machine.root(["rm", "-rf", PLACE, OUTSIDE], check=True)
    target.machine.run(f"mkdir -p {PLACE}/d {OUTSIDE}; cd {PLACE}; echo secret >{OUTSIDE}/file; echo inside >d/file; echo kept >a; {script} sleep 0.1", cwd="/", check=True)


def act(target, script, cwd=PLACE):
    """What an agent does once all is kept, as one that waits for its model's first answer."""
    listing = f"cd {STORE} && for one in *; do test -e $one/before && echo $one; done | cut -c1-20 | sort | tail -1"
    before = target.machine.root(listing).stdout
    process = target.machine.popen(["pi", "bash", "-c", f"read go; {script}"], cwd=cwd)
    until = time.monotonic() + 30
    while target.machine.root(listing).stdout <= before:
        assert time.monotonic() < until and process.poll() is None, "nothing is kept"
        time.sleep(0.02)
    out, said = process.communicate(b"go\n", timeout=120)
    return process.returncode, out, said


def undo(target, *arguments):
    return target.machine.run(["pi-agentctl", "undo", "--yes", *(arguments or [PLACE])], cwd=PLACE)


def read(target, path):
    return target.machine.root(["cat", path]).stdout


def look(target):
    return target.machine.root(["sh", "-c", LOOK, "sh", PLACE, OUTSIDE], check=True).stdout


@pytest.fixture(scope="module", autouse=True)
def with_undo_alone(product, weak):
    """No root is protected, so that the agent may write everything."""
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text() + PROJECTS)
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-rf", PLACE, OUTSIDE], check=True)
        target.machine.install_policy(ATTACK_POLICY.read_text())


# What an agent does; after the undo, project and what is outside must be as before: kinds, modes, targets and bytes.
DONE_BY_AGENTS = {
    "a link in the place of a file": f"rm a; ln -s {OUTSIDE}/file a",
    "a link in the place of a directory": f"rm -r d; ln -s {OUTSIDE} d",
    "a link to a directory above": "rm -r d; ln -s ../.. d",
    "links in a circle": "ln -s . loop; ln -s two one; ln -s one two",
    "a link in the place of the file that undo makes": f"ln -s {OUTSIDE}/file .pi-agent-undo-$(stat -c %i a); echo x >>a",
    "a directory in the place of the file that undo makes": "n=.pi-agent-undo-$(stat -c %i a); mkdir $n; echo x >$n/x; echo x >>a",
    "hard links of its own": "echo x >new; ln new second; rm a; ln new a",
    "a hard link to a file of the project": "ln a second; echo x >>second",
    "set-id bits": "cp /bin/true evil; chmod 6755 evil a; chmod 2777 d",
    "a pipe in the place of a file": "rm a d/file; mkfifo a d/file more",
    "a socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'; rm a",
    "a closed file": "chmod 0 a",
    "a closed directory": "mkdir closed; chmod 0 closed",
    "a directory in the place of a file": "rm a; mkdir -p a/b; echo x >a/b/c",
    "a file in the place of a directory": "rm -r d; echo x >d",
    "an old time": 't=$(stat -c %y a); printf "kepX\\n" >a; touch -d "$t" a',
    "files that changed places": "mv a t; mv d/file a; mv t d/file",
    "a file that looks like a placeholder of the product": "printf '# This file is empty on purpose\\n' >a",
    "names of options, of escapes, and long ones": r"touch -- -rf --yes; touch $'\e]0;x\a' $'x\ny'; touch $(printf 'n%.0s' $(seq 255)); rm a",
    "a deep tree": "for n in $(seq 150); do mkdir -p x/d; cd x; done; rm -f a",
    "many files": "for n in $(seq 3000); do echo $n >n-$n; done; rm a",
    "a file of 100 GB": "truncate -s 100G huge; truncate -s 100G a",
    "an attribute": "python3 -c 'import os; os.setxattr(\"a\", \"user.x\", b\"1\")' || true; echo x >>d/file",
    "another letter case": "mv a A; mv d D",
}  # fmt: skip


@pytest.mark.parametrize("script", DONE_BY_AGENTS.values(), ids=DONE_BY_AGENTS)
def test_all_of_it_is_undone_and_nothing_else(product, control_seen, script):
    arrange(product)
    before = look(product)
    act(product, script)
    assert look(product) != before
    control_seen("the same look sees what the agent did")
    done = undo(product)
    assert look(product) == before, done


def test_nothing_is_restored_through_a_link(prove):
    """The directory above is a link to the user's own by the time of the undo."""

    def attack(target):
        arrange(target)
        act(target, "echo agent >d/file")
        target.machine.run(f"mv d moved; ln -s {OUTSIDE} d", cwd=PLACE, check=True)
        done = undo(target, "d/file")
        return Outcome(read(target, f"{OUTSIDE}/file") != b"secret\n", done)

    prove(attack, "undo-beneath", "undo-conflicts", "undo-changed-since")


def test_what_the_agent_wrote_is_not_restored_as_the_users(prove):
    """A file that changes while the checkpoint is made: its copy would be the agent's text."""

    def attack(target):
        arrange(target, "for n in $(seq 3000); do echo $n >n-$n; done; dd if=/dev/zero of=z bs=1M count=20 2>/dev/null;")
        target.pi("sh", "-c", "printf agent | dd of=z conv=notrunc 2>/dev/null; sleep 4; rm z", cwd=PLACE)
        done = undo(target, "z")
        return Outcome(read(target, f"{PLACE}/z").startswith(b"agent"), done)

    prove(attack, "undo-young")


def test_what_the_user_wrote_since_is_not_replaced(prove):
    def attack(target):
        arrange(target)
        act(target, "echo agent >a")
        target.machine.run("echo own >a", cwd=PLACE, check=True)
        done = undo(target)
        return Outcome(read(target, f"{PLACE}/a") != b"own\n", done)

    prove(attack, "undo-conflicts")


def test_a_place_open_to_others_is_not_used(prove):
    def attack(target):
        arrange(target)
        act(target, "echo agent >a")
        target.machine.run(["chmod", "777", STORE], cwd="/", check=True)
        done = undo(target)
        target.machine.run(["chmod", "700", STORE], cwd="/", check=True)
        return Outcome(done.returncode == 0, done)

    prove(attack, "undo-own-store")


def test_sizes_are_bounded(prove):
    """What the policy gives a user is what is kept, whatever an agent leaves for the next start."""

    def attack(target):
        arrange(target)
        target.machine.install_policy(ATTACK_POLICY.read_text() + PROJECTS.replace("}", ", undo: {size: 16M, file: 1M}}"))
        target.pi("sh", "-c", "for n in $(seq 60); do dd if=/dev/urandom of=n-$n bs=900K count=1 2>/dev/null; done", cwd=PLACE)
        done = target.pi("sleep", "5", cwd=PLACE)
        target.machine.install_policy(ATTACK_POLICY.read_text() + PROJECTS)
        kept = int(target.machine.run(f"du -sm {STORE}", cwd="/").stdout.split()[0])
        return Outcome(kept > 40, (kept, done))

    prove(attack, "undo-bounds")


def test_nothing_behind_a_link_is_kept(product, control_seen):
    arrange(product, f"ln -s {OUTSIDE}/file link; ln -s {OUTSIDE} way;")
    product.pi("sleep", "1", cwd=PLACE, check=True)
    assert product.machine.run(f"grep -rl kept {STORE}", cwd="/").stdout
    control_seen("the same look finds the text of a file of the project")
    assert not product.machine.run(f"grep -rl secret {STORE}", cwd="/").stdout


def test_names_do_not_reach_the_terminal_as_they_are(product, control_seen):
    arrange(product)
    product.pi("bash", "-c", r"touch $'\e]0;owned\a' $'x\npi: all is well'", cwd=PLACE, check=True)
    bad = (b"\x1b", b"\npi: all")
    assert all(one in product.machine.run(["ls", "-N"], cwd=PLACE).stdout for one in bad)
    control_seen("ls -N shows them")
    for words in (["changes"], ["changes", "--json"], ["diff"], ["undo", "--dry-run"]):
        shown = product.machine.run(["pi-agentctl", *words], cwd=PLACE).stdout
        assert b"owned" in shown and not any(one in shown for one in bad), shown


def test_no_session_reads_or_writes_checkpoints(product, control_seen):
    arrange(product)
    script = f"ls {STORE}/*; touch {STORE}/x /var/lib/pi-agent/undo/x && echo written"
    done = product.pi("sh", "-c", script, cwd=PLACE)
    assert b"written" not in done.stdout and b"head" not in done.stdout, done
    assert b"head" in product.machine.run(f"ls {STORE}/*", cwd="/").stdout
    control_seen("its user lists them")


def test_another_user_reads_none(product, control_seen):
    arrange(product)
    product.pi("true", cwd=PLACE, check=True)
    look_for = f"ls {STORE}; ls /var/lib/pi-agent/undo"
    assert product.machine.run(f"ls {STORE}", cwd="/").stdout
    control_seen("its user lists them")
    assert not product.machine.run(look_for, user="bob", cwd="/").stdout


def test_what_becomes_of_the_way_to_the_project_is_not_followed(product, control_seen):
    """The root of the checkpoint lies behind a link by the time of the undo."""
    arrange(product)
    act(product, "echo agent >a")
    assert b"undo-attack/a" in product.machine.run(["pi-agentctl", "changes"], cwd="/").stdout
    control_seen("it finds the change while there is no link")
    product.machine.run("mv projects moved; ln -s moved projects", cwd="/home/alice", check=True)
    done = product.machine.run(["pi-agentctl", "undo", "--yes"], cwd="/")
    product.machine.run("rm projects; mv moved projects", cwd="/home/alice", check=True)
    assert done.returncode not in (0, 1) and read(product, f"{PLACE}/a") == b"agent\n", done

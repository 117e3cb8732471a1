"""A session plants what its user names at the next start: no other file of theirs is handed over by it, and no more than the bounds."""

import os
import time

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("agent")

HOME = "/home/alice"
OTHER = f"{HOME}/projects/other"
MARK = "numbat-secret-2251"
SECRET = f"{HOME}/.private/key"
ROUNDS = 300 if os.environ.get("PI_AGENT_FULL") else 40
ONE_PROJECT = "projects: {scope: project}"


@pytest.fixture(autouse=True)
def places(product, weak):
    """A secret of alice's, and another project of hers."""
    for target in (product, weak):
        target.machine.run(["sh", "-ec", f"mkdir -p {HOME}/.private {OTHER}; umask 077; echo {MARK} >{SECRET}"], check=True)
    yield
    for target in (product, weak):
        target.end_all()
        target.machine.root(f"rm -rf {HOME}/.private {HOME}/named {OTHER} {DEMO}/planted {DEMO}/d", check=True)


# What the session plants, where it works, and what its user names at the next start, in the demo project.
PLANTED = {
    "a link in the place of a note": (f"ln -s {SECRET} planted", DEMO, ["@planted"]),
    "a link, named from the home": (f"ln -s ../../.private/key planted", DEMO, ["@~/projects/demo/planted"]),
    "a directory that leads out": (f"ln -s {HOME}/.private d", DEMO, [f"@{DEMO}/d/key"]),
    "a link in another project": (f"ln -s {SECRET} planted", OTHER, [f"@{OTHER}/planted"]),
    "an extension": (f"ln -s {SECRET} planted", OTHER, ["-e", f"{OTHER}/planted"]),
    "a prompt": (f"ln -s {SECRET} planted", OTHER, ["--append-system-prompt", f"{OTHER}/planted"]),
    "a part of a skill": (f"mkdir d; ln -s {SECRET} d/planted", OTHER, ["--skill", f"{OTHER}/d"]),
    "a skill": (f"ln -s {HOME}/.private d", OTHER, ["--skill", f"{OTHER}/d"]),
}  # fmt: skip


@pytest.mark.parametrize("what", PLANTED)
def test_what_a_session_planted_is_not_handed_over_for_what_it_leads_to(what, prove):
    plant, where, named = PLANTED[what]

    def attack(target):
        with target.policy_with(ONE_PROJECT if where == OTHER else ""):
            target.machine.root(f"rm -rf {OTHER}/* {DEMO}/planted {DEMO}/d", check=True)
            target.pi("sh", "-ec", plant, cwd=where, check=True)
            done = target.pi("sh", "-c", 'for f; do cat "${f#@}"; cat "$f/"*; done 2>/dev/null; true', "sh", *named)
        return Outcome(MARK.encode() in done.stdout, done)

    on, _ = prove(attack, "stay-in-root")
    assert b"where an agent can have made it" in on.seen.stderr, on


def test_a_link_in_the_place_of_a_terminals_description_is_not_followed(prove):
    """The secret even begins as such a description does (term(5))."""

    def attack(target):
        target.machine.run(["sh", "-ec", f"printf '\\032\\001' | cat - {SECRET} >{HOME}/.private/ti"], check=True)
        target.pi("sh", "-ec", f"mkdir -p d/p; ln -sfn {HOME}/.private/ti d/p/planted-term", check=True)
        done = target.pi("sh", "-c", 'echo "${TERMINFO-none}"', env={"TERM": "planted-term", "TERMINFO": f"{DEMO}/d"}, check=True)
        return Outcome(MARK.encode().hex().upper().encode() in done.stdout, done)

    on, _ = prove(attack, "stay-in-root")
    assert on.seen.stdout == b"none\n", on


SWAPPING = f"""
import ctypes, os
libc = ctypes.CDLL(None)
os.chdir("{OTHER}")
open("planted", "w").write("harmless\\n")
os.symlink("{SECRET}", "l")
os.mkdir("d")
open("d/key", "w").write("harmless\\n")
os.symlink("{HOME}/.private", "m")
print(os.environ["PI_AGENT_SESSION"], flush=True)
while True:
    libc.renameat2(-100, b"planted", -100, b"l", 2)  # RENAME_EXCHANGE: a file and a link, a directory and a link
    libc.renameat2(-100, b"d", -100, b"m", 2)
"""


def test_files_and_links_that_are_exchanged_between_look_and_open_lead_nowhere(product, weak, control_seen, figures):
    def race(target, rounds):
        target.machine.root(f"rm -rf {OTHER}/*", check=True)
        with target.policy_with(ONE_PROJECT):
            session = target.session("python3", "-c", SWAPPING, cwd=OTHER)
            came, told, handed = 0, 0, 0
            for turn in range(rounds):
                # Two that may be taken and one that is refused, of which each start says no more than the first.
                named = (f"@{OTHER}/planted", f"@{OTHER}/d/key")[turn % 2]
                done = target.pi("sh", "-c", 'cat "${1#@}"', "sh", named, timeout=90)
                told += b"where an agent can have made it" in done.stderr
                handed += done.stdout == b"harmless\n"
                came += MARK.encode() in done.stdout
            session.end()
        return came, told, handed

    begun = time.monotonic()
    came, told, handed = race(product, ROUNDS)
    assert not came, f"the secret was handed over {came} times"
    assert told and handed, f"no race: {told} starts met a link, {handed} the file"
    figures(f"{ROUNDS} starts beside an agent that exchanges what they name, {told} met its link and {handed} its file, in {time.monotonic() - begun:.0f} s")
    with weak.without("stay-in-root"):
        came, _, _ = race(weak, 20)
    assert came, "without the defence the race should be won"
    control_seen("the same race is won in a build without the defence")


@pytest.mark.position("user")
def test_more_than_the_bound_fills_no_memory(prove):
    def attack(target):
        target.machine.run(["sh", "-ec", f"mkdir -p {HOME}/named; truncate -s 200M {HOME}/named/big"], check=True)
        done = target.pi("sh", "-c", 'stat -c %s "${1#@}"', "sh", f"@{HOME}/named/big")
        return Outcome(done.stdout == b"209715200\n", done)

    on, _ = prove(attack, "copies-limit")
    assert on.seen.returncode == 64 and b"more than 32 MiB" in on.seen.stderr, on


@pytest.mark.position("user")
def test_a_flood_of_names_ends_in_words(product, control_seen):
    product.machine.run(["bash", "-ec", f"mkdir -p {HOME}/named/many; cd {HOME}/named/many; seq 5000 | xargs touch; ln -s . loop"], check=True)
    done = product.pi("true", "--skill", f"{HOME}/named")
    assert done.returncode == 64 and b"more than 2000 files and directories" in done.stderr, done
    done = product.pi("true", *(f"@{HOME}/none/{'x/' * 200}{number}" for number in range(900)))
    assert done.returncode == 64 and b"more than 500 files" in done.stderr, done
    assert product.pi("true", *(f"@{HOME}/none/{'x/' * 200}{number}" for number in range(400))).returncode == 0
    control_seen("as many as may be named are")


@pytest.mark.position("user")
@pytest.mark.parametrize("name", ["a\nExecStopPost=+id", "\x1b]0;forged\x07", "x\npi: forged", "%n${HOME}$(id)", "\udce4"])
def test_a_name_says_nothing_to_systemd_the_terminal_or_the_journal(name, product, control_seen):
    product.machine.run(["bash", "-ec", 'mkdir -p "$1"; printf content >"$1/$2"; mkdir "$1/d$2"', "bash", f"{HOME}/named", name], check=True)
    done = product.pi("sh", "-c", 'cat "${1#@}"', "sh", f"@{HOME}/named/{name}")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"content", b""), done
    refused = product.pi("true", f"@{HOME}/named/d{name}")
    lines = refused.stderr.splitlines()
    assert refused.returncode == 64 and len(lines) == 2 and lines[0].startswith(b"pi: /home/alice/named/d") and b"\x1b" not in refused.stderr, refused
    assert b"forged" not in product.machine.root("journalctl -q -o cat --since=-60s | grep -a '^pi: forged'").stdout
    control_seen("the file of that name is read by the agent")


def test_an_agent_writes_no_copy_and_sees_no_other_sessions(product, control_seen):
    product.machine.run(["sh", "-ec", f"mkdir -p {HOME}/named; echo content >{HOME}/named/f"], check=True)
    script = (
        'f=${1#@}; d=/run/pi-agent/named; for try in "echo x >$f" "rm $f" "touch $d/1/x" "mv $d/1 $d/2" "chmod u+w $f" "mount -o remount,rw $d" "umount $d"; do '
        'sh -c "$try" 2>/dev/null && echo "done: $try"; done; cat "$f"; ls $d'
    )
    done = product.pi("sh", "-c", script, "sh", f"@{HOME}/named/f")
    assert done.stdout == b"content\n1\n", done
    assert product.pi("ls", "/run/pi-agent/named").returncode != 0
    control_seen("the copy is read by the same agent")


@pytest.mark.position("user")
@pytest.mark.parametrize("kind", ["mkfifo {}", "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' {}", "ln -s /dev/tty {}", "ln -s /proc/self/mem {}", "ln -s /proc/kmsg {}"])
def test_what_acts_or_waits_when_it_is_opened_is_not_opened(kind, product, control_seen):
    product.machine.run(["sh", "-ec", f"mkdir -p {HOME}/named; {kind.format(f'{HOME}/named/it')}"], check=True)
    begun = time.monotonic()
    done = product.pi("true", f"@{HOME}/named/it")
    assert done.returncode == 64 and b"is not handed to the agent" in done.stderr and time.monotonic() - begun < 5, done
    product.machine.run(["sh", "-ec", f"rm {HOME}/named/it; echo x >{HOME}/named/it"], check=True)
    assert product.pi("sh", "-c", 'cat "${1#@}"', "sh", f"@{HOME}/named/it").stdout == b"x\n"
    control_seen("a file in its place is handed over")

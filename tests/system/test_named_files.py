"""Files that a user names on the command line: the agent gets copies where it does not see them, or `pi` says why not."""

import json
import struct
import zlib

import pytest
from engine import under_method
from launching import DEMO, PLAYING_POLICY, STANDARD_POLICY, STATE, agent_says, assert_refused, leftovers, messages, pi, wait_until_empty

HOME = "/home/alice"
NOTES = f"{HOME}/notes"
USAGE = 64
METHODS = ("systemd", "bwrap", "podman", "docker")


@pytest.fixture
def notes(playing):
    """A directory of alice's with a few files, outside of her roots."""
    playing.run(["sh", "-ec", f"mkdir {NOTES}; cd {NOTES}; echo one >one.txt; mkdir sk; echo skill >sk/SKILL.md"], check=True)
    yield playing
    playing.root(["rm", "-rf", NOTES], check=True)


def arguments(machine, *given, **options):
    return agent_says(machine, "arguments", *given, **options).decode().split("\0")[:-1]


@pytest.fixture(params=METHODS)
def method(request, playing):
    with under_method(playing, request.param, PLAYING_POLICY):
        yield request.param


def test_under_every_method_a_copy_is_there_to_read_and_not_to_write(notes, method):
    script = 'cat "${1#@}" "$3/SKILL.md"; echo x >>"${1#@}" || touch "$3/new" || rm "${1#@}" || echo closed'
    done = pi(notes, "sh", script, f"@{NOTES}/one.txt", "--skill", f"{NOTES}/sk", env={"LC_ALL": "C"})
    assert (done.returncode, done.stdout) == (0, b"one\nskill\nclosed\n"), done
    assert notes.read(f"{NOTES}/one.txt") == b"one\n"
    wait_until_empty(lambda: leftovers(notes))


def test_the_arguments_name_the_copies_and_all_others_stay(notes):
    given = ["-p", f"@{NOTES}/one.txt", "@README.md", "hello @you", "-e", f"{NOTES}/sk", "@/usr/bin/env", f"@{DEMO}/README.md", "--append-system-prompt", "be brief"]
    expected = given.copy()
    expected[1] = "@/run/pi-agent/named/1/one.txt"
    expected[5] = "/run/pi-agent/named/3/sk"
    assert arguments(notes, *given) == expected


def test_of_the_project_under_an_alias_the_alias_is_named(notes, playing_policy):
    playing_policy(PLAYING_POLICY + "projects: {paths: alias}\n")
    [named, copy] = arguments(notes, f"@{DEMO}/README.md", f"@{NOTES}/one.txt")
    assert named.startswith(f"@{STATE}/alice/home/") and named.endswith("/README.md") and copy == "@/run/pi-agent/named/2/one.txt"
    assert agent_says(notes, "sh", 'cat "${1#@}"', f"@{DEMO}/README.md") == b"# demo\n"


def test_a_shell_in_the_agents_place_gets_its_arguments_as_they_are(notes):
    assert agent_says(notes, "--pi-agent-shell", "-c", 'echo "$1"', "bash", f"@{NOTES}/one.txt") == f"@{NOTES}/one.txt\n".encode()


def test_debugging_says_what_became_of_them(notes):
    done = pi(notes, "--pi-agent-debug", "sh", "true", f"@{NOTES}/one.txt")
    assert any(f"{NOTES}/one.txt: the agent has a copy, @/run/pi-agent/named/" in line for line in messages(done)), done


# What alice makes, what she names, and what `pi` says.
REFUSED = {
    "a directory": ("mkdir d", f"@{NOTES}/d", ["it is a directory"]),
    "a pipe": ("mkfifo p", f"@{NOTES}/p", ["not a regular file"]),
    "a device": ("true", "@/var/lib/device", ["not a regular file"]),
    "a socket": ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", f"@{NOTES}/s", ["not a regular file"]),
    "a file of others": ("true", "@/etc/shadow-", ["Permission denied"]),
    "too large a file": ("truncate -s 40M big", f"@{NOTES}/big", ["more than 32 MiB", "move it into the project"]),
    "a shell's own descriptor": ("true", "@/dev/fd/63", ["to a process outside", "standard input"]),
    "a session to go on with": ("echo '{}' >s.jsonl", ["--session", f"{NOTES}/s.jsonl"], ["--fork continues with a copy"]),
    "a name with a newline": ("mkdir $'x\\ny\\e[1m'", f"@{NOTES}/x\ny\x1b[1m", ["x\\x0ay\\x1b[1m of your arguments"]),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused_is(what, notes):
    make, named, words = REFUSED[what]
    notes.root("rm -f /var/lib/device; mknod -m 666 /var/lib/device c 1 3; install -m 600 /dev/null /etc/shadow-", check=True)
    notes.run(["bash", "-ec", make], cwd=NOTES, check=True)
    done = pi(notes, "sh", "echo ran", *([named] if isinstance(named, str) else named))
    assert_refused(done, USAGE, "is not handed to the agent: ", *words)
    assert len(messages(done)) == 2, done
    notes.root("rm -f /var/lib/device", check=True)
    wait_until_empty(lambda: leftovers(notes))


def test_five_hundred_files_and_no_more(notes):
    notes.run(["sh", "-ec", "seq 600 | xargs touch"], cwd=NOTES, check=True)
    files = [f"@{NOTES}/{number}" for number in range(1, 602)]
    assert len(arguments(notes, *files[:500])) == 500
    assert_refused(pi(notes, "sh", "true", *files[:501]), USAGE, "more than 500 files")


PIXEL = b"\x89PNG\r\n\x1a\n" + b"".join(
    struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    for kind, data in ((b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(b"\0\xff\0\0")), (b"IEND", b""))
)


def test_the_real_agent_reads_them_and_shows_its_model_the_picture(playing):
    machine = playing  # whose policy comes back
    machine.install_policy(STANDARD_POLICY)
    machine.write(f"{HOME}/quokka.txt", "what quokkas eat: leaves\n", owner="alice")
    machine.write(f"{HOME}/rules.md", "rule 7311: be brief\n", owner="alice")
    machine.write(f"{HOME}/dot.png", PIXEL, owner="alice")
    machine.forget_model_requests()
    try:
        done = pi(machine, "-p", f"@{HOME}/quokka.txt", "@~/dot.png", "--append-system-prompt", f"{HOME}/rules.md", json.dumps({"steps": [], "say": "finished"}))
        assert done.returncode == 0, done
        asked = json.dumps(machine.model_requests()[-1])
        assert "what quokkas eat: leaves" in asked and "rule 7311: be brief" in asked, asked
        assert "/run/pi-agent/named/2/dot.png" in asked, asked
    finally:
        machine.root(f"rm -f {HOME}/quokka.txt {HOME}/rules.md {HOME}/dot.png", check=True)
        machine.install_policy(PLAYING_POLICY)

"""The user's config directory: what of it the agent sees, and what happens when it is not what it should be."""

import time

import pytest
from launching import DEMO, INVALID, PLAYING_POLICY, STATE, agent_says, assert_refused, messages, pi, picture

pytestmark = pytest.mark.usefixtures("playing")

CONFIG = "/home/alice/.pi/agent"
INSIDE = f"{STATE}/alice/home/.pi/agent"


@pytest.fixture(autouse=True)
def config(machine):
    """An empty config directory of alice and no state of her agent; her own config comes back afterwards."""
    machine.run("mv .pi .pi-kept && mkdir -p .pi/agent", check=True)
    machine.root(["rm", "-rf", f"{STATE}/alice"], check=True)
    yield
    machine.root("cd /home/alice && rm -rf .pi && mv .pi-kept .pi", check=True)


def in_config(machine, script):
    machine.run(script, cwd=CONFIG, check=True)


def shown(machine, script="find . ! -name . -printf '%P\\n' | sort"):
    """What a command in the agent's config directory says, inside."""
    return agent_says(machine, "sh", f'cd "$PI_CODING_AGENT_DIR" && {script}')


def assert_skipped(done, *names_and_reasons):
    """The session went on, and exactly these files were left out, by name and with the reason."""
    expected = sorted(f"pi: config: skipped {CONFIG}/{name}: {reason}" for name, reason in names_and_reasons)
    assert (done.returncode, sorted(messages(done))) == (0, expected), done


def test_files_of_every_kind_of_name_and_content_are_there_inside(machine):
    in_config(machine, """
        mkdir -p skills/deep/er prompts .git/empty
        echo hi >AGENTS.md; echo '// x' >models.json; : >empty; touch -d 2001-02-03 old
        printf '#!/bin/sh\\n' >skills/deep/er/run; chmod 755 skills/deep/er/run
        head -c 3000000 /dev/urandom >prompts/binary
        printf x >$'new\\nline %n $HOME'; printf y >$'\\xff\\xfe'; printf z >-rf
    """)  # fmt: skip
    outside = machine.run("find . -type f -print0 | sort -z | xargs -0 sha256sum", cwd=CONFIG).stdout
    inside = shown(machine, "find . -type f ! -name settings.json -print0 | sort -z | xargs -0 sha256sum")
    assert inside == outside and inside.count(b"\n") == 9
    facts = shown(machine, "stat -c '%U %a %Y' old; test -x skills/deep/er/run && echo runs; test -d .git/empty && echo empty; id -un")
    assert facts.split(b"\n")[:2] == [b"pi-agent-alice 600 " + machine.run("stat -c %Y old", cwd=CONFIG).stdout.strip(), b"runs"]
    assert b"\nempty\n" in facts


def test_the_users_own_files_are_left_as_they_are_whatever_the_agent_does(machine):
    in_config(machine, """
        mkdir skills; echo mine >skills/a; ln -s skills/a link
        echo '{"theme": "dark"}' >settings.json; echo '{}' >auth.json
    """)  # fmt: skip
    before = picture(machine, "/home/alice/.pi")
    shown(machine, "for f in settings.json auth.json skills/a link; do echo changed >$f; done; rm -r skills")
    pi(machine, "sh", "true", check=True)  # which says that it repairs auth.json
    assert picture(machine, "/home/alice/.pi") == before


def test_what_the_user_changes_is_there_at_the_next_start(machine):
    in_config(machine, "echo one >AGENTS.md")
    assert shown(machine, "cat AGENTS.md") == b"one\n"
    in_config(machine, "echo two >AGENTS.md; mkdir later; echo new >later/file")
    assert shown(machine, "cat AGENTS.md later/file") == b"two\nnew\n"


def test_what_the_agent_changed_in_a_mirrored_file_is_the_users_again_at_the_next_start(machine):
    in_config(machine, "echo mine >AGENTS.md; mkdir d; echo mine >d/file")
    shown(machine, "echo its >AGENTS.md; rm -r d; ln -s /etc d; mkdir settings.json.d")
    assert shown(machine, "cat AGENTS.md d/file; ls -ld d | cut -c1") == b"mine\nmine\nd\n"


def test_sessions_locks_logs_and_what_the_agent_owns_are_not_copied(machine):
    in_config(machine, """
        for d in sessions tmp auth.json.lock mcp-auth-refresh-1 skills; do mkdir $d; touch $d/file; done
        touch pi.log models-store.json crashes.json
    """)  # fmt: skip
    assert shown(machine, "find . -type f | sort") == b"./settings.json\n./skills/file\n"


def test_a_missing_config_directory_is_an_empty_one(machine):
    machine.run("rm -r ~/.pi", check=True)
    assert shown(machine) == b"settings.json\n"
    machine.run("test ! -e ~/.pi && mkdir -p ~/.pi/agent", check=True)


def test_a_config_directory_may_be_a_link_and_hold_links_that_the_user_can_follow(machine):
    machine.run("rmdir .pi/agent && ln -s ~/dotfiles .pi/agent && mkdir -p dotfiles/skills", check=True)
    machine.run("echo linked >skills/a; ln -s /etc/hostname host; ln -s skills more", cwd="/home/alice/dotfiles", check=True)
    said = shown(machine, "cat skills/a more/a; cmp host /etc/hostname; find . -type l")
    machine.run("rm -r ~/dotfiles", check=True)
    assert said == b"linked\nlinked\n./more\n"


@pytest.mark.parametrize("config", [".config/my agent", "/home/alice/config-of-alice"])
def test_the_policy_can_name_another_config_directory(machine, playing_policy, config):
    directory = config if config.startswith("/") else f"/home/alice/{config}"
    machine.run(["sh", "-c", 'mkdir -p "$1" && echo there >"$1/AGENTS.md"', "sh", directory], check=True)
    playing_policy(PLAYING_POLICY.replace("  alice:\n", f'  alice:\n    config: "{config}"\n'))
    said = shown(machine, "cat AGENTS.md")
    machine.run(["rm", "-r", directory], check=True)
    assert said == b"there\n"


MAKE_UNUSABLE = [
    ("chmod 0 agent", "Permission denied"),
    ("chmod 0 .", "Permission denied"),
    ("rmdir agent; echo file >agent", "Not a directory"),
    ("rmdir agent; mkfifo agent", "Not a directory"),
    ("rmdir agent; ln -s /dev/zero agent", "Not a directory"),
    ("rmdir agent; ln -s agent agent", "Too many levels of symbolic links"),
    ("rmdir agent; ln -s /root agent", "Permission denied"),
    ("rmdir agent; ln -s /home/bob/.pi/agent agent", "Permission denied"),
]


@pytest.mark.parametrize(("script", "reason"), MAKE_UNUSABLE)
def test_a_config_directory_that_cannot_be_used_is_an_error_that_loses_nothing(machine, script, reason):
    in_config(machine, "echo kept >AGENTS.md")
    assert shown(machine, "cat AGENTS.md") == b"kept\n"
    before = picture(machine, f"{STATE}/alice")
    in_config(machine, "rm AGENTS.md")
    machine.run(script, cwd="/home/alice/.pi", check=True)
    done = pi(machine, "sh", "echo ran")
    remedy = "make it a directory that you can read"
    assert_refused(done, INVALID, "your config directory cannot be used", f"opening {CONFIG}: {reason}", remedy)
    assert picture(machine, f"{STATE}/alice") == before


def test_a_config_directory_that_links_to_nothing_is_an_error(machine):
    machine.run("rmdir agent; ln -s /home/alice/unmounted agent", cwd="/home/alice/.pi", check=True)
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, "your config directory cannot be used", CONFIG)


def test_10000_files_are_copied_and_are_all_there(machine):
    in_config(machine, "mkdir many; cd many; for d in $(seq 100); do mkdir $d; touch $d/f{1..100}; done; echo last >100/f100")
    assert shown(machine, "find many -type f | wc -l; cat many/100/f100") == b"10000\nlast\n"
    in_config(machine, "echo changed >many/57/f3")
    assert shown(machine, "find many -type f | wc -l; cat many/57/f3") == b"10000\nchanged\n"


def test_what_is_no_file_is_skipped_by_name_and_the_rest_is_there(machine):
    in_config(machine, "mkdir sub; mkfifo fifo sub/pipe; ln -s /dev/zero device; ln -s /dev/tty terminal; touch rest sub/rest")
    in_config(machine, "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'")
    done = pi(machine, "sh", "true")
    names = ("fifo", "socket", "device", "terminal", "sub/pipe")
    assert_skipped(done, *((name, "neither a file nor a directory") for name in names))
    done = pi(machine, "sh", 'cd "$PI_CODING_AGENT_DIR" && find . -type f | sort')
    assert done.stdout == b"./rest\n./settings.json\n./sub/rest\n"


def test_a_real_device_node_is_skipped_by_name(machine):
    machine.root(["mknod", f"{CONFIG}/node", "c", "1", "5"], check=True)
    assert_skipped(pi(machine, "sh", "true"), ("node", "neither a file nor a directory"))


def test_links_that_lead_nowhere_or_in_circles_are_skipped_by_name(machine):
    in_config(machine, "ln -s /nowhere dangling; ln -s loop loop; ln -s two one; ln -s one two; mkdir d; ln -s .. d/up; ln -s . self")
    done = pi(machine, "sh", "true")
    loops = ((name, "a loop of links") for name in ("loop", "one", "two"))
    above = ((name, "a link back to a directory above it") for name in ("d/up", "self"))
    assert_skipped(done, ("dangling", "opening: No such file or directory"), *loops, *above)


def test_files_that_the_user_may_not_read_are_skipped_by_name(machine):
    in_config(machine, "mkdir shut half; touch closed shut/file half/file; chmod 0 closed shut; chmod 444 half")
    denied = "opening: Permission denied"
    assert_skipped(pi(machine, "sh", "true"), ("closed", denied), ("shut", denied), ("half/file", "examining: Permission denied"))


def test_a_link_to_what_only_root_may_read_shows_nothing_of_it(machine):
    secret = "the-secret-of-root-4823"
    machine.write("/etc/secret-of-root", secret, mode=0o600)
    in_config(machine, "ln -s /etc/shadow shadow; ln -s /etc/shadow AGENTS.md; ln -s /etc/secret-of-root secret; ln -s /root root")
    in_config(machine, "ln -s /home/bob/.pi bob")
    done = pi(machine, "sh", "true")
    names = ("shadow", "secret", "root", "AGENTS.md", "bob")
    assert_skipped(done, *((name, "opening: Permission denied") for name in names))
    for words in (secret, *machine.read("/etc/shadow").decode().splitlines()):
        assert machine.root(["grep", "-rF", "--", words, "/var/lib/pi-agent"]).returncode == 1, words
    machine.root(["rm", "/etc/secret-of-root"], check=True)


def test_a_name_that_is_skipped_cannot_forge_a_message(machine):
    in_config(machine, "mkfifo $'x\\n\\x1b[2Kpi: forged'")
    done = pi(machine, "sh", "true")
    assert messages(done) == [rf"pi: config: skipped {CONFIG}/x\x0a\x1b[2Kpi: forged: neither a file nor a directory"]


def test_many_skipped_files_are_counted_and_not_all_named(machine):
    in_config(machine, "for i in $(seq 100 149); do mkfifo f$i; done")
    done = pi(machine, "sh", "true")
    assert done.returncode == 0 and len(messages(done)) == 21
    assert messages(done)[-1] == "pi: and 30 more"


def test_a_launch_that_was_refused_copies_nothing(machine):
    in_config(machine, "echo x >AGENTS.md")
    assert pi(machine, "sh", "echo ran", cwd="/tmp").returncode == 77
    assert machine.root(["test", "-e", f"{STATE}/alice"]).returncode == 1


def test_config_and_state_are_apart_for_every_user(machine):
    in_config(machine, "echo of alice >AGENTS.md")
    assert shown(machine, "cat AGENTS.md") == b"of alice\n"
    done = pi(machine, "sh", f'ls "$PI_CODING_AGENT_DIR"; ls {STATE}/alice {INSIDE}', user="carol", cwd="/srv/devs")
    assert b"AGENTS.md" not in done.stdout and b"models.json" in done.stdout, done
    assert b"of alice" not in done.stdout and done.returncode != 0
    assert DEMO not in done.stdout.decode()


def test_a_configuration_that_takes_long_is_waited_for_by_all_that_the_start_does_beside(machine):
    """Other children of the runner have more to say than a socket holds, and are not listened to meanwhile."""
    seconds = 9  # more than a child waits for another
    in_config(machine, """echo '{"openai": {"type": "api_key", "key": "1"}}' >auth.json""")
    agent_says(machine, "sh", "true")
    in_config(machine, """echo '{"openai": {"type": "api_key", "key": "2"}}' >auth.json""")
    machine.root("cp -a /etc/bash.bashrc /etc/bash.bashrc-kept; yes '# much' | head -c 900000 >>/etc/bash.bashrc", check=True)
    lock = f"{INSIDE}/auth.json.lock"
    held = machine.popen(["sh", "-c", f"mkdir {lock}; chown pi-agent-alice {lock}; echo held; sleep {seconds}; rmdir {lock}"], user="root")
    try:
        assert held.stdout.readline() == b"held\n"
        begun = time.monotonic()
        assert agent_says(machine, "sh", "wc -c </etc/bash.bashrc; grep -o '\"2\"' $PI_CODING_AGENT_DIR/auth.json").split()[1] == b'"2"'
        assert time.monotonic() - begun > seconds - 2
    finally:
        held.kill_all()
        held.wait()
        machine.root("mv /etc/bash.bashrc-kept /etc/bash.bashrc", check=True)


def test_a_umask_that_takes_its_owners_rights_does_not_shut_the_agent_out(machine):
    """Its sessions would get mode 000, and no agent starts then."""
    done = machine.run(f"umask 0777; cd {DEMO}; pi sh 'umask; mkdir -p $PI_CODING_AGENT_DIR/sessions; : >$PI_CODING_AGENT_DIR/sessions/one'", check=True)
    assert done.stdout == b"0077\n", done
    assert shown(machine, "cat sessions/one; chmod 0 sessions; echo closed") == b"closed\n"
    assert shown(machine, "cat sessions/one && echo open") == b"open\n"
    umask = machine.run(f"umask 0027; cd {DEMO}; pi sh umask", check=True)
    assert umask.stdout == b"0027\n", umask

"""The Debian package: from nothing to `pi` in three commands, upgraded under a session, removed, purged and put back."""

import json
import re
from pathlib import Path

import pytest
from launching import DEMO, PLAYING_AGENT, PLAYING_POLICY, leftovers, owner_and_mode, pi, read_line, session, wait_until_empty
from test_undo import MADE, PROJECT, acting, changes, ctl, is_as_before

POLICY = "/etc/pi-agent/policy.yaml"
STATE = "/var/lib/pi-agent"
RULE = "/etc/sudoers.d/pi-agent"
AGENT = "/usr/lib/pi-agent/agent"
HOME_OF_AGENT = f"{STATE}/users/alice/home"
KEPT = f"{HOME_OF_AGENT}/kept.txt"
SHIPPED = ["/usr/bin/pi", "/usr/bin/pi-agentctl", "/usr/libexec/pi-agent", "/usr/share/pi-agent", "/usr/share/man/man1/pi.1.gz"]


@pytest.fixture
def absent(packaged):
    """The machine as it is before the product comes, also after a test that failed."""
    # What the removal tells to do about the agent that it leaves closed; a purge of the state takes the note of what was hidden, too.
    packaged.machine.root(f"touch /etc/pi-agent/purge-state; dpkg --purge pi-agent; chown root:root {AGENT}; chmod 0755 {AGENT}", check=True)
    return packaged


@pytest.fixture
def playing(absent):
    """The product of the package, and an agent that does what its arguments say."""
    absent.install()
    machine = absent.machine
    machine.write(PLAYING_AGENT, Path(__file__).with_name("playing_agent.py").read_text(), mode=0o755)
    machine.install_policy(PLAYING_POLICY)
    return absent


def test_lintian_has_no_complaint(packaged):
    packaged.build.judge_package(packaged.package)


def test_a_user_types_pi_after_three_commands_of_the_administrator(absent):
    machine = absent.machine
    told = absent.install().stdout.decode()
    assert "sudo pi-agentctl init, then sudo pi-agentctl apply" in told, told
    assert pi(machine, "-p", "hello").returncode != 0
    machine.root(["pi-agentctl", "init", "--network", "loopback"], check=True)  # where the model is
    machine.root(["pi-agentctl", "apply"], check=True)
    done = pi(machine, "-p", "Leave a file here.", env={"PI_OFFLINE": "1"})
    assert done.returncode == 0, done
    owner = machine.root(["stat", "--format=%U", f"{DEMO}/hello.txt"], check=True).stdout
    machine.root(["rm", f"{DEMO}/hello.txt"], check=True)
    assert owner == b"alice\n"


# A package with one conffile, made and installed.
LATER = """mkdir -p /root/later/DEBIAN /root/later/etc/later && cd /root/later && echo a setting >etc/later/later.conf
echo /etc/later/later.conf >DEBIAN/conffiles && printf 'Package: later\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@example.org>\\nDescription: later\\n' >DEBIAN/control
dpkg-deb --build --root-owner-group /root/later /root/later.deb && dpkg -i /root/later.deb"""


def test_what_a_package_brings_to_etc_later_is_seen_at_the_next_start(playing):
    machine = playing.machine
    try:
        machine.root(LATER, check=True)
        assert pi(machine, "sh", "cat /etc/later/later.conf", check=True).stdout == b"a setting\n"
    finally:
        machine.root("dpkg --purge later; rm -r /root/later /root/later.deb", check=True)
    assert b"No such file" in pi(machine, "sh", "cat /etc/later/later.conf").stderr


def test_the_account_is_there_from_the_installation_on(absent):
    absent.machine.root("userdel pi-agent; true", check=True)
    absent.install()
    entry = absent.machine.root(["getent", "passwd", "pi-agent"], check=True).stdout.decode().strip().split(":")
    assert entry[5:] == [STATE, "/usr/sbin/nologin"] and 0 < int(entry[2]) < 1000, entry


def test_a_session_outlives_an_upgrade_of_the_package(playing):
    machine = playing.machine
    with session(machine, "sh", "echo ready; read line; echo still $line; exit 3") as running:
        assert "pi-agentctl" not in playing.install(playing.newer).stdout.decode()
        assert pi(machine, "sh", "echo new").stdout == b"new\n"
        out, err = running.communicate(b"here\n", timeout=20)
        assert (running.returncode, out, err) == (3, b"still here\n", b"")
    wait_until_empty(lambda: leftovers(machine))


@pytest.fixture
def project(playing):
    """As test_undo has it, with its copy."""
    playing.machine.run(["sh", "-c", MADE, "sh", PROJECT], cwd="/", check=True)
    yield playing.machine
    playing.machine.root(["rm", "-rf", PROJECT, f"{PROJECT}.copy"], check=True)


LOSES = "rm -rf src .env; echo agent >new; chmod 600 .gitignore"
HARM = {".env": "deleted", ".gitignore": "mode", "new": "created", "src": "deleted", "src/a.c": "deleted"}


@pytest.mark.parametrize("when", ["while the session lives", "after its end"])
def test_undo_takes_back_over_an_upgrade_of_the_package(playing, project, when):
    with acting(project, f"{LOSES}; echo done; read line", PROJECT) as running:
        assert read_line(running) == b"done\n"
        if when == "while the session lives":
            playing.install(playing.newer)
        running.communicate(b"\n", timeout=60)
    if when == "after its end":
        playing.install(playing.newer)
    assert ctl(project, "undo", "--yes").returncode == 0
    assert is_as_before(project)


def test_undo_takes_back_what_a_session_did_before_the_host_went_down(project):
    """All at once, with the session in it; what a disk loses of it is in tests/unit/undo."""
    with acting(project, f"{LOSES}; echo done; sleep 600", PROJECT) as running:
        assert read_line(running) == b"done\n"
        project.go_down()
    project.boot()
    assert not is_as_before(project)
    assert changes(project) == {f"undo/{path}": change for path, change in HARM.items()}
    assert ctl(project, "undo", "--yes").returncode == 0
    assert is_as_before(project) and changes(project) == {}


def test_removal_ends_sessions_and_keeps_policy_and_state(playing):
    machine = playing.machine
    assert pi(machine, "sh", "echo kept >~/kept.txt").returncode == 0
    with session(machine, "sh", "echo ready; sleep 60") as running:
        told = playing.apt("remove", "pi-agent").stdout.decode()
        assert b"the administrator ended it" in running.communicate(timeout=20)[1]
    assert [path for path in (RULE, *SHIPPED) if playing.has(path)] == []
    assert playing.has(POLICY) and machine.read(KEPT) == b"kept\n"
    # Nothing confines the agent now, so nobody but root can run it, until the administrator says otherwise.
    assert machine.run([PLAYING_AGENT, "sh", "id -un"]).returncode != 0
    assert f"the agent in {PLAYING_AGENT} stays closed to everybody but root" in told and f"chmod 0755 {PLAYING_AGENT}" in told, told
    assert "nobody can start pi yet: sudo pi-agentctl apply" in playing.install().stdout.decode()
    machine.root(["pi-agentctl", "apply", "--no-canary"], check=True)
    assert pi(machine, "sh", "cat ~/kept.txt").stdout == b"kept\n"


@pytest.mark.parametrize("rights", ["root:adm 751", "root:staff 750"])
def test_what_was_hidden_belongs_to_no_group_that_is_not_there(playing, rights):
    """A program that was the policy's once, and one that is it now: open again before their group's number is anybody's."""
    machine = playing.machine
    other = "/opt/other-agent"
    owner, mode = rights.split()
    machine.root(f"mkdir -p {other}/bin && cp {PLAYING_AGENT} {other}/bin/pi && chown {owner} {other} && chmod {mode} {other}", check=True)
    try:
        machine.install_policy(PLAYING_POLICY.replace(PLAYING_AGENT, f"{other}/bin/pi"))
        assert owner_and_mode(machine, other) == "root:pi-agent 750"
        machine.install_policy(PLAYING_POLICY)  # back again
        assert owner_and_mode(machine, other) == rights and owner_and_mode(machine, PLAYING_AGENT) == "root:pi-agent 750"
        machine.root(["pi-agentctl", "remove", "--state", "--accounts", "--yes"], check=True)
        assert owner_and_mode(machine, PLAYING_AGENT).startswith("root:root 755")
        assert machine.root("find /usr /opt /etc /var/lib -nogroup -o -nouser", check=True).stdout == b""
    finally:
        machine.root(["rm", "-r", other], check=True)


def test_what_was_hidden_for_a_group_that_is_gone_comes_back(playing):
    machine = playing.machine
    other = "/opt/other-agent"
    machine.root(f"mkdir -p {other}/bin && cp {PLAYING_AGENT} {other}/bin/pi && chown root:staff {other} && chmod 0750 {other}", check=True)
    try:
        machine.install_policy(PLAYING_POLICY.replace(PLAYING_AGENT, f"{other}/bin/pi"))
        assert owner_and_mode(machine, other) == "root:pi-agent 750"
        machine.root(["chgrp", "64999", other], check=True)  # as when somebody has removed the group
        machine.install_policy(PLAYING_POLICY)
        assert owner_and_mode(machine, other) == "root:staff 750"
    finally:
        machine.root(["rm", "-r", other], check=True)


def test_a_group_that_something_belongs_to_stays(playing):
    machine = playing.machine
    machine.root(f"chgrp pi-agent {PLAYING_AGENT}; chmod 755 {PLAYING_AGENT}", check=True)  # not as apply leaves it
    try:
        done = machine.root(["pi-agentctl", "remove", "--state", "--accounts", "--yes"])
        assert done.returncode == 78 and f"{PLAYING_AGENT} belongs to the group pi-agent".encode() in done.stderr, done
        assert machine.root(["getent", "group", "pi-agent"]).returncode == 0
    finally:
        machine.root(f"chgrp root {PLAYING_AGENT}", check=True)


def test_a_purge_keeps_the_homes_unless_they_are_to_go(playing):
    machine = playing.machine
    assert pi(machine, "sh", "echo kept >~/kept.txt; ln -s /etc/hostname ~/link; chmod 0 ~").returncode == 0
    assert b"stay in /var/lib/pi-agent" in playing.apt("purge", "pi-agent").stdout
    assert not playing.has("/etc/pi-agent") and not playing.has(f"{STATE}/records") and machine.read(KEPT) == b"kept\n"
    playing.install()
    machine.install_policy(PLAYING_POLICY)
    assert pi(machine, "sh", "cat ~/kept.txt").stdout == b"kept\n"
    machine.root(["touch", "/etc/pi-agent/purge-state"], check=True)
    playing.apt("purge", "pi-agent")
    assert [path for path in (STATE, "/etc/pi-agent", "/run/pi-agent", RULE, *SHIPPED) if playing.has(path)] == []
    assert playing.has("/etc/hostname")
    named = "find / -xdev ( -path /root -o -path /var/log -o -path /usr/lib/pi-agent ) -prune -o -name *pi-agent* -print"
    assert machine.root(named.split(), check=True).stdout == b""


def test_a_purge_finds_homes_that_are_elsewhere(playing):
    machine = playing.machine
    assert pi(machine, "sh", "echo kept >~/kept.txt").returncode == 0
    policy = PLAYING_POLICY.replace("agent:\n", "agent:\n  state_dir: /srv/agents\n") + "wrapper: {command_name: agent}\n"
    machine.write(POLICY, policy)
    machine.root(["pi-agentctl", "state", "move", "--yes"], check=True)
    machine.install_policy(policy)
    assert playing.has("/usr/bin/agent")
    assert b"stay in /srv/agents" in playing.apt("purge", "pi-agent").stdout
    assert machine.read("/srv/agents/users/alice/home/kept.txt") == b"kept\n" and not playing.has("/usr/bin/agent")
    playing.install()
    machine.install_policy(policy)
    assert pi(machine, "sh", "cat ~/kept.txt").stdout == b"kept\n"
    machine.root(["touch", "/etc/pi-agent/purge-state"], check=True)
    machine.write(f"{STATE}/applied/state.json", '{"place": "/srv/agents"}\n', mode=0o600)  # as the message about a damaged note has it written
    playing.apt("purge", "pi-agent")
    assert [path for path in ("/srv/agents", STATE, "/usr/bin/agent") if playing.has(path)] == []


@pytest.mark.parametrize("note, copies", [('{\n "place": "/var/lib/pi-agent",\n "next": "/srv/agents"\n}\n', "users.moving"),
                                          ('{\n "place": "/srv/agents",\n "former": "/srv/earlier"\n}\n', "users.leaving")], ids=["on its way", "leaving"])  # fmt: skip
def test_a_purge_finds_homes_of_a_move_that_was_interrupted(playing, note, copies):
    """As a kill of `state move` leaves them: the note has all places, and each may have homes."""
    machine = playing.machine
    assert pi(machine, "sh", "echo kept >~/kept.txt").returncode == 0
    machine.root(f"for place in /srv/agents /srv/earlier; do mkdir -p $place/sessions $place/{copies}/alice/home && echo x >$place/{copies}/alice/home/kept.txt; done", check=True)
    machine.write(f"{STATE}/applied/state.json", note, mode=0o600)
    places = json.loads(note).values()
    done = playing.apt("purge", "pi-agent")
    assert all(f"stay in {place}".encode() in done.stdout for place in places), done
    assert machine.root(["test", "-e", f"/srv/agents/{copies}/alice/home/kept.txt"]).returncode == 0
    playing.install()
    machine.root("mkdir -p /etc/pi-agent && touch /etc/pi-agent/purge-state", check=True)
    playing.apt("purge", "pi-agent")
    assert [path for path in (*places, STATE) if playing.has(path)] == []
    machine.root(["rm", "-rf", "/srv/agents", "/srv/earlier"], check=True)


def test_what_a_killed_first_apply_made_goes_with_the_package(playing):
    machine = playing.machine
    machine.install_policy(PLAYING_POLICY + "wrapper: {command_name: agent}\n")
    machine.root(f"cd {STATE}/applied && rm -f last.json previous.json && touch unfinished.json", check=True)  # as a kill before its end leaves it
    assert playing.has("/usr/bin/agent")
    playing.apt("remove", "pi-agent")
    assert [path for path in (RULE, "/usr/bin/agent", f"{STATE}/applied/unfinished.json") if playing.has(path)] == []


def manual(machine, page):
    text = machine.root(["man", "--pager=cat", page], env={"MANWIDTH": "500"}, check=True).stdout.decode()
    return re.sub(r".\x08", "", text)


BELOW = ("state prune ", "state reset ", "state export ", "state move ", "agent list ", "agent upgrade ", "agent rollback ", "agent prune ", "user add ", "user remove ")
EVERY_COMMANDS = ("--help", "--help-all", "--quiet", "--verbose")  # said once, for all commands


def test_the_manual_knows_every_option_command_and_key(absent):
    absent.install()
    machine = absent.machine
    wrapper = machine.run(["pi", "--pi-agent-help"], check=True).stdout.decode()
    options = set(re.findall(r"--pi-agent-[a-z]+", wrapper))
    assert len(options) > 4 and [option for option in options if option not in manual(machine, "pi")] == []
    page = manual(machine, "pi-agentctl")
    answers = [machine.root(["pi-agentctl", "complete", ""], check=True).stdout.decode()]
    commands = re.findall(r"^([a-z-]+)\t", answers[0], re.MULTILINE)
    for command in [*(f"{one} " for one in commands), *BELOW]:
        said = machine.root(["pi-agentctl", "complete", *command.split(), "--"], check=True).stdout.decode()
        known = re.findall(r"^(--[a-z-]+)\t", said, re.MULTILINE)
        entries = re.findall(rf"^ +{command.strip()}(?: .*)?$", page, re.MULTILINE)  # one for each way of calling it
        assert entries and [option for option in known if option not in " ".join(entries) and option not in EVERY_COMMANDS] == [], command
    assert [option for option in EVERY_COMMANDS if option not in page] == []
    schema = json.loads(machine.run(["pi-agentctl", "show", "--schema"], check=True).stdout)
    policy = manual(machine, "pi-agent-policy")
    for name, section in schema["properties"].items():
        for key in [name, *(f"{name}.{below}" for below in section.get("properties", {}))]:
            assert re.search(rf"^ +{re.escape(key)}$", policy, re.MULTILINE), key
    assert "pi-agent-run-ID.scope" in manual(machine, "pi-agent-runner")

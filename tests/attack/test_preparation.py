"""What a user or an agent rearranges while root prepares a session: configuration, directories, policy and names."""

import contextlib
import json
import time

import pytest
from recipes import MACHINES
from target import DEMO, INSIDE, Outcome

pytestmark = pytest.mark.position("user")

STATE = "/var/lib/pi-agent/users/{}/home"
CONFIG = "/home/alice/.pi/agent"

# --- the agent's home, which the agent can rearrange between two sessions and during one


@pytest.mark.position("agent")
def test_a_link_in_the_agents_home_leads_the_writer_nowhere(prove):
    """The agents of alice and bob share an account: what is written for alice would land in bob's state."""

    def attack(target):
        theirs = f"{STATE.format('bob')}/.pi/agent/AGENTS.md"
        target.machine.write(f"{CONFIG}/AGENTS.md", "from alice\n", owner="alice")
        target.machine.root(["rm", "-f", theirs], check=True)
        target.pi("sh", "-c", f"rm -rf $HOME/.pi && ln -s {STATE.format('bob')}/.pi $HOME/.pi", check=True)
        target.pi("true", check=True)
        landed = target.machine.root(["test", "-e", theirs]).returncode == 0
        target.pi("sh", "-c", "test -L $HOME/.pi && rm $HOME/.pi; true", check=True)
        target.machine.root(["rm", "-f", theirs, f"{CONFIG}/AGENTS.md"], check=True)
        return Outcome(landed)

    prove(attack, "beneath")


OBSTACLES = {
    "a link to a file": "ln -s /etc/passwd $HOME/.pi/agent/settings.json",
    "a dangling link": "ln -s /nowhere $HOME/.pi/agent/settings.json",
    "a directory": "mkdir -p $HOME/.pi/agent/settings.json/x/y",
    "a closed directory": "mkdir -p $HOME/.pi/agent/settings.json/x && chmod 0 $HOME/.pi/agent/settings.json",
    "a pipe": "mkfifo $HOME/.pi/agent/settings.json",
    "a socket": "python3 -c 'import os, socket; os.chdir(os.environ[\"HOME\"] + \"/.pi/agent\"); socket.socket(1).bind(\"settings.json\")'",
    "a huge file": "truncate -s 1T $HOME/.pi/agent/settings.json",
    "nothing, in a closed directory": "chmod 0 $HOME/.pi/agent",
}


@pytest.mark.position("agent")
@pytest.mark.parametrize("kind", OBSTACLES)
def test_in_place_of_its_settings_the_agent_leaves(kind, product, control_seen):
    look = ["stat", "-c", "%F %s", f"{STATE.format('alice')}/.pi/agent/settings.json"]
    product.pi("true", check=True)
    before = product.machine.root(look, check=True).stdout
    product.pi("sh", "-c", f"rm -rf $HOME/.pi/agent/settings.json; {OBSTACLES[kind]}")
    assert product.machine.root(look).stdout != before
    control_seen("between the two starts root sees that the settings are gone")
    done = product.pi("sh", "-c", "cat $HOME/.pi/agent/settings.json; chmod 700 $HOME/.pi/agent")
    assert b"quokka-settings-3307" in done.stdout, done
    assert b"root:x:0:0" in product.machine.read("/etc/passwd")


@pytest.mark.position("agent")
def test_a_directory_swapped_for_a_link_all_the_time_is_never_written_through(product, control_seen):
    """The agent of one session swaps while the next one is prepared."""
    swapping = """
import os
home, target = os.environ["HOME"], "/var/lib/pi-agent/users/alice/home/trap"
os.makedirs(target, exist_ok=True)
os.makedirs(home + "/.pi/agent/prompts", exist_ok=True)
print(os.environ["PI_AGENT_SESSION"], flush=True)
name = home + "/.pi/agent/prompts"
while True:
    for step in (lambda: os.rename(name, name + "-away"), lambda: os.symlink(target, name), lambda: os.unlink(name),
                 lambda: os.rename(name + "-away", name)):
        try:
            step()
        except OSError:
            pass
"""
    product.machine.root(f"install -d -o alice {CONFIG}/prompts; for i in $(seq 200); do echo $i >{CONFIG}/prompts/$i.md; done", check=True)
    session = product.session("python3", "-c", swapping)
    for _ in range(5):
        product.pi("true")  # may fail in words, but must not write elsewhere
    look = f"ls -A {STATE.format('alice')}/trap"
    trap = product.machine.root(look, check=True).stdout
    sprung = product.machine.root(f"touch {STATE.format('alice')}/trap/new; {look}", check=True).stdout
    session.end()
    product.machine.root(f"rm -rf {STATE.format('alice')}/trap {STATE.format('alice')}/.pi/agent/prompts* {CONFIG}/prompts", check=True)
    assert (trap, sprung) == (b"", b"new\n")
    control_seen("the same look sees a file that root makes in the trap")
    product.pi("true", check=True)


# --- the user's side

LINKS = {
    "another user's file": ("/home/bob/secret", "bob"),
    "a file of root": ("/root/secret", "root"),
    "the shadow file": ("/etc/shadow", "root"),
    "the agent's own state": ("/var/lib/pi-agent/users/bob/home/.pi/agent/settings.json", None),
}


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_in_the_users_configuration_gives_the_user_nothing_new(kind, prove):
    goal, owner = LINKS[kind]

    def attack(target):
        if owner and goal.endswith("secret"):
            target.machine.write(goal, "dingo-secret", owner=owner, mode=0o600)
        target.machine.run(["ln", "-sfn", goal, f"{CONFIG}/SYSTEM.md"], check=True)
        done = target.pi("sh", "-c", "cat $HOME/.pi/agent/SYSTEM.md")
        came = target.machine.root(["test", "-s", f"{STATE.format('alice')}/.pi/agent/SYSTEM.md"]).returncode == 0
        target.machine.run(["rm", f"{CONFIG}/SYSTEM.md"], check=True)
        # A start without `become-user` has made root's files in the agent's home.
        target.machine.root(["rm", "-rf", "/var/lib/pi-agent/users/alice"], check=True)
        return Outcome(came or done.stdout != b"", done)

    on, _ = prove(attack, "become-user", quick=True)
    assert on.seen.returncode != 0 and b"skipped" in on.seen.stderr, on


# --- the policy and its roots


@contextlib.contextmanager
def policy_file(target, change, undo):
    target.machine.root(change, check=True)
    try:
        yield
    finally:
        target.machine.root(undo, check=True)


CHANGEABLE = {
    "is writable by its group": ("chmod 664 /etc/pi-agent/policy.yaml", "chmod 644 /etc/pi-agent/policy.yaml"),
    "belongs to a user": ("chown alice /etc/pi-agent/policy.yaml", "chown root /etc/pi-agent/policy.yaml"),
    "lies in a directory that a user owns": ("chown alice /etc/pi-agent", "chown root /etc/pi-agent"),
}


@pytest.mark.position("host")
@pytest.mark.parametrize("kind", CHANGEABLE)
def test_a_policy_that(kind, prove):
    def attack(target):
        with policy_file(target, *CHANGEABLE[kind]):
            answer = target.play("tell(call(lambda c, s: ask(c, s, ['true'])))")
        return Outcome(answer["ended"] is not None, answer)

    on, _ = prove(attack, "trusted-files")
    assert on.seen["status"] == 78 and "/etc/pi-agent" in on.seen["said"], on


def test_a_root_below_the_hosts_own_trees_that_its_user_could_exchange(prove):
    """systemd resolves it again while the session runs, and a link in its place would be followed by root."""

    def attack(target):
        arrange = "install -d -o alice -g alice /opt/alice /opt/alice/project; cp /etc/pi-agent/policy.yaml /run/policy.yaml"
        arrange += "; sed -i 's|roots: .~/projects,|roots: [/opt/alice/project,|' /etc/pi-agent/policy.yaml"
        with policy_file(target, arrange, "cp /run/policy.yaml /etc/pi-agent/policy.yaml; rm -r /opt/alice /run/policy.yaml"):
            answer = target.play("tell(call(lambda c, s: ask(c, s, ['true'], cwd='/opt/alice/project')))")
        return Outcome(answer["ended"] is not None, answer)

    on, _ = prove(attack, "root-place")
    assert on.seen["status"] == 78 and "others could replace" in on.seen["said"], on


# Where a command of the unit could leave a trace, and a name that ends the line before and after it.
TRACE = "/var/lib/pi-agent/users/alice/home/attacked-by-a-name"
SYSTEMD_WITH_EXECUTOR = 254
EVIL = f"/home/alice/evil\nExecStopPost=+/usr/bin/touch {TRACE}\n"


def test_a_root_that_is_a_link_of_the_user_to_a_name_that_systemd_would_run(prove):
    """The text of a property is written into a unit file as it is, and read again at the next reload."""
    arrange = f"""
import os
os.makedirs({EVIL!r} + "/project", exist_ok=True)
os.rename("/home/alice/projects", "/home/alice/projects-away")
os.symlink({EVIL!r}, "/home/alice/projects")
"""
    restore = "import os; os.unlink('/home/alice/projects'); os.rename('/home/alice/projects-away', '/home/alice/projects')"
    asking = f"tell(call(lambda c, s: ask(c, s, ['sleep', '3'], cwd={EVIL + '/project'!r})))"

    def attack(target):
        target.machine.run(["python3", "-c", arrange], check=True)
        try:
            process = target.machine.popen(["python3", "-c", target.prelude + asking])
            # A reload while systemd still starts the unit would end it.
            until = time.monotonic() + 20
            while target.machine.root(["pgrep", "-u", "pi-agent", "-x", "sleep"]).returncode != 0 and process.poll() is None:
                assert time.monotonic() < until, "neither refused nor started"
            target.machine.root(["systemctl", "daemon-reload"], check=True)
            out, _ = process.communicate(timeout=30)
        finally:
            target.machine.run(["python3", "-c", restore], check=True)
        attacked = target.machine.root(["rm", TRACE]).returncode == 0
        told = json.loads(out.splitlines()[-1])
        # Newer ones hand a unit to a program of their own in lines, too, which trips over such a name: that it came so far is all there is.
        if MACHINES[target.machine.recipe].systemd >= SYSTEMD_WITH_EXECUTOR:
            attacked = attacked or "systemd could not prepare the sandbox" in told["said"]
        return Outcome(attacked, told)

    on, _ = prove(attack, "root-links", "root-alphabet", "property-alphabet", quick=True)
    assert on.seen["status"] == 78 and "through the symlink" in on.seen["said"], on


ODD = [f"x\nExecStopPost=+/usr/bin/touch {TRACE}\n", "a b", "quote'\"s", "$HOME ${X} %n %%", "a:b\\c", "-", "x\x1b[31m"]


@pytest.mark.parametrize("name", ODD)
def test_a_working_directory_with_an_odd_name_is_only_a_directory(name, product):
    product.machine.run(["mkdir", "-p", "--", f"{DEMO}/{name}"], check=True)
    session = product.session("sh", "-c", "echo $PI_AGENT_SESSION; pwd; sleep 60", cwd=f"{DEMO}/{name}".encode())
    product.machine.root(["systemctl", "daemon-reload"], check=True)
    session.end()
    product.machine.root(["systemctl", "daemon-reload"], check=True)
    assert product.machine.root(["test", "-e", TRACE]).returncode == 1
    product.machine.root(["rm", "-r", "--", f"{DEMO}/{name}"], check=True)


def test_a_name_cannot_forge_a_line_of_the_journal_or_of_a_message(prove):
    def attack(target):
        name = "/home/alice/outside\nrefused nobody: all is well\x1b[2J"
        target.machine.run(["mkdir", "-p", name], check=True)
        answer = target.play(f"tell(call(lambda c, s: ask(c, s, cwd={name!r})))")
        newest = ["journalctl", "--identifier=pi-agent-runner", "--lines=1", "--output=json", "--all"]
        message = json.loads(target.machine.root(newest, check=True).stdout)["MESSAGE"]
        text = message if isinstance(message, str) else bytes(message).decode()
        return Outcome("\x1b" in text or "\n" in text, {"journal": text, "told": answer["said"]})

    on, _ = prove(attack, "escape")
    assert "refused nobody" in on.seen["journal"] and "\\x1b" in on.seen["told"], on

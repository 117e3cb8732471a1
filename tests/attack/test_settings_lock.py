"""`settings_lock: true`: the merged settings cannot be changed inside, neither in place nor by moving what is above them. So with `mcp_lock`."""

import json

import pytest
from recipes import MACHINES
from target import ATTACK_POLICY, DEMO, Outcome

pytestmark = pytest.mark.position("agent")

SETTINGS = "/home/alice/.pi/agent/settings.json"
LOCKED = ATTACK_POLICY.read_text() + "settings_lock: true\nmcp_lock: true\nmcp: {mcpServers: {quokka: {command: quokka-server}}}\n"
# Whatever it takes for a program that reads $HOME/.pi/agent/settings.json to see the agent's own.
IN_PLACE = [
    "echo {} >settings.json",
    "rm -f settings.json; echo {} >settings.json",
    "echo {} >mine; mv -f mine settings.json",
    "echo {} >mine; ln -f mine settings.json",
    "chmod u+w settings.json; echo {} >settings.json",
    "python3 -c 'import os; os.truncate(\"settings.json\", 0)'",
    "umount settings.json; echo {} >settings.json",
]
ABOVE = [
    "cd $HOME; mv .pi aside; mkdir -p .pi/agent; echo {} >.pi/agent/settings.json",
    "cd $HOME/.pi; mv agent aside; mkdir agent; echo {} >agent/settings.json",
    "cd $HOME; rm -rf .pi; mkdir -p .pi/agent; echo {} >.pi/agent/settings.json",
    "cd $HOME; mkdir -p other/agent; echo {} >other/agent/settings.json; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\".pi\", -100, b\"other\", 2)'",
]


@pytest.fixture(scope="module", autouse=True)
def locked(product, weak):
    for target in (product, weak):
        target.machine.install_policy(LOCKED)
        target.machine.root(f"test -e {SETTINGS} || (install -d -o alice {SETTINGS.rsplit('/', 1)[0]} && echo '{{}}' >{SETTINGS})", check=True)
    yield
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text())


def attack_with(script):
    def attack(target):
        done = target.pi("sh", "-c", f"cd $HOME/.pi/agent; ({script}) >&2; cat $HOME/.pi/agent/settings.json")
        target.pi("sh", "-c", "rm -rf $HOME/aside $HOME/other $HOME/.pi/aside $HOME/.pi/agent/mine; true")
        return Outcome(done.returncode == 0 and b"quokka-settings-3307" not in done.stdout, done)

    return attack


@pytest.mark.parametrize("script", IN_PLACE)
def test_locked_settings_are_not_changed_in_place_by(script, prove, product):
    if script.startswith(("umount", "chmod")):  # needs more than the lock taken out: shown to fail, not to work
        assert not attack_with(script)(product).succeeded
    else:
        prove(attack_with(script), "settings-lock", "locked-directories")


@pytest.mark.parametrize("script", ABOVE)
def test_locked_settings_are_not_shed_with_their_directory_by(script, prove):
    prove(attack_with(script), "locked-directories", "settings-lock" if "rm -rf" in script else "locked-directories")


@pytest.mark.parametrize("script", [script.replace("settings.json", "mcp.json") for script in [*IN_PLACE[:4], ABOVE[1]]])
def test_the_policys_mcp_servers_are_the_only_ones(script, prove):
    def attack(target):
        done = target.pi("sh", "-c", f"cd $HOME/.pi/agent; ({script}) >&2; cat $HOME/.pi/agent/mcp.json")
        target.pi("sh", "-c", "rm -rf $HOME/.pi/aside $HOME/.pi/agent/mine; true")
        return Outcome(done.returncode == 0 and b"quokka-server" not in done.stdout, done)

    prove(attack, "settings-lock", "locked-directories")


@pytest.mark.parametrize("place", [DEMO, f"{DEMO}/below/deep"])
def test_mcp_servers_of_a_project_are_masked_under_mcp_lock(place, prove):
    def attack(target):
        target.machine.run(f"mkdir -p {place}/.pi && echo quokka-project-4410 >{place}/.pi/mcp.json", user="alice", cwd="/", check=True)
        done = target.pi("sh", "-c", "cat .pi/mcp.json; true", cwd=place)
        target.machine.root(["rm", "-rf", f"{place}/.pi", f"{DEMO}/below"], check=True)
        return Outcome(b"quokka-project-4410" in done.stdout, done)

    prove(attack, "mask", quick=True)


def test_locked_settings_of_one_user_do_not_fill_the_memory_that_all_sessions_share(prove):
    def attack(target):
        before = target.machine.read(SETTINGS)
        target.machine.write(SETTINGS, json.dumps({"filler": "x" * 300_000}), owner="alice")
        done = target.pi("sh", "-c", "stat -c %s $HOME/.pi/agent/settings.json")
        target.machine.write(SETTINGS, before, owner="alice")
        return Outcome(done.returncode == 0, done)

    on, _ = prove(attack, "locked-limit")
    assert on.seen.returncode == 78 and b"settings_lock" in on.seen.stderr


def test_a_session_from_before_the_lock_does_not_shed_it_for_others(prove, product, machine_name):
    """In its view nothing is mounted over the settings, so that what holds them can be moved there.

    With systemd 252 the kernel refuses that move (the mounts of the new session are seen in the old one), so there only our refusal shows.
    """
    removing = "echo $PI_AGENT_SESSION; while ! test -e $HOME/go; do sleep 0.05; done; mv $HOME/.pi $HOME/aside; mkdir -p $HOME/.pi/agent"

    def attack(target):
        target.machine.install_policy(ATTACK_POLICY.read_text())
        target.session("sh", "-c", f"{removing}; sleep 60")
        target.machine.install_policy(LOCKED)
        own = "echo {} >$HOME/.pi/agent/settings.json; cat $HOME/.pi/agent/settings.json"
        done = target.pi("sh", "-c", f"touch $HOME/go; for i in $(seq 100); do test -e $HOME/aside -a -d $HOME/.pi/agent && break; sleep 0.05; done; sleep 0.1; {own}")
        target.end_all()
        target.pi("sh", "-c", "rm -rf $HOME/go $HOME/aside", check=True)
        return Outcome(done.returncode == 0 and b"quokka-settings-3307" not in done.stdout, done)

    on = prove(attack, "locked-sessions")[0] if MACHINES[machine_name].systemd >= 257 else attack(product)
    assert on.seen.returncode == 75 and b"settings_lock" in on.seen.stderr


def test_another_start_with_other_settings_leaves_the_lock_of_a_running_session(prove):
    waiting = "echo $PI_AGENT_SESSION; while ! test -e $HOME/go; do sleep 0.05; done"

    def attack(target):
        before = target.machine.read(SETTINGS)
        session = target.session("sh", "-c", f"{waiting}; echo {{}} >$HOME/.pi/agent/settings.json; cat $HOME/.pi/agent/settings.json; echo end")
        target.machine.write(SETTINGS, '{"new": "on the host"}', owner="alice")
        done = target.pi("sh", "-c", "cat $HOME/.pi/agent/settings.json; touch $HOME/go")
        target.machine.write(SETTINGS, before, owner="alice")
        said = b"".join(iter(session.process.stdout.readline, b"end\n"))
        target.end_all()
        target.pi("rm", "-f", "/var/lib/pi-agent/users/alice/home/go", check=True)
        assert b"on the host" in done.stdout and done.returncode == 0, done
        return Outcome(b"quokka-settings-3307" not in said, said)

    on, _ = prove(attack, "settings-lock", "locked-directories")
    assert b"on the host" not in on.seen, on

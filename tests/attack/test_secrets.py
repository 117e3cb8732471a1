"""Prompts and managed values: nobody but the agent, its user and root gets to see them, while a session runs and after."""

import json
import re

import pytest
from target import DEMO, INSIDE, Outcome

pytestmark = pytest.mark.position("outsider")

REAL_AGENT = "/usr/lib/pi-agent/agent/bin/pi"
MANAGED = ("quokka-settings-3307", "quokka-env-6114", "quokka-per-user-8251")  # as in policy.yaml of this directory
PROMPT, INPUT, SHELL_VARIABLE = "quokka-prompt-1493", "quokka-input-7745", "quokka-shell-9026"
MARKERS = (*MANAGED, PROMPT, INPUT, SHELL_VARIABLE)
# World-readable by design: an administrator puts no secrets into it (pi-agentctl check warns).
POLICY = "/etc/pi-agent/policy.yaml"
# Copies of what everybody can read there, in a directory of root's alone.
APPLIED = ("/var/lib/pi-agent/applied/last.json", "/var/lib/pi-agent/applied/previous.json")
# The agent's own files, and what root alone remembers of the documents that are merged (test_config_sync.py: nobody else reaches it).
STATE_OF_AGENTS = re.compile(r"/var/lib/pi-agent/users/[^/]+/(home/|meta/manifest$)")
MODEL = "/run/scripted-model/"  # what was sent to the model, recorded by the tests' own server
FOUND = "/var/tmp/has-the-marker"  # what the look is to find
SEARCHED = ("/etc", "/run", "/var", "/tmp", "/home", "/srv", "/root", "/dev/shm", "/opt", "/usr/local")
# As the agent: takes its input, says that it is there, and stays.
STAYING = "import os, sys, time; sys.stdin.readline(); print(os.environ['PI_AGENT_SESSION'], os.getpid(), flush=True); time.sleep(600)"
# As the user: becomes `pi`, with a prompt that no process had in its arguments before.
STARTER = f"import os; os.execvp('pi', ['pi', 'python3', '-c', {STAYING!r}, 'quokka-' + {PROMPT.removeprefix('quokka-')!r}])"


def session_with_every_marker(target):
    options = {"program": ("python3", "-c", STARTER), "input": f"{INPUT}\n".encode(), "env": {"SHELL_VARIABLE": SHELL_VARIABLE}}
    return target.session(**options)


@pytest.fixture(scope="module")
def running(product):
    session = session_with_every_marker(product)
    yield session
    session.end()


def everything_systemd_says(target, session):
    script = f"""
for unit in {session.service} {session.scope}; do
    systemctl show $unit; systemctl status --no-pager --full $unit; systemctl cat $unit; systemctl list-dependencies $unit
done
systemctl list-units --all --full --no-legend
"""
    return target.machine.root(script).stdout.decode(errors="replace")


def everything_logged(target):
    """The journal with all its fields, and whatever logs there are as files, sudo's among them."""
    script = "journalctl --all --output=json --no-pager; find /var/log -type f -not -path '*/journal/*' -exec cat {} +"
    return target.machine.root(script).stdout.decode(errors="replace")


def markers_in_proc(target, user):
    """{pid: (uid, markers)}: what this account finds in the arguments and the environment of all processes."""
    script = f"""
import json, os
found = {{}}
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("cmdline", "environ"):
        try:
            text = open(f"/proc/{{pid}}/{{name}}", "rb").read().decode(errors="replace")
            uid = os.stat(f"/proc/{{pid}}").st_uid
        except OSError:
            continue
        if markers := [marker for marker in {MARKERS!r} if marker in text]:
            found[pid] = (uid, found.get(pid, (uid, []))[1] + markers)
print(json.dumps(found))
"""
    done = target.machine.run(["python3", "-"], user=user, input=script.encode(), check=True)
    return {int(pid): (uid, set(markers)) for pid, (uid, markers) in json.loads(done.stdout).items()}


def files_with(target, marker):
    looking = ["grep", "--recursive", "--files-with-matches", "--no-messages", "--devices=skip", "--exclude-dir=attack", marker, *SEARCHED]
    return set(target.machine.root(looking).stdout.decode().splitlines())


@pytest.mark.parametrize("marker", MARKERS)
def test_systemd_tells_nothing_of(marker, running, product, control_seen):
    said = everything_systemd_says(product, running)
    assert running.service in said and "pi-agent-exec" in said, "the look itself does not work"
    # `status` shows the processes of a unit as ps does, and the agent's arguments are the agent's (see below).
    agent = f"{running.agent_pid()} python3"
    tree = [line for line in said.splitlines() if marker in line and agent in line]
    assert len(tree) == (1 if marker == PROMPT else 0)
    assert said.count(marker) == len(tree)
    control_seen("what systemd says has the unit and its program in it")


@pytest.mark.parametrize("marker", MARKERS)
def test_no_log_has(marker, running, product, control_seen):
    logged = everything_logged(product)
    assert running.id in logged and "COMMAND=/usr/libexec/pi-agent/pi-agent-runner" in logged, "the look itself does not work"
    assert marker not in logged
    control_seen("the logs have the session and sudo's line for it")


@pytest.mark.parametrize("user", ["bob", "eve"])
def test_processes_show_another_user_nothing_but_the_agents_own_arguments(user, running, product, control_seen):
    agent = running.agent_pid()
    as_root = markers_in_proc(product, "root")
    assert as_root[agent][1] == {"quokka-env-6114", "quokka-per-user-8251", PROMPT}, "the look itself does not work"
    # Linux shows every user the arguments of every process, the agent's among them; only the agent could hide them.
    assert markers_in_proc(product, user) in ({}, {agent: (as_root[agent][0], {PROMPT})})
    control_seen("root finds them with the same look")


def test_the_wrapper_hides_the_prompt_it_was_given(prove):
    def attack(target):
        session = session_with_every_marker(target)
        seen = markers_in_proc(target, "eve")
        wrapper = session.wrapper_pid()
        session.end()
        return Outcome(wrapper in seen, seen)

    prove(attack, "hidden-arguments")


@pytest.mark.position("host")
def test_even_root_finds_them_in_no_process_of_ours(running, product, control_seen):
    found = markers_in_proc(product, "root")
    assert not {running.runner_pid(), running.receiver_pid(), running.exec_pid()} & set(found)
    assert running.agent_pid() in found
    control_seen("the same look finds them in the agent")


@pytest.mark.parametrize("marker", MARKERS)
def test_no_file_has(marker, running, product, control_seen):
    product.machine.write(FOUND, f"{marker}\n", mode=0o600)
    found = files_with(product, marker)
    product.machine.root(["rm", FOUND], check=True)
    assert FOUND in found and (POLICY in found) == (marker in MANAGED), "the look itself does not work"
    # What the session shows is looked at where it is.
    mounts = f"/run/pi-agent/sessions/{running.id}/"
    known = {FOUND, POLICY, *APPLIED} if marker in MANAGED else {FOUND}
    elsewhere = {path for path in found if path not in known and not STATE_OF_AGENTS.match(path) and not path.startswith((mounts, MODEL))}
    assert not elsewhere
    control_seen("the same look finds it in a file that has it")


def test_nothing_is_found_after_the_session(product, control_seen):
    session = session_with_every_marker(product)
    agent = session.agent_pid()
    assert agent in markers_in_proc(product, "root")
    session.end()
    logged = everything_logged(product)
    assert session.id in logged
    assert not [marker for marker in MARKERS if marker in logged]
    assert agent not in markers_in_proc(product, "root")
    control_seen("the same look finds them while the session runs")


def test_nobody_else_can_read_the_agents_state(product, control_seen):
    settings = "/var/lib/pi-agent/users/alice/home/.pi/agent/settings.json"
    assert b"quokka-settings-3307" in product.machine.root(["cat", settings], check=True).stdout
    for user in ("alice", "bob", "eve"):
        assert product.machine.run(["cat", settings], user=user).returncode != 0
    control_seen("root reads it")


@pytest.mark.position("agent")
def test_the_shells_own_variables_do_not_reach_the_agent(running, product, control_seen):
    agent = running.agent_pid()
    environment = product.machine.read(f"/proc/{agent}/environ")
    assert SHELL_VARIABLE.encode() not in environment and b"quokka-env-6114" in environment
    assert SHELL_VARIABLE.encode() in product.machine.read(f"/proc/{running.wrapper_pid()}/environ")
    control_seen("the wrapper has it, and the agent has the policy's own")


def test_the_real_agent_with_real_tool_calls_leaks_nothing_either(product, control_seen):
    policy = product.machine.read(POLICY).decode()
    product.machine.install_policy(policy.replace(f"{INSIDE}/agent", REAL_AGENT).replace("env: {MANAGED", 'env: {PI_OFFLINE: "1", MANAGED'))
    try:
        prompt = json.dumps({"steps": [{"bash": "echo $MANAGED_MARKER; sleep 2"}], "say": PROMPT})
        starter = f"import os; os.execvp('pi', ['pi', '-p', {prompt!r}.replace('QUOKKA', 'quokka')])".replace("quokka-", "QUOKKA-", 1)
        process = product.machine.popen(["python3", "-c", starter], cwd=DEMO)
        process.stdin.close()
        # From the agent's start on: between its own start and its first lines nobody can hide the arguments of a program.
        product.machine.root("until pgrep -u pi-agent >/dev/null; do sleep 0.02; done", timeout=20)
        seen = {}
        while process.poll() is None:
            seen.update(markers_in_proc(product, "eve"))
        out = process.stdout.read().decode()
        assert PROMPT in out and "quokka-env-6114" in out, out + process.stderr.read().decode()
        control_seen("the agent's own answer has the prompt and the managed value")
        # As above: the arguments of the agent's own processes, and of no other.
        assert {uid for uid, _ in seen.values()} <= {product.machine.account("pi-agent")[0]}
        assert not [markers for _, markers in seen.values() if markers - {PROMPT}]
        assert not [marker for marker in MARKERS if marker in everything_logged(product)]
    finally:
        product.machine.install_policy(policy)


def test_a_unit_without_a_description_would_have_its_command_line_as_one(prove):
    def attack(target):
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
        shown = target.machine.root(["systemctl", "show", "--property=Description", "--value", session.service]).stdout.decode()
        session.end()
        return Outcome(shown.strip() != "pi-agent-session", shown)

    prove(attack, "unit:Description")

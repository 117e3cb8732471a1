"""`settings_lock: true`: what the agent sees as its settings, and what it can still do."""

import json

import pytest
from launching import PLAYING_POLICY, STANDARD_POLICY, STATE, agent_says, pi

pytestmark = pytest.mark.usefixtures("playing")

SETTINGS = "/home/alice/.pi/agent/settings.json"
LOCKED = PLAYING_POLICY + "settings: {managed: true}\nsettings_lock: true\n"


@pytest.fixture(autouse=True)
def settings(machine):
    before = machine.read(SETTINGS)
    yield lambda text: machine.write(SETTINGS, text, "alice")
    machine.write(SETTINGS, before, "alice")


def inside(machine, script="cat settings.json"):
    return agent_says(machine, "sh", f'cd "$PI_CODING_AGENT_DIR" && {script}')


def test_locked_settings_are_the_merged_ones_and_follow_the_host(machine, playing_policy, settings):
    playing_policy(LOCKED)
    settings('{"mine": 1, "managed": false}')
    assert json.loads(inside(machine)) == {"mine": 1, "managed": True}
    settings('{"mine": 2}')
    assert json.loads(inside(machine)) == {"mine": 2, "managed": True}


def test_everything_else_in_the_agents_directory_can_be_written_and_stays(machine, playing_policy):
    playing_policy(LOCKED)
    script = "! echo {} >settings.json; mkdir settings.json.lock && rmdir settings.json.lock && echo x >own && mkdir -p sessions && echo y >sessions/s; echo z >../other"
    assert agent_says(machine, "sh", f'cd "$PI_CODING_AGENT_DIR" && ({script}) 2>/dev/null') == b""
    assert inside(machine, "cat own sessions/s ../other; rm -r own sessions ../other") == b"x\ny\nz\n"


def test_two_sessions_at_once_and_the_lock_taken_off_again(machine, playing_policy):
    playing_policy(LOCKED)
    script = 'pi sh "sleep 1; cat \\$PI_CODING_AGENT_DIR/settings.json" & pi sh "cat \\$PI_CODING_AGENT_DIR/settings.json"; wait'
    done = machine.run(["bash", "-c", script], cwd="/home/alice/projects/demo")
    assert done.returncode == 0 and done.stdout.count(b'"managed": true') == 2, done
    playing_policy(LOCKED.replace("settings_lock: true", "settings_lock: false"))
    inside(machine, "echo '{\"changed\": 1}' >settings.json")
    assert json.loads(inside(machine))["changed"] == 1


def test_what_was_changed_inside_before_is_what_is_locked(machine, playing_policy, settings):
    settings("{}")
    inside(machine, "echo '{\"chosen\": \"inside\"}' >settings.json")
    playing_policy(LOCKED)
    assert json.loads(inside(machine)) == {"chosen": "inside", "managed": True}
    machine.root(["rm", "-rf", f"{STATE}/alice/home/.pi/agent/settings.json"], check=True)


def test_under_mcp_lock_only_the_policys_servers_are_there_at_each_start(machine, playing_policy):
    mine = "/home/alice/.pi/agent/mcp.json"
    machine.write(mine, '{"mcpServers": {"mine": {"command": "m"}}}', "alice")
    policy = PLAYING_POLICY + "mcp: {mcpServers: {corp: {command: c}}}\n"
    playing_policy(policy + "mcp_lock: true\n")
    corp = {"mcpServers": {"corp": {"command": "c"}}}
    assert json.loads(inside(machine, "cat mcp.json; ! echo {} 2>/dev/null >mcp.json")) == corp
    assert json.loads(inside(machine, "cat mcp.json")) == corp
    playing_policy(PLAYING_POLICY + "mcp_lock: true\n")
    assert json.loads(inside(machine, "cat mcp.json")) == {}
    playing_policy(policy)
    merged = json.loads(inside(machine, "cat mcp.json"))
    machine.root(["rm", mine], check=True)
    assert merged == {"mcpServers": {"mine": {"command": "m"}, **corp["mcpServers"]}}
    playing_policy(PLAYING_POLICY)
    assert agent_says(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"; ls mcp.json 2>/dev/null; true') == b""


def test_the_real_agent_knows_the_policys_mcp_servers_alone(machine, playing_policy):
    """Also of a project that its user trusts."""
    trust, demo = "/home/alice/.pi/agent/trust.json", "/home/alice/projects/demo"
    machine.write(trust, json.dumps({demo: True}), "alice")
    machine.run("mkdir .pi && echo '{\"mcpServers\": {\"theirs\": {\"command\": \"/bin/false\"}}}' >.pi/mcp.json", cwd=demo, check=True)
    seen = {}
    for lock in ("false", "true"):
        playing_policy(STANDARD_POLICY + f"mcp_lock: {lock}\nmcp: {{mcpServers: {{corp: {{command: /bin/false}}}}}}\n")
        done = pi(machine, "mcp", "list", "--json")
        seen[lock] = [server["name"] for server in json.loads(done.stdout)["servers"]]
    machine.run(f"rm -r .pi {trust}", cwd=demo, check=True)
    assert seen == {"false": ["corp", "theirs"], "true": ["corp"]}


def test_the_real_agent_works_with_locked_settings(machine, playing_policy):
    playing_policy(STANDARD_POLICY + "settings_lock: true\n")
    done = pi(machine, "-p", "say hello")
    assert done.returncode == 0 and done.stdout and b"EROFS" not in done.stderr, done

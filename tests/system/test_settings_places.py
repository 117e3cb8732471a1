"""Settings and links of the user that name what a session does not have: it works where it can, and else one line says what to do, once."""

import json

import pytest
from launching import DEMO, PLAYING_POLICY, STATE, agent_says, assert_refused, messages, pi

CONFIG = "/home/alice/.pi/agent"
INSIDE = f"{STATE}/alice/home/.pi/agent"
SHELL = f"pi: config: {CONFIG}/settings.json: shellPath: /home/alice/bin/zsh, which a session does not have, so the agent's commands run in bash; name a shell of the host, such as one in /usr/bin"
SESSIONS = f"pi: config: {CONFIG}/settings.json: sessionDir: /home/alice/kept, which a session does not have, so the agent keeps its sessions in its own home; name a directory of the project, or one in ~"


@pytest.fixture
def config(playing):
    """config(name=document, …) writes documents of alice's; her own come back, and so does what was told."""
    playing.root(f"cp -a {CONFIG} {CONFIG}.kept; rm -rf {INSIDE} {STATE}/alice/meta/told-*", check=True)

    def write(**documents):
        for name, document in documents.items():
            playing.write(f"{CONFIG}/{name}.json", json.dumps(document), "alice")
        return playing

    yield write
    playing.root(f"rm -rf {CONFIG} {INSIDE} {STATE}/alice/meta/told-*; mv {CONFIG}.kept {CONFIG}", check=True)


def settings_inside(machine):
    return json.loads(machine.root(["cat", f"{INSIDE}/settings.json"], check=True).stdout)


def test_a_shell_and_a_place_of_sessions_that_are_missing_are_left_out_and_told_once(config):
    machine = config(settings={"shellPath": "/home/alice/bin/zsh", "sessionDir": "/home/alice/kept", "theme": "dark"})
    assert sorted(messages(pi(machine, "sh", "true"))) == [SESSIONS, SHELL]
    assert settings_inside(machine) == {"theme": "dark"}
    assert messages(pi(machine, "sh", "true")) == []


def test_a_shell_of_the_host_and_places_that_a_session_has_stay(config):
    settings = {"shellPath": "/usr/bin/zsh", "sessionDir": f"{DEMO}/sessions", "shellCommandPrefix": "set -u; . ~/.pi/agent/rc.sh"}
    machine = config(settings=settings)
    assert messages(pi(machine, "sh", "true")) == []
    assert settings_inside(machine) == settings
    assert messages(pi(config(settings={"sessionDir": "~/kept", "shellPath": "~/.pi/agent/sh"}), "sh", "true")) == []


def test_keys_prefix_and_servers_that_cannot_work_are_told_once(config):
    config(settings={"shellCommandPrefix": "source ~/.aliases"}, mcp={"mcpServers": {"x": {"command": "/home/alice/bin/server"}}})
    machine = config(models={"providers": {"a": {"apiKey": "!pass show key"}, "b": {"apiKey": "$MY_KEY"}, "c": {"apiKey": "$KNOWN"}, "d": {"apiKey": "x"}}})
    machine.write(f"{CONFIG}/env", "KNOWN=x\n", "alice", mode=0o600)
    said = messages(pi(machine, "sh", "true"))
    parts = ["shellCommandPrefix names ~/.aliases", "the server x is /home/alice/bin/server", "the apiKey of a is a command", "the apiKey of b is the variable MY_KEY"]
    assert [sum(part in line for line in said) for part in parts] == [1, 1, 1, 1] and len(said) == 4, said
    assert all(line.startswith(f"pi: config: {CONFIG}/") for line in said), said
    assert messages(pi(machine, "sh", "true")) == []


def test_a_place_of_sessions_on_the_command_line_is_refused_where_the_agent_could_not_write(config):
    machine = config()
    assert_refused(pi(machine, "arguments", "--session-dir", "/home/alice/kept"), 64, "/home/alice/kept of your arguments is not handed to the agent", "name a directory of the project")
    for place in (f"{DEMO}/kept", "kept", "/tmp/kept"):
        assert agent_says(machine, "arguments", "--session-dir", place).decode().split("\0")[1] in (place, f"{DEMO}/kept")


def test_a_link_of_the_project_that_leads_out_is_told_once(config):
    machine = config()
    machine.run("ln -s ../../notes.md AGENTS.md; ln -s README.md CLAUDE.md", cwd=DEMO, check=True)
    try:
        said = messages(pi(machine, "sh", "true"))
        assert said == [f"pi: {DEMO}/AGENTS.md is a link to /home/alice/notes.md, which a session does not have; copy it into the project, or start with: pi --append-system-prompt /home/alice/notes.md"]
        assert messages(pi(machine, "sh", "true")) == []
    finally:
        machine.run("rm AGENTS.md CLAUDE.md", cwd=DEMO, check=True)


def test_another_directory_of_the_agent_in_the_shell_is_told_once(config):
    machine = config()
    said = messages(pi(machine, "sh", "true", env={"PI_CODING_AGENT_DIR": "/home/alice/other"}))
    assert len(said) == 1 and said[0].startswith("pi: PI_CODING_AGENT_DIR of your shell is not used"), said
    assert messages(pi(machine, "sh", "true", env={"PI_CODING_AGENT_DIR": "/home/alice/other"})) == []
    assert messages(pi(machine, "sh", "true", env={"PI_CODING_AGENT_DIR": CONFIG})) == []


def test_the_policys_own_settings_stay(config, playing_policy):
    machine = config(settings={"shellPath": "/home/alice/bin/zsh"})
    playing_policy(PLAYING_POLICY + "settings: {shellPath: /srv/tools/sh}\n")
    assert messages(pi(machine, "sh", "true")) == [SHELL]
    assert settings_inside(machine) == {"shellPath": "/srv/tools/sh"}

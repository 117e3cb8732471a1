"""The agent is told about its box: the lines are in what each agent sends to its model, beside the user's own instructions."""

import pytest
from cache import AGENT_DIRECTORY, remove_tree
from launching import DEMO, STANDARD_POLICY, pi
from recipes import AGENTS, DEFAULT_AGENT

APPENDED = "/home/alice/.pi/agent/APPEND_SYSTEM.md"
TITLE = "The sandbox you work in (pi-agent)"


@pytest.fixture(scope="module", params=AGENTS)
def agent_policy(request, machine):
    """The standard policy with each of the agents."""
    if request.param == DEFAULT_AGENT:
        yield STANDARD_POLICY
        return
    directory = f"{AGENT_DIRECTORY}-{request.param}"
    machine.add_agent(request.param, directory)
    text = STANDARD_POLICY.replace(f"{AGENT_DIRECTORY}/bin/pi", f"{directory}/bin/pi")
    machine.install_policy(text)
    yield text
    machine.install_policy(STANDARD_POLICY)
    remove_tree(machine.filesystem / directory.lstrip("/"))


@pytest.fixture
def appended(machine):
    """The user's own APPEND_SYSTEM.md for one test."""
    machine.write(APPENDED, "Appended by alice.\n", "alice")
    yield
    machine.root(["rm", APPENDED], check=True)


def instructions(machine, *arguments, cwd=DEMO):
    """All that the model was told before the prompt."""
    machine.forget_model_requests()
    done = pi(machine, *arguments, "-p", '{"steps": [], "say": "hi"}', cwd=cwd)
    assert (done.returncode, done.stdout.split()) == (0, [b"hi"]), done
    (request,) = machine.model_requests()
    told = [message["content"] for message in request["messages"] if message["role"] in ("system", "developer")]
    return "\n".join(text if isinstance(text, str) else "".join(part["text"] for part in text) for text in told)


def test_the_model_is_told_what_this_sessions_box_is(machine, agent_policy):
    told = instructions(machine)
    assert told.count(TITLE) == 1
    for fact in ("`pi-agent-alice`", "project `/home/alice/projects`", "home `/var/lib/pi-agent/users/alice/home`", "4096 processes"):
        assert fact in told, told
    assert "project `/srv/shared/app`" in instructions(machine, cwd="/srv/shared/app")


def test_the_users_own_additions_to_the_system_prompt_are_there_too(machine, agent_policy, appended):
    told = instructions(machine)
    assert TITLE in told and "Appended by alice." in told
    told = instructions(machine, "--append-system-prompt", "Given as an option.")
    assert TITLE in told and "Given as an option." in told
    told = instructions(machine, "--system-prompt", "All of it by alice.")
    assert TITLE in told and "All of it by alice." in told


def test_the_projects_own_instructions_are_there_too_and_come_later(machine, agent_policy):
    machine.write(f"{DEMO}/AGENTS.md", "Of the project.\n", "alice")
    told = instructions(machine)
    machine.root(["rm", f"{DEMO}/AGENTS.md"], check=True)
    assert 0 < told.index(TITLE) < told.index("Of the project.")


def test_who_wants_no_context_files_gets_none(machine, agent_policy):
    assert TITLE not in instructions(machine, "--no-context-files")


def test_other_commands_are_as_they_are_without_the_notes(machine, agent_policy):
    commands = [["--version"], ["--help"], ["list"]]
    machine.install_policy(agent_policy + "box_notes: false\n")
    without = [pi(machine, *command) for command in commands]
    machine.install_policy(agent_policy)
    for command, expected in zip(commands, without, strict=True):
        done = pi(machine, *command)
        assert done.returncode == expected.returncode == 0, done
        assert (done.stdout, done.stderr) == (expected.stdout, expected.stderr), command


def test_a_package_can_be_installed(machine, agent_policy):
    machine.root(f"mkdir -p {DEMO}/package && echo '{{\"name\": \"x\", \"version\": \"1.0.0\"}}' >{DEMO}/package/package.json", check=True)
    done = pi(machine, "install", "./package")
    removed = pi(machine, "remove", "./package")
    machine.root(["rm", "-rf", f"{DEMO}/package"], check=True)
    assert (done.returncode, removed.returncode) == (0, 0), (done, removed)


def test_they_are_off_when_the_policy_says_so(machine, agent_policy):
    machine.install_policy(agent_policy + "box_notes: false\n")
    told = instructions(machine)
    shown = machine.run(["pi", "--pi-agent-explain"], cwd=DEMO, check=True).stdout
    machine.install_policy(agent_policy)
    assert TITLE not in told and "sandbox" not in told
    assert b"box_notes: false" in shown


def test_the_notes_lie_outside_the_agents_home_and_cannot_be_changed(machine, agent_policy):
    steps = '{"steps": [{"bash": "echo x >>/AGENTS.md; rm -f /AGENTS.md; mv /AGENTS.md /x; touch /AGENTS.override.md; stat -c %U-%a /AGENTS.md; grep -rl sandbox.you.work $HOME/.pi/agent --include=*.md; true"}], "say": "ended"}'
    done = pi(machine, "-p", steps)
    assert done.returncode == 0 and b"-444" in done.stdout, done
    assert TITLE in instructions(machine)
    assert machine.root("ls /AGENTS.md").returncode != 0


def test_what_the_notes_say_is_true(machine, agent_policy):
    script = "touch . $HOME /tmp /var/tmp && echo writable; touch /usr/x /etc/x /srv/x /home/x 2>/dev/null || echo closed; echo $SSH_AUTH_SOCK$DISPLAY.; id -un; ulimit -c"
    done = pi(machine, "-p", '{"steps": [{"bash": "%s"}], "say": "ended"}' % script)
    assert done.stdout.decode().split() == ["ended", "writable", "closed", ".", "pi-agent-alice", "0"], done

"""The main job: in an allowed directory `pi` runs the real agent, as another account, and the user owns the files."""

import json

import pytest
from cache import AGENT_DIRECTORY, remove_tree
from launching import DEMO, STANDARD_POLICY, owner_and_mode, pi
from recipes import AGENTS, DEFAULT_AGENT


@pytest.fixture(scope="module", params=AGENTS, autouse=True)
def agent_version(request, machine):
    """Every test here runs with each of the agents; the machine has the default one, another is added for as long as it is needed."""
    if request.param == DEFAULT_AGENT:
        yield request.param
        return
    directory = f"{AGENT_DIRECTORY}-{request.param}"
    machine.add_agent(request.param, directory)
    machine.install_policy(STANDARD_POLICY.replace(f"{AGENT_DIRECTORY}/bin/pi", f"{directory}/bin/pi"))
    yield request.param
    machine.install_policy(STANDARD_POLICY)
    remove_tree(machine.filesystem / directory.lstrip("/"))


def test_the_agent_is_of_the_wanted_version(machine, agent_version):
    done = pi(machine, "--version")
    assert (done.returncode, (done.stdout + done.stderr).decode().strip()) == (0, agent_version), done


def prompt(*steps, say="finished"):
    return json.dumps({"steps": list(steps), "say": say})


def tool_results(machine):
    """What the agent's tools answered in the last conversation, as the model saw it."""
    results = []
    for message in machine.model_requests()[-1]["messages"]:
        if message["role"] == "tool":
            content = message["content"]
            results.append(content if isinstance(content, str) else "".join(part.get("text", "") for part in content))
    return results


@pytest.fixture
def fresh(machine):
    """fresh(path, user, mode): a directory for one test."""
    made = []

    def make(path, user, *options):
        machine.run(["mkdir", *options, path], user=user, cwd="/", check=True)
        made.append(path)
        return path

    machine.forget_model_requests()
    yield make
    for path in reversed(made):
        machine.root(["rm", "-rf", path], check=True)


@pytest.mark.parametrize(
    ("user", "directory", "owner"),
    [
        ("alice", f"{DEMO}/work", "alice:alice"),
        ("alice", f"{DEMO}/a sub directory/far/down", "alice:alice"),
        ("alice", "/srv/shared/app/work", "alice:alice"),
        ("bob", "/home/bob/work/demo/work", "bob:bob"),
        ("carol", "/srv/devs/work", "carol:devs"),
    ],
)
def test_the_real_agent_runs_commands_and_writes_files_that_belong_to_its_user(machine, fresh, user, directory, owner):
    fresh(directory, user, "-p")
    steps = [{"bash": "id -un; pwd; umask"}, {"write": {"path": "new.txt", "content": "by the agent\n"}}, {"bash": "cat new.txt"}]
    done = pi(machine, "-p", prompt(*steps), user=user, cwd=directory)
    assert (done.returncode, done.stdout.split()) == (0, b"finished by the agent".split()), done
    assert tool_results(machine)[0].splitlines()[:3] == [f"pi-agent-{user}", directory, "0022"]
    assert machine.read(f"{directory}/new.txt") == b"by the agent\n"
    assert owner_and_mode(machine, f"{directory}/new.txt") == f"{owner} 644"


def test_the_root_itself_is_a_working_directory_too(machine):
    done = pi(machine, "-p", prompt({"write": {"path": "top.txt", "content": "x"}}), user="carol", cwd="/srv/devs")
    assert done.returncode == 0, done
    assert owner_and_mode(machine, "/srv/devs/top.txt") == "carol:devs 644"
    machine.root(["rm", "/srv/devs/top.txt"], check=True)


def test_in_a_group_directory_the_agent_shares_as_its_user_would(machine, fresh):
    fresh("/srv/devs/team", "bob", "--mode=2775")
    files = "umask 002; echo by bob >of-bob.txt; echo secret >closed.txt; chmod 600 closed.txt"
    machine.run(files, user="bob", cwd="/srv/devs/team", check=True)
    steps = [{"bash": "echo and by carol >>of-bob.txt; mkdir sub; cat closed.txt"}]
    done = pi(machine, "-p", prompt(*steps), user="carol", cwd="/srv/devs/team", env={"LC_ALL": "C"})
    assert done.returncode == 0, done
    assert machine.read("/srv/devs/team/of-bob.txt") == b"by bob\nand by carol\n"
    assert owner_and_mode(machine, "/srv/devs/team/of-bob.txt") == "bob:devs 664"
    assert owner_and_mode(machine, "/srv/devs/team/sub") == "carol:devs 2755"
    assert "closed.txt: Permission denied" in tool_results(machine)[0]


def test_the_real_agent_keeps_its_sessions_in_its_own_state_and_not_in_the_users_home(machine, fresh):
    fresh(f"{DEMO}/sessions-here", "alice")
    before = machine.root(["find", "/home/alice/.pi"], check=True).stdout
    done = pi(machine, "-p", prompt({"bash": "true"}), cwd=f"{DEMO}/sessions-here")
    assert done.returncode == 0, done
    assert machine.root(["find", "/home/alice/.pi"], check=True).stdout == before
    kept = machine.root(["find", "/var/lib/pi-agent/users/alice/home/.pi/agent/sessions", "-name", "*.jsonl"], check=True).stdout
    assert b"sessions-here" in kept
    found = kept.decode().splitlines()[0]
    assert owner_and_mode(machine, found).startswith("pi-agent-alice:")


def test_a_prompt_on_standard_input_goes_through_a_pipeline(machine):
    machine.forget_model_requests()
    script = f"""printf '%s' '{prompt({"bash": "id -un"}, say="through pipes")}' | pi -p | cat; echo "${{PIPESTATUS[*]}}" """
    done = machine.run(script, cwd=DEMO)
    assert done.stdout.split() == b"through pipes pi-agent-alice 0 0 0".split(), done


def test_the_answer_goes_into_a_file_of_the_user(machine):
    script = f"""pi -p '{prompt({"bash": "echo 42"}, say="into a file")}' >answer.txt </dev/null; echo $?"""
    done = machine.run(script, cwd=DEMO)
    assert (done.stdout, done.stderr) == (b"0\n", b""), done
    assert machine.read(f"{DEMO}/answer.txt").split() == b"into a file 42".split()
    assert owner_and_mode(machine, f"{DEMO}/answer.txt") == "alice:alice 644"
    machine.root(["rm", f"{DEMO}/answer.txt"], check=True)

"""Users whose names are not plain ones, as directory services have them: CORP\\dana, Dana.Smith, dana@example.org."""

import json

import pytest
from launching import PLAYING_POLICY, STATE, finish, leftovers, messages, owner_and_mode, pi, session, wait_until_empty

NAMES = {
    "CORP\\dana": 4201, "Dana.Smith": 4202, "dana@example.org": 4203, "dana.smith": 4204, "dana-with-a-very-long-name": 4205,
    "müller": 4207, "4dmin": 4208, "d" * 64: 4209, "frank": 4211, "pi-agent-frank": 4212,
}  # fmt: skip
# The last one is a person, whose name the agent of frank would have.
PLAIN = ("dana.smith", "dana-with-a-very-long-name", "frank", "pi-agent-frank")
GROUP = "CORP\\domain users"
GID = 4300


@pytest.fixture(scope="module", autouse=True)
def people(playing):
    """They and their projects; one of them comes by a group of such a name."""
    playing.root("cp -p /etc/passwd /root/passwd; cp -p /etc/group /root/group; mkdir -p /srv/people/group", check=True)
    lines = "".join(f"{name}:*:{uid}:{uid}::/srv/people/{uid}:/bin/bash\n" for name, uid in NAMES.items()) + "Eve.Group:*:4206:4206::/srv/people/4206:/bin/bash\n"
    playing.root("cat >>/etc/passwd", input=lines.encode(), check=True)
    groups = f"{GROUP}:x:{GID}:Eve.Group\n" + "".join(f"{name}:x:{uid}:\n" for name, uid in {**NAMES, "Eve.Group": 4206}.items())
    playing.root("cat >>/etc/group", input=groups.encode(), check=True)
    for uid in (*NAMES.values(), 4206):
        playing.root(f"install -d -o {uid} -g {uid} -m 700 /srv/people/{uid} /srv/people/{uid}/projects", check=True)
    playing.root(f"install -d -g {GID} -m 2770 /srv/people/group", check=True)
    users = "".join(f"  {json.dumps(name)}:\n    roots: [~/projects]\n" for name in NAMES) + f"  {json.dumps('%' + GROUP)}:\n    roots: [/srv/people/group]\n"
    playing.install_policy(PLAYING_POLICY.replace("users:\n", "users:\n" + users))
    yield playing
    playing.install_policy(PLAYING_POLICY)
    playing.root(f"cd {STATE} && rm -rf @* dana* frank pi-agent-frank; grep -o '^pi-agent-\\(42[0-9]*\\|dana[^:]*\\|4dmin\\|pi-agent-frank\\)' /etc/passwd | xargs -rn1 userdel; mv /root/passwd /etc/passwd; mv /root/group /etc/group; rm -rf /srv/people", check=True)


@pytest.mark.parametrize("name", NAMES)
def test_each_has_an_agent_and_a_home_of_their_own(playing, name):
    uid = NAMES[name]
    project = f"/srv/people/{uid}/projects"
    done = pi(playing, "sh", 'id -un; echo "$HOME"; touch made; pwd', user=name, cwd=project)
    assert (done.returncode, done.stderr) == (0, b""), done
    state = name if name in PLAIN else f"@{uid}"
    account = f"pi-agent-{name if name in ('4dmin', 'pi-agent-frank') else uid}"
    assert done.stdout.decode().splitlines() == [account, f"{STATE}/{state}/home", project], done
    assert playing.root(["stat", "-c", "%u:%g", f"{project}/made"]).stdout.decode().strip() == f"{uid}:{uid}"
    assert owner_and_mode(playing, f"{STATE}/{state}/home").startswith(f"{account}:")
    wait_until_empty(lambda: leftovers(playing))


def test_a_member_of_such_a_group_starts_and_others_do_not(playing):
    assert pi(playing, "sh", "id -un", user="Eve.Group", cwd="/srv/people/group").stdout == b"pi-agent-4206\n"
    done = pi(playing, "sh", "id -un", user="eve", cwd="/srv")
    assert done.returncode == 77 and messages(done), done


def test_sudo_knows_them_by_number(playing):
    rule = playing.read("/etc/sudoers.d/pi-agent").decode()
    for uid in (4201, 4202, 4203, 4207, 4208, 4209):
        assert f"\n#{uid} ALL=(root) NOPASSWD:" in rule, rule
    assert f"\n%#{GID} ALL=(root) NOPASSWD:" in rule and "CORP" not in rule and "Dana" not in rule, rule


def test_the_administrators_commands_take_the_name(playing):
    pi(playing, "sh", "true", user="CORP\\dana", cwd="/srv/people/4201/projects", check=True)
    [state] = json.loads(playing.root(["pi-agentctl", "state", "--user", "CORP\\dana", "--json"], check=True).stdout)["states"]
    assert state["user"] == "CORP\\dana" and state["path"] == f"{STATE}/@4201", state
    assert b"pi-agent-4201" in playing.root(["pi-agentctl", "explain", "--user", "CORP\\dana"], check=True).stdout
    with session(playing, "sh", "echo ready; cat", user="CORP\\dana", cwd="/srv/people/4201/projects") as running:
        [living] = json.loads(playing.root(["pi-agentctl", "sessions", "--user", "CORP\\dana", "--json"], check=True).stdout)["sessions"]
        assert finish(running)[0] == 0
    assert living["user"] == "CORP\\dana", living
    wait_until_empty(lambda: leftovers(playing))
    assert playing.root(["pi-agentctl", "check"]).returncode == 0
    assert playing.root(["pi-agentctl", "state", "reset", "--user", "CORP\\dana", "--yes"]).returncode == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_record_has_the_name(playing, name):
    uid = NAMES[name]
    pi(playing, "sh", "true", user=name, cwd=f"/srv/people/{uid}/projects", check=True)
    [*_, last] = json.loads(playing.root(["pi-agentctl", "history", "--user", name, "--json"], check=True).stdout)["starts"]
    assert last["user"] == name, last
    shown = playing.root(["pi-agentctl", "history", "--user", name], check=True).stdout.decode()
    assert name.replace("\\", "\\x5c") in shown, shown  # as the record writes it


def test_an_agents_account_is_no_person_by_being_named_as_one(playing):
    """pi-agent-alice is the account that apply made for alice's agent."""
    policy = playing.read("/etc/pi-agent/policy.yaml").decode()
    playing.write("/etc/pi-agent/policy.yaml", policy.replace("users:\n", "users:\n  pi-agent-alice:\n    roots: [/srv/people/group]\n"))
    try:
        applied = playing.root(["pi-agentctl", "apply", "--no-canary"])
    finally:
        playing.write("/etc/pi-agent/policy.yaml", policy)
    assert applied.returncode == 78 and b"users.pi-agent-alice: 'pi-agent-alice' is an agent's account" in applied.stderr, applied

"""wrapper.command_name: what users type, with its completions and its page; `pi` and the sudo rule stay as they are."""

import pytest
from administering import ctl, said
from launching import DEMO, PLAYING_POLICY, agent_says

SHARE = "/usr/share"
COMPLETION = f"{SHARE}/bash-completion/completions"


def named(name):
    return PLAYING_POLICY + f"wrapper: {{command_name: {name}}}\n"


@pytest.fixture
def agent_named(playing, playing_policy):
    playing_policy(named("agent"))
    return playing


def exists(machine, path):
    return machine.root(["test", "-e", path]).returncode == 0


def test_users_type_the_other_name_and_pi_stays(agent_named):
    done = agent_named.run(["agent", "sh", "id -un"], cwd=DEMO)
    assert (done.returncode, done.stdout) == (0, b"pi-agent-alice\n"), done
    assert agent_says(agent_named, "sh", "id -un") == b"pi-agent-alice\n"
    assert agent_named.root(["readlink", "/usr/bin/agent"]).stdout == b"pi\n"
    assert ctl(agent_named, "apply", "--no-canary").stdout == b"nothing to do\n"


def test_shells_and_the_manual_know_it(agent_named):
    done = agent_named.run(["bash", "-c", f". {COMPLETION}/agent && complete -p agent"])
    assert done.stdout == b"complete -F _pi_of_pi_agent agent\n", done
    zsh = agent_named.root(f"head -qn1 {SHARE}/zsh/*/_agent", check=True).stdout
    assert zsh == b"#compdef agent\n"
    assert agent_named.read(f"{SHARE}/fish/vendor_completions.d/agent.fish").endswith(b"complete -c agent -w pi\n")
    assert agent_named.read(f"{SHARE}/man/man1/agent.1") == b".so man1/pi.1\n"


def test_the_rule_of_sudo_does_not_know_the_name(playing, playing_policy):
    before = playing.read("/etc/sudoers.d/pi-agent")
    playing_policy(named("agent"))
    assert playing.read("/etc/sudoers.d/pi-agent") == before


def test_a_new_name_takes_the_former_one_away_and_a_dry_run_says_so(agent_named):
    agent_named.write("/etc/pi-agent/policy.yaml", named("coder"))
    would = said(agent_named, "apply", "--no-canary", "--dry-run")
    assert "would: make the command /usr/bin/coder, another name of /usr/bin/pi\n" in would and "would: remove the command /usr/bin/agent\n" in would, would
    said(agent_named, "apply", "--no-canary")
    assert agent_named.run(["coder", "sh", "true"], cwd=DEMO).returncode == 0
    assert not any(exists(agent_named, path) for path in ("/usr/bin/agent", f"{COMPLETION}/agent", f"{SHARE}/man/man1/agent.1"))
    agent_named.install_policy(PLAYING_POLICY)
    assert not exists(agent_named, "/usr/bin/coder") and not exists(agent_named, "/var/lib/pi-agent/applied/command")


def test_remove_takes_it_away(agent_named):
    said(agent_named, "remove", "--yes")
    assert not exists(agent_named, "/usr/bin/agent") and exists(agent_named, "/usr/bin/pi")
    agent_named.install_policy(named("agent"))
    assert exists(agent_named, "/usr/bin/agent")

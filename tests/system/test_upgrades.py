"""The administrator owns the agent's program: `pi update` is refused, and an upgrade that opens it to everybody gives a notice until it is hidden."""

import pytest
from launching import DEMO, PLAYING_AGENT, PLAYING_POLICY, messages, pi, session

TREE = PLAYING_AGENT.removesuffix("/bin/pi")
UNUSUAL = "without this wrapper: was it upgraded?"


@pytest.mark.parametrize("arguments", [["update"], ["update", "self"], ["update", "--all", "-a"]])
def test_pi_update_is_refused_in_words(policy, machine, arguments):
    done = pi(machine, *arguments)
    assert (done.returncode, done.stdout) == (64, b"") and b"a session cannot update it; ask the administrator" in done.stderr, done


def test_an_update_of_packages_is_the_agents(playing):
    done = pi(playing, "update", "--extensions")
    assert done.returncode == 127 or b"administrator" not in done.stderr, done


def test_where_the_user_may_not_start_pi_that_is_said_first(policy, machine):
    assert pi(machine, "update", cwd="/home/alice").returncode == 77


def test_an_upgrade_that_opens_the_agent_is_told_at_each_start(playing):
    playing.install_policy(PLAYING_POLICY)
    run = [PLAYING_AGENT, "sh", "id -un"]
    assert playing.run(run, user="bob", cwd="/").returncode != 0
    playing.root(f"chmod 755 {TREE} {PLAYING_AGENT}", check=True)  # as npm and dpkg leave what they install
    try:
        assert playing.run(run, user="bob", cwd="/").stdout == b"bob\n"
        for _ in range(2):
            told = [line for line in messages(pi(playing, "sh", "true")) if UNUSUAL in line]
            assert len(told) == 1 and "sudo pi-agentctl apply" in told[0], told
        playing.install_policy(PLAYING_POLICY + "wrapper: {hide_direct_binary: false}\n")
        assert pi(playing, "sh", "true").stderr == b""
    finally:
        playing.install_policy(PLAYING_POLICY)
        playing.root(["pi-agentctl", "apply", "--no-canary"], check=True)
    assert playing.run(run, user="bob", cwd="/").returncode != 0
    assert pi(playing, "sh", "true").stderr == b""


def test_a_session_outlives_an_upgrade(playing):
    """The program is replaced as package managers do it: a new file by rename. What runs goes on, what starts is the new one."""
    with session(playing, "sh", "echo ready; sleep 1; echo still; exit 3") as running:
        playing.root(f"cp -p {PLAYING_AGENT} {PLAYING_AGENT}.new && mv {PLAYING_AGENT}.new {PLAYING_AGENT}", check=True)
        assert running.wait() == 3
    assert pi(playing, "sh", "echo new", cwd=DEMO).stdout == b"new\n"

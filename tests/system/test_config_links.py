"""Links in what a start reads as the user: into stores, into dotfiles, into a root; and what pi, check and doctor say of links out of a root."""

import json

import pytest
from administering import said
from launching import DEMO, PLAYING_POLICY, STANDARD_POLICY, STATE, agent_says, messages, pi

pytestmark = pytest.mark.usefixtures("playing")

CONFIG = "/home/alice/.pi/agent"
ROOT = "/home/alice/projects"
STORE = "/srv/store"
GONE = f"{ROOT}/skills {ROOT}/dotfiles {ROOT}/cfg /home/alice/.dotfiles /home/alice/.agents /home/alice/.private {STORE}"


@pytest.fixture(autouse=True)
def config(machine):
    """An empty config directory of alice and no state of her agent; her own config comes back afterwards."""
    machine.run("mv .pi .pi-kept && mkdir -p .pi/agent", check=True)
    machine.root(["rm", "-rf", f"{STATE}/alice"], check=True)
    yield
    machine.root(f"cd /home/alice && rm -rf .pi {GONE} && mv .pi-kept .pi", check=True)


def on_host(machine, script):
    machine.run(["sh", "-ec", script], cwd="/home/alice", check=True)


def inside(machine, script, cwd=DEMO):
    """What it says in the agent's config directory; pi itself says nothing."""
    return agent_says(machine, "sh", f'cd "$PI_CODING_AGENT_DIR" && {script}', cwd=cwd)


def test_the_links_of_home_manager_into_a_store_are_followed(machine):
    """Each generation is a tree of symlinks into others; root owns the files themselves, far away from any root of the policy."""
    generation = f"{STORE}/abc-home-manager-files/.pi/agent"
    machine.root(
        f"""mkdir -p {generation}/skills {STORE}/def-skill {STORE}/ghi-agents; echo words >{STORE}/ghi-agents/AGENTS.md; echo skill >{STORE}/def-skill/SKILL.md
        ln -s {STORE}/ghi-agents/AGENTS.md {generation}/AGENTS.md; ln -s {STORE}/def-skill {generation}/skills/one; chmod -R a-w {STORE}""",
        check=True,
    )
    on_host(machine, f"ln -s {generation}/AGENTS.md {CONFIG}/AGENTS.md; ln -s {generation}/skills {CONFIG}/skills; mkdir .agents; ln -s {STORE}/def-skill .agents/skills")
    assert inside(machine, "cat AGENTS.md skills/one/SKILL.md ../../.agents/skills/SKILL.md") == b"words\nskill\nskill\n"
    on_host(machine, f"rm -r {CONFIG}; ln -s {generation} {CONFIG}")
    assert inside(machine, "cat AGENTS.md skills/one/SKILL.md") == b"words\nskill\n"


@pytest.mark.parametrize("section", ["", "projects: {scope: project}\n"], ids=["scope root", "scope project"])
def test_dotfiles_that_lie_in_no_root_are_followed(section, machine, playing_policy):
    playing_policy(PLAYING_POLICY + section)
    on_host(machine, f"mkdir -p .dotfiles/pi/skills/a .dotfiles/shared; echo words >.dotfiles/shared/A.md; echo skill >.dotfiles/pi/skills/a/SKILL.md; ln -s ../shared/A.md .dotfiles/pi/AGENTS.md; rm -r {CONFIG}; ln -s ../.dotfiles/pi {CONFIG}")
    assert inside(machine, "cat AGENTS.md skills/a/SKILL.md") == b"words\nskill\n"


@pytest.mark.parametrize("section", ["", "projects: {scope: project}\n"], ids=["scope root", "scope project"])
def test_a_skill_under_development_in_a_root_is_brought_in_with_all_that_stays_there(section, machine, playing_policy):
    playing_policy(PLAYING_POLICY + section)
    on_host(machine, f"mkdir -p {ROOT}/skills/a/more; echo skill >{ROOT}/skills/a/SKILL.md; ln -s SKILL.md {ROOT}/skills/a/b.md; ln -s {ROOT}/skills/a/SKILL.md {ROOT}/skills/a/c.md; ln -s {ROOT}/skills {CONFIG}/skills")
    assert inside(machine, "cat skills/a/SKILL.md skills/a/b.md skills/a/c.md") == b"skill\n" * 3
    on_host(machine, f"echo new >{ROOT}/skills/a/SKILL.md")
    assert inside(machine, "cat skills/a/b.md") == b"new\n"


def test_a_link_across_a_root_counts_where_the_whole_root_is_shown(machine):
    on_host(machine, f"mkdir -p {ROOT}/skills {ROOT}/cfg; echo x >{ROOT}/cfg/x; ln -s ../cfg/x {ROOT}/skills/up.md; ln -s {ROOT}/skills {CONFIG}/skills")
    assert inside(machine, "cat skills/up.md") == b"x\n"


def test_a_link_out_of_a_root_is_told_when_it_came_by_the_next_start_and_by_doctor(machine):
    on_host(machine, f"mkdir -p .private {ROOT}/skills; echo secret >.private/key; ln -s {ROOT}/skills {CONFIG}/skills")
    words = f"{CONFIG}/skills/k.md: the link {ROOT}/skills/k.md leads to /home/alice/.private/key, out of {ROOT}, where an agent can have made it; remove it, or put a copy in its place"
    ended = messages(pi(machine, "sh", f"ln -s /home/alice/.private/key {ROOT}/skills/k.md"))
    assert "pi: this session left links that lead out of your projects, in files that pi reads as you; pi does not follow them:" in ended, ended
    assert f"pi:   {words}" in ended, ended
    again = pi(machine, "sh", "test ! -e $PI_CODING_AGENT_DIR/skills/k.md")
    assert (again.returncode, messages(again)) == (0, [f"pi: config: skipped {words}"]), again
    faults = json.loads(machine.root(["pi-agentctl", "doctor", "--json"]).stdout)["faults"]
    assert {"about": "link", "what": f"a start of alice leaves out {words}", "remedy": "ask alice to do so"} in faults, faults
    on_host(machine, f"rm {ROOT}/skills/k.md")
    assert inside(machine, "echo quiet") == b"quiet\n"


IN_ROOTS = {
    "config": ("config: projects/cfg", "", "users.alice.config", f"the config directory '{ROOT}/cfg'"),
    "config through a link": ("config: cfg-link", "", "users.alice.config", "the config directory '/home/alice/cfg-link'"),
    "ssh.key": ("ssh: {key: projects/id}", "", "users.alice.ssh.key", f"the key '{ROOT}/id'"),
    "signing.key": ("signing: {key: projects/id}", "", "users.alice.signing.key", f"the key '{ROOT}/id'"),
    "host_env_files": ("", f"host_env_files: [{ROOT}/env]", "host_env_files", f"the file of variables '{ROOT}/env'"),
    "a certificate": (f"env: {{SSL_CERT_FILE: {ROOT}/ca.pem}}", "", "users.alice.env.SSL_CERT_FILE", f"the file of certificates '{ROOT}/ca.pem'"),
}


@pytest.mark.parametrize("what", IN_ROOTS)
def test_check_refuses_a_file_in_a_root_that_is_read_as_the_user(what, machine):
    alice, section, key, words = IN_ROOTS[what]
    text = STANDARD_POLICY.replace("  alice:\n", f"  alice:\n    {alice}\n" if alice else "  alice:\n") + f"{section}\n"
    on_host(machine, f"ln -sfn {ROOT}/cfg cfg-link")
    machine.write("/root/draft.yaml", text)
    told = said(machine, "check", "/root/draft.yaml", status=78)
    on_host(machine, "rm cfg-link")
    assert f"{key}: {words} lies in '{ROOT}', where agents of alice write" in told and "move it out of all roots" in told, told
    assert "/root/draft.yaml:" in told, told


def test_check_refuses_it_for_a_group_too(machine):
    text = STANDARD_POLICY.replace("    roots: [/srv/devs]\n", "    roots: [~/devs]\n    config: devs/cfg\n")
    machine.write("/root/draft.yaml", text)
    assert "users.%devs.config: the config directory '~/devs/cfg' lies in '~/devs'" in said(machine, "check", "/root/draft.yaml", status=78)


def test_check_takes_what_lies_elsewhere(machine):
    text = STANDARD_POLICY.replace("  alice:\n", "  alice:\n    config: .dotfiles/pi\n    ssh: {key: .ssh/id}\n") + "host_env_files: [.config/env]\n"
    machine.write("/root/draft.yaml", text)
    assert "policy is valid" in said(machine, "check", "/root/draft.yaml")

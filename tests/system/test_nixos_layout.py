"""The product as NixOS has it: program, agent and policy in a store, config of links into it, sudo elsewhere, the rule by the system."""

import json
import os
import re

import pytest
import record_check
from cache import NIXOS_PREFIX, SOURCE, STORE
from evaluating import as_built, evaluate_modules
from launching import DEMO, DENIED, STATE, assert_refused, leftovers, owner_and_mode, wait_until_empty
from machine import Machine
from nixos_layout import AGENT, PATH, POLICY, PROGRAMS, build_policy, evaluate, furnish, home_manager, start_system, sudoers_of, switch
from recipes import MACHINES
from test_real_agent import prompt, tool_results

USERS = """hostUsers = {
  alice = { projectRoots = [ "~/projects" "/srv/shared/app" ]; environment.OF_ALICE = "1"; };
  "%devs" = { projectRoots = [ "/srv/devs" ]; members = [ "bob" "carol" ]; };
};"""
MANAGED = 'settings.theme = "light"; environment = { PI_OFFLINE = "1"; MANAGED = "by the system"; }; environmentFiles = [ "/run/secrets/pi.env" ];'
CONFIGURATION = f'{{ enable = true; accounts = "per-user"; {USERS} {MANAGED} }}'
STOPPED = CONFIGURATION.replace("enable = true;", "enable = true; wrapper.enable = false;")
PLACE = re.compile(rb"(?<=policy\.yaml)(?::\d+)+")  # line and column
INSIDE = f"{STATE}/alice/home/.pi/agent"


@pytest.fixture(scope="module")
def nixos(machine_name):
    """A machine with the layout, on which the module's configuration was switched to."""
    with Machine(f"nixos-{os.getpid()}", machine_name) as booted:
        booted.create(agent=None)
        furnish(booted)
        booted.boot()
        start_system(booted)
        booted.write("/run/secrets/pi.env", "FROM_FILE=secret\n", mode=0o400)
        done = switch(booted, evaluate(CONFIGURATION))
        assert done.returncode == 0, booted.root(["journalctl", "-u", "pi-agent-apply.service"]).stdout
        yield booted
        wait_until_empty(lambda: [line for line in leftovers(booted) if not line.startswith("pi-agent-apply.service")])
        record_check.require_valid(booted)
        booted.stop()


def pi(machine, *arguments, user="alice", cwd=DEMO, **options):
    return machine.run(["pi", *arguments], user=user, cwd=cwd, env={"PATH": PATH}, **options)


def shell(machine, script, **options):
    """What a command says in a session."""
    done = pi(machine, "--pi-agent-shell", "-c", script, **options)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def files_of(theme, document):
    """What coding.agents.pi of home-manager puts below ~/.pi/agent."""
    return {
        "settings.json": json.dumps({"defaultProvider": "scripted", "defaultModel": "scripted", "theme": theme, "quietStartup": True}),
        "models.json": MODELS,
        "mcp.json": json.dumps({"mcpServers": {"files": {"command": document}}}),
        "AGENTS.md": f"# {document}\n",
        "SYSTEM.md": f"You are {document}.\n",
        "agents/chiron.md": f"---\nname: {document}\n---\n",
    }


MODELS = json.dumps({"providers": {"scripted": {
    "baseUrl": "http://127.0.0.1:8099/v1", "api": "openai-completions", "apiKey": "none",
    "compat": {"supportsDeveloperRole": False, "supportsReasoningEffort": False},
    "models": [{"id": "scripted", "name": "Scripted", "reasoning": False, "input": ["text"], "contextWindow": 128000, "maxTokens": 8192,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}})  # fmt: skip


@pytest.fixture
def generation(nixos):
    """home-manager's first generation replaces alice's own config; her own comes back."""
    nixos.run("mv .pi .pi-kept && mkdir -p .pi/agent", check=True)
    nixos.root(["rm", "-rf", f"{STATE}/alice"], check=True)
    home_manager(nixos, "one", files_of("dark", "first"))
    yield nixos
    nixos.root("cd /home/alice && rm -rf .pi && mv .pi-kept .pi", check=True)


def test_nothing_of_it_lies_where_other_systems_have_it(nixos):
    nixos.root("! ls /usr/bin/pi /usr/bin/pi-agentctl /usr/libexec/pi-agent /usr/bin/sudo /etc/sudoers.d 2>/dev/null", check=True)
    assert nixos.root(["readlink", "-f", POLICY]).stdout.decode().strip() == f"{STORE}/pi-agent-policy.yaml"
    assert f'"binary": "{AGENT}/bin/pi"' in nixos.read(POLICY).decode()
    assert nixos.root(["stat", "-c", "%U:%G %a", STORE]).stdout.decode().strip() == "root:nixbld 1775"


def test_the_real_agent_works_and_its_files_are_the_users(generation):
    generation.forget_model_requests()
    steps = [{"bash": "id -un; pwd; command -v git; git --version; echo $SHELL; $SHELL -c 'echo runs'"}, {"write": {"path": "made.txt", "content": "x\n"}}]
    done = pi(generation, "-p", prompt(*steps))
    assert (done.returncode, done.stdout.split()[0]) == (0, b"finished"), done
    said = tool_results(generation)[0].splitlines()
    assert said[:3] == ["pi-agent-alice", DEMO, "/run/current-system/sw/bin/git"] and said[3].startswith("git version")
    assert said[4].startswith(f"{STORE}/") and said[4].endswith("/bin/bash") and said[5] == "runs"
    assert owner_and_mode(generation, f"{DEMO}/made.txt") == "alice:alice 644"
    generation.run(["rm", f"{DEMO}/made.txt"], check=True)


def test_every_link_into_the_store_is_a_file_inside_and_what_is_managed_wins(generation):
    shell(generation, "true")
    files = files_of("dark", "first")
    for name in ("mcp.json", "AGENTS.md", "SYSTEM.md", "agents/chiron.md", "models.json"):
        assert generation.read(f"{INSIDE}/{name}").decode() == files[name]
        assert generation.root(["stat", "-c", "%U %F", f"{INSIDE}/{name}"]).stdout == b"pi-agent-alice regular file\n"
    settings = json.loads(generation.read(f"{INSIDE}/settings.json"))
    assert settings == {**json.loads(files["settings.json"]), "theme": "light"}
    said = shell(generation, 'cat "$PI_CODING_AGENT_DIR/AGENTS.md"; echo $MANAGED $OF_ALICE $FROM_FILE')
    assert said == "# first\nby the system 1 secret\n"


def test_the_next_generation_is_there_at_the_next_start_and_what_it_leaves_out_is_gone(generation):
    shell(generation, "true")
    files = files_of("dark", "second")
    del files["SYSTEM.md"], files["agents/chiron.md"]
    home_manager(generation, "two", files)
    said = shell(generation, 'cd "$PI_CODING_AGENT_DIR" && cat AGENTS.md mcp.json; ls -A agents SYSTEM.md 2>&1 | grep -c . || true')
    assert said.startswith("# second\n") and '"command": "second"' in said
    generation.root(f"! ls {INSIDE}/SYSTEM.md {INSIDE}/agents/chiron.md 2>/dev/null", check=True)
    assert generation.read(f"{INSIDE}/mcp.json").decode() == files["mcp.json"]


def test_git_lfs_is_found_where_the_system_has_its_programs(nixos):
    nixos.root(["ln", "-s", "/usr/bin/cat", f"{PROGRAMS}/git-lfs"], check=True)
    nixos.run("cp -p .gitconfig .gitconfig-kept 2>/dev/null; git config --global filter.lfs.clean 'git-lfs clean -- %f'", cwd="/home/alice", check=True)
    try:
        said = shell(nixos, "git config --get filter.lfs.clean")
    finally:
        nixos.run("rm .gitconfig; mv .gitconfig-kept .gitconfig 2>/dev/null || true", cwd="/home/alice", check=True)
        nixos.root(["rm", f"{PROGRAMS}/git-lfs"], check=True)
    assert said == "git-lfs clean -- %f\n"


def test_a_member_of_a_group_has_an_account_of_the_modules(nixos):
    nixos.root("install -d -o carol -g devs /srv/devs/tool", check=True)
    assert shell(nixos, "id -un; touch made; echo $OF_ALICE", user="carol", cwd="/srv/devs/tool") == "pi-agent-carol\n\n"
    assert owner_and_mode(nixos, "/srv/devs/tool/made").startswith("carol:")
    nixos.root("rm -r /srv/devs/tool", check=True)


def test_others_and_other_directories_are_refused(nixos):
    assert_refused(pi(nixos, user="eve", cwd="/home/eve"), DENIED, "does not authorise eve")
    assert_refused(pi(nixos, cwd="/home/alice"), DENIED, "/home/alice")
    done = nixos.run(["/run/wrappers/bin/sudo", "-n", f"{NIXOS_PREFIX}/libexec/pi-agent/pi-agent-runner", "x"], user="alice")
    assert done.returncode == 1 and b"password is required" in done.stderr, done


def test_the_rules_are_those_that_the_product_would_write(nixos):
    sudo = evaluate(CONFIGURATION)["sudo"]
    ours = nixos.root(["pi-agentctl", "apply", "--show-rule"], env={"PATH": PATH}, check=True).stdout.decode()
    wanted = [line for line in ours.splitlines() if line and not line.startswith("#")]
    assert len(wanted) == 6
    assert set(wanted) <= {line.strip() for line in sudoers_of(sudo).splitlines()}
    nixos.root(["visudo", "-c"], check=True)
    if "sudo-rs" in MACHINES[nixos.recipe].packages:
        rs = {**sudo, "extraConfig": sudo["extraConfig"].splitlines(keepends=True)[0]}
        nixos.write("/root/sudoers-rs", sudoers_of(rs))
        nixos.root(["visudo-rs", "-c", "-f", "/root/sudoers-rs"], check=True)


def test_a_wrong_policy_fails_where_it_is_built(nixos):
    for setting, words in (('limits.memory = "much";', "limits.memory: "), ('network = [ "everything" ];', "network[0]: "),
                           ('binaryName = "absent";', f"{AGENT} has no such program in bin; say which it is: m3ta.pi-agent.binaryName")):  # fmt: skip
        done = build_policy(nixos, evaluate(CONFIGURATION.replace("enable = true;", f"enable = true; {setting}")))
        assert done.returncode not in (0, 127) and words in done.stderr.decode(), done


def test_the_modules_policies_and_their_twins_by_hand_have_the_same_effect(nixos):
    """As `explain` tells it for two users; tests/nix compares what they say."""
    made = {name: as_built(seen["draft"]) for name, seen in evaluate_modules("configurations.nix", "configurations").items()}
    by_hand = {file.stem: file.read_text() for file in (SOURCE / "tests/nix/policies").glob("*.yaml")}
    kept = nixos.read(POLICY)

    def effects(text):
        nixos.write(f"{STORE}/pi-agent-policy.yaml", text)
        said = []
        for user in ("alice", "bob"):
            done = nixos.root(["pi-agentctl", "explain", "--json", "--user", user, "--cwd", DEMO], env={"PATH": PATH})
            assert done.stdout, done
            said.append((done.returncode, json.loads(PLACE.sub(b"", done.stdout))))
        return said

    try:
        seen = {name: (effects(made[name]), effects(by_hand[name])) for name in sorted(by_hand)}
    finally:
        nixos.write(f"{STORE}/pi-agent-policy.yaml", kept)
    assert {name for name, (ours, theirs) in seen.items() if ours != theirs} == set()
    assert len({json.dumps(ours) for ours, _ in seen.values()}) >= 12  # what is compared tells the policies apart


def test_doctor_finds_nothing(nixos):
    done = nixos.root(["pi-agentctl", "doctor", "--json", "--user", "alice"], env={"PATH": PATH}, timeout=180)
    report = json.loads(done.stdout)
    assert (done.returncode, report["faults"], report["sandbox"]["good"]) == (0, [], True), report


@pytest.mark.parametrize("command, arguments", [("edit", []), ("rollback", []), ("init", []), ("set", ["network", "none"]), ("user add", ["eve", "--root", "/srv/devs"])])
def test_the_policy_is_the_systems_to_change(nixos, command, arguments):
    before = nixos.read(POLICY)
    done = nixos.root(["pi-agentctl", *command.split(), *arguments], env={"PATH": PATH})
    assert done.returncode == 64, done
    assert done.stderr.decode() == f"pi-agentctl: {command}: {POLICY} is made by the configuration of this system; change it there, and rebuild the system\npi-agentctl: see: pi-agentctl explain E64\n"
    assert nixos.read(POLICY) == before


def test_the_emergency_stop_ends_sessions_and_says_so(nixos):
    process = nixos.popen(["pi", "--pi-agent-shell", "-c", "echo ready; sleep 60"], cwd=DEMO, env={"PATH": PATH})
    assert process.stdout.readline() == b"ready\n"
    try:
        assert switch(nixos, evaluate(STOPPED)).returncode == 0
        assert process.wait(10) != 0
        assert_refused(pi(nixos), DENIED, "wrapper.enable")
        assert "NOPASSWD" not in nixos.read("/etc/sudoers").decode()
    finally:
        process.kill_all()
        process.communicate()
        assert switch(nixos, evaluate(CONFIGURATION)).returncode == 0
    assert shell(nixos, "echo again") == "again\n"


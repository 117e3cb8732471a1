"""What the module brings about on a system, under the stand-in library and, with NIXPKGS_LIB, under nixpkgs' own."""

import json
import os

import pytest
from cache import NIXOS_PREFIX
from evaluating import HERE, LIBRARIES, SOURCE, EvaluationError, evaluate_modules, nix

RUNNER = f"{NIXOS_PREFIX}/libexec/pi-agent/pi-agent-runner"
GUARD = f"Defaults!{RUNNER} env_reset, !env_keep, !env_check, !use_pty\n"
GUARD_OF_ORIGINAL = (
    f"Defaults!{RUNNER} !setenv, !requiretty, !log_input, !log_output, !pam_session, !pam_setcred\n"
    f"Defaults!{RUNNER} !log_subcmds, !intercept, !command_timeout, !noexec, !runcwd, !stay_setuid\n"
    f"Defaults!{RUNNER} !rlimit_as, !rlimit_cpu, !rlimit_data, !rlimit_fsize, !rlimit_locks, !rlimit_memlock, "
    "!rlimit_nofile, !rlimit_nproc, !rlimit_rss, !rlimit_stack\n"
)
AGENT = "/nix/store/pi-coding-agent"
HOST_USERS = {"alice", "bob", "carol"}

# The words of each assertion, and of its remedy.
WRONG = {
    "no_roots": ('hostUsers."alice".projectRoots is empty', "name at least one directory, or remove the entry"),
    "whole_file_system": ('hostUsers."alice".projectRoots holds /, the whole file system', "name the directory of a project"),
    "home_by_name": ('hostUsers."alice".projectRoots holds ~, a home directory itself', "name a directory below it"),
    "home_by_path": ('hostUsers."carol".projectRoots holds /srv/homes/carol, a home directory itself', "name a directory below it"),
    "nobody": ("wrapper.enable is true and nobody is authorised", "or say wrapper.enable = false"),
    "unknown_user": ("there is no users.users.dave", "declare the user, or remove the entry"),
    "unknown_group": ("there is no users.groups.ops", "declare the group, or remove the entry"),
    "forgotten_member": ('hostUsers."%devs".members lacks bob, carol', "add them, or give them entries of their own"),
    "duplicate_command": ("the agent's own program and the wrapper are both called pi", "choose another wrapper.commandName"),
    "duplicate_named_command": ("the agent's own program and the wrapper are both called coding-agent", "choose another wrapper.commandName"),
    "missing_account": ("createUser is false, and there is no users.users.pi-agent for the agent", "or say createUser = true"),
    "missing_group": ("createUser is false, and there is no users.groups.pi-agent", "or say createUser = true"),
    "no_agent": ("agent.package is not set", "name the package of the agent"),
    "no_sudo": ("wrapper.enable needs sudo", "say security.sudo.enable = true or security.sudo-rs.enable = true"),
    "wheel_only": ("keeps sudo from everybody outside of wheel, and so from users of m3ta.pi-agent.hostUsers (bob)", "take it back"),
    "agent_on_path": ("environment.systemPackages holds the agent itself", "take it out, or say wrapper.hideDirectBinary = false"),
    "agent_on_path_of_a_user": ("users.users.<name>.packages of alice holds the agent itself", "take it out"),
    "unknown_network": ("m3ta.pi-agent.network has ports", "it may have hosts, may_grant, via, direct and via_login_file"),
    "key_without_gate": ("m3ta.pi-agent.providers keeps keys out of sessions whose m3ta.pi-agent.network has no gate", "say network = { hosts = [ … ]; }"),
    "key_in_the_store": ("m3ta.pi-agent.providers.anthropic.key_file is in the store", "name a file that only root can read"),
    "users_key_in_the_store": ('hostUsers."alice".sshKey is in the store, which everybody can read', "name a file of the user's home"),
    "secrets_in_the_store": ("environmentFiles holds /nix/store/pi.env: everybody can read the store", "name a file that only root can read"),
}


def test_each_assertion_fires_alone_and_says_what_to_do(library):
    failures = evaluate_modules("wrong.nix", "failures", library)
    assert set(failures) == set(WRONG)
    for name, words in WRONG.items():
        assert len(failures[name]) == 1, (name, failures[name])
        assert failures[name][0].startswith(("m3ta.pi-agent.", "environment.", "security.", "users.")) and failures[name][0].endswith(".")
        assert all(word in failures[name][0] for word in words), (name, failures[name])


def test_nothing_is_wrong_with_what_is_right(configurations):
    assert {name: seen["failed"] for name, seen in configurations.items() if seen["failed"]} == {}


def test_a_system_that_does_not_enable_it_gets_nothing(library):
    systems = evaluate_modules("systems.nix", "configurations", library)
    off = systems["not_enabled"]
    assert not off["enabled"] and off["files"] == off["packages"] == off["unitsOf"] == off["tmpfiles"] == []
    assert off["services"] == {} and set(off["users"]) == HOST_USERS and off["sudo"] == off["sudo-rs"] == {"extraConfig": "", "extraRules": []}


def test_exactly_the_authorised_may_start_the_runner_without_arguments(configurations):
    for name, users, groups in (("minimal", ["alice"], []), ("shared", ["alice", "bob"], []), ("groups", [], ["devs"])):
        seen = configurations[name]
        rule = {"users": users, "groups": groups, "host": "ALL", "runAs": "root",
                "commands": [{"command": f'{RUNNER} ""', "options": ["NOPASSWD"]}]}  # fmt: skip
        assert seen["sudo"] == {"extraRules": [rule], "extraConfig": GUARD + GUARD_OF_ORIGINAL}
        assert seen["sudo-rs"] == {"extraRules": [], "extraConfig": ""}


def test_sudo_rs_gets_the_same_rule_in_words_that_it_knows(library, configurations):
    systems = evaluate_modules("systems.nix", "configurations", library)
    seen = systems["sudo_rs"]
    assert seen["sudo"] == {"extraRules": [], "extraConfig": ""}
    assert seen["sudo-rs"] == {"extraRules": configurations["minimal"]["sudo"]["extraRules"], "extraConfig": GUARD}


def test_the_rule_comes_after_all_others(library):
    """The last rule that fits is what counts: one of wheel's would ask for a password."""
    rules = evaluate_modules("systems.nix", "configurations", library)["other_rules"]["sudo"]["extraRules"]
    assert [rule["groups"] for rule in rules] == [["wheel"], []]


def test_a_sudo_for_wheel_alone_is_right_for_members_by_either_option(library):
    assert evaluate_modules("systems.nix", "configurations", library)["wheel_alone"]["failed"] == []


def test_the_emergency_stop_takes_the_rule_and_keeps_the_words(configurations):
    for name in ("stopped", "stopped_with_users"):
        seen = configurations[name]
        assert seen["sudo"] == seen["sudo-rs"] == {"extraRules": [], "extraConfig": ""}
        assert seen["packages"] == [NIXOS_PREFIX]  # pi is there and says that it is switched off
        assert "pi-agent-apply" in seen["services"]  # which ends the sessions that live


def test_accounts_are_those_that_the_policy_asks_for(configurations, library):
    def agents(seen):
        return {name: (user["group"], user["extraGroups"], user["description"]) for name, user in seen["users"].items() if name not in HOST_USERS}

    main = ("pi-agent", [], "pi-agent")
    own = {user: (f"pi-agent-{user}", ["pi-agent"], f"pi-agent of {user}") for user in HOST_USERS}
    assert agents(configurations["minimal"]) == agents(configurations["shared"]) == {"pi-agent": main}
    assert agents(configurations["groups"]) == {f"pi-agent-{user}": account for user, account in own.items()}
    assert agents(configurations["per_user"]) == {"coder-alice": ("coder-alice", ["coders"], "pi-agent of alice"),
                                                  "team": ("team", ["coders"], "pi-agent of bob")}  # fmt: skip
    for seen in configurations.values():
        accounts = [user for name, user in seen["users"].items() if name not in HOST_USERS]
        assert all(user["isSystemUser"] and user["home"] == "/var/lib/pi-agent" and user["group"] in seen["groups"] for user in accounts)
        assert all(set(user["extraGroups"]) <= set(seen["groups"]) for user in accounts)
    own_accounts = evaluate_modules("systems.nix", "configurations", library)["own_accounts"]
    assert own_accounts["failed"] == [] and set(own_accounts["users"]) == {*HOST_USERS, "pi-agent"}
    assert own_accounts["users"]["pi-agent"]["description"] == "made elsewhere"


def test_state_units_and_the_policys_file(configurations):
    for name, seen in configurations.items():
        assert seen["tmpfiles"] == [f"d {'/srv/agents' if name == 'state_elsewhere' else '/var/lib/pi-agent'} 0711 root root -"]
        assert seen["files"] == ["pi-agent/policy.yaml"] and seen["unitsOf"] == [NIXOS_PREFIX]
        service = seen["services"]["pi-agent-apply"]
        assert service["serviceConfig"]["ExecStart"] == f"{NIXOS_PREFIX}/bin/pi-agentctl apply --no-canary"
        assert service["restartTriggers"] == ["pi-agent-policy.yaml"] and service["wantedBy"] == ["multi-user.target"]


def test_the_agent_is_on_a_path_only_where_it_is_not_hidden(library, configurations):
    assert all(seen["packages"] == [NIXOS_PREFIX] for seen in configurations.values())
    systems = evaluate_modules("systems.nix", "configurations", library)
    assert systems["shown"]["failed"] == []
    assert systems["shown"]["packages"] == [f"{NIXOS_PREFIX}-agent-pi-agent-runner", AGENT]


def test_podman_gets_the_programs_that_the_hosts_podman_keeps_to_itself(library):
    seen = evaluate_modules("systems.nix", "configurations", library)["by_podman"]
    assert seen["failed"] == [] and seen["packages"] == [NIXOS_PREFIX, "/nix/store/crun", "/nix/store/conmon"]


def test_other_names_are_built_in(library):
    seen = evaluate_modules("systems.nix", "configurations", library)["other_names"]
    ours = f"{NIXOS_PREFIX}-agent-coding-runner"
    assert seen["packages"] == seen["unitsOf"] == [ours]
    assert seen["sudo"]["extraRules"][0]["commands"][0]["command"] == f'{ours}/libexec/pi-agent/coding-runner ""'
    assert f"Defaults!{ours}/libexec/pi-agent/coding-runner env_reset" in seen["sudo"]["extraConfig"]
    assert '"command_name": "agent"' in seen["draft"] and f"{ours}/bin/pi-agentctl check" in seen["build"]


def test_every_option_has_type_default_description_and_example(library):
    options = evaluate_modules("configurations.nix", "options", library)
    assert len(options) > 50
    assert [option for option in options if None in option.values() or not option["description"].strip()] == []
    undocumented = evaluate_modules("configurations.nix", "undocumented", library)
    assert undocumented == (None if library == LIBRARIES["stand-in"] else [])


def as_nix(text):
    """A value of JSON as people write it in Nix; any other text is Nix already."""
    def show(value):
        if isinstance(value, list):
            return " ".join(["[", *map(show, value), "]"])
        if isinstance(value, dict):
            return " ".join(["{", *(f"{name if name.isidentifier() else json.dumps(name)} = {show(inner)};" for name, inner in value.items()), "}"])
        return json.dumps(value)

    try:
        return show(json.loads(text))
    except ValueError:
        return text


def option_rows(options):
    """The table of docs/platforms/nixos-options.md."""
    for option in options:
        name = option["path"].removeprefix("m3ta.pi-agent.").replace("hostUsers.", "hostUsers.NAME.")
        cells = [f"`{name}`", f"`{as_nix(option['default'])}`", f"`{as_nix(option['example'])}`", " ".join(option["description"].split())]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def test_the_page_has_every_option(library):
    page = SOURCE / "docs/platforms/nixos-options.md"
    mark = "<!-- What follows is written by tests/nix/test_module.py. -->\n"
    head, _ = page.read_text().split(mark)
    rows = "\n".join(["| option | default | example | |", "| --- | --- | --- | --- |", *option_rows(evaluate_modules("configurations.nix", "options", library))])
    wanted = f"{head}{mark}\n{rows}\n"
    if os.environ.get("PI_AGENT_WRITE_NIXOS_PAGE"):
        page.write_text(wanted)
    assert page.read_text() == wanted, "the options are others; PI_AGENT_WRITE_NIXOS_PAGE=1 writes the table"


def test_an_unknown_option_and_a_wrong_type_are_refused(library):
    wrong = ['limits.tasks = "many";', 'view = "all";', 'network.hosts = "github.com";', 'config.classes.sessions = "sometimes";',
             "providers.anthropic.key_file = 5;", "hostUsers.alice.projectRoots = [ { path = 5; } ];"]  # fmt: skip
    for setting, words in {"enabel = true;": "enabel' does not exist", **dict.fromkeys(wrong, "is not of type")}.items():
        arguments = f"library = {library}; ours = \"/x\"; modules.wrong.m3ta.pi-agent = {{ enable = true; {setting} }};"
        with pytest.raises(EvaluationError, match=words):
            nix("--expr", f"(import {HERE}/evaluate.nix {{ {arguments} }}).configurations.wrong.draft")

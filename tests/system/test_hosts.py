"""Hosts by name and keys that stay outside, as check, explain, show, why and a start say them (docs/concepts/hosts.md, docs/concepts/keys.md)."""

import json

import pytest
from administering import USAGE, answer, said
from launching import DEMO, DENIED, INVALID, PLAYING_POLICY, assert_refused, pi, written_policy

KEY_FILE = "/etc/pi-agent/anthropic.key"
HOSTS = "network: {hosts: ['*.example.org', example.org, 'localhost:5432'], may_grant: ['*.example.net:80']}\n"
PROVIDERS = f"providers: {{anthropic: {{key_file: {KEY_FILE}}}}}\n"
DRAFT = "/root/draft.yaml"


@pytest.fixture
def host(playing):
    playing.install_policy(PLAYING_POLICY)
    playing.write(KEY_FILE, "sk-ant-of-the-test\n", mode=0o600)
    yield playing
    playing.root(["rm", "-f", KEY_FILE, DRAFT], check=True)


def checked(machine, lines):
    """{key: all its messages} of errors, and of warnings."""
    machine.write(DRAFT, PLAYING_POLICY + lines)
    done = machine.root(["pi-agentctl", "check", "--json", DRAFT])
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == (report["errors"] == []), report
    told = ({}, {})
    for found, kind in zip(told, ("errors", "warnings"), strict=True):
        for one in report[kind]:
            if (one["key"] or "").startswith(("network", "providers")):
                found[one["key"]] = f"{found.get(one['key'], '')}{one['message']}\n"
    return told


REFUSED = {
    "network: {hosts: ['*.github.io']}": ("network.hosts", "anybody can have a name below github.io"),
    "network: {hosts: ['*.com']}": ("network.hosts", "anybody can have a name below com"),
    "network: {hosts: ['*.co.uk:8443']}": ("network.hosts", "anybody can have a name below co.uk"),
    "network: {hosts: ['*.s3.amazonaws.com']}": ("network.hosts", "anybody can have a name below s3.amazonaws.com"),
    "network: {hosts: ['*.azurewebsites.net']}": ("network.hosts", "anybody can have a name below azurewebsites.net"),
    "network: {hosts: [example.org], may_grant: ['*.github.io']}": ("network.may_grant", "anybody can have a name below github.io"),
    "network: {hosts: ['localhost:808']}": ("network.hosts", "the gate itself listens there"),
    "network: {hosts: ['https://example.org/']}": ("network.hosts[0]", "is a URL"),
    "network: {hosts: ['example.org:0']}": ("network.hosts[0]", "has a port that is not a number"),
    "network: {hosts: [255.255.255.255]}": ("network.hosts[0]", "leads to no host"),
    f"network: loopback\n{PROVIDERS}": ("providers", "the network of these sessions is loopback"),
    f"{PROVIDERS}": ("providers", "is full (the default)"),
    "sandbox: {method: bwrap}\nnetwork: {hosts: [example.org]}": ("network", "has no gate that could hold a session to hosts"),
    "sandbox: {method: none}\nnetwork: {hosts: [example.org]}": ("network", "has no gate that could hold a session to hosts"),
    f"network: [10.0.0.0/8]\n{PROVIDERS}": ("providers", "the network of these sessions is a list of ranges"),
    f"sandbox: {{method: bwrap}}\nnetwork: none\n{PROVIDERS}": ("providers", "has no gate that could keep their keys outside"),
    f"sandbox: {{method: bwrap}}\nnetwork: {{hosts: [example.org]}}\n{PROVIDERS}": ("providers", "has no gate that could keep their keys outside"),
}  # fmt: skip


@pytest.mark.parametrize("lines", REFUSED)
def test_check_refuses_what_cannot_hold(host, lines):
    key, words = REFUSED[lines]
    errors, _ = checked(host, f"{lines}\n")
    assert words in errors[key], errors


@pytest.mark.parametrize("lines", REFUSED)
def test_apply_refuses_it_as_well_and_the_policy_stays_in_force(host, lines):
    """Or somebody would believe that it holds."""
    _, words = REFUSED[lines]
    with written_policy(host, f"{PLAYING_POLICY}{lines}\n"):
        done = host.root(["pi-agentctl", "apply", "--no-canary"])
    assert done.returncode == INVALID and words in done.stderr.decode(), done
    assert host.root(["pi-agentctl", "apply", "--no-canary"]).returncode == 0


LEVELS = {
    "of a user": PLAYING_POLICY.replace("  alice:\n", f"  alice:\n    {PROVIDERS}", 1),
    "of a group": PLAYING_POLICY.replace('  "%devs":\n', f'  "%devs":\n    {PROVIDERS}', 1),
    "of a user whose own network is open": PLAYING_POLICY.replace("  alice:\n", "  alice:\n    network: full\n", 1) + HOSTS + PROVIDERS,
}


@pytest.mark.parametrize("level", LEVELS)
def test_check_refuses_a_key_outside_of_an_open_network_at_every_level(host, level):
    host.write(DRAFT, LEVELS[level])
    done = host.root(["pi-agentctl", "check", "--json", DRAFT])
    told = [one["message"] for one in json.loads(done.stdout)["errors"]]
    assert done.returncode == INVALID and any("is full" in message and "which has no gate" in message for message in told), done
    host.write(DRAFT, PLAYING_POLICY + HOSTS + PROVIDERS)
    assert host.root(["pi-agentctl", "check", DRAFT]).returncode == 0


def test_check_warns_of_rules_that_mean_less_or_more_than_they_seem_to(host):
    errors, warnings = checked(host, f"network: {{hosts: ['*.example.org', api.anthropic.com]}}\n{PROVIDERS}")
    assert errors == {} and "without a rule" in warnings["network.hosts"], warnings
    errors, warnings = checked(host, "network: {hosts: ['*.example.org']}\n")
    assert errors == {} and "and not example.org itself" in warnings["network.hosts"], warnings
    assert checked(host, HOSTS + PROVIDERS) == ({}, {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (f"chmod 644 {KEY_FILE}", "is readable for others than root"),
        (f"chown alice {KEY_FILE}", "not to root"),
        (f": >{KEY_FILE}", "is empty"),
        (f"printf 'one\\ntwo\\n' >{KEY_FILE}", "has more than a key"),
        (f"rm {KEY_FILE}", "No such file"),
    ],
)
def test_check_looks_at_the_files_of_keys(host, change, words):
    host.root(["sh", "-ec", change], check=True)
    errors, _ = checked(host, HOSTS + PROVIDERS)
    assert words in errors["providers.anthropic.key_file"] and "sk-ant" not in str(errors), errors


def test_explain_and_show_say_hosts_grants_and_keys(host):
    with written_policy(host, PLAYING_POLICY + HOSTS + PROVIDERS):
        explained = answer(host, "explain", "--user", "alice")
        text = said(host, "explain", "--user", "alice")
        shown = answer(host, "show", "--user", "alice", "--directory", DEMO)["effective"]
    assert explained["network"] == {"mode": "hosts", "allowed": [], "hosts": ["*.example.org", "example.org", "localhost:5432"], "may_grant": ["*.example.net:80"]}
    assert [(one["name"], one["host"], one["key_file"]) for one in explained["providers"]] == [("anthropic", "api.anthropic.com", KEY_FILE)]
    assert "its user may add (pi --pi-agent-allow): *.example.net:80" in text and "its key stays outside" in text and "sk-ant" not in text
    assert shown["network"]["value"] == '{hosts: ["*.example.org", example.org, "localhost:5432"], may_grant: ["*.example.net:80"]}', shown["network"]
    assert shown["providers"]["value"] == f"{{anthropic: {{key_file: {KEY_FILE}}}}}" and shown["providers"]["key"] == "providers", shown["providers"]


def test_why_names_the_rule_of_a_host_and_starts_no_session(host):
    asked = {
        "packages.example.org:443": (True, "network.hosts"),
        "https://example.org/a/b": (True, "network.hosts"),
        "example.org:80": (False, "network.hosts"),
        "deb.example.net:80": (False, "network.hosts"),
        "api.anthropic.com:443": (True, "providers"),
        "localhost:5432": (True, "network.hosts"),
        "10.0.0.1": (False, "network.hosts"),
    }
    with written_policy(host, PLAYING_POLICY + HOSTS + PROVIDERS):
        before = host.root(["pi-agentctl", "history", "--json"]).stdout
        answers = answer(host, "why", "--user", "alice", "--cwd", DEMO, *asked)
        own = host.run(["pi-agentctl", "why", "example.org:443"], user="alice", cwd=DEMO, check=True).stdout.decode()
        assert "is many hosts" in said(host, "why", "--user", "alice", "--cwd", DEMO, "*.example.org", status=USAGE)
        assert host.root(["pi-agentctl", "history", "--json"]).stdout == before
    assert answers["paths"] == []
    assert [(one["reach"], one["key"]) for one in answers["hosts"]] == list(asked.values()), answers
    assert [one["may_be_added"] for one in answers["hosts"]] == [False, False, False, True, False, False, False]
    assert own.startswith("example.org:443: may be reached\n  rule:      a rule names it (example.org) (/etc/pi-agent/policy.yaml:"), own


def test_a_start_adds_what_the_policy_lets_it_add_and_nothing_else(host):
    with written_policy(host, PLAYING_POLICY + HOSTS):
        done = pi(host, "--pi-agent-allow", "deb.example.net:80", "sh", "echo $PI_AGENT_SESSION")
        assert done.returncode == 0, done
        entries = host.root(f"journalctl --sync; journalctl -o json PI_AGENT_SESSION={done.stdout.decode().strip()} PI_AGENT_EVENT=started", check=True).stdout
        assert b'"PI_AGENT_ADDED_HOSTS":"deb.example.net:80"' in entries, entries
        assert pi(host, "--pi-agent-allow=example.org", "sh", "true").returncode == 0  # there already
        for refused in ("deb.example.net", "example.net:80", "github.com"):
            done = pi(host, "--pi-agent-allow", refused, "sh", "true")
            assert_refused(done, DENIED, f"--pi-agent-allow {refused} is not among what the policy lets you add", "may_grant: *.example.net:80", "E77-start")
        done = pi(host, "--pi-agent-allow", "example.org", "--pi-agent-network=none", "sh", "true")
        assert_refused(done, USAGE, "say one of them")
    with written_policy(host, PLAYING_POLICY + "network: none\n"):
        assert_refused(pi(host, "--pi-agent-allow", "example.org", "sh", "true"), DENIED, "has no meaning here")


def test_a_key_outside_of_an_open_network_starts_nobody(host):
    policy = PLAYING_POLICY.replace("  alice:\n", f"  alice:\n    {PROVIDERS}", 1)
    assert policy != PLAYING_POLICY
    with written_policy(host, policy):
        done = pi(host, "sh", "true")
    assert done.returncode == INVALID, done


def test_doctor_names_an_open_network_as_what_it_is(host):
    with written_policy(host, PLAYING_POLICY):
        notes = json.loads(host.root(["pi-agentctl", "doctor", "--json"]).stdout)["notes"]
    [told] = [note for note in notes if note.startswith("network: full")]
    assert "(the default)" in told and "alice" in told, told
    with written_policy(host, PLAYING_POLICY + "network: none\n"):
        notes = json.loads(host.root(["pi-agentctl", "doctor", "--json"]).stdout)["notes"]
    assert not [note for note in notes if note.startswith("network: full")], notes

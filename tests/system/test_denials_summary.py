"""pi-agentctl denials: the product's own probes are left out unless asked for, and a summary is YAML that the policy takes."""

import json

import pytest
from administering import NOTHING, answer, ctl, said
from launching import PLAYING_POLICY, pi

RULES = "network:\n  hosts:\n    - provider.example\n"
ASK = """
import socket, sys
for place in sys.argv[1:]:
    host, port = place.rsplit(":", 1)
    try: socket.create_connection((host, int(port)), 5).recv(1)
    except OSError: pass
"""


@pytest.fixture(scope="module")
def hosts(playing):
    playing.install_policy(PLAYING_POLICY + RULES)
    playing.root(["journalctl", "--rotate", "--vacuum-time=1s"])
    yield playing
    playing.install_policy(PLAYING_POLICY)


def denied(machine, *options):
    machine.root(["journalctl", "--sync"], check=True)
    done = ctl(machine, "denials", "--json", *options)
    return json.loads(done.stdout)["denials"]


def test_what_doctor_tries_is_shown_with_probes_alone(hosts):
    machine = hosts
    assert pi(machine, "sh", 'exec python3 -c "$1" 192.0.2.77:8443', ASK).returncode == 0
    machine.root(["pi-agentctl", "doctor"])
    with_probes = denied(machine, "--probes")
    shown = denied(machine)
    assert {denial["host"] for denial in shown} >= {"192.0.2.77"}
    probing = {denial["session"] for denial in with_probes} - {denial["session"] for denial in shown}
    assert probing, with_probes  # else the sandbox was tried without a look at its network, and this proves nothing
    probes = {start["id"] for start in answer(machine, "history", "--probes")["starts"] if start["probe"]}
    assert probing <= probes and not probes & {denial["session"] for denial in shown}
    mine = json.loads(machine.run(["pi-agentctl", "denials", "--json"], check=True).stdout)["denials"]  # alice's own, without the journal
    assert not probes & {denial["session"] for denial in mine}, mine


def test_a_summary_is_pasted_and_then_holds(hosts):
    machine = hosts
    places = "192.0.2.78:8443 192.0.2.78:8443 internal.example:443 odd.example:22"
    assert pi(machine, "sh", f'exec python3 -c "$1" {places}', ASK).returncode == 0
    machine.root(["journalctl", "--sync"], check=True)
    summary = said(machine, "denials", "--summary", "--user", "alice")
    assert '    - "192.0.2.78:8443" # 2 times, alice; last ' in summary and '    - "odd.example:22" # 1 times' in summary, summary
    assert summary.startswith("# An agent chooses what it asks for"), summary
    pasted = PLAYING_POLICY + summary.replace("network:\n  hosts:\n", RULES)
    machine.write("/root/pasted.yaml", pasted)
    assert "policy is valid" in said(machine, "check", "--policy-only", "/root/pasted.yaml")
    machine.root(["rm", "/root/pasted.yaml"], check=True)
    mine = machine.run(["pi-agentctl", "denials", "--summary"], check=True).stdout.decode()
    assert '"odd.example:22"' in mine
    assert ctl(machine, "denials", "--summary", "--user", "bob").returncode == NOTHING


def test_pi_looks_for_no_updates_where_no_rule_names_their_host(hosts):
    machine = hosts
    environment = PLAYING_POLICY.split("env:\n")[0]
    machine.install_policy(environment + RULES)
    offline = 'echo "${PI_OFFLINE:-on}"'
    assert pi(machine, "sh", offline).stdout == b"1\n"
    machine.install_policy(environment + RULES + "    - pi.dev\n")
    assert machine.root("command -v fd fdfind rg").stdout != b"" or pi(machine, "sh", offline).stdout in (b"1\n", b"on\n")
    machine.install_policy(PLAYING_POLICY + RULES)

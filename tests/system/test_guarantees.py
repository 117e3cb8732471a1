"""docs/security/guarantees.md says what the canaries of this machine answer."""

import json
import os

import pytest
from engine import engine_of, named_method
from guarantees import COLUMNS, generalised, read_table, write_table
from launching import DEMO, STANDARD_POLICY, STATE, pi
from recipes import MACHINES

# What a session without a network is asked besides, and one with hosts, where the method has a gate.
NETWORKS = ("", "network: none\n")
HOSTS = "network: {hosts: [provider.example]}\n"
WITH_GATE = ("systemd", "podman", "docker")


def answers_of(machine, method):
    """{question: "held"} of a session of this method."""
    answers = {}
    for network in (*NETWORKS, *([HOSTS] if method in WITH_GATE else [])):
        machine.install_policy(STANDARD_POLICY + f"sandbox: {named_method(method)}\n" + network)
        done = pi(machine, "--pi-agent-canary")
        report = json.loads(done.stdout.splitlines()[-1])
        assert (done.returncode, [finding for finding in report["findings"] if not finding["right"]]) == (0, []), done
        for finding in report["findings"]:
            question = generalised(finding["what"], DEMO, f"{STATE}/alice/home", "/home/alice")
            name = f"{question}, with network: none" if question == "net namespace" else question
            answers[f"{name}: {finding['expected']}"] = "held"
    return answers


@pytest.mark.parametrize("method", ["systemd", "bwrap", "podman", "docker", "none"])
def test_the_table_says_what_the_canary_answers(machine, machine_name, policy, method):
    column = f"systemd {MACHINES[machine_name].systemd}" if method == "systemd" else method
    assert column in COLUMNS
    with engine_of(machine, method):
        seen = answers_of(machine, method)
    table = read_table()
    if os.environ.get("PI_AGENT_WRITE_GUARANTEES"):
        for question in {**table, **seen}:
            table.setdefault(question, {})[column] = seen.get(question, "-")
        write_table(table)
    written = {question for question, answers in table.items() if answers.get(column) == "held"}
    assert written == set(seen), "docs/security/guarantees.md is not what this machine shows; it says how to write it anew"

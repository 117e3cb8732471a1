"""What pi-agentctl render writes for a cluster runs the real agent: it finds its model and its key, works in the project, and leaves files that the user owns."""

import base64
import contextlib
import json
import re

import pytest
from cache import AGENT_DIRECTORY
from launching import DEMO, STANDARD_POLICY
from recipes import DEFAULT_AGENT
from rendered import ALICE, machines_of, name_of, objects_of, play, pod_of, render, workspace
from test_real_agent import prompt, tool_results

KEYS = "/etc/pi-agent/model.env"
KEY = "k3y-of-the-model"
MODEL = {
    "baseUrl": "http://127.0.0.1:8099/v1", "api": "openai-completions", "apiKey": "$MODEL_KEY",
    "models": [{"id": "rendered", "name": "Rendered", "input": ["text"], "contextWindow": 128000, "maxTokens": 8192}],
}  # fmt: skip
# Of nobody's home: for a cluster the documents of the policy are all that there is.
POLICY = f"""{STANDARD_POLICY}env_files: [{KEYS}]
settings: {{defaultProvider: gateway, defaultModel: rendered}}
models: {json.dumps({"providers": {"gateway": MODEL}})}
"""
STEPS = [{"write": {"path": "by-agent.txt", "content": "by the agent\n"}}, {"bash": "id -u; pwd; touch /usr/planted 2>/dev/null || echo kept out"}]
ARGUMENTS = ["-p", prompt(*STEPS, say="done by the agent")]


def place_agent(machine):
    machine.add_agent(DEFAULT_AGENT, AGENT_DIRECTORY)
    machine.write(KEYS, f"MODEL_KEY={KEY}\n", mode=0o600)
    return AGENT_DIRECTORY


with_limits, unified = machines_of(POLICY, place_agent)


def with_model(machine):
    machine.run(["pi", "--version"], cwd=DEMO, check=True)  # the agent's home is there, by a start
    machine.forget_model_requests()
    return machine


@pytest.fixture
def project(with_limits):
    return with_model(with_limits)


@pytest.fixture
def newer(unified):
    return with_model(unified)


def assert_worked(machine, said, made):
    """The model was asked with the key, the tools ran as they should, and the file is alice's."""
    assert "done by the agent" in said, said
    assert {(request["model"], request["authorization"]) for request in machine.model_requests()} == {("rendered", f"Bearer {KEY}")}
    assert tool_results(machine)[-1].split() == [str(ALICE), DEMO, "kept", "out"]
    assert machine.root(f"stat --format=%u:%g {made}; cat {made}", check=True).stdout == f"{ALICE}:{ALICE}\nby the agent\n".encode()


def of_this_host(job):
    """The model answers on this host's loopback, which a pod of a cluster would not have."""
    return job.replace("hostNetwork: false", "hostNetwork: true")


def name_of_secret(text):
    return objects_of(text, "Job").split("secretRef:\n")[1].split()[1]


def secret_of(text):
    """What the administrator makes of the file of variables."""
    return f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name_of_secret(text)}\nstringData:\n  MODEL_KEY: {KEY}\n---\n"


def test_the_job(newer):
    text = render(newer, *ARGUMENTS)
    with workspace(newer, name_of(text)) as volume:
        said = play(newer, secret_of(text) + of_this_host(objects_of(text, "ConfigMap", "Job")), network=None)
        assert_worked(newer, said, f"{volume}/project/demo/by-agent.txt")


@contextlib.contextmanager
def secret_of_podman_4(machine, text):
    """It reads a Secret's values as JSON, and stores a Secret that it plays as something else."""
    name = name_of_secret(text)
    machine.root(["podman", "secret", "create", name, "-"], input=json.dumps({"MODEL_KEY": base64.b64encode(KEY.encode()).decode()}).encode(), check=True)
    try:
        yield
    finally:
        machine.root(["podman", "secret", "rm", name], check=True)


def test_the_jobs_pod(project, machine_name):
    if machine_name != "bookworm":
        pytest.skip("where podman plays the Job itself")
    text = render(project, *ARGUMENTS)
    # podman 4.3 mounts whole volumes everywhere: the settings are in the workspace, which is everything.
    pod = re.sub(r" *- name: settings\n *mountPath: .*\n *subPath: .*\n *readOnly: true\n", "", pod_of(objects_of(text, "Job"), name_of(text)))
    settings = re.findall(r'^  (\w+\.json): (".*")$', objects_of(text, "ConfigMap"), re.MULTILINE)
    assert [name for name, _ in settings] == ["models.json", "settings.json"] and "subPath: models.json" not in pod
    with secret_of_podman_4(project, text), workspace(project, name_of(text)) as volume:
        for name, content in settings:
            project.write(f"{volume}/{name}", json.loads(content))
        said = play(project, objects_of(text, "ConfigMap") + "---\n" + of_this_host(pod), network=None)
        assert_worked(project, said, f"{volume}/by-agent.txt")

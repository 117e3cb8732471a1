"""What is rendered for Kubernetes has the fields that its objects have, with values of their types: against a current Kubernetes' types and schemas, from npm."""

import json
import subprocess
from pathlib import Path

import pytest
from cache import SOURCE, node_modules

RENDERINGS = sorted((SOURCE / "tests/unit/data/renderings").glob("*.kubernetes.txt"))  # golden files of every policy example
KINDS = {"Namespace", "ResourceQuota", "PersistentVolume", "PersistentVolumeClaim", "ConfigMap", "NetworkPolicy", "Job"}


def faults(*texts):
    """What is wrong with each text of YAML, as lists of sentences."""
    script = Path(__file__).with_name("kubernetes_faults.mjs")
    question = json.dumps(texts)
    done = subprocess.run(["node", script, node_modules("kubernetes")], input=question, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


RENDERED = {file.name: file.read_text() for file in RENDERINGS if "\n---\n" in file.read_text()}  # others say what cannot be honoured
WRONG = [
    ("allowPrivilegeEscalation:", "allowPrivilegeEscalatoin:", "'\"allowPrivilegeEscalatoin\"' does not exist in type"),
    ("readOnlyRootFilesystem: true", 'readOnlyRootFilesystem: "true"', "readOnlyRootFilesystem must be boolean"),
    ("backoffLimit: 0", "backoffLimit: none", "backoffLimit must be integer"),
    ("restartPolicy: Never", "restartPolicy: Sometimes", "restartPolicy must be equal to one of the allowed values"),
    ("podSelector:", "podSelectors:", "podSelector"),
    ("kind: Job", "kind: Work", "Work is no kind of batch/v1"),
]


@pytest.fixture(scope="module")
def judged():
    """The verdict on each rendering, and on one with each of these mistakes."""
    model = RENDERED["cluster.kubernetes.txt"]
    assert all(there in model for there, _, _ in WRONG)
    said = faults(*RENDERED.values(), *(model.replace(there, instead) for there, instead, _ in WRONG))
    return dict(zip([*RENDERED, *(instead for _, instead, _ in WRONG)], said, strict=True))


def test_every_rendering_is_of_objects_that_kubernetes_knows(judged):
    assert {name: judged[name] for name in RENDERED} == dict.fromkeys(RENDERED, [])
    seen = {line.removeprefix("kind: ") for text in RENDERED.values() for line in text.splitlines() if line.startswith("kind: ")}
    assert seen == KINDS


@pytest.mark.parametrize(("instead", "said"), [row[1:] for row in WRONG])
def test_what_kubernetes_does_not_know_is_found(judged, instead, said):
    assert any(said in one for one in judged[instead]), judged[instead]

"""The pictures of the documentation are of the programs as they are: one is made again, and has the same text."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cache import SOURCE
from launching import DEMO
from recipes import LINTED

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
sys.path.append(str(PICTURES))

import scenes  # noqa: E402
from terminal_svg import drawn  # noqa: E402


def lines(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_made_again_has_the_text_of_the_committed_one(machine, policy):
    if machine.recipe != LINTED:
        pytest.skip("the pictures are of another machine")
    policy((PICTURES / "policy.yaml").read_text())
    scenes.make_ssh_key(machine)
    machine.run(["git", "init", "-q"], cwd=DEMO, check=True)  # a test before this one can have taken it away
    try:
        again = drawn(scenes.why(machine), scenes.SCENES[scenes.why], scenes.COLUMNS)
    finally:
        machine.root(["rm", "-rf", scenes.RC_FILE, scenes.SSH], check=True)
    committed = (SOURCE / "docs/pictures/why.svg").read_text()
    assert lines(again) == lines(committed), "the words of pi-agentctl why have changed: make the pictures again with tests/pictures/make"

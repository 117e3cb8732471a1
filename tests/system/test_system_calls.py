"""The system calls that are made as root on a user's word: exactly those that docs/system-calls.md lists."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from launching import DEMO, PLAYING_POLICY
from traced_root import RUNNER, Roots, traced

PAGE = Path(__file__).resolve().parents[2] / "docs/system-calls.md"
ROW = re.compile(r"^\| (`[^|]*) \|", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")


def test_a_child_that_is_faster_than_its_parents_return_is_followed_from_its_first_call():
    roots = Roots()
    for line in (
        f'10 execve("{RUNNER}", ["{RUNNER}"], 0x1 /* 9 vars */) = 0',
        "10 clone3({flags=CLONE_VFORK} <unfinished ...>",
        "11 prctl(PR_SET_PDEATHSIG, SIGKILL) = 0",
        "11 setresuid(1000, 1000, 1000)     = 0",
        "11 statfs(\"/home\", 0x2)           = 0",
        "10 <... clone3 resumed>, 88)        = 11",
        "11 statfs(\"/home\", 0x2)           = 0",
        "10 getuid()                         = 0",
    ):
        roots.read(line)
    assert sorted(roots.calls) == ["clone3", "execve", "getuid", "prctl", "setresuid"]


MUCH = """
projects:
  mask: ['.env*']
toolchains:
  readable: [~/.cargo/bin]
  caches: [~/.cache/pip]
limits:
  runtime: 60s
  disk: 10G
network: loopback
"""
SCENARIOS = [
    ("", "pi sh true"),
    ("", "script -qec 'pi sh true' /dev/null"),
    ("", "timeout --foreground --preserve-status -s INT 6 pi sh 'trap \"exit 0\" INT; sleep 60 & wait'"),
    (MUCH, "pi sh true"),
    ("network: {hosts: [example.org]}\n", "pi sh true"),
    ("sandbox: {method: bwrap}\n", "pi sh true"),
    ("sandbox: {method: none}\n", "pi sh true"),
]


@pytest.fixture(scope="module")
def repository(playing):
    """What makes work for root: something to protect and to mask, a configuration to mirror and settings to merge, tools to show."""
    settings = "mv ~/.pi ~/.pi.kept; mkdir -p ~/.cargo/bin ~/.cache/pip ~/.pi/agent/skills; echo '{}' >~/.pi/agent/settings.json; touch ~/.pi/agent/skills/a.md"
    playing.run(f"git init -q; touch .env; {settings}", cwd=DEMO, check=True)
    yield
    playing.run("rm -rf .git .env ~/.cargo ~/.cache/pip ~/.pi && mv ~/.pi.kept ~/.pi", cwd=DEMO, check=True)


def test_the_runner_makes_the_listed_system_calls_and_no_other(playing, playing_policy, repository):
    seen = defaultdict(set)
    for section, command in SCENARIOS:
        playing_policy(PLAYING_POLICY + section)
        for call, lines in traced(playing, command, DEMO).calls.items():
            seen[call] |= lines
    page = PAGE.read_text()
    expected = {call for cells in ROW.findall(page) for call in NAME.findall(cells)}
    seldom = set(NAME.findall(page.split("Seldom")[1]))
    assert len(expected) > 90 and seldom, f"{PAGE} is not read as it is written"
    unlisted = {call: min(seen[call]) for call in seen.keys() - expected - seldom}
    assert not unlisted, f"say in {PAGE.name} what these are for, or do without them: {unlisted}"
    gone = sorted(expected - seen.keys())
    assert not gone, f"no session makes these any more: take them out of {PAGE.name}"

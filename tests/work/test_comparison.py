"""The comparison itself: what it takes for the same, and what it must not."""

from dataclasses import replace

import pytest
from normal import differences, normal, unforeseen, without_ignored
from sides import Outcome

ONE = Outcome(0, "said\n", "", {"a": "-rw-r--r-- alice:alice 2 bytes 1234"}, {".: status": ""})
OTHERS = {
    "status": replace(ONE, status=1),
    "output": replace(ONE, out="said more\n"),
    "errors": replace(ONE, err="warning\n"),
    "a file's mode": replace(ONE, tree={"a": "-rwxr-xr-x alice:alice 2 bytes 1234"}),
    "a file's owner": replace(ONE, tree={"a": "-rw-r--r-- alice:devs 2 bytes 1234"}),
    "a file that is not there": replace(ONE, tree={}),
    "a file that is new": replace(ONE, tree={**ONE.tree, "b": "-"}),
    "git's status": replace(ONE, git={".: status": "?? b"}),
    "a repository that is not there": replace(ONE, git={}),
}
ALIKE = (
    ("took 0.31 s", "took 12 s"),
    ("==12==ERROR", "==4711==ERROR"),
    ("at 0x7ffd1234", "at 0x55550000"),
    ("2026-01-02 03:04:05", "2027-11-12 13:14:15"),
    ("/tmp/tmp.aB3dE6gH1j/x", "/tmp/tmp.Zz9yX8wV7u/x"),
    ("/home/alice/.local/bin", "/var/lib/pi-agent/users/alice/home/.local/bin"),
)
HOMES = ["/var/lib/pi-agent/users/alice/home", "/home/alice"]


def test_two_equal_outcomes_are_the_same():
    assert differences(ONE, replace(ONE)) == []


@pytest.mark.parametrize("what", OTHERS)
def test_what_differs_is_seen(what):
    assert differences(ONE, OTHERS[what]) and differences(OTHERS[what], ONE)


def test_a_difference_is_the_one_that_its_case_foresees_and_no_other():
    found = ["status: outside 0, inside 1", "errors: +chmod: refused"]
    assert unforeseen(found, ("status: outside 0, inside *", "[trixie] errors: +chmod: *", "[bookworm] errors: +chmod: no"), "trixie") == []
    assert unforeseen(found, ("status: outside 0, inside *", "[bookworm] errors: +chmod: *"), "trixie") == ["errors: +chmod: refused"]
    assert unforeseen(found, ("status: *", "errors: *", "tree: *"), "trixie") == ["not seen: tree: *"]
    assert unforeseen([], (), "trixie") == []


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_no_two_runs_print_alike_is_the_same(one, other):
    assert normal(one, HOMES) == normal(other, HOMES)


def test_the_project_keeps_its_path_and_numbers_keep_their_values():
    for text in ("/home/alice/projects/work/a", "42 files", "line 12", "v1.2.3", "100644 a"):
        assert normal(text, HOMES) == text


def test_what_a_case_ignores_is_left_out_and_nothing_else():
    assert list(without_ignored({"build": "", "build/x": "", "buildings": "", "a/__pycache__": "", "a": ""}, ("build", "build/*"))) == ["buildings", "a"]

"""A sample of the cases under every other sandbox.method that confines: work comes to the same there, too."""

import pytest
from engine import under_method
from families import EVERY
from launching import PLAYING_POLICY
from normal import differences

METHODS = ("bwrap", "podman", "docker")
# One of each kind that a method could break: mounts, identities, calls that a filter judges, variables, processes, a terminal.
NAMES = (
    "git lfs stores the pointer and not the binary",
    "aliases of the user work",
    "a repository with 70 submodules is worked in",
    "cp -r of a tree in a set-gid directory",
    "a file in a set-gid directory gets its group",
    "hard and symbolic links are made",
    "the leak sanitizer finds a leak",
    "gdb runs a program and stops at a breakpoint",
    "node lists the network interfaces",
    "npm install below a workspace",
    "pip of a virtual environment, by its path",
    "a Python that a version manager installed (uv) runs in a virtual environment",
    "inotifywait watches a tree",
    "postgresql serves on a Unix socket",
    "a terminal is there through script and expect",
)


@pytest.fixture(scope="module", params=METHODS)
def method(request, sides):
    with under_method(sides.machine, request.param, PLAYING_POLICY):
        yield request.param


@pytest.mark.parametrize("name", NAMES)
def test_comes_to_the_same_under_each_method(sides, method, name):
    case = next(case for case in EVERY if case.name == name)
    outside, inside = sides.outside(case), sides.inside(case)
    assert outside.status == 0, outside
    found = differences(outside, inside)
    assert bool(found) == bool(case.differs), "\n".join(found)

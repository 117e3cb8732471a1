"""Which tests a sample has. To furnish a machine with what some of them need takes minutes, so it has those of one kind alone."""

import random
import re

# By words of a test's name in pytest; what has none of them needs nothing but its machine. The first that fits counts.
FURNISHED = {
    "work": r"(^|/)tests/work/",
    "toolchains": r"/test_(toolchains|both_sides|warm_caches)\.py",
    "engines": r"/test_rendered_(agent|engines)\.py",
    "docker": "docker",
    "podman": "podman",
}


def kind_of(test):
    """What a test, by its name in pytest, needs beside its machine; None: nothing."""
    return next((kind for kind, words in FURNISHED.items() if re.search(words, test)), None)


def choose(tests, part, seed):
    """Of names of tests that part (0 to 1), drawn with the seed, as a set."""
    draw = random.Random(seed)
    kind = draw.choice(list(FURNISHED))
    return {test for test in tests if draw.random() < part and kind_of(test) in (None, kind)}

"""Whether two commits build the same programs, byte for byte: then what was found out about those of one holds for the other.

Both are built in the same paths with the same tools, as the product and with test seams, for each machine. A page of the manual says on which day it
was built, and nobody acts by that."""

import contextlib
import filecmp
import os
import re
import subprocess
import tempfile
from pathlib import Path

import assurance
from cache import CACHE, PRODUCT, SOURCE, WITH_SEAMS, Build, files_below, remove_tree
from progress import say
from recipes import MACHINES

VARIANTS = (PRODUCT, WITH_SEAMS)
MANUAL = re.compile(r"/man/man[1-8]/[^/]+$")
DAY = re.compile(rb'^(\.TH "[^"]*" "[^"]*") "[-0-9]+"', re.MULTILINE)


def differing(one, other):
    """The files of two trees, relative to them, that only one has, or that are not the same: bytes, mode, or where a link leads."""
    ours, theirs = (set(files_below(tree)) for tree in (one, other))
    return sorted(ours ^ theirs | {file for file in ours & theirs if not is_same(Path(one, file), Path(other, file))})


def is_same(one, other):
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and os.readlink(one) == os.readlink(other)
    if one.stat().st_mode != other.stat().st_mode:
        return False
    if MANUAL.search(str(one)):
        return DAY.sub(rb"\1", one.read_bytes()) == DAY.sub(rb"\1", other.read_bytes())
    return filecmp.cmp(one, other, shallow=False)


@contextlib.contextmanager
def checkout_of(commit):
    """The files of a commit, in a place that is the same each time, so that its build directories are."""
    place = CACHE / "checkout-before"
    remove_tree(place)
    place.mkdir()
    try:
        with tempfile.NamedTemporaryFile(dir=CACHE) as archive:
            assurance.git("archive", "--format=tar", f"--output={archive.name}", commit)
            subprocess.run(["tar", "-xmf", archive.name, "-C", place], check=True)  # new, or ninja keeps what an earlier commit compiled to
        yield place
    finally:
        remove_tree(place)


def programs_that_differ(before):
    """Of this checkout, and `before`, a commit: what of the installed files is not the same, each with its machine."""
    found = []
    with checkout_of(before) as checkout, tempfile.TemporaryDirectory(dir=CACHE) as installed:
        for machine in MACHINES:
            for variant in VARIANTS:
                say(f"comparing the programs of {before} on {machine}, {variant.get('variant', 'product')}")
                trees = [Path(installed, name) for name in ("before", "after")]
                for source, tree in zip((checkout, SOURCE), trees, strict=True):
                    tree.mkdir()
                    Build(machine, source=source, **variant).install(tree)
                found += [f"{file} on {machine}" for file in differing(*trees)]
                for tree in trees:
                    remove_tree(tree)
    return found

"""Prints the floors of the rooms and what goes between them, and fails on an include that runs back up, in a circle or past a wall."""

import functools
import posixpath
import re
import sys
from collections import Counter
from pathlib import Path

import room_rules
import rooms
import rules
from finding import Finding
from sources import line_of, read_sources

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def includes_of(file, known):
    """(line, file that is included) for what is the product's own. What is not there, and has the name of no source, is made by the build."""
    for match in INCLUDE.finditer(file.code):
        name = posixpath.normpath(match.group(1) or match.group(2))
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), name))
        target = beside if match.group(1) and beside in known else name
        if target in known or (target.split("/")[0] in rules.PRODUCT_DIRECTORIES and target.endswith((".hpp", ".cpp"))):
            yield line_of(file.code, match.start()), target


def arrows_of(files):
    """(file, line, included file, its room, the other's) for each include of another room."""
    known = {file.path for file in files}
    for file in room_rules.product_of(files):
        here = rooms.room_of(file.path)
        for line, target in includes_of(file, known):
            there = rooms.room_of(target)
            if here and there and here is not there:
                yield file.path, line, target, here, there


def circles_among(arrows):
    """{(room, room)} of the arrows on one floor by which one comes back to where one began."""
    beside = {}
    for _, _, _, here, there in arrows:
        if rooms.floor_of(here.path) == rooms.floor_of(there.path):
            beside.setdefault(here.path, set()).add(there.path)

    def reached(start):
        found, waiting = set(), [start]
        while waiting:
            for room in beside.get(waiting.pop(), set()) - found:
                found.add(room)
                waiting.append(room)
        return found

    return {(here, there) for here, those in beside.items() for there in those if here in reached(there)}


def may_include(path, here, there):
    """Whether this file is one of those that the table lets in."""
    if there.included_by == rooms.ROOT:
        return rooms.is_root(path)
    tops = {rooms.NOBODY: (), rooms.ADMIN: ("admin",), rooms.RUNNER: ("runner", "admin"), rooms.WIRED: ("runner", "gate", "admin"), rooms.CALLERS: ("wrapper", "admin"), rooms.ALL: rules.PRODUCT_DIRECTORIES}[there.included_by]
    return here.path.split("/")[0] in tops


def check_arrows(files):
    arrows = list(arrows_of(files))
    circles = circles_among(arrows)
    for path, line, target, here, there in arrows:
        up, down = rooms.floor_of(here.path), rooms.floor_of(there.path)
        if there.included_by == rooms.ROOT and not rooms.is_root(path):
            yield Finding(path, line, "arrow", f"{target}: code that runs as {room_rules.whom_of(path)} includes nothing of root's; "
                                               "split the file by who runs what, or have root hand it down")
        elif up < down:
            yield Finding(path, line, "arrow", f"{target}: {here.path}/ is on floor {up} and {there.path}/ above it, on {down}; "
                                               "includes run down only: move what both need to a room below them")
        elif (here.path, there.path) in circles:
            yield Finding(path, line, "arrow", f"{target}: {here.path}/ and {there.path}/ are on one floor, and this include closes a circle")
        elif not may_include(path, here, there):
            yield Finding(path, line, "arrow", f"{target}: {there.path}/ is included by {there.included_by}, and {here.path}/ is not among them")


def check_calls_behind(files):
    """A room that makes no system call, and includes what makes them for it."""
    for path, line, target, here, _ in arrows_of(files):
        if here.silent and rules.CALLS_BEHIND.match(target):
            yield Finding(path, line, "system-call", f"{target} makes system calls for those who call it: {room_rules.sentence_about(here)}; "
                                                     "do it in a room above, and hand down what came of it")


def check_heads(files):
    """An include that another include of the same file brings. A source names its own header all the same."""
    known = {file.path for file in files}
    product = room_rules.product_of(files)
    named = {file.path: [match.group(1) or match.group(2) for match in INCLUDE.finditer(file.code)] for file in product}

    @functools.cache
    def brought_by(path):
        """All that this file includes, directly or not, itself too."""
        found, waiting = set(), [path]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += named.get(name, [])
        return found

    for file in product:
        own = file.path.removesuffix(".cpp") + ".hpp"
        for line, name in ((line_of(file.code, match.start()), match.group(1) or match.group(2)) for match in INCLUDE.finditer(file.code)):
            by = next((other for other in named[file.path] if other != name and other in known and name in brought_by(other)), None)
            if by and name != own:
                yield Finding(file.path, line, "head", f"{name}: {by} brings it; leave it out")


def lines_about(files):
    """The floors from top to bottom, each with its rooms, and the arrows from room to room."""
    product = room_rules.product_of(files)
    count, length = Counter(), Counter()
    for file in product:
        room = file.path.rpartition("/")[0]
        count[room] += 1
        length[room] += len(file.text.splitlines())
    yield f"{'floor':>5}  {'room':<24} {'files':>5} {'lines':>6}  as whom"
    for index, floor in enumerate(rooms.FLOORS):
        for room in floor:
            number = len(rooms.FLOORS) - 1 - index if room is floor[0] else ""
            yield f"{number:>5}  {room.path + '/':<24} {count[room.path]:>5} {length[room.path]:>6}  {room.whom}"
    between = Counter((here.path, there.path) for _, _, _, here, there in arrows_of(files))
    yield ""
    yield f"{sum(between.values())} includes of another room, {len(between)} arrows:"
    for here in rooms.ROOMS:
        to = ", ".join(f"{there.path}/ {between[here.path, there.path]}" for there in rooms.ROOMS if (here.path, there.path) in between)
        if to:
            yield f"  {here.path}/ -> {to}"


def main(arguments):
    if arguments == ["--table"]:
        print("\n".join(rooms.table()))
        return 0
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    if len(arguments) > 1 or not (root / "meson.build").is_file():
        print("usage: floors.py [PROJECT_DIRECTORY] | --table", file=sys.stderr)
        return 64
    files = list(read_sources(root))
    if not room_rules.product_of(files):
        print(f"no source of the product under {root}: nothing was checked", file=sys.stderr)
        return 1
    print("\n".join(lines_about(files)))
    findings = sorted([*room_rules.check_rooms(files), *check_arrows(files), *check_heads(files)], key=lambda finding: (finding.path, finding.line))
    if findings:
        print()
    for finding in findings:
        print(finding)
    print(f"\n{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

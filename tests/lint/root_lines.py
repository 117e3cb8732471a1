"""Counts what root runs behind the sudo rule: the sources whose code the linker put into pi-agent-runner, and the headers that these include.

Usage: root_lines.py RUNNER [SOURCE]. The program must have line numbers (-g1). Code of the rooms as_user and as_agent runs after root was given up.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

BUDGET = 25_700  # lines; at most 26,436; each rise has its row (docs/architecture.md)
GIVEN_UP = ("runner/as_user", "runner/as_agent", "common/as_user")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
# Where the program's code begins: readelf's line of a section with code. The linker leaves the line numbers of what it throws away behind, at
# addresses from zero on, before all code; a large function reaches beyond the first page there.
CODE_SECTION = re.compile(r"^ *\[ *\d+\] \S+ +\S+ +([0-9a-f]+) .* AX ", re.MULTILINE)
ADDRESS = re.compile(r"\s0x([0-9a-f]+)\b")


def addresses_of(listing, sections):
    """Of what is in the program, by readelf's decoded table of lines and its list of sections."""
    first = min(int(address, 16) for address in CODE_SECTION.findall(sections))
    found = {int(address, 16) for address in ADDRESS.findall(listing)}
    return sorted(address for address in found if address >= first)


def files_with_code(places):
    """Of addr2line's answers. A file of one line has none: gcc 14 gives an instruction that two functions share the line of either."""
    lines = Counter(place.rpartition(":")[0] for place in {place.partition(" ")[0] for place in places})
    return [file for file, count in lines.items() if count > 1]


def sources_in(program, source):
    """Files of the project that have code in the program, relative to `source`."""
    listing = subprocess.run(["readelf", "--debug-dump=decodedline", program], capture_output=True, text=True, check=True).stdout
    sections = subprocess.run(["readelf", "--sections", "--wide", program], capture_output=True, text=True, check=True).stdout
    asked = "".join(f"{address:#x}\n" for address in addresses_of(listing, sections))
    answers = subprocess.run(["addr2line", "-e", program], input=asked, capture_output=True, text=True, check=True).stdout
    found = set()
    for name in files_with_code(answers.splitlines()):
        parts = PurePosixPath(name).parts
        for start in range(len(parts)):  # the build names them by its own directory
            path = "/".join(parts[start:])
            if parts[start] in ("common", "runner") and (source / path).is_file():
                found.add(path)
                break
    return found


def with_headers(sources, text_of):
    """These files and all of the project's headers that they include, directly or not; none of rooms that have given root up."""
    todo, found = list(sources), set()
    while todo:
        path = todo.pop()
        if path in found or path.startswith(tuple(f"{room}/" for room in GIVEN_UP)):
            continue
        found.add(path)
        todo += [name for name in INCLUDE.findall(text_of(path)) if text_of(name) is not None]
    return found


def count(program, source):
    def text_of(path):
        file = source / path
        return file.read_text() if file.is_file() else None

    files = with_headers(sources_in(program, source), text_of)
    return Counter({room: sum(text_of(path).count("\n") for path in files if str(PurePosixPath(path).parent) == room)
                    for room in {str(PurePosixPath(path).parent) for path in files}})  # fmt: skip


def main():
    program, source = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    rooms = count(program, source)
    if not rooms:
        sys.exit(f"{program} has no line numbers; build it with -Dcpp_args=-g1")
    for room, lines in sorted(rooms.items()):
        print(f"{lines:6}  {room}")
    print(f"{rooms.total():6}  of {BUDGET} that root may run")
    sys.exit(rooms.total() > BUDGET)


if __name__ == "__main__":
    main()

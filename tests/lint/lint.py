"""Checks every file of the project against the house rules (rules.py, rooms.py) and names each finding with file and line."""

import posixpath
import re
import sys
from pathlib import Path, PurePosixPath

import floors
import message_prose
import room_rules
import rooms
import rules
import word_budget
from finding import Finding
from sources import comments_of, line_of, read_sources, strings_of


def check_homes(files):
    """A dangerous thing outside of its home, in a room that is for it (room_rules.py looks at the others); a home that no longer needs its permission."""
    product = room_rules.product_of(files)
    for name, pattern, homes, why in rules.HOMES:
        used_by = set()
        for file in product:
            room = rooms.room_of(file.path)
            for match in pattern.finditer(file.code):
                used_by.add(file.path)
                if file.path not in homes and (not room or name in room.powers):
                    found = match.group().strip().rstrip("( ")
                    yield Finding(file.path, line_of(file.code, match.start()), "one-home",
                                  f"{found}: {name} belongs to {', '.join(homes)} ({why})")
        for home in homes:
            if home not in used_by:
                yield Finding("tests/lint/rules.py", 1, "stale-home",
                              f"{home} is listed as a home of {name} and does not use it; correct the table")


def tests_of(files):
    """{(suite, file without its suffix): names of its tests}"""
    known = {}
    for file in files:
        place = file.path.split("/")
        if place[0] != "tests" or len(place) < 3:
            continue
        name = rules.UNIT_TEST if place[1] == "unit" else rules.PYTHON_TEST
        known.setdefault((place[1], Path(file.path).stem), set()).update(name.findall(file.text))
    return known


def check_named_tests(files):
    """A test that a page names and that is not there: what a page says is held by a test must be."""
    known = tests_of(files)
    for file in files:
        if not file.path.startswith("docs/") or not file.path.endswith(".md"):
            continue
        for match in rules.NAMED_TEST.finditer(file.text):
            suite, stem, name = match.groups()
            suites = [suite] if suite else ["attack", "system", "unit"]
            if not any(name in known.get((one, stem), ()) for one in suites):
                where = " or ".join(f"tests/{one}" for one in suites)
                yield Finding(file.path, line_of(file.text, match.start()), "named-test",
                              f"{match.group()} is no test of {where}; name the one that holds it now, or say that there is none")


def block_at(code, opening):
    """What is between the brace there and the one that closes it."""
    depth = 0
    for match in re.compile("[{}]").finditer(code, opening):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return code[opening : match.end()]
    return code[opening:]


def check_children(files):
    """A task that a forked child runs, and neither it nor a function that it calls itself has a point at which faults are tried."""
    runner = [file for file in files if file.kind == "cpp" and file.top_directory == "runner"]
    stopping = {match.group(1) for file in runner for match in rules.FUNCTION.finditer(file.code) if rules.FAULT_POINT.search(block_at(file.code, match.end() - 1))}
    for file in runner:
        if file.path == rules.HANDS_TASKS_ON:
            continue
        for match in rules.CHILD_TASK.finditer(file.code):
            task = block_at(file.code, match.end() - 1)
            if not rules.FAULT_POINT.search(task) and not stopping & set(re.findall(r"(?<![\w.>:])\w+(?=\()", task)):
                yield Finding(file.path, line_of(file.code, match.start()), "fault-point",
                              "what this child runs has no fault_point(): add one, and what brings somebody to it to tests/attack/points.py")


def anchors_of(text):
    """What a link may say after '#': the page's headings, as they are written in addresses."""
    headings = re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(files):
    """A link of a page that leads nowhere in this project. Addresses elsewhere are not looked up."""
    pages = {file.path: file.text for file in files}
    directories = {str(directory) for path in pages for directory in PurePosixPath(path).parents}
    for file in files:
        if not file.path.endswith(".md"):
            continue
        for match in rules.LINK.finditer(file.text):
            path, _, anchor = match.group(1).partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), path)) if path else file.path
            if target not in pages and target not in directories:
                problem = f"there is no {target}"
            elif anchor and anchor not in anchors_of(pages.get(target, "")):
                problem = f"{target} has no heading #{anchor}"
            else:
                continue
            yield Finding(file.path, line_of(file.text, match.start()), "dead-link", f"{match.group()}: {problem}")


def is_packaged(path, texts):
    """Whether the Debian package has this file of the sources, or something below it: debian/docs and debian/examples, without what debian/rules leaves out."""
    listed = f"{texts.get('debian/docs', '')} {texts.get('debian/examples', '')}".split()
    installing = next(iter(re.findall(r"^\tdh_installdocs\b(.*)$", texts.get("debian/rules", ""), re.MULTILINE)), "")
    is_listed = any(path == each or path.startswith(f"{each.removesuffix('/*')}/") or path == each.removesuffix("/*") for each in listed)
    return is_listed and not any(word in path for word in re.findall(r"-X(\S+)", installing))


def check_packaged_links(files):
    """A link from a page of the package to something that the package does not have."""
    texts = {file.path: file.text for file in files}
    for file in files:
        if not file.path.endswith(".md") or not is_packaged(file.path, texts):
            continue
        for match in rules.LINK.finditer(file.text):
            path = match.group(1).partition("#")[0]
            target = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), path)) if path else file.path
            if not is_packaged(target, texts):
                yield Finding(file.path, line_of(file.text, match.start()), "unpackaged-link",
                              f"{match.group()}: debian/docs and debian/rules leave {target} out of the package; name it without a link, as being in the sources")


def check_forbidden_in_cpp(file):
    if file.kind != "cpp":
        return
    for name, pattern, remedy in rules.FORBIDDEN_IN_CPP:
        for match in pattern.finditer(file.code):
            yield Finding(file.path, line_of(file.code, match.start()), name.replace(" ", "-"), remedy)


def check_remedies(file):
    """A command in a message that does not go through what decides whether it may be said."""
    if file.kind != "cpp" or file.top_directory not in rules.PRODUCT_DIRECTORIES:
        return
    for offset, content in strings_of(file.text):
        for match in rules.COMMAND.finditer(content):
            name, arguments = match.group("name", "arguments")
            if name in rules.COMMANDS_THAT_ARE_WORDS and not arguments.startswith("-"):
                continue
            if rules.BEFORE_COMMAND.search(file.text[:offset]) and "/" not in arguments:
                continue
            yield Finding(file.path, line_of(file.text, offset), "remedy",
                          f"{match.group()!r} in a message: command_on() and command_about() (common/host/beneath.hpp) say what can do no harm; else say it in words")


def check_words(file):
    for name, pattern, remedy in rules.FORBIDDEN_WORDS:
        for match in pattern.finditer(file.text):
            yield Finding(file.path, line_of(file.text, match.start()), name.replace(" ", "-"), f"{match.group()!r}: {remedy}")


def check_named_sources(files):
    """A comment that sends its reader to a file that is gone, or to the file that they are in."""
    known = {file.path for file in files}
    names = {PurePosixPath(path).name for path in known} | rules.MADE_SOURCES
    for file in files:
        for offset, text in comments_of(file.text) if file.kind == "cpp" else ():
            for match in rules.NAMED_SOURCE.finditer(text):
                name = match.group(1)
                if name == file.path or not (name in known or ("/" not in name and name in names)):
                    yield Finding(file.path, line_of(file.text, offset) + text.count("\n", 0, match.start()), "named-source",
                                  f"{name} is this file, or is gone; name the one that has it now, or a type or function")


def check_purpose(file):
    if file.kind and len(file.opening_comment()) < rules.MIN_PURPOSE_LENGTH:
        yield Finding(file.path, 1, "purpose", "open the file with a comment that says its one purpose")


def check_length(file):
    if not file.kind:
        return
    limit = rules.MAX_LINES_TESTS if file.top_directory == "tests" else rules.MAX_LINES
    count = len(file.text.splitlines())
    if count > limit:
        yield Finding(file.path, limit + 1, "length", f"{count} lines, the limit here is {limit}; split it by purpose")


def check_name(file):
    name = file.path.split("/")[-1]
    if file.kind not in (None, "nix") and "." in name and not rules.FILE_NAME.fullmatch(name):
        yield Finding(file.path, 1, "file-name", f"{name} is not snake_case")


def check_encoding(file):
    if "\ufffd" in file.text:
        yield Finding(file.path, line_of(file.text, file.text.index("\ufffd")), "encoding", "not valid UTF-8")


WHOLE = (*room_rules.CHECKS, floors.check_arrows, floors.check_calls_behind, floors.check_heads, check_homes, check_named_tests, check_named_sources, check_links, check_packaged_links, check_children)
EACH_FILE = (check_forbidden_in_cpp, check_remedies, check_words, check_purpose, check_length, check_name, check_encoding)


def check_all(files):
    findings = [finding for check in WHOLE for finding in check(files)]
    for file in files:
        for check in EACH_FILE:
            findings.extend(check(file))
    return sorted(findings, key=lambda finding: (finding.path, finding.line, finding.rule))


def main(arguments):
    if len(arguments) != 1 or not Path(arguments[0], "meson.build").is_file():
        print("usage: lint.py PROJECT_DIRECTORY", file=sys.stderr)
        return 64
    files = list(read_sources(Path(arguments[0])))
    if not any(file.kind == "cpp" for file in files):
        print(f"no C++ file under {arguments[0]}: nothing was checked", file=sys.stderr)
        return 1
    findings = [*check_all(files), *message_prose.check_prose(files), *word_budget.check_budget(files)]
    for finding in findings:
        print(finding)
    print(f"{len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

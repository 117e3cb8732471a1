"""The lint's part of prose: pages, messages and comments held to prose.py, except what nobody has rewritten yet. As a program: lists that, for NOT_YET."""

import re
import sys
from pathlib import Path

import prose
from finding import Finding
from sources import comments_of, line_of, read_sources, strings_of

PRODUCT = ("admin", "common", "runner", "wrapper")
HERE = "tests/lint/message_prose.py"
MIN_WORDS = 3  # a string with fewer is a name or a part of a message
SETTINGS = re.compile(r"(?:[a-z0-9]+(?:\.[a-z0-9]+)+ ?)+")  # names of settings, such as am.keepcr, and nothing else
IN_PROSE = re.compile(r"(?<![\w-])(?:the|an?|is|are|of|to|in|and|or|not|no|only)(?![\w-])")  # a list of names has none of these

# Pages, "messages of ROOM/" and "comments of ROOM/" that nobody has rewritten yet. Their findings are not shown; an entry that is not needed
# any more fails.
NOT_YET = ()


def missing_terms(page):
    """What the table of terms of CONTRIBUTING.md lacks, or has and should not: lines of it."""
    wanted = list(prose.terms_table())
    lines = page.split("\n")
    found = []
    if wanted[0] in lines:
        for line in lines[lines.index(wanted[0]) :]:
            if not line.startswith("|"):
                break
            found.append(line)
    return [line for line in wanted if line not in found] + [line for line in found if line not in wanted]


def _findings_of_page(file):
    for line, rule, what in prose.check_page(file.path, file.text):
        yield Finding(file.path, line, rule, what)


def _messages_of(file):
    """(offset, text) of the strings that are said to somebody."""
    for offset, content in strings_of(file.text):
        text = content.replace("\\n", "\n").replace('\\"', '"')
        if prose.words_in(text) >= MIN_WORDS and IN_PROSE.search(text) and not SETTINGS.fullmatch(text):
            yield offset, text


def _findings_of_messages(file):
    for offset, text in _messages_of(file):
        line = line_of(file.text, offset)
        hidden = prose.hide_code(text)
        counts = [prose.words_in(sentence) for part in hidden.split("\n") for _, sentence in prose.split_sentences(part)]
        for count in counts:
            if count > prose.MAX_SENTENCE:
                yield Finding(file.path, line, "long-sentence", f"a message of {count} words, the limit is {prose.MAX_SENTENCE}")
        # Help begins with "Who may ..." as a heading does.
        for _, words, remedy in prose.words_not_used(hidden, is_heading=True):
            yield Finding(file.path, line, "words", f"'{words}' in a message: {remedy}")


def _findings_of_comments(file):
    for offset, text in comments_of(file.text):
        line = line_of(file.text, offset)
        for at, words, remedy in prose.words_not_used(prose.hide_code(text)):
            yield Finding(file.path, line + text.count("\n", 0, at), "words", f"'{words}' in a comment: {remedy}")


def _parts_of(files):
    """{name of a page or of a room's messages or comments: its findings}"""
    parts = {}
    for file in files:
        if prose.is_page(file.path):
            parts.setdefault(file.path, []).extend(_findings_of_page(file))
        elif file.kind == "cpp" and file.top_directory in PRODUCT:
            parts.setdefault(f"messages of {file.top_directory}/", []).extend(_findings_of_messages(file))
            parts.setdefault(f"comments of {file.top_directory}/", []).extend(_findings_of_comments(file))
    return parts


def parts_with_findings(files):
    """What NOT_YET would have to hold for no finding."""
    return {name: len(findings) for name, findings in sorted(_parts_of(files).items()) if findings}


def check_prose(files, not_yet=None):
    not_yet = NOT_YET if not_yet is None else not_yet
    parts = _parts_of(files)
    for name, findings in parts.items():
        if name not in not_yet:
            yield from findings
    for name in not_yet:
        if not parts.get(name) and any(file.path == HERE for file in files):
            yield Finding(HERE, 1, "stale-page", f"'{name}' is in NOT_YET and needs it no more; take it out")
    for file in files:
        if file.path == "CONTRIBUTING.md":
            for line in missing_terms(file.text):
                yield Finding(file.path, 1, "terms", f"the table of terms is not what tests/lint/prose.py has: {line}")


if __name__ == "__main__":
    for part, count in parts_with_findings(list(read_sources(Path(sys.argv[1])))).items():
        print(f'    "{part}",  # {count}')

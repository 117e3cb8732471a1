"""Counts the words of docs that a person writes, and finds a sum above the budget. As a program: prints the words of each page, and the sum."""

import sys
from pathlib import Path

import prose
from finding import Finding
from sources import read_sources

HERE = "tests/lint/word_budget.py"
MAX_WORDS = 60000
# Pages that tests write (CONTRIBUTING.md has the table), and the texts of `pi-agentctl explain CODE`, which the build takes from their page. Parts of other pages that tests write are not counted either: prose.py knows their marks.
MADE = (
    "docs/assurance.md",
    "docs/concepts/toolchain-directories.md",
    "docs/reference/differences.md",
    "docs/reference/doors.md",
    "docs/reference/policy.md",
    "docs/security/guarantees.md",
    "docs/troubleshooting.md",
)


def is_counted(path):
    """Every page of the tree and every source of the manual, but what tests write and what only the tests read."""
    return path.endswith((".md", ".scd")) and not path.startswith("tests/") and path not in MADE


def words_of(files):
    """{page: its words}, counted as for the limit of a page: a piece of code is one word, and a block of code none."""
    return {file.path: prose.measure(file.path, file.text).words for file in files if is_counted(file.path)}


def check_budget(files, most=MAX_WORDS):
    counts = words_of(files)
    total = sum(counts.values())
    if total > most:
        longest = ", ".join(f"{path} ({counts[path]})" for path in sorted(counts, key=counts.get, reverse=True)[:3])
        yield Finding(HERE, 1, "word-budget", f"{total} words of docs, the budget is {most}; shorten what you touch, or say it on one page. The longest: {longest}")
    paths = {file.path for file in files}
    for page in MADE if HERE in paths else ():
        if page not in paths:
            yield Finding(HERE, 1, "stale-page", f"there is no {page}; take it out of MADE")


def main(arguments):
    if len(arguments) != 1 or not Path(arguments[0], "meson.build").is_file():
        print("usage: word_budget.py PROJECT_DIRECTORY", file=sys.stderr)
        return 64
    counts = words_of(read_sources(Path(arguments[0])))
    for path in sorted(counts, key=counts.get):
        print(f"{counts[path]:6} {path}")
    print(f"{sum(counts.values()):6} words of docs, the budget is {MAX_WORDS}")
    return 1 if sum(counts.values()) > MAX_WORDS else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

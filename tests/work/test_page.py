"""docs/reference/differences.md says what the cases say, and nothing else. PI_AGENT_WRITE_DIFFERENCES=1 writes it."""

import os

import reasons
from cache import SOURCE
from case import Difference
from families import DIFFERENCES, EVERY

PAGE = SOURCE / "docs/reference/differences.md"
LISTED = DIFFERENCES | {reasons.GIT_OUTSIDE_WAITS}  # of test_during.py
HEAD = """# What differs in a session

Commands in a session give the same result as outside, except for these.

`tests/work` holds this page: each test runs one script twice, as the user outside and by the agent
inside. It compares exit status, output, files and git objects. A script that differs without a line
here fails the suite, and so does one that differs in another way than its test says, and a line
that no script needs any more.

| What differs | Why | What to do |
| --- | --- | --- |
"""


def page():
    lines = (f"| {one.what} | {one.why} | {one.remedy} |\n" for one in sorted(LISTED, key=lambda one: one.what.strip("`").lower()))
    return HEAD + "".join(lines)


def test_the_page_is_what_the_cases_say():
    if os.environ.get("PI_AGENT_WRITE_DIFFERENCES"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page()


def test_every_reason_is_a_cases():
    assert [name for name, one in vars(reasons).items() if isinstance(one, Difference) and one not in LISTED] == []


def test_each_case_has_a_name_of_its_own():
    names = [case.name for case in EVERY]
    assert len(names) == len(set(names))


def test_there_are_enough():
    assert len(EVERY) >= 500

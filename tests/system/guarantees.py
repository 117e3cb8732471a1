"""The table of docs/security/guarantees.md: what a session of each method is held to, as its canary answered."""

from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "docs" / "security" / "guarantees.md"
COLUMNS = ("systemd 252", "systemd 257", "bwrap", "podman", "docker", "none")
HEAD = """# What each sandbox method guarantees

`pi-agent-canary` asks these questions from inside a session (`pi --pi-agent-canary`, `pi-agentctl doctor`). *held*: it is as it is to be, on the
machines of the tests. A dash: the method does not promise it. This file is written by the tests, and they fail when it is not what they see
([architecture.md](architecture.md) has the reasons; `tests/attack/test_canary.py` shows that the canary notices what is missing).

Of Landlock it only says whether this host has it: a session goes without where its kernel is too old, or where the system-call filter of a container
keeps it away ([platforms.md](platforms.md), [methods.md](methods.md#in-a-container)), and `doctor` names that. Of debuggers it only says whether they
work here ([decision 34](decisions/0034-debuggers.md)).

To write it anew: `PI_AGENT_WRITE_GUARANTEES=1`, and `tests/system/test_guarantees.py` on each machine.

"""


def generalised(question, project, agent_home, user_home):
    """The same question for every host."""
    for path, name in ((project, "the project"), (agent_home, "the agent's home"), (user_home, "~")):
        question = question.replace(path, name)
    parts = ["a session's TMPDIR" if part.startswith("/tmp/pi-agent-") else part for part in question.split(" ")]
    return " ".join(parts)


def read_table():
    """{question: {column: answer}} of the file; empty where there is none."""
    if not FILE.exists():
        return {}
    rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in FILE.read_text().splitlines() if line.startswith("| ")]
    return {row[0].strip("`"): dict(zip(COLUMNS, row[1:], strict=True)) for row in rows[2:]}


def write_table(table):
    lines = [f"| what | {' | '.join(COLUMNS)} |", f"| --- |{' --- |' * len(COLUMNS)}"]
    lines += [f"| {question} | {' | '.join(answers.get(column, '-') for column in COLUMNS)} |" for question, answers in table.items()]
    FILE.write_text(HEAD + "\n".join(lines) + "\n")

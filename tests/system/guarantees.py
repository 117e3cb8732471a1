"""The table of docs/security/guarantees.md: what a session of each method is held to, as its canary answered."""

from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "docs" / "security" / "guarantees.md"
COLUMNS = ("systemd 252", "systemd 257", "bwrap", "podman", "docker", "none")
HEAD = """# What each sandbox method guarantees

`pi-agent-canary` asks these questions from inside a session (`pi --pi-agent-canary`,
`pi-agentctl doctor`). **held** means that the answer was right on the machines of the tests. A dash
means that the method does not promise it. The tests write this page and fail when it differs from
what they see. `tests/attack/test_canary.py` shows that the canary notices a missing defence.

To write this page again, set `PI_AGENT_WRITE_GUARANTEES=1` and run
`tests/system/test_guarantees.py` on each machine.

For two questions the canary only says whether this host has something:

- **Landlock.** A session goes without it where the kernel is too old, or where a container's
  system-call filter refuses it. `doctor` says so
  ([versions](../platforms/README.md), [in a container](../platforms/methods.md)).
- **Debuggers.** They work where more than the account separates sessions
  ([kernels](../platforms/kernels.md#debuggers)).

"""


def generalised(question, project, agent_home, user_home):
    """The same question for every host."""
    for path, name in ((project, "the project"), (agent_home, "the agent's home"), (user_home, "~")):
        question = question.replace(path, name)
    parts = question.split(" ")
    return " ".join(parts)


def read_table():
    """{question: {column: answer}} of the file; empty without the file."""
    if not FILE.exists():
        return {}
    rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in FILE.read_text().splitlines() if line.startswith("| ")]
    return {row[0].strip("`"): dict(zip(COLUMNS, row[1:], strict=True)) for row in rows[2:]}


def write_table(table):
    lines = [f"| what | {' | '.join(COLUMNS)} |", f"| --- |{' --- |' * len(COLUMNS)}"]
    lines += [f"| `{question}` | {' | '.join(answers.get(column, '-') for column in COLUMNS)} |" for question, answers in table.items()]
    FILE.write_text(HEAD + "\n".join(lines) + "\n")

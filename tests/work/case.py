"""What a case of work is: one script, run as the user outside and by the agent inside, and what of the two may differ. What many prepare."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """One line of docs/reference/differences.md: why a session cannot do the same, and what to do instead."""

    what: str
    why: str
    remedy: str
    told: str = ""  # words of the line that /AGENTS.md has about it; empty: it has none


@dataclass(frozen=True)
class Case:
    name: str  # a sentence
    script: str  # for bash, in the project; its first failing command ends it, and outside none may fail
    prepare: str = ""  # as the user, outside, in the new and empty project
    tools: str = ""  # programs that the machine must have, with spaces between them
    differs: Difference = None  # None: both sides come to the same
    seen: tuple = ()  # with `differs`: patterns of the lines in which the two differ (normal.differences); each line has one, each has a line; "[trixie] …" of that release
    ignored: tuple = ()  # patterns of paths in the tree that no two runs make alike
    masked: tuple = ()  # patterns of what is printed that no two runs print alike
    start: str = ""  # directory of the project that it starts in
    arguments: tuple = ()  # of the script, and of the agent: $1, $2, …
    variables: tuple = ()  # (name, value) of the user's environment, beside what a login has
    timeout: int = 120


def script(path, *lines):
    """Makes a program of these lines, with $HOME in them written out, as managers of versions do it."""
    return f"mkdir -p {path.rpartition('/')[0]}; printf '%s\\n' " + " ".join(f'"{line}"' for line in lines) + f" >{path}; chmod +x {path}\n"


def saying(path, words):
    """Makes a program that says these words."""
    return script(path, "#!/bin/sh", f"echo {words}")

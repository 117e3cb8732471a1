"""Takes out of what a script printed whatever no two runs print alike, and says where two outcomes differ."""

import difflib
import fnmatch
import re

# Of any run: times, durations, process numbers, addresses, names that mktemp makes.
ALWAYS = (
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?[+-]\d{4}|Z)?", "TIME"),
    (r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "TIME"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Z0-9][a-z0-9]{1,2} +[A-Za-z0-9]+ TIME( [A-Z]+)?( \d{4})?", "TIME"),
    (r"\b\d+([.,]\d+)? ?(ns|µs|us|ms|milliseconds?|seconds?|secs?|s)\b", "DURATION"),
    (r"==\d+==", "==PID=="),
    (r"(?i)\b(pid|process)[ :=]+\d+", r"\1 PID"),
    (r"\b0x[0-9a-f]{4,}\b", "ADDRESS"),
    (r"\btmp[._-]?[A-Za-z0-9_]{6,10}\b", "TEMPORARY"),
)
OF_A_RELEASE = re.compile(r"(?:\[(\w+)\] )?(.*)", re.DOTALL)
# What a product's own line looks like, on standard error.
OWN_LINE = re.compile(r"^pi: .*\n?", re.MULTILINE)


def normal(text, homes, masked=()):
    """`homes`: what is the home on this side."""
    for home in homes:
        text = re.sub(re.escape(home) + r"(?!/projects)(?![\w-])", "~", text)
    for pattern, replacement in (*((mask, "MASKED") for mask in masked), *ALWAYS):
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def without_ignored(tree, ignored):
    patterns = (*ignored, "*/__pycache__", "*.pyc", "__pycache__")
    return {path: entry for path, entry in tree.items() if not any(fnmatch.fnmatch(path, one) for one in patterns)}


def of_text(title, outside, inside, most=30):
    lines = difflib.unified_diff(outside.splitlines(), inside.splitlines(), "outside", "inside", lineterm="", n=0)
    return [f"{title}: {line}" for line in list(lines)[2 : most + 2] if not line.startswith("@@")]


def of_tables(title, outside, inside, most=30):
    paths = [path for path in sorted({*outside, *inside}) if outside.get(path) != inside.get(path)]
    lines = [f"{title}: {path}: outside {outside.get(path, 'none')}, inside {inside.get(path, 'none')}" for path in paths[:most]]
    return lines + ([f"{title}: and {len(paths) - most} more"] if len(paths) > most else [])


def foresees(patterns, release):
    """Whether one of the patterns is of this release."""
    return any(OF_A_RELEASE.match(one)[1] in (None, release) for one in patterns)


def unforeseen(found, patterns, release):
    """Of the lines of differences(), those that no pattern foresees; and patterns that foresee what is not there. "[trixie] …" is of that release."""
    foreseen = [OF_A_RELEASE.match(one).groups() for one in patterns]
    seen = [pattern for of_release, pattern in foreseen if of_release in (None, release)]
    wrong = [line for line in found if not any(fnmatch.fnmatchcase(line, one) for one in seen)]
    return wrong + [f"not seen: {one}" for one in seen if not any(fnmatch.fnmatchcase(line, one) for line in found)]


def differences(outside, inside):
    """Lines that say where two outcomes of a case differ; none where both came to the same."""
    found = [f"status: outside {outside.status}, inside {inside.status}"] if outside.status != inside.status else []
    found += of_text("output", outside.out, inside.out) + of_text("errors", outside.err, inside.err)
    found += of_tables("tree", outside.tree, inside.tree)
    for what in sorted({*outside.git, *inside.git}):
        found += of_text(f"git: {what}", outside.git.get(what, "none"), inside.git.get(what, "none"), most=8)
    return found

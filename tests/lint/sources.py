"""Finds the project's files and takes them apart: kind, opening comment, code without comments and strings."""

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

KINDS = {".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".sh": "shell", ".nix": "nix"}
HIDDEN_BUT_OURS = {".ci"}

# Order matters: what opens first wins. A quote after a letter or digit is a digit separator (1'000), not a character.
_NOT_CODE = re.compile(
    r'R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)"'
    r"|//(?:\\\n|[^\n])*"
    r"|/\*.*?\*/"
    r'|(?<!\w)"(?:\\.|[^"\\\n])*"'
    r'|(?<=[LuU8])"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])*'",
    re.DOTALL)
_INCLUDE_LINE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*", re.MULTILINE)


def code_of(text):
    """The text with comments and literals blanked, line for line; include lines survive because their names are strings."""

    def blank(match):
        before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if match.group().startswith('"') and _INCLUDE_LINE.fullmatch(before.rstrip()):
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())

    return _NOT_CODE.sub(blank, text)


def strings_of(text):
    """(offset, content) of each string of a C++ text; literals with nothing but blanks between them are one string."""
    joined = []
    end = None
    for match in _NOT_CODE.finditer(text):
        if match.group()[0] not in '"R':
            continue
        content = match.group()[1:-1] if match.group()[0] == '"' else match.group().partition("(")[2].rpartition(")")[0]
        if joined and not text[end : match.start()].strip():
            joined[-1] = (joined[-1][0], joined[-1][1] + content)
        else:
            joined.append((match.start(), content))
        end = match.end()
    return joined


def comments_of(text):
    """(offset, words) of each comment of a C++ text; lines with nothing but blanks between them are one comment. A line of it is a line of the text."""
    joined = []
    end = None
    for match in _NOT_CODE.finditer(text):
        if not match.group().startswith("//"):
            continue
        words = match.group()[2:].strip()
        alone = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        if joined and alone and re.fullmatch(r"\n[ \t]*", text[end : match.start()]):
            joined[-1] = (joined[-1][0], joined[-1][1] + "\n" + words)
        else:
            joined.append((match.start(), words))
        end = match.end()
    return joined


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


@dataclass(frozen=True)
class SourceFile:
    path: str  # relative to the project, with slashes
    text: str

    @cached_property
    def kind(self):
        """'cpp', 'python', 'shell', 'nix', or None for documents and data."""
        by_suffix = KINDS.get(Path(self.path).suffix)
        if by_suffix or not self.text.startswith("#!"):
            return by_suffix
        interpreter = self.text.split("\n", 1)[0]
        if "python" in interpreter:
            return "python"
        return "shell" if re.search(r"\b(?:ba|da)?sh\b", interpreter) else None

    @cached_property
    def top_directory(self):
        return self.path.split("/")[0] if "/" in self.path else ""

    @cached_property
    def code(self):
        return code_of(self.text) if self.kind == "cpp" else self.text

    def opening_comment(self):
        """The first words of the file when they are a comment, else ''."""
        lines = self.text.split("\n")
        if lines[0].startswith("#!"):
            lines = lines[1:]
        first = lines[0].strip() if lines else ""
        if self.kind == "cpp":
            return first[2:].strip() if first.startswith("//") else ""
        if first.startswith("#"):
            return first[1:].strip()
        if self.kind == "python" and first.startswith('"""'):
            following = lines[1].strip() if len(lines) > 1 else ""
            return (first[3:].strip() or following).rstrip('"')
        return ""


def read_sources(root):
    """Every text file of the project, in a stable order. Build directories, hidden directories and binary files are left out."""
    for directory, subdirectories, names in os.walk(root):
        here = Path(directory)
        subdirectories[:] = sorted(
            name for name in subdirectories
            if (not name.startswith(".") or name in HIDDEN_BUT_OURS)
            and name not in ("__pycache__", "node_modules")
            and not (here / name / "meson-private").exists())
        for name in sorted(names):
            file = here / name
            if file.is_symlink() or not file.is_file():
                continue
            content = file.read_bytes()
            if b"\0" in content[:8192]:
                continue
            yield SourceFile(file.relative_to(root).as_posix(), content.decode("utf-8", errors="replace"))

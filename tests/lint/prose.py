"""Measures the prose of the pages: words, lines, sentences, and words that we do not use. `prose.py [FILE...]` prints what it finds, for writers.

It needs no other file, so that a copy of it works in any checkout.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

MAX_AVERAGE = 20
MAX_SENTENCE = 40
MAX_LINE = 100
MAX_PAGE_LINES = 200
MAX_LINES_OF_COMMAND = 300  # the manual of a command (section 1 or 8) is a reference that man(1) shows whole
MAX_WORDS = 1500
# Of the manual, one command is read at a time; of this page one section, which `explain` prints.
MAX_WORDS_OF = {"README.md": 900, "man/pi-agentctl.8.scd": 2000, "docs/troubleshooting.md": 4000}
MAX_LINES_OF = {"docs/troubleshooting.md": 700}
MIN_SENTENCE = 4  # a shorter item of a list or cell of a table is a label, and would make the average look better than it is
NOT_PAGES = ("docs/assurance.md",)  # what a test run saw

# (term, what it is, words that are not used for it). CONTRIBUTING.md has the same table for people; the lint compares them.
TERMS = (
    ("user", "the person who types `pi`", ("end user", "human")),
    ("administrator", "the person who writes the policy as root", ("admin", "sysadmin", "superuser")),
    ("agent's account", "the Unix account that the agent runs as", ("agent user", "service account")),
    ("user name", "what an account is called", ("username",)),
    ("session", "one run of the agent, from start to end", ("run of the sandbox",)),
    ("sandbox", "what confines a session", ("jail", "cage")),
    ("allowed", "what the policy lets a user or session do", ("permitted", "whitelisted")),
    ("denied", "what the policy does not let a user or session do", ("forbidden", "disallowed", "blacklisted")),
    ("directory", "what `mkdir` makes", ("folder",)),
    ("symlink", "what `ln -s` makes", ("symbolic link", "soft link")),
    ("file system", "what `mount` mounts", ("filesystem",)),
    ("control group", "what systemd limits and kills", ("cgroup",)),
    ("system call", "a call of the kernel", ("syscall",)),
    ("repository", "a git repository", ("repo",)),
    ("exit status", "the number that a program ends with", ("exit code", "return code")),
    ("standard output", "descriptor 1; standard input and standard error likewise", ("stdout", "stdin", "stderr")),
)

# (pattern, what to write instead). A blank stands for any white space. Code is not looked at.
PHRASES = (
    (r"(?:is|are|has|have|gets?) none(?! of)", "say what is missing: 'is not a …', 'has no …'"),
    (r"(?<!there )(?:is|are) no(?! (?:longer|more than|less|one)\b)", "'is not a …'; or 'there is no …'"),
    (r"on paper", "say what is true of the program"),
    (r"as (?:it is|they are) to be", "'as expected', 'correct'"),
    (r"(?:is|are) (?:not )?to be", "'must be'; or say who does it"),
    (r"(?:its|their) like|and the like", "'and similar', or the whole list"),
    (r"(?:what|which|each|all) (?:is|are) told", "'the message says', 'prints'"),
    (r"that of", "repeat the noun, or use a possessive"),
    (r"nobody can be", "say who cannot do what"),
    (r"all the same(?=[.,;:)]|$)", "'still', 'anyway'"),
    (r"of ours", "'our …', or its name"),
    (r"as ever", "'as before', 'as usual'"),
    (r"in the place of", "'instead of', 'replaces'"),
    (r"mend(?:s|ed|ing)?", "'fix', 'repair'"),
    (r"anew", "'again'"),
    (r"(?:is|are) not there|(?:is|are) there already", "'does not exist', 'already exists'"),
    (r"but for", "'except'"),
    (r"nothing of", "'none of', 'no part of'"),
    (r"(?:is|are) said (?:of|about)", "'applies to'"),
    (r"(?:is|are|be) (?:root|the (?:user|agent|administrator|host|caller))'s(?= ?[.,;:)]| and\b| alone\b|$)", "'belongs to …', 'is owned by …'"),
    (r"whose (?:it is|they are)", "'who owns it'"),
    (r"what becomes of", "'what happens to'"),
    (r"lies? (?:in|at|under|beside|there|outside)", "'is in'"),
    (r"in its stead|therein|thereof|wherefore", "plain words"),
)
# The same, at the beginning of a sentence that is not a question.
OPENINGS = (
    (r"Who (?:is|may|has|can|cannot|does|wants|may not)\b", "'A user who …', 'If you …'"),
    (r"What is (?:no|not)\b", "name it: 'A file that is not …'"),
)

ABBREVIATIONS = {"e.g.", "i.e.", "cf.", "vs.", "approx.", "no.", "fig.", "resp.", "incl.", "dr.", "mr.", "ms.", "st."}

# Inside code: a blank, a line feed, a bar, and any other byte that could end a sentence. None is white space.
_BLANK, _NEWLINE, _BAR, _STOP = "\ue000", "\ue001", "\ue002", "\ue003"
_HIDE = str.maketrans({" ": _BLANK, "\t": _BLANK, "\n": _NEWLINE, "|": _BAR, ".": _STOP, "!": _STOP, "?": _STOP})
_SHOW = str.maketrans({_BLANK: " ", _NEWLINE: " ", _BAR: "|", _STOP: "."})
_CODE = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n[ \t]*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
_MAN_CODE = re.compile(r"(?<![\w*\\])\*[^*\n]+\*(?!\w)|(?<![\w\\])_(?:\\_|[^_\n])+_(?!\w)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_END = re.compile(r"[.!?][\"'”’)\]*_]*\s+(?=[\"'“‘(\[*_]*(?:[A-Z0-9`]|pi\b|npm\b|git\b|sudo\b|systemd\b))|\s·\s")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d+[.)])\s+")
_WHOLE_PAGE = re.compile(r"^(?:<!-- *)?(?:(?:Written|Generated) by |To (?:write|generate|regenerate|update) (?:it|this page)\b).*`")
_REGION = re.compile(r"^<!--.*\b(?:written|generated) by (?:the )?\S*(?:tests|common|tools)/", re.IGNORECASE)
_REGION_END = re.compile(r"^<!-- *End of ", re.IGNORECASE)


def _words_of(phrase):
    return re.compile(r"(?<![\w/.-])(?:" + phrase.replace(" ", r"\s") + r")(?![\w/-]|\.\w|\(\d\))", re.IGNORECASE)


_PHRASES = [(_words_of(pattern), remedy) for pattern, remedy in PHRASES]
_TERMS = [(_words_of("|".join(word + "s?" for word in words)), f"the term is '{term}'") for term, _, words in TERMS]
_OPENINGS = [(re.compile(pattern), remedy) for pattern, remedy in OPENINGS]


@dataclass
class Block:
    kind: str  # paragraph, item, cell, heading
    line: int  # where it begins
    text: str
    generated: bool = False


@dataclass
class Measures:
    words: int = 0  # what counts for the page's limit: generated parts do not
    lines: int = 0
    sentences: list = field(default_factory=list)  # (line, number of words, text)

    @property
    def counted(self):
        return sum(1 for _, _, counts, _ in self.sentences if counts)

    @property
    def average(self):
        lengths = [words for _, words, counts, _ in self.sentences if counts]
        return sum(lengths) / len(lengths) if lengths else 0.0

    @property
    def longest(self):
        return max((words for _, words, _, _ in self.sentences), default=0)


def hide_code(text, manual=False):
    """Code is one word each, and ends no sentence."""
    text = _CODE.sub(lambda match: match.group().translate(_HIDE), text)
    if manual:
        text = _MAN_CODE.sub(lambda match: "`" + match.group()[1:-1].translate(_HIDE) + "`", text)
    return text


def without_code(text):
    return re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", lambda match: "\ue004" + "\n" * match.group().count(_NEWLINE), text, flags=re.DOTALL)


def words_in(text):
    return sum(1 for token in text.split() if re.search(r"[^\W_]|`", token))


def split_sentences(text):
    """(offset, sentence) of a text whose code is hidden."""
    begin = 0
    for match in _END.finditer(text):
        before = text[begin : match.start() + 1].split()
        last = before[-1].lstrip("([\"'*_") if before else ""
        if "·" not in match.group() and (last.lower() in ABBREVIATIONS or re.fullmatch(r"[A-Z]\.", last)):
            continue
        yield begin, text[begin : match.end()].rstrip(" ·\n")
        begin = match.end()
    if text[begin:].strip():
        yield begin, text[begin:]


def _cells(line):
    inside = line.strip().strip("|")
    return [] if re.fullmatch(r"[\s|:-]*", inside) else re.split(r"(?<!\\)\||<br */?>", inside)


class _Reader:
    """Takes a page apart into blocks. What is code belongs to none."""

    def __init__(self, manual):
        self.manual = manual
        self.blocks = []
        self.prose_lines = []  # (line, text) of what can be wrapped
        self.generated = False
        self.generated_lines = 0
        self.open = None
        self.item_indent = None
        self.after_blank = True
        self.in_code = False

    def add(self, kind, number, text):
        self.blocks.append(Block(kind, number, text, self.generated))

    def close(self):
        self.open = None

    def begin(self, kind, number, text):
        self.add(kind, number, text)
        self.open = self.blocks[-1]

    def read(self, number, line):
        if _REGION.match(line):
            self.generated = True
        elif _REGION_END.match(line):
            self.generated = False
        self.generated_lines += self.generated
        if self.is_code(line):
            self.close()
        elif not line.strip():
            self.close()
        elif self.manual:
            self.read_manual(number, line)
        else:
            self.read_markdown(number, line)
        self.after_blank = not line.strip()

    def is_code(self, line):
        if self.manual or not line.strip():
            return False
        indent = len(line) - len(line.lstrip(" "))
        if indent == 0 and not _ITEM.match(line):
            self.item_indent = None if self.after_blank or line.startswith(("#", "|")) else self.item_indent
        needed = 4 + (self.item_indent or 0)
        if indent >= needed and (self.after_blank or self.in_code) and not self.open:
            self.in_code = True
        elif indent < needed:
            self.in_code = False
        return self.in_code

    def read_markdown(self, number, line):
        if re.match(r"\s*\|", line):
            self.close()
            for cell in _cells(line):
                self.add("cell", number, cell)
        elif line.startswith("#"):
            self.close()
            self.add("heading", number, line.lstrip("# "))
        elif re.match(r"\[[^\]]+\]:\s", line) or re.fullmatch(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*", line):
            self.close()
        else:
            item = _ITEM.match(line)
            text = re.sub(r"^\s*>\s?", "", line[item.end() :] if item else line)
            self.prose_lines.append((number, line))
            if item:
                self.item_indent = item.end()
                self.begin("item", number, text)
            elif self.open:
                self.open.text += "\n" + text.strip()
            else:
                self.begin("paragraph", number, text)

    def read_manual(self, number, line):
        stripped = line.strip("\t ")
        if re.match(r"[|:\[\]][<\-> ]", stripped):
            self.close()
            self.add("cell", number, stripped[2:])
        elif stripped.startswith("#"):
            self.close()
            self.add("heading", number, stripped.lstrip("# "))
        elif line.startswith(("; ", ".")) or number == 1:
            self.close()
        elif not line.startswith("\t") and re.match(r"[*_]", line) and not self.open:
            self.add("heading", number, line)  # what the tab-indented lines below are about
        else:
            item = re.match(r"[-.] ", stripped)
            self.prose_lines.append((number, line))
            text = stripped[2:] if item else stripped
            if item or not self.open:
                self.begin("item" if item else "paragraph", number, text)
            else:
                self.open.text += "\n" + text.strip()
            if stripped.endswith("++"):
                self.open.text = self.open.text[:-2]
                self.close()


def _without_fences(text):
    """The text with empty lines instead of fenced code."""
    lines = []
    fence = None
    for line in text.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        lines.append("" if fence or mark else line)
        if fence and mark and mark.group(1).startswith(fence):
            fence = None
        elif mark and not fence:
            fence = mark.group(1)
    return "\n".join(lines)


def _options_are_headings(lines):
    """In a manual, the number of each line that names an option or command: the next one is indented below it."""
    return {number for number, line in enumerate(lines, 1)
            if number < len(lines) and not line.startswith("\t") and line.strip() and lines[number].startswith("\t")}


def read_page(path, text):
    """(blocks, prose lines, lines that were not generated)"""
    manual = path.endswith(".scd")
    text = _COMMENT.sub(lambda match: match.group() if _REGION.match(match.group()) or _REGION_END.match(match.group())
                        else "\n" * match.group().count("\n"), text)
    lines = hide_code(_without_fences(text), manual).split("\n")
    reader = _Reader(manual)
    options = _options_are_headings(lines) if manual else set()
    for number, line in enumerate(lines, 1):
        if number in options:
            reader.close()
            reader.add("heading", number, line)
        elif line.startswith("<!--"):
            reader.read(number, line)
            reader.blocks = [block for block in reader.blocks if block.line != number]
            reader.close()
        else:
            reader.read(number, line)
    if any(_WHOLE_PAGE.match(line) for line in text.split("\n")[:15]):
        for block in reader.blocks:
            block.generated = True
        reader.generated_lines = len(lines)
    for block in reader.blocks:
        block.text = _LINK.sub(r"\1", block.text)
    return reader.blocks, reader.prose_lines, max(0, text.count("\n") - reader.generated_lines)


def measure(path, text):
    blocks, _, lines = read_page(path, text)
    measures = Measures(lines=lines)
    for block in blocks:
        if not block.generated:
            measures.words += words_in(block.text)
        if block.kind == "heading":
            continue
        for offset, sentence in split_sentences(block.text):
            count = words_in(sentence)
            line = block.line + len(re.findall(f"[\n{_NEWLINE}]", block.text[:offset]))
            if count:
                measures.sentences.append((line, count, block.kind == "paragraph" or count >= MIN_SENTENCE, sentence))
    return measures


def words_not_used(text, is_heading=False):
    """(offset, words, what to write instead) of a text whose code is hidden or that has none."""
    plain = without_code(text)
    for pattern, remedy in _PHRASES + _TERMS:
        for match in pattern.finditer(plain):
            yield match.start(), " ".join(match.group().split()), remedy
    for offset, sentence in () if is_heading else split_sentences(plain):
        for pattern, remedy in _OPENINGS:
            match = pattern.match(sentence)
            if match and not sentence.rstrip().endswith("?"):
                yield offset, match.group(), remedy


def _start_of(sentence):
    words = sentence.translate(_SHOW).split()
    return " ".join(words[:8]) + (" …" if len(words) > 8 else "")


def check_page(path, text):
    """(line, rule, what to do) for everything that is wrong with the page."""
    blocks, prose_lines, _ = read_page(path, text)
    measures = measure(path, text)
    limit = MAX_WORDS_OF.get(path, MAX_WORDS)
    if measures.words > limit:
        yield 1, "page-words", f"{measures.words} words, the limit here is {limit}; move what is for another reader to its page"
    most_lines = MAX_LINES_OF_COMMAND if re.fullmatch(r"man/[^/]*\.[18]\.scd", path) else MAX_LINES_OF.get(path, MAX_PAGE_LINES)
    if measures.lines > most_lines:
        yield 1, "page-lines", f"{measures.lines} lines, the limit here is {most_lines}; split the page by what its reader wants"
    if measures.average > MAX_AVERAGE:
        yield 1, "average-sentence", f"a sentence has {measures.average:.1f} words on average, the limit is {MAX_AVERAGE}"
    for line, count, _, sentence in measures.sentences:
        if count > MAX_SENTENCE:
            yield line, "long-sentence", f"{count} words, the limit is {MAX_SENTENCE}: {_start_of(sentence)}"
    for number, line in prose_lines:
        item = _ITEM.match(line)
        if len(line) > MAX_LINE and len((line[item.end() :] if item else line).split()) > 1:
            yield number, "long-line", f"{len(line)} characters, the limit of prose is {MAX_LINE}"
    for block in blocks:
        for offset, words, remedy in words_not_used(block.text, block.kind == "heading"):
            line = block.line + block.text[:offset].count("\n")
            yield line, "words", f"'{words}': {remedy}"


def terms_table():
    """The table that CONTRIBUTING.md must have, line by line."""
    yield "| term | what it is | not |"
    yield "| --- | --- | --- |"
    for term, meaning, others in TERMS:
        yield f"| {term} | {meaning} | {', '.join(f'`{other}`' for other in others)} |"


def is_page(path):
    if path in NOT_PAGES:
        return False
    return path in ("README.md", "SECURITY.md", "CONTRIBUTING.md") or re.fullmatch(r"docs/.*\.md|man/[^/]*\.scd", path) is not None


def _root_of(start):
    return next((directory for directory in (start, *start.parents) if (directory / "meson.build").is_file() and (directory / "README.md").is_file()), None)


def main(arguments):
    here = _root_of(Path.cwd()) or _root_of(Path(__file__).resolve().parent)
    files = [Path(name).resolve() for name in arguments]
    if not files and here:
        files = sorted(file for file in here.rglob("*") if is_page(file.relative_to(here).as_posix()))
    failed = False
    for file in files:
        root = _root_of(file.parent)
        path = file.relative_to(root).as_posix() if root else file.name
        text = file.read_text(encoding="utf-8")
        measures = measure(path, text)
        print(f"{path}: {measures.words} words, {measures.lines} lines, {measures.counted} sentences, {measures.average:.1f} words on average, longest {measures.longest}")
        for line, rule, what in sorted(check_page(path, text)):
            failed = True
            print(f"  {path}:{line}: [{rule}] {what}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

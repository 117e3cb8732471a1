"""What a `check --full` has brought to its end so far, so that `--continue` goes on with a run that was interrupted, or in which tests failed.

It goes on at the same commit, or at a later one that differs only in
- files of tests, of unit tests, of fuzzers, or of benches: the pieces that these files are part of run again,
- sources that build the same programs, byte for byte (same_programs.py): what compiles sources runs again, and where words in quotes changed, what
  reads these,
- what only lint reads, or this choice itself.
Lint runs again in any case, and the page says what else."""

import fcntl
import json
import os
import re
import shutil
from pathlib import Path

import assurance
import same_programs
from cache import CACHE, SOURCE
from progress import START, say
from results import Results

DIRECTORY = CACHE / "unfinished"
RUN = "run.json"
TEST = re.compile(r"tests/(?:system|attack|container|work)/test_\w+\.py")  # a file that, of other suites, only lint reads
INSIDE = re.compile(r"tests/(?:system|attack|container|work)/inside/\w+\.py")  # a program that these tests run in a machine
UNIT = re.compile(r"tests/unit/.+")
UNIT_DATA = re.compile(r"tests/unit/data/.+")  # read by other tests, too
PROGRAM = re.compile(r"(?!tests/)[a-z]+/.+\.[ch]pp")
FUZZ = re.compile(r"tests/fuzz/[^/]+\.(?:py|cpp)")
BENCH = re.compile(r"tests/bench/[^/]+(?<!meson\.build)")
OF_LINT = re.compile(r"tests/lint/.+|tests/machine/(?:unfinished|same_programs)(?:_test)?\.py")
KEPT = (TEST, INSIDE, UNIT, FUZZ, BENCH, PROGRAM, OF_LINT)
READS_SOURCES = {"unit", "static", "fuzz"}  # the suites that compile or analyse them by themselves; a build with clang is never kept
READS_SOURCE_FILES = re.compile(r"\.[ch]pp\"")  # in a test that looks into the sources, which is for names of points and defences
NOTHING = r"(?!)"
QUOTED = re.compile(r'^#include .*|"(?:[^"\\\n]|\\.)*"', re.MULTILINE)
READS_UNIT_DATA = re.compile(r'"unit" / "data"|tests/unit/data')
READS_ALL = 'glob("test_*.py")'  # in a test that looks into the tests beside it
ALWAYS = "lint"  # takes a minute, and reads every file


class Unfinished:
    """A directory with the seed, the beginnings and, by their names, the results of what has ended; without one nothing is kept."""

    def __init__(self, directory=None):
        self.directory = directory and Path(directory)

    def _write(self, name, text):
        draft = self.directory / f".{name}"
        draft.write_text(text)
        draft.rename(self.directory / name)  # whole, or not there

    def began(self, seed, before=(), changes=()):
        self._write(RUN, json.dumps({"seed": seed, "began": [*before, START], "changes": [*changes]}))

    def _run(self):
        return json.loads((self.directory / RUN).read_text())

    def goes_on(self, changes=()):
        run = self._run()
        os.environ["PI_AGENT_SEED"] = run["seed"]
        self.began(run["seed"], run["began"], [*run["changes"], *changes])

    def beginnings(self):
        """When each part of the run began, in seconds of the epoch."""
        return self._run()["began"] if self.directory else [START]

    def changes(self):
        """In words, each change of tests after which the run went on."""
        return self._run()["changes"] if self.directory else []

    def moves_to(self, commit, tests):
        """Forgets what the changed files are part of, and lint. `tests`: of each piece's label its files."""
        before = self.directory.name
        changed = changed_files(before, commit)
        found = affected(changed, any(words_in(file, before) != words_in(file, commit) for file in filter(PROGRAM.fullmatch, changed)))
        again = {ALWAYS, *(label for label, files in tests.items() if runs_any_of(found, files))}
        again |= {suite for suite, files in (("unit", UNIT), ("fuzz", FUZZ)) if any(map(files.fullmatch, changed))}
        if any(map(PROGRAM.fullmatch, changed)):
            if differing := same_programs.programs_that_differ(before):
                raise ValueError(f"--continue: the programs are not those of {before}: {', '.join(differing[:5])}. Start a run without it")
            again |= READS_SOURCES
        # The change is noted first: whoever goes on after a kill between these steps still finds it.
        self.goes_on([f"{', '.join(changed)} changed since {before}: {', '.join(sorted(again))} ran again"])
        for file in self.directory.glob("*.results"):
            if file.name.partition(" on ")[0] in again:
                file.unlink()
        self.directory = self.directory.rename(DIRECTORY / commit)

    def once(self, results, name, act):
        """Adds what act(results) finds, unless an earlier part has it. Kept when act says that it came to its end."""
        file = f"{name}.results"
        if self.directory and (self.directory / file).exists():
            say(f"{name}: as it came out before")
            results.add_json((self.directory / file).read_text())
            return
        own = Results()
        came_to_its_end = act(own)
        if self.directory and came_to_its_end and assurance.commit() == self.directory.name:  # what was changed meanwhile is not that commit's
            self._write(file, own.as_json())
        results.add_json(own.as_json())

    def remove(self):
        if self.directory:
            shutil.rmtree(self.directory)


def changed_files(before, commit):
    """The files that differ between two commits. Raises ValueError if one of them is none that a run survives, or is new, gone or renamed."""
    lines = assurance.git("diff", "--name-status", "--no-renames", before, commit).splitlines()
    more = [line for line in lines if not OF_LINT.fullmatch(line[2:]) and not (line.startswith("M\t") and any(kind.fullmatch(line[2:]) for kind in KEPT))]
    if more:
        raise ValueError(f"--continue: more than tests and sources changed since {before}: {'; '.join(more[:5])}. Start a run without it")
    return [line[2:] for line in lines]


def words_in(source, commit):
    """What a source has in quotes, but for what it includes: names of fault points and of defences are among it."""
    return [words for words in QUOTED.findall(assurance.git("show", f"{commit}:{source}")) if words.startswith('"')]


def names_of(files):
    return "|".join(re.escape(Path(file).stem) for file in files)


def imported_by(file, text, named):
    """Which files it imports from; `named`: those of each name, of which the one beside it counts, as Python finds it."""
    found = set()
    for name in re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE):
        beside = str(Path(file).with_name(f"{name}.py"))
        of_name = named.get(name, set())
        found |= {beside} if beside in of_name else of_name
    return found


def affected(changed, with_other_words=False):
    """These files of tests, those that import from them or run them, directly or through others, and those that read all files beside them. With
    the data of unit tests, or sources with other words in quotes, all that reads those."""
    texts = {str(file.relative_to(SOURCE)): file.read_text() for kind in ("*/*.py", "*/inside/*.py") for file in (SOURCE / "tests").glob(kind)}
    read = [READS_UNIT_DATA] if any(map(UNIT_DATA.fullmatch, changed)) else []
    read += [READS_SOURCE_FILES] if with_other_words else []
    readers = {file for file, text in texts.items() if any(reader.search(text) for reader in read)}
    named = {}
    for file in texts:
        named.setdefault(Path(file).stem, set()).add(file)
    imported = {file: imported_by(file, text, named) for file, text in texts.items()}
    found, before = {*changed, *readers}, None
    while found != before:
        before = set(found)
        # Such a program is named in the middle of a line, too: in what another program is told to import, or to run.
        inside = names_of(filter(INSIDE.fullmatch, found)) or NOTHING
        runs = re.compile(rf"\b(?:from|import) (?:{inside})\b|\b(?:{inside})\.py\b")
        found |= {file for file, text in texts.items() if imported[file] & found or runs.search(text)}
    directories = {Path(file).parent for file in found}
    return found | {file for file, text in texts.items() if READS_ALL in text and Path(file).parent in directories}


def runs_any_of(found, files):
    """Whether a piece of these files and directories runs one that was found."""
    return any(path in found or any(file.startswith(f"{path}/") for file in found) for path in files)


def begin(commit, goes_on, tests=None):
    """A new run, or the next part of an interrupted one, with its seed. Of files that no commit has nothing is kept.
    `tests`: of the label of each piece its files and directories."""
    CACHE.mkdir(parents=True, exist_ok=True)
    lock = os.open(CACHE / "full.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)  # until this process ends
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError("another --full is running here; wait for its end") from None
    if " " in commit:  # as assurance.commit() tells it
        if goes_on:
            raise ValueError(f"--continue goes on with a commit, and this checkout is not one: {commit}")
        return Unfinished()
    run = Unfinished(DIRECTORY / commit)
    if not goes_on:
        shutil.rmtree(DIRECTORY, ignore_errors=True)  # of other commits, too: nobody goes back to them
        os.makedirs(run.directory)
        run.began(os.environ["PI_AGENT_SEED"])
    elif (run.directory / RUN).exists():
        run.goes_on()
    elif others := [file.parent for file in DIRECTORY.glob(f"*/{RUN}")]:
        run = Unfinished(others[0])
        run.moves_to(commit, tests or {})
    else:
        raise FileNotFoundError(f"--continue: no interrupted run of {commit} is in {DIRECTORY}; start one without it")
    return run

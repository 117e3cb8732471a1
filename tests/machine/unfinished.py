"""What a `check --full` has brought to its end so far, so that `--continue` goes on with an interrupted one of the same commit."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import assurance
from cache import CACHE
from progress import START, say
from results import Results

DIRECTORY = CACHE / "unfinished"
RUN = "run.json"


class Unfinished:
    """A directory with the seed, the beginnings and, by their names, the results of what has ended; without one nothing is kept."""

    def __init__(self, directory=None):
        self.directory = directory and Path(directory)

    def _write(self, name, text):
        draft = self.directory / f".{name}"
        draft.write_text(text)
        draft.rename(self.directory / name)  # whole, or not there

    def began(self, seed, before):
        self._write(RUN, json.dumps({"seed": seed, "began": [*before, START]}))

    def goes_on(self):
        run = json.loads((self.directory / RUN).read_text())
        os.environ["PI_AGENT_SEED"] = run["seed"]
        self.began(run["seed"], run["began"])

    def beginnings(self):
        """When each part of the run began, in seconds of the epoch."""
        return json.loads((self.directory / RUN).read_text())["began"] if self.directory else [START]

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


def begin(commit, goes_on):
    """A new run, or the next part of the interrupted one of this commit, with its seed. Of files that no commit has nothing is kept."""
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
        run.began(os.environ["PI_AGENT_SEED"], [])
    elif (run.directory / RUN).exists():
        run.goes_on()
    else:
        raise FileNotFoundError(f"--continue: no interrupted run of {commit} is in {DIRECTORY}; start one without it")
    return run

"""Side by side, processes that mostly wait. What they print is shown one process after the other."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from progress import HEARTBEAT_SECONDS, last_lines, say

PATIENCE = 0.2


class Lane:
    """A process with its output in a file, of which a part was shown already."""

    def __init__(self, name, command, directory):
        self.name = name
        self.results = Path(directory) / f"{name}.json"
        self.log = Path(directory) / f"{name}.log"
        self._shown = 0
        with open(self.log, "wb") as log:
            # Ends when this process is killed, and then ends its machines.
            bound = ["setpriv", "--pdeathsig=TERM", *command, f"--results={self.results}"]
            self.process = subprocess.Popen(bound, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def runs(self):
        return self.process.poll() is None

    def show(self, output):
        with open(self.log, "rb") as log:
            log.seek(self._shown)
            new = log.read()
        self._shown += len(new)
        output.write(new)
        output.flush()

    def end(self):
        if self.runs():
            self.process.terminate()
            self.process.wait()

    def add_to(self, results):
        """Its results; a process that wrote none has failed."""
        try:
            results.add_json(self.results.read_text())
        except (OSError, ValueError, KeyError) as failure:
            why = f"ended with status {self.process.returncode} and without results ({failure!r}), see above"
            results.add("failed", f"everything on {self.name}", why)


def follow(lanes, output):
    """Shows the first one's output as it comes, then the next one's; of those whose turn has not come, the last line now and then."""
    told = time.monotonic()
    for number, lane in enumerate(lanes):
        running = True
        while running:
            running = lane.runs()  # asked before, so that its last words are shown
            lane.show(output)
            if time.monotonic() - told > HEARTBEAT_SECONDS:
                told = time.monotonic()
                for waiting in lanes[number + 1 :]:
                    if waiting.runs():
                        say(f"  meanwhile on {waiting.name}: {last_lines(waiting.log, 1)[:140]}")
            time.sleep(PATIENCE if running else 0)


def run(commands, results, output=sys.stdout.buffer):
    """Runs {name: command} at once, to their ends, and adds their results in this order."""
    with tempfile.TemporaryDirectory() as directory:
        lanes = []
        try:
            for name, command in commands.items():
                lanes.append(Lane(name, command, directory))
            follow(lanes, output)
        finally:
            for lane in lanes:
                lane.end()
        for lane in lanes:
            lane.add_to(results)

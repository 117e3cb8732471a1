"""Runs in a machine, as the user: rounds of background jobs in a shell in tmux, and what the terminal was and showed. Reads the orders as JSON."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time

PATIENCE = 60  # seconds for one round; a machine with two processors may have much to do
SHELLS = {
    "bash": "bash --noprofile --norc -i",
    "zsh": "zsh -f -i",
    "fish": "fish --no-config -i",
}
PROMPTS = {"bash": "PS1='ready> '", "zsh": "PS1='ready> '; unsetopt bgnice", "fish": "function fish_prompt; echo -n 'ready> '; end"}


class Failed(Exception):
    pass


class Pane:
    """A shell in tmux. `seen` is every byte that came to its terminal."""

    number = 0

    def __init__(self, shell, directory):
        Pane.number += 1
        self.server = f"rounds-{os.getpid()}-{Pane.number}"
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{directory}/log")
        self.log = f"{directory}/log"
        self.states = f"{directory}/states"
        self.seen = b""
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "50", SHELLS[shell])
        self.tmux("pipe-pane", "-o", f"cat >{self.log}")
        self.count = 0
        self.line(PROMPTS[shell])
        self.finish()

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-L", self.server, *arguments], capture_output=True, check=True)
        return done.stdout.decode()

    def read(self):
        with contextlib.suppress(FileNotFoundError), open(self.log, "rb") as file:
            self.seen = file.read()
        return self.seen

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def line(self, text):
        self.type(text)
        self.tmux("send-keys", "Enter")

    def wait(self, look, what):
        until = time.monotonic() + PATIENCE
        while not (found := look()):
            if time.monotonic() > until:
                raise Failed(f"{what}: {self.seen[-400:]!r}")
            time.sleep(0.02)
        return found

    def finish(self):
        """The terminal's settings as a program that the shell starts finds them."""
        self.count += 1
        name = f"{self.states}-{self.count}"
        # The word is not found in what was typed.
        self.line(f"stty -g >{name}; echo over''-{self.count}.")
        self.wait(lambda: f"over-{self.count}.".encode() in self.read(), "the shell does not answer")
        with open(name, encoding="ascii") as file:
            return file.read()

    def end(self):
        self.tmux("kill-server")


def processes(names):
    """The user's processes of these names, with their states."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == os.getuid():
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                    name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
                if name in names:
                    found.append(rest.split()[0])
    return found


def require_none_stopped(names):
    states = processes(names)
    if any(state in "tT" for state in states):
        raise Failed(f"stopped: {states}")
    return not states


def content_of(file):
    with contextlib.suppress(FileNotFoundError), open(file, "rb") as opened:
        return opened.read()


def endings(shown, word):
    """What came behind the word, up to the newline, each time that it was shown."""
    return re.findall(re.escape(word.encode()) + rb"(\r*\n|)", shown)


def play(pane, round_, before, names):
    """Plays one round, and returns what was behind its words."""
    start = len(pane.read())
    pane.line(round_["line"])
    if "ahead" in round_:
        # The agent alone soon becomes the shell that sleeps, and is seen by its sleep.
        pane.wait(lambda: processes([*names, "sleep"]), "nothing was started")
        pane.line(round_["ahead"])
    # Only then the next line: a job in the background must find the shell at its prompt.
    pane.wait(lambda: all(word.encode() in pane.read()[start:] for word in round_["words"]), "words are missing")
    for file, text in round_.get("files", {}).items():
        pane.wait(lambda file=file, text=text: content_of(file) == text.encode(), f"{file} does not hold what was said")
    pane.wait(lambda: require_none_stopped(names), "a job does not end")
    after = pane.finish()
    if after != before:
        raise Failed(f"the terminal was {before} and is {after}")
    shown = pane.read()[start:]
    if re.search(rb"[Ss]topped|[Ss]uspended", shown):
        raise Failed(f"stopped: {shown[-400:]!r}")
    return [ending for word in round_["words"] for ending in endings(shown, word)]


def main():
    orders = json.load(sys.stdin)
    directory = orders["directory"]
    for name, text in orders["scripts"].items():
        with open(f"{directory}/{name}", "w", encoding="utf-8") as script:
            script.write(text)
    pane = Pane(orders["shell"], directory)
    failures, as_alone = [], set()
    before = pane.finish()
    for number, round_ in enumerate(orders["rounds"]):
        try:
            found = set(play(pane, round_, before, orders["names"]))
            if round_.get("alone"):
                as_alone |= found
            elif found - as_alone:
                raise Failed(f"words were ended with {found}, by the agent alone with {as_alone}: {pane.seen[-600:]!r}")
        except Failed as failure:
            failures.append(f"round {number}, {round_['line']}: {failure}")
            pane.end()
            subprocess.run(["pkill", "-9", "-u", str(os.getuid()), "-x", "|".join(orders["names"])], check=False)
            if len(failures) > 3:
                break
            pane = Pane(orders["shell"], directory)
    pane.end()
    json.dump(failures, sys.stdout)


main()

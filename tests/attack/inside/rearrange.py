"""Run by an agent: rearranges the places in its home that a config sync touches, at random; once, or all the time until it is killed."""

import os
import random
import shutil
import sys

HOME = os.environ["HOME"]
PLACES = """.pi .pi/agent .pi/agent/settings.json .pi/agent/auth.json .pi/agent/settings.json.lock .pi/agent/auth.json.lock .pi/agent/AGENTS.md
    .pi/agent/prompts .pi/agent/prompts/1.md .pi/agent/prompts/deep .pi/agent/prompts/deep/er .agents .agents/skills .agents/skills/a""".split()
# In the home of another user's agent, which has the same account; and what only root may write.
OUTSIDE = sys.argv[2].split(":")


def away(path):
    """A free name for what is at `path`, in a directory of the agent's own or beside it."""
    return f"{random.choice([HOME, os.path.dirname(path)])}/away-{random.randrange(10**9)}"


def link(path):
    os.symlink(random.choice(OUTSIDE) + random.choice(["", "", "/new", "/canary"]), path)


def hard_link(path):
    own = f"{HOME}/own"
    with open(own, "w", encoding="ascii") as file:
        file.write("its own\n")
    os.link(own, path)


def directory(path):
    os.makedirs(path + "/x/y")
    link(path + "/x/link")
    os.chmod(path + random.choice(["", "/x"]), random.choice([0, 0o500, 0o700]))


def file(path):
    with open(path, "w", encoding="ascii") as made:
        made.write(random.choice(["", "{}", '{"a": 1}', "x" * 5000]))
    os.chmod(path, random.choice([0, 0o400, 0o666, 0o6777]))


def swap_home(path):
    """Moves a directory with what is in it elsewhere, and puts a link to it in its place."""
    moved = away(path)
    os.rename(path, moved)
    os.symlink(moved, path)


def close(path):
    os.chmod(path, random.choice([0, 0o100, 0o500]))


MAKE = (link, link, link, hard_link, directory, file, os.mkfifo)


def rearrange():
    path = f"{HOME}/{random.choice(PLACES)}"
    try:
        act = random.choice((*MAKE, swap_home, close))
        if act in MAKE and os.path.lexists(path):
            if random.random() < 0.5:
                os.rename(path, away(path))
            elif os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
        act(path)
    except OSError:
        pass  # something else already exists there, or it closed the way to it


def tidy():
    """Keeps the home small: what was moved away goes."""
    for name in os.listdir(HOME):
        if name.startswith("away-"):
            os.system(f"chmod -R u+rwX '{HOME}/{name}' 2>/dev/null; rm -rf '{HOME}/{name}'")


def main():
    random.seed(int(sys.argv[3]))
    if sys.argv[1] == "once":
        tidy()
        for _ in range(random.randrange(1, 12)):
            rearrange()
        return
    print(os.environ["PI_AGENT_SESSION"], flush=True)
    for turn in range(10**12):
        rearrange()
        if turn % 500 == 0:
            tidy()


main()

"""The system calls that are made as root on a user's word: exactly those that docs/system-calls.md lists."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from launching import DEMO, PLAYING_POLICY

PAGE = Path(__file__).resolve().parents[2] / "docs/system-calls.md"
RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
TRACE = "/root/trace"
ROW = re.compile(r"^\| (`[^|]*) \|", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")
CALL = re.compile(r"^(?P<pid>\d+) +(?:<\.\.\. (?P<resumed>\w+) resumed>|(?P<call>\w+)\()(?P<rest>.*)$")
RETURNED = re.compile(r"= (-?\d+)[^=]*$")
FORKS = {"clone", "clone3", "fork", "vfork"}
IDENTITIES = {"setuid", "setreuid", "setresuid"}


class Roots:
    """Follows a trace of strace -f: which processes are the runner's and still root, and what they call."""

    def __init__(self):
        self.calls = defaultdict(set)  # by name: the beginnings of the lines that show it
        self.processes = set()
        self.early = defaultdict(list)  # by process: what is not known to be ours (yet: a child may be faster than its parent's return)
        self.unfinished = {}  # by process: how its call began, while the trace goes on with another one's

    def read(self, line):
        found = CALL.match(line)
        if not found:
            return
        pid, call, rest = found["pid"], found["call"] or found["resumed"], found["rest"]
        if rest.endswith("<unfinished ...>"):
            self.unfinished[pid] = rest.removesuffix("<unfinished ...>")
            return
        if found["resumed"]:
            rest = self.unfinished.pop(pid, "") + rest
        self.made(pid, call, rest, line[:200])

    def made(self, pid, call, rest, shown):
        returned = RETURNED.search(rest)
        value = int(returned[1]) if returned else None
        if call == "execve" and value == 0:
            self.is_runner(pid, rest)
        if pid not in self.processes:
            self.early[pid].append((call, rest, shown))
            return
        self.calls[call].add(shown)
        if call in FORKS and value and value > 0:
            child = str(value)
            self.processes.add(child)
            for earlier in self.early.pop(child, []):
                self.made(child, *earlier)
        if call in IDENTITIES and value == 0 and not re.match(r"(-1, )*0", rest):
            self.processes.discard(pid)

    def is_runner(self, pid, rest):
        """A program that the runner becomes is another one, whose calls are not ours."""
        self.processes.discard(pid)
        if rest.startswith(f'"{RUNNER}"'):
            self.processes.add(pid)


def test_a_child_that_is_faster_than_its_parents_return_is_followed_from_its_first_call():
    roots = Roots()
    for line in (
        f'10 execve("{RUNNER}", ["{RUNNER}"], 0x1 /* 9 vars */) = 0',
        "10 clone3({flags=CLONE_VFORK} <unfinished ...>",
        "11 prctl(PR_SET_PDEATHSIG, SIGKILL) = 0",
        "11 setresuid(1000, 1000, 1000)     = 0",
        "11 statfs(\"/home\", 0x2)           = 0",
        "10 <... clone3 resumed>, 88)        = 11",
        "11 statfs(\"/home\", 0x2)           = 0",
        "10 getuid()                         = 0",
    ):
        roots.read(line)
    assert sorted(roots.calls) == ["clone3", "execve", "getuid", "prctl", "setresuid"]


def calls_of(machine, command):
    """What the runner and its children call as root while alice runs a command."""
    done = machine.root(["strace", "-f", "-qq", "-s", "64", "-o", TRACE, "runuser", "-u", "alice", "--", "sh", "-c", command], cwd=DEMO, timeout=120)
    roots = Roots()
    for line in machine.read(TRACE).decode(errors="replace").splitlines():
        roots.read(line)
    machine.root(["rm", TRACE], check=True)
    assert done.returncode == 0, done
    assert roots.calls, "strace has not seen the runner"
    return roots.calls


MUCH = """
projects:
  mask: ['.env*']
toolchains:
  readable: [~/.cargo/bin]
  caches: [~/.cache/pip]
limits:
  runtime: 60s
  disk: 10G
network: loopback
"""
SCENARIOS = [
    ("", "pi sh true"),
    ("", "script -qec 'pi sh true' /dev/null"),
    ("", "timeout --foreground --preserve-status -s INT 6 pi sh 'trap \"exit 0\" INT; sleep 60 & wait'"),
    (MUCH, "pi sh true"),
    ("network: {hosts: [example.org]}\n", "pi sh true"),
    ("sandbox: {method: bwrap}\n", "pi sh true"),
    ("sandbox: {method: none}\n", "pi sh true"),
]


@pytest.fixture(scope="module")
def repository(playing):
    """What makes work for root: something to protect and to mask, a configuration to mirror and settings to merge, tools to show."""
    settings = "mv ~/.pi ~/.pi.kept; mkdir -p ~/.cargo/bin ~/.cache/pip ~/.pi/agent/skills; echo '{}' >~/.pi/agent/settings.json; touch ~/.pi/agent/skills/a.md"
    playing.run(f"git init -q; touch .env; {settings}", cwd=DEMO, check=True)
    yield
    playing.run("rm -rf .git .env ~/.cargo ~/.cache/pip ~/.pi && mv ~/.pi.kept ~/.pi", cwd=DEMO, check=True)


def test_the_runner_makes_the_listed_system_calls_and_no_other(playing, playing_policy, repository):
    seen = defaultdict(set)
    for section, command in SCENARIOS:
        playing_policy(PLAYING_POLICY + section)
        for call, lines in calls_of(playing, command).items():
            seen[call] |= lines
    page = PAGE.read_text()
    expected = {call for cells in ROW.findall(page) for call in NAME.findall(cells)}
    seldom = set(NAME.findall(page.split("Seldom")[1]))
    assert len(expected) > 90 and seldom, f"{PAGE} is not read as it is written"
    unlisted = {call: min(seen[call]) for call in seen.keys() - expected - seldom}
    assert not unlisted, f"say in {PAGE.name} what these are for, or do without them: {unlisted}"
    gone = sorted(expected - seen.keys())
    assert not gone, f"no session makes these any more: take them out of {PAGE.name}"

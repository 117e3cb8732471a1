"""What strace -f saw of the runner and its children as long as they were root."""

import re
from collections import defaultdict

RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
TRACE = "/root/trace"
CALL = re.compile(r"^(?P<pid>\d+) +(?:<\.\.\. (?P<resumed>\w+) resumed>|(?P<call>\w+)\()(?P<rest>.*)$")
RETURNED = re.compile(r"= (-?\d+)[^=]*$")
FORKS = {"clone", "clone3", "fork", "vfork"}
IDENTITIES = {"setuid", "setreuid", "setresuid"}


class Roots:
    """Follows a trace of strace -f: which processes are the runner's and still root, and what they call."""

    def __init__(self):
        self.made_calls = 0
        self.children = 0  # processes and threads
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
        self.made_calls += 1
        self.calls[call].add(shown)
        if call in FORKS and value and value > 0:
            child = str(value)
            self.children += 1
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


def traced(machine, command, cwd):
    """The Roots of a command of alice's."""
    done = machine.root(["strace", "-f", "-qq", "-s", "64", "-o", TRACE, "runuser", "-u", "alice", "--", "sh", "-c", command], cwd=cwd, timeout=120)
    roots = Roots()
    for line in machine.read(TRACE).decode(errors="replace").splitlines():
        roots.read(line)
    machine.root(["rm", TRACE], check=True)
    assert done.returncode == 0, done
    assert roots.calls, "strace has not seen the runner"
    return roots

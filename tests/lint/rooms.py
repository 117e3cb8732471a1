"""The rooms of the product as data: a folder says as whom its code runs, what that code may do, and who may include it."""

from dataclasses import dataclass
from functools import cache

# Who may include a room. A room below never includes one above, whatever is said here (floors.py).
NOBODY = "nobody"
ADMIN = "`admin/` above"
ROOT = "root's rooms above"
RUNNER = "`runner/` and `admin/` above"
WIRED = "`runner/`, `gate/` and `admin/` above"
CALLERS = "`wrapper/` and `admin/` above"
ALL = "all above"


@dataclass(frozen=True)
class Room:
    path: str  # of the folder, without the slash at its end
    whom: str  # the identity that its code runs with: "runs as ..."
    may: str  # what it may do with it, for the table
    why: str  # the reason, said with each finding
    included_by: str
    powers: tuple = ()  # dangerous things (rules.HOMES) that a file of it may do
    silent: bool = False  # makes no system call (rules.SYSTEM_CALLS)

    @property
    def is_root(self):
        """May hold an AsRoot, and include what is root's."""
        return self.path.split("/")[0] == "admin" or self.path == "runner" or self.path.startswith("runner/root/")


# From top to bottom, a floor a line of rooms that stand side by side. Includes run down only.
FLOORS = (
    (
        Room("runner", "root; the agent's account in `pi_agent_exec`, `pi_agent_canary` and `pi_agent_why`", "list the phases of a program, one file each; become a container engine",
             "a program is read from top to bottom, and its parts have rooms of their own", NOBODY, powers=("other programs",)),
        Room("wrapper", "the caller", "ask for a session; start a child that looks at what a session leaves",
             "whatever it does the caller could do without it, so nothing may depend on it", NOBODY, powers=("new processes", "other programs")),
        Room("fetch", "an account that exists for one fetch, without any right", "download from the registry; start tar and npm",
             "what comes from outside is parsed and unpacked by who can harm nobody", NOBODY, powers=("new processes", "libcurl", "libcrypto")),
        Room("gate", "an account that exists for one session, without any right, in the host's network", "look names up; connect where a rule says; answer at the session's own listeners; put providers' keys into requests",
             "what a session says is read, and judged, by who can reach nothing of the host but its network", NOBODY, powers=("libcrypto",)),
        Room("admin", "root, or the caller", "read the command line",
             "a program is read from top to bottom, and its parts have rooms of their own", NOBODY),
    ),
    (Room("admin/apply", "root", "change the host to what the policy says, and back",
          "what changes the host is read in one place", ADMIN),),
    (Room("admin/render", "root", "write a session down for Kubernetes; write YAML",
          "what is written for others is read by no one here", ADMIN, powers=("yaml-cpp",)),),
    (
        Room("admin/diagnose", "root, or the caller", "look at the host, the policy and a session's plan; change nothing",
          "a look that changes what it looks at is no look", ADMIN),
        Room("admin/undo", "the caller", "show what a session changed; take it back",
             "checkpoints and project are the user's own, and root has no business in either", ADMIN),
    ),
    (
        Room("admin/agents", "root", "start a fetch; copy what it left; switch from one version of an agent to another",
             "of what was fetched, root takes over files by descriptor, and no owner, mode or name that is not harmless", ADMIN),
        Room("admin/state", "root", "measure, hand out and remove what is kept for a user",
             "what an agent wrote is touched by a child that has become its account", ADMIN),
        Room("admin/sessions", "root, or the caller", "list and end sessions; keep new ones from starting; read the record; become `pi` for a shell",
             "an end is the runner's own; the tool only asks for it", ADMIN, powers=("other programs",)),
    ),
    (Room("admin/host", "root", "read and write the product's own files, accounts and sudo rule",
          "one file for each thing that is kept on the host", ADMIN, powers=("libcrypto",)),),
    (
        Room("admin/text", "root, or the caller", "ask at the terminal; format what is shown",
             "words and tables need no right", ADMIN),
        Room("admin/programs", "root, or the caller", "start programs of the host, also as a user",
             "a child needs its deadline, its limits and its closed descriptors", ADMIN, powers=("new processes",)),
    ),
    (
        Room("runner/root/launch", "root", "call the phases of a start, in their order",
             "a start is read from top to bottom, and its parts have rooms of their own", ROOT),
        Room("runner/root/own", "root", "look at sessions and what is kept; answer a user about their own",
             "who asks is whom root has authenticated, and nothing that the question says changes that", ROOT),
    ),
    (Room("runner/root/confined", "root, with seven capabilities", "watch, end and remove a session; give capabilities up",
          "it runs while the agent does, so it has what an end needs and no more", ROOT, powers=("capabilities",)),),
    (Room("runner/root/method", "root", "ask systemd for scope and unit; start bwrap and the container engines; make a session's own network lead to its gate",
          "each method of a sandbox is read by itself, and what a session's gate needs beside it", ROOT, powers=("sdbus-c++", "new processes", "other programs", "bpf(2)")),),
    (Room("runner/root/door", "root, in the caller's control group", "read root's own files, nothing shared",
          "the caller can freeze it there, so nothing shared may wait for it", ROOT),),
    (Room("runner/root/view", "root, with all capabilities", "build the tree that a session sees, with the mounts of `mount/`",
          "what the agent sees is made in one room", ROOT),),
    (Room("runner/root/kernel", "root", "ask the kernel; make, empty and remove control groups; change nothing else",
          "a question changes nothing, and who is in a control group is asked where groups are made", ROOT, powers=("bpf(2)",)),),
    (Room("runner/root/errand", "root", "send a child that becomes another account; use what it answers",
          "root touches nothing of others, and believes no answer that it has not checked", ROOT, powers=("new processes",)),),
    (Room("runner/root/session", "root", "make and lock the session's directories; write the record",
          "root alone can have written what later starts rely on", ROOT),),
    (Room("runner/root/mount", "root, with all capabilities", "mount; enter a namespace for one thread; clone for an id map",
          "a clone is made private and id-mapped before it is attached, and nobody attaches another way", ROOT,
          powers=("mounting", "mount(2)", "namespaces", "new processes")),),
    (Room("runner/as_user", "the caller", "open what the caller names; ask git",
          "a path of the caller's leads only where the caller may go", RUNNER, powers=("new processes", "other programs")),),
    (Room("runner/as_agent", "the agent's account, outside of the sandbox", "write the agent's home; run migration hooks; give directories the set-gid bit",
          "a trap in the agent's home catches the agent's account alone", RUNNER, powers=("new processes", "other programs")),),
    (Room("runner/inside", "the agent's account, in the sandbox", "confine itself further; become the agent; find out what its calls mean; try what is refused",
          "it lives with the agent, and can do nothing that the agent cannot", RUNNER,
          powers=("Landlock", "libseccomp", "namespaces", "new processes", "other programs")),),
    (Room("runner/plan", "nobody", "decide; no system call",
          "a decision follows from what it is given, so a unit test shows all of it", RUNNER, silent=True),),
    (Room("runner/wire", "nobody", "write and read what processes say to each other; no system call",
          "both ends hold the same bytes for the same thing, whoever they are", WIRED, silent=True),),
    (Room("runner/filter", "nobody; who installs a filter, for that", "make and install system-call filters; no other system call",
          "a filter is one list that can be read in one place", WIRED, powers=("libseccomp",), silent=True),),
    (Room("common/ask", "the caller", "start sudo with the runner; ask it, and read its answer",
          "what starts a session and what asks about one reach root by the same door", CALLERS, powers=("new processes", "other programs")),),
    (Room("common/undo", "the caller", "keep what a session may change; compare with it; put it back",
          "child of `pi` and `pi-agentctl` read the same checkpoints, and never as root", CALLERS),),
    (Room("common/record", "whoever calls it", "write to the journal",
          "what is recorded has one form", ALL),),
    (Room("common/as_user", "the caller", "open roots and paths",
          "wrapper, runner and pi-agentctl open with the same code, and never as root", ALL),),
    (Room("common/decide", "whoever calls it", "say what the policy grants",
          "wrapper and runner decide with the same code", ALL),),
    (Room("common/policy", "whoever calls it", "read the policy's files into types",
          "a policy that could be read two ways grants what nobody wrote", ALL),),
    (Room("common/agents", "whoever calls it", "read what a registry and npm's configuration say; write a fetch's order",
          "who fetches and who installs mean the same by each word", ALL),),
    (Room("common/policy/yaml", "whoever calls it", "parse YAML",
          "yaml-cpp is lenient about duplicate keys and types; one room makes it strict", ALL, powers=("yaml-cpp",)),),
    (Room("common/host", "whoever calls it", "ask about accounts and paths; become another account",
          "becoming an account checks every id and tries to regain root; nobody does half of it", ALL,
          powers=("changing identity", "capabilities")),),
    (Room("common/base", "whoever calls it", "use what it is handed: descriptors, packets, text",
          "it knows no policy, no account and no session", ALL),),
    (Room("common/seams", "whoever calls it", "stop at a named point, leave a named defence out: in builds for tests alone",
          "what attacks are tried on is what is installed", ALL),),
)

ROOMS = tuple(room for floor in FLOORS for room in floor)

# Programs of runner/ that are never root: they include nothing of root's.
PROGRAMS_WITHOUT_ROOT = ("runner/pi_agent_exec.cpp", "runner/pi_agent_canary.cpp", "runner/pi_agent_why.cpp")
# The one room below root's own that names the type AsRoot, because it makes it.
HOME_OF_AS_ROOT = "common/host"

PAGE = "docs/architecture.md"
HEADING = "## Rooms"
COLUMNS = ("room", "as whom", "may", "included by")


@cache
def rooms_by_path():
    return {room.path: room for room in ROOMS}


@cache
def floor_of(path):
    """The floor of a room, counted from the ground."""
    return next(len(FLOORS) - 1 - index for index, floor in enumerate(FLOORS) if any(room.path == path for room in floor))


def room_of(file_path):
    """The room of a source file, or none: what lies in no room of the table is in none above it either."""
    return rooms_by_path().get(file_path.rpartition("/")[0])


def is_root(file_path):
    """Whether this file may hold what is root's."""
    room = room_of(file_path)
    return bool(room) and room.is_root and file_path not in PROGRAMS_WITHOUT_ROOT


def row_of(room):
    return (f"`{room.path}/`", room.whom, room.may, room.included_by)


def table():
    """The lines of the page's table."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(row_of(room) for room in ROOMS)]
    return ["| " + " | ".join(line) + " |" for line in lines]

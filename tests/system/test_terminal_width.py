"""What people read fits a terminal of 80 columns, wrapped between words, and is coloured there; a pipe gets every byte as it always did."""

import re
import tomllib

import pytest
from cache import SOURCE
from launching import DEMO, STANDARD_POLICY, pi, written_policy
from shells import Shell

COLUMNS = 80
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
COMMANDS = [row["name"] for row in tomllib.loads((SOURCE / "admin/commands.toml").read_text())["command"]]
# Each with words enough for more than a line: who types it, and what.
READ = {
    "pi --pi-agent-help": "alice",
    "pi --pi-agent-network=everything": "alice",
    "pi --pi-agent-nonsense": "alice",
    "pi-agentctl help": "alice",
    "pi-agentctl --help-all": "alice",
    "pi-agentctl explain --all": "alice",
    "pi-agentctl explain E77-root": "alice",
    "pi-agentctl explain limits.memory": "alice",
    "pi-agentctl explain sudo-rule": "alice",
    "pi-agentctl why README.md .git/config /etc/shadow example.com:443": "alice",
    "pi-agentctl denials --nonsense": "alice",
    "pi-agentctl apply": "alice",
    "pi-agentctl check": "root",
    "pi-agentctl apply --dry-run": "root",
    "pi-agentctl rollback --dry-run": "root",
    "pi-agentctl remove --dry-run": "root",
    "pi-agentctl set limits.memory 8Q": "root",
    "pi-agentctl stop": "root",
    "pi-agentctl --version": "root",
    "pi-agentctl user prune --dry-run": "root",
    "pi-agentctl init --user alice --user bob --output /dev/full --yes": "root",
}
READ |= {f"pi-agentctl help {name}": "alice" for name in COMMANDS if " " not in name}
READ |= {f"pi-agentctl {name} --help": "alice" for name in COMMANDS if " " in name}
TABLES = ("sessions", "history", "denials", "state", "agent list")
FOR_PROGRAMS = ("check --json", "explain --user alice --json", "show --user alice --json", "show network", "history --json", "apply --show-rule", "metrics")
# Long in every way: words, names and lines of a file under which a caret stands.
UNFIT = STANDARD_POLICY + "limits: {memory: 4096G, cpu: 12345}  # " + "x" * 90 + "\nbox_note: true\nview_paths: [/srv/no/such/directory/of/this/host, /etc/nothing]\n"


@pytest.fixture
def terminals(machine):
    """Of both users."""
    with Shell(machine, cwd=DEMO) as alice, Shell(machine, user="root", cwd="/") as root:
        yield {"alice": alice, "root": root}


def shown(shell, command):
    return shell.run(command, seconds=40)[0].replace(b"\r\n", b"\n").replace(b"\r", b"")


def whole(machine, command, user):
    """The same into a pipe."""
    done = machine.run(["sh", "-c", f"{command} 2>&1"], user=user, cwd=DEMO if user == "alice" else "/")
    return done.stdout


def plain(text):
    return COLOUR.sub(b"", text).decode()


def too_wide(text):
    """Lines that the terminal would break, but for a word that is as long by itself and for the line of a file, which is cut."""
    return [line for line in plain(text).splitlines() if len(line) > COLUMNS and len(line.split()) > 1 and not re.match(r" *\d* +\| ", line)]


def words(text):
    return [word for word in re.sub(r"\d+\.\d+s|\d{2}:\d{2}:\d{2}|[0-9a-f]{32}|\d+", "N", plain(text)).split() if word != "#"]


def test_every_command_is_wrapped_between_words_and_says_the_same_as_into_a_pipe(machine, terminals):
    wide = {}
    for command, user in READ.items():
        seen, piped = shown(terminals[user], command), whole(machine, command, user)
        assert too_wide(seen) == [], command
        assert words(seen) == words(piped), command
        assert COLOUR.search(piped) is None, command
        wide[command] = any(len(line) > COLUMNS for line in piped.decode().splitlines())
    assert sum(wide.values()) > len(wide) / 3, wide  # otherwise nothing had to be wrapped


def test_mistakes_of_a_policy_are_wrapped_and_the_caret_stays_under_its_column(machine, terminals):
    with written_policy(machine, UNFIT):
        seen, piped = shown(terminals["root"], "pi-agentctl check"), whole(machine, "pi-agentctl check", "root")
    assert too_wide(seen) == [] and words(seen) == words(piped), seen
    carets = [line for line in piped.decode().splitlines() if line.lstrip(" |").startswith("^")]
    assert carets and carets == [line for line in plain(seen).splitlines() if line.lstrip(" |").startswith("^")], (seen, piped)
    assert b"\x1b[1;31mpi-agentctl:\x1b[0m " in seen, seen


def test_explain_fits_on_a_screen_and_a_pipe_gets_all_of_it(machine, terminals):
    everything = plain(shown(terminals["alice"], "pi-agentctl explain --all")).splitlines()
    for command in ("pi --pi-agent-explain", "pi-agentctl explain"):
        seen, piped = plain(shown(terminals["alice"], command)).splitlines(), whole(machine, command, "alice").decode()
        assert len(seen) < 24 < len(everything) and any(line.startswith("more: ") for line in seen), seen
        assert "user:     alice" in seen[0] and any("allowed: " in line for line in seen) and any(line.startswith("network:  ") for line in seen), seen
        assert "\nscratch:  " in piped and "more: " not in piped and words("\n".join(everything).encode()) == words(piped.encode()), piped


def test_tables_fit(machine, terminals):
    pi(machine, "-p", "hello")
    for command in TABLES:
        for line in plain(shown(terminals["root"], f"pi-agentctl {command}")).splitlines():
            assert len(line) <= COLUMNS, (command, line)


def test_what_is_for_programs_stays_as_it_is_on_a_terminal(machine, terminals):
    for command in FOR_PROGRAMS:
        seen, piped = shown(terminals["root"], f"pi-agentctl {command}"), whole(machine, f"pi-agentctl {command}", "root")
        normal = [re.sub(rb"\d+", b"N", text) for text in (seen, piped)]
        assert normal[0] == normal[1], command


def test_colours_are_for_terminals_that_want_them(machine, terminals):
    failing, good = "pi --pi-agent-nonsense", "pi-agentctl check"
    assert b"\x1b[1;31mpi:\x1b[0m unknown option" in shown(terminals["alice"], failing)
    assert b"\x1b[32mpolicy is valid\x1b[0m" in shown(terminals["root"], good)
    for prefix in ("NO_COLOR=1", "TERM=dumb"):
        for user, command in (("alice", failing), ("root", good)):
            seen = shown(terminals[user], f"{prefix} {command}")
            assert COLOUR.search(seen) is None and seen, (prefix, seen)
    assert COLOUR.search(shown(terminals["alice"], f"NO_COLOR= {failing}"))  # empty is not set (no-color.org)


def test_the_notices_of_a_start_are_wrapped(machine, policy, terminals):
    policy(STANDARD_POLICY + "network: none\n")
    seen = shown(terminals["alice"], "pi --pi-agent-debug -p hello; pi --pi-agent-shell -c 'exit 3'")
    told = [line for line in plain(seen).splitlines() if line.startswith(("pi: ", "  "))]
    assert told and all(len(line) <= COLUMNS or len(line.split()) <= 2 for line in told), seen

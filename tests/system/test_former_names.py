"""Former names of pi-agentctl's commands: each does what the new one does, and standard error says so in one line."""

import json
import pathlib
import tomllib

import pytest
from launching import DEMO, STANDARD_POLICY, pi

TABLE = pathlib.Path(__file__).resolve().parents[2] / "admin/commands.toml"
FORMER = tomllib.loads(TABLE.read_text())["former"]
# What is asked, beside --help: nothing of it changes the host.
ASKED = {
    "get": [["users.alice.roots"], ["network", "--json"], ["nonsense"]],
    "schema": [[], ["--quiet"]],
    "sudoers": [[], ["-q"]],
    "prune": [["--dry-run"], ["-n", "--json"], []],
    "install-agent": [["nonsense"], ["pi@1.0"]],
    "logs": [["SESSION"], ["nonsense"], ["-f", "SESSION"]],
    "version": [[], ["--json"]],
}


@pytest.fixture(scope="module")
def session(machine):
    """The id of a session that is over."""
    machine.install_policy(STANDARD_POLICY)
    pi(machine, "sh", "true")
    starts = json.loads(machine.root(["pi-agentctl", "history", "--user", "alice", "--json"], check=True).stdout)["starts"]
    return [start["id"] for start in starts if start["state"] == "ended"][-1]


@pytest.mark.parametrize("row", FORMER, ids=[row["name"] for row in FORMER])
@pytest.mark.parametrize("user", ["root", "alice"])
def test_a_former_name_does_what_the_new_one_does(machine, session, row, user):
    line = f"pi-agentctl: '{row['name']}' is now '{row['told']}'\n".encode()
    for words in [["--help"], *ASKED[row["name"]]]:
        asked = [session if word == "SESSION" else word for word in words]
        old, new = (machine.run(["pi-agentctl", *command, *asked], user=user, cwd=DEMO) for command in ([row["name"]], row["now"].split()))
        assert (old.returncode, old.stdout) == (new.returncode, new.stdout), (old, new)
        assert old.stderr == line + new.stderr, (old, new)

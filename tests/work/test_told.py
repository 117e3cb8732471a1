"""What differs is known to who works inside: /AGENTS.md has a line for each of docs/reference/differences.md that says `told`, and explain names what no policy changes."""

from case import Case
from families import DIFFERENCES
from launching import pi
from reasons import ACCESS_LISTS
from sides import PLACE


def test_the_agent_is_told_of_each_difference(sides):
    sides.prepare(Case("", "", "git init -q; touch file; setfacl -m u:bob:r file; mkdir -p ~/.nvm/versions"))
    notes = " ".join(pi(sides.machine, "sh", "cat /AGENTS.md", cwd=PLACE).stdout.decode().split())
    differences = DIFFERENCES
    if sides.machine.recipe != "bookworm":  # systemd 257 gives a session the others' numbers, so nothing is to be told
        differences = differences - {ACCESS_LISTS}
    assert differences and not [difference.what for difference in differences if difference.told not in notes], notes


def test_explain_names_what_no_policy_changes(sides):
    done = sides.machine.run(["pi-agentctl", "explain"], cwd=PLACE)
    assert b"\ndiffers:  set-id files, other owners" in done.stdout and b"differences.md" in done.stdout, done

"""A repository whose references are a reftable has no placeholder for `commondir`: what an agent makes there is gone when its session ends."""

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("agent")

PLACE = f"{DEMO}/tables"
# As git 2.45 and newer says it; the machine's git need not know it.
CONFIG = "[core]\\n\\trepositoryformatversion = 1\\n[extensions]\\n\\trefStorage = reftable\\n"
PLANTS = {
    "a file": "mkdir -p evil/hooks; echo ../evil >.git/commondir",
    "a link": "mkdir -p evil; ln -s ../evil/commondir .git/commondir",
    "a directory": "mkdir .git/commondir",
}


@pytest.mark.parametrize("what", PLANTS)
def test_a_commondir_that_an_agent_makes_is_set_aside_before_pi_ends(what, prove):
    def attack(target):
        target.machine.run(f"rm -rf {PLACE}; git init -q {PLACE}; printf '{CONFIG}' >{PLACE}/.git/config", check=True)
        done = target.pi("sh", "-ec", PLANTS[what], cwd=PLACE)
        assert done.returncode == 0 and b"commondir" in done.stderr, done
        left = target.machine.run("ls -d .git/commondir*", cwd=PLACE).stdout.decode().split()
        target.machine.run(["rm", "-rf", PLACE], check=True)
        return Outcome(".git/commondir" in left, left)

    on, _ = prove(attack, "commondir-aside")
    assert len(on.seen) == 1 and ".kept-" in on.seen[0], on


def test_the_config_that_says_so_is_protected_as_in_any_repository(product, control_seen):
    product.machine.run(f"git init -q {PLACE}", check=True)
    try:
        done = product.pi("sh", "-c", f"printf '{CONFIG}' >.git/config; echo ../x >.git/commondir", cwd=PLACE)
        assert b"Read-only" in done.stderr, done
        assert product.machine.read(f"{PLACE}/.git/config").count("reftable") == 0
    finally:
        product.machine.run(["rm", "-rf", PLACE], check=True)
    control_seen("outside the same two writes work")

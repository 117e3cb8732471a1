"""Submodules and worktrees are protected in the session's own mount table alone, where a thousand of them cost systemd nothing. What goes on outside does not uncover them inside."""

import pytest
from repositories import PLACE, WAIT, after_anothers_end, planting, repository
from target import Outcome

pytestmark = pytest.mark.position("agent")

RUN = f"{PLACE}/program"
MODULE = ".git/modules/library"
FSMONITOR = f"echo '[core] fsmonitor = {RUN}' >>{MODULE}/config"


@pytest.mark.parametrize("script", [FSMONITOR, f"cp program {MODULE}/hooks/pre-commit; cp program {MODULE}/hooks/post-commit"])
def test_what_git_runs_of_a_submodule_is_not_changed(script, prove):
    prove(planting(script), "protect-inner", quick=True)


@pytest.mark.position("user")
@pytest.mark.parametrize("outside", ["git -C library config a.b c", f"cp {MODULE}/config new && mv -f new {MODULE}/config"])
def test_the_user_does_not_uncover_the_settings_of_a_submodule(outside, prove):
    """They replace the file by renaming: during a session that fails, instead of uncovering it inside."""

    def attack(target):
        with repository(target):
            session = target.session("sh", "-c", f"{WAIT}; {FSMONITOR}; sleep 60", cwd=PLACE)
            done = target.machine.run(f"{outside}; true", cwd=PLACE)
            target.machine.run("touch go; sleep 0.5", cwd=PLACE, check=True)
            config = target.machine.read(f"{PLACE}/{MODULE}/config")
            session.end()
        return Outcome(b"fsmonitor" in config, done)

    on, _ = prove(attack, "protect-inner-held", quick=True)
    assert b"Device or resource busy" in on.seen.stderr, on


def test_the_end_of_one_session_does_not_uncover_a_submodule_in_another(prove):
    """What stands for missing paths is mounted over in the other's own table alone, so that nothing but the record keeps it."""

    def attack(target):
        plant = f"cp -r {MODULE} copied; rm -f {MODULE}/commondir; echo {PLACE}/copied >{MODULE}/commondir"
        with repository(target):
            with after_anothers_end(target, plant):
                text = target.machine.run(["cat", f"{MODULE}/commondir"], cwd=PLACE).stdout
            gone = target.machine.root(f"for i in $(seq 100); do test -e {PLACE}/{MODULE}/commondir || exit 0; sleep 0.05; done; exit 1").returncode == 0
            return Outcome(b"copied" in text, (text, gone))

    on, _ = prove(attack, "placeholder-records", quick=True)
    assert on.seen[1], "what stood for a missing path is left"


def test_what_is_above_an_inner_repository_stays_where_it_is(prove):
    """Renamed away, and another put there."""
    script = f"cd .git/modules && mv library aside && cp -r aside library && rm -f library/config && (cat aside/config; echo '[core] fsmonitor = {RUN}') >library/config"

    def attack(target):
        try:
            return planting(script)(target)
        finally:
            target.machine.root("rm -rf /home/alice/projects/aside", check=True)

    prove(attack, "protect-inner", quick=True)

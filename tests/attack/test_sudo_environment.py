"""Variables that a site's sudoers keeps for everybody: the loader obeys them in a program that sudo runs as root, unless our rule forbids them."""

import pytest

pytestmark = pytest.mark.position("user")

SITE = "/etc/sudoers.d/aa-site"
RULE = "/etc/sudoers.d/pi-agent"
RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"


def load_with(machine, assignment):
    """The runner's loader as root under a variable of the caller's; it ends there, for it gets no socket."""
    return machine.run(["sudo", "-n", assignment, RUNNER], user="alice", cwd="/")


def prove_kept_out(machine, keep, line, weaker):
    """A site keeps the loader's variables: with our rule as it is the loader does not get them, with `weaker` in the place of `line` it does."""
    machine.write(SITE, f'Defaults {keep} += "LD_DEBUG LD_PRELOAD LD_LIBRARY_PATH"\n', mode=0o440)
    before = machine.read(RULE).decode()
    assert line in before
    try:
        refused = load_with(machine, "LD_DEBUG=libs")
        machine.write(RULE, before.replace(line, weaker), mode=0o440)
        obeyed = load_with(machine, "LD_DEBUG=libs")
    finally:
        machine.write(RULE, before, mode=0o440)
        machine.root(["rm", SITE], check=True)
    assert b"find library=" in obeyed.stderr, obeyed  # without the defence
    assert b"find library=" not in refused.stderr and b"not allowed to set the following environment variables: LD_DEBUG" in refused.stderr, refused
    assert refused.returncode != 0


@pytest.mark.parametrize("keep", ["env_keep", "env_check"])
def test_a_variable_that_the_site_keeps_does_not_reach_the_runner(machine, policy, keep):
    prove_kept_out(machine, keep, " !env_keep, !env_check,", "")


@pytest.mark.parametrize("keep", ["env_keep", "env_check"])
def test_nor_through_sudo_rs(sudo_rs, keep):
    """sudo-rs leaves a line out that has one word it does not know: the one that it is given has none."""
    line = "env_reset, !env_keep, !env_check, !use_pty"
    prove_kept_out(sudo_rs, keep, line, line + ", !requiretty")

"""Variables that a site's sudoers keeps for everybody: the loader obeys them in a program that sudo runs as root, unless our rule forbids them."""

import pytest

pytestmark = pytest.mark.position("user")

SITE = "/etc/sudoers.d/aa-site"
RULE = "/etc/sudoers.d/pi-agent"
RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"


def load_with(machine, assignment):
    """The runner's loader as root under a variable of the caller's; it ends there, for it gets no socket."""
    return machine.run(["sudo", "-n", assignment, RUNNER], user="alice", cwd="/")


def prove_kept_out(machine, keep, line, weaker, seen_to_work):
    """A site keeps the loader's variables: with our rule unchanged the loader does not get them, with `weaker` instead of `line` it does."""
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
    seen_to_work(["`!env_keep, !env_check` of the sudoers rule"])


@pytest.mark.parametrize("keep", ["env_keep", "env_check"])
def test_a_variable_that_the_site_keeps_does_not_reach_the_runner(machine, policy, keep, seen_to_work):
    prove_kept_out(machine, keep, " !env_keep, !env_check,", "", seen_to_work)


@pytest.mark.parametrize("keep", ["env_keep", "env_check"])
def test_nor_through_sudo_rs(sudo_rs, keep, seen_to_work):
    """sudo-rs ignores a line with a word that it does not know: its line has no such word."""
    line = "env_reset, !env_keep, !env_check, !use_pty"
    prove_kept_out(sudo_rs, keep, line, line + ", !requiretty", seen_to_work)

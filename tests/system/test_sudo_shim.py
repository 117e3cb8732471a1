"""The agent's sudo (rows B11 to B19): a shim on PATH and over the host's own, which the agent cannot change."""

import pytest
from launching import pi

pytestmark = pytest.mark.usefixtures("playing")
SHIM = "/usr/libexec/pi-agent/shims/sudo"
AGENT = "pi-agent-alice"
DISPATCH = f"# rootless: sudo is a no-op shim; running as {AGENT}\n"


def inside(machine, script):
    """Status, output and messages of a script that the agent runs."""
    done = pi(machine, "sh", script)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("sudo", ["sudo", "/usr/bin/sudo", "/bin/sudo", SHIM])
def test_it_runs_the_command_as_the_agent_wherever_it_is_called(machine, sudo):
    assert inside(machine, f"{sudo} id -un; {sudo} -nE WORD='a b' sh -c 'echo \"$WORD\"; exit 3'") == (3, f"{AGENT}\na b\n", 2 * DISPATCH)
    assert inside(machine, f"cmp {SHIM} \"$(type -P {sudo})\"") == (0, "", "")


def test_it_is_the_first_of_the_systems_part_of_the_path(machine):
    _, out, _ = inside(machine, 'type -P sudo; echo "$PATH"')
    found, path = out.splitlines()
    home, rest = path.split(f":{SHIM.rsplit('/', 1)[0]}:")
    assert found == SHIM
    assert all(directory.startswith("/var/lib/pi-agent/users/alice/home/") for directory in home.split(":"))
    assert "/usr/bin" in rest.split(":")


@pytest.mark.parametrize("sudo", ["sudo", "/usr/bin/sudo"])
@pytest.mark.parametrize("option, what", [("-u root", "user switching"), ("-g root", "group switching"), ("-i", "interactive shells"), ("-ns", "interactive shells")])
def test_what_it_cannot_do_it_refuses(machine, sudo, option, what):
    assert inside(machine, f"{sudo} {option} id") == (1, "", f"sudo: {what} not supported in rootless mode\n")


def test_a_missing_command_is_reported_as_a_shell_would(machine):
    assert inside(machine, "sudo no-such-command") == (127, "", "sudo: no-such-command: command not found\n")
    assert inside(machine, "sudo /etc/passwd") == (126, "", "sudo: /etc/passwd: Permission denied\n")


CHANGES = ["echo x >>P", "echo x >P", "rm -f P", "mv P P.old", "mv /bin/true P", "ln -sf /bin/true P", "chmod 700 P", "touch P", "umount P",
           "truncate -s 0 P", "rm -rf $(dirname P)", "mv $(dirname P) /tmp/away"]  # fmt: skip


@pytest.mark.parametrize("path", [SHIM, "/usr/bin/sudo"])
def test_the_agent_can_change_neither(machine, path):
    before = machine.root(["sha256sum", SHIM, "/usr/bin/sudo"], check=True).stdout
    script = "".join(f"({change.replace('P', path)}) >/dev/null 2>&1 && echo '{change}'\n" for change in CHANGES if "$(dirname" not in change or path == SHIM)
    assert inside(machine, f"{script} {path} id -un") == (0, f"{AGENT}\n", DISPATCH)
    assert machine.root(["sha256sum", SHIM, "/usr/bin/sudo"], check=True).stdout == before


def test_the_hosts_own_stays_what_it_is(machine):
    status, out, _ = inside(machine, "stat -c '%A %U' /usr/bin/sudo; grep -c ' /usr/bin/sudo ro' /proc/self/mountinfo")
    assert (status, out) == (0, "-rwxr-xr-x root\n1\n")
    assert machine.root("stat -c %a /usr/bin/sudo; grep -c /usr/bin/sudo /proc/self/mountinfo").stdout == b"4755\n0\n"


def test_where_sudo_is_a_link_the_shim_lies_over_what_it_leads_to(machine):
    machine.root("mv /usr/bin/sudo /usr/bin/sudo.real && ln -s sudo.real /usr/bin/sudo", check=True)
    try:
        assert inside(machine, "/usr/bin/sudo id -un; /usr/bin/sudo.real id -un") == (0, f"{AGENT}\n{AGENT}\n", 2 * DISPATCH)
    finally:
        machine.root("mv /usr/bin/sudo.real /usr/bin/sudo", check=True)

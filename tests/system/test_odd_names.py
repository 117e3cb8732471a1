"""Directory names and arguments that some program on the way could take for something else."""

import os

import pytest
from launching import DEMO, agent_says, finish, owner_and_mode, pi, session, wait_until_empty

PWNED = "/root/pwned"
ODD = [
    b"with space",
    b"trailing space ",
    b" leading space",
    b"single'quote",
    b'double"quote',
    b"percent %n %h %% %i",
    b"$HOME",
    b"${X}",
    b"$(touch " + PWNED.encode()[1:].replace(b"/", b"_") + b")",
    b"`id`",
    b"a:b:c",
    b"back\\slash",
    b"back\\x41slash\\",
    b"new\nline",
    b"trailing newline\n",
    b"x\nExecStopPost=+\\x2fbin\\x2ftouch\\x20\\x2froot\\x2fpwned",
    b"x\nExecStartPre=+touch pwned\n[Service]\nUser=root\n",
    b"tab\tand\rreturn",
    b"\x1b[31mred\x07",
    b"not UTF-8 \xff\xfe\x80",
    "übung 日本 \u202e".encode(),
    b"-rf",
    b"--",
    b"--pi-agent-debug",
    b"#comment ; rm -rf ~ & | < > * ? [a] {b,c} !",
    b"=",
    b"+/bin/sh",
    b"() { :;}; echo pwned",
    b"n" * 255,
]


pytestmark = pytest.mark.usefixtures("playing")


def ids(names):
    return [repr(name)[2:40] for name in names]


@pytest.mark.parametrize("name", ODD, ids=ids(ODD))
def test_a_directory_with_an_odd_name_works_even_when_systemd_reloads_and_means_nothing_to_anyone(machine, name):
    directory = f"{DEMO}/odd/".encode() + name
    machine.run([b"mkdir", b"-p", b"--", directory], check=True)
    script = 'echo ready; cat >/dev/null; touch made; printf "%s" "$PWD"; stat --format=%d:%i . >&2; id -un >&2'
    with session(machine, "sh", script, cwd=directory) as running:
        machine.root(["systemctl", "daemon-reload"], check=True)
        units = machine.root("systemctl show 'pi-agent-*.service'; cat /run/systemd/transient/pi-agent-*", check=True).stdout
        status, out, err = finish(running)
    assert status == 0, err
    assert out == directory
    assert err.split()[-1] == b"pi-agent-alice", "and no message of pi's own: " + repr(err)
    inode = machine.root([b"stat", b"--format=%i", b"--", directory], check=True).stdout.strip()
    assert err.split()[0].endswith(b":" + inode)
    assert owner_and_mode(machine, directory + b"/made") == "alice:alice 644"
    # Long enough to be nothing else: neither the name nor a part of it is in a unit.
    assert DEMO.encode() not in units and b"/odd" not in units and b"pwned" not in units
    assert b"User=" in units
    assert machine.root(["test", "-e", PWNED]).returncode == 1
    machine.run(["rm", "-r", f"{DEMO}/odd"], check=True)


def test_the_unit_with_the_name_of_a_file_to_run_would_have_run_it_if_the_name_had_reached_it(machine):
    """What the test above relies on: a line like the one in the name runs as root at the end of a unit."""
    unit = "/run/systemd/transient/probe-of-tests.service"
    probe = machine.popen(["systemd-run", "--quiet", "--unit=probe-of-tests", "--wait", "--collect", "sleep", "1000"], user="root")
    try:
        wait_until_empty(lambda: machine.root(["test", "-e", unit]).returncode != 0)
        machine.root(f"printf '[Service]\\nExecStopPost=+/bin/touch {PWNED}\\n' >>{unit}; systemctl daemon-reload", check=True)
        machine.root(["systemctl", "stop", "probe-of-tests"], check=True)
        assert machine.root(["rm", PWNED]).returncode == 0
    finally:
        probe.kill_all()
        finish(probe)


def arguments_inside(machine, arguments):
    return agent_says(machine, b"arguments", *arguments).split(b"\0")[:-1]


def test_arguments_of_every_form_reach_the_agent_exactly(machine):
    arguments = [*ODD, b"", b" ", b"\n", b"%n", b"%%", b"$", b"$$", b"${HOME}", b"@", b"-", b"-p", b"--help", b"--version", b"", b"\xff"]
    assert arguments_inside(machine, arguments) == arguments


def test_an_own_option_after_an_argument_belongs_to_the_agent(machine):
    arguments = [b"--pi-agent-help", b"--", b"--pi-agent-explain", b"--pi-agent-nonsense"]
    assert arguments_inside(machine, arguments) == arguments


def test_every_byte_but_nul_passes_in_an_argument(machine):
    every = [bytes([byte]) for byte in range(1, 256)]
    assert arguments_inside(machine, every) == every
    assert arguments_inside(machine, [b"".join(every)]) == [b"".join(every)]


def test_large_and_many_arguments_pass(machine):
    large = os.urandom(60_000).hex().encode()
    many = [str(number).encode() for number in range(100_000)]
    assert arguments_inside(machine, [large, large, large]) == [large] * 3
    assert arguments_inside(machine, many) == many


def test_own_options_come_first_and_are_taken_away(machine):
    done = pi(machine, "--pi-agent-debug", "arguments", "--pi-agent-debug", "x")
    assert (done.returncode, done.stdout) == (0, b"--pi-agent-debug\0x\0"), done
    assert done.stderr.startswith(f"pi: allowed: {DEMO} is in the root /home/alice/projects (users.alice, ".encode()), done


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--pi-agent-nonsense", "unknown option --pi-agent-nonsense; see: pi --pi-agent-help"),
        ("--pi-agent-", "unknown option --pi-agent-;"),
        ("--pi-agent-help=1", "unknown option --pi-agent-help=1;"),
        ("--pi-agent-tmpdir=", "--pi-agent-tmpdir needs a directory"),
        (b"--pi-agent-\x1b\n\xff", r"unknown option --pi-agent-\x1b\x0a\xff;"),
    ],
)
def test_an_unknown_own_option_is_a_usage_error(machine, option, words):
    done = pi(machine, option, "sh", "echo ran")
    assert (done.returncode, done.stdout) == (64, b""), done
    assert done.stderr.startswith(f"pi: {words}".encode()), done


def test_help_is_printed_even_where_nothing_else_is_allowed(machine):
    done = pi(machine, "--pi-agent-help", user="eve", cwd="/tmp")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert b"--pi-agent-explain" in done.stdout


def test_an_odd_name_in_what_the_launcher_says_is_escaped_once(machine):
    """The user may pass a directory of their group's; the agent, who is not in it, may not."""
    directory = f"{DEMO}/odd\nname"
    script = 'mkdir -p "$1/below" && chown root:devs "$1" && chmod 0750 "$1"'
    machine.root(["sh", "-c", script, "sh", directory], check=True)
    done = pi(machine, "sh", "echo ran", cwd=f"{directory}/below")
    machine.root(["rm", "-r", directory], check=True)
    assert done.returncode != 0 and done.stdout == b"", done
    said = done.stderr.decode()
    assert "opening the working directory demo/odd\\x0aname/below in /home/alice/projects: Permission denied" in said, said

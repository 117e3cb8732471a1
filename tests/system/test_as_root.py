"""./try, ./check and ./package as README has them typed: by root where no sudo is, by a user who has it, and by one who has none."""

import pytest
from cache import SOURCE

PROGRAMS = ("try", "check", "package")
CHECKOUT = "/home/eve/checkout"
SETTINGS = {"PI_AGENT_SEED": "7 a", "PI_AGENT_SAMPLE": "0.5", "PI_AGENT_TEST_CACHE": "/srv/cache"}
# In the place of what comes after the first lines: says as whom the program came here, and ends it.
REACHED = '#!/bin/sh\necho "reached by $(id -u) $PI_AGENT_SEED,$PI_AGENT_SAMPLE,$PI_AGENT_TEST_CACHE" >&2\nexit 5\n'
REACHED_BY_ROOT = b"reached by 0 7 a,0.5,/srv/cache\n"
PROGRAMS_BUT_SUDO = f"{CHECKOUT}/bin"


@pytest.fixture(scope="module")
def checkout(machine):
    """Of eve's own, as far as it is run before anything is installed."""
    for file in (*PROGRAMS, "tests/machine/as-root"):
        machine.write(f"{CHECKOUT}/{file}", (SOURCE / file).read_text(), mode=(SOURCE / file).stat().st_mode & 0o777)
    machine.write(f"{CHECKOUT}/tests/machine/can-boot", "#!/bin/sh\n", mode=0o755)
    machine.write(f"{CHECKOUT}/tests/machine/install-host-packages", REACHED, mode=0o755)
    machine.root(f"mkdir {PROGRAMS_BUT_SUDO} && ln -s /usr/bin/* {PROGRAMS_BUT_SUDO}/ && rm {PROGRAMS_BUT_SUDO}/sudo", check=True)
    machine.root(f"chmod 755 /home/eve && chown -hR eve: {CHECKOUT}", check=True)
    machine.write("/etc/sudoers.d/eve", "eve ALL=(ALL:ALL) NOPASSWD: ALL\n", mode=0o440)
    yield machine
    machine.root(f"rm -r {CHECKOUT} /etc/sudoers.d/eve; chmod 700 /home/eve", check=True)


def without_sudo(machine, user, program):
    return machine.run([f"./{program}"], user=user, cwd=CHECKOUT, env={**SETTINGS, "PATH": PROGRAMS_BUT_SUDO})


@pytest.mark.parametrize("program", PROGRAMS)
def test_root_needs_no_sudo(checkout, program):
    done = without_sudo(checkout, "root", program)
    assert done.returncode != 0 and done.stderr == REACHED_BY_ROOT, done


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_user_with_sudo_becomes_root_and_keeps_the_variables_of_the_tests(checkout, program):
    done = checkout.run([f"./{program}"], user="eve", cwd=CHECKOUT, env={**SETTINGS, "OTHER": "x"})
    assert done.returncode != 0 and done.stderr == REACHED_BY_ROOT, done


@pytest.mark.parametrize("program", PROGRAMS)
def test_who_has_no_sudo_is_told_what_to_do(checkout, program):
    done = without_sudo(checkout, "alice", program)
    assert (done.returncode, done.stdout) == (1, b""), done
    said = done.stderr.decode()
    assert said.startswith(f"{program}: only root can ") and f"no sudo. Become root (su -), and run {CHECKOUT}/{program} again" in said, said


@pytest.mark.parametrize("program", PROGRAMS)
def test_whom_sudo_refuses_reads_the_words_of_sudo(checkout, program):
    done = checkout.run([f"./{program}"], user="bob", cwd=CHECKOUT)
    assert done.returncode == 1 and b"sudo: " in done.stderr and b"reached" not in done.stderr, done

"""A group of 6,000: apply makes their accounts in one go, for nobody whom the host does not know, and no command becomes slow by them."""

import pytest
from administering import ctl, said
from launching import STANDARD_POLICY, pi

FILES = "passwd shadow group gshadow subuid"
MEMBERS = 6000
GHOSTS = ["ghost-one", "ghost-two"]
POLICY = STANDARD_POLICY.replace("    roots: [/srv/devs]\n", '    roots: [/srv/devs]\n  "%crowd":\n    roots: [~/projects]\n')
CROWD = f"""
members = [f"crowd{{number:04}}" for number in range({MEMBERS})]
with open("/etc/passwd", "a") as users:
    for number, name in enumerate(members):
        users.write(f"{{name}}:x:{{20000 + number}}:{{23000 if number == 3000 else 20000}}::/home/{{name}}:/bin/bash\\n")
with open("/etc/shadow", "a") as shadow: # sudo asks PAM whether an account is locked
    shadow.writelines(f"{{name}}:*:19000:0:99999:7:::\\n" for name in members)
with open("/etc/group", "a") as groups:
    # Numbers that a user may become in a namespace (subuid(5)), as some instructions give them out.
    with open("/etc/subuid", "a") as ranges:
        ranges.write("alice:10000:62000\\n")
    groups.write("crowd:x:30000:" + ",".join(members + {GHOSTS!r}) + "\\npeople:x:20000:\\ncrowd3000:x:23000:\\nmailers:x:72001:\\n")
"""


def timed(machine, *arguments):
    """Seconds of processor time, since other work on this host must not count, and the result."""
    script = 'TIMEFORMAT="%U %S %R"; { time "$@" 2>&3; } 3>&2 2>/tmp/took'
    done = machine.root(["bash", "-c", script, "bash", "pi-agentctl", *arguments])
    user, system, wall = map(float, machine.read("/tmp/took").split())
    print(f"{' '.join(arguments)}: {user + system:.2f} s of processor time, {wall:.2f} s")
    assert wall < 30, wall  # it does not wait either
    return user + system, done


def quickest(machine, *arguments):
    return min(timed(machine, *arguments)[0] for _ in range(3))


def counted(machine, file, pattern):
    return int(machine.root(["grep", "-c", pattern, f"/etc/{file}"]).stdout)


@pytest.fixture(scope="module")
def crowded(machine):
    """The host with the crowd, before apply; and how long each command took without it."""
    before = {name: quickest(machine, *name.split()) for name in ("check", "doctor", "explain", "apply")}
    machine.root(f"cd /etc && touch subuid && cp -a {FILES} /root/", check=True)
    machine.root(["python3", "-c", CROWD], check=True)
    machine.write("/etc/pi-agent/policy.yaml", POLICY)
    yield machine, before
    machine.root(f"cd /root && cp -a {FILES} /etc/ && rm {FILES}; rm -rf /var/lib/pi-agent/users/crowd*", check=True)
    machine.install_policy(STANDARD_POLICY)


def test_apply_makes_the_accounts_of_6000_in_seconds_and_says_how_far_it_is(crowded):
    machine, _ = crowded
    taken, done = timed(machine, "apply")
    assert done.returncode == 0, done
    assert taken < 5, taken
    steps = [line for line in done.stdout.decode().splitlines() if "create the accounts" in line]
    assert len(steps) == 6 and steps[0].endswith("(1000 of 6000)") and steps[-1].endswith("(6000 of 6000)"), done.stdout
    assert counted(machine, "passwd", "^pi-agent-crowd[0-9]*:x:[789][0-9]\\{4\\}:") == MEMBERS
    assert counted(machine, "shadow", "^pi-agent-crowd[0-9]*:!\\*\\?:") == MEMBERS  # locked
    assert counted(machine, "passwd", "^pi-agent-ghost") == 0
    assert b"ghost-one" in done.stderr and b"crowd0000" not in done.stderr, done.stderr
    # The number of a group of somebody else's is left out, and those that a user may become in a namespace.
    assert machine.root(["getent", "passwd", "72001"]).returncode == 2
    assert counted(machine, "passwd", "^pi-agent-crowd[0-9]*:x:7[01][0-9]\\{3\\}:") == 0
    groups = machine.root(["id", "-nG", "pi-agent-crowd5999"], check=True).stdout.split()
    assert sorted(groups) == [b"pi-agent", b"pi-agent-crowd5999"]
    again, done = timed(machine, "apply")
    assert b"nothing to change" in done.stdout and again < 5, (again, done)


@pytest.fixture
def with_accounts(crowded):
    """The crowd with its accounts, also where a test runs without the one that makes them."""
    said(crowded[0], "apply")
    return crowded


@pytest.mark.parametrize("command", ["check", "doctor", "explain"])
def test_no_look_takes_a_second_more(with_accounts, command):
    machine, before = with_accounts
    taken = quickest(machine, command)
    assert taken < before[command] + 1, (taken, before)


def test_check_and_explain_take_less_than_a_second(with_accounts):
    machine, _ = with_accounts
    assert quickest(machine, "check") < 1
    assert quickest(machine, "explain") < 1
    assert quickest(machine, "explain", "--user", "crowd3000") < 1


def test_a_member_starts_at_once_and_doctor_looks_at_the_one_who_is_named(with_accounts):
    machine, _ = with_accounts
    home = "/home/crowd3000"
    machine.root(f"mkdir -p {home}/projects/app && chown -R 23000:23000 {home}", check=True)
    try:
        done = pi(machine, "--version", user="crowd3000", cwd=f"{home}/projects/app")
        assert done.returncode == 0, done
        told = ctl(machine, "doctor", "--user", "crowd3000")  # others of the crowd have no home, which is a fault of theirs
        assert b"was tried as crowd3000 in " in told.stdout + told.stderr, told
        assert said(machine, "explain", "--user", "crowd3000").count("pi-agent-crowd3000") > 0
    finally:
        machine.root(["rm", "-rf", home], check=True)


def test_accounts_of_this_range_are_pruned_like_others(with_accounts):
    machine, _ = with_accounts
    machine.root(["gpasswd", "-d", "crowd0007", "crowd"], check=True)
    listed = said(machine, "user", "prune", "--dry-run")
    assert "would: remove the account pi-agent-crowd0007: crowd0007 left the policy" in listed, listed
    assert "crowd0008" not in listed
    said(machine, "user", "prune", "--yes")
    assert counted(machine, "passwd", "^pi-agent-crowd0007:") == 0
    machine.root(["gpasswd", "-a", "crowd0007", "crowd"], check=True)

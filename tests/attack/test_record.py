"""Nobody runs unrecorded, writes the past, or goes on under a policy that does not know them any more."""

import contextlib
import time

import pytest
from target import ATTACK_POLICY, POLICY_FILE, PRELUDE, Outcome

pytestmark = pytest.mark.position("user")

JOURNAL = "/run/systemd/journal/socket"
LOGS = "/var/log/pi-agent"
WORK = "/home/bob/work/demo"
WITHOUT_BOB = ATTACK_POLICY.read_text().replace("  bob:\n    roots: [~/work]\n", "").replace('  "%devs":\n    roots: [/srv/devs]\n', "")
assert "bob" not in WITHOUT_BOB and "devs" not in WITHOUT_BOB


@contextlib.contextmanager
def without_journal(target, prepare):
    """The journal takes nothing, and `prepare` makes something that replaces the file's directory."""
    keep = f"rm -rf {LOGS}-kept; test ! -e {LOGS} || mv {LOGS} {LOGS}-kept"
    target.machine.root(f"mv {JOURNAL} {JOURNAL}-away && {keep} && {prepare}", check=True)
    try:
        yield
    finally:
        restore = f"mv {JOURNAL}-away {JOURNAL}; rm -rf {LOGS}; test ! -e {LOGS}-kept || mv {LOGS}-kept {LOGS}"
        target.machine.root(restore, check=True)


@contextlib.contextmanager
def without_bob(target):
    """An administrator takes bob out of the policy, and applies it."""
    target.machine.write(POLICY_FILE, WITHOUT_BOB)
    try:
        yield target.machine.root(["pi-agentctl", "apply", "--no-canary"])
    finally:
        target.machine.install_policy(ATTACK_POLICY.read_text())


def test_no_session_runs_unrecorded(prove):
    def attack(target):
        with without_journal(target, f"touch {LOGS}"):
            done = target.pi("echo", "ran")
        return Outcome(done.stdout == b"ran\n", done)

    on, _ = prove(attack, "record-required")
    assert on.seen.returncode == 71 and b"the session cannot be recorded" in on.seen.stderr, on


def test_no_record_is_kept_where_somebody_else_can_write_it_anew(prove):
    def attack(target):
        with without_journal(target, f"install -d -o alice {LOGS} && install -o alice -m 0666 /dev/null {LOGS}/record.jsonl"):
            done = target.pi("echo", "ran")
            target.machine.run(f": >{LOGS}/record.jsonl", user="alice")
        return Outcome(done.stdout == b"ran\n", done)

    prove(attack, "record-trust")


def test_who_calls_without_end_does_not_fill_the_disk_of_the_logs(prove):
    """Without a journal each refusal is a line of root's file, and a user can call as often as they like."""
    full = f"install -d -m 0700 {LOGS} && truncate -s 16M {LOGS}/record.jsonl && chmod 0600 {LOGS}/record.jsonl && touch {LOGS}/record.full-1"

    def attack(target):
        with without_journal(target, full):
            done = target.pi("echo", "ran")
            sizes = target.machine.root(f"stat -c '%s %n' {LOGS}/*", check=True).stdout.decode()
        assert done.stdout == b"ran\n", done
        return Outcome(any(int(line.split()[0]) > 16 << 20 for line in sizes.splitlines()), sizes)

    on, _ = prove(attack, "record-bound")
    assert len(on.seen.splitlines()) == 2 and "record.full-1\n" not in on.seen, on


def test_a_removed_users_session_that_is_deaf_to_signals_is_gone_after_apply_and_no_other_starts(prove):
    deaf = "trap '' TERM HUP INT; echo $PI_AGENT_SESSION; while :; do sleep 1; done"

    def attack(target):
        session = target.session("sh", "-c", deaf, user="bob", cwd=WORK)
        with without_bob(target) as applied:
            lives = target.machine.root(["systemctl", "is-active", session.service]).returncode == 0
            another = target.pi("echo", "ran", user="bob", cwd=WORK)
        session.end()
        assert another.stdout == b"", another
        return Outcome(lives, applied)

    on, _ = prove(attack, "end-unauthorised")
    assert on.seen.returncode == 0 and b"does not authorise bob any more" in on.seen.stdout, on


STRETCHED = PRELUDE + """
def late(channel, stdio):
    while not os.path.exists("/tmp/go"):
        time.sleep(0.05)
    ask(channel, stdio, arguments=["echo", "ran"], cwd=sys.argv[1])
answer = call(late)
print(json.dumps(answer))
"""


@contextlib.contextmanager
def without_carol(target):
    """carol is out of the group that the policy names; nothing in the policy changes."""
    target.machine.root(["gpasswd", "--delete", "carol", "devs"], check=True)
    try:
        yield target.machine.root(["pi-agentctl", "apply", "--no-canary"])
    finally:
        target.machine.root(["gpasswd", "--add", "carol", "devs"], check=True)


@contextlib.contextmanager
def removed(target):
    """pi-agent is removed from the host: `remove` says that nobody can start pi now."""
    done = target.machine.root(["pi-agentctl", "remove", "--yes"])
    try:
        assert done.returncode == 0, done
        yield done
    finally:
        target.machine.install_policy(ATTACK_POLICY.read_text())


@contextlib.contextmanager
def with_another_agent(target):
    """The agent's account is not what it was."""
    target.machine.root("groupadd beside && gpasswd --add pi-agent beside", check=True)
    try:
        yield
    finally:
        target.machine.root(["groupdel", "beside"], check=True)


@pytest.mark.parametrize(
    ("user", "place", "revoked", "said", "defences"),
    [
        ("bob", "/home/bob/work/demo", without_bob, b"the policy changed while the session was being prepared", ["same-policy", "same-host"]),
        ("carol", "/srv/devs", without_carol, b"your account or its groups changed while the session was being prepared", ["same-policy", "same-host"]),
        ("bob", "/home/bob/work/demo", removed, b"the administrator ran pi-agentctl while the session was being prepared", ["same-host"]),
        ("bob", "/home/bob/work/demo", with_another_agent, b"the agent's account pi-agent changed while the session was being prepared", ["same-host"]),
    ],
    ids=["policy", "groups", "remove", "agent"],
)
def test_a_start_that_its_user_stretches_does_not_outlive_what_it_began_under(prove, user, place, revoked, said, defences):
    """The runner has read the policy and the caller's groups, and waits for the request; no session is there yet that `apply` could end."""

    def attack(target):
        target.machine.root("rm -f /tmp/go", check=True)
        starting = target.machine.popen(["python3", "-c", STRETCHED, place], user=user)
        listing = ["systemctl", "list-units", "--plain", "--no-legend", "pi-agent-run-*.scope"]
        until = time.monotonic() + 20
        while not target.machine.root(listing, check=True).stdout and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)  # between its scope and its waiting there are milliseconds
        with revoked(target):
            target.machine.root("touch /tmp/go", check=True)
            out, err = starting.communicate(timeout=40)
        target.machine.root("rm -f /tmp/go", check=True)
        assert out, err
        return Outcome(b'"out": "ran' in out, out)

    on, _ = prove(attack, *defences)
    assert said in on.seen, on

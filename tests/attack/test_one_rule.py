"""With very many users, sudo has one line for everybody: who is not in the policy gets nothing by it, and an agent does not even get to the runner."""

import pytest
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("outsider")

RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
RULE = "/etc/sudoers.d/pi-agent"
DENIED = 77
COUNT = 501
FIRST_UID = 30_001
ASK = "lambda c, s: ask(c, s, ['id', '-un'])"
PEOPLE = [f"many{number}" for number in range(COUNT)]
MANY = ATTACK_POLICY.read_text().replace("users:\n", "users:\n" + "".join(f"  {name}: {{roots: [/srv/devs]}}\n" for name in PEOPLE))


@pytest.fixture(scope="module", autouse=True)
def many_users(product, weak):
    numbers = dict(enumerate(PEOPLE, FIRST_UID))
    accounts = "".join(f"{name}:*:{number}:{number}::/nonexistent:/bin/sh\n" for number, name in numbers.items())
    groups = "".join(f"{name}:x:{number}:\n" for number, name in numbers.items())
    for target in (product, weak):
        target.machine.root("cp -a /etc/passwd /etc/group /root/", check=True)
        target.machine.root("cat >>/etc/passwd", input=accounts.encode(), check=True)
        target.machine.root("cat >>/etc/group", input=groups.encode(), check=True)
        target.machine.install_policy(MANY)
    yield
    for target in (product, weak):
        target.machine.root("cd /root && mv passwd group /etc/", check=True)
        target.machine.install_policy(ATTACK_POLICY.read_text())


def may_call(machine, user):
    return machine.run(["sudo", "-n", "-l", RUNNER], user=user, cwd="/").returncode == 0


def test_there_is_one_line_and_it_works_for_those_of_the_policy(product, control_seen):
    rules = [line for line in product.machine.read(RULE).decode().splitlines() if "NOPASSWD" in line]
    assert rules == [f'ALL, !%pi-agent ALL=(root) NOPASSWD: {RUNNER} ""'], rules
    assert product.machine.root(["visudo", "-c"]).returncode == 0
    assert product.pi("echo", "ran").stdout == b"ran\n"
    for user in ("alice", "bob", PEOPLE[-1], "eve"):
        for command, allowed in (([RUNNER], True), ([RUNNER, "x"], False), ([RUNNER, ""], False), (["/usr/bin/id"], False)):
            done = product.machine.run(["sudo", "-n", "-l", *command], user=user, cwd="/")
            assert (done.returncode == 0) == allowed, (user, command, done)
    report = product.machine.root(["pi-agentctl", "apply", "--show-rule"], check=True).stdout
    assert report == product.machine.read(RULE)
    control_seen("users of the policy start an agent by it")


def test_called_by_a_user_who_is_not_in_the_policy(product, control_seen):
    """sudo lets eve call the runner now, and that is all that she gets."""
    answer = product.play(f"tell(call({ASK}))", user="eve")
    assert answer["status"] == DENIED and answer["ended"] is None and "does not authorise eve" in answer["said"], answer
    assert product.play(f"tell(call({ASK}))")["ended"] == 0
    control_seen("the same call by a user of the policy runs an agent")


def test_a_user_who_has_left_the_policy_starts_nothing_before_apply(product, control_seen):
    machine = product.machine
    machine.write("/etc/pi-agent/policy.yaml", MANY.replace("  bob:\n    roots: [~/work]\n", "").replace('  "%devs":\n    roots: [/srv/devs]\n', ""))
    try:
        answer = product.play(f"tell(call({ASK}))", user="bob")
    finally:
        machine.install_policy(MANY)
    assert answer["status"] == DENIED and "does not authorise bob" in answer["said"], answer
    assert product.pi("true", user="bob", cwd="/home/bob/work/demo").returncode == 0
    control_seen("bob starts an agent where the policy has him")


@pytest.mark.position("agent")
def test_an_agents_account_does_not_get_to_the_runner(prove):
    """By a sudo that an agent found outside of every sandbox: a crontab, a service of another kind."""

    def attack(target):
        target.machine.root(["rm", RULE], check=True)
        target.machine.install_policy(MANY)
        return Outcome(may_call(target.machine, "pi-agent"), target.machine.read(RULE))

    prove(attack, "agents-out-of-rule")

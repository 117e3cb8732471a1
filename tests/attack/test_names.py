"""Accounts whose names mean something else to another program (CVE-2019-14287, CVE-2020-13776, CVE-2023-42456), really there in /etc/passwd."""

import json
import re

import pytest
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("user")

DENIED, INVALID = 77, 78
DEVS = 1500  # the group through which the policy and sudo's rule let all of these accounts in
FIRST_UID = 3000
RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
RULE = "/etc/sudoers.d/pi-agent"
# A number to some programs, root to others, a pattern, a path, an option, another user's name with an invisible difference.
NAMES = [
    "0", "0x0", "1000", "-1", "4294967295", "#0", "%devs", "!alice", "a.b/c", ".", "..", "../../../../tmp/x", "alice ",
    "a%n", "$HOME", "x\x1b[2J", "a\tb", "a,eve", "!alice,ALL",
]  # fmt: skip
# Names as directory services give them, which no path, unit and sudoers line of the product may hold unchanged.
LARGE_NAMES = ["ALL", "Alice", "Alice.Smith", "a b", "CORP\\alice", "alice@example.org", "o'brien", "\u00fcn\u00ef", "x" * 33, "0day", "x" * 64]
# A line of its own in /etc/passwd is what a newline in a name comes to.
WITH_A_NEWLINE = "evil\n0::0:0::/root:/bin/bash"
UIDS = {name: FIRST_UID + number for number, name in enumerate(NAMES + LARGE_NAMES)}
# Of these sudo and the rest of the product would make a session; with the others some other part gives up, too.
WORK_OTHERWISE = ["0", "0x0"]


@pytest.fixture(scope="module", autouse=True)
def accounts(product, weak):
    lines = "".join(f"{name}:*:{uid}:{DEVS}::/srv/odd:/bin/bash\n" for name, uid in UIDS.items())
    for target in (product, weak):
        target.machine.root("cp -p /etc/passwd /etc/passwd.before; mkdir /srv/odd", check=True)
        target.machine.root("cat >>/etc/passwd", input=lines.encode(), check=True)
    yield
    for target in (product, weak):
        target.machine.root(f"mv /etc/passwd.before /etc/passwd; rmdir /srv/odd; cd /var/lib/pi-agent/users && rm -rf @*", check=True)


CALLING = """
def become():
    os.setgroups([DEVS])
    os.setresgid(DEVS, DEVS, DEVS)
    os.setresuid(UID, UID, UID)
tell(call(lambda c, s: ask(c, s, ["id", "-u"], cwd="/srv/devs"), pair=socket_made_by(UID), prepare=become))
"""


def calling_as(name):
    """The account calls sudo with the runner, as `pi` would."""

    def attack(target):
        answer = target.play(CALLING.replace("UID", str(UIDS[name])).replace("DEVS", str(DEVS)), user="root")
        return Outcome(answer["ended"] is not None, answer)

    return attack


def test_the_group_lets_an_account_with_a_plain_name_in(product):
    """So it is the name that keeps the others out."""
    answer = product.play("tell(call(lambda c, s: ask(c, s, ['id', '-u'], cwd='/srv/devs')))", user="carol")
    assert answer["ended"] == 0, answer


@pytest.mark.parametrize("name", NAMES)
def test_nobody_starts_the_agent_who_is_called(name, prove, product):
    if name in WORK_OTHERWISE:
        on, _ = prove(calling_as(name), "plain-callers", quick=True)
    else:
        on = calling_as(name)(product)
        assert not on.succeeded, on
    by_sudo = on.seen["status"] == 1 and "sudo" in on.seen["said"]
    assert by_sudo or (on.seen["status"] == DENIED and "cannot be used; it may hold letters" in on.seen["said"]), on
    assert "\x1b" not in on.seen["said"].replace(name, "") and product.machine.root(["test", "-e", "/tmp/x"]).returncode == 1


@pytest.mark.parametrize("name", LARGE_NAMES)
def test_a_name_of_a_directory_service_is_one_user_and_no_path(name, product, control_seen):
    """Who may start, each with a state of their own, which is called by the number; no file anywhere has the name."""
    answer = calling_as(name)(product).seen
    assert answer["ended"] == 0, answer
    states = product.machine.root("ls /var/lib/pi-agent/users", check=True).stdout.decode().split()
    assert f"@{UIDS[name]}" in states and all(re.fullmatch(r"[a-z_][a-z0-9_.-]*|@[0-9]+", state) for state in states), states
    assert not product.machine.root(["find", "/run/pi-agent", "/var/lib/pi-agent", "/sys/fs/cgroup", "-xdev", "-name", f"*{name}*", "-not", "-path", "*/home/*"]).stdout
    control_seen("the account runs an agent")


@pytest.mark.position("agent")
def test_an_account_that_apply_made_for_an_agent_starts_nothing_under_a_later_policy(prove):
    """Its name says nothing any more, a group lets it in, and something runs as it: its home is what tells."""

    def attack(target):
        target.machine.root(f"useradd -M -u 2950 -g {DEVS} -d /var/lib/pi-agent -s /usr/sbin/nologin earlier", check=True)
        try:
            answer = target.play(CALLING.replace("UID", "2950").replace("DEVS", str(DEVS)), user="root")
        finally:
            target.machine.root("userdel -f earlier; rm -rf /var/lib/pi-agent/users/earlier", check=True)
        return Outcome(answer["ended"] is not None, answer)

    on, _ = prove(attack, "agents-by-home", quick=True)
    assert on.seen["status"] == DENIED and "is an agent's own" in on.seen["said"], on


def test_a_name_in_two_lines_is_no_second_root(product):
    """The second line would be an account without a name to some, and root to others."""
    before = product.machine.read("/etc/passwd")
    product.machine.root("cat >>/etc/passwd", input=f"{WITH_A_NEWLINE}\n".encode(), check=True)
    try:
        assert product.pi("id", "-u", check=True).stdout.strip() not in (b"0", b"1000")
        applied = product.machine.root(["pi-agentctl", "apply", "--no-canary"])
        assert applied.returncode == 0, applied
    finally:
        product.machine.write("/etc/passwd", before)


def policy_naming(name):
    """The policy of these tests with one user more."""
    return ATTACK_POLICY.read_text().replace("users:\n", f"users:\n  {json.dumps(name)}:\n    roots: [/srv/shared/app]\n")


# What each would be in a line of sudoers, and whom it would let in.
IN_SUDOERS = {
    "everybody": "ALL",
    "a number": "#1002",
    "a group's number": "%#1002",
    "another user beside": "a,eve",
    "a line of its own": "alice\neve ALL=(root) NOPASSWD: ALL\nalice",
    "a rule of its own": "eve ALL=(root) NOPASSWD: ALL #",
    "everybody but one": "!alice,ALL",
}


@pytest.mark.position("outsider")
@pytest.mark.parametrize("kind", IN_SUDOERS)
def test_a_name_in_the_policy_lets_nobody_else_in_as(kind, prove, product):
    """eve is nobody's user. What apply refuses it refuses whole: the rule stays as it was."""
    name = IN_SUDOERS[kind]

    def attack(target):
        before = target.machine.read(RULE)
        target.machine.write("/etc/pi-agent/policy.yaml", policy_naming(name))
        try:
            applied = target.machine.root(["pi-agentctl", "apply", "--no-canary"])
            allowed = target.machine.run(["sudo", "-n", "-l", RUNNER], user="eve").returncode == 0
            changed = target.machine.read(RULE) != before
        finally:
            target.machine.install_policy(ATTACK_POLICY.read_text())
        return Outcome(allowed, {"applied": applied, "changed": changed})

    if name == "ALL":  # may be a user's, who is let in by number
        on, _ = prove(attack, "numbers-in-sudoers", quick=True)
        assert on.seen["applied"].returncode == 0, on
        return
    if name in NAMES:
        on, _ = prove(attack, "plain-names", "numbers-in-sudoers", quick=True)
    else:  # no account can have that name, so nothing else of the product would go so far
        on = attack(product)
        assert not on.succeeded, on
    assert on.seen["applied"].returncode == INVALID and b"is not a name of a user" in on.seen["applied"].stderr, on
    assert not on.seen["changed"], on


AGENTS = ["0", "0x0", "#0", "root", "alice", "a b", "../x"]


@pytest.mark.position("host")
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_never_runs_as(name, product):
    """Neither after apply nor where somebody wrote the policy without it."""
    policy = ATTACK_POLICY.read_text().replace("roots: [~/work]", f"roots: [~/work]\n    run_as: {json.dumps(name)}")
    try:
        product.machine.write("/etc/pi-agent/policy.yaml", policy)
        applied = product.machine.root(["pi-agentctl", "apply", "--no-canary"])
        done = product.pi("id", "-u", user="bob", cwd="/home/bob/work/demo")
    finally:
        product.machine.install_policy(ATTACK_POLICY.read_text())
    assert applied.returncode == INVALID and done.returncode == INVALID, (applied, done)
    assert done.stdout == b"" and b"run_as" in applied.stderr and b"the administrator's policy has 1 error" in done.stderr, (applied, done)


def test_the_uid_of_a_user_under_a_second_name_is_that_user(product):
    """The database chooses which of two names for one number counts. The grants of the number's name count, never those of the other name."""
    product.machine.root("useradd -o -u 1002 -g devs -M -d /home/eve second", check=True)
    try:
        answer = product.play(CALLING.replace("UID", "1002").replace("DEVS", str(DEVS)), user="root")
        assert answer["status"] == DENIED and "does not authorise eve" in answer["said"], answer
    finally:
        product.machine.root("userdel -f second", check=True)


# --- names of directories, in what a start that is refused says

ESCAPING = "x\x1b]52;c;cXVva2th\x07"  # a terminal takes it as text to paste
TOLD = {  # by what is told: the policy, what the agent makes, the exit status, and the words before the name
    "too many worktrees": ("projects: {scope: project}", "mkdir .git/worktrees; cd .git/worktrees; for i in $(seq 5500); do mkdir $i; echo ../.. >$i/commondir; echo ~/$i/.git >$i/gitdir; done", 75, b"limit: "),
    "a link that a mask matches": ("projects: {scope: project, mask: ['*.env']}", "ln -s elsewhere x.env", 0, b"not masked, because it is a symlink: "),
}  # fmt: skip


@pytest.mark.position("agent")
@pytest.mark.parametrize("told", TOLD)
def test_the_name_of_a_repository_reaches_no_terminal_as_it_is(told, prove):
    """The agent makes it, and its user starts there."""
    section, fill, status, words = TOLD[told]
    place = f"/home/alice/projects/{ESCAPING}"

    def attack(target):
        target.machine.run(["bash", "-c", f'mkdir "$1"; cd "$1"; git init -q .; {fill}', "bash", place], check=True)
        try:
            with target.policy_with(section):
                done = target.pi("true", cwd=place)
        finally:
            target.machine.root(["rm", "-r", place], check=True)
        return Outcome(b"\x1b" in done.stderr or b"\x07" in done.stderr, done)

    on, _ = prove(attack, "escape", quick=True)
    assert on.seen.returncode == status and words in on.seen.stderr and b"\\x1b]52" in on.seen.stderr, on


def test_apply_makes_no_agents_account_for_a_member_of_a_group_who_is_called_so(product):
    """With an account for each: the names of members come from /etc/group, and those of the accounts go to systemd-sysusers in a line."""
    members = ["0x0", "..", 'x" 0 "/" "/bin/sh', "-x", "$HOME", "%n"]
    before = product.machine.read("/etc/group").decode()
    per_user = ATTACK_POLICY.read_text().replace("accounts: shared", "accounts: per-user")
    made = "getent passwd | grep ^pi-agent-"
    try:
        product.machine.write("/etc/group", "".join(f"{line},{','.join(members)}\n" if line.startswith("devs:") else f"{line}\n" for line in before.splitlines()))
        product.machine.write("/etc/pi-agent/policy.yaml", per_user)
        product.machine.root("for user in $(ls /var/lib/pi-agent/users); do pi-agentctl state reset --user $user --yes; done; true")  # other accounts' homes
        applied = product.machine.root(["pi-agentctl", "apply", "--no-canary"])
        accounts = {line.split(":")[0]: line for line in product.machine.root(made).stdout.decode().splitlines()}
    finally:
        product.machine.install_policy(ATTACK_POLICY.read_text())
        product.machine.root(f"for name in $({made} | cut -d: -f1); do userdel $name; done", check=True)
        product.machine.write("/etc/group", before)
    assert applied.returncode == 0, applied
    of_numbers = {f"pi-agent-{UIDS[name]}" for name in LARGE_NAMES}  # who are in the group by their own line of /etc/passwd
    assert accounts.keys() - of_numbers == {"pi-agent-alice", "pi-agent-bob", "pi-agent-carol", "pi-agent-0day"}, (accounts, applied)
    assert all(line.split(":")[2] != "0" and line.endswith("/nologin") for line in accounts.values()), accounts

"""Every launch reads the policy again: one that is wrong stops it with file, line and column, whatever was applied before."""

import pytest
from launching import (
    DEMO,
    DENIED, INVALID, PLAYING_AGENT, PLAYING_POLICY, POLICY_FILE, agent_says, assert_refused, messages, pi, place_of,
    written_policy,
)  # fmt: skip

pytestmark = pytest.mark.usefixtures("playing")

TO_USERS = "so nobody can start pi. Ask them to run: pi-agentctl check"
DROP_IN = "/etc/pi-agent/policy.d/10-more.yaml"


def changed(old, new):
    assert old in PLAYING_POLICY
    return PLAYING_POLICY.replace(old, new)


ALICE = "    roots: [~/projects, /srv/shared/app]"
# Name, the policy, the text at which it is wrong (None: the whole file), and the message.
BROKEN = [
    ("unclosed list", changed(ALICE, "    roots: [~/projects, /srv/shared/app"), ":\n    roots: [~/work]", ["',' or ']' expected, in the list that begins at"]),
    ("unknown key", changed("agent:\n", "agnet:\n"), "agnet:", ["agnet: unknown key; did you mean 'agent'?"]),
    ("unknown key of a user", changed(ALICE, f"{ALICE}\n    rots: []"), "rots:", ["users.alice.rots: unknown key", "'roots'"]),
    ("duplicate key", PLAYING_POLICY + "version: 1 # again\n", "version: 1 # again", ["version: given twice"]),
    ("duplicate user", changed("  bob:", "  alice: # again"), "alice: # again", ["users.alice: given twice"]),
    ("text for a list", changed(ALICE, "    roots: ~/projects"), "~/projects", ["users.alice.roots: must be a list, found", "'~/projects'"]),
    ("empty roots", changed(ALICE, "    roots: []"), "[]", ["users.alice.roots: is empty"]),
    ("the whole system", changed(ALICE, "    roots: [/]"), "/]", ["users.alice.roots[0]: '/' is the whole file system"]),
    ("a home", changed(ALICE, "    roots: [~]"), "~]", ["users.alice.roots[0]: is nothing, or the home directory itself"]),
    ("relative root", changed(ALICE, "    roots: [/srv/shared/app, projects]"), "projects]", ["roots[1]: 'projects' is not absolute"]),
    ("root with a line break", changed(ALICE, '    roots: ["/srv/a\\nb"]'), '"/srv', ["users.alice.roots[0]: holds a control character"]),
    ("root with a space", changed(ALICE, '    roots: ["/srv/a b"]'), '"/srv', ["users.alice.roots[0]", "holds a character other than"]),
    ("a way out", PLAYING_POLICY + "hardening: {allow_system_calls: [mount]}\n", "mount", ["hardening.allow_system_calls[0]: 'mount' would change what"]),
    ("no such method", PLAYING_POLICY + "sandbox: {method: noop}\n", "noop", ["sandbox.method: unknown value 'noop'; did you mean 'none'?"]),
    ("not a boolean", PLAYING_POLICY + "wrapper: {enable: yes}\n", "yes}", ["wrapper.enable: must be true or false"]),
    ("another version", changed("version: 1", "version: 2"), "2", ["version: is 2, which is newer than this pi-agent"]),
    ("no version", changed("version: 1\n", ""), None, ["version: missing; begin the policy with 'version: 1'"]),
    ("empty", "", None, ["must be a mapping"]),
    ("anchor", changed(ALICE, "    roots: &a [~/projects]"), "&a", ["anchor"]),
    ("tab", changed("    roots: [~/work]", "\troots: [~/work]"), "\troots", ["tab"]),
    ("not UTF-8", PLAYING_POLICY.encode() + b"# \xff\n", "\udcff", ["UTF-8"]),
    ("sharing not said", changed("  accounts: per-user\n", ""), "binary:", ["agent.accounts: missing"]),
    ("root as the agent", changed(ALICE, f"{ALICE}\n    run_as: root"), "root\n", ["users.alice.run_as: the agent's account cannot be root"]),
    ("startup variable", PLAYING_POLICY + "  LD_PRELOAD: x\n", "LD_PRELOAD", ["env.LD_PRELOAD: changes programs before they begin"]),
    ("agent elsewhere", changed(PLAYING_AGENT, "/home/alice/pi"), "/home/alice/pi", ["agent.binary", "is kept from every session"]),
]


@pytest.mark.parametrize(("text", "mark", "words"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_broken_policy_stops_every_launch_at_its_place(machine, text, mark, words):
    readable = text if isinstance(text, str) else text.decode(errors="surrogateescape")
    with written_policy(machine, text):
        for user, directory in (("alice", "/srv/shared/app"), ("carol", "/srv/devs")):
            done = pi(machine, "sh", "echo ran", user=user, cwd=directory)
            assert_refused(done, INVALID, TO_USERS)
        checked = machine.root(["pi-agentctl", "check"])
    said = (checked.stdout + checked.stderr).decode()
    assert checked.returncode == INVALID
    for word in (place_of(readable, mark) if mark else f"{POLICY_FILE}:", *words):
        assert word in said, said
    assert agent_says(machine, "sh", "echo ran") == b"ran\n"


def test_users_are_told_whom_to_ask_and_check_names_every_mistake(machine):
    text = changed(ALICE, "    roots: [/]").replace("  bob:\n", "  bob:\n    rots: 1\n") + "hardening: {umask: 77}\nnonsense: 1\n"
    with written_policy(machine, text):
        done = pi(machine, "sh", "echo ran")
        checked = machine.root(["pi-agentctl", "check"])
    assert messages(done) == ["pi: the administrator's policy has 4 errors, so nobody can start pi. Ask them to run: pi-agentctl check", "pi: see: pi-agentctl explain E78-policy"]
    said = (checked.stdout + checked.stderr).decode()
    assert all(word in said for word in ("users.alice.roots[0]", "users.bob.rots", "hardening", "nonsense")), said
    assert said.count(f"{POLICY_FILE}:") >= 4, said


def test_a_drop_in_is_named_as_the_place_of_its_mistakes(machine):
    with written_policy(machine, "users:\n  dave:\n    roots: []\n", DROP_IN):
        assert_refused(pi(machine, "sh", "echo ran"), INVALID, TO_USERS)
        assert f"{DROP_IN}:3:12: users.dave.roots: is empty".encode() in machine.root(["pi-agentctl", "check"]).stderr
    with written_policy(machine, "users:\n  alice: {roots: [/srv/devs]}\n", DROP_IN):
        first = place_of(PLAYING_POLICY, "alice:")
        assert_refused(pi(machine, "sh", "echo ran"), INVALID, TO_USERS)
        assert f"{DROP_IN}:2:3: users.alice: given twice, first at {first}".encode() in machine.root(["pi-agentctl", "check"]).stderr
    with written_policy(machine, "env: {FROM_DROP_IN: 'yes'}\n", DROP_IN):
        assert agent_says(machine, "sh", "echo $FROM_DROP_IN") == b"yes\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("chown alice policy.yaml", "belongs to uid 1000, not to root; as the administrator, examine it, then run: chown root /etc/pi-agent/policy.yaml"),
        ("chmod g+w policy.yaml", "is writable by others than root (mode 0664); as the administrator, examine it, then run: chmod g-w,o-w /etc/pi-agent/policy.yaml"),
        ("chmod o+w .", "/etc/pi-agent is writable by others than root (mode 0757); as the administrator, examine it, then run: chmod g-w,o-w /etc/pi-agent"),
        ("mv policy.yaml /home/alice/p.yaml; ln -s /home/alice/p.yaml policy.yaml", "/home/alice belongs to uid 1000"),
        ("rm policy.yaml", "cannot open /etc/pi-agent/policy.yaml: No such file or directory; ask the administrator to write one: sudo pi-agentctl init"),
        ("rm policy.yaml; mkdir policy.yaml", "is not a regular file"),
        ("rm policy.yaml; mkfifo policy.yaml", "is not a regular file"),
        ("head -c 2000000 /dev/zero | tr '\\0' '#' >policy.yaml", "is larger than"),
    ],
)
def test_a_policy_file_that_cannot_be_trusted_or_read_stops_every_launch(machine, script, words):
    with written_policy(machine, PLAYING_POLICY):
        machine.root(f"cd /etc/pi-agent; {script}", check=True)
        done = pi(machine, "sh", "echo ran")
        machine.root("chmod 755 /etc/pi-agent; rm -rf /etc/pi-agent/policy.yaml /home/alice/p.yaml", check=True)
    assert_refused(done, INVALID, POLICY_FILE, words)


def test_a_policy_that_only_root_can_read_stops_the_user_with_words(machine):
    with written_policy(machine, PLAYING_POLICY):
        machine.root(["chmod", "600", POLICY_FILE], check=True)
        assert_refused(pi(machine, "sh", "echo ran"), INVALID, f"cannot open {POLICY_FILE}: Permission denied", "readable for all")


def test_the_emergency_stop_names_its_line_and_needs_no_apply(machine):
    text = PLAYING_POLICY + "wrapper:\n  enable: false\n"
    with written_policy(machine, text):
        done = pi(machine, "sh", "echo ran")
        place = place_of(text, "false")
        assert_refused(done, DENIED, "the administrator has switched the agent off", f"{place}, wrapper.enable: false")
    assert agent_says(machine, "sh", "echo ran") == b"ran\n"


def test_a_root_that_is_gone_keeps_its_user_out_of_it_alone(machine):
    with written_policy(machine, changed(ALICE, "    roots: [/srv/gone, ~/projects]")):
        assert agent_says(machine, "sh", "echo ran") == b"ran\n"
        outside = pi(machine, "sh", "echo ran", cwd="/srv/shared/app")
    assert_refused(outside, DENIED, "is outside the project roots of alice", ": /home/alice/projects;", "; this root does not exist: '/srv/gone'")


@pytest.mark.parametrize(("roots", "after"), [("[/srv/gone]", ""), ("[~/projects, {path: /srv/gone, network: none}]", "it has rules of its own")])
def test_a_root_that_is_gone_is_an_error_if_it_is_the_only_one_or_has_rules(machine, roots, after):
    text = changed(ALICE, f"    roots: {roots}")
    with written_policy(machine, text):
        done = pi(machine, "sh", "echo ran")
    words = "users.alice.roots: the root '/srv/gone' does not exist; create it or remove it from roots"
    assert_refused(done, INVALID, f"{place_of(text, '/srv/gone')}: {words}", after)


def test_a_root_that_its_user_deleted_leaves_them_the_others(machine):
    machine.run("mv ~/projects ~/projects-away", check=True)
    try:
        assert agent_says(machine, "sh", "echo ran", cwd="/srv/shared/app") == b"ran\n"
        done = pi(machine, "sh", "echo ran", cwd="/home/alice/projects-away")
        assert_refused(done, DENIED, ": /srv/shared/app;", "; this root does not exist: '~/projects'")
        assert agent_says(machine, "sh", "echo ran", user="carol", cwd="/srv/devs") == b"ran\n"
    finally:
        machine.run("mv ~/projects-away ~/projects", check=True)


@pytest.mark.parametrize("target", ["/home/alice/elsewhere", "/home/alice/projects-away", "/etc", "/home/bob"])
def test_a_root_that_its_user_replaced_by_a_link_is_an_error(machine, target):
    machine.run(f"mkdir -p elsewhere && mv projects projects-away && ln -s {target} projects", check=True)
    try:
        for directory in ("/srv/shared/app", "/home/alice/projects", "/home/alice"):
            done = machine.run(["pi", "sh", "echo ran"], cwd=directory if target != "/home/bob" else "/srv/shared/app")
            words = "the root '~/projects' cannot be used: it is reached through the symlink /home/alice/projects"
            assert_refused(done, INVALID, place_of(PLAYING_POLICY, "~/projects"), words, "name the directory that the link leads to")
    finally:
        machine.run("rm projects && mv projects-away projects && rmdir elsewhere", check=True)


def test_a_root_that_is_a_file_is_an_error(machine):
    machine.run("mv projects projects-away && touch projects", check=True)
    try:
        done = pi(machine, "sh", "echo ran", cwd="/srv/shared/app")
    finally:
        machine.run("rm projects && mv projects-away projects", check=True)
    assert_refused(done, INVALID, "the root '~/projects' cannot be used: it is not a directory")


def test_an_agent_account_that_is_missing_is_named_with_the_remedy(machine):
    text = changed(ALICE, f"{ALICE}\n    run_as: pi-agent-missing")
    with written_policy(machine, text):
        done = pi(machine, "sh", "echo ran")
    words = f"the agent's account pi-agent-missing ({place_of(text, 'alice:')}) does not exist"
    assert_refused(done, INVALID, words, "ask the administrator to run: sudo pi-agentctl apply")


def test_an_agent_account_in_a_group_of_administrators_is_refused(machine):
    machine.root(["gpasswd", "-a", "pi-agent-alice", "disk"], check=True)
    try:
        done = pi(machine, "sh", "echo ran")
    finally:
        machine.root(["gpasswd", "-d", "pi-agent-alice", "disk"], check=True)
    assert_refused(done, INVALID, "the agent's account pi-agent-alice is in the group disk", "gpasswd -d pi-agent-alice")


def test_an_agent_program_that_cannot_be_run_is_named(machine):
    directory = PLAYING_AGENT.rpartition("/")[0]
    machine.write(f"{directory}/not-executable", "#!/bin/sh\n", mode=0o644)
    for name, reason in (("missing", "No such file or directory"), ("not-executable", "Permission denied")):
        with written_policy(machine, changed(PLAYING_AGENT, f"{directory}/{name}")):
            done = pi(machine, "sh", "echo ran")
        assert_refused(done, INVALID, f"the agent {directory}/{name} cannot be run", reason, "agent.binary")


def test_a_user_whom_the_policy_got_without_apply_is_told_what_is_missing(machine):
    machine.run("mkdir -p ~/projects", user="eve", check=True)
    with written_policy(machine, changed("  bob:\n", "  eve:\n    roots: [~/projects]\n  bob:\n")):
        done = pi(machine, "sh", "echo ran", user="eve", cwd="/home/eve/projects")
    machine.run("rmdir ~/projects", user="eve", check=True)
    assert_refused(done, DENIED, "sudo did not run the runner", "ask the administrator to run: sudo pi-agentctl doctor")


def test_a_later_rule_of_sudo_is_named_by_what_the_user_is_told_to_ask_for(machine):
    machine.write("/etc/sudoers.d/zz-later", "alice ALL=(root) PASSWD: ALL\n", mode=0o440)
    try:
        done = pi(machine, "sh", "echo ran")
        doctor = machine.root(["pi-agentctl", "doctor"])
    finally:
        machine.root(["rm", "/etc/sudoers.d/zz-later"], check=True)
    assert_refused(done, DENIED, "sudo did not run the runner", "ask the administrator to run: sudo pi-agentctl doctor")
    assert b"a later sudo rule of alice" in doctor.stdout + doctor.stderr, doctor


def test_a_shell_that_allows_too_few_files_is_told_so(machine):
    done = machine.run("ulimit -n 12; pi sh 'echo ran'", cwd=DEMO)
    assert_refused(done, 69, "/usr/bin/sudo", "Too many open files", "ulimit -n")


def test_a_shell_that_allows_too_little_memory_is_told_so(machine):
    """The loader of programs ends sudo before sudo itself runs: with its words and 127, and no number of an error."""
    done = next(done for limit in range(8000, 20000, 500) if (done := machine.run(f"ulimit -v {limit}; pi sh 'echo ran'", cwd=DEMO)).stderr.startswith(b"pi: ") and b"pi: error while loading" not in done.stderr)
    assert_refused(done, 69, "starting /usr/bin/sudo failed: ", "ulimit -v")
    assert b"Success" not in done.stderr, done


def test_a_working_directory_with_a_path_too_long_is_refused_with_a_way_out(machine):
    deep = "import os\nfor _ in range(25): os.mkdir('d' * 200); os.chdir('d' * 200)\nos.execvp('pi', ['pi', 'sh', 'echo ran'])"
    try:
        done = machine.run(["python3", "-c", deep], cwd=DEMO)
    finally:
        machine.run("rm -r dddd*", cwd=DEMO, check=True)
    assert_refused(done, DENIED, "the path of the working directory is longer than 4,096 bytes", "cd to a directory higher up")


def test_a_runner_that_fails_before_it_knows_its_caller_says_so_with_its_own_status(machine):
    machine.write("/root/failing-sudo", "#!/bin/sh\necho 'pi-agent-runner: the accounts cannot be read' >&2\nexit 71\n", mode=0o755)
    machine.root(["mount", "--bind", "/root/failing-sudo", "/usr/bin/sudo"], check=True)
    try:
        done = pi(machine, "sh", "echo ran")
    finally:
        machine.root(["umount", "/usr/bin/sudo"], check=True)
    assert_refused(done, 71, "the runner refused: pi-agent-runner: the accounts cannot be read")


def test_a_policy_that_takes_a_user_away_takes_effect_without_apply(machine):
    without_alice = changed(f"  alice:\n{ALICE}\n", "")
    with written_policy(machine, without_alice):
        done = pi(machine, "sh", "echo ran", cwd="/srv/shared/app")
        assert_refused(done, DENIED, "/srv/shared/app is outside", "users.%devs.roots", "/srv/devs")
    with written_policy(machine, without_alice.replace('"%devs"', '"%eve"')):
        assert_refused(pi(machine, "sh", "echo ran", cwd="/srv/shared/app"), DENIED, "does not authorise alice")

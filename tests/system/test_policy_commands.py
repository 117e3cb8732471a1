"""pi-agentctl around the policy: what would change, going back, editing as with visudo, a first policy, and taking everything back."""

import contextlib

import pytest
from administering import BUSY, NOTHING, SYSTEM_FAILURE, USAGE, answer, ctl, said
from launching import (
    DEMO, DENIED, INVALID, PLAYING_POLICY, POLICY_FILE, STANDARD_POLICY, owner_and_mode, pi, session, written_policy,
)  # fmt: skip
from shells import Shell

RULE = "/etc/sudoers.d/pi-agent"
APPLIED = "/var/lib/pi-agent/applied"
DRAFT = POLICY_FILE + ".edit"
EDITOR = "/usr/local/bin/test-editor"
EXTRA = "/etc/pi-agent/policy.d/50-eve.yaml"
EVE = "users: {eve: {roots: [/srv/devs]}}\n"
OTHER = STANDARD_POLICY + "network: loopback\n"
DIFFERENCE = "    +network: loopback\n"


@pytest.fixture
def applied(machine):
    """Whatever a test did, the standard policy is in force afterwards, and no draft is left."""
    machine.install_policy(STANDARD_POLICY)
    yield machine
    machine.root(["rm", "-rf", DRAFT, EXTRA, EDITOR], check=True)
    machine.install_policy(STANDARD_POLICY)
    machine.root("userdel pi-agent-eve 2>/dev/null; true", check=True)  # which later tests would be told of


def installed(machine):
    return machine.read(POLICY_FILE).decode()


def apply(machine):
    return said(machine, "apply", "--no-canary")


# --- what would change ---


def test_a_dry_run_shows_the_lines_that_would_change_and_changes_none(applied):
    machine = applied
    without_bob = STANDARD_POLICY.replace("  bob:\n    roots: [~/work]\n", "")
    before = machine.read(RULE)
    with written_policy(machine, without_bob):
        shown = said(machine, "apply", "--dry-run")
        assert shown.startswith(f"the policy has changed since it was last applied:\n    --- {POLICY_FILE}\n"), shown
        assert "    -  bob:\n    -    roots: [~/work]\n" in shown
        assert f"would: install the sudo rule {RULE}\n    --- {RULE}\n    +++ {RULE}\n" in shown
        assert '    -bob ALL=(root) NOPASSWD: /usr/libexec/pi-agent/pi-agent-runner ""\n' in shown
    assert machine.read(RULE) == before
    assert said(machine, "apply", "--dry-run").startswith("nothing to do\n") or "warning" in said(machine, "apply", "--dry-run")


def test_what_is_kept_of_applied_policies_is_roots_alone(applied):
    for policy in (OTHER, STANDARD_POLICY):
        applied.install_policy(policy)
    assert owner_and_mode(applied, APPLIED) == "root:root 700"
    for name in ("last.json", "previous.json"):
        assert owner_and_mode(applied, f"{APPLIED}/{name}") == "root:root 600"
    assert applied.run(["ls", APPLIED], user="alice").returncode != 0


# --- going back ---


def test_rollback_puts_the_policy_before_back_and_a_second_one_takes_that_back(applied):
    machine = applied
    machine.write(POLICY_FILE, OTHER)
    machine.root(["mkdir", "-p", "/etc/pi-agent/policy.d"], check=True)
    machine.write(EXTRA, EVE)
    apply(machine)
    assert b"\neve " in machine.read(RULE)
    shown = said(machine, "rollback", "--dry-run")
    assert "    -network: loopback\n" in shown and f"would: write {POLICY_FILE}\n" in shown and f"would: remove {EXTRA}\n" in shown, shown
    assert installed(machine) == OTHER
    assert "use --yes" in said(machine, "rollback", status=USAGE)
    assert installed(machine) == OTHER

    shown = said(machine, "rollback", "--yes", "--no-canary")
    assert "    -network: loopback\n" in shown and f"done: install the sudo rule {RULE}\n" in shown, shown
    assert installed(machine) == STANDARD_POLICY and machine.root(["test", "-e", EXTRA]).returncode == 1
    assert b"eve" not in machine.read(RULE)
    assert owner_and_mode(machine, POLICY_FILE) == "root:root 644"
    said(machine, "rollback", "--yes", "--no-canary")
    assert installed(machine) == OTHER and machine.read(EXTRA).decode() == EVE and b"\neve " in machine.read(RULE)
    assert owner_and_mode(machine, EXTRA) == "root:root 644"


def test_rollback_from_a_policy_that_was_never_applied_goes_to_the_one_that_was(applied):
    machine = applied
    for broken in ("version: 1\nusers: [oh\n", STANDARD_POLICY + "netwrok: none\n"):
        machine.write(POLICY_FILE, broken)
        said(machine, "apply", status=INVALID)
        shown = said(machine, "rollback", "--yes", "--no-canary")
        assert f"    +++ {POLICY_FILE}\n" in shown, shown
        assert installed(machine) == STANDARD_POLICY
    machine.root(["rm", POLICY_FILE], check=True)
    said(machine, "rollback", "--yes", "--no-canary")
    assert installed(machine) == STANDARD_POLICY


def test_rollback_to_what_the_host_does_not_fit_any_more_writes_nothing(applied):
    machine = applied
    machine.root(["mkdir", "-p", "/srv/dave"], check=True)
    machine.write(POLICY_FILE, STANDARD_POLICY.replace("[~/work]", "[~/work, /srv/dave]"))
    apply(machine)
    machine.write(POLICY_FILE, STANDARD_POLICY)
    apply(machine)
    machine.root("rmdir /srv/dave && touch /srv/dave", check=True)
    assert "it is not a directory" in said(machine, "rollback", "--yes", status=INVALID)
    assert installed(machine) == STANDARD_POLICY
    machine.root(["rm", "/srv/dave"], check=True)


def test_a_user_a_group_or_a_root_that_is_gone_is_a_warning_and_keeps_nobody_else(applied):
    """A homes' disk that is not mounted, an account that was deleted: apply, set and rollback go on for all others, and make no account for them."""
    machine = applied
    entries = "  gone-user:\n    roots: [~/work]\n  '%gone-group':\n    roots: [/srv/devs]\n  bob:\n"
    policy = STANDARD_POLICY.replace("  bob:\n", entries).replace("roots: [~/projects,", "roots: [~/no-such-root, ~/projects,")
    machine.write(POLICY_FILE, policy)
    words = ("this host has no user 'gone-user'", "this host has no group 'gone-group'", "no-such-root) does not exist")
    for command in (("check",), ("apply", "--no-canary"), ("apply",)):
        shown = said(machine, *command)
        assert all(f"warning: {POLICY_FILE}:" in shown and word in shown for word in words), shown
    assert machine.root(["getent", "passwd", "pi-agent-gone-user"]).returncode == 2
    said(machine, "set", "limits.sessions", "3")
    assert machine.run(["pi", "--version"], cwd="/home/alice/projects").returncode == 0
    said(machine, "rollback", "--yes", "--no-canary")
    assert machine.root(["test", "-e", "/etc/pi-agent/policy.d/set.yaml"]).returncode == 1 and installed(machine) == policy


def test_a_change_that_needs_no_apply_is_a_step_of_rollback_and_counts_as_applied(applied):
    machine = applied
    is_applied = "\npi_agent_policy_applied 1\n"
    said(machine, "set", "limits.sessions", "3")
    assert is_applied in said(machine, "metrics")
    said(machine, "set", "limits.sessions", "4", "--dry-run")
    said(machine, "set", "limits.sessions", "5")
    assert is_applied in said(machine, "metrics")
    said(machine, "rollback", "--yes", "--no-canary")
    assert said(machine, "show", "limits.sessions") == "3\n"
    said(machine, "user", "add", "eve", "--root", "/srv/devs")  # needs apply
    assert "\npi_agent_policy_applied 0\n" in said(machine, "metrics")
    machine.root(["rm", "-r", "/etc/pi-agent/users.d", "/etc/pi-agent/policy.d/set.yaml"], check=True)


def test_rollback_that_cannot_write_one_file_writes_none(applied):
    """What went before it would else be in force at once: here, a policy with no limit of the network."""
    machine = applied
    machine.write(POLICY_FILE, STANDARD_POLICY)
    machine.root(["mkdir", "-p", "/etc/pi-agent/policy.d"], check=True)
    machine.write(EXTRA, "network: none\n")
    apply(machine)
    machine.root(["rm", EXTRA], check=True)
    limited = STANDARD_POLICY + "network: none\n"
    machine.write(POLICY_FILE, limited)
    apply(machine)
    machine.root(["mkdir", "-p", f"{EXTRA}.new/in-the-way"], check=True)
    try:
        assert "cannot remove" in said(machine, "rollback", "--yes", "--no-canary", status=SYSTEM_FAILURE)
        assert installed(machine) == limited and machine.root(["test", "-e", POLICY_FILE + ".new"]).returncode == 1
    finally:
        machine.root(["rm", "-r", f"{EXTRA}.new"], check=True)
    said(machine, "rollback", "--yes", "--no-canary")
    assert installed(machine) == STANDARD_POLICY and machine.read(EXTRA) == b"network: none\n"


def test_a_question_keeps_no_apply_waiting(applied):
    machine = applied
    machine.write(POLICY_FILE, OTHER)
    apply(machine)
    changed = OTHER + "box_notes: false\n"
    with Shell(machine, user="root", cwd="/", command=["pi-agentctl", "rollback", "--no-canary"]) as shell:
        shell.expect("Put this policy back, and apply it")
        machine.write(POLICY_FILE, changed)
        apply(machine)
        shell.type("y\n")
        shell.expect("another command changed or applied the policy meanwhile")
    assert installed(machine) == changed


def test_damage_to_what_is_kept_stops_a_rollback_and_no_apply(applied):
    machine = applied
    machine.write(f"{APPLIED}/last.json", "{}", mode=0o600)
    assert "is damaged; remove it" in said(machine, "rollback", "--yes", status=INVALID)
    apply(machine)
    machine.root(["rm", "-r", APPLIED], check=True)
    assert "no earlier policy was applied" not in apply(machine)
    assert "no earlier policy was applied" in said(machine, "rollback", "--yes", status=NOTHING)
    machine.write(POLICY_FILE, OTHER)
    apply(machine)


def test_apply_at_the_same_time_is_refused(applied):
    for policy in (OTHER, STANDARD_POLICY):  # so that there is one to go back to
        applied.install_policy(policy)
    holder = applied.popen(["flock", "/run/pi-agentctl.lock", "sh", "-c", "echo held; sleep 30"], user="root", cwd="/")
    try:
        assert holder.stdout.readline() == b"held\n"
        for command in (["apply"], ["rollback", "--yes"], ["remove", "--yes"]):
            assert "another 'pi-agentctl apply' is running" in said(applied, *command, status=BUSY)
    finally:
        holder.kill_all()
        holder.wait()


# --- editing ---


def editor(machine, script):
    """An editor that does `script` to the file $1; what it does is known once it is there."""
    machine.write(EDITOR, f"#!/bin/sh\n{script}\n", mode=0o755)


@contextlib.contextmanager
def editing(machine, script, user="root", program="pi-agentctl edit", env=None):
    editor(machine, script)
    # Without colours and in one line, for what is expected below; tests/system/test_terminal_width.py is about both.
    plain = {"EDITOR": EDITOR, "NO_COLOR": "1", **(env or {})}
    with Shell(machine, user=user, cwd="/", command=["sh", "-c", f"stty cols 400; {program}; echo status=$?="], env=plain) as shell:
        yield shell


def test_edit_installs_what_is_valid_and_offers_to_apply(applied):
    with editing(applied, 'echo "network: loopback" >>"$1"') as shell:
        shell.expect(rb"the policy is changed\r\n.*Apply it now\? \(y or n\)")
        shell.type("y\n")
        shell.expect("status=0=", seconds=60)
    assert installed(applied) == OTHER and owner_and_mode(applied, POLICY_FILE) == "root:root 644"
    assert applied.root(["test", "-e", DRAFT]).returncode == 1
    assert "loopback" in applied.read(f"{APPLIED}/last.json").decode()


def test_edit_never_installs_a_mistake(applied):
    script = 'if grep -q "^netwrok" "$1"; then sed -i "s/^netwrok/network/" "$1"; else echo "netwrok: loopback" >>"$1"; fi'
    with editing(applied, script) as shell:
        shell.expect(rb"policy.yaml:\d+:1: netwrok.*\[e\]dit again, or \[d\]iscard the changes\?")
        shell.type("Q\n")  # what visudo would take for "whatever, save it"
        shell.expect(r"\[e\]dit again")
        assert installed(applied) == STANDARD_POLICY
        shell.type("e\n")
        shell.expect(r"Apply it now\?")
        shell.type("n\n")
        shell.expect("status=0=")
    assert installed(applied) == OTHER
    with editing(applied, 'echo "nonsense" >>"$1"') as shell:
        shell.expect(r"\[e\]dit again")
        shell.type("d\n")
        shell.expect("the changes are discarded, and the policy is unchanged\r\npi-agentctl: see: pi-agentctl explain E78\r\nstatus=78=")
    assert installed(applied) == OTHER and applied.root(["test", "-e", DRAFT]).returncode == 1


def test_edit_without_a_terminal_or_a_good_end_of_the_editor_keeps_the_policy(applied):
    for script, status, words in (
        ('echo nonsense >>"$1"', INVALID, "the changes are discarded"),
        ('echo "network: none" >>"$1"; exit 3', INVALID, "ended with status 3"),
        ('rm "$1"', 71, "No such file"),
        (":", 0, "the policy is as it was"),
    ):
        editor(applied, script)
        done = ctl(applied, "edit", env={"EDITOR": EDITOR})
        assert done.returncode == status and words in (done.stdout + done.stderr).decode(), done
        assert installed(applied) == STANDARD_POLICY
    editor(applied, 'echo "network: loopback" >>"$1"')
    done = ctl(applied, "edit", env={"EDITOR": EDITOR})
    assert done.returncode == 0 and b"the policy is changed" in done.stdout, done
    assert installed(applied) == OTHER


def test_one_editor_at_a_time_and_no_change_of_others_is_lost(applied):
    with editing(applied, 'echo "network: none" >>"$1"; echo open; read answer') as shell:
        shell.expect("open\r\n")
        assert "somebody is editing the policy" in said(applied, "edit", status=BUSY)
        applied.write(POLICY_FILE, STANDARD_POLICY + "network: loopback\n")
        shell.type("\n")
        shell.expect(r"another command changed the policy meanwhile; your draft is /etc/pi-agent/policy.yaml.edit, and the same command continues with it\r\npi-agentctl: see: pi-agentctl explain E75-changed\r\nstatus=75=")
    assert installed(applied) == OTHER
    assert b"network: none" in applied.read(DRAFT) and owner_and_mode(applied, DRAFT) == "root:root 600"
    with editing(applied, "true") as shell:
        shell.expect(r"k\(eep on with it\), d\(iscard it\), or x \(leave it\)\?")
        shell.type("k\n")
        shell.expect(r"-network: loopback\r\n +\+network: none\r\n.*y\(es\), n\(o\)")  # what it would undo
        shell.type("y\n")
        shell.expect(r"Apply it now\?")
        shell.type("n\n")
        shell.expect("status=0=")
    assert "network: none" in installed(applied)


PARTS = "/etc/pi-agent/policy.d"
PART = f"{PARTS}/net.yaml"


@pytest.fixture
def parts(applied):
    applied.root(["rm", "-rf", PARTS], check=True)  # empty, of another file's tests
    yield lambda: applied.root(f"cd {PARTS} && grep -r . | sort").stdout.decode().splitlines()
    applied.root(["rm", "-rf", PARTS], check=True)


def test_edit_begins_and_changes_a_file_of_policy_d(applied, parts):
    for script, words, now in (
        (":", "the policy is as it was", []),  # what says nothing is not made
        ('echo "network: loopback" >"$1"', "the policy is changed", ["net.yaml:network: loopback"]),
        ('grep -q loopback "$1" && echo "network: none" >"$1"', "the policy is changed", ["net.yaml:network: none"]),
    ):
        editor(applied, script)
        done = applied.root("umask 077; pi-agentctl edit net.yaml", env={"EDITOR": EDITOR})
        assert done.returncode == 0 and words in done.stdout.decode() and parts() == now, done
    assert owner_and_mode(applied, PARTS) == "root:root 755" and owner_and_mode(applied, PART) == "root:root 644"
    assert applied.root(["ls", "-A", PARTS]).stdout == b"net.yaml\n" and installed(applied) == STANDARD_POLICY
    assert answer(applied, "explain", "--user", "alice")["network"]["mode"] == "none"


def test_a_part_is_not_checked_alone(applied, parts):
    applied.root(f"mkdir {PARTS} && echo 'network: none' >{PART}", check=True)
    for directory, name in (("/", PART), (PARTS, "net.yaml"), ("/etc/pi-agent", "./policy.d/net.yaml")):
        done = applied.root(["pi-agentctl", "check", name], cwd=directory)
        assert done.returncode == USAGE and b"is a part of the installed policy" in done.stderr and b"edit NAME.yaml'" in done.stderr, done
    assert "edit users.d/NAME.yaml'" in said(applied, "check", "/etc/pi-agent/users.d/eve.yaml", status=USAGE)
    assert "policy is valid" in said(applied, "check")


def test_a_word_that_is_no_command_is_told_with_the_next(applied):
    assert said(applied, "chekc", status=USAGE).endswith("unknown command 'chekc'; did you mean 'check'?\n")
    assert said(applied, "stop", "--frob", status=USAGE).endswith("see: pi-agentctl help stop\n")


def test_what_does_not_fit_the_rest_of_the_policy_is_not_installed(applied, parts):
    for name, script, words in (
        ("net.yaml", 'echo "netwrok: none" >>"$1"', ("net.yaml:2:1: netwrok",)),
        (PART, 'printf "users:\\n  alice: {roots: [/srv]}\\n" >"$1"', (PART, "alice", "policy.yaml")),  # said in the main file already
        (POLICY_FILE, 'echo "network: [" >>"$1"', ("policy.yaml:",)),
    ):
        editor(applied, script)
        done = ctl(applied, "edit", name, env={"EDITOR": EDITOR})
        assert done.returncode == INVALID and all(word in done.stderr.decode() for word in (*words, "the changes are discarded")), done
        assert parts() == [] and installed(applied) == STANDARD_POLICY


def test_the_lock_and_the_draft_are_those_of_the_whole_policy(applied, parts):
    with editing(applied, 'echo "network: none" >"$1"; echo open; read answer', program="pi-agentctl edit net.yaml") as shell:
        shell.expect("open\r\n")
        for name in ((), ("other.yaml",)):
            assert "somebody is editing the policy" in said(applied, "edit", *name, status=BUSY)
        assert owner_and_mode(applied, PART + ".edit") == "root:root 600"
        applied.write(POLICY_FILE, STANDARD_POLICY + "git_identity: false\n")
        shell.type("\n")
        shell.expect(rf"another command changed the policy meanwhile; your draft is {PART}.edit, and the same command continues with it\r\npi-agentctl: see: pi-agentctl explain E75-changed\r\nstatus=75=")
    assert applied.root(["pi-agentctl", "check"]).returncode == 0  # a draft does not belong to it
    with editing(applied, "true", program="pi-agentctl edit net.yaml") as shell:
        shell.expect(r"k\(eep on with it\), d\(iscard it\), or x \(leave it\)\?")
        shell.type("k\n")
        shell.expect(r"\+network: none\r\n.*y\(es\), n\(o\)")
        shell.type("y\n")
        shell.expect(r"Apply it now\?")
        shell.type("n\n")
        shell.expect("status=0=")
    assert parts() == ["net.yaml:network: none"]


@pytest.mark.parametrize("name", ["net", "net.yml", ".net.yaml", ".yaml", "../sudoers.d/x.yaml", "/etc/sudoers.d/x.yaml", f"{PARTS}/../x.yaml", f"{PARTS}/sub/x.yaml", "/etc/passwd", ""])
def test_nothing_but_the_policy_can_be_edited(applied, name):
    editor(applied, 'echo "network: none" >"$1"; touch /run/edited')
    before = applied.root(["find", PARTS]).stdout
    done = ctl(applied, "edit", name, env={"EDITOR": EDITOR})
    assert done.returncode == USAGE and b"is not read as a part of the policy" in done.stderr, done
    assert applied.root(["find", PARTS]).stdout == before
    assert applied.root("test -e /run/edited").returncode == 1


def test_policy_d_that_others_can_write_is_refused(applied, parts):
    applied.root(["install", "-d", "-m", "0777", PARTS], check=True)
    editor(applied, ":")
    done = ctl(applied, "edit", "net.yaml", env={"EDITOR": EDITOR})
    assert done.returncode == INVALID and PARTS.encode() in done.stderr, done


@pytest.mark.parametrize("kept", ["EDITOR", "VISUAL", "SUDO_EDITOR"])
def test_a_caller_of_sudo_chooses_no_editor(applied, kept):
    """A rule that lets somebody edit the policy, and keeps the environment, must not run what that somebody names as root."""
    machine = applied
    machine.write("/etc/sudoers.d/zz-edit", "Defaults:eve env_keep += \"EDITOR VISUAL SUDO_EDITOR\"\neve ALL=(root) NOPASSWD: /usr/bin/pi-agentctl edit\n", mode=0o440)
    machine.write("/usr/bin/editor-of-host", "#!/bin/sh\necho the editor of the host\n", mode=0o755)
    existed = machine.root(["test", "-e", "/usr/bin/editor"]).returncode == 0
    if existed:
        machine.root(["mv", "/usr/bin/editor", "/usr/bin/editor-away"], check=True)
    machine.root(["mv", "/usr/bin/editor-of-host", "/usr/bin/editor"], check=True)
    try:
        editor(machine, "id -u >/tmp/smuggled")
        done = machine.run(["env", f"{kept}={EDITOR}", "sudo", "-n", "/usr/bin/pi-agentctl", "edit"], user="eve")
        assert done.returncode == 0 and b"the editor of the host" in done.stdout, done
        assert machine.root(["test", "-e", "/tmp/smuggled"]).returncode == 1
    finally:
        machine.root(["rm", "-f", "/etc/sudoers.d/zz-edit", "/usr/bin/editor", "/tmp/smuggled"], check=True)
        if existed:
            machine.root(["mv", "/usr/bin/editor-away", "/usr/bin/editor"], check=True)


# --- a first policy ---


def test_init_writes_a_policy_of_the_people_and_directories_of_this_host(applied):
    machine = applied
    text = said(machine, "init", "--output", "-")
    assert "  alice:\n    roots: [~/projects]\n" in text and "  bob:\n    roots: [~/work]\n" in text, text
    assert "pi-agent" not in [line.strip(" #:") for line in text.splitlines()] and "root:" not in text and "nobody" not in text
    with contextlib.ExitStack() as stack:
        stack.callback(machine.install_policy, STANDARD_POLICY)
        machine.root(["rm", POLICY_FILE], check=True)
        assert "wrote /etc/pi-agent/policy.yaml" in said(machine, "init")
        assert owner_and_mode(machine, POLICY_FILE) == "root:root 644" and installed(machine) == text
        assert "policy is valid: " in said(machine, "check")
        assert "exists already and is not overwritten" in said(machine, "init", status=USAGE)
        assert installed(machine) == text
        said(machine, "apply")
        assert pi(machine, "--version").returncode == 0


def test_init_for_whom_and_where_is_said(applied):
    machine = applied
    text = said(machine, "init", "--user", "eve", "--root", "/srv/devs", "--output", "-")
    assert "  eve:\n    roots: [/srv/devs]\n" in text and "alice" not in text, text
    machine.write("/root/draft.yaml", text)
    assert "policy is valid: 1 entry authorised" in said(machine, "check", "/root/draft.yaml")
    for arguments, words in (
        (["--user", "nobody-here"], "this host has no user"),
        (["--user", "root"], "root cannot run the agent"),
        (["--root", "/srv/devs"], "--root needs --user NAME"),
        (["--user", "eve"], "no user of this host has a directory"),
        (["--user", "eve", "--root", "/"], "cannot be one"),
        (["--user", "eve", "--root", "/no-such-place"], "cannot be one"),
        (["--user", "alice", "--root", "/srv/devs", "--output", "/root/draft.yaml"], "exists already"),
    ):
        assert words in said(machine, "init", *(["--output", "-"] if "--output" not in arguments else []), *arguments, status=USAGE), arguments
    assert machine.read("/root/draft.yaml").decode() == text
    done = machine.run(["pi-agentctl", "init", "--user", "alice", "--root", "/home/alice/projects", "--output", "/etc/pi-agent/mine.yaml"], user="alice")
    assert done.returncode == DENIED, done
    machine.root(["rm", "/root/draft.yaml"], check=True)
    done = ctl(machine, "init", "--user", "alice", "--root", "/srv/devs", "--output", "/home/alice/draft.yaml")
    assert done.returncode == INVALID and b"cannot be trusted" in done.stderr, done
    done = machine.run(["pi-agentctl", "init", "--user", "alice", "--root", "/home/alice/projects", "--output", "draft.yaml"], user="alice")
    assert done.returncode == 0 and machine.run(["rm", "draft.yaml"], user="alice").returncode == 0, done


# --- what is installed ---


def test_sudoers_prints_what_apply_installs(applied):
    machine = applied
    assert ctl(machine, "apply", "--show-rule").stdout == machine.read(RULE)
    assert machine.run(["pi-agentctl", "apply", "--show-rule"], user="eve").stdout == machine.read(RULE)
    machine.root(["mv", "/usr/sbin/visudo", "/usr/sbin/visudo-away"], check=True)
    try:
        done = ctl(machine, "apply", "--show-rule")
        assert (done.returncode, done.stdout) == (0, machine.read(RULE)) and b"nobody has checked this" in done.stderr, done
    finally:
        machine.root(["mv", "/usr/sbin/visudo-away", "/usr/sbin/visudo"], check=True)


def test_version_names_all_that_matters(applied):
    machine = applied
    shown = answer(machine, "--version")
    release = machine.root(["uname", "-r"], check=True).stdout.decode().strip()
    systemd = machine.root(["systemctl", "--version"], check=True).stdout.decode().split()[1]
    agent = pi(machine, "--version").stdout.decode().strip()
    assert shown["kernel"]["version"] == f"Linux {release}" and shown["systemd"]["version"].startswith(systemd)
    assert shown["agent"]["version"] == agent and agent
    assert ctl(machine, "--version").stdout.decode().startswith(f"pi-agent: {shown['pi_agent']['version']}\n")
    done = machine.run(["pi-agentctl", "--version"], user="alice")
    assert done.returncode == 0 and b"only root can ask" in done.stdout, done


def test_only_root_changes_anything(machine):
    for command in (["edit"], ["rollback"], ["remove"], ["state", "prune"], ["state", "reset", "--user", "alice"], ["state", "export", "--user", "alice", "/tmp/x"]):
        done = machine.run(["pi-agentctl", *command], user="alice", cwd=DEMO)
        assert done.returncode == DENIED and b"only root can run it" in done.stderr, done

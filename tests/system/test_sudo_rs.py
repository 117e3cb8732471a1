"""A host whose sudo is sudo-rs: pi starts as usual, other rules are kept from the runner, and doctor says what stands in the way."""

import json

import pytest
from launching import DEMO, KILLS_OF_OURS, PLAYING_POLICY, agent_says, finish, pi, session

RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
RULE = "/etc/sudoers.d/pi-agent"
EARLIER, LATER = "/etc/sudoers.d/aa-site", "/etc/sudoers.d/zz-site"


@pytest.fixture(scope="module")
def host(playing, sudo_rs):
    playing.install_policy(PLAYING_POLICY)
    assert playing.run("sudo --version 2>&1", user="alice").stdout.startswith(b"sudo-rs ")
    return playing


def doctor(machine):
    done = machine.root(["pi-agentctl", "doctor", "--json"])
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == report["good"], done
    return {fault["about"] for fault in report["faults"]}, report


@pytest.fixture
def site(host):
    """site(file, text) is one more file of rules, for one test."""
    yield lambda file, text: host.write(file, text + "\n", mode=0o440)
    host.root(["rm", "-f", EARLIER, LATER], check=True)


def test_pi_starts_and_doctor_finds_nothing(host):
    assert agent_says(host, "sh", "id -un") == b"pi-agent-alice\n"
    assert pi(host, "sh", "exit 42", input=b"").returncode == 42
    assert doctor(host)[1]["faults"] == []
    assert host.root(["visudo-rs", "-c"]).returncode == 0


def test_a_terminal_arrives(host):
    done = host.run(["script", "-qec", "stty rows 33 cols 77; pi sh 'tty; stty size; exit 5'", "/dev/null"], cwd=DEMO)
    assert done.returncode == 5 and b"/dev/pts/0\r\n33 77\r\n" in done.stdout, done


KILLS = {"runner": KILLS_OF_OURS["runner"], "sudo": "pkill -9 -x sudo"}


@pytest.mark.parametrize("killed", KILLS)
def test_a_session_ends_with_its_runner_and_its_sudo(host, killed):
    with session(host, "sh", "echo ready; sleep 300") as process:
        host.root(KILLS[killed], check=True)
        status, _, err = finish(process)
    assert status == 71 and b"the session ended with it" in err, (status, err)  # and nothing_is_left looks for the rest


def test_inside_sudo_is_ours_though_the_hosts_is_a_link(host):
    done = pi(host, "sh", "sudo id -un; /usr/bin/sudo id -un; sudo-rs -n id -un")
    assert done.stdout == b"pi-agent-alice\n" * 3 and done.stderr.count(b"sudo is a no-op shim") == 3, done


@pytest.mark.parametrize("user", ["alice", "bob", "carol"])
def test_one_program_without_arguments(host, user):
    for command, allowed in (([RUNNER], True), ([RUNNER, "x"], False), ([RUNNER, ""], False), (["/usr/bin/id"], False)):
        done = host.run(["sudo", "-n", "-l", *command], user=user)
        assert (done.returncode == 0) == allowed, (command, done)
    assert host.run(["sudo", "-n", RUNNER, "x"], user=user).returncode == 1
    assert host.run(["sudo", "-n", "-l", RUNNER], user="eve").returncode != 0


def test_the_one_line_for_very_many_users_is_for_everybody_but_agents(host):
    """As apply writes it for more than 500 entries (tests/attack/test_one_rule.py has it with the original)."""
    text = host.read(RULE).decode()
    head = "".join(line for line in text.splitlines(keepends=True) if "NOPASSWD" not in line)
    host.write(RULE, f'{head}ALL, !%pi-agent ALL=(root) NOPASSWD: {RUNNER} ""\n', mode=0o440)
    try:
        assert host.root(["visudo-rs", "-c"]).returncode == 0
        for user, allowed in (("alice", True), ("eve", True), ("pi-agent-alice", False)):
            done = host.run(["sudo", "-n", "-l", RUNNER], user=user, cwd="/")
            assert (done.returncode == 0) == allowed, (user, done)
        assert agent_says(host, "sh", "echo ran") == b"ran\n"
        refused = pi(host, "sh", "echo ran", user="eve", cwd="/srv/devs")
        assert refused.returncode == 77 and b"does not authorise eve" in refused.stderr, refused
    finally:
        host.write(RULE, text, mode=0o440)


def test_the_rule_that_is_printed_was_checked(host):
    shown = host.root(["pi-agentctl", "apply", "--show-rule"], check=True)
    assert shown.stdout == host.read(RULE) and shown.stderr == b"", shown


@pytest.mark.parametrize("rule", ["Defaults use_pty", "Defaults !env_reset", 'Defaults env_keep += "EVIL LD_LIBRARY_PATH"', 'Defaults env_check += "EVIL"',
                                  "bob ALL=(ALL) NOPASSWD: ALL", "alice ALL=(bob) ALL", "alice ALL=(root) NOPASSWD: /usr/bin/id"])
@pytest.mark.parametrize("file", [EARLIER, LATER])
def test_what_sites_write_is_no_hindrance(host, site, file, rule):
    site(file, rule)
    ran = pi(host, "sh", "printenv EVIL; echo ran", env={"EVIL": "1"})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"ran\n", b""), ran
    assert doctor(host)[1]["faults"] == []


@pytest.mark.parametrize("rule", ["Defaults requiretty", "Defaults log_output", "Defaults setenv"])
def test_settings_that_it_does_not_know_are_told_and_do_no_harm(host, site, rule):
    site(LATER, rule)
    assert agent_says(host, "sh", "echo ran") == b"ran\n"
    about, report = doctor(host)
    assert about == {"sudo-configuration"} and "visudo-rs -c refuses" in report["faults"][0]["what"], report
    host.root(["rm", RULE], check=True)
    refused = host.root(["pi-agentctl", "apply", "--no-canary"])
    there = host.root(["test", "-e", RULE]).returncode == 0
    host.root(["rm", LATER], check=True)
    host.root(["pi-agentctl", "apply", "--no-canary"], check=True)
    assert refused.returncode == 78 and not there and b"visudo-rs -c refuses the sudo configuration" in refused.stderr, refused


@pytest.mark.parametrize(("rule", "about"), [
    ("alice ALL=(ALL) ALL", "sudo-rule-shadowed"), (f"alice ALL=(root) !{RUNNER}", "sudo-rule-shadowed"), (f"alice ALL=(root) NOPASSWD: {RUNNER}", "sudo-rule-wider"),
    (f'alice ALL=(root) SETENV: NOPASSWD: {RUNNER} ""', "sudo-environment"), (f'Defaults!{RUNNER} env_keep += "EVIL"', "sudo-environment"),
    (f"Defaults!{RUNNER} use_pty", "sudo-terminal"),
])  # fmt: skip
def test_a_rule_that_weakens_ours_is_found(host, site, rule, about):
    site(LATER, rule)
    found, report = doctor(host)
    assert found == {about}, report


def test_a_rule_that_is_not_read_is_found_and_not_installed(host):
    host.root("sed /includedir/d /etc/sudoers >/etc/sudoers-rs && chmod 440 /etc/sudoers-rs", check=True)  # it reads this one instead
    try:
        about, report = doctor(host)
        host.root(["rm", RULE], check=True)
        refused = host.root(["pi-agentctl", "apply", "--no-canary"])
        there = host.root(["test", "-e", RULE]).returncode == 0
    finally:
        host.root(["rm", "/etc/sudoers-rs"], check=True)
        host.root(["pi-agentctl", "apply", "--no-canary"], check=True)
    assert about == {"sudo-rule"} and "does not read" in report["faults"][0]["what"] and "/etc/sudoers-rs" in report["faults"][0]["remedy"], report
    assert refused.returncode == 78 and not there and b"add '@includedir /etc/sudoers.d' to /etc/sudoers-rs" in refused.stderr, refused


def test_without_cvtsudoers_doctor_says_what_to_install(host):
    host.root(["mv", "/usr/bin/cvtsudoers", "/usr/bin/cvtsudoers.away"], check=True)
    try:
        about, report = doctor(host)
    finally:
        host.root(["mv", "/usr/bin/cvtsudoers.away", "/usr/bin/cvtsudoers"], check=True)
    assert about == {"sudo-configuration"} and "install the package sudo" in report["faults"][0]["remedy"], report


def test_each_sudo_gets_its_own_words(host):
    text = host.read(RULE).decode()
    assert "setenv" not in text
    host.root(["ln", "-sfn", "sudo.original", "/usr/bin/sudo"], check=True)
    try:
        assert doctor(host)[0] == {"sudo-rule"}
        host.root(["pi-agentctl", "apply", "--no-canary"], check=True)
        assert "!env_keep, !env_check, !use_pty\n" in host.read(RULE).decode() and "!setenv" in host.read(RULE).decode()
        assert doctor(host)[0] == set()
    finally:
        host.root(["ln", "-sfn", "sudo-rs", "/usr/bin/sudo"], check=True)
        both = agent_says(host, "sh", "echo ran")  # still with the original's words: the line that matters is known to both
        host.root(["pi-agentctl", "apply", "--no-canary"], check=True)
    assert both == b"ran\n" and host.read(RULE).decode() == text

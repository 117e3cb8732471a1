"""pi-agentctl init at a terminal: four questions, an answer to each by Enter, a key that nobody sees, and nothing left behind by Ctrl-C."""

import contextlib
import termios

import pytest
from administering import NOTHING, SYSTEM_FAILURE, USAGE, ctl, said
from launching import DENIED, POLICY_FILE, STANDARD_POLICY, owner_and_mode
from shells import Shell

KEYS = "/etc/pi-agent/keys.env"
OUTSIDE = "/etc/pi-agent/anthropic.key"
KEY = "sk-ant-a-key-of-the-test_0123456789"
QUESTIONS = (rb"1\. Who may run the agent\?", rb"2\. Where may they start the agent\?", rb"3\. Which network may sessions reach\?", rb"4\. Which key does the agent use")


@pytest.fixture
def fresh(machine):
    """A host without a policy and without a key."""
    machine.root(["rm", "-f", POLICY_FILE, KEYS, OUTSIDE], check=True)
    yield machine
    machine.root(["rm", "-f", POLICY_FILE, KEYS, OUTSIDE], check=True)
    machine.install_policy(STANDARD_POLICY)


@contextlib.contextmanager
def asking(machine, arguments=""):
    with Shell(machine, user="root", cwd="/", columns=200, command=["sh", "-c", f"pi-agentctl init {arguments}; echo status=$?="]) as shell:
        yield shell


def policy_and_key(machine):
    return [file for file in (POLICY_FILE, KEYS, OUTSIDE) if machine.root(["test", "-e", file]).returncode == 0]


def test_enter_four_times_makes_a_policy_that_check_takes(fresh):
    with asking(fresh) as shell:
        for question in QUESTIONS:
            shell.expect(question)
            shell.expect(rb"\[[^\]]+\] $")
            shell.type("\n")
        shell.expect(rb"wrote /etc/pi-agent/policy.yaml\r\n.*pi-agentctl check says:\r\n.*  (?:\x1b\[32m)?policy is valid(?:\x1b\[0m)?: .*Next:\r\n.*sudo pi-agentctl apply.*types 'pi' in a directory below")
        shell.expect("status=0=")
    text = fresh.read(POLICY_FILE).decode()
    assert "  alice:\n    roots: [~/projects]\n" in text and "  bob:\n    roots: [~/work]\n" in text and "    - api.anthropic.com\n" in text, text
    assert "full" not in [line.split("#")[0].split(":")[-1].strip() for line in text.splitlines()]  # a new host is not open unless somebody says so
    assert "\nenv_files:" not in text and owner_and_mode(fresh, POLICY_FILE) == "root:root 644"
    assert policy_and_key(fresh) == [POLICY_FILE]
    assert "policy is valid: " in said(fresh, "check")


def test_a_wrong_answer_is_said_and_asked_again(fresh):
    with asking(fresh) as shell:
        for question, wrong, why, right in (
            (QUESTIONS[0], "nobody-here", "this host has no user nobody-here", "eve"),
            (QUESTIONS[1], "/no-such-place", "a root of eve cannot be one: .*does not exist", "/srv/devs"),
            (QUESTIONS[2], "al1", "al1 is not a network; answer hosts, full", "127.0.0.0/8, ::1/128"),
            (QUESTIONS[3], "anthropi", "anthropi is not a provider", "none"),
        ):
            shell.expect(question)
            shell.expect(rb"\[[^\]]+\] $")
            shell.type(wrong + "\n")
            shell.expect(why)
            shell.expect(rb"\[[^\]]+\] $")
            shell.type(right + "\n")
        shell.expect("status=0=")
    text = fresh.read(POLICY_FILE).decode()
    assert "  eve:\n    roots: [/srv/devs]\n" in text and "alice" not in text and 'network: ["127.0.0.0/8", "::1/128"]' in text, text


def test_answers_that_name_nothing_are_asked_again(fresh):
    with asking(fresh, "--network full --key none") as shell:
        for question, answers in (
            (QUESTIONS[0], ((",", "name at least one user"), ("root", "root cannot run the agent"), ("alice, alice", None))),
            (QUESTIONS[1], ((",", "name at least one directory"), ("projects", "projects is not a whole path"), ("/", "cannot be one"), ("~/projects", None))),
        ):
            shell.expect(question)
            for answer, why in answers:
                shell.expect(rb"\[[^\]]+\] $")
                shell.type(answer + "\n")
                if why:
                    shell.expect(why)
        shell.expect("status=0=")
    assert "users:\n" in fresh.read(POLICY_FILE).decode() and fresh.read(POLICY_FILE).decode().count("  alice:\n    roots: [~/projects]\n") == 1


def test_a_key_is_not_shown_and_only_root_can_read_it(fresh):
    with asking(fresh, "--user alice --root /home/alice/projects --network full") as shell:
        shell.expect(QUESTIONS[3])
        shell.expect(rb"\[none\] $")
        shell.type("anthropic\n")
        shell.expect(rb"The value of ANTHROPIC_API_KEY \(it is not shown\): $")
        shell.settle()
        assert not shell.settings()[3] & termios.ECHO
        shell.type(KEY + "\n")
        shell.expect(rb"wrote /etc/pi-agent/keys.env, which only root can read\r\nwrote /etc/pi-agent/policy.yaml")
        shell.expect("status=0=")
        assert shell.settings()[3] & termios.ECHO
        assert KEY.encode() not in shell.seen
    assert fresh.read(KEYS).decode() == f"ANTHROPIC_API_KEY={KEY}\n" and owner_and_mode(fresh, KEYS) == "root:root 600"
    assert f"\nenv_files: [{KEYS}]\n" in fresh.read(POLICY_FILE).decode() and KEY.encode() not in fresh.read(POLICY_FILE)
    assert fresh.run(["cat", KEYS], user="alice").returncode != 0
    assert "policy is valid: " in said(fresh, "check")


def test_a_key_stays_outside_of_sessions_where_they_reach_hosts_alone(fresh):
    with asking(fresh, "--user alice --root /home/alice/projects") as shell:
        shell.expect(QUESTIONS[2])
        shell.expect(rb"\[hosts\] $")
        shell.type("github.com, *.example.org\n")
        shell.expect(QUESTIONS[3])
        shell.expect(rb"\[none\] $")
        shell.type("anthropic\n")
        shell.expect(rb"The value of ANTHROPIC_API_KEY \(it is not shown\): $")
        shell.settle()
        shell.type(KEY + "\n")
        shell.expect(rb"wrote /etc/pi-agent/anthropic.key, which only root can read\r\nwrote /etc/pi-agent/policy.yaml")
        shell.expect("status=0=")
        assert KEY.encode() not in shell.seen
    assert fresh.read(OUTSIDE).decode() == f"{KEY}\n" and owner_and_mode(fresh, OUTSIDE) == "root:root 600"
    text = fresh.read(POLICY_FILE).decode()
    assert f"providers:\n  anthropic: {{key_file: {OUTSIDE}}}\n" in text and "\nenv_files:" not in text and KEY not in text, text
    assert policy_and_key(fresh) == [POLICY_FILE, OUTSIDE]
    assert "policy is valid: " in said(fresh, "check")


def test_a_file_of_keys_says_which_hosts_a_session_needs(fresh):
    fresh.write(KEYS, "OPENAI_API_KEY=x\n", mode=0o600)
    said(fresh, "init", "--user", "alice", "--env-file", KEYS)
    text = fresh.read(POLICY_FILE).decode()
    assert "  hosts:\n    - api.openai.com\n" in text and "anthropic" not in text and f"\nenv_files: [{KEYS}]\n" in text, text


def test_a_provider_whose_host_is_not_known_is_no_reason_to_write_the_hosts_of_others(fresh):
    """Its agent would start, and never reach its model."""
    for way, name in ((["--key", "mistral"], b"mistral"), (["--env-file", KEYS], b"MISTRAL_API_KEY")):
        done = fresh.root(["pi-agentctl", "init", "--user", "alice", *way], input=f"{KEY}\n".encode())
        assert done.returncode == USAGE and b"which hosts " + name in done.stderr and b"--network api.mistral.ai" in done.stderr, done
        assert POLICY_FILE not in policy_and_key(fresh), done
        fresh.write(KEYS, "OPENAI_API_KEY=x\nMISTRAL_API_KEY=x\n", mode=0o600)
    said(fresh, "init", "--user", "alice", "--env-file", KEYS, "--network", "api.openai.com, api.mistral.ai")
    assert "    - api.mistral.ai\n" in fresh.read(POLICY_FILE).decode()


def test_an_empty_key_goes_back_to_the_question(fresh):
    with asking(fresh, "--user alice --root /home/alice/projects --network full") as shell:
        shell.expect(rb"\[none\] $")
        for value, why in (("", "the key is empty"), ("two words", "this one is not written")):
            shell.type("openai\n")
            shell.expect(rb"not shown\): $")
            shell.settle()
            shell.type(value + "\n")
            shell.expect(why)
            shell.expect(rb"\[none\] $")
        shell.type("\n")
        shell.expect("status=0=")
        assert b"two words" not in shell.seen
    assert policy_and_key(fresh) == [POLICY_FILE]


@pytest.mark.parametrize("answered", range(5))
def test_ctrl_c_at_any_question_leaves_nothing_behind(fresh, answered):
    """The fifth place is the key itself, where the terminal does not echo."""
    with asking(fresh) as shell:
        before = shell.settings()
        for question in QUESTIONS[: answered + 1]:
            shell.expect(question)
            shell.expect(rb"\[[^\]]+\] $")
            if question is not QUESTIONS[min(answered, 3)]:
                shell.type("\n")
        if answered == 4:
            shell.type("anthropic\n")
            shell.expect(rb"not shown\): $")
            shell.settle()
            shell.type("half-a-key")
        shell.type(b"\x03")
        shell.process.wait(timeout=15)
        assert b"wrote" not in shell.seen
        assert shell.settings()[3] == before[3]
    assert policy_and_key(fresh) == []
    assert fresh.root(["find", "/etc/pi-agent", "-name", "*.new"]).stdout == b""


def test_the_end_of_input_changes_nothing(fresh):
    with asking(fresh) as shell:
        shell.expect(QUESTIONS[0])
        shell.expect(rb"\[[^\]]+\] $")
        shell.type(b"\x04")
        shell.expect(rf"nothing is changed\r\nstatus={NOTHING}=")
    assert policy_and_key(fresh) == []


def test_a_user_without_a_project_directory_gets_one_of_their_own(fresh):
    fresh.root(["useradd", "--create-home", "--shell", "/bin/bash", "dave"], check=True)
    try:
        with asking(fresh, "--user dave --network full --key none") as shell:
            shell.expect(rb"dave: ~/projects \(does not exist yet; init creates it\)")
            shell.expect(rb"\[as listed\] $")
            assert fresh.root(["test", "-e", "/home/dave/projects"]).returncode == 1
            shell.type("\n")
            shell.expect(rb"created /home/dave/projects, which belongs to dave\r\n")
            shell.expect("status=0=")
        assert owner_and_mode(fresh, "/home/dave/projects").startswith("dave:dave ")
        assert "  dave:\n    roots: [~/projects]\n" in fresh.read(POLICY_FILE).decode()
    finally:
        fresh.root(["userdel", "--remove", "dave"])


def test_a_link_in_a_home_leads_root_nowhere(fresh):
    """What dave cannot create, init does not create for him; and no policy is written then."""
    fresh.root(["useradd", "--create-home", "--shell", "/bin/bash", "dave"], check=True)
    fresh.root("ln -s /etc/pi-agent/made-by-init /home/dave/projects", check=True)
    try:
        with asking(fresh, "--user dave --network full --key none") as shell:
            shell.expect(rb"\[as listed\] $")
            shell.type("\n")
            shell.expect(rf"dave cannot create /home/dave/projects.*status={SYSTEM_FAILURE}=")
        assert policy_and_key(fresh) == []
        assert fresh.root(["test", "-e", "/etc/pi-agent/made-by-init"]).returncode == 1
    finally:
        fresh.root(["userdel", "--remove", "dave"])


def test_flags_answer_every_question_and_yes_asks_none(fresh):
    with asking(fresh, "--yes") as shell:
        shell.expect(rb"wrote /etc/pi-agent/policy.yaml; look at it, then run 'pi-agentctl apply'\r\nstatus=0=")
        assert b"1. Who" not in shell.seen
    fresh.root(["rm", POLICY_FILE], check=True)
    done = ctl(fresh, "init", "--user", "alice", "--root", "~/projects", "--network", "loopback", "--key", "anthropic", input=f"{KEY}\nmore\n".encode())
    assert done.returncode == 0 and KEY.encode() not in done.stdout + done.stderr, done
    assert fresh.read(KEYS).decode() == f"ANTHROPIC_API_KEY={KEY}\n" and owner_and_mode(fresh, KEYS) == "root:root 600"
    text = fresh.read(POLICY_FILE).decode()
    assert "\nnetwork: loopback\n" in text and f"\nenv_files: [{KEYS}]\n" in text, text
    fresh.root(["rm", POLICY_FILE], check=True)
    assert f"{KEYS} exists already and is not overwritten" in said(fresh, "init", "--network", "full", "--key", "openai", status=USAGE)
    assert policy_and_key(fresh) == [KEYS]
    said(fresh, "init", "--user", "alice", "--env-file", KEYS)
    assert f"\nenv_files: [{KEYS}]\n" in fresh.read(POLICY_FILE).decode()


def test_a_file_of_keys_that_exists_is_the_answer_by_enter(fresh):
    fresh.write(KEYS, "ANTHROPIC_API_KEY=x\n", mode=0o600)
    with asking(fresh, "--user alice --root /home/alice/projects --network full") as shell:
        shell.expect(rb"\[/etc/pi-agent/keys.env\] $")
        shell.type("openai\n")
        shell.expect("exists already and is not overwritten")
        shell.expect(rb"\[/etc/pi-agent/keys.env\] $")
        shell.type("\n")
        shell.expect("status=0=")
    assert f"\nenv_files: [{KEYS}]\n" in fresh.read(POLICY_FILE).decode() and fresh.read(KEYS) == b"ANTHROPIC_API_KEY=x\n"


def test_what_stands_in_the_way_is_said_before_the_first_question(fresh):
    for arguments, words in (
        (["--key", "anthropic", "--env-file", KEYS], "give one of them"),
        (["--key", "anthropic", "--output", "-"], "with --output give --env-file FILE"),
        (["--user", "alice", "--network", "fll"], "fll is not a network"),
        (["--user", "alice", "--network", "https://a.example"], "is a URL"),
        (["--user", "alice", "--network", ","], "name a network"),
        (["--user", "alice", "--key", "nobodys"], "nobodys is not a provider"),
    ):
        assert words in said(fresh, "init", *arguments, status=USAGE), arguments
    assert policy_and_key(fresh) == []
    done = fresh.run(["pi-agentctl", "init"], user="alice")
    assert done.returncode == DENIED and b"only root can write /etc/pi-agent/policy.yaml" in done.stderr, done
    fresh.write(POLICY_FILE, "# mine\n")
    with asking(fresh) as shell:
        shell.expect(rf"/etc/pi-agent/policy.yaml exists already and is not overwritten; to change it: sudo pi-agentctl edit\r\n\x1b\[1;31mpi-agentctl:\x1b\[0m see: pi-agentctl explain E64\r\nstatus={USAGE}=")
        assert b"1. Who" not in shell.seen
    assert fresh.read(POLICY_FILE) == b"# mine\n"


def test_where_the_policy_cannot_be_written_no_key_stays(fresh):
    """Somebody else writes the policy while the key is typed."""
    with asking(fresh, "--user alice --root /home/alice/projects --network full --key anthropic") as shell:
        shell.expect(rb"not shown\): $")
        shell.settle()
        fresh.write(POLICY_FILE, "# theirs\n")
        shell.type(KEY + "\n")
        shell.expect(rf"exists already and is not overwritten.*status={USAGE}=")
    assert policy_and_key(fresh) == [POLICY_FILE] and fresh.read(POLICY_FILE) == b"# theirs\n"

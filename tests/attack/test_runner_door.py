"""How the runner is started: by whom, with which standard input, identity and namespaces. Each wrong way is refused."""

import contextlib

import pytest
from target import DEMO, Outcome

pytestmark = [pytest.mark.position("user"), pytest.mark.usefixtures("nothing_left")]

DENIED = 77
SUDOERS = "/etc/sudoers.d/attack"
ASK = "lambda c, s: ask(c, s, ['id', '-un'])"


def speaking(script, user="alice", first=""):
    """The attack that is one call of inside/client.py, and succeeds when an agent ran; `first` is a script before it."""

    def attack(target):
        answer = target.play(f"{first}\ntell({script})", user=user)
        return Outcome(answer["ended"] is not None, answer)

    return attack


def refused(outcome, sentence, status=DENIED):
    assert outcome.seen["status"] == status, outcome
    assert sentence in outcome.seen["said"], outcome


def expect_refusal(target, script, sentence, user="alice", status=DENIED):
    """For what cannot be taken out, because the kernel or sudo says no too, or because nothing would be left to work with."""
    outcome = speaking(script, user)(target)
    assert not outcome.succeeded, outcome
    refused(outcome, sentence, status)


@contextlib.contextmanager
def sudo_rule(target, text):
    target.machine.write(SUDOERS, text, mode=0o440)
    try:
        yield
    finally:
        target.machine.root(["rm", SUDOERS], check=True)


@pytest.mark.position("tests")
def test_the_conversation_of_these_tests_is_the_wrappers(product):
    answer = product.play(f"tell(call({ASK}))")
    assert (answer["status"], answer["ended"], answer["out"]) == (0, 0, "pi-agent\n"), answer


def test_called_by_a_user_directly(product, right_call_seen):
    expect_refusal(product, f"call({ASK}, argv=DIRECT)", "only root can run this program")


@pytest.mark.position("outsider")
def test_called_by_a_user_who_is_not_in_the_policy(product, control_seen):
    answer = product.play(f"tell(call({ASK}))", user="eve")
    assert answer["status"] == 1 and answer["ended"] is None and "sudo" in answer["said"], answer
    assert product.play(f"tell(call({ASK}))")["ended"] == 0
    control_seen("the same call by a user of the policy runs an agent")


def test_sudo_refuses_an_argument_and_so_does_the_runner(prove, product, weak):
    script = f"call({ASK}, argv=[*SUDO, 'x'])"
    on = speaking(script)(product)
    assert not on.succeeded and on.seen["status"] == 1 and "sudo" in on.seen["said"], on
    # Even where an administrator's own rule lets arguments through.
    rule = "alice ALL=(root) NOPASSWD: /usr/libexec/pi-agent/pi-agent-runner\n"
    with sudo_rule(product, rule), sudo_rule(weak, rule):
        on, _ = prove(speaking(script), "no-arguments")
    refused(on, "takes no arguments")


STANDARD_INPUTS = {
    "a file": "open('/etc/passwd')",
    "a pipe": "os.pipe()[0]",
    "the null device": "open('/dev/null')",
    "a directory": "os.open('/tmp', os.O_RDONLY)",
    "a path descriptor": "os.open('/tmp', os.O_PATH)",
    "a terminal": "os.openpty()[1]",
    "an internet socket": "socket.socket(socket.AF_INET)",
}


@pytest.mark.parametrize("kind", STANDARD_INPUTS)
def test_standard_input_is(kind, product, right_call_seen):
    expect_refusal(product, f"call(None, stdin={STANDARD_INPUTS[kind]})", "standard input is")


def test_standard_input_is_closed(product, right_call_seen):
    expect_refusal(product, "call(None, prepare=lambda: os.close(0))", "standard input is")


def test_standard_input_is_a_stream_socket(prove):
    # Slowly, so that packets stay apart on a stream.
    slowly = """
def slowly(channel, stdio):
    body = request(["id"])
    send(channel, number(RECORD_MAGIC) + number(len(body)), [os.open(DEMO, os.O_PATH), *stdio.fds()])
    time.sleep(1)
    channel.send(body)
"""
    on, _ = prove(speaking("call(slowly, kind=socket.SOCK_STREAM)", first=slowly), "channel-type")
    refused(on, "is a socket, but not one of pi")


@pytest.mark.parametrize(("maker", "uid"), [("another user", 1001), ("root", 0)])
def test_the_socket_was_made_by(maker, uid, prove):
    script = f"call({ASK}, pair=socket_made_by({uid}), prepare=becoming('alice'))"
    on, _ = prove(speaking(script, user="root"), "peer-credentials")
    refused(on, f"was made by uid {uid}, but sudo was called by uid 1000")


@pytest.mark.position("host")
def test_root_without_a_request(product, right_call_seen):
    expect_refusal(product, "call(None, argv=DIRECT)", "not called through sudo", user="root")
    script = "call(None, argv=DIRECT, pair=socket_made_by(1000), env={'SUDO_UID': '1000'})"
    expect_refusal(product, script, "closed before a request came", user="root")
    expect_refusal(product, "call(None)", "closed before a request came")


def test_root_forges_the_variables_of_sudo(prove):
    forged = "{'SUDO_UID': '1000', 'SUDO_GID': '1000', 'SUDO_USER': 'alice', 'SUDO_COMMAND': '/bin/sh'}"
    on, _ = prove(speaking(f"call({ASK}, argv=DIRECT, env={forged})", user="root"), "peer-credentials")
    refused(on, "was made by uid 0, but sudo was called by uid 1000")


def test_the_other_variables_of_sudo_change_nothing(product):
    forged = "{'SUDO_UID': '1000', 'SUDO_GID': '0', 'SUDO_USER': 'bob', 'SUDO_COMMAND': 'x', 'HOME': '/root', 'PATH': '/tmp'}"
    script = f"tell(call({ASK}, argv=DIRECT, pair=socket_made_by(1000), env={forged}))"
    answer = product.play(script, user="root")
    assert answer["ended"] == 0, answer


# strtoul would make 1000 of each: with leading characters, beyond 32 or 64 bits, or followed by others.
@pytest.mark.parametrize("text", ["01000", "+1000", " 1000", "1000x", "1000\n", "4294968296"])
def test_the_uid_is_written_as(text, prove):
    script = f"call({ASK}, argv=DIRECT, pair=socket_made_by(1000), env={{'SUDO_UID': {text!r}}})"
    on, _ = prove(speaking(script, user="root"), "strict-uid")
    refused(on, "SUDO_UID is not a user id")


@pytest.mark.parametrize("text", ["", "-1", "4294967295", "0x3e8", "alice", "18446744073709552616"])
def test_the_uid_is_nobodys(text, product, right_call_seen):
    script = f"call({ASK}, argv=DIRECT, pair=socket_made_by(1000), env={{'SUDO_UID': {text!r}}})"
    expect_refusal(product, script, "SUDO_UID is not a user id", user="root")


@pytest.mark.position("host")
def test_root_and_accounts_that_do_not_exist_are_no_callers(product, right_call_seen):
    as_root = f"call({ASK}, argv=DIRECT, env={{'SUDO_UID': '0'}})"
    expect_refusal(product, as_root, "root cannot run the agent", user="root")
    unknown = f"call({ASK}, argv=DIRECT, pair=socket_made_by(4242), env={{'SUDO_UID': '4242'}})"
    expect_refusal(product, unknown, "uid 4242 is not in the user database", user="root")


@pytest.mark.position("agent")
def test_an_agents_account_is_no_caller(product, right_call_seen):
    script = """
uid = pwd.getpwnam("pi-agent").pw_uid
tell(call(lambda c, s: ask(c, s, ["id"]), argv=DIRECT, pair=socket_made_by(uid), env={"SUDO_UID": str(uid)}))
"""
    answer = product.play(script, user="root")
    assert answer["ended"] is None and answer["status"] == DENIED, answer


def test_a_user_becomes_another_one_first(prove, product, weak):
    # The socket is alice's, the inner sudo is called by bob; the directory is one that bob may work in.
    script = """call(lambda c, s: ask(c, s, ['id'], cwd='/home/bob/work/demo'),
        argv=['sudo', '-n', '-u', 'bob', '--', *SUDO], pair=socket_made_by(1000), prepare=becoming('alice'))"""
    rule = "alice ALL=(bob) NOPASSWD: ALL\n"
    with sudo_rule(product, rule), sudo_rule(weak, rule):
        on, _ = prove(speaking(script, user="root"), "peer-credentials")
    refused(on, "was made by uid 1000, but sudo was called by uid 1001")


@pytest.mark.parametrize(
    ("name", "flag", "more"),
    # In another control group namespace the runner does not find the session's own group, where it would look for what it attaches late.
    [
        ("mnt", "CLONE_NEWNS", ["cwd-identity"]),
        ("cgroup", "CLONE_NEWCGROUP", ["late-mounts"]),
        ("net", "CLONE_NEWNET", []),
        ("ipc", "CLONE_NEWIPC", []),
        ("uts", "CLONE_NEWUTS", []),
        ("time", "CLONE_NEWTIME", []),  # the namespace of the caller's children: sudo's, and so the runner's
    ],
    ids=["mnt", "cgroup", "net", "ipc", "uts", "time"],
)
def test_called_in_another_namespace(name, flag, more, prove):
    script = f"call({ASK}, pair=socket_made_by(1000), prepare=becoming('alice', leaving({flag})))"
    on, _ = prove(speaking(script, user="root"), "host-namespaces", *more)
    refused(on, f"called from another {name} namespace")


def test_what_a_caller_cannot_reach_from_its_network_is_not_reached_by_its_agent(prove):
    """Root started a shell of alice's in a network namespace with nothing in it; on the host's loopback somebody serves."""
    connect = "import socket; socket.create_connection(('127.0.0.1', 8099), 5); print('reached')"
    shell = ["unshare", "--net", "--", "setpriv", "--reuid=alice", "--regid=alice", "--init-groups", "--"]

    def attack(target):
        directly = target.machine.root([*shell, "python3", "-c", connect])
        assert b"reached" not in directly.stdout, "the caller's own network has nothing in it"
        done = target.machine.root(["env", "-C", DEMO, *shell, "pi", "python3", "-c", connect])
        return Outcome(done.stdout == b"reached\n", done)

    on, _ = prove(attack, "host-namespaces")
    assert on.seen.returncode == DENIED and b"called from another net namespace" in on.seen.stderr, on


def test_called_in_another_process_namespace(prove):
    """There the numbers of root's own children are those of the host's processes: it would write into /proc of another one.

    sudo itself stays in the host's, and what it starts is in the other."""
    script = f"tell(call({ASK}, pair=socket_made_by(1000), prepare=becoming('alice', leaving(CLONE_NEWPID))))"

    def attack(target):
        with target.sudo_that_waits():
            answer = target.play(script, user="root")
        return Outcome(answer["ended"] is not None or "writing /proc/" in answer["said"], answer)

    on, _ = prove(attack, "host-namespaces", "own-scope", "unit:BindsTo")
    refused(on, "called from another pid namespace")


@pytest.mark.parametrize("first", ["leaving(CLONE_NEWPID)", "lambda: libc.unshare(CLONE_NEWPID)"], ids=["with an init", "without one"])
def test_called_with_another_process_namespace_for_its_children(first, product, right_call_seen):
    """A sudo that becomes the runner leaves it in the host's, and its children would be in the other."""
    answer = product.play(f"tell(call({ASK}, pair=socket_made_by(1000), prepare=becoming('alice', {first})))", user="root")
    assert answer["ended"] is None and answer["status"] != 0, answer
    assert "called from another pid namespace" in answer["said"] or "/proc/self/ns/pid_for_children" in answer["said"], answer


def test_a_user_is_root_in_a_namespace_of_their_own(product):
    script = f"call({ASK}, argv=['unshare', '--user', '--map-root-user', '--', RUNNER], env={{**os.environ, 'SUDO_UID': '1000'}})"
    answer = product.play(f"tell({script})")
    assert answer["ended"] is None and answer["status"] == DENIED and "pi-agent-runner: " in answer["said"], answer


@pytest.mark.parametrize("program", ["/usr/libexec/pi-agent/pi-agent-runner", "/usr/bin/pi"])
def test_started_without_even_its_own_name(program, product):
    script = """
def nameless():
    nothing = (ctypes.c_char_p * 1)(None)
    libc.execve(PROGRAM, nothing, nothing)
tell(call(None, argv=["true"], prepare=nameless))
"""
    answer = product.play(script.replace("PROGRAM", repr(program.encode())), user="root")
    assert answer["status"] == DENIED and answer["ended"] is None and answer["said"], answer


def test_the_cleanup_program_is_for_roots_unit_only(product, control_seen):
    program = "/usr/libexec/pi-agent/pi-agent-cleanup"
    assert product.machine.run([program, "0" * 32]).returncode == DENIED
    for arguments in ([], ["x"], ["../../etc"], ["0" * 32, "0" * 32]):
        assert product.machine.root([program, *arguments]).returncode == 64
    session = product.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
    assert product.machine.root([program, session.id]).returncode == DENIED
    directory = f"/run/pi-agent/sessions/{session.id}"
    assert product.machine.root(["test", "-d", f"{directory}/root"]).returncode == 0
    product.machine.root(["kill", "-KILL", str(session.runner_pid())], check=True)
    product.machine.root(f"for i in $(seq 50); do test -e {directory} || exit 0; sleep 0.1; done; exit 1", check=True)
    control_seen("run by its unit it does remove the directory, here of a runner that was killed")
    session.end()

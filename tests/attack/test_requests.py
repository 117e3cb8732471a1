"""What is said to the runner: requests cut short, oversized, with wrong counts and with hostile descriptors."""

import pytest
from target import Outcome

pytestmark = [pytest.mark.position("user"), pytest.mark.usefixtures("nothing_left")]

DENIED = 77
GOOD_FDS = "[os.open(DEMO, os.O_PATH), *s.fds()]"


def saying(conversation, first="", user="alice", success=None):
    """The attack that is one conversation(channel c, stdio s); it succeeds when an agent ran, or by `success(answer)`."""
    wins = success or (lambda answer: answer["ended"] is not None)

    def attack(target):
        answer = target.play(f"{first}\ntell(call(lambda c, s: {conversation}))", user=user)
        return Outcome(wins(answer), answer)

    return attack


def expect_refusal(target, conversation, sentence, status=DENIED, **options):
    outcome = saying(conversation, **options)(target)
    assert not outcome.succeeded and outcome.seen["status"] == status, outcome
    assert sentence in outcome.seen["said"], outcome


# The checks that keep the decoder inside its buffer cannot be taken out: without them there is no behaviour to look at.
MALFORMED = {
    "no protocol at all": ("send(c, b'GET / HTTP/1.0')", "another protocol version"),
    "a single byte": ("send(c, b'x')", "ends too early"),
    "an older protocol": ("send(c, number(RECORD_MAGIC - 1) + number(8))", "another protocol version"),
    "a header that is too long": ("send(c, number(RECORD_MAGIC) + number(8) + b'x')", "longer than its fields"),
    "a header and no more": ("(send_record(c, b'', [], size=100), c.shutdown(socket.SHUT_WR))", "cut short"),
    "half a request": (f"(send_record(c, request()[:30], {GOOD_FDS}, size=60), c.shutdown(socket.SHUT_WR))", "cut short"),
    "less than it says it is": (f"send_record(c, request()[:-1], {GOOD_FDS})", "ends too early"),
    "more than its fields": (f"send_record(c, request() + b'x', {GOOD_FDS})", "longer than its fields"),
    "more than it says it is": (f"send_record(c, request() * 2, {GOOD_FDS}, size=len(request()))", "longer than it said"),
    "an empty record": (f"send_record(c, b'', {GOOD_FDS})", "ends too early"),
    "a packet beyond the bound": ("send(c, bytes(PACKET_LIMIT + 1))", "a packet larger than"),
    "another message": (f"send_record(c, number(SIGNAL) + number(9), {GOOD_FDS})", "not a request"),
    "a count of 2^63 arguments": (f"send_record(c, number(REQUEST) + number(1 << 63), {GOOD_FDS})", "more entries than it holds"),
    "a count of one too many": (f"send_record(c, number(REQUEST) + number(2) + text('x' * 9), {GOOD_FDS})", "ends too early"),
    "a text of 2^64 - 1 bytes": (f"send_record(c, number(REQUEST) + number(1) + number(-1), {GOOD_FDS})", "ends too early"),
    "100 variables": (f"send_record(c, request(presentation=['TERM=x'] * 100), {GOOD_FDS})", "more entries than it holds"),
    "an impossible umask": (f"send_record(c, request(umask=0o1000), {GOOD_FDS})", "impossible umask"),
    "a terminal that is more than yes": (f"send_record(c, request(terminal=(0, 2, 0)), {GOOD_FDS})", "impossible terminal flag"),
    "a window of 2^16 rows": (f"send_record(c, request(window=(1 << 16, 80, 0, 0)), {GOOD_FDS})", "impossible window size"),
    "descriptors beside terminals": (f"send_record(c, request(terminal=(1, 1, 1)), {GOOD_FDS})", "exactly 1 descriptors, this one has 4"),
    "terminals without a descriptor": (f"send_record(c, request(terminal=(1, 0, 1)), {GOOD_FDS}[:1])", "exactly 2 descriptors, this one has 1"),
    "no descriptors": ("send_record(c, request(), [])", "exactly 4 descriptors, this one has 0"),
    "three descriptors": (f"send_record(c, request(), {GOOD_FDS}[:3])", "exactly 4 descriptors, this one has 3"),
    "nine descriptors": ("send_record(c, request(), [os.open(DEMO, os.O_PATH)] * 9)", "too many descriptors"),
    "descriptors inside the record": (
        f"(send(c, number(RECORD_MAGIC) + number(len(request())), {GOOD_FDS}), send(c, request(), [0]))", "descriptors inside a record"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_request_that_is(kind, product, right_call_seen):
    conversation, sentence = MALFORMED[kind]
    expect_refusal(product, conversation, sentence)


def test_a_request_that_never_ends_is_given_up_after_five_seconds(product, right_call_seen):
    expect_refusal(product, "send_record(c, b'', [], size=100)", "did not answer in time", status=71)


def test_a_caller_whose_timers_are_years_late_cannot_keep_the_runner_waiting(prove):
    # The slack of timers survives fork, exec and sudo.
    script = """
import client
client.PATIENCE = 5  # what comes after `waiting` only tidies up
late = lambda: libc.prctl(29, ctypes.c_ulong(10**18), 0, 0, 0)
answered = []
def waiting(c, s):
    send_record(c, b"", [], size=100)
    c.settimeout(9)
    try:
        while Decoder(c.recv(65536, socket.MSG_PEEK)).number() != FAILURE: c.recv(65536)
        answered.append("refused")
    except TimeoutError:
        c.shutdown(socket.SHUT_WR)
answer = call(waiting, prepare=late)
tell({**answer, "in time": bool(answered)})
"""

    def attack(target):
        answer = target.play(script)
        if answer["status"] is None:  # it would wait for ever
            target.clear()
        return Outcome(not answer["in time"], answer)

    on, _ = prove(attack, "timer-slack", quick=True)
    assert "did not answer in time" in on.seen["said"], on


def test_a_request_with_one_descriptor_more(prove):
    on, _ = prove(saying(f"send_record(c, request(['true']), [*{GOOD_FDS}, 0])"), "descriptor-count")
    assert on.seen["status"] == DENIED and "exactly 4 descriptors, this one has 5" in on.seen["said"]


def test_a_request_beyond_four_mebibytes(prove):
    # Without the bound it is read to its end, and only what is sent on is found to be too large.
    read_whole = lambda answer: "are larger than 4194304 bytes" in answer["said"]  # noqa: E731
    attack = saying(f"send_record(c, request(['x' * 100000] * 50), {GOOD_FDS})", success=read_whole)
    on, _ = prove(attack, "record-limit")
    assert on.seen["status"] == DENIED and "a record larger than" in on.seen["said"]


@pytest.mark.parametrize(
    "variable",
    ["NODE_OPTIONS", "LD_PRELOAD", "BASH_ENV", "MANPATH", "HOME", "PI_CODING_AGENT_DIR", "DBUS_SYSTEM_BUS_ADDRESS", "LC_", "LC_x", "TERM "],
)
def test_a_variable_that_describes_no_terminal(variable, prove):
    reached = lambda answer: answer["ended"] is not None  # noqa: E731
    attack = saying(f"ask(c, s, ['true'], presentation=['{variable}=x'])", success=reached)
    on, _ = prove(attack, "presentation-names")
    assert on.seen["status"] == DENIED and "never passed on" in on.seen["said"]


# With neither is anything opened that the session does not show; but a session in which the project has an alias would learn where it lies,
# and git would make a commit of one repository's index in another.
@pytest.mark.parametrize("variable", ["PATH=/home/alice/hidden/bin:/usr/bin:/bin", "PATH=.:/usr/bin:/bin", "GIT_DIR=/home/alice/hidden/.git", "GIT_INDEX_FILE=../../hidden/.git/index"])
def test_a_variable_that_names_a_place_outside_of_what_the_session_shows(variable, prove):
    name, _, value = variable.partition("=")
    odd = value.partition(":")[0]
    got_in = lambda answer: any(line.startswith(f"{name}=") and odd in line.partition("=")[2].split(":") for line in answer["out"].splitlines())  # noqa: E731
    prove(saying(f"ask(c, s, ['env'], presentation=[{variable!r}])", success=got_in), "shell-places")


def test_a_variable_without_a_value(prove):
    on, _ = prove(saying("ask(c, s, presentation=['TERM'])"), "presentation-names")
    assert on.seen["status"] == DENIED and "never passed on" in on.seen["said"], on


def test_variables_of_the_policy_win_over_those_of_the_request(product):
    answer = product.play("tell(call(lambda c, s: ask(c, s, ['env'], presentation=['EDITOR=mine', 'TZ=x', 'TZ=y'])))")
    assert "EDITOR=mine" in answer["out"] and "MANAGED_MARKER=quokka" in answer["out"], answer


def test_a_nul_byte_in_an_argument(prove):
    # The agent would run something shorter than what was asked for.
    attack = saying("ask(c, s, ['echo', 'shown\\0hidden'])", success=lambda answer: answer["out"] == "shown\n")
    on, _ = prove(attack, "nul-arguments")
    assert on.seen["status"] == DENIED and "NUL" in on.seen["said"]


def test_a_newline_an_escape_sequence_and_odd_bytes_in_arguments_arrive_unchanged(product):
    odd = ["", " ", "a\nb", "\\x1b[2J\x1b", "%n $HOME ${X} %%", "-u", "'\"\\", "() { :; }", "=", "\udcff\udcfe"]
    script = f"tell(call(lambda c, s: ask(c, s, ['printf', '<%s>', *{odd!r}])))"
    answer = product.play(script)
    expected = "".join(f"<{word}>" for word in odd).replace("\udcff\udcfe", "\ufffd\ufffd")
    assert answer["out"] == expected, answer


# --- the working directory

CWDS = {
    "a file": ("os.open('/etc/passwd', os.O_PATH)", "cannot be opened by its path"),
    "a pipe": ("os.pipe()[0]", "does not exist on this host"),
    "a socket": ("c.fileno()", "does not exist on this host"),
    "a memory file": ("os.memfd_create('/home/alice/projects/demo')", "cannot be opened by its path"),
    "outside the roots": ("os.open('/home/alice', os.O_PATH)", "is outside the project roots of alice"),
    "beside a root": ("os.open('/home/alice/projects-evil', os.O_PATH)", "is outside the project roots of alice"),
    "the root of the host": ("os.open('/', os.O_PATH)", "is outside the project roots of alice"),
    "deleted": ("gone()", "cannot be opened by its path"),
}
ARRANGE_CWD = """
os.makedirs("/home/alice/projects-evil", exist_ok=True)
def gone():
    os.makedirs(DEMO + "/gone", exist_ok=True)
    fd = os.open(DEMO + "/gone", os.O_PATH)
    os.rmdir(DEMO + "/gone")
    return fd
"""


@pytest.mark.parametrize("kind", CWDS)
def test_the_working_directory_is(kind, product, right_call_seen):
    fd, sentence = CWDS[kind]
    expect_refusal(product, f"ask(c, s, cwd={fd})", sentence, first=ARRANGE_CWD)


def test_the_working_directory_is_one_that_the_user_may_not_enter(prove, product, weak):
    # Root hands alice a directory inside her root that is closed to her; pi-agent-exec would still trip over it.
    locked = "/home/alice/projects/locked"
    for target in (product, weak):
        target.machine.root(["install", "-d", "-m", "0700", locked], check=True)
    script = f"call(lambda c, s: ask(c, s, cwd='{locked}'), pair=socket_made_by(1000), prepare=becoming('alice'))"

    def attack(target):
        answer = target.play(f"tell({script})", user="root")
        return Outcome("the agent was not started" in answer["said"], answer)

    on, _ = prove(attack, "cwd-searchable")
    assert on.seen["status"] == DENIED and "you may not enter" in on.seen["said"]
    for target in (product, weak):
        target.machine.root(["rmdir", locked], check=True)


IN_OWN_NAMESPACE = {
    "a bind": "lambda: mount(b'/home/alice', b'/home/alice/projects/demo', None, MS_BIND)",
    "an empty file system": "lambda: mount(b'none', b'/home/alice/projects/demo', b'tmpfs')",
}


@pytest.mark.parametrize("kind", IN_OWN_NAMESPACE)
def test_the_working_directory_is_what_a_user_mounted_in_a_namespace_of_their_own(kind, prove):
    # Its link text names an allowed directory; the directory behind it is another one.
    attack = saying(f"ask(c, s, cwd=directory_in_own_namespace({IN_OWN_NAMESPACE[kind]}, DEMO))")
    on, _ = prove(attack, "cwd-identity")
    assert on.seen["status"] == DENIED and "is not the one that /home/alice/projects/demo names" in on.seen["said"]


def test_the_working_directory_is_a_file_system_mounted_inside_the_root(prove, product, weak):
    # A clone of the root does not hold it: the agent would work in what the mount covers.
    place = "/home/alice/projects/mounted"
    for target in (product, weak):
        target.machine.root(f"install -d -o alice -g alice {place} && mount -t tmpfs -o mode=0777 none {place}", check=True)
    try:
        attack = saying(f"ask(c, s, cwd='{place}')")
        on, _ = prove(attack, "cwd-mount")
        assert on.seen["status"] == DENIED and "another file system" in on.seen["said"]
    finally:
        for target in (product, weak):
            target.machine.root(f"umount {place} && rmdir {place}", check=True)


# --- standard input, output and error

STDIO = {
    "a directory": "os.open('/srv/shared/app', os.O_RDONLY)",
    "a path descriptor": "os.open('/srv/shared/app', os.O_PATH)",
    "a terminal": "os.openpty()[1]",
    "the other end of a terminal": "os.openpty()[0]",
    "a device": "os.open('/dev/urandom', os.O_RDONLY)",
    "an event counter": "os.eventfd(0)",
}


@pytest.mark.parametrize("kind", STDIO)
def test_standard_input_of_the_agent_is(kind, prove):
    attack = saying(f"send_record(c, request(['true']), [os.open(DEMO, os.O_PATH), {STDIO[kind]}, *s.fds()[1:]])")
    on, _ = prove(attack, "stdio-rules")
    assert on.seen["status"] == DENIED and "standard input is" in on.seen["said"]


@pytest.mark.parametrize("position", [1, 2])
def test_a_terminal_is_refused_in_every_place(position, prove):
    place = {1: "standard output", 2: "standard error"}[position]
    change = f"send_record(c, request(['true']), (lambda fds: fds[:{position + 1}] + [os.openpty()[1]] + fds[{position + 2}:])({GOOD_FDS}))"
    on, _ = prove(saying(change), "stdio-rules")
    assert on.seen["status"] == DENIED and f"{place} is a terminal" in on.seen["said"], on


def test_a_directory_as_standard_input_would_lead_to_files_of_the_host(prove):
    fds = "[os.open(DEMO, os.O_PATH), os.open('/srv/shared', os.O_RDONLY), *s.fds()[1:]]"
    attack = saying(f"send_record(c, request(['ls', '/proc/self/fd/0/..']), {fds})", success=lambda answer: "devs" in answer["out"])
    prove(attack, "stdio-rules", "landlock")

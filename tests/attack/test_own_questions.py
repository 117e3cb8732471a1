"""Questions about one's own sessions: a user who asks about others', guesses, floods root, or sends what is no question."""

import time

import pytest
from record_check import IDS
from target import Outcome

pytestmark = [pytest.mark.position("user"), pytest.mark.usefixtures("nothing_left")]

LIMIT, DENIED = 75, 77
BOB = {"user": "bob", "cwd": "/home/bob/work/demo"}
STAYING = ("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 60")


def staying(target, **whose):
    return target.session(*STAYING, **whose)


def asked(target, call, user="alice", first=""):
    """What alice is told when she puts a question: `put(...)` of inside/client.py."""
    return target.play(f"{first}\ntell({call})", user=user)


@pytest.fixture(scope="module")
def right_answers(product):
    """The same question with nothing wrong in it is answered, through sudo and with root in sudo's place."""
    directly = ", argv=DIRECT, pair=socket_made_by(1000), env={'SUDO_UID': '1000'}"
    for user, how in (("alice", ""), ("root", directly)):
        answer = asked(product, f"put(question(){how})", user=user)
        assert answer["status"] == 0 and answer["sessions"] == [], answer


@pytest.fixture
def right_answer_seen(right_answers, control_seen):
    control_seen("the same question with nothing wrong in it is answered")


# --- Others' sessions.


def test_a_user_asks_which_sessions_there_are(prove):
    def attack(target):
        bobs, own = staying(target, **BOB), staying(target)
        seen = asked(target, "put(question(SESSIONS))")
        target.end_all()
        ids = [session["id"] for session in seen["sessions"]]
        assert own.id in ids, seen
        return Outcome(bobs.id in ids, seen)

    prove(attack, "own-sessions")


def test_a_user_ends_a_session_of_anothers_whose_id_they_know(prove):
    def attack(target):
        bobs = staying(target, **BOB)
        seen = asked(target, f"put(question(STOP, sessions=['{bobs.id}']))")
        lives = target.machine.root(["systemctl", "is-active", "--quiet", bobs.service]).returncode == 0
        target.end_all()
        return Outcome(bool(seen["sessions"]) and not lives, seen)

    on, _ = prove(attack, "own-sessions")
    assert on.seen["status"] == 0 and on.seen["left"] == [], on


def test_a_user_asks_what_is_kept_for_others(prove):
    def attack(target):
        target.pi("true", check=True)
        target.pi("true", check=True, **BOB)
        seen = asked(target, "put(question(STATE))")
        assert "alice" in seen["states"], seen
        return Outcome("bob" in seen["states"], seen)

    prove(attack, "own-sessions")


def test_a_user_names_sessions_by_a_beginning_that_may_fit_others_by_then(prove):
    def attack(target):
        own = staying(target)
        seen = asked(target, f"put(question(STOP, sessions=['{own.id[:8]}']))")
        target.end_all()
        return Outcome(bool(seen.get("sessions")), seen)

    on, _ = prove(attack, "whole-id")
    assert on.seen["status told"] == DENIED and "not the id of a session" in on.seen["said"], on


def test_a_guessed_id_and_anothers_have_the_same_answer(product, control_seen):
    bobs = staying(product, **BOB)
    guesses = [bobs.id, bobs.id[:-1] + ("0" if bobs.id[-1] != "0" else "1"), "0" * 32]
    told = [asked(product, f"put(question(STOP, sessions=['{guess}']))") for guess in guesses]
    assert told[0] == told[1] == told[2], told
    assert told[0]["sessions"] == told[0]["left"] == [], told
    control_seen("a session of the user's own is told and ended")
    own = staying(product)
    assert [session["id"] for session in asked(product, f"put(question(STOP, sessions=['{own.id}', '{bobs.id}']))")["sessions"]] == [own.id]
    assert product.machine.root(["systemctl", "is-active", "--quiet", bobs.service]).returncode == 0
    product.end_all()


@pytest.mark.parametrize("name", ["sudo_uid", "variables"])
def test_who_asks_is_not_what_they_say(name, product, right_answer_seen):
    """Neither a variable nor a field names a user."""
    bobs = staying(product, **BOB)
    how = {"sudo_uid": "put(question(), env={**os.environ, 'SUDO_UID': '1001'})", "variables": "put(question(), env={**os.environ, 'USER': 'bob', 'LOGNAME': 'bob', 'HOME': '/home/bob'})"}
    seen = asked(product, how[name])
    assert seen["status"] == 0 and seen["sessions"] == [], seen
    assert bobs.id not in str(seen)
    product.end_all()


# --- What is no question. The checks that keep the decoder inside its buffer cannot be taken out.

MALFORMED = {
    "its first bytes alone": ("put(number(QUESTION))", "ends too early"),
    "half of it": ("put(question()[:20])", "ends too early"),
    "one byte more": ("put(question() + b'x')", "longer than its fields"),
    "two in one": ("put(question() * 2)", "longer than its fields"),
    "one that names a uid besides": ("put(question() + number(1001))", "longer than its fields"),
    "one that names a user as a session": ("put(question(STOP, sessions=['bob']))", "not the id of a session"),
    "one about something unknown": ("put(question(3))", "about something unknown"),
    "one about everything": ("put(question(2**64 - 1))", "about something unknown"),
    "sessions of a question that stops none": ("put(question(SESSIONS, sessions=['0' * 32]))", "names sessions exactly when"),
    "a stop of nothing": ("put(question(STOP))", "names sessions exactly when"),
    "a stop of a path": ("put(question(STOP, sessions=['../../../../../../../../etc/xxx']))", "not the id of a session"),
    "a stop of what a terminal obeys": ("put(question(STOP, sessions=['\\x1b[2J']))", "not the id of a session"),
    "65 sessions": ("put(question(STOP, sessions=['0' * 32] * 65))", "more entries than it holds"),
    "a count of 2^63": ("put(number(QUESTION) + number(STOP) + number(1 << 63))", "more entries than it holds"),
    "more than 4096 bytes": ("put(question() + bytes(4096))", "larger than 4096 bytes"),
    "a packet beyond the bound": ("put(question() + bytes(PACKET_LIMIT))", "a packet larger than"),
    "a descriptor": ("put(question(), [0])", "a question with a descriptor"),
    "nine descriptors": ("put(question(), [0] * 9)", "too many descriptors"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_question_that_is(kind, product, right_answer_seen):
    call, sentence = MALFORMED[kind]
    seen = asked(product, call)
    assert seen["status"] == seen["status told"] == DENIED and sentence in seen["said"], seen


def test_a_question_that_comes_when_root_has_looked_is_no_question(product, right_answer_seen):
    """Root waits for none: what comes later is taken for a request, and refused."""
    seen = product.play("tell(call(lambda c, s: (time.sleep(3), send(c, question()))))")
    assert seen["status"] == DENIED and "another protocol version" in seen["said"], seen


def test_a_question_behind_another_message_is_not_looked_for(product, right_answer_seen):
    seen = product.play("tell(call(lambda c, s: (send(c, b'x' * 16), send(c, question()))))")
    assert seen["status"] == DENIED and "another protocol version" in seen["said"], seen


def test_who_moves_where_root_looks_gets_no_further(product, right_answer_seen):
    """SO_PEEK_OFF (socket(7)) makes a look begin behind the first message: root then takes a request for a question, and a child of the user's reads it."""
    move = "lambda theirs: theirs.setsockopt(socket.SOL_SOCKET, 42, 16)"
    seen = asked(product, f"put(bytes(16) + question(), first={move})")
    assert seen["status"] == DENIED and seen.get("sessions") is None, seen


# --- Who may not ask.


@pytest.mark.position("outsider")
@pytest.mark.parametrize("name, sentence", [("eve", "does not authorise eve"), ("pi-agent", "is an agent's own")])
def test_no_answer_for(name, sentence, product, right_answer_seen):
    """As root, in sudo's place: the rule would not let them so far."""
    uid = product.machine.account(name)[0]
    seen = asked(product, f"put(question(), argv=DIRECT, pair=socket_made_by({uid}), env={{'SUDO_UID': '{uid}'}})", user="root")
    assert seen["status"] == seen["status told"] == DENIED and sentence in seen["said"], seen


@pytest.mark.position("outsider")
def test_sudo_lets_nobody_ask_whom_the_policy_does_not_name(product, right_answer_seen):
    seen = asked(product, "put(question())", user="eve")
    assert seen["status"] == 1 and seen["size"] == 0, seen


def test_the_socket_of_a_question_was_made_by_another(product, right_answer_seen):
    seen = asked(product, "put(question(), argv=DIRECT, pair=socket_made_by(1001), env={'SUDO_UID': '1000'})", user="root")
    assert seen["status"] == DENIED and "was made by uid 1001" in seen["said"], seen


@pytest.mark.position("agent")
def test_an_agent_asks_from_its_session(product, right_answer_seen):
    done = product.pi("sh", "-c", "pi-agentctl sessions --json || pi-agentctl stop --user alice || sudo -n -- /usr/libexec/pi-agent/pi-agent-runner || echo refused")
    assert done.stdout == b"refused\n", done


# --- How much.

# A user who does not read: root's answer waits for room, for 5 seconds, and with it one of the user's questions. On a busy host some have
# ended before others begin, so there are always eight.
STUCK = """
def fill(theirs):
    theirs.setblocking(False)
    try:
        while True:
            theirs.send(bytes(4096))
    except BlockingIOError:
        theirs.setblocking(True)

def ask_without_reading():
    while len([one for _, one in waiting if one.poll() is None]) < 8:
        own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fill(theirs)
        send(own, question())
        waiting.append((own, subprocess.Popen(SUDO, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
        theirs.close()

waiting, told = [], []
ask_without_reading()
until = time.monotonic() + 20
while time.monotonic() < until and not [one for one in told if one["status told"] == 75]:
    told.append(put(question()))
    ask_without_reading()
for own, sudo in waiting:
    sudo.wait(timeout=30)
"""


def test_no_more_questions_of_one_user_are_answered_at_once_than_four(prove):
    def attack(target):
        told = asked(target, "told", first=STUCK)
        return Outcome(LIMIT not in [one["status told"] for one in told], told)

    on, _ = prove(attack, "question-limit")
    assert any("limit: 4 questions of yours" in one["said"] for one in on.seen), on


def test_one_users_questions_keep_no_other_user_waiting(product, right_answer_seen):
    script = STUCK.replace('while time.monotonic() < until and not [one for one in told if one["status told"] == 75]:', "while False:")
    flood = product.machine.popen(["python3", "-c", product.prelude + script], user="alice")
    try:
        time.sleep(1)
        begun = time.monotonic()
        seen = asked(product, "put(question())", user="bob")
        assert seen["status"] == 0 and time.monotonic() - begun < 10, seen
        assert product.pi("echo", "ran", **BOB).stdout == b"ran\n"
    finally:
        flood.communicate(timeout=60)


# --- What users may read of the record: root writes it for each.

RECORDS = "/var/lib/pi-agent/records"


def recorded_anew(target):
    """Sessions of alice and bob, in files that this build made."""
    target.machine.root(["rm", "-rf", RECORDS], check=True)
    target.pi("true", check=True)
    target.pi("true", check=True, **BOB)


def test_a_user_reads_what_others_did(prove):
    def attack(target):
        recorded_anew(target)
        read = [target.machine.run(["cat", f"{RECORDS}/{user}/record.jsonl"], user="alice").stdout for user in ("alice", "bob")]
        return Outcome(b'"bob"' in read[1], read)

    on, _ = prove(attack, "own-record")
    assert b'"PI_AGENT_USER":"alice"' in on.seen[0] and not on.seen[1], on


def test_a_user_plants_a_link_for_root_to_write_through(prove):
    def attack(target):
        recorded_anew(target)
        target.machine.run(f"cd {RECORDS}/alice && ln -sf /etc/planted-8815 record.jsonl; echo >>record.jsonl; : >new; mv record.jsonl away", user="alice")
        target.pi("true")
        names = target.machine.root(["ls", "-A", f"{RECORDS}/alice"], check=True).stdout.split()
        assert target.machine.root(["test", "-e", "/etc/planted-8815"]).returncode != 0, "root wrote through the link"
        return Outcome(names != [b"record.jsonl"], names)

    prove(attack, "own-record")


@pytest.mark.position("agent")
@pytest.mark.parametrize("who", ["session", "account"])
def test_an_agent_reads_and_writes_nothing_there(who, product, control_seen):
    recorded_anew(product)
    script = f"ls {RECORDS}/alice || cat {RECORDS}/alice/record.jsonl || echo >>{RECORDS}/alice/record.jsonl || touch {RECORDS}/alice/new || echo refused"
    control_seen("the user reads it")
    before = product.machine.run(["cat", f"{RECORDS}/alice/record.jsonl"], user="alice", check=True).stdout
    done = product.pi("sh", "-c", script) if who == "session" else product.machine.run(["sh", "-c", script], user="pi-agent")
    assert done.stdout == b"refused\n", done
    assert product.machine.run(["cat", f"{RECORDS}/alice/record.jsonl"], user="alice").stdout.startswith(before)


def test_who_starts_without_end_does_not_fill_the_disk_of_their_record(prove):
    def attack(target):
        recorded_anew(target)
        target.machine.root(f"cd {RECORDS}/alice && truncate -s 2M record.jsonl && touch record.full-1", check=True)
        target.pi("true", check=True)
        sizes = target.machine.root(f"stat -c '%s %n' {RECORDS}/alice/*", check=True).stdout.decode()
        return Outcome(any(int(line.split()[0]) > 2 << 20 for line in sizes.splitlines()), sizes)

    on, _ = prove(attack, "record-bound")
    assert len(on.seen.splitlines()) == 2 and "record.full-1\n" not in on.seen, on


def test_a_number_or_name_that_was_anothers_opens_no_record_of_theirs(product, control_seen):
    """Root empties what it finds under a user's name with another's access."""
    recorded_anew(product)
    product.machine.root(f"mv {RECORDS}/bob/record.jsonl {RECORDS}/bob/former.jsonl && mv {RECORDS}/bob {RECORDS}/away && rm -rf {RECORDS}/alice && mv {RECORDS}/away {RECORDS}/alice", check=True)
    assert product.machine.run(["ls", f"{RECORDS}/alice"], user="bob").stdout == b"former.jsonl\n"
    control_seen("bob could look there")
    product.pi("true", check=True)
    assert product.machine.run(["ls", f"{RECORDS}/alice"], user="alice").stdout == b"record.jsonl\n"
    assert product.machine.run(["ls", f"{RECORDS}/alice"], user="bob").returncode != 0


FORGED = f"""
import socket, sys
uid, reason, count = sys.argv[1], sys.argv[2].encode().decode("unicode_escape"), int(sys.argv[3])
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
fields = {{"MESSAGE": "forged", "MESSAGE_ID": "{IDS["denied"]}", "PI_AGENT_EVENT": "denied", "PI_AGENT_UID": uid, "PI_AGENT_USER": "alice", "PI_AGENT_DIRECTORY": reason[:60],
          "PI_AGENT_STATUS": "77", "PI_AGENT_REASON": reason}}
for _ in range(count):
    data = b"".join(name.encode() + b"\\n" + len(value.encode()).to_bytes(8, "little") + value.encode() + b"\\n" for name, value in fields.items())
    sender.sendto(data, "/run/systemd/journal/socket")
"""


def forge(target, user, uid, reason, count=1):
    target.machine.run(["python3", "-c", FORGED, uid, reason, str(count)], user=user, check=True)
    target.machine.root(["journalctl", "--sync"], check=True)


def test_another_user_writes_into_a_users_history(product, control_seen):
    forge(product, "bob", "1000", "by-bob-8815")
    assert b"by-bob-8815" in product.machine.root(["journalctl", "-q", "-o", "json", "PI_AGENT_UID=1000"], check=True).stdout
    control_seen("the journal has the entry")
    assert b"by-bob-8815" not in product.machine.run(["pi-agentctl", "history", "--json"], user="alice").stdout


def test_what_a_user_wrote_into_their_own_history_does_nothing_to_the_terminal(product, control_seen):
    forge(product, "alice", "1000", "\\x1b[2Jforged\\x07-4471")
    shown = product.machine.run(["pi-agentctl", "history"], user="alice").stdout
    assert b"-4471" in shown and b"\x1b" not in shown and b"\x07" not in shown, shown
    control_seen("the entry is shown, as text")


def test_a_history_without_end_is_cut(product, control_seen):
    """More than 3 MiB in the user's own words: the newest come, and that there are more is told."""
    forge(product, "alice", "1000", "x" * 40_000, count=120)
    begun = time.monotonic()
    done = product.machine.run(["pi-agentctl", "history", "--json"], user="alice")
    assert done.returncode == 0 and b"older entries about you" in done.stderr and len(done.stdout) < 4 << 20, done.stderr
    assert time.monotonic() - begun < 20
    control_seen("an answer was cut")

"""Directories get the set-gid bit, and files never: whoever judges the call, whatever changes meanwhile, and whoever stands in its way."""

import json
import signal
import time

import pytest
from session import pid_of_user
from target import DEMO, Outcome

pytestmark = pytest.mark.position("agent")

ALONE = "set-gid-directories-alone"
CALLS = [f"setgid by {call}" for call in ("chmod", "fchmod", "fchmodat", "fchmodat2", "chmod through /proc")]
# What every script here begins with. A directory and a program of the agent's, in the project.
BEGIN = """
import ctypes, errno, json, os, signal, socket, stat, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
os.umask(0o022)
place = "set-gid-" + os.environ["PI_AGENT_SESSION"]  # numbers of processes come again in each session from systemd 257 on
os.mkdir(place)
os.chdir(place)
os.mkdir("directory")
open("program", "w").close()
os.chmod("program", 0o755)
def give(path, mode=0o2755, **how):
    try:
        os.chmod(path, mode, **how)
        return "done"
    except OSError as failure:
        return errno.errorcode[failure.errno]
def has_bit(path):
    return bool(os.stat(path).st_mode & stat.S_ISGID)
def end(said):
    os.chdir("..")
    os.system(f"rm -rf {place}")
    print(json.dumps(said), flush=True)
    os._exit(0)
"""
# A thread makes `flip(n)` as fast as it can, while the call is made again and again.
RACE = BEGIN + """
def flips():
    n = 0
    while True:
        n += 1
        flip(n)
SETUP
threading.Thread(target=flips, daemon=True).start()
until, tries, answers = time.monotonic() + 6, 0, {}
while time.monotonic() < until and not has_bit(program):
    answer = ATTEMPT
    answers[answer] = answers.get(answer, 0) + 1
end({"bit": has_bit(program), "answers": answers})
"""
NAMES = """
program = os.open("program", os.O_RDONLY)
def flip(n):
    libc.renameat2(-100, b"program", -100, b"directory", 2)
"""
LINKS = """
program = os.path.abspath("program")
def flip(n):
    os.symlink("program" if n % 2 else "directory", f"next-{n}")
    os.rename(f"next-{n}", "link")
flip(0)
"""
DESCRIPTORS = """
program = os.path.abspath("program")
of_program, of_directory, number = os.open("program", os.O_RDONLY), os.open("directory", os.O_RDONLY), os.dup(0)
def flip(n):
    os.dup2(of_program if n % 2 else of_directory, number)
flip(0)
"""
MEMORY = """
program = os.path.abspath("program")
os.mkdir("progra_")
text = ctypes.create_string_buffer(b"progra_")
def flip(n):
    text.raw = b"program\\0" if n % 2 else b"progra_\\0"
def chmod_of_memory():
    return "done" if libc.chmod(text, 0o2755) == 0 else errno.errorcode[ctypes.get_errno()]
"""
WORKING_DIRECTORY = """
os.makedirs("one/name"); os.mkdir("two"); open("two/name", "w").close()
program = os.path.abspath("two/name")
places = [os.path.abspath("one"), os.path.abspath("two")]
def flip(n):
    os.chdir(places[n % 2])
"""
RACES = {
    "names": (NAMES, "give('directory')"),
    "links": (LINKS, "give('link')"),
    "descriptors": (DESCRIPTORS, "give(number)"),
    "memory": (MEMORY, "chmod_of_memory()"),
    "the working directory": (WORKING_DIRECTORY, "give('name')"),
}


@pytest.fixture(scope="module")
def with_and_without(product, weak):
    """Each session runs once for the whole file."""
    on = product.probe(*CALLS)
    intact = weak.probe(*CALLS)
    with weak.without(ALONE):
        return on, intact, weak.probe(*CALLS)


@pytest.mark.parametrize("call", CALLS)
def test_who_is_asked_for_the_bit_gives_it_to_no_file(call, with_and_without, seen_to_work):
    on, intact, off = (results[call] for results in with_and_without)
    assert (on, intact) == ("mode 600", "mode 600") or (on, intact) == ("mode 755", "mode 755"), (on, intact)
    assert off == "done"
    seen_to_work((ALONE,))


@pytest.mark.parametrize("what", RACES)
def test_no_file_gets_the_bit_though_something_changes_between_look_and_change(what, prove):
    setup, attempt = RACES[what]
    script = RACE.replace("SETUP", setup).replace("ATTEMPT", attempt)

    def attack(target):
        seen = target.python(script)
        assert set(seen["answers"]) & {"done", "EPERM"}, seen
        return Outcome(seen["bit"], seen)

    on, _ = prove(attack, ALONE, quick=True)
    assert len(on.seen["answers"]) > 1, f"nothing changed meanwhile: {on}"  # directories get it, and nothing else does


KINDS = """
def of_memory():
    return os.memfd_create("program")
def of_a_pipe():
    os.mkfifo("pipe")
    return os.open("pipe", os.O_RDWR)
number = KIND()
said = give(number)
end({"said": said, "bit": bool(os.fstat(number).st_mode & stat.S_ISGID)})
"""


@pytest.mark.parametrize("kind", ["of_memory", "of_a_pipe"])
def test_what_is_no_directory_gets_no_bit(kind, prove):
    def attack(target):
        seen = target.python(BEGIN + KINDS.replace("KIND", kind))
        return Outcome(seen["bit"], seen)

    on, _ = prove(attack, ALONE)
    assert on.seen["said"] == "EPERM", on


OWN_FILTER = BEGIN + """
class Line(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("lines", ctypes.POINTER(Line))]
def install(answer, flags):
    lines = (Line * 1)(Line(0x06, 0, 0, answer))
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(317), ctypes.c_long(1), ctypes.c_long(flags), ctypes.byref(Program(1, lines)))
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
listener = install(0x7FC00000, 8)  # asks, with a descriptor of its own
allowing = install(0x7FFF0000, 0)
end({"listener": listener, "allowing": allowing, "program": give("program"), "directory": give("directory"), "bits": [has_bit("program"), has_bit("directory")]})
"""


def test_a_filter_of_the_agents_own_lets_nothing_more_through(prove):
    def attack(target):
        seen = target.python(OWN_FILTER)
        return Outcome(seen["bits"][0], seen)

    on, _ = prove(attack, ALONE)
    assert on.seen == {"listener": "EBUSY", "allowing": "done", "program": "EPERM", "directory": "done", "bits": [False, True]}, on


OTHERS = BEGIN + """
end({"another's": give("/home/alice/projects/demo/of-bob"), "read-only": give("/home/alice/projects/demo/.git/hooks"), "set-uid": give("directory", 0o6755),
     "own": give("directory"), "own bit": has_bit("directory"), "missing": give("nothing"), "number": give(987), "empty": give("")})
"""


def test_of_directories_the_agent_changes_what_it_could_change_anyway(product, control_seen):
    product.machine.root(f"mkdir -p {DEMO}/of-bob; chown bob:bob {DEMO}/of-bob; chmod 777 {DEMO}/of-bob", check=True)
    try:
        seen = product.python(OTHERS)
    finally:
        product.machine.root(f"rmdir {DEMO}/of-bob", check=True)
    assert (seen["own"], seen["own bit"]) == ("done", True), seen
    control_seen("the same call changes the agent's own directory")
    refused = {name: seen[name] for name in ("another's", "read-only", "set-uid", "missing", "number", "empty")}
    assert refused == {"another's": "EPERM", "read-only": "EROFS", "set-uid": "EPERM", "missing": "ENOENT", "number": "EBADF", "empty": "ENOENT"}


GROUPS = BEGIN + """
os.mkdir("/srv/devs/made-inside")
said = {"inherited": has_bit("/srv/devs/made-inside"), "kept": give("/srv/devs/made-inside"), "after": has_bit("/srv/devs/made-inside"),
        "foreign": give("/srv/devs/foreign"), "foreign after": has_bit("/srv/devs/foreign")}
os.rmdir("/srv/devs/made-inside")
end(said)
"""


def test_the_bit_stays_for_groups_of_the_users_and_for_no_other(product, control_seen):
    product.machine.root("chmod g+s /srv/devs; mkdir /srv/devs/foreign; chown carol:bob /srv/devs/foreign; chmod 2775 /srv/devs/foreign", check=True)
    try:
        seen = product.python(GROUPS, user="carol", cwd="/srv/devs")
    finally:
        product.machine.root("rmdir /srv/devs/foreign; chmod g-s /srv/devs", check=True)
    assert (seen["inherited"], seen["kept"], seen["after"]) == (True, "done", True), seen
    control_seen("of a group of its user's the directory keeps the bit")
    assert (seen["foreign"], seen["foreign after"]) == ("done", False), seen


LATER = BEGIN + """
print(os.environ["PI_AGENT_SESSION"], give("directory"), flush=True)
while not os.path.exists("go"):
    time.sleep(0.05)
end({"program": give("program"), "directory": give("directory"), "plain": give("directory", 0o700), "bits": [has_bit("program")]})
"""


@pytest.fixture
def later(product):
    """later(signal): what gave a session's directory the bit got the signal, and then that session's agent goes on."""

    def start(signal):
        session = product.session("python3", "-c", LATER)
        assert session.words == ["done"]
        changer = pid_of_user(product.machine, session.scope, "pi-agent")
        product.machine.root(["kill", f"-{signal}", str(changer)], check=True)
        product.machine.run("for place in set-gid-*; do touch $place/go; done", cwd=DEMO, check=True)
        return session

    yield start
    product.machine.root(f"rm -rf {DEMO}/set-gid-*", check=True)


def test_once_nobody_changes_modes_the_calls_fail(later, control_seen):
    session = later("KILL")
    control_seen("before, the directory got the bit")
    said = session.process.stdout.read().splitlines()[-1]
    assert json.loads(said) == {"program": "EPERM", "directory": "EPERM", "plain": "done", "bits": [False]}, said


def test_a_session_ends_though_who_changes_modes_stands_still(later, product, control_seen):
    session = later("STOP")
    time.sleep(1)
    assert session.process.poll() is None
    control_seen("the agent waits for an answer")
    session.process.send_signal(signal.SIGTERM)
    assert session.process.wait(timeout=10) != 0
    assert product.pi("echo", "ran").stdout == b"ran\n"


FLOOD = BEGIN + """
def flood():
    while True:
        give("directory")
        give("program")
for _ in range(16):
    threading.Thread(target=flood, daemon=True).start()
time.sleep(3)
end({"bits": [has_bit("directory"), has_bit("program")]})
"""


def test_many_calls_at_once_are_answered_one_after_the_other(product, control_seen):
    assert product.python(FLOOD) == {"bits": [True, False]}
    control_seen("the directory got the bit meanwhile")
    assert product.pi("echo", "ran").stdout == b"ran\n"


@pytest.mark.parametrize(("defence", "line", "good"), [("mode-call-filter", "Seccomp:", "2"), ("children-not-dumpable", "owner", "0")])
def test_who_changes_modes_is_no_way_to_more(defence, line, good, prove):
    """It has groups of the user's: it calls little else, and the agent's account, which it has too, cannot look into it."""

    def attack(target):
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
        changer = pid_of_user(target.machine, session.scope, "pi-agent")
        look = f"stat -c 'owner %u' /proc/{changer}/mem; cat /proc/{changer}/status"
        found = next(words[1] for words in map(str.split, target.machine.root(look, check=True).stdout.decode().splitlines()) if words and words[0] == line)
        session.end()
        return Outcome(found != good, found)

    prove(attack, defence)

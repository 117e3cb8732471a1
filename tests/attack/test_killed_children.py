"""Children of the runner with the user's uid, killed by that user: nothing starts without what they were for, and nothing is left of them."""

import platform

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("user")

GIT_CONFIG = "/home/alice/.gitconfig"
MANY = 3000  # so many directories that the search can be caught at work
CLEAN_SECONDS = 8

# As alice: starts pi, finds a child of its runner with her uid, kills it, and tells what came.
KILLING = """
def children():
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
        except OSError:
            continue
        if int(status["Uid"].split()[0]) == os.getuid() and "Z" not in status["State"]:
            found[int(pid)] = (status["Name"].strip(), int(status["PPid"]))
    return found

def finder(now):
    # Before there is any other: the first child is the receiver.
    runners = sorted(pid for pid, (name, _) in now.items() if name == "pi-agent-runner")
    return runners[1] if len(runners) == 2 else None

def identity_reader(now):
    for pid, (name, parent) in now.items():
        if name == "git" and now.get(parent, ("", 0))[0] == "pi-agent-runner":
            return parent
    return None

wrapper = subprocess.Popen(["pi", "sh", "-c", SCRIPT], cwd=DEMO, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
victim = None
while victim is None and wrapper.poll() is None:
    victim = WHO(children())
if victim:
    os.kill(victim, signal.SIGKILL)
out, said = wrapper.communicate(timeout=60)
tell({"victim": victim, "status": wrapper.returncode, "out": out.decode(), "said": said.decode()})
"""


def killing(target, who, script):
    answer = target.play(f"SCRIPT = {script!r}\n" + KILLING.replace("WHO", who))
    assert answer["victim"], f"nobody was caught, so this shows nothing: {answer}"
    return answer


@pytest.fixture
def large_project(product, weak):
    for target in (product, weak):
        target.machine.run(f"cd {DEMO} && mkdir -p many && cd many && seq -f d%g/e/f/g {MANY} | xargs mkdir -p && cd .. && mkdir -p .git/hooks", check=True)
        target.machine.run(["sh", "-c", f"test -e {DEMO}/.git/HEAD || git init -q {DEMO}"], check=True)
    mask = 'projects: {mask: ["**/.env"]}'
    with product.policy_with(mask), weak.policy_with(mask):
        yield
    for target in (product, weak):
        target.machine.root(f"rm -rf {DEMO}/many {DEMO}/.git/hooks/planted", check=True)


def test_nothing_starts_unprotected_when_its_user_kills_the_finder_of_protected_paths(prove, large_project):
    def attack(target):
        answer = killing(target, "finder", f"echo ran; echo planted >{DEMO}/.git/hooks/planted")
        return Outcome("ran" in answer["out"], answer)

    on, _ = prove(attack, "finder-required")
    assert on.seen["status"] == 71 and "the finder of protected paths was killed" in on.seen["said"], on


@pytest.fixture
def endless_git_config(product, weak):
    """git waits for somebody who writes into it."""
    for target in (product, weak):
        target.machine.run(f"test ! -e {GIT_CONFIG} || mv {GIT_CONFIG} {GIT_CONFIG}-kept; mkfifo {GIT_CONFIG}", check=True)
    yield
    for target in (product, weak):
        target.machine.root(f"pkill -KILL -u alice -x git; rm {GIT_CONFIG}; test ! -e {GIT_CONFIG}-kept || mv {GIT_CONFIG}-kept {GIT_CONFIG}", check=True)


def git_that_is_left(target, traces):
    """What a session left, in words; a git that is the reason is ended. Empty where it left nothing."""
    try:
        target.expect_traces(traces, CLEAN_SECONDS)
    except AssertionError as left:
        target.machine.root("pkill -KILL -u alice -x git", check=True)
        target.expect_traces(traces, CLEAN_SECONDS)
        return str(left)
    return ""


def test_nothing_is_left_when_the_user_kills_the_reader_of_their_git_identity(prove, endless_git_config):
    """A program of the host's works for it; left alone it would keep the runner's scope."""

    def attack(target):
        traces = target.quiet_traces()
        answer = killing(target, "identity_reader", "echo ran")
        assert answer["out"] == "ran\n" and "name and address" in answer["said"], f"a session without a name for commits is one: {answer}"
        left = git_that_is_left(target, traces)
        return Outcome(bool(left), left or answer)

    prove(attack, "program-end", "program-namespace")


# As alice: makes git, while it waits, fork a process that does nothing, by writing its registers (ptrace(2), x86-64).
TRACING = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
CONT, GETREGS, SETREGS, ATTACH, DETACH, SYSCALL, SETOPTIONS, GETEVENTMSG, TRACE_FORK = 7, 12, 13, 16, 17, 24, 0x4200, 0x4201, 2
WALL, FORK, PAUSE, SYSCALL_LENGTH = 0x40000000, 57, 34, 2
NAMES = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs".split()

class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulong) for name in NAMES]

def trace(request, pid, data=0):
    if libc.ptrace(request, pid, 0, ctypes.cast(data, ctypes.c_void_p) if not isinstance(data, int) else data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request}")

def call_again(pid, number):
    registers = Registers()
    trace(GETREGS, pid, ctypes.byref(registers))
    was = registers.orig_rax
    registers.rip -= SYSCALL_LENGTH
    registers.rax = number
    registers.orig_rax = ctypes.c_ulong(-1).value
    trace(SETREGS, pid, ctypes.byref(registers))
    return was

def the_git():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
            parent = open(f"/proc/{status['PPid'].strip()}/comm").read().strip()
            if status["Name"].strip() == "git" and parent == "pi-agent-runner" and open(f"/proc/{pid}/syscall").read().startswith("257 "):
                return int(pid)
        except PermissionError:
            return int(pid)  # which is seen again when it is attached to
        except OSError:
            continue

wrapper = subprocess.Popen(["pi", "sh", "-c", "echo ran"], cwd=DEMO, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
git = planted = refused = None
while git is None and wrapper.poll() is None:
    git = the_git()
assert git, wrapper.communicate()
try:
    trace(ATTACH, git)
    os.waitpid(git, WALL)
    was = call_again(git, FORK)
    trace(SETOPTIONS, git, TRACE_FORK)
    trace(CONT, git)
    os.waitpid(git, WALL)
    child = ctypes.c_ulong()
    trace(GETEVENTMSG, git, ctypes.byref(child))
    os.waitpid(child.value, WALL)
    call_again(child.value, PAUSE)
    trace(DETACH, child.value)
    trace(SYSCALL, git)  # to the end of its fork, whose result would come over the registers
    os.waitpid(git, WALL)
    call_again(git, was)
    trace(DETACH, git)
    planted = child.value
except OSError as error:
    refused = str(error)
out, said = wrapper.communicate(timeout=60)
tell({"git": git, "planted": planted, "refused": refused, "status": wrapper.returncode, "out": out.decode(), "said": said.decode()})
"""


def test_a_process_that_its_user_makes_the_git_of_the_runner_start_ends_with_it(prove, endless_git_config):
    """Outside of the user's slice and limits it would keep the runner's scope, to which the agent's unit is bound."""
    if platform.machine() != "x86_64":
        pytest.skip("the attack writes the registers of x86-64")

    def attack(target):
        traces = target.quiet_traces()
        answer = target.play(TRACING)
        if answer["refused"]:
            pytest.skip(f"no user can trace a process of their own here: {answer['refused']}")
        assert answer["planted"] and answer["out"] == "ran\n", f"nothing was planted, so this shows nothing: {answer}"
        left = git_that_is_left(target, traces)
        return Outcome(bool(left), left or answer)

    prove(attack, "program-namespace")

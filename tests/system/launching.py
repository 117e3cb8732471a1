"""How the system tests start pi in the machine, and how they look at what came of it."""

import contextlib
import re
import select
import time

from cache import HERE

DEMO = "/home/alice/projects/demo"
POLICY_FILE = "/etc/pi-agent/policy.yaml"
STANDARD_POLICY = (HERE / "policy.yaml").read_text()
PLAYING_AGENT = "/usr/lib/pi-agent/playing-agent/bin/pi"
STATE = "/var/lib/pi-agent/users"
# The policy of most tests: the standard one with the agent that does what its arguments say.
PLAYING_POLICY = STANDARD_POLICY.replace("/usr/lib/pi-agent/agent/bin/pi", PLAYING_AGENT)
assert PLAYING_AGENT in PLAYING_POLICY

# Units, directories, mounts and processes of sessions, one a line: an empty answer means that none is left.
LEFTOVERS = """
systemctl list-units --all --plain --no-legend 'pi-agent-*.service' 'pi-agent-*.scope' 'pi-agent-*.slice'
ls -A /run/pi-agent/sessions 2>/dev/null | sed 's/^/directory /'
ls -A /var/lib/pi-agent/sessions 2>/dev/null | sed 's/^/temporary files of /'
grep -o ' /run/pi-agent/sessions/[^ ]*' /proc/self/mountinfo | sed 's/^/mount/'
ps -eo user:32=,args= | grep '^pi-agent' | sed 's/^/process of /'
ps -eo args= | grep '^/usr/libexec/pi-agent/' | sed 's/^/process /'
true
"""

# Which of our processes can be killed besides the agent.
KILLS_OF_OURS = {
    "launcher": "pkill -9 -x pi-agent-exec",
    "runner": "pkill -9 -f ^/usr/libexec/pi-agent/pi-agent-runner",
}
WRAPPER_KILL = "pkill -9 -u alice -x pi"

DENIED = 77
INVALID = 78


def pi(machine, *arguments, user="alice", cwd=DEMO, **options):
    """Runs pi to its end; standard input is empty and closed unless the caller says otherwise."""
    return machine.run(["pi", *arguments], user=user, cwd=cwd, **options)


def agent_says(machine, *arguments, **options):
    """What the agent wrote to its standard output; it must have ended well and silently."""
    done = pi(machine, *arguments, **options)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout


def messages(done):
    """The lines on standard error: each is one of pi's own."""
    lines = done.stderr.decode().splitlines()
    assert all(line.startswith("pi: ") for line in lines), done
    return lines


def assert_refused(done, status, *words):
    """pi ended with its own `status`, said all of `words` and then where to read on, and no agent wrote anything."""
    lines = messages(done)
    said = "\n".join(lines)
    pointers = [line for line in lines if re.search(r"\bsee: ", line)]
    assert pointers == lines[-1:] and re.search(rf"see: (pi-agentctl explain E{int(status)}\b|pi --pi-agent-help$)", lines[-1]), done
    assert done.returncode == status, done
    assert done.stdout == b"", done
    for word in words:
        assert word in said, said


def place_of(text, mark, file=POLICY_FILE):
    """file:line:column where `mark` first is in a policy, as a message names it."""
    before = text[: text.index(mark)]
    return f"{file}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def variables(block):
    """An environment block as a dictionary of bytes."""
    return dict(entry.split(b"=", 1) for entry in block.split(b"\0") if entry)


def owner_and_mode(machine, path):
    return machine.root(["stat", "--format=%U:%G %a", "--", path], check=True).stdout.decode().strip()


def read_line(process, deadline=20):
    """The next line that a background process writes; the process stays usable when none comes."""
    line = b""
    until = time.monotonic() + deadline
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0, until - time.monotonic()))
        assert ready, f"no line within {deadline} s, only {line!r}"
        byte = process.stdout.raw.read(1) if hasattr(process.stdout, "raw") else process.stdout.read(1)
        assert byte, f"ended after {line!r}: {process.stderr.read() if process.stderr else ''}"
        line += byte
    return line


def leftovers(machine):
    return machine.root(LEFTOVERS, check=True).stdout.decode().splitlines()


def wait_until_empty(look, deadline=5):
    """Waits until `look` finds nothing any more."""
    until = time.monotonic() + deadline
    while found := look():
        assert time.monotonic() < until, f"still there after {deadline} s: {found!r}"
        time.sleep(0.02)


@contextlib.contextmanager
def session(machine, *arguments, user="alice", cwd=DEMO, program=("pi",), **options):
    """pi in the background, whose agent has said `ready`; whatever happens, it is gone afterwards."""
    process = machine.popen([*program, *arguments], user=user, cwd=cwd, **options)
    try:
        assert read_line(process) == b"ready\n"
        yield process
    finally:
        if process.poll() is None:
            process.kill_all()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


def finish(process, timeout=20):
    """Closes standard input and waits: status, the rest of standard output, standard error."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


@contextlib.contextmanager
def written_policy(machine, text, file=POLICY_FILE):
    """Puts a policy file there without `pi-agentctl apply`, which would refuse it; afterwards what was there before."""
    existed = machine.root(["test", "-e", file]).returncode == 0
    before = machine.read(file) if existed else None
    machine.write(file, text)
    try:
        yield
    finally:
        machine.root(["rm", "-rf", "--", file], check=True)
        if existed:
            machine.write(file, before)


def picture(machine, directory):
    """Everything below a directory: names, types, owners, modes, sizes, times, link targets, contents."""
    script = (
        'cd -- "$1" || exit; find . -printf "%p|%y|%u:%g|%m|%s|%T@|%l\\0" | sort -z;'
        " find . -type f -print0 | sort -z | xargs -0r sha256sum -z"
    )
    return machine.root(["bash", "-c", script, "bash", directory], check=True).stdout

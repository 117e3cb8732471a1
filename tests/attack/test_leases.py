"""What an agent holds of the project's files keeps their user, and the user's git, from nothing."""

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("agent")

FILE = "leased"
# SIGIO tells the holder that somebody waits: this one does not care.
HOLDER = f"""
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = os.open("{FILE}", os.O_RDWR)
try:
    fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.%s)
    answer = "held"
except PermissionError:
    answer = "refused"
print(os.environ["PI_AGENT_SESSION"], answer, flush=True)
time.sleep(60)
"""
# fcntl(2): without an answer the kernel breaks a lease after 45 seconds.
WAITING = {"F_WRLCK": f"timeout 5 cat {FILE}", "F_RDLCK": f"timeout 5 sh -c 'echo more >>{FILE}'"}


@pytest.mark.parametrize("kind", WAITING)
def test_a_lease_of_the_agents_does_not_keep_its_user_waiting(kind, prove):
    script = HOLDER % kind
    if kind == "F_RDLCK":  # only who has it open for reading alone
        script = script.replace("O_RDWR", "O_RDONLY")

    def attack(target):
        target.machine.run(f"echo one >{FILE}", cwd=DEMO, check=True)
        session = target.session("python3", "-c", script)
        try:
            done = target.machine.run(WAITING[kind], cwd=DEMO)
        finally:
            session.end()
            target.machine.root(["rm", "-f", f"{DEMO}/{FILE}"], check=True)
        assert done.returncode in (0, 124), done
        return Outcome(done.returncode == 124, (session.words, done))

    on, off = prove(attack, "seccomp-filter")
    assert on.seen[0] == ["refused"] and off.seen[0] == ["held"], (on, off)

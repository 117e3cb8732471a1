"""Programs that run as the agent's account outside any sandbox, beside a live session of that account: it gets into none of them."""

import pytest
from target import USER_NAMESPACE, Outcome

pytestmark = pytest.mark.position("agent")

HOME = "/var/lib/pi-agent/users/alice/home"
META = "/var/lib/pi-agent/users/alice/meta"
HOOK = "/usr/share/pi-agent/migrations/0.0.4-slow.sh"
# In the session: until a process of its own uid that is not its own runs "sleep 4", and then everything that would give it that process.
WATCH = """
import json, os, sys, time
print(os.environ["PI_AGENT_SESSION"], flush=True)
told = "it was never seen"
until = time.monotonic() + 20
def seen():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{pid}/cmdline").read() == "sleep\\0" + "4\\0":
                return pid
        except OSError:
            pass
def tried(pid):
    try:
        start = int(open(f"/proc/{pid}/maps").readline().split("-")[0], 16)
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            return "done" if memory.read(4) == b"\\x7fELF" else "nothing read"
    except OSError as error:
        return str(error)
while time.monotonic() < until and told != "done":
    pid = seen()
    if pid:
        told = tried(pid)
    if os.path.exists(os.environ["HOME"] + "/hook-ended"):
        break
    time.sleep(0.02)
open(os.environ["HOME"] + "/tried.new", "w").write(told)
os.rename(os.environ["HOME"] + "/tried.new", os.environ["HOME"] + "/tried")
time.sleep(60)
"""


@pytest.fixture
def slow_hook(product, weak):
    for target in (product, weak):
        target.machine.write(HOOK, "sleep 4; touch hook-ended\n")
    yield
    for target in (product, weak):
        target.machine.root(["rm", HOOK], check=True)


def attack(target):
    target.machine.root(f"rm -f {HOME}/tried {HOME}/hook-ended", check=True)
    session = target.session("python3", "-c", WATCH)
    target.machine.write(f"{META}/version", "0.0.1\n", mode=0o600)
    done = target.pi("true")
    assert done.returncode == 0 and b"last used by pi-agent 0.0.1" in done.stderr, done
    told = target.machine.root(f"for i in $(seq 100); do test -e {HOME}/tried && break; sleep 0.1; done; cat {HOME}/tried", check=True).stdout.decode()
    session.end()
    target.machine.root(f"rm -f {HOME}/tried {HOME}/hook-ended", check=True)
    return Outcome(told == "done", told)


def test_a_session_does_not_get_into_a_migration_hook_that_runs_beside_it(prove, slow_hook):
    prove(attack, *USER_NAMESPACE, "unit:PrivatePIDs", "landlock")


@pytest.mark.parametrize("alone", [("unit:PrivatePIDs", "landlock"), (*USER_NAMESPACE, "unit:PrivatePIDs")], ids=["the user namespace", "Landlock"])
def test_to_keep_it_out_there_is_enough_in(alone, weak, slow_hook):
    """Of kernels without Landlock, and where systemd has no PID namespaces, the other one is what is left."""
    with weak.without(*alone):
        assert not attack(weak).succeeded

"""Two sessions of one account, the hardest case: what one tries on the other gives nothing, whoever started them."""

import contextlib
import json

import pytest
from target import INSIDE, USER_NAMESPACE

pytestmark = pytest.mark.position("agent")

# Each session has a user namespace and a Landlock domain of its own, and either is enough. Without Landlock and process numbers of its own,
# what debuggers call is filtered, too (test_tracing.py).
PROCESS = (*USER_NAMESPACE, "unit:PrivatePIDs", "landlock")
TRACING = (*PROCESS, "seccomp-filter", "unit:SystemCallFilter")
SCOPES = ("landlock",)
SIGNALS = ("landlock", "unit:PrivatePIDs")
# Without the root tree, its /sys would hide what systemd 257 mounts from there.
FILES = ("unit:RootDirectory", "unit:BindReadOnlyPaths", "unit:ProtectSystem", "unit:PrivateTmp")
TEMPORARY = (*FILES, "own-tmp")
ATTEMPTS = {
    "its /proc entry": PROCESS,
    "its command line": PROCESS,
    "its environment": PROCESS,
    "its memory": PROCESS,
    "its descriptors": PROCESS,
    "its root": PROCESS,
    "its working directory": PROCESS,
    "its project through its root": PROCESS,
    "its state through its root": PROCESS,
    "its namespaces": PROCESS,
    "tracing it": TRACING,
    "a descriptor of it": TRACING,
    "its limits": ("limits-of-others", "unit:PrivatePIDs"),
    "a signal": SIGNALS,
    "a signal by descriptor": SIGNALS,
    "its abstract socket": SCOPES,
    "its file in /tmp": TEMPORARY,
    "its file in /var/tmp": TEMPORARY,
    "its file in /dev/shm": ("unit:TemporaryFileSystem",),
    "its shared memory": ("unit:PrivateIPC",),
    "its System V queue": ("unit:PrivateIPC",),
    "its semaphores": ("unit:PrivateIPC",),
    "its POSIX queue": ("unit:PrivateIPC",),
    "its user's state by its path": FILES,
    "its session's directory": None,  # root's, 0700: the host's file permissions, nothing to take out
}
NEIGHBOURS = {"the same user": ("alice", "/home/alice/projects/demo"), "another user": ("bob", "/home/bob/work/demo")}
ELSEWHERE = "/srv/shared/app"


@pytest.fixture(scope="module")
def attempts(product, weak):
    """attempts(target, neighbour, defences taken out): what the neighbour got; each combination is tried once."""
    known = {}

    def attempts(target, neighbour, defences):
        key = (target, neighbour, defences)
        if key not in known:
            user, cwd = NEIGHBOURS[neighbour]
            with target.without(*defences) if defences else contextlib.nullcontext():
                # Not in a home where the homes themselves are taken out.
                place = ELSEWHERE if "unit:TemporaryFileSystem" in defences else "/home/alice/projects/demo"
                place_of_neighbour = ELSEWHERE if "unit:TemporaryFileSystem" in defences and user == "alice" else cwd
                victim = target.session("python3", f"{INSIDE}/victim.py", cwd=place)
                done = target.pi("python3", f"{INSIDE}/neighbour.py", str(victim.agent_pid()), user=user, cwd=place_of_neighbour)
                victim.end()
            assert done.returncode == 0, done
            known[key] = json.loads(done.stdout.splitlines()[-1])
        return known[key]

    return attempts


# Not what the second session of one user has by right: that user's state.
CASES = [
    (attempt, neighbour) for attempt in ATTEMPTS for neighbour in NEIGHBOURS
    if (attempt, neighbour) != ("its user's state by its path", "the same user")
]  # fmt: skip


@pytest.mark.parametrize(("attempt", "neighbour"), CASES, ids=[f"{neighbour}: {attempt}" for attempt, neighbour in CASES])
def test_a_session_does_not_give_its_neighbour(attempt, neighbour, product, weak, attempts, seen_to_work):
    assert attempts(product, neighbour, ())[attempt] != "done"
    assert attempts(weak, neighbour, ())[attempt] != "done"
    defences = ATTEMPTS[attempt]
    if defences is not None:
        off = attempts(weak, neighbour, defences)[attempt]
        assert off == "done", f"without {defences} this should work, so the test proves nothing: {off}"
        seen_to_work(defences)


@pytest.mark.position("tests")
def test_the_neighbour_knows_how_to_try(product):
    """The victim itself gets everything that its neighbours are refused: the attempts are not refused for their own mistakes."""
    script = f"python3 {INSIDE}/victim.py >/tmp/line & sleep 1; python3 {INSIDE}/neighbour.py $(cut -d ' ' -f 2 /tmp/line); kill %1"
    done = product.pi("bash", "-c", script)
    got = json.loads(done.stdout.splitlines()[-1])
    refused = {attempt for attempt, answer in got.items() if answer != "done"}
    # Limits of its own other processes it may set where it has process numbers of its own (Debian 13).
    assert refused - {"its limits"} == {"a descriptor of it", "its session's directory"}, got

"""The agents' homes at another place: who could lead root there, what sessions would see of them, and a move that is cut short or misled."""

import contextlib
import re

import pytest
from points import SOURCES, WAIT_AT
from target import ATTACK_POLICY, POLICY_FILE, Outcome

pytestmark = pytest.mark.position("host")

OLD = "/var/lib/pi-agent"
NEW = "/srv/agents"
INVALID = 78
# Where the seams stop the move: one line each of admin/state/state_move.cpp, in their order. The homes are at the new place from the fifth on.
POINTS = ("state-copying", "state-comparing", "state-copied", "state-aside", "state-switched", "state-leaving")
# What an agent may have in its home, and what it must be at the new place.
PLANTED = "cd ~ && mkdir -p kept/deep && echo mine >kept/file && ln -f kept/file kept/same && ln -sfn /etc/shadow kept/link && rm -f kept/fifo && mkfifo kept/fifo && chmod 750 kept/deep"
LOOK = "cd ~ && cat kept/file kept/same && readlink kept/link && test -p kept/fifo && stat -c %a kept/deep"
SEEN = b"mine\nmine\n/etc/shadow\n750\n"


def policy_at(place, more=""):
    return ATTACK_POLICY.read_text().replace("agent:\n", f"agent:\n  state_dir: {place}\n") + more


@contextlib.contextmanager
def written(target, policy):
    """The policy without apply, as somebody writes it."""
    target.machine.write(POLICY_FILE, policy)
    try:
        yield
    finally:
        target.machine.write(POLICY_FILE, ATTACK_POLICY.read_text())


@contextlib.contextmanager
def made(target, script):
    """What `script` makes below /srv goes again."""
    target.machine.root(script, check=True)
    try:
        yield
    finally:
        target.machine.root("rm -rf --one-file-system /srv/agents /srv/open /srv/link /opt/link", check=True)


STATE_AT = "install -d -m 711 {0} {0}/users && install -d -m 700 {0}/sessions"
OTHERS_CAN_CHANGE = {
    "a user's directory above": f"install -d -o alice -m 755 /srv/open && {STATE_AT.format('/srv/open/agents')}",
    "a directory above that a group may write": f"install -d -g devs -m 775 /srv/open && {STATE_AT.format('/srv/open/agents')}",
    "a user's own directory": f"{STATE_AT.format('/srv/open/agents')} && chown alice /srv/open/agents",
}


@pytest.mark.position("user")
@pytest.mark.parametrize("kind", OTHERS_CAN_CHANGE)
def test_no_state_is_kept_where_others_than_root_could_exchange_it(kind, prove):
    def attack(target):
        policy = policy_at("/srv/open/agents")
        with made(target, OTHERS_CAN_CHANGE[kind]), written(target, policy):
            applied = target.machine.root(["pi-agentctl", "apply", "--no-canary"]) if not target.has_seams else None
            done = target.pi("echo", "here")
        return Outcome(done.stdout == b"here\n", (done, applied))

    on, _ = prove(attack, "trusted-files", quick=True)
    done, applied = on.seen
    assert done.returncode == INVALID and b"cannot be trusted" in done.stderr, done
    assert applied.returncode == INVALID and b"agent.state_dir: " in applied.stderr, applied


def test_an_empty_directory_is_no_state(prove):
    """The file system of the homes is not mounted, or the move did not happen yet: nobody gets an empty home that hides the real one."""

    def attack(target):
        with made(target, f"install -d -m 711 {NEW}"), written(target, policy_at(NEW)):
            done = target.pi("echo", "here")
        return Outcome(done.stdout == b"here\n", done)

    on, _ = prove(attack, "state-in-use", quick=True)
    assert on.seen.returncode == INVALID and b"the agents' homes are not in /srv/agents (agent.state_dir)" in on.seen.stderr, on


@pytest.mark.position("agent")
@pytest.mark.parametrize("key", ["roots", "view_paths"])
def test_a_link_shows_no_session_the_homes_of_all(key, prove):
    """As texts the two are apart. Modes let everybody read here, so that nothing else keeps the session from it."""

    def attack(target):
        policy = policy_at(NEW, "view_paths: [/opt/link]\n" if key == "view_paths" else "")
        shown, cwd = (f"{NEW}/users/bob/home", "/home/alice/projects/demo")
        if key == "roots":
            policy = policy.replace("roots: [~/projects, /srv/shared/app]", "roots: [/srv/link]")
            cwd = "/srv/link"
        plant = f"{STATE_AT.format(NEW)} && install -d -m 711 {NEW}/users/bob && install -d -o pi-agent -g pi-agent -m 755 {NEW}/users/bob/home && echo bobs >{NEW}/users/bob/home/file && ln -s /srv /srv/link && ln -s {NEW}/users /opt/link"
        with made(target, plant), written(target, policy):
            done = target.pi("cat", f"{shown}/file", cwd=cwd)
        return Outcome(done.stdout == b"bobs\n", done)

    on, _ = prove(attack, *(["root-place-early", "root-place"] if key == "roots" else ["view-beside-state"]), quick=True)
    assert on.seen.returncode == INVALID and b"holds the agents' homes (agent.state_dir: /srv/agents), or is in them" in on.seen.stderr, on


# --- the move


def move(target):
    return target.machine.root(["pi-agentctl", "state", "move", "--yes"])


def back(target):
    """The homes are at their usual place again, however far a move came."""
    target.machine.write(POLICY_FILE, ATTACK_POLICY.read_text())
    done = move(target)
    assert done.returncode in (0, 1), done
    target.machine.root(f"rm -rf --one-file-system {NEW}", check=True)
    target.machine.root(["pi-agentctl", "apply", "--no-canary"], check=True)


@contextlib.contextmanager
def about_to_move(target):
    target.pi("sh", "-c", PLANTED, check=True)
    target.machine.write(POLICY_FILE, policy_at(NEW))
    try:
        yield
    finally:
        target.machine.root(["rm", "-f", WAIT_AT], check=True)
        back(target)


@contextlib.contextmanager
def stopped_at(target, point):
    """A move that waits at a point."""
    target.machine.write(WAIT_AT, f"{point}\n")
    with target.machine.popen(["pi-agentctl", "state", "move", "--yes"], user="root") as running:
        target.machine.root(f"for i in $(seq 400); do pgrep -x {point[:15]} && exit; sleep .05; done; exit 1", check=True)
        yield running


def test_every_point_is_tried():
    files = (SOURCES / "admin/state").glob("*.cpp")
    assert {name for file in files for name in re.findall(r'fault_point\("([^"]+)"\)', file.read_text())} == set(POINTS)


def test_a_home_is_moved_as_its_agent_left_it(product, control_seen):
    with about_to_move(product):
        before = product.pi("sh", "-c", LOOK)
        assert before.returncode == INVALID, "nobody starts between the change of the policy and the move"
        done = move(product)
        assert done.returncode == 0, done
        assert product.pi("sh", "-c", LOOK, check=True).stdout == SEEN
        assert product.machine.root(f"ls {OLD} | grep -v undo").stdout == b"applied\netc\nrecords\n"
        product.machine.root(["pi-agentctl", "apply", "--no-canary"], check=True)
    assert product.pi("sh", "-c", LOOK, check=True).stdout == SEEN, "and back"
    control_seen("the moved home was used")


def test_another_file_system_in_a_home_is_not_taken_along(prove):
    def attack(target):
        inner = f"{OLD}/users/alice/home/inner"
        with about_to_move(target):
            target.machine.root(f"mkdir -p {inner} && mount -t tmpfs none {inner} && echo x >{inner}/file", check=True)
            try:
                done = move(target)
                copied = target.machine.root(["test", "-e", f"{NEW}/users/alice/home/inner/file"]).returncode == 0
                left = target.machine.root(["test", "-e", f"{NEW}/users.moving"]).returncode
            finally:
                # A move that went on keeps the former homes where no start looks, and cannot remove them with it.
                target.machine.root(f"umount {inner} || umount {OLD}/users.leaving/alice/home/inner; rm -rf {inner}", check=True)
        return Outcome(copied, (done, left))

    on, _ = prove(attack, "move-one-file-system", quick=True)
    done, left = on.seen
    assert done.returncode == INVALID and b"nothing is moved: " in done.stderr and b"/inner is a file system of its own" in done.stderr and left == 1, on


def test_what_changes_during_a_move_is_seen(weak, seen_to_work):
    """A process that still writes, or a disk that does not keep what it was given."""
    for defences in ((), ("move-compares",)):
        with about_to_move(weak), weak.without(*defences), stopped_at(weak, "state-comparing") as running:
            weak.machine.root(f"echo else >{NEW}/users.moving/alice/home/kept/file; rm {WAIT_AT}", check=True)
            _, said = running.communicate(timeout=60)
            moved = weak.machine.root(["cat", f"{NEW}/users/alice/home/kept/file"]).stdout
        assert moved == (b"else\n" if defences else b""), said
        assert bool(defences) or (running.returncode != 0 and b"is not the same at the new place" in said), said
    seen_to_work(defences)


@pytest.mark.parametrize("way", ["on", "back"])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_a_named_point_leaves_the_homes_whole_and_the_next_call_finishes(point, way, weak, control_seen):
    with about_to_move(weak):
        with stopped_at(weak, point) as running:
            weak.machine.root(f"pkill -9 -x {point[:15]}", check=True)
            running.communicate(timeout=60)
        weak.machine.root(["rm", WAIT_AT], check=True)
        is_switched = POINTS.index(point) >= POINTS.index("state-switched")
        started = weak.pi("sh", "-c", LOOK)
        assert (started.stdout == SEEN) == is_switched and started.returncode == (0 if is_switched else INVALID), started
        assert weak.machine.root(["pi-agentctl", "apply", "--no-canary"]).returncode == INVALID, "apply tells it"
        if way == "back":
            weak.machine.write(POLICY_FILE, ATTACK_POLICY.read_text())
            started = weak.pi("sh", "-c", LOOK)  # nobody works in homes that the next call removes
            assert started.returncode == (INVALID if POINTS.index(point) >= POINTS.index("state-aside") else 0), started
        done = move(weak)
        assert done.returncode == 0, done
        assert weak.pi("sh", "-c", LOOK, check=True).stdout == SEEN
        here, there = (OLD, NEW) if way == "back" else (NEW, OLD)
        assert weak.machine.root(["test", "-e", f"{there}/users"]).returncode == 1 and weak.machine.root(["test", "-d", f"{here}/users/alice/home"]).returncode == 0
        assert weak.machine.root(["test", "-e", f"{NEW}/users.moving"]).returncode == 1
    control_seen("the move waited there and was killed")


def test_no_move_while_a_session_lives(product, control_seen):
    session = product.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
    try:
        with about_to_move_nothing(product):
            done = move(product)
            assert done.returncode == 75 and b"session runs" in done.stderr, done
            assert product.machine.root(["test", "-e", f"{NEW}/users.moving"]).returncode == 1
    finally:
        session.end()
    control_seen("the session lived")


@contextlib.contextmanager
def about_to_move_nothing(target):
    """As about_to_move, without a start."""
    target.machine.write(POLICY_FILE, policy_at(NEW))
    try:
        yield
    finally:
        target.machine.write(POLICY_FILE, ATTACK_POLICY.read_text())
        target.machine.root(f"rm -rf --one-file-system {NEW}", check=True)

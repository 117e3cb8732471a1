"""Faults at every named point of a session: kill -9, a stopped process, systemd executed again, a bus that is restarted."""

import pytest
from engine import engine_of
from points import DOORS, ENGINES, LAUNCHER, POINTS, POLICIES, REMOVED_BY_THE_NEXT_START, UNDER_A_QUOTA, WRAPPER, Before, name_of, points_in_the_sources, require_in_words, waiting_at

pytestmark = pytest.mark.position("host")

BOB = {"user": "bob", "cwd": "/home/bob/work/demo"}
# systemd gives up on what is killed five times in ten seconds, unless it forgets; USR1 has it look for the bus again (systemd(1)); logind's start
# waits until systemd sees it there.
BUS_AGAIN = """systemctl reset-failed dbus.service dbus.socket; systemctl restart dbus.service
until busctl status org.freedesktop.systemd1 >/dev/null 2>&1; do kill -USR1 1; sleep 0.2; done
systemctl reset-failed systemd-logind.service; systemctl restart systemd-logind.service"""


@pytest.fixture(scope="module")
def podman(weak):
    with weak.machine.podman():
        yield


@pytest.fixture(scope="module")
def docker(weak):
    with engine_of(weak.machine, "docker"):
        with weak.policy_with(POLICIES["engine-door under docker"]):
            weak.pi("true", check=True)  # from its first container on the daemon keeps the host's network namespace mounted
        yield


@pytest.fixture(autouse=True)
def engine(request):
    point = request.node.callspec.params.get("point") if hasattr(request.node, "callspec") else None
    if point in ENGINES:
        request.getfixturevalue(ENGINES[point])


@pytest.mark.position("tests")
def test_every_point_of_the_sources_is_tried():
    """Each case below fails where nobody comes to its point."""
    assert sorted({*map(name_of, POINTS), *UNDER_A_QUOTA}) == points_in_the_sources()


@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_left_after_kill_9_at(point, weak, control_seen):
    before = Before(weak, point)
    with waiting_at(weak, point) as reached:
        control_seen("a process waited at the point")
        reached.signal("KILL")
        reached.release()
        require_in_words(reached.end(), may_die=point in (*WRAPPER, *LAUNCHER, *DOORS))
    before.require_sound(removed_by_the_next_start=point in REMOVED_BY_THE_NEXT_START)


@pytest.mark.parametrize("point", POINTS)
def test_nobody_else_waits_for_a_process_that_stands_still_at(point, weak, control_seen):
    before = Before(weak, point)
    with waiting_at(weak, point) as reached:
        control_seen("a process waited at the point")
        reached.signal("STOP")
        reached.release()
        done = weak.pi("echo", "ran", timeout=20, **BOB)
        assert done.stdout == b"ran\n", f"a start of bob's meanwhile: {done}"
        reached.signal("CONT")
        require_in_words(reached.end())
    before.require_sound()


@pytest.mark.parametrize("point", POINTS)
def test_a_session_ends_well_though_systemd_is_executed_anew_at(point, weak, control_seen):
    before = Before(weak, point)
    with waiting_at(weak, point) as reached:
        control_seen("a process waited at the point")
        weak.machine.root(["systemctl", "daemon-reexec"], check=True)
        reached.release()
        require_in_words(reached.end())
    before.require_sound()


@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_left_though_the_bus_dies_at(point, weak, control_seen):
    before = Before(weak, point)
    with waiting_at(weak, point) as reached:
        control_seen("a process waited at the point")
        weak.machine.root("pkill -KILL -x dbus-daemon", check=True)
        try:
            reached.release()
            require_in_words(reached.end())
        finally:
            weak.machine.root(BUS_AGAIN, check=True, timeout=60)
    before.require_sound()

"""The look for what an attack leaves: it waits for what is still going away, and sees what is there or missing afterwards."""

import pytest
from target import SESSIONS, belongs_to_a_session, differences, of_sessions

pytestmark = pytest.mark.position("tests")

MOUNT = "/srv/of-the-host"


def snapshot(**kinds):
    return {"mounts": [], "units": [], "processes": [], "directories": [], **kinds}


def entry(point):
    return [point, "/", "", "rw", [], "tmpfs", "none"]


def test_what_an_earlier_session_leaves_is_waited_for(product):
    session = product.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 2")
    found = of_sessions(product.traces())
    assert set(found) == {"mounts", "units", "processes", "directories"}, found
    assert session in product.sessions
    product.sessions.remove(session)  # so that nobody but time ends it
    assert not of_sessions(product.quiet_traces())
    session.end()


def test_a_session_that_a_failed_test_forgot_is_ended(product, monkeypatch):
    monkeypatch.setattr("target.QUIET_SECONDS", 1)
    product.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
    assert not of_sessions(product.quiet_traces()) and not product.sessions


def test_what_nobody_ends_fails_the_test_that_comes_next(product, monkeypatch):
    monkeypatch.setattr("target.QUIET_SECONDS", 1)
    product.machine.root(["mkdir", f"{SESSIONS}/stale"], check=True)
    try:
        with pytest.raises(AssertionError, match="something of an earlier session is left.*stale"):
            product.quiet_traces()
    finally:
        product.machine.root(["rmdir", f"{SESSIONS}/stale"], check=True)


def test_a_mount_of_the_host_that_is_gone_is_seen(product):
    product.machine.root(f"mkdir -p {MOUNT}; mount -t tmpfs none {MOUNT}", check=True)
    before = product.quiet_traces()
    product.expect_traces(before)
    product.machine.root(f"umount {MOUNT}; rmdir {MOUNT}", check=True)
    with pytest.raises(AssertionError, match=f"mounts of the host that are gone.*{MOUNT}"):
        product.expect_traces(before, seconds=0)


def test_only_what_is_new_or_a_mount_of_the_host_counts():
    old = snapshot(mounts=[entry("/"), entry(f"{SESSIONS}/a/root")], units=["pi-agent-a.service"], processes=["node"], directories=["/tmp/a"])
    assert not differences(old, snapshot(mounts=[entry("/")]))
    assert differences(old, snapshot()) == {"mounts of the host that are gone": [entry("/")]}
    for kind in ("units", "processes", "directories", "mounts"):
        assert set(differences(snapshot(), snapshot(**{kind: old[kind]}))) == {f"more {kind}"}
    # One more of what there was already is one more.
    assert differences(snapshot(processes=["node"]), snapshot(processes=["node", "node"])) == {"more processes": ["node"]}
    assert not belongs_to_a_session(entry(SESSIONS)), "the file system of all sessions stays"

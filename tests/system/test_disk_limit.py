"""limits.disk where no quota can hold the agent: told or refused. tests/emulated has a file system with project quotas."""

import json

import pytest
from administering import ctl
from launching import DEMO, INVALID, PLAYING_POLICY, STATE, agent_says, assert_refused, messages, pi, place_of, written_policy

UNAVAILABLE = 69
NO_QUOTAS = "has no project quotas"


def limited(choice=""):
    return PLAYING_POLICY + "limits: {disk: 64M" + (f", disk_without_quota: {choice}" if choice else "") + "}\n"


@pytest.fixture
def fresh(playing):
    """alice's agent as before its first start: nothing was told yet. The state directory is on a file system without project quotas."""
    playing.root("pi-agentctl state reset --user alice --yes; true")
    with written_policy(playing, limited()):
        if NO_QUOTAS.encode() not in ctl(playing, "check").stderr:
            pytest.skip("the file system of this host's cache enforces project quotas")
    yield playing
    playing.root("pi-agentctl state reset --user alice --yes; true")


def test_a_limit_that_nothing_holds_is_told_once_at_a_start_and_always_by_the_tools(fresh):
    text = limited()
    where = place_of(text, "64M")
    with written_policy(fresh, text):
        first = pi(fresh, "sh", "echo started")
        assert (first.returncode, first.stdout) == (0, b"started\n"), first
        (told,) = messages(first)
        assert told.startswith(f"pi: limits.disk: 64M ({where}) is not enforced: /var/lib/pi-agent"), told
        assert NO_QUOTAS in told and "'prjquota' (docs/concepts/disk.md)" in told
        assert agent_says(fresh, "sh", "echo again") == b"again\n"
        checked = ctl(fresh, "check")
        assert checked.returncode == 0 and f"warning: {where}: limits.disk: 64M is not enforced: /var/lib/pi-agent".encode() in checked.stderr, checked
        warnings = json.loads(ctl(fresh, "check", "--json").stdout)["warnings"]
        assert [warning["key"] for warning in warnings].count("limits.disk") == 1, warnings
        faults = json.loads(ctl(fresh, "doctor", "--json", timeout=120).stdout)["faults"]
        assert [fault["about"] for fault in faults].count("disk") == 1, faults
        explained = fresh.run(["pi-agentctl", "explain"], cwd=DEMO, check=True).stdout.decode()
        assert f"disk of a user's agent: 64M ({where})" in explained and "          limits.disk is not enforced: " in explained
        data = json.loads(fresh.run(["pi-agentctl", "explain", "--json"], cwd=DEMO, check=True).stdout)["limits"]
        assert data["disk"] == {"value": "64M", "where": where}
        assert [one["limit"] for one in data["not_enforced"]].count("limits.disk") == 1


def test_a_policy_can_refuse_every_start_without_a_quota(fresh):
    text = limited("refuse")
    where = place_of(text, "64M")
    with written_policy(fresh, text):
        assert_refused(pi(fresh, "sh", "echo started"), UNAVAILABLE, f"this host cannot enforce the policy's limits.disk: 64M ({where})", NO_QUOTAS, "or remove the key")
        checked = ctl(fresh, "check")
        assert checked.returncode == INVALID and f"{where}: limits.disk: 64M cannot be enforced on this host".encode() in checked.stderr, checked
        assert b"no start is possible: limits.disk is not enforced" in fresh.run(["pi-agentctl", "explain"], cwd=DEMO).stdout


def test_a_home_in_memory_is_told_as_well(fresh):
    pi(fresh, "sh", "true")
    fresh.root(f"mount -t tmpfs -o mode=0711 tmpfs {STATE}/alice", check=True)
    try:
        with written_policy(fresh, limited()):
            (told,) = messages(pi(fresh, "sh", "true"))
        assert f"is not enforced: {STATE}/alice/home: its file system {NO_QUOTAS}" in told, told
    finally:
        fresh.root(["umount", "--lazy", f"{STATE}/alice"], check=True)


def test_without_a_sandbox_no_quota_holds_anybody(fresh):
    with written_policy(fresh, limited() + "sandbox: {method: none}\n"):
        done = pi(fresh, "sh", "echo started")
    assert done.stdout == b"started\n" and b"is not enforced: under sandbox.method none nothing keeps an agent from taking its files out" in done.stderr, done

"""Sessions one after another, a thousand of them in a full run: nothing is left to PID 1, the bus or the kernel of any of them."""

import json
import os
import time

import pytest
from target import DEMO, INSIDE, SESSIONS

pytestmark = pytest.mark.position("user")

COUNT = 1000 if os.environ.get("PI_AGENT_FULL") else 100
SLACK = 5  # what other programs of the host begin and end meanwhile; of sessions it would be hundreds
SETTLE_SECONDS = 20
POLICIES = {"systemd": "", "bwrap": "sandbox: {method: bwrap}"}
# What each session could leave: it has changed directories, processes of its own, a socket, shared memory.
AGENT = "mkdir -p $TMPDIR/a/b /tmp/c; echo x >$TMPDIR/a/b/c; echo y >/dev/shm/d; sleep 60 & ipcmk --shmem 4096 >/dev/null; true"

# As root: SLACK and one more of everything that is counted.
LEAVING = f"""
for i in $(seq {SLACK + 1}); do
  systemd-run --quiet --unit=census-$i --slice=census$i.slice --socket-property=ListenStream=/run/census-$i true 2>/dev/null
  systemd-run --quiet --unit=census-kept-$i --slice=census$i.slice dbus-monitor --system
  unshare --mount sleep 300 <&- >&- 2>&- & echo $! >>/run/census-pids
  mkdir -p {SESSIONS}/census-$i /sys/fs/cgroup/census-$i && mount -t tmpfs census {SESSIONS}/census-$i && touch /tmp/census-$i
  ipcmk --shmem 4096 >/dev/null
done; sleep 2
"""
REMOVING = f"""
kill $(cat /run/census-pids); ipcrm --all=shm; rm -f /tmp/census-* /run/census-pids
for i in $(seq {SLACK + 1}); do
  systemctl stop census-$i.socket census-kept-$i.service census$i.slice
  umount {SESSIONS}/census-$i; rmdir {SESSIONS}/census-$i /sys/fs/cgroup/census-$i; rm -f /run/census-$i
done 2>/dev/null; true
"""


def census(target):
    return json.loads(target.machine.root(["python3", f"{INSIDE}/census.py"], check=True, timeout=60).stdout)


def grown(before, now):
    return {kind: (before[kind], now[kind]) for kind in now if now[kind] > before[kind] + SLACK}


def grown_in_the_end(target, before):
    """What is more than before when the last session has had the time to go."""
    until = time.monotonic() + SETTLE_SECONDS
    while (found := grown(before, census(target))) and time.monotonic() < until:
        time.sleep(0.5)
    return found


def run_sessions(target, count, user, cwd):
    """One after another, in one go: each is waited for, and must end well."""
    loop = f"for i in $(seq {count}); do pi sh -c '{AGENT}' </dev/null || exit; done"
    done = target.machine.run(loop, user=user, cwd=cwd, timeout=60 + 3 * count)
    assert done.returncode == 0, done


@pytest.mark.parametrize("method", POLICIES)
def test_many_sessions_one_after_another_leave_nothing(method, product):
    """A hundred in the sampled run, a thousand in the full one; under bwrap a fifth of that."""
    traces = product.quiet_traces()
    count = COUNT if method == "systemd" else COUNT // 5
    with product.policy_with(POLICIES[method]):
        for user, cwd in (("alice", DEMO), ("bob", "/home/bob/work/demo")):
            run_sessions(product, 2, user, cwd)
        before = census(product)
        for user, cwd in (("alice", DEMO), ("bob", "/home/bob/work/demo")):
            run_sessions(product, count // 2, user, cwd)
        found = grown_in_the_end(product, before)
    assert not found, f"after {count} sessions: {found}"
    product.expect_traces(traces, SETTLE_SECONDS)


@pytest.mark.position("tests")
def test_the_count_sees_one_of_everything_that_many_sessions_could_leave(product):
    before = census(product)
    product.machine.root(LEAVING, timeout=60)
    found = grown(before, census(product))
    product.machine.root(REMOVING, timeout=60)
    assert set(found) == set(before), f"not seen: {set(before) - set(found)}"
    assert not grown_in_the_end(product, before)

"""Faults under a start and a session: directories that are full, without inodes or read-only; systemd executed again; unit names that are taken; a bus that dies."""

import json

import pytest
from target import DEMO, INSIDE, SESSIONS, Outcome

pytestmark = pytest.mark.position("host")

CONFIG = "/home/alice/.pi/agent"
STATE = "/var/lib/pi-agent/users/alice"
STUBBORN = ("python3", f"{INSIDE}/stubborn.py")
FILES = 200
SYSTEM_FAILURE, UNAVAILABLE = 71, 69


# --- the state directory

# As root: which of alice's files inside are the first version, the second, missing, or none of these.
LOOKING = f"""
import json, os
seen = {{"old": 0, "new": 0, "missing": 0, "wrong": []}}
for number in range({FILES} * 2):
    try:
        text = open(f"{STATE}/home/.pi/agent/many/{{number}}").read()
    except FileNotFoundError:
        seen["missing"] += 1
        continue
    if text == f"old {{number}}\\n":
        seen["old"] += 1
    elif text == f"new {{number}}\\n" * 4000:
        seen["new"] += 1
    else:
        seen["wrong"].append(number)
print(json.dumps(seen))
"""
WRITING = f"""
import os, shutil, sys
shutil.rmtree("{CONFIG}/many", ignore_errors=True)
os.mkdir("{CONFIG}/many")
version, count, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(count):
    open(f"{CONFIG}/many/{{number}}", "w").write(f"{{version}} {{number}}\\n" * times)
"""


def write_config(target, version, count=FILES, times=1):
    target.machine.run(["python3", "-c", WRITING, version, str(count), str(times)], check=True)


def look(target):
    return json.loads(target.machine.root(["python3", "-c", LOOKING], check=True).stdout)


@pytest.fixture
def small_state(product):
    """alice's state on a file system of its own, with the first version of her files in it."""
    machine = product.machine
    machine.root(f"rm -rf {STATE}; install -d -o alice -g alice /home/alice/.pi {CONFIG}", check=True)
    write_config(product, "old")
    product.pi("true", check=True)
    keep = f"rm -rf /root/state && cp -a {STATE} /root/state && mount -t tmpfs -o mode=$(stat -c %a {STATE}) small {STATE}"
    machine.root(f"{keep} && cp -a /root/state/. {STATE}", check=True)
    yield machine
    machine.root(f"umount {STATE}; rm -rf {STATE} /root/state {CONFIG}/many", check=True)


# What leaves no room for the second version, what makes room again, and the message.
FULL = {
    "full": ("size=$(($(df --output=used -k {0} | tail -1) + 2000))k", "size=64m", b"No space left on device"),
    "without inodes": ("nr_inodes=$(($(df --output=iused {0} | tail -1) + 50))", "nr_inodes=5000", b"No space left on device"),
    "read-only": ("ro", "rw", b"Read-only file system"),
}


@pytest.mark.parametrize("fault", FULL)
def test_after_a_start_into_a_state_directory_that_is_each_file_is_old_or_new_and_the_next_start_repairs(fault, product, small_state):
    limit, relief, said = FULL[fault]
    small_state.root(f"mount -o remount,{limit.format(STATE)} {STATE}", check=True)
    traces = product.quiet_traces()
    # Beyond the room for bytes in the one, for files in the other.
    write_config(product, "new", FILES * 2, 4000)
    done = product.pi("echo", "ran")
    assert (done.returncode, done.stdout) == (SYSTEM_FAILURE, b"") and said in done.stderr, done
    assert b"the administrator" in done.stderr, f"without a remedy: {done}"
    seen = look(product)
    assert not seen["wrong"] and seen["old"] > 0, seen
    if fault != "read-only":
        assert seen["new"] > 0, f"the fault did not come in the middle: {seen}"
    product.pi("true", user="bob", cwd="/home/bob/work/demo", check=True)  # of others it is nothing
    product.expect_traces(traces)

    small_state.root(f"mount -o remount,{relief} {STATE}", check=True)
    product.pi("true", check=True)
    assert look(product) == {"old": 0, "new": FILES * 2, "missing": 0, "wrong": []}
    # The look would see half a file.
    small_state.root(["truncate", "--size=-1", f"{STATE}/home/.pi/agent/many/7"], check=True)
    assert look(product)["wrong"] == [7]


# --- the file system of all sessions' mount points, which is root's own

SESSIONS_FULL = {
    "without room": ("size=$(($(df --output=used -k {0} | tail -1) + 4))k", b"No space left on device"),
    "without inodes": ("nr_inodes=$(($(df --output=iused {0} | tail -1) + 3))", b"No space left on device"),
    "read-only": ("ro", b"Read-only file system"),
}


@pytest.mark.parametrize("fault", SESSIONS_FULL)
def test_no_session_starts_halfway_where_their_mount_points_are(fault, product):
    limit, said = SESSIONS_FULL[fault]
    traces = product.quiet_traces()
    options = product.machine.root(f"findmnt -n -o OPTIONS {SESSIONS}", check=True).stdout.decode().strip()
    size = next(word for word in options.split(",") if word.startswith("size="))
    inodes = next(word for word in options.split(",") if word.startswith("nr_inodes="))
    product.machine.root(f"mount -o remount,{limit.format(SESSIONS)} {SESSIONS}", check=True)
    try:
        done = product.pi("echo", "ran")
    finally:
        product.machine.root(f"mount -o remount,rw,{size},{inodes} {SESSIONS}", check=True)
    assert done.returncode > 0 and done.stdout == b"" and b"pi: " in done.stderr and said in done.stderr, done
    for user, cwd in (("alice", DEMO), ("bob", "/home/bob/work/demo")):
        assert product.pi("echo", "ran", user=user, cwd=cwd).stdout == b"ran\n"
    product.expect_traces(traces)


# --- systemd


def test_a_session_lives_through_a_systemd_that_is_executed_anew_and_ends_in_order(product, control_seen):
    traces = product.quiet_traces()
    process = product.machine.popen(["pi", "sh", "-c", "echo ready; read line; echo $line; exit 7"], cwd=DEMO)
    assert process.stdout.readline() == b"ready\n"
    on_the_bus = "busctl call org.freedesktop.DBus / org.freedesktop.DBus GetNameOwner s org.freedesktop.systemd1"
    before = product.machine.root(on_the_bus, check=True).stdout
    product.machine.root(["systemctl", "daemon-reexec"], check=True)
    assert product.machine.root(on_the_bus, check=True).stdout != before
    control_seen("systemd has come to the bus once more")
    assert product.pi("echo", "ran").stdout == b"ran\n"
    out, said = process.communicate(b"bye\n", timeout=30)
    assert (process.returncode, out, said) == (7, b"bye\n", b"")
    product.expect_traces(traces)


# --- names of units


@pytest.mark.position("outsider")
def test_nobody_takes_the_name_that_the_unit_of_the_next_session_will_have(prove):
    """Nobody knows it before. If somebody did, that start would end with a message, and would not use what already exists."""
    taken = f"pi-agent-{'a' * 32}.service"

    def attack(target):
        target.machine.root(["systemd-run", "--quiet", f"--unit={taken}", "sleep", "300"], check=True)
        done = target.pi("echo", "ran")
        target.machine.root(f"systemctl stop {taken}; true")
        return Outcome(done.stdout != b"ran\n", done)

    _, off = prove(attack, "unique-session-id")
    assert off.seen.returncode != 0 and off.seen.stderr.startswith(b"pi: ") and taken.encode() in off.seen.stderr, off


# --- the bus

BUS_AGAIN = """systemctl restart dbus.service systemd-logind.service
for name in systemd1 login1; do until busctl status org.freedesktop.$name >/dev/null 2>&1; do sleep 0.2; done; done"""


def test_a_session_whose_bus_dies_ends_in_words_and_leaves_nothing(product):
    traces = product.quiet_traces()
    session = product.session(*STUBBORN)
    agents = ",".join(map(str, session.agent_pids()))
    product.machine.root("pkill -KILL -x dbus-daemon", check=True)
    try:
        status = session.process.wait(timeout=30)
        said = session.process.stderr.read()
        alive = product.machine.root(f"ps -o pid= -p {agents}").stdout.split()
    finally:
        product.machine.root(BUS_AGAIN, check=True, timeout=60)
    assert status == UNAVAILABLE and b"systemd" in said and not alive, (status, said, alive)
    done = product.pi("echo", "ran")  # the next start sweeps what could not be asked for without a bus
    assert done.stdout == b"ran\n", done
    product.expect_traces(traces)

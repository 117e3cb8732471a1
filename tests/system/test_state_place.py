"""agent.state_dir on a file system that is not the host's: no session starts, and doctor says so too."""

import json

import pytest
from cache import SOURCE
from launching import INVALID, agent_says, assert_refused, pi

STATE_DIRECTORY = "/var/lib/pi-agent"
# A file system that a program serves, with a root directory of root's: to the kernel what any other is that is not the host's.
SERVER = SOURCE / "tests/attack/inside"


ALICES = f"{STATE_DIRECTORY}/users/alice"


@pytest.fixture(params=[STATE_DIRECTORY, f"{STATE_DIRECTORY}/users", ALICES, f"{ALICES}/meta", f"{ALICES}/home"])
def served(playing, request):
    """The machine, and which directory of the state is served."""
    assert agent_says(playing, "sh", "echo here") == b"here\n"  # all of them are there
    playing.root("test -e /dev/fuse || mknod -m 0600 /dev/fuse c 10 229", check=True)
    for name in ("asking_fuse.py", "fuse.py", "client.py"):
        playing.write(f"/usr/local/lib/served/{name}", (SERVER / name).read_text().replace("ALICE = 1000", "ALICE = 0"))
    server = playing.popen(["python3", "/usr/local/lib/served/asking_fuse.py", request.param], user="root")
    assert server.stdout.readline() == b"serving\n", server.stderr.read()
    yield playing, request.param
    server.kill_all()
    server.communicate()
    playing.root(f"umount --lazy {request.param}; rm -r /usr/local/lib/served", check=True)
    assert agent_says(playing, "sh", "echo here") == b"here\n"


def test_a_state_directory_on_another_host_is_refused_in_words(served):
    machine, place = served
    assert_refused(pi(machine, "sh", "true"), INVALID, f"{place} (agent.state_dir) lies on another host (FUSE)", "mount a local file system")
    report = json.loads(machine.root(["pi-agentctl", "doctor", "--json"], timeout=120).stdout)
    told = [fault["what"] for fault in report["faults"] if fault["about"] == "state"]
    assert any(what.startswith(f"{place} lies on another host") and "no session starts" in what for what in told), report["faults"]

"""agent.state_dir on a file system that is not the host's: no session starts, and doctor says so too."""

import json

import pytest
from cache import SOURCE
from launching import INVALID, agent_says, assert_refused, pi

STATE_DIRECTORY = "/var/lib/pi-agent"
# A file system that a program serves, with a root directory of root's: to the kernel what any other is that is not the host's.
SERVER = SOURCE / "tests/attack/inside"


@pytest.fixture
def served(playing):
    playing.root(f"mkdir -p {STATE_DIRECTORY}; test -e /dev/fuse || mknod -m 0600 /dev/fuse c 10 229", check=True)
    for name in ("asking_fuse.py", "fuse.py", "client.py"):
        playing.write(f"/usr/local/lib/served/{name}", (SERVER / name).read_text().replace("ALICE = 1000", "ALICE = 0"))
    server = playing.popen(["python3", "/usr/local/lib/served/asking_fuse.py", STATE_DIRECTORY], user="root")
    assert server.stdout.readline() == b"serving\n", server.stderr.read()
    yield playing
    server.kill_all()
    server.communicate()
    playing.root(f"umount --lazy {STATE_DIRECTORY}; rm -r /usr/local/lib/served", check=True)
    assert agent_says(playing, "sh", "echo here") == b"here\n"


def test_a_state_directory_on_another_host_is_refused_in_words(served):
    assert_refused(pi(served, "sh", "true"), INVALID, f"{STATE_DIRECTORY} (agent.state_dir) lies on another host (FUSE)", "mount a local file system")
    report = json.loads(served.root(["pi-agentctl", "doctor", "--json"], timeout=120).stdout)
    assert any(fault["about"] == "state" and "no session starts" in fault["what"] for fault in report["faults"]), report["faults"]

"""Devices that the policy names: opened by a group that the session has; a notice where one is missing; refused where one cannot be."""

import json

import pytest
from launching import DEMO, PLAYING_POLICY, agent_says, assert_refused, messages, pi

NODE, DIRECTORY = "/dev/pi-node", "/dev/pi-nodes"
GROUP = "pi-devices"
OPEN = "import os, sys; [os.close(os.open(path, os.O_RDWR)) for path in sys.argv[1:]]; print('opened')"


@pytest.fixture
def devices(playing, playing_policy):
    """One node for a group of its own, two in a directory; the policy names both."""
    made = f"mkdir {DIRECTORY}; cd {DIRECTORY}; mknod -m 0666 one c 10 229; mknod -m 0666 two c 10 229; ln -s one link; mknod -m 0666 disk b 7 0"
    playing.root(f"set -e; groupadd -f {GROUP}; mknod -m 0660 {NODE} c 10 229; chgrp {GROUP} {NODE}; {made}", check=True)
    playing_policy(PLAYING_POLICY + f"devices: [{NODE}, {DIRECTORY}]\n")
    yield playing
    playing.root(f"rm -rf {NODE} {DIRECTORY}", check=True)


def test_a_session_opens_them_by_the_group_that_it_takes(devices):
    group = devices.root(["getent", "group", GROUP], check=True).stdout.decode().split(":")[2]
    said = agent_says(devices, "sh", f"python3 -c \"{OPEN}\" {NODE} {DIRECTORY}/one {DIRECTORY}/two; ls {DIRECTORY}; id -G; id -Gn >/dev/null && echo named").decode().split("\n")
    assert said[:3] == ["opened", "one", "two"]
    assert {group, "65534"} & set(said[3].split()), said  # the latter where the session has no number for it
    assert said[4] == "named", said


def test_what_is_missing_and_what_nobody_may_open_is_told(devices, playing_policy):
    devices.root(["chmod", "0600", NODE], check=True)
    playing_policy(PLAYING_POLICY + f"devices: [{NODE}, /dev/kvm-of-nobody]\n")
    told = messages(pi(devices, "sh", "true"))
    assert any(NODE in line and "a rule of udev" in line for line in told), told
    assert any("/dev/kvm-of-nobody" in line and "this host has none now" in line for line in told), told


def test_explain_and_why_name_them(devices):
    shown = json.loads(devices.run(["pi-agentctl", "explain", "--json"], cwd=DEMO, check=True).stdout)
    assert shown["view"]["devices"] == [NODE, DIRECTORY]
    said = devices.run(["pi-agentctl", "why", NODE], cwd=DEMO).stdout.decode()
    assert "a device of the host's that the policy names" in said, said


REFUSED = {
    "/dev/sda": "opens the host itself",
    "/dev/input": "opens the host itself",
    "/dev/null": "is each session's own",
    "/srv/node": "does not lie below /dev",
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_opens_the_host_is_refused(path, playing):
    playing.write("/etc/pi-agent/policy.yaml", PLAYING_POLICY + f"devices: [{path}]\n")
    done = pi(playing, "sh", "true")
    checked = playing.root(["pi-agentctl", "check"])
    playing.install_policy(PLAYING_POLICY)
    assert_refused(done, 78, "the administrator's policy has 1 error, so nobody can start pi. Ask them to run: pi-agentctl check")
    assert f"devices[0]: '{path}' {REFUSED[path]}" in checked.stderr.decode(), checked

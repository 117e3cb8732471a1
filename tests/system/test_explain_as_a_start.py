"""Where a start is refused, explain refuses in the same words, and where it is not, it does not."""

import json

import pytest
from launching import DEMO, PLAYING_AGENT, PLAYING_POLICY, pi

ODD = "/home/alice/projects/odd"
# name: (what the host is like, how that goes, where, the policy)
PLACES = {
    "allowed": ("true", "true", DEMO, PLAYING_POLICY),
    "outside": ("true", "true", "/home/alice", PLAYING_POLICY),
    "closed": (f"mkdir -m 0 {ODD} && chown alice {ODD}", f"rmdir {ODD}", ODD, PLAYING_POLICY),
    "another file system": (f"mkdir {ODD} && mount -t tmpfs none {ODD} && chmod 755 {ODD}", f"umount {ODD} && rmdir {ODD}", ODD, PLAYING_POLICY),
    "an overlay": (
        "mkdir -p /run/o/a /run/o/b /run/o/c /srv/overlay && mount -t overlay none -o lowerdir=/run/o/a,upperdir=/run/o/b,workdir=/run/o/c /srv/overlay"
        " && chmod 777 /srv/overlay", "umount /srv/overlay && rmdir /srv/overlay && rm -r /run/o", "/srv/overlay",
        PLAYING_POLICY.replace("~/projects", "/srv/overlay")),
    "another root is missing": ("true", "true", DEMO, PLAYING_POLICY.replace("~/projects", "~/projects, ~/not-there")),
    "outside, and a root is missing": ("true", "true", "/home/alice", PLAYING_POLICY.replace("~/projects", "~/projects, ~/not-there")),
    "another root is missing, with rules of its own": (
        "true", "true", DEMO, PLAYING_POLICY.replace("~/projects", "~/projects, {path: ~/not-there, network: none}")),
    "the only root is missing": ("true", "true", DEMO, PLAYING_POLICY.replace("[~/projects, /srv/shared/app]", "[~/not-there]")),
}


@pytest.mark.parametrize("name", PLACES)
def test_explain_and_a_start_agree(playing, playing_policy, name):
    make, remove, cwd, policy = PLACES[name]
    playing.root(make, check=True)
    try:
        playing.write("/etc/pi-agent/policy.yaml", policy)
        entered = f"cd {cwd} 2>/dev/null; " if name != "closed" else ""
        started = pi(playing, "sh", "true", cwd=cwd) if entered else playing.run(["env", f"--chdir={cwd}", "pi"], user="alice", cwd="/")
        told = json.loads(playing.run(["pi-agentctl", "explain", "--cwd", cwd, "--user", "alice", "--json"], check=True).stdout)["directory"]
        asked = json.loads(playing.root(["pi-agentctl", "explain", "--cwd", cwd, "--user", "alice", "--json"], check=True).stdout)["directory"]
    finally:
        playing.write("/etc/pi-agent/policy.yaml", PLAYING_POLICY)
        playing.root(remove, check=True)
    for answer in (told, asked):
        assert answer["allowed"] is (started.returncode == 0), (answer, started)
        if not answer["allowed"] and name != "closed":  # there the shell itself comes to nothing
            assert answer["reason"] in started.stderr.decode(), (answer, started)


def test_a_directory_that_was_deleted(playing):
    script = 'mkdir -p "$0" && cd "$0" && rmdir "$0"; '
    begun = playing.run(["sh", "-c", script + "pi sh true", ODD], user="alice", cwd=DEMO)
    told = playing.run(["sh", "-c", script + "pi-agentctl explain", ODD], user="alice", cwd=DEMO)
    words = b"denied: the working directory was deleted; cd to one that exists"
    assert begun.returncode == 77 and words in begun.stderr, begun
    assert b"refused: " + words in told.stdout, told

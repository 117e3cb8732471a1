"""What pi-agentctl render writes for a cluster, played by podman: the same work, done as the right user and confined."""

import json

import pytest
from launching import PLAYING_AGENT, PLAYING_POLICY
from rendered import ALICE, machines_of, name_of, objects_of, play, pod_of, render, workspace

AGENT = "/usr/lib/pi-agent/shell-agent"
ODD = "$(HOME) $HOME $$ 100% \"it's\""  # for shells and clusters
POLICY = PLAYING_POLICY.replace(PLAYING_AGENT, f"{AGENT}/bin/pi") + f"  ODD: {json.dumps(ODD)}\n"  # in its env, which comes last
# Done in the project by the agent, and what it says of itself.
WORK = """echo work >made
echo home=$HOME uid=$(id -u) tmp=$TMPDIR
echo "odd=$ODD"
mkdir made-directory && rm -r made-directory
touch $HOME/kept $TMPDIR/scratch && echo writes home and tmp
touch .git/hooks/planted 2>/dev/null && echo PLANTED
touch /usr/planted /planted 2>/dev/null && echo PLANTED
grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
"""


def place_agent(machine):
    machine.write(f"{AGENT}/bin/pi", '#!/bin/sh\nexec /bin/sh "$@"\n', mode=0o755)
    return AGENT


with_limits, unified = machines_of(POLICY, place_agent)


def assert_worked(said):
    assert f"home=/var/lib/pi-agent/users/alice/home uid={ALICE} tmp=/tmp" in said and "writes home and tmp" in said, said
    assert f"odd={ODD}\n" in said and "PLANTED" not in said, said
    status = dict(line.split(":\t") for line in said.splitlines() if ":\t" in line)
    assert (int(status["CapEff"], 16), int(status["CapBnd"], 16), status["NoNewPrivs"], status["Seccomp"]) == (0, 0, "1", "2"), said


def assert_made_for_alice(machine, place):
    assert machine.root(["stat", "--format=%u:%g %s", place], check=True).stdout == f"{ALICE}:{ALICE} 5\n".encode()


def test_the_job_runs_under_podman(unified):
    text = render(unified, "-c", WORK)
    with workspace(unified, name_of(text)) as volume:
        assert_worked(play(unified, objects_of(text, "Job")))
        assert_made_for_alice(unified, f"{volume}/project/demo/made")


def test_the_jobs_pod_runs_under_podman(with_limits, machine_name):
    if machine_name != "bookworm":
        pytest.skip("where podman plays the Job itself")
    text = render(with_limits, "-c", WORK.replace(".git/hooks", "/planted-too"))  # podman 4.3 mounts the whole volume everywhere
    with workspace(with_limits, name_of(text)) as volume:
        assert_worked(play(with_limits, pod_of(objects_of(text, "Job"), name_of(text))))
        assert_made_for_alice(with_limits, f"{volume}/made")

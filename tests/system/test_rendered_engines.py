"""What pi-agentctl render writes, run by the engine that it is for: the same work, done as the right user and confined."""

import json
import re

import pytest
from launching import DEMO, PLAYING_AGENT, PLAYING_POLICY, wait_until_empty
from rendered import ALICE, machines_of, name_of, objects_of, play, pod_of, render, run_podman, run_quadlet, run_service, run_slurm, slurm, units_of, workspace

AGENT = "/usr/lib/pi-agent/shell-agent"
ODD = "$(HOME) $HOME $$ 100% \"it's\""  # for shells, units, generators and clusters
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


def with_home(machine):
    """A start has made the agent's home; afterwards the work has left nothing."""
    machine.run(["pi", "-c", "true"], cwd=DEMO, check=True)
    yield machine
    machine.root(f"rm -rf {DEMO}/made {DEMO}/.git/hooks/planted", check=True)


@pytest.fixture
def project(with_limits):
    yield from with_home(with_limits)


@pytest.fixture
def newer(unified):
    yield from with_home(unified)


def assert_worked(machine, said, home="/var/lib/pi-agent/users/alice/home", uid=None):
    uid = machine.account("pi-agent-alice")[0] if uid is None else uid
    assert f"home={home} uid={uid} tmp=/tmp" in said and "writes home and tmp" in said, said
    assert f"odd={ODD}\n" in said and "PLANTED" not in said, said
    status = dict(line.split(":\t") for line in said.splitlines() if ":\t" in line)
    assert (int(status["CapEff"], 16), int(status["CapBnd"], 16), status["NoNewPrivs"], status["Seccomp"]) == (0, 0, "1", "2"), said


def assert_made_for_alice(machine, place=f"{DEMO}/made"):
    assert machine.root(["stat", "--format=%u:%g %s", place], check=True).stdout == f"{ALICE}:{ALICE} 5\n".encode()


def test_the_podman_command_makes_what_a_session_makes(project):
    done = run_podman(project, render(project, "podman", "-c", WORK))
    assert (done.returncode, done.stderr) == (0, b""), done
    assert_worked(project, done.stdout.decode())
    assert_made_for_alice(project)
    assert project.root("podman ps --all --quiet; podman volume ls --quiet").stdout == b""  # its files for /tmp are gone as well


def test_the_podman_command_holds_limits_and_system_calls(project):
    held = """read_limit() { cat "/sys/fs/cgroup/$1" 2>/dev/null || cat "/sys/fs/cgroup/$2"; }
read_limit memory/memory.limit_in_bytes memory.max
read_limit pids/pids.max pids.max
touch setuid && chmod u+s setuid || echo refused"""
    project.install_policy(POLICY + "limits: {memory: 256M, tasks: 123}\n")
    done = run_podman(project, render(project, "podman", "-c", held))
    project.install_policy(POLICY)
    project.root(["rm", "-f", f"{DEMO}/setuid"], check=True)
    assert done.stdout.split() == [str(256 << 20).encode(), b"123", b"refused"], done


def test_the_quadlet_runs_as_a_service(newer):
    assert_worked(newer, run_quadlet(newer, render(newer, "quadlet", "-c", WORK)))
    assert_made_for_alice(newer)


def test_the_unit_runs_under_systemd(newer):
    with units_of(newer, render(newer, "systemd", "-c", WORK)) as (name, units):
        checked = newer.root(["systemd-analyze", "verify", *units])
        said = run_service(newer, name)
    assert checked.stderr == b"", checked
    assert_worked(newer, said)
    assert_made_for_alice(newer)


def test_the_unit_shows_a_closed_home_to_nobody_else(newer):
    with units_of(newer, render(newer, "systemd", "-c", "touch begun; while test ! -e end; do sleep 0.1; done; rm begun end")) as (name, _):
        newer.root(["systemctl", "start", name], check=True)
        wait_until_empty(lambda: newer.root(f"test -e {DEMO}/begun || echo not yet").stdout, deadline=30)
        shown = f"/run/pi-agent-rendered/{name}/project"
        seen = {user: newer.run(["ls", shown], user, cwd="/").returncode for user in ("root", "alice", "bob", "eve", "pi-agent-alice")}
        newer.root(["touch", f"{DEMO}/end"], check=True)
    assert seen.pop("root") == 0 and 0 not in seen.values(), seen


def test_the_job_runs_under_podman(newer):
    text = render(newer, "kubernetes", "-c", WORK)
    with workspace(newer, name_of(text)) as volume:
        assert_worked(newer, play(newer, objects_of(text, "Job")), uid=ALICE)
        assert_made_for_alice(newer, f"{volume}/project/demo/made")


def test_the_jobs_pod_runs_under_podman(project, machine_name):
    if machine_name != "bookworm":
        pytest.skip("where podman plays the Job itself")
    text = render(project, "kubernetes", "-c", WORK.replace(".git/hooks", "/planted-too"))  # podman 4.3 mounts the whole volume everywhere
    with workspace(project, name_of(text)) as volume:
        assert_worked(project, play(project, pod_of(objects_of(text, "Job"), name_of(text))), uid=ALICE)
        assert_made_for_alice(project, f"{volume}/made")


def test_the_slurm_line_runs_pi_on_a_node(newer):
    with slurm(newer):
        done = run_slurm(newer, render(newer, "slurm", "-c", "echo work >made; echo node=$PI_AGENT_SESSION; id -u; grep ^NoNewPrivs /proc/self/status"))
    uid, _ = newer.account("pi-agent-alice")
    said = done.stdout.decode().replace("\r", "")
    assert done.returncode == 0 and re.search(rf"node=[0-9a-f]{{32}}\n{uid}\nNoNewPrivs:\t1\n", said), done
    assert_made_for_alice(newer)

"""What pi-agentctl render writes, run by the engine that it is for: the same work, done as the right user and confined."""

import contextlib
import json
import os
import re
import shlex

import pytest
from cache import Build
from launching import DEMO, PLAYING_AGENT, PLAYING_POLICY, wait_until_empty
from legacy import NoLegacyHierarchy
from machine import Machine
from recipes import MACHINES

AGENT = "/usr/lib/pi-agent/shell-agent/bin/pi"
ODD = "$(HOME) $HOME $$ 100% \"it's\""  # for shells, units, generators and clusters
POLICY = PLAYING_POLICY.replace(PLAYING_AGENT, AGENT) + f"  ODD: {json.dumps(ODD)}\n"  # in its env, which comes last
IMAGE = "localhost/pi-agent:test"
PROFILE = "/etc/pi-agent/seccomp.json"
ON_NODES = "/var/lib/kubelet/seccomp/pi-agent"
ALICE = 1000
# Programs with their libraries, and the agent: an image that nobody has to download.
MAKE_IMAGE = f"""
set -e
tree=$(mktemp -d)
mkdir -p $tree/bin $tree/etc $tree/tmp $tree/var/tmp $tree{os.path.dirname(AGENT)}
for program in sh cat chmod grep id ls mkdir rm touch; do
    file=$(readlink -f $(command -v $program))
    cp $file $tree/bin/$program
    for library in $(ldd $file | grep -o '/[^ ]*'); do mkdir -p $tree$(dirname $library); cp -L $library $tree$library; done
done
cp {AGENT} $tree{AGENT}
chmod -R a+rX $tree; chmod 0755 $tree{AGENT}; chmod 1777 $tree/tmp $tree/var/tmp
tar -C $tree -c . | podman import - {IMAGE}
rm -r $tree
"""
# This host may not raise hard limits, which podman does by itself.
CONTAINERS_CONF = '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]\npids_limit = 0\n'
ULIMITS = "--ulimit=nofile=20000:20000 --ulimit=nproc=20000:20000"
STORAGE_CONF = '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n'
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


@contextlib.contextmanager
def machine_with_engines(name, legacy):
    """With podman, Slurm and an image."""
    try:
        machine = Machine(f"engines-{'legacy' if legacy else 'unified'}-{os.getpid()}", name, legacy=legacy)
    except NoLegacyHierarchy as reason:
        pytest.skip(str(reason))
    with machine as booted:
        booted.create(agent=None)
        booted.install(Build(name))
        booted.boot()
        booted.write(AGENT, '#!/bin/sh\nexec /bin/sh "$@"\n', mode=0o755)
        with booted.engines():
            booted.write("/etc/containers/storage.conf", STORAGE_CONF)
            booted.write("/etc/containers/containers.conf", CONTAINERS_CONF)
            booted.write("/etc/containers/policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}')
            booted.install_policy(POLICY)
            booted.root(MAKE_IMAGE, check=True)
            booted.root(f"pi-agentctl render --target seccomp >{PROFILE}; mkdir -p {ON_NODES}; cp {PROFILE} {ON_NODES}", check=True)
            yield booted
            booted.stop()


@pytest.fixture(scope="module")
def with_limits(machine_name):
    """A machine whose systemd has the controllers, and with them control groups of version 1."""
    with machine_with_engines(machine_name, legacy=True) as machine:
        yield machine


@pytest.fixture(scope="module")
def unified(machine_name):
    """A machine with control groups of version 2, which podman 5 wants, and no controllers in them."""
    if MACHINES[machine_name].systemd < 257:
        pytest.skip("Debian 12 has a podman without quadlets, a mount(8) that maps no ids, and a Slurm that wants munge")
    with machine_with_engines(machine_name, legacy=False) as machine:
        yield machine


def with_home(machine):
    """The agent's home is there, by a start; afterwards nothing of the work is."""
    machine.run(["pi", "-c", "true"], cwd=DEMO, check=True)
    yield machine
    machine.root(f"rm -rf {DEMO}/made {DEMO}/.git/hooks/planted", check=True)


@pytest.fixture
def project(with_limits):
    yield from with_home(with_limits)


@pytest.fixture
def newer(unified):
    yield from with_home(unified)


def render(machine, target, *arguments):
    command = ["pi-agentctl", "render", "--target", target, "--user", "alice", "--cwd", DEMO, "--image", IMAGE, "--", *arguments]
    return machine.root(command, check=True).stdout.decode()


def name_of(text):
    return re.search(r"pi-agent-alice-[a-z0-9-]*[0-9a-f]{8}", text).group()


def assert_worked(machine, said, home="/var/lib/pi-agent/users/alice/home", uid=None):
    uid = machine.account("pi-agent-alice")[0] if uid is None else uid
    assert f"home={home} uid={uid} tmp=/tmp" in said and "writes home and tmp" in said, said
    assert f"odd={ODD}\n" in said and "PLANTED" not in said, said
    status = dict(line.split(":\t") for line in said.splitlines() if ":\t" in line)
    assert (int(status["CapEff"], 16), int(status["CapBnd"], 16), status["NoNewPrivs"], status["Seccomp"]) == (0, 0, "1", "2"), said


def assert_made_for_alice(machine):
    assert machine.root(["stat", "--format=%u:%g %s", f"{DEMO}/made"], check=True).stdout == b"1000:1000 5\n"


def test_the_podman_command_makes_what_a_session_makes(project):
    command = render(project, "podman", "-c", WORK)
    # podman forgets the limits of its configuration when a command has one.
    command = command.replace("--ulimit=core=0:0", f"--ulimit=core=0:0 {ULIMITS}")
    done = project.root("export PODMAN_IGNORE_CGROUPSV1_WARNING=1\n" + command, timeout=120)
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
    command = render(project, "podman", "-c", held).replace("--ulimit=core=0:0", f"--ulimit=core=0:0 {ULIMITS}")
    done = project.root(command, timeout=120)
    project.install_policy(POLICY)
    project.root(["rm", "-f", f"{DEMO}/setuid"], check=True)
    assert done.stdout.split() == [str(256 << 20).encode(), b"123", b"refused"], done


def test_the_quadlet_runs_as_a_service(newer):
    text = render(newer, "quadlet", "-c", WORK)
    # No controllers there: what limits are worth is seen with the command. And podman gives a container the hard limits of its own.
    text, limits = re.subn(r"^PodmanArgs=--(memory|pids-limit)=[1-9].*\n", "", text, flags=re.MULTILINE)
    assert limits == 2
    text = text.replace("PodmanArgs=--ulimit=core=0:0\n", f"PodmanArgs={ULIMITS} --pids-limit=0\n")
    name = name_of(text)
    newer.write(f"/etc/containers/systemd/{name}.container", text)
    newer.root(["systemctl", "daemon-reload"], check=True)
    said = run_service(newer, name)
    newer.root(f"rm /etc/containers/systemd/{name}.container; systemctl daemon-reload", check=True)
    assert_worked(newer, said)
    assert_made_for_alice(newer)


@contextlib.contextmanager
def units_of(machine, text):
    """The two unit files of a rendering, and the name of the session's."""
    name = name_of(text)
    units = [f"/etc/systemd/system/{name}.service", f"/etc/systemd/system/{name}-project.service"]
    for path, content in zip(units, text.split(f"\n# {units[1]}\n"), strict=True):
        machine.write(path, content)
    machine.root(["systemctl", "daemon-reload"], check=True)
    yield name, units
    wait_until_empty(lambda: machine.root("grep pi-agent-rendered /proc/self/mountinfo").stdout, deadline=10)
    machine.root(f"rm {' '.join(units)}; systemctl daemon-reload", check=True)


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


def run_service(machine, name):
    """What a unit wrote into the journal, from its start to its end."""
    machine.root(["systemctl", "start", name], timeout=120)
    wait_until_empty(lambda: machine.root(f"systemctl is-active {name} | grep -v inactive | grep -v failed").stdout, deadline=60)
    machine.root(["journalctl", "--sync"])
    said = machine.root(["journalctl", "--output=cat", "--unit", name], check=True).stdout.decode()
    machine.root(["systemctl", "reset-failed", name])
    return said


def job_of(text):
    return next(part for part in text.split("---\n") if re.search(r"^kind: Job$", part, re.MULTILINE))


def test_the_job_runs_under_podman(newer):
    text = render(newer, "kubernetes", "-c", WORK)
    play(newer, job_of(text), name_of(text), made="project/demo/made")


def test_the_jobs_pod_runs_under_podman(project, machine_name):
    if machine_name != "bookworm":
        pytest.skip("where podman plays the Job itself")
    text = render(project, "kubernetes", "-c", WORK.replace(".git/hooks", "/planted-too"))  # podman 4.3 mounts the whole volume everywhere
    play(project, pod_of(job_of(text), name_of(text)), name_of(text), made="made")


def play(project, job, name, made):
    """kube play of it, with what the user has put into the workspace before."""
    project.root(f"podman volume create --opt o=uid={ALICE},gid={ALICE} {name}", check=True)
    volume = project.root(["podman", "volume", "inspect", "--format={{.Mountpoint}}", name], check=True).stdout.decode().strip()
    project.root(f"mkdir -p {volume}/project/demo/.git/hooks; touch {volume}/project/demo/.git/config; chown -R {ALICE}:{ALICE} {volume}", check=True)
    project.write("/root/job.yaml", job.replace("$$", "$"))  # podman puts no variables into it, as a cluster would
    try:
        done = project.root(["podman", "kube", "play", "--network=none", "/root/job.yaml"], timeout=120)
        assert done.returncode == 0, done
        agent = [line for line in project.root(["podman", "ps", "--all", "--format={{.Names}}"], check=True).stdout.decode().split() if line.endswith("-agent")]
        assert project.root(["podman", "wait", *agent]).stdout.split() == [b"0"]
        said = project.root(["podman", "logs", *agent], check=True).stdout.decode()
        found = project.root(["stat", "--format=%u:%g %s", f"{volume}/{made}"], check=True).stdout
    finally:
        project.root(f"podman pod rm --all --force; podman volume rm --force {shlex.quote(name)}; rm /root/job.yaml")
    assert_worked(project, said, uid=ALICE)
    assert found == f"{ALICE}:{ALICE} 5\n".encode()


def pod_of(job, name):
    """The pod of a Job's template by itself."""
    template = job[job.index("\n    spec:\n") + 1 :]
    return f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n" + "".join(line[4:] for line in template.splitlines(keepends=True))


# --- Slurm, on one machine that is two nodes

ADDRESS = "192.0.2.7"
PREPARE_SLURM = f"""
set -e
ip link add slurm0 type veth peer name slurm1
ip address add {ADDRESS}/24 dev slurm0
ip link set slurm0 up
ip link set slurm1 up
for program in slurmctld slurmd slurmstepd; do ln -s $program-wlm /usr/sbin/$program; done
mkdir -p /etc/slurm /var/spool/slurmctld /var/spool/slurmd.one /var/spool/slurmd.two
dd if=/dev/urandom of=/etc/slurm/slurm.key bs=1024 count=1 status=none
chmod 0600 /etc/slurm/slurm.key
systemd-run --quiet --unit=test-slurmctld slurmctld -D
for node in one two; do systemd-run --quiet --unit=test-slurmd-$node slurmd -D -N $node; done
"""
STOP_SLURM = "systemctl stop test-slurmctld test-slurmd-one test-slurmd-two; ip link delete slurm0; rm -rf /etc/slurm /var/spool/slurm* /usr/sbin/slurm{ctld,d,stepd}"


def slurm_conf(hostname):
    """Cores alone are counted: for memory Slurm sets a limit of processes, which the runner takes back, and root of this host may not."""
    return f"""ClusterName=test
SlurmctldHost={hostname}({ADDRESS})
AuthType=auth/slurm
CredType=cred/slurm
SlurmUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd.%n
SlurmdPidFile=/run/slurmd.%n.pid
NodeName=one NodeHostname={hostname} NodeAddr={ADDRESS} Port=17001 RealMemory=512
NodeName=two NodeHostname={hostname} NodeAddr={ADDRESS} Port=17002 RealMemory=512
PartitionName=all Nodes=ALL Default=YES State=UP
SelectTypeParameters=CR_Core
"""


@pytest.fixture
def cluster(newer):
    newer.write("/etc/slurm/slurm.conf", slurm_conf(newer.hostname))
    newer.write("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n")
    newer.root(PREPARE_SLURM, check=True)
    try:
        wait_until_empty(lambda: b"" if newer.root("sinfo --noheader --states=idle --format=%D").stdout.strip() == b"2" else b"not idle", deadline=60)
        yield newer
    finally:
        newer.root(STOP_SLURM)


def test_the_slurm_line_runs_pi_on_a_node(cluster):
    line = render(cluster, "slurm", "-c", "echo work >made; echo node=$PI_AGENT_SESSION; id -u; grep ^NoNewPrivs /proc/self/status").splitlines()[-1]
    done = cluster.run(f"script --quiet --return --command {shlex.quote(line)} /dev/null", cwd="/", timeout=120)  # --pty wants a terminal
    uid, _ = cluster.account("pi-agent-alice")
    said = done.stdout.decode().replace("\r", "")
    assert done.returncode == 0 and re.search(rf"node=[0-9a-f]{{32}}\n{uid}\nNoNewPrivs:\t1\n", said), done
    assert_made_for_alice(cluster)

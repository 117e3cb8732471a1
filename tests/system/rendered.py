"""How a rendered Job is run by podman, in place of a cluster; and Slurm on one machine, for placement."""

import contextlib
import os
import re
import shlex

import pytest
from cache import Build
from launching import DEMO, wait_until_empty
from legacy import NoLegacyHierarchy
from machine import Machine
from recipes import MACHINES

IMAGE = "localhost/pi-agent:test"
ON_NODES = "/var/lib/kubelet/seccomp/pi-agent"
OBJECTS = "/root/objects.yaml"
ALICE = 1000
# Programs with their libraries, and the directory of an agent: an image that nobody has to download.
MAKE_IMAGE = f"""
set -e
tree=$(mktemp -d)
mkdir -p $tree/bin $tree/usr $tree/etc $tree/tmp $tree/var/tmp $tree$1
ln -s ../bin $tree/usr/bin
cp -a $1/. $tree$1
for program in sh bash cat chmod env grep id ls mkdir rm touch; do cp $(readlink -f $(command -v $program)) $tree/bin/$program; done
find $tree -type f -perm -u+x -exec sh -c 'ldd "$1" 2>/dev/null | grep -o "/[^ ]*"' sh {{}} \\; | sort -u | while read library; do
    mkdir -p $tree$(dirname $library); cp -L $library $tree$library
done
chmod -R a+rX $tree; chmod 1777 $tree/tmp $tree/var/tmp
tar -C $tree -c . | podman import - {IMAGE}
rm -r $tree
"""
# This host may not raise hard limits, which podman does by itself.
CONTAINERS_CONF = '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]\npids_limit = 0\n'
STORAGE_CONF = '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n'


@contextlib.contextmanager
def machine_with_engines(recipe, legacy, policy, furnish):
    """With podman, Slurm, and an image of the agent that furnish(machine) puts there, whose directory it answers."""
    try:
        machine = Machine(f"engines-{'legacy' if legacy else 'unified'}-{os.getpid()}", recipe, legacy=legacy)
    except NoLegacyHierarchy as reason:
        pytest.skip(str(reason))
    with machine as booted:
        booted.create(agent=None)
        booted.install(Build(recipe))
        booted.boot()
        directory = furnish(booted)
        with booted.engines():
            booted.write("/etc/containers/storage.conf", STORAGE_CONF)
            booted.write("/etc/containers/containers.conf", CONTAINERS_CONF)
            booted.write("/etc/containers/policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}')
            booted.install_policy(policy)
            booted.root(["sh", "-c", MAKE_IMAGE, "sh", directory], check=True, timeout=300)
            booted.root(f"mkdir -p {ON_NODES}; pi-agentctl render --target seccomp >{ON_NODES}/seccomp.json", check=True)
            yield booted
            booted.stop()


def machines_of(policy, furnish):
    """Two fixtures: a machine whose systemd has the controllers, and with them control groups of version 1; and one with those of version 2, which
    podman 5 wants, and no controllers in them."""

    @pytest.fixture(scope="module")
    def with_limits(machine_name):
        with machine_with_engines(machine_name, True, policy, furnish) as machine:
            yield machine

    @pytest.fixture(scope="module")
    def unified(machine_name):
        if MACHINES[machine_name].systemd < 257:
            pytest.skip("Debian 12 has a podman that plays no Job, and a Slurm that wants munge")
        with machine_with_engines(machine_name, False, policy, furnish) as machine:
            yield machine

    return with_limits, unified


def render(machine, *arguments):
    command = ["pi-agentctl", "render", "--target", "kubernetes", "--user", "alice", "--cwd", DEMO, "--image", IMAGE, "--", *arguments]
    return machine.root(command, check=True).stdout.decode()


def name_of(text):
    return re.search(r"pi-agent-alice-[a-z0-9-]*[0-9a-f]{8}", text).group()


def objects_of(text, *kinds):
    """Those of a Kubernetes rendering, as one text."""
    return "---\n".join(part for part in text.split("---\n") if re.search(rf"^kind: ({'|'.join(kinds)})$", part, re.MULTILINE))


def pod_of(job, name):
    """The pod of a Job's template by itself."""
    template = job[job.index("\n    spec:\n") + 1 :]
    return f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n" + "".join(line[4:] for line in template.splitlines(keepends=True))


@contextlib.contextmanager
def workspace(machine, name):
    """The volume of a Job, as a directory, with what the user has put there before."""
    machine.root(f"podman volume create --opt o=uid={ALICE},gid={ALICE} {name}", check=True)
    volume = machine.root(["podman", "volume", "inspect", "--format={{.Mountpoint}}", name], check=True).stdout.decode().strip()
    machine.root(f"mkdir -p {volume}/project/demo/.git/hooks; touch {volume}/project/demo/.git/config; chown -R {ALICE}:{ALICE} {volume}", check=True)
    try:
        yield volume
    finally:
        machine.root(f"podman pod rm --all --force; podman volume rm --force {shlex.quote(name)}; rm -f {OBJECTS}")


def play(machine, objects, network="none"):
    """What the agent of a Job or Pod said under podman kube play; it must have ended well."""
    machine.write(OBJECTS, objects.replace("$$", "$"))  # podman puts no variables into it, as a cluster would
    options = [f"--network={network}"] if network else []
    done = machine.root(["podman", "kube", "play", *options, OBJECTS], timeout=120)
    assert done.returncode == 0, done
    agent = [line for line in machine.root(["podman", "ps", "--all", "--format={{.Names}}"], check=True).stdout.decode().split() if line.endswith("-agent")]
    ended = machine.root(["podman", "wait", *agent], timeout=120).stdout.split()
    said = machine.root(["podman", "logs", *agent], check=True)
    assert ended == [b"0"], said
    return said.stdout.decode()


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


@contextlib.contextmanager
def slurm(machine):
    """Two nodes of one cluster, idle."""
    machine.write("/etc/slurm/slurm.conf", slurm_conf(machine.hostname))
    machine.write("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n")
    machine.root(PREPARE_SLURM, check=True)
    try:
        wait_until_empty(lambda: b"" if machine.root("sinfo --noheader --states=idle --format=%D").stdout.strip() == b"2" else b"not idle", deadline=60)
        yield machine
    finally:
        machine.root(STOP_SLURM)

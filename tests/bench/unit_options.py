"""A living session's unit as options of systemd-run, so that the same can be had from systemd alone."""

import contextlib
import sys

import bench_main

# Stays, so that what systemd wrote of its unit can be read.
STAYING_AGENT = '#!/bin/sh\necho "$PI_AGENT_SESSION"; exec sleep 600\n'
SUDOERS = "Defaults!/usr/bin/systemd-run !use_pty\nalice ALL=(root) NOPASSWD: /usr/bin/systemd-run\n"
SYSTEMD_RUN = ["sudo", "-n", "systemd-run", "--quiet", "--wait", "--pipe", "--collect"]
# Belongs to that one session, or systemd-run sets it itself.
NOT_SHARED = {"Description", "BindsTo", "Requires", "After", "ExecStart", "StandardInput", "StandardOutput", "StandardError", "AddRef",
              "CollectMode", "Type"}  # fmt: skip
# A root tree of ours, and what is shown in it.
OF_OUR_TREE = ("RootDirectory=", "BindPaths=", "BindReadOnlyPaths=", "TemporaryFileSystem=", "ReadWritePaths=", "ProtectHome=", "BindLogSockets=")
# Systemd writes a line for each number of these, which nobody asks for one by one.
LISTS = ("SuccessExitStatus", "RestartPreventExitStatus")
# What the runner does itself in its place (runner/root/view/root_tree.hpp).
IN_OUR_PLACE = ["--property=ProtectKernelTunables=yes"]


@contextlib.contextmanager
def living_session(machine, more=""):
    """Of alice, and the id of it. Its policy stays."""
    bench_main.install_policy(machine, bench_main.place_agent(machine, "staying", STAYING_AGENT), more)
    machine.write("/etc/sudoers.d/bench", SUDOERS, mode=0o440)
    staying = machine.popen(["pi"], cwd=bench_main.DEMO)
    session = staying.stdout.readline().decode().strip()
    if len(session) != 32:
        sys.exit(f"no session to take the properties from: {staying.stderr.read().decode()}")
    try:
        yield session
    finally:
        staying.kill_all()
        staying.wait()


def properties_of(machine, session):
    """What systemd wrote into the transient unit of a session."""
    lines = machine.read(f"/run/systemd/transient/pi-agent-{session}.service").decode().splitlines()
    # Of what systemd 257 takes beside yes and no it writes the old name, and systemd-run takes the new one alone.
    named = [line.replace("PrivateUsers=identity", "PrivateUsersEx=identity") for line in lines]
    assignments = [line for line in named if "=" in line and not line.startswith("#") and line.split("=")[0] not in NOT_SHARED]
    kept = [line for line in assignments if not line.startswith(LISTS)]
    kept += [f"{name}={' '.join(values)}" for name in LISTS if (values := [line.split("=")[1] for line in assignments if line.startswith(name)])]
    # An empty assignment clears a list before the values that follow; an option of its own does so too.
    return [f"--property={line}" for line in kept]


def attached_late(machine, session):
    """What the session sees of the host besides."""
    pid = machine.root(["systemctl", "show", "-P", "MainPID", f"pi-agent-{session}.service"]).stdout.decode().strip()
    places = [line.split()[4] for line in machine.read(f"/proc/{pid}/mountinfo").decode().splitlines()]
    return [f"--property=BindReadOnlyPaths={place}" for place in places if place.startswith(("/etc/", "/sys/devices/system"))]


def on_the_hosts_tree(properties):
    root = bench_main.DEMO.rsplit("/", 1)[0]
    kept = [one for one in properties if not one.removeprefix("--property=").startswith(OF_OUR_TREE)]
    return [*kept, *IN_OUR_PLACE, "--property=ProtectHome=tmpfs", f"--property=BindPaths={root}", f"--property=ReadWritePaths={root}"]

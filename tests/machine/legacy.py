"""The legacy boot of a machine: control groups of version 1, in hierarchies of this host that have the controllers of the limits.

On this host the unified hierarchy has no controllers, as long as those of version 1 hold them: a machine with a unified boot enforces nothing.
"""

import contextlib
import subprocess
from pathlib import Path

from cgroup import mount_points

CONTROLLERS = ("cpu", "memory", "pids")
NAMED = "name=systemd"  # the one in which systemd keeps its units
BESIDES = "devices"  # which systemd uses where there is one
INIT = "/init-rw"
# systemd-nspawn mounts them read-only, as in a container; on a host they are not, and systemd needs them.
INIT_SCRIPT = """#!/bin/sh
for group in /sys/fs/cgroup/*; do
    if [ ! -L "$group" ] && mountpoint -q "$group"; then mount -o remount,bind,rw "$group" || exit; fi
done
exec /lib/systemd/systemd "$@"
"""
ENVIRONMENT = {"UNIFIED_CGROUP_HIERARCHY": "no"}
FORCE = "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"  # from 256 on systemd asks for it
ARGUMENTS = [INIT, "systemd.unified_cgroup_hierarchy=0", FORCE]


class NoLegacyHierarchy(Exception):
    """This host cannot have a controller in a hierarchy of version 1; says why."""


def hierarchy(controller):
    """Where the hierarchy of a controller, or of a name, is mounted; mounted here if it is not."""
    for mount_point in mount_points(lambda kind, options: kind == "cgroup" and controller in options):
        return mount_point
    target = Path("/sys/fs/cgroup", controller.removeprefix("name="))
    options = f"none,{controller}" if controller == NAMED else controller
    try:
        target.mkdir(exist_ok=True)
    except OSError as failure:
        raise NoLegacyHierarchy(f"no hierarchy of version 1 has the controller {controller} on this host: {failure}") from None
    done = subprocess.run(["mount", "-t", "cgroup", "-o", options, "cgroup", target], capture_output=True)
    if done.returncode != 0:
        with contextlib.suppress(OSError):
            target.rmdir()
        raise NoLegacyHierarchy(f"no hierarchy of version 1 has the controller {controller} on this host: {done.stderr.decode().strip()}")
    return target


class LegacyGroups:
    """One group of a name in each hierarchy; Cgroup.kill() of that name removes them."""

    def __init__(self, name):
        top = [hierarchy(controller) for controller in (*CONTROLLERS, NAMED)]
        top += mount_points(lambda kind, options: kind == "cgroup" and BESIDES in options)
        self.paths = [mount_point / f"pi-agent-test-{name}" for mount_point in top]

    def entering(self, argv):
        """The command line that runs argv inside all of them."""
        for path in self.paths:
            path.mkdir(exist_ok=True)
        script = 'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"'
        return ["sh", "-c", script, "sh", *self.paths, "--", *argv]

    def booting(self, root):
        """What systemd-nspawn is told in the place of -b."""
        init = root / INIT.lstrip("/")
        init.write_text(INIT_SCRIPT)
        init.chmod(0o755)
        return ["--kill-signal=SIGRTMIN+3", f"--setenv={FORCE}", *ARGUMENTS]

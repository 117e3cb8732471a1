"""Control groups of the outer host: each machine has one of its own, so that it can be ended as a whole."""

import contextlib
import os
import time
from pathlib import Path


def mount_points(wanted):
    """Where hierarchies for which wanted(kind, options) holds are mounted on this host."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount_point, kind, options, *_ = line.split(" ")
        if wanted(kind, options.split(",")):
            yield Path(mount_point)


def unified_hierarchy():
    for mount_point in mount_points(lambda kind, _: kind == "cgroup2"):
        return mount_point
    raise RuntimeError("no cgroup2 file system is mounted on this host: mount one, e.g. on /sys/fs/cgroup")


def remove_empty(top):
    for directory, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(directory)


class Cgroup:
    def __init__(self, path):
        self.path = Path(path)

    @classmethod
    def for_tests(cls, name):
        return cls(unified_hierarchy() / f"pi-agent-test-{name}")

    def entering(self, argv, bound=True):
        """The command line that runs argv inside this control group; `bound`: argv is killed when this process ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        binding = ["setpriv", "--pdeathsig=KILL"] if bound else []
        return ["sh", "-c", 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"', "sh", self.path, *binding, *argv]

    def pids(self):
        """Processes in it and below, in the numbers of this host."""
        pids = []
        for directory, _, _ in os.walk(self.path):
            with contextlib.suppress(OSError):  # the group may go away meanwhile
                pids += [int(line) for line in Path(directory, "cgroup.procs").read_text().split()]
        return pids

    def kill(self, deadline=10):
        """Kills every process in it and below, and removes it."""
        until = time.monotonic() + deadline
        while self.path.exists():
            with contextlib.suppress(OSError):
                (self.path / "cgroup.kill").write_text("1")
            remove_empty(self.path)
            if time.monotonic() > until:
                raise RuntimeError(f"{self.path} still has processes: {self.pids()}")
            time.sleep(0.01)
        # Where the host has hierarchies of version 1 too: systemd-nspawn makes the same directories in the named one, legacy.py in others.
        for mount_point in mount_points(lambda kind, _: kind == "cgroup"):
            remove_empty(mount_point / self.path.relative_to(unified_hierarchy()))

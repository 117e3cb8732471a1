"""Runs in the machine as root: how many there are of all that sessions could leave to PID 1, to the bus and to the kernel, as JSON."""

import json
import os
import subprocess
from pathlib import Path

NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "user")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def descriptors_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def entries_below(*places):
    return sum(len(directories) + len(files) for place in places for _, directories, files in os.walk(place))


def namespaces(processes):
    found = set()
    for pid in processes:
        for kind in NAMESPACES:
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:  # it has just ended
                pass
    return len(found)


def census():
    processes = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    units = output("systemctl", "list-units", "--all", "--plain", "--no-legend").splitlines()
    bus = output("systemctl", "show", "--property=MainPID", "--value", "dbus.service").strip()
    return {
        "descriptors of PID 1": descriptors_of(1),
        "descriptors of the bus": descriptors_of(bus),
        "mounts": len(Path("/proc/1/mountinfo").read_text().splitlines()),
        "units": len(units),
        "slices": sum(unit.split()[0].endswith(".slice") for unit in units),
        "processes": len(processes),
        "namespaces": namespaces(processes),
        "control groups": sum(len(directories) for _, directories, _ in os.walk("/sys/fs/cgroup")),
        "accounts of units": entries_below("/run/systemd/dynamic-uid", "/var/lib/private"),
        # Of checkpoints the last ten are kept, and a user who has none yet gets the first.
        "files of ours": entries_below("/run/pi-agent", "/var/lib/pi-agent") - entries_below("/var/lib/pi-agent/undo"),
        "files of everybody's": entries_below("/run/systemd/transient", "/run/user", "/tmp", "/var/tmp", "/dev/shm"),
        "sockets": len(Path("/proc/net/unix").read_text().splitlines()),
        "shared memory": len(Path("/proc/sysvipc/shm").read_text().splitlines()),
    }


print(json.dumps(census()))

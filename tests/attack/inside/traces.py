"""Runs in the machine as root: everything that a session could leave behind, as JSON."""

import json
import os
import pwd
import subprocess
from pathlib import Path


def mounts(pid):
    """The mount table of a process, without the numbers that differ from mount to mount."""
    table = []
    for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        before, after = line.split(" - ")
        _, _, device, root, point, options, *propagation = before.split(" ")
        kinds = sorted(word.split(":")[0] for word in propagation)
        kind, source, _ = after.split(" ", 2)
        table.append([point, root, "" if kind == "tmpfs" else device, options, kinds, kind, source])
    return sorted(table)


def names_in(directory):
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []


def units():
    # Not mounts: they are looked at themselves. Of slices those of users, which are in pi-agent.slice; that stays.
    kinds = "--type=service,scope,socket,timer,slice"
    command = ["systemctl", "list-units", "--all", "--plain", "--no-legend", kinds, "pi-agent-*"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(line.split()[0] for line in lines)


def processes():
    """Processes of agents, and processes of our programs."""
    agents = {account.pw_uid for account in pwd.getpwall() if account.pw_name.startswith("pi-agent")}
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            uid = os.stat(f"/proc/{pid}").st_uid
            uids = Path(f"/proc/{pid}/status").read_text().split("Uid:")[1].split()[:4]
            program = os.readlink(f"/proc/{pid}/exe")
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if uid in agents or agents & set(map(int, uids)) or "pi-agent" in program or program.endswith("/bin/pi"):
            found.append(f"{program} {line!r}")
    return sorted(found)


def directories():
    found = [f"/run/pi-agent/sessions/{name}" for name in names_in("/run/pi-agent/sessions")]
    found += [f"/var/lib/pi-agent/sessions/{name}" for name in names_in("/var/lib/pi-agent/sessions")]
    for parent in ("/tmp", "/var/tmp", "/run/systemd/transient"):
        found += [f"{parent}/{name}" for name in names_in(parent) if "pi-agent" in name]
    return found


if __name__ == "__main__":
    print(json.dumps({"mounts": mounts(1), "units": units(), "processes": processes(), "directories": directories()}))

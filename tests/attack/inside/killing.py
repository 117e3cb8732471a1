"""Runs in the machine as root: starts of alice's and bob's, of each of which one process, drawn, is killed after a time that is drawn.

Where that is the runner, what cleans up after it is killed too, half of the times. Arguments: how many, and the seed. Prints JSON: how often
which was killed, and what was found wrong.
"""

import collections
import json
import os
import random
import subprocess
import sys
import time

RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
USERS = {"alice": "/home/alice/projects/demo", "bob": "/home/bob/work/demo"}
LONGEST = 0.6  # a session's: some are killed in their preparation, some while they run, some as they end
END_SECONDS = 40
CLEANUP_SECONDS = 1  # until it is there, if the runner came to ask for a unit
# By the 15 bytes that the kernel keeps of a name.
PROGRAMS = {"pi-agent-exec": "pi-agent-exec", "pi-agent-cleanu": "pi-agent-cleanup"}
LEAVING = "mkdir -p $TMPDIR/a/b; cd $TMPDIR/a; for i in 1 2 3 4 5 6 7 8 9; do mkdir $i; : >$i/$i; done; sleep 0.2"


def begin(user):
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "env", "-i", "PATH=/usr/bin:/bin", f"HOME=/home/{user}"]
    agent = ["pi", "sh", "-c", LEAVING]
    return subprocess.Popen([*become, *agent], cwd=USERS[user], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def candidates(wrapper, agent_uids):
    """{what: [pid]} of the processes of the one start that there is."""
    found = collections.defaultdict(list)
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                program = file.read().split(b"\0")[0].decode(errors="replace")
        except OSError:
            continue
        uid, name = int(status["Uid"].split()[0]), status["Name"]
        if pid == wrapper:
            found["wrapper"].append(pid)
        elif name == "sudo":
            found["sudo"].append(pid)
        elif name in PROGRAMS:
            found[PROGRAMS[name]].append(pid)
        elif program == RUNNER:
            found["runner" if uid == 0 else "child of the runner"].append(pid)
        elif uid in agent_uids:
            found["agent"].append(pid)
    return found


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass


def kill_cleanup(wrapper, agent_uids):
    """As soon as it is seen; whether it was."""
    until = time.monotonic() + CLEANUP_SECONDS
    while time.monotonic() < until:
        if pids := candidates(wrapper, agent_uids).get("pi-agent-cleanup"):
            kill(pids)
            return True
    return False


def main():
    count, draw = int(sys.argv[1]), random.Random(sys.argv[2])
    with open("/etc/passwd", encoding="utf-8") as file:
        agent_uids = {int(line.split(":")[2]) for line in file if line.startswith("pi-agent")}
    killed, wrong = collections.Counter(), []
    for turn in range(count):
        started = begin(draw.choice(list(USERS)))
        time.sleep(draw.uniform(0, LONGEST))
        found = candidates(started.pid, agent_uids)
        if found:
            what = draw.choice(sorted(found))
            killed[what] += 1
            kill(found[what])
            if what == "runner" and draw.random() < 0.5 and kill_cleanup(started.pid, agent_uids):
                killed["pi-agent-cleanup"] += 1
        else:
            killed["nobody"] += 1
        try:
            said = started.communicate(timeout=END_SECONDS)[1]
        except subprocess.TimeoutExpired:
            wrong.append(f"round {turn}: pi does not end after kill -9 of {what}")
            os.killpg(started.pid, 9)
            said = started.communicate()[1]
        if started.returncode > 0 and b"pi: " not in said and what not in ("agent", "pi-agent-exec"):
            wrong.append(f"round {turn}: status {started.returncode} without a word after kill -9 of {what}: {said!r}")
    print(json.dumps({"killed": killed, "wrong": wrong}))


main()

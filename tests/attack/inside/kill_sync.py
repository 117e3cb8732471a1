"""Run by root: kills a process of a config sync at a random moment, again and again, and looks at what that leaves.

Prints JSON: how many were killed while the sync went on, and what was found wrong, each with its round.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

CONFIG = "/home/alice/.pi/agent"
STATE = "/var/lib/pi-agent/users/alice"
INSIDE = f"{STATE}/home/.pi/agent"
DEMO = "/home/alice/projects/demo"
RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
FILES = 1500
PI = ["setpriv", "--reuid=alice", "--regid=alice", "--init-groups", "env", "-i", "PATH=/usr/bin:/bin", "HOME=/home/alice", "pi", "true"]


def start():
    return subprocess.Popen(PI, cwd=DEMO, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def runners():
    """{pid: (parent, uid)} of the runner's processes."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as line:
                if line.read().split(b"\0")[0] != RUNNER.encode():
                    continue
            with open(f"/proc/{entry}/status", encoding="ascii") as status:
                facts = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
            found[int(entry)] = (int(facts["PPid"]), int(facts["Uid"].split()[0]))
        except OSError:
            pass
    return found


def path_of(number):
    return f"many/{number % 40}/f{number}" if number % 3 else f"many/{number % 40}/deep/er/f{number}"


def text_of(number, version):
    return f"{number} {version}\n" * (1 + number % 400)


def write_host(version):
    """Version 0 and every other one have all files; the odd ones miss a third, and have other directories."""
    shutil.rmtree(f"{CONFIG}/many", ignore_errors=True)
    for number in range(FILES):
        if version % 2 and number % 3 == 0:
            continue
        path = f"{CONFIG}/{path_of(number)}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text_of(number, version))
    with open(f"{CONFIG}/settings.json", "w", encoding="ascii") as file:
        json.dump({"version": version, "pad": "x" * 3000}, file)
    subprocess.run(["chown", "-R", "alice:alice", f"{CONFIG}/many", f"{CONFIG}/settings.json"], check=True)


def files_below(top):
    return sorted(f"{directory[len(top) + 1:]}/{name}" for directory, _, names in os.walk(f"{top}/many") for name in names)


def read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return None


def wrong_after_kill(version):
    """Each file is the old or the new version, and nothing else is there."""
    wrong = []
    for number in range(FILES):
        allowed = [text_of(number, version - 1), text_of(number, version)]
        if number % 3 == 0:
            allowed.append(None)  # one of both versions does not have it
        elif version == 2:  # nothing was synced before
            allowed.append(None)
        if read(f"{INSIDE}/{path_of(number)}") not in allowed:
            wrong.append(f"{path_of(number)} is neither the old nor the new version")
    strange = set(files_below(INSIDE)) - {path_of(number) for number in range(FILES)}
    settings = read(f"{INSIDE}/settings.json")
    if settings is not None and json.loads(settings).get("version") not in (version, version - 1):
        wrong.append(f"settings.json is {settings[:50]}")
    return wrong + [f"{name} should not be there" for name in strange]


def wrong_after_repair(version):
    wrong = [f"{name} differs" for name in files_below(CONFIG) if read(f"{CONFIG}/{name}") != read(f"{INSIDE}/{name}")]
    if files_below(CONFIG) != files_below(INSIDE):
        wrong.append(f"other files: {sorted(set(files_below(CONFIG)) ^ set(files_below(INSIDE)))[:5]}")
    # Killed right after the new settings were in place, a writer leaves its lock, and the next start has nothing to lock: it is stale in seconds.
    if set(os.listdir(INSIDE)) - {"settings.json.lock"} != {"many", "settings.json"}:
        wrong.append(f"beside them: {os.listdir(INSIDE)}")
    if os.listdir(f"{STATE}/staging"):
        wrong.append(f"in staging: {os.listdir(f'{STATE}/staging')}")
    if json.loads(read(f"{INSIDE}/settings.json"))["version"] != version:
        wrong.append("settings.json is old")
    return wrong


def kill_in(agent_uid, victim, delay):
    """True when the victim was killed while the writer lived."""
    process = start()
    writer = None
    until = time.monotonic() + 20
    while writer is None and process.poll() is None and time.monotonic() < until:
        found = runners()
        writer = next((pid for pid, (parent, uid) in found.items() if uid == agent_uid and parent in found), None)
    killed = False
    if writer is not None:
        time.sleep(delay)
        now = runners()
        runner = found[writer][0]
        # The runner has two children of alice's account: who received the request, and the reader, which came last.
        readers = [pid for pid, (parent, uid) in now.items() if parent == runner and uid not in (0, agent_uid)]
        pid = {"writer": writer, "runner": runner, "reader": max(readers, default=runner)}[victim]
        if writer in now:
            os.kill(pid, signal.SIGKILL)
            killed = True
    process.communicate(timeout=30)
    return killed


def main():
    rounds, seed = int(sys.argv[1]), sys.argv[2]
    random.seed(seed)
    start().communicate(timeout=30)
    agent_uid = os.stat(f"{STATE}/home").st_uid
    subprocess.run(["rm", "-rf", CONFIG, INSIDE], check=True)
    os.makedirs(CONFIG)
    shutil.chown(CONFIG, "alice", "alice")
    write_host(1)
    longest = 0.3
    killed, wrong = 0, []
    for turn in range(2, rounds + 2):
        write_host(turn)
        victim = random.choice(["writer", "runner", "reader"])
        delay = random.uniform(0, longest)
        hit = kill_in(agent_uid, victim, delay)
        # The sync is as long as it is on this machine: the moments spread over what it takes.
        longest = min(longest * (1.1 if hit else 0.8), 3)
        killed += hit
        found = wrong_after_kill(turn)
        began = time.monotonic()
        done = start()
        _, said = done.communicate(timeout=60)
        if done.returncode != 0:
            found.append(f"the next start ended with {done.returncode}: {said.decode()}")
        elif time.monotonic() - began > 30:
            found.append("the next start took more than half a minute")
        else:
            found += wrong_after_repair(turn)
        wrong += [f"round {turn}, {victim} after {delay:.4f} s, killed {hit}: {what}" for what in found[:5]]
    subprocess.run(["rm", "-rf", f"{CONFIG}/many", f"{CONFIG}/settings.json"], check=True)
    print(json.dumps({"killed": killed, "wrong": wrong}))


main()

"""Runs in the emulated machine as root: starts pi as its users, and prints one JSON object for each case, and "done" at the end."""

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path

DEMO = "/home/alice/projects/demo"
POLICY = Path("/etc/pi-agent/policy.yaml")
GROUPS = Path("/sys/fs/cgroup/pi.slice/pi-agent.slice/pi-agent-u1000.slice")


def say(value):
    print(json.dumps(value), flush=True)


def pi_command(*command, user="alice"):
    login = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--reset-env"]
    return [*login, "sh", "-c", 'exec pi "$@"', "sh", *command]


def pi(*command, user="alice", cwd=DEMO):
    done = subprocess.run(pi_command(*command, user=user), cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=100)
    return {"status": done.returncode, "out": done.stdout.decode(errors="replace"), "err": done.stderr.decode(errors="replace")}


def entries(path):
    return dict(line.split() for line in path.read_text().splitlines())


def the_machine():
    return {
        "kernel": os.uname().release,
        "controllers": Path("/sys/fs/cgroup/cgroup.controllers").read_text().split(),
        "failed": subprocess.run(["systemctl", "--failed", "--plain", "--no-legend"], capture_output=True).stdout.decode(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def a_launch():
    return pi("sh", "-c", "id -un; pwd; cat /proc/self/status; exit 42")


def id_mapped_files():
    done = pi("sh", "-c", "echo hello >new.txt && mkdir sub && stat -c %U:%G new.txt && cat README.md && echo more >>README.md")
    stat = subprocess.run(["stat", "-c", "%U:%G %a", f"{DEMO}/new.txt", f"{DEMO}/sub"], capture_output=True)
    return {**done, "outside": stat.stdout.decode().split("\n"), "readme": Path(DEMO, "README.md").read_text()}


def a_cache_and_a_toolchain():
    """Of the user's home; gone afterwards, as the other cases know nothing of them."""
    home = Path("/home/alice")
    for path in (".npm", ".nvm"):
        (home / path).mkdir(mode=0o700)
        (home / path / "file").write_text(f"of {path}\n")
    subprocess.run(["chown", "-R", "alice:", home / ".npm", home / ".nvm"], check=True)
    done = pi("sh", "-c", "cd ~/.npm && echo changed >>file && rm -f none && cat file ~/.nvm/file /home/alice/.nvm/file; touch ~/.nvm/x; rm file; ls -A")
    outside = (home / ".npm/file").read_text()
    for path in (".npm", ".nvm"):
        shutil.rmtree(home / path)
    return {**done, "outside": outside}


method = "systemd"


def limits_of_a_session(*names):
    """Of one that runs, as the kernel has them."""
    process = subprocess.Popen(pi_command("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 60"), cwd=DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    session = process.stdout.readline().decode().strip()
    group = GROUPS / f"pi-agent-{session}.service" if method == "systemd" else Path("/sys/fs/cgroup/pi-agent") / session / "agent"
    found = {name: (group / name).read_text().strip() for name in names}
    process.terminate()
    process.wait()
    return found


def what_systemd_set():
    names = ("pids.max", "memory.max")
    return {**limits_of_a_session(*names), "slice": {name: (GROUPS / name).read_text().strip() for name in names}}


HOG = "import os\nheld = []\nwhile True: held.append(os.urandom(1 << 12) * (1 << 12))"


@contextlib.contextmanager
def limits(section):
    """The policy with a section of limits, under the method whose turn it is."""
    policy = POLICY.read_text()
    POLICY.write_text(policy + f"limits: {section}\nsandbox: {{method: {method}}}\n")
    try:
        yield
    finally:
        POLICY.write_text(policy)


def what_the_policy_set():
    with limits("{memory: 192M, tasks: 64, cpu: 50%}"):
        return limits_of_a_session("memory.max", "memory.swap.max", "pids.max", "cpu.max")


def said_memory():
    """A command's, and then the agent's own."""
    with limits("{memory: 192M}"):
        child = pi("sh", "-c", f"python3 -c '{HOG}'; echo status $?; cat /AGENTS.md")
        return {"child": child, "agent": pi("python3", "-c", HOG)}


def said_tasks():
    with limits("{tasks: 64}"):
        return pi("python3", "-c", BOMB)


def said_runtime():
    started = time.monotonic()
    with limits("{runtime: 15s}"):
        done = pi("sh", "-c", "trap '' TERM; echo begun; sleep 100; echo not here")
    return {**done, "lasted": time.monotonic() - started}


def said_processor():
    # Without the start of python, which takes long here.
    spin = "import time\nbefore = time.process_time()\nuntil = time.monotonic() + 4\nwhile time.monotonic() < until: pass\nprint(time.process_time() - before)"
    with limits("{cpu: 50%}"):
        return pi("python3", "-c", spin)


def too_much_memory():
    before = entries(GROUPS / "memory.events") if GROUPS.exists() else {}
    done = pi("python3", "-c", HOG)
    journal = subprocess.run(["journalctl", "--no-pager", "-o", "cat", "-u", "pi-agent-*.service"], capture_output=True).stdout.decode()
    after = pi("sh", "-c", "echo still here")
    return {**done, "before": before, "oom": "killed by the OOM killer" in journal, "after": after["out"]}


BOMB = (
    "import threading, time\nthreading.stack_size(32768)\ncount = 0\n"
    "try:\n while count < 10000:\n  threading.Thread(target=time.sleep, args=(600,), daemon=True).start(); count += 1\n"
    "except RuntimeError: pass\n"
    "print(count, flush=True)\nimport os; os._exit(0)"
)


def too_many_tasks():
    outside = []
    process = subprocess.Popen(pi_command("python3", "-c", BOMB), cwd=DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None:
        outside.append(subprocess.run(["true"]).returncode)  # others can still start programs
        time.sleep(0.2)
    return {"status": process.returncode, "count": int(process.stdout.read()), "outside": outside}


def a_stepped_clock():
    """A day forward and two back, while a session is prepared again and again, and while one runs that may last an hour."""
    day = 24 * 3600
    with limits("{runtime: 1h}"):
        running = subprocess.Popen(pi_command("sh", "-c", "echo ready; read line; echo $line; exit 7"), cwd=DEMO,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        ready = running.stdout.readline().decode()
        starts = []
        for step in (day, -2 * day, day):
            starting = subprocess.Popen(pi_command("echo", "ran"), cwd=DEMO, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(0.3)
            time.clock_settime(time.CLOCK_REALTIME, time.time() + step)
            out, err = starting.communicate(timeout=100)
            starts.append([starting.returncode, out.decode(), err.decode()])
        out, err = running.communicate(b"bye\n", timeout=60)
    history = subprocess.run(["pi-agentctl", "history", "--json"], capture_output=True).stdout
    until = time.monotonic() + 10  # a session's directory may outlive its pi for a moment
    while (left := [str(path) for path in Path("/run/pi-agent/sessions").iterdir()]) and time.monotonic() < until:
        time.sleep(0.1)
    return {"ready": ready, "starts": starts, "status": running.returncode, "out": out.decode(), "err": err.decode(),
            "durations": [start["duration_usec"] for start in json.loads(history)["starts"]], "left": left}  # fmt: skip


def a_home_on_tmpfs():
    script = "mount -t tmpfs -o mode=0700,uid=1001,gid=1001 home /home/bob && install -d -o bob -g bob /home/bob/work"
    subprocess.run(["sh", "-c", script], check=True)
    done = pi("sh", "-c", "echo ran", user="bob", cwd="/home/bob/work")
    subprocess.run(["umount", "/home/bob"], check=True)
    return done


STATE = Path("/var/lib/pi-agent")
PROJECT = 1000 ^ 0x50000000
# FS_IOC_FSSETXATTR without a project, and FS_IOC_SETFLAGS without what passes it on.
LEAVE = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for number, data in ((0x401C5820, bytes(28)), (0x40086602, bytes(8))):
    try:
        fcntl.ioctl(fd, number, data)
        print("done")
    except OSError as failure:
        print(os.strerror(failure.errno))
"""


@contextlib.contextmanager
def state_under_quotas():
    """The state directory on a file system that counts by project."""
    subprocess.run(["mount", "-o", "prjquota", "/dev/vdb", STATE], check=True)
    subprocess.run(["pi-agentctl", "apply", "--no-canary"], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", STATE], check=True)


def project_of(path):
    facts = bytearray(28)
    fd = os.open(path, os.O_RDONLY)
    fcntl.ioctl(fd, 0x801C581F, facts)
    os.close(fd)
    return int.from_bytes(facts[12:16], "little")


def a_disk_quota():
    """What was there before the limit, what is written under it, what a full home allows, and what comes after it."""
    home = STATE / "users/alice/home"
    early = pi("sh", "-c", "mkdir -p ~/early/deep; echo x >~/early/deep/file; chmod 0 ~/early/deep/file; chmod 100 ~/early/deep; ln -s /etc ~/early/link; mkfifo ~/early/pipe")
    with limits("{disk: 64M}"):
        checked = subprocess.run(["pi-agentctl", "check"], capture_output=True)
        filled = pi("sh", "-c", f"python3 -c '{LEAVE}' ~; head -c 100M /dev/zero >~/big; echo x >$TMPDIR/file && echo $(wc -c <$TMPDIR/file); wc -c <~/big")
        full = pi("sh", "-c", "rm ~/big && head -c 100M /dev/zero >$TMPDIR/big; wc -c <$TMPDIR/big; rm $TMPDIR/big")
        after = pi("sh", "-c", "head -c 1M /dev/zero >~/small && echo written")
    projects = [project_of(path) for path in (home, home / "early", home / "early/deep", home / "early/deep/file", home / "small", home.parent / "staging")]
    modes = [oct((home / path).stat().st_mode & 0o7777) for path in ("early/deep", "early/deep/file")]
    lifted = pi("sh", "-c", "head -c 90M /dev/zero >~/big && echo fits; rm ~/big")
    return {"early": early, "checked": checked.returncode, "warned": checked.stderr.decode(), "filled": filled, "full": full, "after": after,
            "projects": projects, "modes": modes, "lifted": lifted}  # fmt: skip


NEST = "import os\nos.chdir(os.path.expanduser(chr(126)))\nfor _ in range(300): os.mkdir(chr(100)); os.chdir(chr(100))"


def a_walk_that_fails():
    """A start that cannot put all of the home under the quota, because of what a session that runs made there; that one then writes."""
    meta = STATE / "users/alice/meta"
    with limits("{disk: 64M}"):
        script = f"python3 -c '{NEST}'; echo ready; read line; head -c 100M /dev/zero >~/big; wc -c <~/big; rm -rf ~/d ~/big"
        running = subprocess.Popen(pi_command("sh", "-c", script), cwd=DEMO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ready = running.stdout.readline()
        (meta / "disk-project").unlink()  # as where another start was being prepared
        refused = pi("true")
        out, err = running.communicate(b"go\n", timeout=100)
    return {"ready": ready.decode(), "refused": refused, "size": int(out or 0), "err": err.decode()}


def a_reset_home():
    """It is held, its content goes, and then the key of the policy."""
    with limits("{disk: 64M}"):
        held = pi("sh", "-c", "head -c 100M /dev/zero >~/big; wc -c <~/big")
    reset = subprocess.run(["pi-agentctl", "state", "reset", "--user", "alice", "--yes"], capture_output=True)
    after = pi("sh", "-c", "head -c 90M /dev/zero >~/big && echo fits; rm ~/big")
    return {"held": held, "reset": reset.returncode, "after": after}


def a_session_from_before():
    """It knows nothing of the limit, and takes a directory out of the quota while others start."""
    path = STATE / "users/alice/home/inner"
    with limits("{tasks: 64}"):
        script = f"mkdir ~/inner; echo ready; read line; python3 -c '{LEAVE}' ~/inner; read line"
        running = subprocess.Popen(pi_command("sh", "-c", script), cwd=DEMO, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ready = running.stdout.readline()
    with limits("{disk: 64M}"):
        beside, joined = pi("true"), project_of(path)
        running.stdin.write(b"go\n")
        running.stdin.flush()
        left = [running.stdout.readline().decode(), running.stdout.readline().decode()]
        taken = project_of(path)
        running.communicate(b"end\n", timeout=60)
        after = pi("true")
    return {"ready": ready.decode(), "beside": beside, "left": left, "after": after, "projects": [joined, taken, project_of(path)]}


# For quotactl_fd(2): Q_GETQUOTA and Q_SETQUOTA of projects, and of struct if_dqblk the two limits of space, and which of it is valid.
GET_LIMIT, SET_LIMIT, OF_SPACE = 0x80000702, 0x80000802, 1


def limit_of(project, kibibytes=None):
    """The limit of a project, in KiB; with an amount, which is then set."""
    kernel = ctypes.CDLL(None, use_errno=True)
    said = bytearray(72)
    if kibibytes is not None:
        said[:16] = struct.pack("QQ", kibibytes, kibibytes)
        said[64:68] = struct.pack("I", OF_SPACE)
    fd = os.open(STATE, os.O_RDONLY)
    memory = (ctypes.c_char * 72).from_buffer(said)
    failed = kernel.syscall(443, fd, GET_LIMIT if kibibytes is None else SET_LIMIT, project, memory)
    os.close(fd)
    return os.strerror(ctypes.get_errno()) if failed else int.from_bytes(said[:8], "little")


LARGE = 0x50000064  # a number as directory services give it, which gave the project 100 once


def projects_of_others():
    """An administrator's own limit of a project that has a small number, and one that has the number of an agent's."""
    policy = POLICY.read_text()
    subprocess.run(["useradd", "-u", str(LARGE), "-m", "dora"], check=True, capture_output=True)  # each line that is printed is a case
    subprocess.run(["install", "-d", "-o", "dora", "/home/dora/work"], check=True)
    limit_of(100, 5000)
    try:
        POLICY.write_text(policy + "  dora: {roots: [~/work]}\nlimits: {disk: 64M}\n")
        subprocess.run(["pi-agentctl", "apply", "--no-canary"], check=True, capture_output=True)
        held = pi("sh", "-c", "head -c 100M /dev/zero >~/big; wc -c <~/big; rm ~/big", user="dora", cwd="/home/dora/work")
        project = project_of(STATE / "users/dora/home")
        left = limit_of(100)
        Path("/etc/projid").write_text(f"theirs:{PROJECT}\n")
        limit_of(PROJECT, 6000)
        named = {"named": pi("sh", "-c", "echo ran"), "named_left": limit_of(PROJECT)}
        POLICY.write_text(policy + "limits: {disk: 64M, disk_without_quota: refuse}\n")
        refused = {"refused": pi("sh", "-c", "echo ran"), "refused_left": limit_of(PROJECT)}
        return {"held": held, "project": project, "left": left, **named, **refused}
    finally:
        Path("/etc/projid").unlink(missing_ok=True)
        POLICY.write_text(policy)
        subprocess.run(["userdel", "-r", "dora"], check=True, capture_output=True)


def disk_quota():
    global method
    with state_under_quotas():
        quota = {**a_disk_quota(), "failing_walk": a_walk_that_fails(), "reset_home": a_reset_home(), "of_others": projects_of_others()}
        method = "bwrap"  # where a session has no user namespace
        try:
            return {**quota, "from_before": a_session_from_before()}
        finally:
            method = "systemd"


def main():
    global method
    os.environ.pop("NOTIFY_SOCKET", None)
    policy = POLICY.read_text()
    applied = subprocess.run(["pi-agentctl", "apply"], capture_output=True)
    say({"case": "apply", "status": applied.returncode, "err": applied.stderr.decode(), "policy": len(policy)})
    defaults = (what_systemd_set, too_many_tasks, too_much_memory)
    said = (what_the_policy_set, said_memory, said_tasks, said_processor, said_runtime)
    cases = [("systemd", case) for case in (the_machine, a_launch, id_mapped_files, a_cache_and_a_toolchain, *defaults, *said, a_stepped_clock, a_home_on_tmpfs, disk_quota)]
    for method, case in cases + [("bwrap", case) for case in said]:
        started = time.monotonic()
        try:
            found = case()
        except Exception:  # the others are still worth knowing
            found = {"exception": traceback.format_exc()}
        name = case.__name__ if method == "systemd" else f"{case.__name__}_{method}"
        say({"case": name, "seconds": round(time.monotonic() - started, 1), **found})
    say("done")


if __name__ == "__main__":
    sys.exit(main())

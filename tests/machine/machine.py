"""A disposable machine: a copy of a machine root, booted with systemd as its PID 1, with the product and the real agent.

    with Machine("mine") as m:
        m.create(); m.install(Build("bookworm")); m.boot()
        m.run("id -un; pwd", cwd="/home/alice/projects/demo").stdout

Machine("mine", legacy=True) has control groups of version 1, and what limits need of them (legacy.py).
"""

import atexit
import contextlib
import fcntl
import json
import os
import subprocess
import time

import legacy as legacy_boot
from cache import AGENT_DIRECTORY, CACHE, NSPAWN_ENVIRONMENT, added_tree, agent_tree, clients_tree, copy_tree, docker_tree, engines_tree, files_below, machine_root, podman_tree, remove_tree, toolchains_tree, work_root
from cgroup import Cgroup
from progress import say
from recipes import DEFAULT_AGENT
from record_check import refusal_in, without_waits

PIPE = subprocess.PIPE
REQUESTS = "/run/scripted-model/requests.jsonl"
USER_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
BOOT_SECONDS = 60
# No network of its own, which needs programs that the machine has not; a container's control group where it is told.
DOCKER_SETTINGS = '{"bridge": "none", "iptables": false, "exec-opts": ["native.cgroupdriver=cgroupfs"]}\n'
DOCKER_IMAGE = "pi-agent-test"

# Runs on this host as root: enters the control group, gives fresh pipes to the account ($2, or empty), so that
# /dev/stderr can be opened as it can under a login, and goes on to nsenter.
ENTER = 'umask 022; echo 0 >"$1/cgroup.procs" || exit 125; [ -z "$2" ] || chown "$2" $3 || exit 125; shift 3; exec "$@"'
# Runs in the machine as the account.
CHDIR = 'cd -- "$1" || exit 125; shift; exec "$@"'


class MachineError(Exception):
    pass


class Process(subprocess.Popen):
    """A command in a machine. Its pid is that of nsenter on this host; inside_pid() is its own, in the machine."""

    group = None  # the control group it and its descendants started in
    keeps_waits = False  # communicate() leaves in what pi says of a wait

    def communicate(self, input=None, timeout=None):
        """As Popen's, without what pi says after two seconds of any wait: on a slow machine every start may say it."""
        out, err = super().communicate(input, timeout)
        return out, err if self.keeps_waits or err is None else without_waits(err)

    def inside_pid(self, deadline=5):
        """Waits until the command itself runs, not what enters the machine before it."""
        until = time.monotonic() + deadline
        while time.monotonic() < until:
            for pid in self.group.pids():
                with contextlib.suppress(OSError):
                    status = read_status(pid)
                    numbers = status["NSpid"].split()
                    line = command_line(pid)  # for a moment empty while a program is being replaced
                    if int(status["PPid"]) == self.pid and len(numbers) > 1 and line and CHDIR not in line:
                        return int(numbers[-1])
            time.sleep(0.01)
        raise MachineError("the command has no process in the machine (any more)")

    def __exit__(self, failure, *about):
        if failure:
            self.kill_all()  # what a failed test left has no end to wait for
        super().__exit__(failure, *about)

    def kill_all(self):
        """Kills the command and every descendant that stayed in its control group."""
        self.group.kill()


def command_line(pid):
    with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as line:
        return line.read()


def read_status(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        return dict(line.rstrip("\n").split(":", 1) for line in status)


class Machine:
    first_program = "systemd"
    network = ("--private-network",)
    has_journal = True

    def __init__(self, name, recipe="bookworm", legacy=False):
        self.name = name
        self.recipe = recipe
        self.hostname = f"pi-{name}"[:63]
        self.directory = CACHE / recipe / "instances" / name
        self.filesystem = self.directory / "root"  # as this host sees it: without mounts made inside
        self.console = self.directory / "console.log"
        self.cgroup = Cgroup.for_tests(f"{recipe}-{name}")
        self.legacy = legacy_boot.LegacyGroups(f"{recipe}-{name}") if legacy else None
        self.leader = None  # PID 1 of the machine, in the numbers of this host
        self._nspawn = None
        self._lock = None
        self._count = 0
        self.recorders_killed = False  # root's own processes were, at any moment, again and again: for record_check.py
        self.refusals = []  # what pi has told its users: (user, reason), for record_check.py

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    # --- making and ending it

    def create(self, agent=DEFAULT_AGENT, with_work=False):
        """A fresh copy of the machine's root with the agent in it, or with none: it is larger than all the rest. `with_work`: with what people work with."""
        sweep(self.directory.parent)
        self.destroy()
        self.directory.mkdir(parents=True)
        self._lock = lock_without_waiting(self.directory)
        if with_work:
            self._copy_work_root()
        else:
            copy_tree(machine_root(self.recipe), self.filesystem)
        if agent:
            self.add_agent(agent, AGENT_DIRECTORY)
        (self.filesystem / "etc/hostname").write_text(f"{self.hostname}\n")
        (self.filesystem / "etc/hosts").write_text(f"127.0.0.1 localhost {self.hostname}\n::1 localhost\n")

    def _copy_work_root(self):
        """Its /usr as hard links, so nothing in the machine may write into these files: it is ten times as large as the rest."""
        self.filesystem.mkdir(mode=0o755)
        for entry in work_root(self.recipe).iterdir():
            subprocess.run(["cp", "-al" if entry.name == "usr" else "-a", "--", entry, self.filesystem], check=True)
        for service in ("postgresql", "redis-server"):  # people start their own
            (self.filesystem / f"etc/systemd/system/{service}.service").symlink_to("/dev/null")

    def add_agent(self, version, directory):
        target = self.filesystem / directory.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_tree(agent_tree(version), target)

    def toolchains(self):
        """cargo, go and cmake in the machine, until the end."""
        return self._added(toolchains_tree(self.recipe))

    def clients(self):
        """Libraries of Python that ask by HTTP, until the end."""
        return self._added(clients_tree(self.recipe))

    def rsync(self):
        """rsync in the machine, until the end."""
        return self._added(added_tree(self.recipe, "rsync", ("rsync",)))

    def mercurial(self):
        """Mercurial in the machine, until the end."""
        return self._added(added_tree(self.recipe, "mercurial", ("mercurial",)))

    def needrestart(self):
        """needrestart in the machine, without its configuration, until the end."""
        return self._added(added_tree(self.recipe, "needrestart", ("needrestart",)))

    def podman(self):
        """podman in the machine, until the end."""
        return self._added(podman_tree(self.recipe))

    @contextlib.contextmanager
    def docker(self):
        """docker with its daemon in the machine, until the end, and DOCKER_IMAGE, in which there is nothing."""
        with self._added(docker_tree(self.recipe)):
            self.write("/etc/docker/daemon.json", DOCKER_SETTINGS)
            self.root("groupadd -r docker; systemctl daemon-reload && systemctl start docker; touch /etc/resolv.conf", check=True)
            self.root(f"mkdir /tmp/empty && tar -C /tmp/empty -c . | docker import - {DOCKER_IMAGE} && rmdir /tmp/empty", check=True)
            yield
            self.root("systemctl stop docker.socket docker containerd; groupdel docker; rm -rf /etc/resolv.conf /etc/docker /run/docker.sock /var/lib/docker /var/lib/containerd", check=True)
        self.root("systemctl daemon-reload", check=True)

    @contextlib.contextmanager
    def _added(self, tree):
        """Hard links, so nothing in the machine may write into these files. What the machine has already stays its own."""
        usr = self.filesystem / "usr"
        before = {directory for directory, _, _ in os.walk(usr)}
        added = [file for file in files_below(tree) if not os.path.lexists(usr / file)]
        subprocess.run(["cp", "-aln", "--", f"{tree}/.", usr], check=True)
        yield
        for file in added:
            (usr / file).unlink(missing_ok=True)  # two that were added may have some in common
        for directory, _, _ in os.walk(usr, topdown=False):
            if directory not in before:
                os.rmdir(directory)

    def engines(self):
        """What plays rendered Jobs, and Slurm, until the end."""
        return self._added(engines_tree(self.recipe))

    def install(self, build):
        say(f"building the product for {self.recipe}")
        build.install(self.filesystem)

    def boot(self, keep=False):
        """Starts it and waits until systemd says that it is up. It ends with this process unless `keep`."""
        nspawn = ["systemd-nspawn", "-q", "-D", self.filesystem, "--register=no", "--keep-unit"]
        nspawn += [*self.network, "--capability=all"]
        nspawn += [f"--machine={self.recipe}-{self.name}", f"--hostname={self.hostname}"]
        nspawn += ["--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=read-only"]
        nspawn += self._booting()
        if not keep:
            atexit.register(self.destroy)
        with open(self.console, "wb") as console:
            self._nspawn = subprocess.Popen(
                self.cgroup.entering(self.legacy.entering(nspawn) if self.legacy else nspawn, bound=not keep),
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
                env={**NSPAWN_ENVIRONMENT, **(legacy_boot.ENVIRONMENT if self.legacy else {})},
            )  # fmt: skip
        until = time.monotonic() + BOOT_SECONDS
        while not self._is_up():
            if self._nspawn.poll() is not None or time.monotonic() > until:
                raise MachineError(f"machine {self.name} did not boot; its console:\n{self._console_tail()}")
            time.sleep(0.05)

    def _booting(self):
        """What systemd-nspawn is told to start."""
        return ["-b"] if not self.legacy else self.legacy.booting(self.filesystem)

    def attach(self):
        """Finds the machine that another process booted."""
        self.leader = self._find_leader()
        if not self.leader:
            raise MachineError(f"no machine {self.name} is running (known: {', '.join(running(self.recipe)) or 'none'})")
        return self

    def stop(self):
        """An orderly power-off, and a forced one where that takes too long."""
        # First the commands: shutdown stops every process, and an nsenter that saw its child stop never reaps it.
        for commands in self.cgroup.path.glob("payload/user.slice/harness-*"):
            Cgroup(commands).kill()
        if self.leader and self.root(["systemctl", "poweroff"], timeout=10).returncode == 0:
            until = time.monotonic() + 15
            while self.cgroup.pids() and time.monotonic() < until:
                if self._nspawn:
                    self._nspawn.poll()
                time.sleep(0.05)
        self._kill()

    def go_down(self):
        """As when its power fails; boot() brings it back."""
        self._kill()

    def destroy(self):
        """Ends it at once and removes its files."""
        self._kill()
        remove_tree(self.directory)
        if self._lock:
            self._lock.close()
            self._lock = None
        atexit.unregister(self.destroy)

    def _kill(self):
        self.cgroup.kill()
        if self._nspawn:
            self._nspawn.wait()
        self._nspawn = self.leader = None

    def _is_up(self):
        self.leader = self.leader or self._find_leader()
        if not self.leader:
            return False
        state = self.root(["systemctl", "is-system-running"]).stdout.strip()
        return state in (b"running", b"degraded")

    def _find_leader(self):
        for pid in self.cgroup.pids():
            with contextlib.suppress(OSError):
                numbers = read_status(pid)["NSpid"].split()
                if len(numbers) > 1 and numbers[-1] == "1" and os.readlink(f"/proc/{pid}/exe").endswith(self.first_program):
                    return pid
        return None

    def _console_tail(self):
        return self.console.read_text(errors="replace")[-3000:]

    # --- working in it

    def popen(self, command, user="alice", cwd=None, env=None, stdin=PIPE, stdout=PIPE, stderr=PIPE, session=True):
        """Starts a command in every namespace of the machine's PID 1, in a control group of the machine, as a login would.

        `command` is an argument list or a string for bash; `cwd` and `env` may be bytes; `cwd` defaults to the home.
        `session` off keeps the session, and with it the terminal, of the caller.
        """
        if not self.leader:
            raise MachineError(f"machine {self.name} is not booted")
        argv = ["bash", "-c", command] if isinstance(command, (str, bytes)) else list(command)
        uid, home = self.account(user)
        group = self.user_cgroup(user, f"{os.getpid()}-{self._next()}")
        group.path.mkdir(parents=True, exist_ok=True)
        pipes = " ".join(f"/proc/self/fd/{fd}" for fd, end in enumerate((stdin, stdout, stderr)) if end == PIPE)
        settings = {b"LANG": b"C.UTF-8", **({b"PATH": USER_PATH.encode()} if uid else {})}
        settings.update((os.fsencode(key), os.fsencode(value)) for key, value in (env or {}).items())
        # A check that was started in the background ignores INT, and everything down to the command would inherit that.
        line = ["env", "--default-signal", "sh", "-c", ENTER, "sh", group.path, str(uid) if pipes else "", pipes]
        line += ["nsenter", "--target", str(self.leader), "--all", "--"]
        line += ["setsid"] if session else []
        line += self._before_account()
        line += ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--inh-caps=-all", "--reset-env"]
        line += ["env", *(key + b"=" + value for key, value in settings.items())]
        line += ["sh", "-c", CHDIR, "sh", home if cwd is None else cwd, *argv]
        outer = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **({} if session else {"TERM": os.environ.get("TERM", "dumb")})}
        process = Process(line, stdin=stdin, stdout=stdout, stderr=stderr, env=outer)
        process.group = group
        return process

    def _before_account(self):
        """What runs a command before that becomes the account."""
        return []

    def run(self, command, user="alice", cwd=None, input=b"", env=None, timeout=120, check=False,
            stdin=PIPE, stdout=PIPE, stderr=PIPE, keeps_waits=False):  # fmt: skip
        """Runs a command to its end; CompletedProcess with bytes. A death by signal is a negative status."""
        with self.popen(command, user, cwd, env, stdin, stdout, stderr) as process:
            process.keeps_waits = keeps_waits
            try:
                out, err = process.communicate(input if stdin == PIPE else None, timeout)
            except BaseException as failure:
                process.kill_all()
                if isinstance(failure, subprocess.TimeoutExpired):
                    failure.cmd = command
                raise
        with contextlib.suppress(OSError):
            process.group.path.rmdir()  # stays while a background process of the command lives
        if command[0] == "pi" and (reason := refusal_in(process.returncode, err or b"")):
            self.refusals.append((user, reason))
        if check and process.returncode != 0:
            said = f"stdout: {out!r}\nstderr: {err!r}"
            raise MachineError(f"status {process.returncode} from {command!r} as {user}\n{said}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def root(self, command, **options):
        return self.run(command, user="root", **options)

    def account(self, user):
        """uid and home of an account of the machine."""
        for line in (self.filesystem / "etc/passwd").read_text().splitlines():
            name, _, uid, _, _, home, _ = line.split(":")
            if name == user:
                return int(uid), home
        raise MachineError(f"machine {self.name} has no account {user}")

    def user_cgroup(self, user, leaf=""):
        return Cgroup(self.cgroup.path / "payload/user.slice" / f"harness-{self.account(user)[0]}" / leaf)

    def _next(self):
        self._count += 1
        return self._count

    def write(self, path, content, owner="root", group=None, mode=0o644):
        """Writes a file in the machine, as root; missing parent directories are made."""
        script = 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1" && chown -- "$2" "$1" && chmod -- "$3" "$1"'
        data = content.encode() if isinstance(content, str) else content
        owners = f"{owner}:{group if group is not None else owner}"
        self.root(["sh", "-c", script, "sh", path, owners, f"{mode:o}"], input=data, check=True)

    def read(self, path):
        return self.root(["cat", "--", path], check=True).stdout

    def install_policy(self, text):
        """Makes `text` the policy and applies it."""
        self.write("/etc/pi-agent/policy.yaml", text)
        return self.root(["pi-agentctl", "apply", "--no-canary"], check=True)

    def model_requests(self):
        """What the agent sent to the scripted model since the last forget_model_requests()."""
        return [json.loads(line) for line in self.read(REQUESTS).splitlines()]

    def forget_model_requests(self):
        self.root(["truncate", "--size=0", REQUESTS], check=True)


def running(recipe):
    prefix = f"pi-agent-test-{recipe}-"
    groups = Cgroup.for_tests("").path.parent.glob(prefix + "*")
    return sorted(path.name.removeprefix(prefix) for path in groups if Cgroup(path).pids())


def lock_without_waiting(directory):
    lock = open(directory / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise MachineError(f"{directory} is in use by another process") from None
    return lock


def sweep(instances):
    """Removes what killed test runs left: instances that nobody holds and in which nothing runs."""
    for directory in instances.glob("*"):
        if directory.name in running(instances.parent.name):
            continue
        with contextlib.suppress(MachineError, FileNotFoundError):
            with lock_without_waiting(directory):
                Machine(directory.name, instances.parent.name).destroy()

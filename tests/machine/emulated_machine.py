"""A disposable machine in qemu that is worked in as in one of machine.py, for a place that can boot none of these: it needs no privilege but root.

    with EmulatedMachine("mine") as m:
        m.create(); m.boot()
        m.run(["id", "-un"]).stdout
"""

import base64
import contextlib
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import termios
import time
import tty

from cache import AGENT_DIRECTORY, CACHE, HERE, agent_tree, copy_tree, machine_root, remove_tree
from emulated import QEMU, TCG, file_system, qemu
from machine import PIPE, REQUESTS, MachineError, lock_without_waiting
from progress import say
from record_check import without_waits
from recipes import DEFAULT_AGENT, MACHINES

MEMORY_MIB = 1536
DISK = "3G"  # sparse
BOOT_SECONDS = 600
COMMAND_SECONDS = 600
GUEST = "/usr/local/lib/emulated_guest.py"
UNIT = f"""[Unit]
Description=Commands from the host
After=multi-user.target

[Service]
ExecStart=/usr/bin/python3 -B {GUEST}

[Install]
WantedBy=multi-user.target
"""


def has_kvm():
    """Whether qemu can begin with it, which is asked of qemu: a device file alone says nothing, and where a KVM inside of another refuses a
    register of the processor (Debian 12's qemu: "failed to set MSR"), qemu ends before the machine begins."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run([*QEMU, "-accel", "kvm", "-m", "64M", "-S", "-qmp", "stdio"], input=b'{"execute": "qmp_capabilities"}{"execute": "quit"}', capture_output=True, timeout=30)
        return done.returncode == 0
    return False


class EmulatedMachine:
    def __init__(self, name, recipe="bookworm"):
        self.name = name
        self.recipe = recipe
        self.directory = CACHE / "emulated" / f"machine-{name}"
        self.filesystem = self.directory / "root"  # until it boots
        self.console = self.directory / "console"
        self._lock = self._qemu = self._commands = self._terminal = None
        self._answers = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def create(self):
        """A fresh copy of the machine's root with the agent in it."""
        for left in self.directory.parent.glob("machine-*"):  # by what was killed
            with contextlib.suppress(MachineError), lock_without_waiting(left):
                remove_tree(left)
        self.directory.mkdir(parents=True)
        self._lock = lock_without_waiting(self.directory)
        copy_tree(machine_root(self.recipe), self.filesystem)
        (self.filesystem / AGENT_DIRECTORY.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        copy_tree(agent_tree(DEFAULT_AGENT), self.filesystem / AGENT_DIRECTORY.lstrip("/"))
        (self.filesystem / "etc/hostname").write_text("pi-emulated\n")
        (self.filesystem / "etc/hosts").write_text("127.0.0.1 localhost pi-emulated\n::1 localhost\n")
        shutil.copy(HERE / "emulated_guest.py", self.filesystem / GUEST.lstrip("/"))
        units = self.filesystem / "etc/systemd/system"
        (units / "emulated.service").write_text(UNIT)
        (units / "multi-user.target.wants/emulated.service").symlink_to("/etc/systemd/system/emulated.service")

    def boot(self):
        """Starts it and waits until its commands are answered. It ends with this process."""
        disk = file_system(self.filesystem, self.directory, DISK)
        ports = ["-device", "virtio-serial-pci"]
        for name in ("commands", "terminal"):
            ports += ["-chardev", f"socket,id={name},path={self.directory / name},server=on,wait=off"]
            ports += ["-device", f"virtserialport,chardev={name},name={name}"]
        line = qemu(self.directory, disk, MACHINES[self.recipe].release, MEMORY_MIB, "kvm" if has_kvm() else TCG, ports)
        with open(self.directory / "qemu.log", "wb") as log:
            self._qemu = subprocess.Popen(["setpriv", "--pdeathsig=KILL", *line], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self._until = time.monotonic() + BOOT_SECONDS
        self._commands, self._terminal = self._connect("commands"), self._connect("terminal")
        if self._answer() != "ready":
            raise MachineError(self._trouble("sent something else than expected"))

    def _connect(self, name):
        while True:
            end = socket.socket(socket.AF_UNIX)
            try:
                end.connect(str(self.directory / name))
                return end
            except OSError:
                end.close()
                if self._qemu.poll() is not None or time.monotonic() > self._until:
                    raise MachineError(self._trouble("did not start")) from None
                time.sleep(0.05)

    def _answer(self):
        """The next line of JSON from the machine."""
        shown = time.monotonic()
        while b"\n" not in self._answers:
            self._commands.settimeout(1)
            try:
                data = self._commands.recv(65536)
            except TimeoutError:
                data = None
            except ConnectionError:  # qemu ended, with something unread
                data = b""
            if data == b"" or time.monotonic() > self._until:
                raise MachineError(self._trouble("does not answer"))
            self._answers += data or b""
            if time.monotonic() > shown + 20:
                shown = time.monotonic()
                say("  the emulated machine is at work")
        line, self._answers = self._answers.split(b"\n", 1)
        return json.loads(line)

    def _trouble(self, what):
        said = [path.read_text(errors="replace")[-3000:] for path in (self.directory / "qemu.log", self.console) if path.exists()]
        return f"the emulated machine {what}; qemu and the console said:\n" + "\n".join(said)

    def destroy(self):
        """Ends it at once and removes its files."""
        if self._qemu:
            self._qemu.kill()
            self._qemu.wait()
        for end in (self._commands, self._terminal, self._lock):
            if end:
                end.close()
        remove_tree(self.directory)

    # --- working in it

    def _ask(self, user, cwd, command, env, **more):
        home = "/root" if user == "root" else f"/home/{user}"
        request = {"user": user, "cwd": cwd or home, "command": list(command), "env": env or {}, **more}
        self._commands.sendall(json.dumps(request).encode() + b"\n")

    def run(self, command, user="alice", cwd=None, env=None, check=False, stdin=None, stderr=PIPE, timeout=COMMAND_SECONDS):
        """As Machine.run, with an empty input; a timeout counts for all that is emulated."""
        self._ask(user, cwd, command, env)
        self._until = time.monotonic() + max(timeout, COMMAND_SECONDS)
        answer = self._answer()
        out, err = base64.b64decode(answer["out"]), without_waits(base64.b64decode(answer["err"]))
        if stderr == subprocess.STDOUT:
            out, err = err + out, b""
        if check and answer["status"] != 0:
            raise MachineError(f"status {answer['status']} from {command!r} as {user}\nstdout: {out!r}\nstderr: {err!r}")
        return subprocess.CompletedProcess(command, answer["status"], out, err)

    def root(self, command, **options):
        return self.run(command, user="root", **options)

    def read(self, path):
        return self.root(["cat", "--", path], check=True).stdout

    def model_requests(self):
        """What the agent sent to the scripted model."""
        return [json.loads(line) for line in self.read(REQUESTS).splitlines()]

    def shell(self):
        """A login shell of alice on this process' terminal, until it ends."""
        columns, rows = os.get_terminal_size()
        terminal = {"rows": rows, "columns": columns, "term": os.environ.get("TERM", "dumb")}
        self._ask("alice", None, ["bash", "--login"], None, terminal=terminal)
        before = termios.tcgetattr(sys.stdin)
        tty.setraw(sys.stdin)
        try:
            self._copy_until_it_ends()
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

    def _copy_until_it_ends(self):
        with selectors.DefaultSelector() as ready:
            for end in (sys.stdin.fileno(), self._terminal, self._commands):
                ready.register(end, selectors.EVENT_READ)
            while True:
                ends = [key.fileobj for key, _ in ready.select()]
                if self._terminal in ends:
                    os.write(sys.stdout.fileno(), self._terminal.recv(65536))
                elif self._commands in ends:
                    self._commands.recv(65536)
                    return
                if sys.stdin.fileno() in ends:
                    self._terminal.sendall(os.read(sys.stdin.fileno(), 65536))

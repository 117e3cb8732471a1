"""One session in the background, and the processes that belong to it."""

import contextlib
import time

READY_SECONDS = 20
DEMO = "/home/alice/projects/demo"


class Session:
    """Its agent says that it is ready with a line whose first word is PI_AGENT_SESSION; further words are in `words`."""

    def __init__(self, machine, command, user="alice", cwd=DEMO, env=None):
        self.machine = machine
        self.process = machine.popen(["pi", *command], user=user, cwd=cwd, env=env)
        self.id, *self.words = self._first_line().split()
        self.service = f"pi-agent-{self.id}.service"
        self.scope = f"pi-agent-run-{self.id}.scope"

    def _first_line(self):
        line = self.process.stdout.readline().decode()
        if len(line.split(" ")[0].strip()) != 32:
            _, complaint = self.process.communicate(timeout=READY_SECONDS)
            raise AssertionError(f"the session did not start: {line!r} {complaint.decode(errors='replace')}")
        return line

    def _pids_in(self, unit):
        group = self.machine.root(["systemctl", "show", "--property=ControlGroup", "--value", unit]).stdout.decode().strip()
        if not group:
            return []
        listing = self.machine.root(["cat", f"/sys/fs/cgroup{group}/cgroup.procs"]).stdout
        return [int(line) for line in listing.split()]

    def runner_pid(self):
        (pid,) = self._pids_in(self.scope)
        return pid

    def exec_pid(self):
        shown = self.machine.root(["systemctl", "show", "--property=MainPID", "--value", self.service], check=True)
        return int(shown.stdout)

    def agent_pids(self):
        """Everything in the unit but the launcher; the agent itself first."""
        launcher = self.exec_pid()
        return [pid for pid in self._pids_in(self.service) if pid != launcher]

    def wrapper_pid(self):
        return self.process.inside_pid()

    def sudo_pid(self):
        shown = self.machine.root(["pgrep", "--parent", str(self.wrapper_pid()), "--exact", "sudo"], check=True)
        return int(shown.stdout)

    def end(self):
        """Kills the wrapper and everything that was started with it, and waits until the unit is gone."""
        if self.process.poll() is None:
            with contextlib.suppress(Exception):
                self.process.kill_all()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        self.process.wait(timeout=10)
        until = time.monotonic() + 10
        while self.machine.root(["systemctl", "is-active", "--quiet", self.service]).returncode == 0:
            if time.monotonic() > until:
                self.machine.root(["systemctl", "kill", "--signal=KILL", self.service])
                return
            time.sleep(0.05)

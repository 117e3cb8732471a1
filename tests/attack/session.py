"""One session in the background, and the processes that belong to it."""

import contextlib
import select

READY_SECONDS = 20
DEMO = "/home/alice/projects/demo"


class Session:
    """Its agent says that it is ready with a line whose first word is PI_AGENT_SESSION; further words are in `words`."""

    def __init__(self, machine, command, user="alice", cwd=DEMO, env=None, input=b"", program=("pi",)):
        self.machine = machine
        self.process = machine.popen([*program, *command], user=user, cwd=cwd, env=env)
        self.process.stdin.write(input)
        self.process.stdin.close()
        self.id, *self.words = self._first_line().split()
        self.service = f"pi-agent-{self.id}.service"
        self.scope = f"pi-agent-run-{self.id}.scope"

    def _first_line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], READY_SECONDS)
        line = self.process.stdout.readline().decode() if ready else ""
        if len(line.split(" ")[0].strip()) != 32:
            self.process.kill_all()
            complaint = self.process.stderr.read()  # not communicate(): standard input is closed already
            raise AssertionError(f"the session did not start: {line!r} {complaint.decode(errors='replace')}")
        return line

    def _pids_in(self, unit):
        return pids_in(self.machine, unit)

    def runner_pid(self):
        return pid_of_user(self.machine, self.scope, "root")

    def receiver_pid(self):
        return pid_of_user(self.machine, self.scope, "alice")

    def exec_pid(self):
        return main_pid(self.machine, self.service)

    def agent_pids(self):
        """Everything in the unit but the launcher; the agent itself first."""
        launcher = self.exec_pid()
        return [pid for pid in self._pids_in(self.service) if pid != launcher]

    def agent_pid(self):
        """The process that gave its pid as the first word: the machine's number for it, where the session has numbers of its own."""
        paths = " ".join(f"/proc/{pid}/status" for pid in self._pids_in(self.service))
        for line in self.machine.root(f"grep ^NSpid: {paths}").stdout.decode().splitlines():
            path, _, *numbers = line.replace(":", " ").split()
            if numbers[-1] == self.words[0]:
                return int(path.split("/")[2])
        raise AssertionError(f"nobody in {self.service} calls itself {self.words[0]}")

    def wrapper_pid(self):
        return self.process.inside_pid()

    def sudo_pid(self):
        shown = self.machine.root(["pgrep", "--parent", str(self.wrapper_pid()), "--exact", "sudo"], check=True)
        return int(shown.stdout)

    def end(self):
        """Kills the wrapper with everything that was started with it, and the unit, and waits until the unit is gone."""
        if self.process.poll() is None:
            with contextlib.suppress(Exception):
                self.process.kill_all()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        self.process.wait(timeout=10)
        waiting = f"systemctl kill --signal=KILL {self.service}; while systemctl is-active --quiet {self.service}; do sleep 0.05; done"
        self.machine.root(waiting, timeout=15)


def pids_in(machine, unit):
    """The processes of a unit, in no order (`cgroups(7)`)."""
    group = machine.root(["systemctl", "show", "--property=ControlGroup", "--value", unit]).stdout.decode().strip()
    if not group:
        return []
    listing = machine.root(["cat", f"/sys/fs/cgroup{group}/cgroup.procs"]).stdout
    return [int(line) for line in listing.split()]


def pid_of_user(machine, unit, user):
    """The one process of a unit that runs as `user`."""
    listed = ",".join(map(str, pids_in(machine, unit)))
    shown = machine.root(["ps", "--no-headers", "-o", "pid=,user:32=", "-p", listed], check=True).stdout.decode()
    (pid,) = [int(line.split()[0]) for line in shown.splitlines() if line.split()[1] == user]
    return pid


def main_pid(machine, unit):
    return int(machine.root(["systemctl", "show", "--property=MainPID", "--value", unit], check=True).stdout)

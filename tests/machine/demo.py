"""One run of the product that a newcomer can watch: a disposable machine, the real agent, a scripted model, no keys."""

import argparse
import os
import signal
import subprocess
import sys

from cache import Build
from machine import Machine, MachineError
from progress import CommandFailed, say
from recipes import DEFAULT_AGENT, MACHINES

PROJECT = "/home/alice/projects/demo"
MADE = f"{PROJECT}/hello.txt"
PROMPT = "Say who you are and leave a file here."  # without directives: the model plays its default script


def as_root(machine, *command):
    say("as root: " + " ".join(command))
    done = machine.root(command, env={"DEBIAN_FRONTEND": "noninteractive"}, check=True, timeout=120)
    return done.stdout.decode()


def prepare(machine):
    """What an administrator does, in three commands."""
    machine.create()
    say(f"building the product and its package for {machine.recipe}")
    package = Build(machine.recipe).package(machine.filesystem / "root")
    say("booting the machine")
    machine.boot()
    as_root(machine, "apt-get", "install", "-y", f"/root/{package.name}")
    print(as_root(machine, "pi-agentctl", "init"), end="", flush=True)
    print(as_root(machine, "pi-agentctl", "apply"), end="", flush=True)


def let_the_agent_work(machine):
    """Runs `pi` as alice; the terminal stays out: output comes through pipes, input is empty."""
    say(f"as alice, in {PROJECT}: pi -p '{PROMPT}'")
    done = machine.run(["pi", "-p", PROMPT], cwd=PROJECT, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    print(done.stdout.decode(errors="replace"), end="", flush=True)
    say(f"pi ended with status {done.returncode}")
    return done.returncode == 0


def show_what_happened(machine):
    """The last lines; false unless the file is alice's and the agent was somebody else."""
    results = [message for message in machine.model_requests()[-1]["messages"] if message["role"] == "tool"]
    account = str(results[0]["content"]).split()[0]
    owner = machine.root(["stat", "--format=%U:%G", MADE], check=True).stdout.decode().strip()
    print(f"the file:   {MADE}, which says: {machine.read(MADE).decode().strip()}")
    print(f"its owner:  {owner}")
    print(f"the agent:  ran as {account}: what its `id -un` said", flush=True)
    return owner.startswith("alice:") and account != "alice"


def shell(machine):
    say("a shell as alice in the machine; `exit` ends and removes it. Try: cd ~/projects/demo; pi -p hello </dev/null | cat")
    command = ["script", "--quiet", "--command", "bash --login", "/dev/null"]
    machine.popen(command, stdin=None, stdout=None, stderr=None, session=False).wait()


def main():
    parser = argparse.ArgumentParser(prog="try")
    parser.add_argument("--machine", choices=MACHINES, default="bookworm")
    parser.add_argument("--shell", action="store_true", help="afterwards, a shell as alice in the machine")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the machine is ended and removed
    say(f"a Debian {options.machine} machine with pi-agent and the real pi {DEFAULT_AGENT}; the first time takes minutes")
    try:
        with Machine(f"try-{os.getpid()}", options.machine) as machine:
            prepare(machine)
            fine = let_the_agent_work(machine) and show_what_happened(machine)
            if options.shell:
                shell(machine)
            return 0 if fine else 1
    except (CommandFailed, MachineError) as failure:
        print(f"try: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

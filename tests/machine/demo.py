"""One run of the product that a newcomer can watch: a disposable machine, the real agent, a scripted model, no keys."""

import argparse
import os
import platform
import signal
import subprocess
import sys
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from cache import Build, agent_tree, machine_root
from chrooted import ChrootedBuild
from emulated import kernel
from emulated_machine import EmulatedMachine
from machine import Machine, MachineError
from progress import CommandFailed, end_all, say
from recipes import DEFAULT_AGENT, MACHINES

PROJECT = "/home/alice/projects/demo"
MADE = f"{PROJECT}/hello.txt"
PROMPT = "Say who you are and leave a file here."  # without directives: the model plays its default script


INSTALLED_ON = {recipe.number: name for name, recipe in MACHINES.items()}


def as_root(machine, *command):
    say("as root: " + " ".join(command))
    done = machine.root(command, env={"DEBIAN_FRONTEND": "noninteractive"}, check=True, timeout=120)
    return done.stdout.decode()


def together(*tasks):
    """Runs them side by side, and returns what they return; the first that fails ends the others."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        started = [pool.submit(task) for task in tasks]
        try:
            wait(started, return_when=FIRST_EXCEPTION)
            return [task.result() for task in started if task.done()]
        except BaseException:
            end_all()
            raise


def get_ready(machine):
    """Makes what takes minutes the first time: most of it waits for the network, so it is done side by side. Returns the build."""

    def build():
        made = (ChrootedBuild if isinstance(machine, EmulatedMachine) else Build)(machine.recipe, lean=True)
        say(f"building the product for {machine.recipe}")
        made.compile()
        return made

    tasks = [build, lambda: machine_root(machine.recipe), lambda: agent_tree(DEFAULT_AGENT)]
    if isinstance(machine, EmulatedMachine):
        tasks.append(lambda: kernel(MACHINES[machine.recipe].release))
    return together(*tasks)[0]


def prepare(machine):
    """What an administrator does, in three commands."""
    build = get_ready(machine)
    machine.create()
    say(f"making the package for {machine.recipe}")
    package = build.package(machine.filesystem / "root")
    say("booting the machine")
    machine.boot()
    as_root(machine, "apt-get", "install", "-y", f"/root/{package.name}")
    print(as_root(machine, "pi-agentctl", "init", "--network", "loopback"), end="", flush=True)  # where its model is
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
    say("a shell as alice in the machine; `exit` ends and removes it. Try: cd ~/projects/demo; pi -p hello")
    if isinstance(machine, EmulatedMachine):
        machine.shell()
        return
    command = ["script", "--quiet", "--command", "bash --login", "/dev/null"]
    machine.popen(command, stdin=None, stdout=None, stderr=None, session=False).wait()


def host_release():
    """The machine that is the same Debian as this host, or None."""
    known = platform.freedesktop_os_release()
    return INSTALLED_ON.get(int(known["VERSION_ID"])) if known.get("ID") == "debian" and known.get("VERSION_ID", "").isdecimal() else None


def say_what_next(options):
    """Where the machine is emulated, ./package cannot run either."""
    again = "./try --emulate" if options.emulate else "./try"
    print(f"\nNext:\n  {again} --shell    the same, and then a shell as alice in the machine: start pi yourself")
    release = None if options.emulate else host_release()
    if release:
        print("Install pi-agent on this host:")
        print(f"  ./package --machine {release} && sudo apt-get install ./dist/pi-agent_*~deb{MACHINES[release].number}_amd64.deb")
        print("  sudo pi-agentctl agent install")
        print("  sudo pi-agentctl init && sudo pi-agentctl apply", flush=True)
    else:
        print("To install pi-agent on a Debian 12 or 13 host, see Install in README.md.", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="try")
    parser.add_argument("--machine", choices=MACHINES, default="bookworm")
    parser.add_argument("--emulate", action="store_true", help="the machine runs in qemu, which needs no privilege but root")
    parser.add_argument("--shell", action="store_true", help="afterwards, a shell as alice in the machine")
    options = parser.parse_args()
    if options.shell and not (sys.stdin.isatty() and sys.stdout.isatty()):
        parser.error("--shell needs a terminal")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the machine is ended and removed
    how = ", emulated by qemu," if options.emulate else ""
    say(f"a Debian {options.machine} machine{how} with pi-agent and the real pi {DEFAULT_AGENT}; the first time takes minutes")
    kind = EmulatedMachine if options.emulate else Machine
    try:
        with kind(f"try-{os.getpid()}", options.machine) as machine:
            prepare(machine)
            fine = let_the_agent_work(machine) and show_what_happened(machine)
            if options.shell:
                shell(machine)
        if fine and not options.shell:
            say_what_next(options)
        return 0 if fine else 1
    except (CommandFailed, MachineError) as failure:
        print(f"try: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""Every command in README and docs is run as it stands there: by alice, who may use sudo, in a machine with the package."""

import re
import shlex
import subprocess
from dataclasses import dataclass

import pytest
from cache import SOURCE
from launching import DEMO, STANDARD_POLICY

PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(str(page.relative_to(SOURCE)) for page in (SOURCE / "docs").rglob("*.md"))]
PROGRAMS = r"apt-get|cd|chmod|clang-tidy|git|gpasswd|grep|install|journalctl|meson|mkdir|npm|pi|pi-agentctl|ssh-keygen|touch|tests/\S+|\./\w+"
COMMAND = re.compile(rf"(?:sudo )?(?:{PROGRAMS})(?= |$)|sudo sh ")
# What cannot run in the machine, and where it runs.
ELSEWHERE = {
    r"\./try": "tests/system/test_docs.py",
    r"sudo tests/pictures/make": "tests/system/test_pictures.py",
    r"\./check": ".ci/run",
    r"\./package": "tests/system/package_machine.py",
    r"sudo apt-get install \./dist/": "tests/system/package_machine.py",
    r"sudo apt-get install cmake": "tests/machine/recipes.py",
    r"(sudo )?meson |clang-tidy": "tests/machine/cache.py",
    r"sudo tests/bench/": "tests/bench",
    r"sudo tests/fuzz/long": "tests/fuzz/rounds.py",
    r"sudo pi-agentctl edit": "tests/system/test_policy_commands.py",
    r"sudo pi-agentctl agent ": "tests/system/test_install_agent.py",
    r"sudo pi-agentctl remove --state": "tests/system/test_remove.py",
    r"sudo pi-agentctl (history|stop)": "tests/system/test_sessions.py",
    r"sudo pi-agentctl drain": "tests/system/test_drain.py",
    r"sudo pi-agentctl user prune": "tests/system/test_prune.py",
    r"sudo pi-agentctl (user|set|allow) |pi-agentctl show limits": "tests/system/test_policy_edit.py",
    r"sudo pi-agentctl state (prune|reset|export)": "tests/system/test_state.py",
    r"sudo pi-agentctl state move": "tests/system/test_state_elsewhere.py",
    r"pi-agentctl (history|state|stop)": "tests/system/test_own_sessions.py",
    r"pi-agentctl (changes|diff|undo|review)": "tests/system/test_undo.py",
    r"pi$": "tests/system/test_terminal.py",
    r"pi-agentctl shell$": "tests/system/test_view.py",
    r"pi --pi-agent-allow": "tests/system/test_hosts.py",
    r"(sudo )?pi-agentctl denials": "tests/attack/test_gate.py",
    r"pi --pi-agent-sessions": "tests/system/test_first_start.py",
    r"pi --pi-agent-tmpdir": "tests/system/test_scratch.py",
}
# Words that stand for something of the reader's.
STANDS_FOR = {"FILE": "/etc/pi-agent/policy.yaml", "PATH": "README.md", "NAME": "alice", "DIRECTORY": "exported"}


@dataclass(frozen=True)
class Command:
    page: str
    line: int
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text}"


def blocks_of(page):
    """The indented blocks of a page: (number of the first line, lines)."""
    block = []
    for number, line in enumerate([*(SOURCE / page).read_text().splitlines(), ""], 1):
        if line.startswith("    "):
            block.append(line[4:])
        elif block:
            yield number - len(block), block
            block = []


def commands_of(page):
    """Each line of these blocks that begins with a program. Blocks with a synopsis, which has brackets or bars, are left out."""
    commands = []
    for first, lines in blocks_of(page):
        if any(re.search(r" \[-| \| -", line) for line in lines):
            continue
        joined = re.sub(r"\\\n", "", "\n".join(lines)).splitlines()
        for offset, line in enumerate(joined):
            if COMMAND.match(line):
                commands.append(Command(page, first + offset, re.sub(r" +# .*", "", line)))
    return commands


COMMANDS = {page: found for page in PAGES if (found := commands_of(page))}


def place_elsewhere(command):
    return next((place for pattern, place in ELSEWHERE.items() if re.match(pattern, command.text)), None)


@pytest.fixture(scope="module")
def host(packaged):
    """The package, an administrator (eve) who does not use pi, and what the pages take for granted."""
    packaged.install()
    machine = packaged.machine
    machine.install_policy(STANDARD_POLICY)
    machine.write("/etc/sudoers.d/eve", "eve ALL=(ALL:ALL) NOPASSWD: ALL\n", mode=0o440)
    machine.root(["usermod", "--append", "--groups", "systemd-journal", "eve"], check=True)
    machine.run("mkdir ~/projects/app && cp README.md ~/projects/app", cwd=DEMO, check=True)
    yield packaged
    made = "/etc/sudoers.d/eve /etc/pi-agent/keys.env /etc/pi-agent/*.key ~alice/projects/app ~alice/.ssh/id_agent* ~alice/.pi/agent/env ~alice/pi-agent-policy.json /var/log/pi-agent"
    machine.root(f"rm -rf {made}; gpasswd -d eve systemd-journal", check=True)


def run(machine, command):
    """At a terminal, where every question is answered with yes."""
    text = re.sub("|".join(rf"\b{word}\b" for word in STANDS_FOR), lambda match: STANDS_FOR[match.group()], command.text)
    administers = text.startswith(("sudo ", "journalctl "))
    # Again and again: programs throw away what was typed before they ask.
    at_terminal = f"while sleep 0.3; do echo y; done | script --quiet --return --command {shlex.quote(text)} /dev/null"
    return machine.run(at_terminal, user="eve" if administers else "alice", cwd="/" if administers else DEMO, timeout=120)


@pytest.mark.parametrize("page", COMMANDS)
def test_no_command_of_a_page_fails(host, page):
    machine = host.machine
    if not host.has("/usr/bin/pi"):
        host.install()
    machine.install_policy(STANDARD_POLICY)
    machine.write("/var/log/pi-agent/record.jsonl", '{"PI_AGENT_EVENT":"denied"}\n', mode=0o600)  # a page purges the package
    if any("pi-agentctl init" in command.text for command in COMMANDS[page]):
        machine.root(["rm", "/etc/pi-agent/policy.yaml"], check=True)
    failed = []
    for command in COMMANDS[page]:
        if not place_elsewhere(command) and (done := run(machine, command)).returncode != 0:
            failed.append(f"{command}: status {done.returncode}: {done.stdout.decode(errors='replace')[-500:]}")
        if "pi-agentctl init" in command.text:  # which leaves hosts alone, and the model of the tests is on loopback
            policy = machine.read("/etc/pi-agent/policy.yaml").decode()
            machine.write("/etc/pi-agent/policy.yaml", re.sub(r"(?m)^network:\n(  .*\n)+", "network: loopback\n", policy))
    assert failed == []


def test_what_runs_elsewhere_is_still_there_and_so_is_its_place():
    every = [command for commands in COMMANDS.values() for command in commands]
    assert len(every) > 30
    for pattern, place in ELSEWHERE.items():
        assert any(re.match(pattern, command.text) for command in every), f"no page has {pattern} any more"
        assert (SOURCE / place).exists()


def test_try_shows_a_newcomer_the_agent_at_work(machine_name):
    done = subprocess.run([SOURCE / "try", "--machine", machine_name], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done
    assert "pi-agentctl init" in done.stderr and "its owner:  alice:alice" in done.stdout and "the agent:  ran as pi-agent" in done.stdout, done
    assert "  ./try --shell" in done.stdout.split("Next:")[1], done

"""Completion in bash, zsh and fish as a person has it: typed at a terminal, with the package's own files."""

import re

import pytest
from launching import DEMO
from shells import Shell

READY = b"ready> "
# How each is started as an interactive shell that a login would have, without anything of the account's own.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f"PS1='{READY.decode()}'; . /usr/share/bash-completion/bash_completion\n"),
    "zsh": (["zsh", "-f", "-i"], f"PS1='{READY.decode()}'; autoload -U compinit; compinit -D -u; bindkey -e\n"),
    "fish": (["fish", "-i"], f"function fish_prompt; echo -n '{READY.decode()}'; end; function fish_greeting; end\n"),
}
# What is typed before Tab, and the words of the line that comes of it.
LINES = [
    ("pi-agentctl roll", ["pi-agentctl", "rollback"]),
    ("pi-agentctl user rem", ["pi-agentctl", "user", "remove"]),
    ("pi-agentctl set limits.mem", ["pi-agentctl", "set", "limits.memory"]),
    ("pi-agentctl show users.alice.roo", ["pi-agentctl", "show", "users.alice.roots"]),
    ("pi-agentctl drain --of", ["pi-agentctl", "drain", "--off"]),
    ("pi-agentctl state exp", ["pi-agentctl", "state", "export"]),
    ("pi-agentctl apply --dry", ["pi-agentctl", "apply", "--dry-run"]),
    ("sudo pi-agentctl state res", ["sudo", "pi-agentctl", "state", "reset"]),
    ("pi-agentctl check dra", ["pi-agentctl", "check", "draft.yaml"]),
    ("pi-agentctl explain --cwd subdire", ["pi-agentctl", "explain", "--cwd", "subdirectory"]),
    ("pi --pi-agent-ex", ["pi", "--pi-agent-explain"]),
    ("pi --pi-agent-tmpdir=sub", ["pi", "--pi-agent-tmpdir=subdirectory"]),
    ("pi -p REA", ["pi", "-p", "README.md"]),
    ("pi --no-sess", ["pi", "--no-session"]),  # the agent's own, from a list
    ("pi --no-m", ["pi", "--no-mcp"]),
    ("pi mc", ["pi", "mcp"]),
    ("pi auth subdirec", ["pi", "auth", "subdirectory"]),  # no command of pi's there
    ("pi-agentctl explain limits.task", ["pi-agentctl", "explain", "limits.tasks"]),
]


@pytest.fixture(scope="module")
def installed(packaged):
    """The package, and in a project what can be completed."""
    packaged.install()
    machine = packaged.machine
    machine.run("touch draft.yaml subdir-file; mkdir subdirectory", cwd=DEMO, check=True)
    yield machine
    machine.run("rm -r draft.yaml subdir-file subdirectory", cwd=DEMO, check=True)
    machine.run("rm -rf ~/.cache/fish ~/.config/fish ~/.local/share/fish", check=True)  # fish writes completions of its own, from the manual


def completed(shell, line):
    """The words of the command line after Tab: the shell itself prints them, so that how it shows them does not count."""
    shell.type(line + "\t")
    shell.settle()
    shell.type("\x01printf '<%s>' \x05\n")  # begin of the line, and its end
    printed = shell.expect(rb"((?:<[^<>%\r\n]*>){2,})[^<]").group(1)  # with what follows: else it may be a part
    shell.settle(0.1)
    return [word.rstrip("/") for word in re.findall("<([^<>]*)>", printed.decode())]  # zsh takes a slash back


@pytest.mark.parametrize("name", SHELLS)
def test_commands_options_keys_and_paths_are_completed(installed, name):
    command, beginning = SHELLS[name]
    with Shell(installed, columns=300, command=command) as shell:
        shell.settle()
        shell.type(beginning)
        shell.expect(re.escape(READY) + rb"(?!['\"])")
        shell.settle()
        assert {line: completed(shell, line) for line, _ in LINES} == dict(LINES)

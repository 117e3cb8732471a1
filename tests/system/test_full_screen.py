"""The real agent's full-screen program in tmux: drawn, resized, stopped and continued, ended, killed."""

import re
import time

import pytest
from launching import DEMO, wait_until_empty

WAIT = 30  # seconds; the agent's first start compiles its code


class Screen:
    """A terminal in the machine as tmux shows it, with alice's shell in it."""

    def __init__(self, machine, columns, rows):
        self.machine = machine
        command = "bash --norc --noprofile -i"
        self.tmux(f"new-session -d -x {columns} -y {rows} -c {DEMO} -e PS1='ready> ' -e PI_OFFLINE=1 '{command}'")
        self.wait_for("ready>")

    def tmux(self, command):
        return self.machine.run(f"tmux -f /dev/null {command}", cwd=DEMO, check=True).stdout.decode()

    def text(self):
        return self.tmux("capture-pane -p")

    def wait_for(self, pattern, seconds=WAIT):
        until = time.monotonic() + seconds
        while not re.search(pattern, text := self.text(), re.MULTILINE):
            assert time.monotonic() < until, f"{pattern!r} did not appear:\n{text}"
            time.sleep(0.05)
        return text

    def keys(self, *names):
        self.tmux("send-keys " + " ".join(f"'{name}'" for name in names))

    def line(self, text):
        self.machine.run(["tmux", "send-keys", "-l", text], check=True)
        self.keys("Enter")

    def state(self):
        """Alternate screen, cursor, mouse, bracketed paste as the terminal has them now."""
        return self.tmux("display-message -p '#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_flag}'").strip()

    def settings(self, name):
        self.line(f"stty -a > /tmp/{name}; clear; echo kept {name}")
        self.wait_for(f"^kept {name}$")
        return self.machine.read(f"/tmp/{name}")


@pytest.fixture
def screen(machine):
    shown = Screen(machine, 120, 40)
    yield shown
    machine.run("tmux kill-server")
    machine.run("rm -f /tmp/settings-*")


EDITOR = r"^─{60,}$"


def start_agent(screen):
    screen.line("clear; pi")
    screen.wait_for(EDITOR)
    screen.wait_for("scripted")


def test_drawn_resized_interrupted_and_left_with_two_interrupts(machine, screen):
    before = screen.settings("settings-before")
    start_agent(screen)
    screen.keys("h", "e", "l", "l", "o")
    screen.wait_for("^hello")
    screen.tmux("resize-window -x 70 -y 20")
    small = screen.wait_for(r"^─{70}$")
    assert all(len(line) <= 70 for line in small.splitlines())
    screen.tmux("resize-window -x 120 -y 40")
    screen.wait_for(r"^─{120}$")
    screen.keys("Escape")
    screen.keys("C-c")  # clears the editor
    until = time.monotonic() + 10
    while re.search("^hello", screen.text(), re.MULTILINE):
        assert time.monotonic() < until, screen.text()
        time.sleep(0.05)
    time.sleep(0.7)  # two within half a second mean the end: this is the first of the next pair
    screen.tmux("send-keys C-c ; send-keys C-c")
    screen.wait_for("^ready> $", seconds=10)
    assert screen.state() == "0 1 0 0"
    assert screen.settings("settings-after") == before


def test_stopped_and_continued_fifty_times(machine, screen):
    before = screen.settings("settings-before")
    start_agent(screen)
    for count in range(50):
        screen.keys("C-z")
        screen.wait_for(r"Stopped +pi\n(.*\n)*ready>", seconds=10)
        assert screen.state() == "0 1 0 0"
        if count % 10 == 0:
            assert screen.settings(f"settings-{count}") == before
        screen.line("clear; fg")
        screen.wait_for(EDITOR, seconds=10)
    screen.keys("s", "t", "i", "l", "l")
    screen.wait_for("^still")
    screen.keys("C-c")
    time.sleep(0.7)
    screen.tmux("send-keys C-c ; send-keys C-c")
    screen.wait_for("^ready> $", seconds=10)
    assert screen.settings("settings-after") == before


def test_a_prompt_is_answered_and_the_file_is_there(machine, screen):
    start_agent(screen)
    screen.line("hello")
    screen.wait_for("hello.txt", seconds=20)
    wait_until_empty(lambda: machine.run(["test", "-s", "hello.txt"], cwd=DEMO).returncode, deadline=20)
    screen.tmux("send-keys C-c ; send-keys C-c")
    screen.wait_for("ready> $", seconds=10)
    machine.run("rm -f hello.txt", cwd=DEMO)


@pytest.mark.parametrize("victim", ["pkill -9 -u pi-agent -x pi", "pkill -9 -x pi-agent-exec", "pkill -9 -f ^/usr/libexec/pi-agent/pi-agent-runner", "pkill -9 -x sudo"])
def test_whoever_is_killed_the_shell_is_usable_within_five_seconds(machine, screen, victim):
    before = screen.settings("settings-before")
    start_agent(screen)
    assert machine.root(victim).returncode == 0
    screen.wait_for("ready> *$", seconds=5)
    assert screen.state() == "0 1 0 0"
    assert screen.settings("settings-after") == before

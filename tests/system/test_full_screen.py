"""The real agent's full-screen program in tmux: drawn, resized, stopped and continued, ended, killed."""

import re
import time

import pytest
from launching import DEMO, KILLS_OF_OURS, leftovers, wait_until_empty

WAIT = 30  # seconds; the agent's first start compiles its code
RC_FILE = "/tmp/full-screen-rc"


class Screen:
    """A terminal in the machine as tmux shows it, with alice's shell in it."""

    def __init__(self, machine, columns, rows):
        self.machine = machine
        machine.write(RC_FILE, "PS1='ready> '\nexport PI_OFFLINE=1\n")
        self.tmux(f"new-session -d -x {columns} -y {rows} -c {DEMO} 'bash --noprofile --rcfile {RC_FILE} --noediting -i'")
        self.wait_for("^ready>")

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
    machine.root(f"rm -f /tmp/settings-* {RC_FILE}")


EDITOR = r"^─{60,}$"
STOPPED = r"Stopped +pi\n(.*\n)*ready>"


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
    time.sleep(1)  # read at once with what follows it would be Alt
    screen.keys("C-c")  # clears the editor
    until = time.monotonic() + 10
    while re.search("^hello", screen.text(), re.MULTILINE):
        assert time.monotonic() < until, screen.text()
        time.sleep(0.05)
    time.sleep(0.7)  # two within half a second mean the end: this is the first of the next pair
    screen.tmux("send-keys C-c C-c")
    screen.wait_for("^ready>$", seconds=10)
    assert screen.state() == "0 1 0 0"
    assert screen.settings("settings-after") == before


def test_stopped_and_continued_fifty_times(machine, screen):
    before = screen.settings("settings-before")
    start_agent(screen)
    # The agent, without pi-agent too, loses a Ctrl-Z that comes before it has started completely. None of the later ones may be lost.
    until = time.monotonic() + WAIT
    while not re.search(STOPPED, screen.text()):
        assert time.monotonic() < until, screen.text()
        screen.keys("C-z")
        time.sleep(1)
    screen.line("clear")
    screen.wait_for(r"\A *ready>\n*\Z")
    screen.line("fg")
    screen.wait_for(EDITOR, seconds=10)
    for count in range(50):
        screen.keys("C-z")
        screen.wait_for(STOPPED, seconds=10)
        assert screen.state() == "0 1 0 0"
        assert screen.settings(f"settings-{count}") == before
        screen.line("clear")
        screen.wait_for(r"\A *ready>\n*\Z")
        screen.line("fg")
        screen.wait_for(EDITOR, seconds=10)
    screen.keys("s", "t", "i", "l", "l")
    screen.wait_for("^still")
    screen.keys("C-c")
    time.sleep(0.7)
    screen.tmux("send-keys C-c C-c")
    screen.wait_for("^ready>$", seconds=10)
    assert screen.settings("settings-after") == before


def test_a_prompt_is_answered_and_the_file_is_there(machine, screen):
    start_agent(screen)
    screen.line("hello")
    until = time.monotonic() + WAIT
    while "hello.txt" not in (text := screen.text()):
        assert time.monotonic() < until, text
        time.sleep(0.2)
        # The agent, without pi-agent too, refuses a prompt while it starts, and leaves it in the editor.
        if "Startup is still in progress" in text and re.search("^hello", text, re.MULTILINE):
            screen.keys("Enter")
    wait_until_empty(lambda: machine.run(["test", "-s", "hello.txt"], cwd=DEMO).returncode, deadline=20)
    screen.tmux("send-keys C-c C-c")
    screen.wait_for("^ready>$", seconds=10)
    machine.run("rm -f hello.txt", cwd=DEMO)


KILLS = {"agent": "pkill -9 -u pi-agent-alice -x pi", **KILLS_OF_OURS}


@pytest.mark.parametrize("victim", KILLS)
def test_whoever_is_killed_the_shell_is_usable_within_five_seconds(machine, screen, victim):
    before = screen.settings("settings-before")
    start_agent(screen)
    assert machine.root(KILLS[victim]).returncode == 0
    screen.wait_for("^ready>", seconds=5)
    assert screen.state() == "0 1 0 0"
    assert screen.settings("settings-after") == before
    wait_until_empty(lambda: leftovers(machine))


def test_after_a_killed_wrapper_reset_makes_the_shell_usable(machine, screen):
    before = screen.settings("settings-before")
    start_agent(screen)
    machine.root("pkill -9 -x pi -u alice", check=True)
    screen.wait_for("^ready>", seconds=5)
    wait_until_empty(lambda: leftovers(machine))
    screen.tmux("send-keys -l reset")
    screen.keys("C-j")  # the terminal is raw: Enter would be a carriage return
    screen.wait_for("^ready>$")
    state = screen.state()
    usable = {b"icanon", b"isig", b"echo", b"icrnl", b"opost", b"onlcr"}
    assert usable <= set(before.split()) and usable <= set(screen.settings("settings-after").split())
    screen.line("printf '\\033[?1049h'; reset; echo without an agent")  # which leaves the alternate screen nowhere
    screen.wait_for("^without an agent$")
    assert state == screen.state() == "1 1 0 0"

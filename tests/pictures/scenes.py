"""What the pictures of the documentation show: the real programs in a booted machine, in a terminal of tmux."""

import json
import re
import time

COLUMNS, ROWS = 100, 52
DEMO = "/home/alice/projects/demo"
SSH = "/home/alice/.ssh"
PACKAGE = '{"name": "demo", "scripts": {"test": "true"}}\n'
RC_FILE = "/tmp/pictures-rc"
MODEL = "/usr/local/lib/scripted_model.py"
WAIT = 60
# Shown in the place of what no two runs have alike.
ALIKE = (
    (re.compile(r"\b[0-9a-f]{32}\b"), "5e551011c0ffee000000000000000001"),
    (re.compile(r"Took \d+\.\ds\b"), "Took 0.0s"),
)
SESSION_PROMPT = "Who are you? Read my SSH key, then write hello.txt."
SESSION_SCRIPT = {
    "steps": [
        {"bash": "id -un; cat /home/alice/.ssh/id_ed25519"},
        {"write": {"path": "hello.txt", "content": "Hello from the sandbox.\n"}},
    ],
    "say": "I run as the account pi-agent-alice, and your SSH key does not exist in here.\nI wrote hello.txt, which belongs to you.",
}
LEFT_PROMPT = "Set up the tests."
LEFT_SCRIPT = {
    "steps": [{"bash": "sed -i 's/\"true\"/\"node test.js\"/' package.json && mkdir -p .vscode && echo '{\"version\": \"2.0.0\"}' >.vscode/tasks.json"}],
    "say": "npm test runs the tests now, and VS Code has a task for them.",
}


class Terminal:
    """A terminal in the machine with an account's shell in it; tmux holds it."""

    def __init__(self, machine, user):
        self.machine, self.user = machine, user
        prompt = "root:~# " if user == "root" else "alice:~/projects/demo$ "
        machine.write(RC_FILE, f"PS1='{prompt}'\nexport COLORTERM=truecolor PI_OFFLINE=1\n")
        shell = f"bash --noprofile --rcfile {RC_FILE} --noediting -i"
        self.tmux("set-option", "-g", "default-terminal", "tmux-256color", ";", "set-option", "-g", "status", "off", ";",
                  "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-c", DEMO if user == "alice" else "/root", shell)  # fmt: skip
        self.wait_for(r"^\S+[$#] ?$")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server", check=False)

    def tmux(self, *arguments, check=True):
        return self.machine.run(["tmux", "-f", "/dev/null", *arguments], user=self.user, check=check).stdout.decode()

    def wait_for(self, pattern):
        until = time.monotonic() + WAIT
        while not re.search(pattern, text := self.tmux("capture-pane", "-p").rstrip(), re.MULTILINE):
            if time.monotonic() > until:
                raise TimeoutError(f"{pattern!r} did not appear:\n{text}")
            time.sleep(0.1)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def enter(self):
        self.tmux("send-keys", "Enter")

    def command(self, text):
        """Runs it to its end, which is a new prompt."""
        self.type(text)
        self.enter()
        self.wait_for(r"\n\S+[$#]\Z")

    def screen(self):
        """With its colours, but for what no two runs have alike."""
        text = self.tmux("capture-pane", "-p", "-e", "-N")
        for pattern, instead in ALIKE:
            text = pattern.sub(instead, text)
        return re.sub(r"\n\S+[$#](\s|\x1b\[[\d;]*m)*\Z", "\n", text)  # without the prompt that waits at the end


def let_the_model_play(machine, script):
    """Answers every prompt without directives with this script, until the machine ends."""
    program = machine.read(MODEL).decode()
    program = re.sub(r"(?m)^DEFAULT_SCRIPT = json.loads\(.*\)\n", "", program)
    program = program.replace(" + [result[:RESULT_CHARACTERS] for result in results[-1:]]", "")  # after what it says
    machine.write(MODEL, program.replace("\ndef text_of", f"\nDEFAULT_SCRIPT = json.loads({json.dumps(script)!r})\n\n\ndef text_of", 1))
    machine.root(["systemctl", "restart", "scripted-model"], check=True)


def session(machine):
    """The agent's full-screen program with an answer."""
    let_the_model_play(machine, SESSION_SCRIPT)
    with Terminal(machine, "alice") as terminal:
        terminal.type(f"pi '{SESSION_PROMPT}'")  # typed into the agent, it could come before that is ready
        terminal.enter()
        terminal.wait_for("^ .*belongs to you")
        return terminal.screen()


def why(machine):
    with Terminal(machine, "alice") as terminal:
        terminal.command("pi-agentctl why README.md .git/config ~/.ssh")
        return terminal.screen()


def doctor(machine):
    with Terminal(machine, "root") as terminal:
        terminal.command("pi-agentctl doctor")
        return terminal.screen()


def left(machine):
    """What `pi` tells at the end of a session that left programs."""
    let_the_model_play(machine, LEFT_SCRIPT)
    with Terminal(machine, "alice") as terminal:
        terminal.command(f"pi -p '{LEFT_PROMPT}'")
        return terminal.screen()


SCENES = {
    session: "pi: the agent in a session",
    why: "pi-agentctl why: may the agent read or write this?",
    doctor: "pi-agentctl doctor",
    left: "pi: what a session left",
}


def make_ssh_key(machine):
    machine.run(f"mkdir -m 700 {SSH}; umask 077; echo 'a private key' >{SSH}/id_ed25519", check=True)


def prepare(machine):
    """What all scenes take for granted."""
    make_ssh_key(machine)
    machine.write(f"{DEMO}/package.json", PACKAGE, owner="alice")
    with Terminal(machine, "alice") as terminal:
        terminal.command("pi -p hello")  # what is told once in each repository
    machine.run("rm hello.txt && git add package.json && git commit -qm 'Add a package'", cwd=DEMO, check=True)

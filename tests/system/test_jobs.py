"""Several pi on one terminal, in the background and beside each other: never stopped, never raw, shown as of the agent alone."""

import json
import os
import re
from pathlib import Path

import pytest
from launching import DEMO
from shells import PROMPT, Shell

FULL = bool(os.environ.get("PI_AGENT_FULL"))
ROUNDS = 40 if FULL else 5  # of each pattern, in each shell: every redirection several times
DIRECTORY = "/tmp/job-rounds"
ALONE = "/usr/local/bin/alone"  # the playing agent, without pi-agent around it
REDIRECTIONS = ["", "</dev/null", "</dev/tty", f">{DIRECTORY}/file-%", "| cat"]
PATTERNS = {
    "two": (2, "{} & {} & wait"),
    "background": (1, "{} &"),
    "three": (3, "{} & {} & {} & wait"),
    "one job": (3, None),  # a script without job control: all are in the foreground
}
SAY = {
    # No word is found in the line that is typed.
    "playing": lambda program, word: f"""{program} sh 'echo {word[:2]}""{word[2:]}'""",
    "real": lambda program, word: f"""{program} -p '{{"steps": [], "say": "\\u{ord(word[0]):04x}{word[1:]}"}}'""",
}


def rounds_of(kind, program, pattern, count):
    """Rounds as the driver in the machine takes them, and the scripts that they need."""
    jobs, line = PATTERNS[pattern]
    rounds, scripts = [], {}
    for number in range(count):
        words = [f"word-{number}-{job}." for job in range(jobs)]
        redirection = REDIRECTIONS[number % len(REDIRECTIONS)]
        commands = [f"{SAY[kind](program, word)} {redirection.replace('%', str(job))}" for job, word in enumerate(words)]
        to_file = redirection.startswith(">")
        if line is None:
            name = f"script-{program}-{number}"
            scripts[name] = "".join(f"{command} &\n" for command in commands) + "wait\n"
            typed = f"sh {DIRECTORY}/{name}"
        else:
            typed = line.format(*commands)
        files = {f"{DIRECTORY}/file-{job}": word + "\n" for job, word in enumerate(words)} if to_file else {}
        rounds.append({"line": typed, "words": [] if to_file else words, "files": files, "alone": program != "pi"})
    return rounds, scripts


def play(machine, shell, rounds, scripts):
    machine.write("/tmp/job_rounds.py", Path(__file__).with_name("job_rounds.py").read_text(), mode=0o644)
    machine.root(f"rm -rf {DIRECTORY}; install -d -o alice {DIRECTORY}", check=True)
    orders = {"shell": shell, "directory": DIRECTORY, "rounds": rounds, "scripts": scripts, "names": ["pi", Path(ALONE).name]}
    environment = {"PI_OFFLINE": "1"}
    done = machine.run(["python3", "/tmp/job_rounds.py"], cwd=DEMO, env=environment, input=json.dumps(orders).encode(), timeout=3600)
    machine.root(f"rm -rf {DIRECTORY} /tmp/job_rounds.py", check=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert json.loads(done.stdout) == []


@pytest.fixture(scope="module")
def alone(machine):
    machine.write(ALONE, Path(__file__).with_name("playing_agent.py").read_text(), mode=0o755)
    yield
    machine.root(["rm", ALONE], check=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_jobs_beside_each_other_are_never_stopped_and_never_leave_the_terminal_raw(machine, playing, alone, shell):
    rounds, scripts = [], {}
    for program, count in (("alone", 5), ("pi", ROUNDS)):
        for pattern in PATTERNS:
            more = rounds_of("playing", program, pattern, count)
            rounds += more[0]
            scripts |= more[1]
    play(machine, shell, rounds, scripts)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_is_typed_ahead_and_not_read_is_the_shells(machine, playing, alone, shell):
    rounds = [
        {
            "line": f"""{program} sh 'sleep 0.7; echo wo""rd-{number}.'""",
            "ahead": f"""echo ah""ead-{number}.""",
            "words": [f"word-{number}.", f"ahead-{number}."],
            "alone": program != "pi",
        }
        for program, count in (("alone", 2), ("pi", 20 if FULL else 3))
        for number in range(count)
    ]
    play(machine, shell, rounds, {})


def test_a_background_job_that_reads_is_stopped_until_it_is_in_the_foreground(machine, playing):
    with Shell(machine) as shell:
        before = shell.settings()
        shell.type("pi sh 'echo asks; read x; echo got $x' &\n")
        shell.expect("asks\r\n")
        wait_until_stopped(shell, "tty input")
        assert shell.settings() == before
        shell.run("bg")
        wait_until_stopped(shell, "tty input")
        shell.enter("fg")
        shell.type("words\n")
        shell.expect("got words\r\n.*" + re.escape(PROMPT.decode()))
        assert shell.settings() == before


@pytest.mark.parametrize("mode", ["tostop", "-tostop"])
def test_a_background_job_that_writes_is_stopped_where_the_terminal_says_so(machine, playing, mode):
    with Shell(machine) as shell:
        shell.run(f"stty {mode}")
        shell.type("pi sh 'echo wri''tten' &\n")
        if mode == "tostop":
            wait_until_stopped(shell, "tty output")
            shell.enter("fg")
        shell.expect("written\r\n")
        if mode == "tostop":
            shell.expect(re.escape(PROMPT))
        shell.run("wait")


def test_a_key_that_interrupts_is_for_the_whole_job_before_the_agent_reads_too(machine, playing):
    with Shell(machine) as shell:
        shell.enter("""pi sh 'trap "echo heard; exit 3" INT; sh -c "trap \\"echo child\\" INT; echo here; sleep 5; sleep 0.1"' """.strip())
        shell.expect("here\r\n")
        machine.root("while ! pgrep -u pi-agent-alice -x sleep; do sleep 0.02; done", check=True)
        shell.type(b"\x03")
        shell.expect("child\r\n.*heard\r\n.*" + re.escape(PROMPT.decode()), seconds=4)


def test_programs_of_one_job_that_all_ask_for_keys_leave_the_terminal_as_it_was(machine, playing):
    with Shell(machine) as shell:
        before = shell.settings()
        asking = "pi sh 'read x </dev/tty; echo got $x' </dev/tty"
        shell.enter(f"sh -c \"{asking} & {asking} & wait\"".replace("$", "\\$"))
        for word in ("one", "two"):
            shell.settle(1)
            shell.type(word + "\n")
            shell.expect(f"got {word}\r\n")
        shell.expect(re.escape(PROMPT))
        assert shell.settings() == before


def wait_until_stopped(shell, how):
    """The shell's word for it comes before the next prompt, or jobs has it."""
    for _ in range(100):
        if f"Stopped ({how})".encode() in (said := shell.run("jobs -l; sleep 0.1")[0]):
            return
    raise AssertionError(said)

"""The terminal, with a small agent: byte-exact, resized, stopped and continued, restored whatever dies."""

import contextlib
import hashlib
import os
import re
import signal
import time

import pytest
from launching import DEMO, KILLS_OF_OURS, wait_until_empty
from shells import PROMPT, Shell, stop_and_continue

FULL = bool(os.environ.get("PI_AGENT_FULL"))

pytestmark = pytest.mark.usefixtures("playing")


def test_the_agent_has_a_terminal_of_its_own_with_the_users_size_and_settings(machine):
    with Shell(machine, rows=33, columns=101) as shell:
        outside = shell.run("tty")[0]
        assert shell.run("stty erase ^H -ixon")[1] == 0
        said, status = shell.run("""pi sh 'tty; stty size; stty -a; stat -c %U:%a $(tty)'""")
    assert status == 0
    assert b"33 101\r\n" in said
    assert b"/dev/pts/0\r\n" in said and outside.strip() != b""
    assert b"erase = ^H" in said and b"-ixon" in said
    assert b"pi-agent-alice:600\r\n" in said


def test_the_users_own_terminal_is_not_among_the_agents(machine):
    """Neither its device nor another session's: the devpts instance holds one terminal."""
    with Shell(machine) as one, Shell(machine) as other:
        one.enter("pi sh 'echo here; sleep 1000'")
        one.expect("here\r\n")
        said, _ = other.run("pi sh 'ls /dev/pts; echo x > /dev/pts/1'")
        assert re.search(rb"^0\r\nptmx\r\n|^0 +ptmx\r\n", said, re.MULTILINE), said
        assert b"Permission denied" in said or b"No such file" in said or b"Read-only" in said
        one.type(b"\x03")
        one.expect(re.escape(PROMPT))


def test_devices_named_by_path_work_inside(machine):
    with Shell(machine) as shell:
        said, status = shell.run("pi sh 'echo 1 >/dev/stdout; echo 2 >/dev/stderr; echo 3 >/dev/tty; : >/dev/null; read x </dev/stdin; echo got $x' </etc/hostname")
        assert (status, said.split()[:4]) == (0, [b"1", b"2", b"3", b"got"])
        said, status = shell.run("pi sh 'echo gone >/dev/stderr; echo out >/dev/stdout' 2>/dev/null")
        assert (status, said) == (0, b"out\r\n")


@pytest.mark.parametrize(
    "line, expected",
    [
        ("pi sh 'test -t 0 && test ! -t 1 && test -t 2 && echo mixed' | cat", b"mixed\r\n"),
        ("pi sh 'test ! -t 0 && test -t 1 && test -t 2 && cat' </etc/hostname", b"pi-"),
        ("pi sh 'test -t 0 && test -t 1 && test ! -t 2 && echo out; echo err >&2' 2>err; cat err; rm err", b"out\r\nerr\r\n"),
        ("echo x | pi sh 'cat; test -t 2 && echo tty >&2' | cat", b"x\r\n"),
    ],
)  # fmt: skip
def test_mixed_cases_keep_each_descriptor_what_it_was(machine, line, expected):
    with Shell(machine) as shell:
        before = shell.settings()
        said, status = shell.run(line)
        assert (status, shell.settings()) == (0, before)
    assert expected in said
    assert b"\r\r\n" not in said


def test_every_byte_passes_both_ways_in_raw_mode(machine):
    every_byte = bytes(range(256)) * 64
    with Shell(machine) as shell:
        shell.enter(f"pi sh 'stty raw -echo; echo go; head -c {len(every_byte)} | sha256sum; stty sane'")
        shell.expect("go\n")
        for start in range(0, len(every_byte), 1024):
            shell.type(every_byte[start : start + 1024])
        shell.expect(hashlib.sha256(every_byte).hexdigest(), seconds=30)
        shell.expect(re.escape(PROMPT))


def test_the_terminal_by_its_other_name_is_the_same_terminal(machine):
    with Shell(machine) as shell:
        assert shell.run("pi sh 'tty; echo ran' </dev/tty")[0].endswith(b"ran\r\n")


def test_much_output_comes_through_byte_for_byte(machine):
    piece, count = 1000 * 1000, 200
    with Shell(machine) as shell:
        shell.enter(f"pi flood {piece} {count}; cat digest; rm digest")
        shell.expect("BEGIN", seconds=30)
        digest = hashlib.sha256(shell.seen[shell.position :])
        left = piece * count - len(shell.seen[shell.position :])
        until = time.monotonic() + 120
        while left > 0:
            assert time.monotonic() < until, f"{left} bytes are missing"
            shell.seen, shell.position = b"", 0
            data = shell.read(5)
            digest.update(data[:left])
            shell.seen = data[left:]
            left -= min(left, len(data))
        shell.expect(digest.hexdigest(), seconds=30)


@contextlib.contextmanager
def shell_with_an_agent_that_tells_sizes(machine):
    with Shell(machine) as shell:
        shell.enter("pi sizes")
        shell.expect("24x80\\.\r\n")
        yield shell
        shell.type("\n")
        shell.expect("end\r\n.*" + re.escape(PROMPT.decode()))


def test_a_thousand_resizes_in_a_second_end_with_the_last_size(machine):
    with shell_with_an_agent_that_tells_sizes(machine) as shell:
        started = time.monotonic()
        for count in range(1000):
            shell.resize(10 + count % 50, 40 + count % 100)
        assert time.monotonic() - started < 1
        shell.resize(47, 113)
        shell.expect("47x113\\.\r\n")


def test_the_agent_is_told_of_each_resize(machine):
    with shell_with_an_agent_that_tells_sizes(machine) as shell:
        for rows, columns in [(30, 90), (20, 70), (50, 132)]:
            shell.resize(rows, columns)
            shell.expect(f"{rows}x{columns}\\.\r\n")
            assert shell.read(0.3) == b"", "told twice"


def test_the_keyboards_signals_reach_the_agents_foreground_job(machine):
    with Shell(machine) as shell:
        shell.enter("pi signals")
        shell.expect("ready\r\n")
        shell.type(b"\x03")
        shell.expect("SIGINT\r\n")
        shell.type(b"\x1c")
        shell.expect("SIGQUIT\r\n")
        shell.type(b"\x1a")
        shell.expect("Stopped.*" + re.escape(PROMPT.decode()))
        shell.run("kill -9 %1; wait")


def test_a_stopped_agent_is_continued_to_hear_that_its_session_ends(machine):
    asked = f"{DEMO}/asked"
    with Shell(machine) as shell:
        shell.enter(f"pi sh 'trap \"touch {asked}; exit\" TERM; echo here; while :; do sleep 0.05; done'")
        shell.expect("here\r\n")
        shell.type(b"\x1a")
        shell.expect("Stopped.*" + re.escape(PROMPT.decode()))
        shell.run("kill -9 %1; wait")
        wait_until_empty(lambda: machine.root(["test", "-e", asked]).returncode)
        machine.root(["rm", asked], check=True)


def test_end_of_input_from_the_keyboard_is_the_agents(machine):
    with Shell(machine) as shell:
        shell.enter("pi sh 'echo here; cat; echo after'")
        shell.expect("here\r\n")
        shell.type("line\n")
        shell.expect("line\r\nline\r\n")
        shell.type(b"\x04")
        shell.expect("after\r\n.*" + re.escape(PROMPT.decode()))


def test_stop_and_continue_fifty_times_leaves_the_shell_its_terminal_each_time(machine):
    with Shell(machine) as shell:
        stop_and_continue(shell, 50)
        assert shell.modes_left() == (set(), set(), 0)


def test_a_pager_that_is_over_before_the_agent_leaves_the_shell_its_terminal(machine):
    """What the terminal was when the agent began is the pager's mode; at its end it is the shell's again."""
    pager = "old=$(stty -g </dev/tty); stty -icanon -echo </dev/tty; sleep 1; stty $old </dev/tty; cat"
    with Shell(machine) as shell:
        before = shell.settings()
        said, status = shell.run(f"pi sh 'sleep 2; echo here' | sh -c '{pager}'", seconds=20)
        assert (said, status) == (b"here\r\n", 0)
        assert shell.settings()[:4] == before[:4]


def test_a_stopped_pipeline_is_one_job(machine):
    with Shell(machine) as shell:
        shell.enter("pi ticks | cat")
        shell.expect("tick 2\\.\r\n")
        shell.type(b"\x1a")
        shell.expect("Stopped.*" + re.escape(PROMPT.decode()))
        states = machine.root("ps -o stat=,comm= -u alice", check=True).stdout.decode().splitlines()
        # Beside the job there is a leader of a session of its own, which looks at the project.
        assert [line[0] for line in states if line.split()[1] in ("cat", "pi") and "s" not in line.split()[0]] == ["T", "T"], states
        assert b"tick" not in shell.read(0.5)
        shell.enter("fg")
        shell.expect("tick [0-9]+\\.\r\n")
        shell.type(b"\x03")
        shell.expect(re.escape(PROMPT))


def test_a_printing_agent_goes_on_in_the_background_and_comes_back(machine):
    with Shell(machine) as shell:
        shell.enter("pi ticks")
        shell.expect("tick 2\\.\r\n")
        shell.type(b"\x1a")
        shell.expect("Stopped.*" + re.escape(PROMPT.decode()))
        shell.type("bg\n")
        shell.expect(r"tick \d+\.\r+\n.*tick \d+\.\r+\n")
        shell.type("jobs\n")
        shell.expect("Running")
        shell.type("fg\n")
        shell.expect(r"tick \d+\.\r\n.*tick \d+\.\r\n")
        shell.type(b"\x03")
        shell.expect(re.escape(PROMPT))


def test_an_agent_that_reads_keys_is_stopped_in_the_background(machine):
    with Shell(machine) as shell:
        before = shell.settings()
        shell.enter("pi keys ''")
        shell.expect("here")
        machine.root("kill -TSTP $(pgrep -x pi -u alice)", check=True)
        shell.expect("Stopped.*" + re.escape(PROMPT.decode()))
        shell.run("bg")
        until = time.monotonic() + 10
        while b"Stopped" not in shell.run("jobs")[0]:
            assert time.monotonic() < until, "it runs in the background"
        assert shell.settings() == before
        shell.enter("fg")
        shell.expect(r"CONT\d+\.")
        shell.type("q")
        shell.expect(re.escape(PROMPT))
        assert shell.run("echo code=$?")[0] == b"code=7\r\n"


def test_a_full_screen_agent_started_in_the_background_waits_there(machine):
    with Shell(machine) as shell:
        shell.type(r"pi keys '\x1b[?1049h' &" + "\n")
        until = time.monotonic() + 20
        while b"Stopped" not in shell.run("jobs")[0]:
            assert time.monotonic() < until, "it runs in the background"
        assert shell.modes_left() == (set(), set(), 0)
        shell.enter("fg")
        shell.expect("here")
        shell.type("q")
        shell.expect(re.escape(PROMPT))
        assert shell.run("echo code=$?")[0] == b"code=7\r\n"


def test_without_a_shell_to_continue_it_a_stopped_agent_goes_on(machine):
    """The process group is orphaned, as under cron or a terminal program's -e: a stop would last for ever."""
    with Shell(machine, command=["pi", "sh", "echo here; trap 'echo CONT' CONT; kill -TSTP $$; echo on; read x; exit 3"]) as shell:
        shell.expect("here\r\n")
        shell.expect("on\r\n")
        shell.type("\n")
        assert shell.process.wait(timeout=15) == 3


KILLS = {"agent": "pkill -9 -u pi-agent-alice -f playing-agent", **KILLS_OF_OURS}


@pytest.mark.parametrize("victim", KILLS)
def test_the_terminal_is_usable_again_whoever_is_killed(machine, victim):
    with Shell(machine) as shell:
        before = shell.settings()
        shell.enter(r"pi keys '\x1b[?1049h\x1b[?25l\x1b[?1003h\x1b[?1006h\x1b[?2031h\x1b[>4;2m'")
        shell.expect("here")
        assert machine.root(KILLS[victim]).returncode == 0
        shell.expect(re.escape(PROMPT), seconds=5)
        assert shell.settings()[:4] == before[:4]
        assert shell.modes_left() == (set(), set(), 0)
        status = int(shell.run("echo code=$?")[0].split(b"=")[1])
        assert status == (128 + signal.SIGKILL if victim in ("agent", "launcher") else 71)
        wait_until_empty(lambda: machine.root("ps -u pi-agent-alice -o pid=").stdout.strip())


def test_after_a_killed_wrapper_the_session_is_gone_and_reset_helps(machine):
    with Shell(machine) as shell:
        before = shell.settings()
        shell.enter(r"pi keys '\x1b[?1049h\x1b[?25l\x1b[?1003h'")
        shell.expect("here")
        machine.root("pkill -9 -x pi -u alice", check=True)
        shell.expect(re.escape(PROMPT), seconds=5)
        wait_until_empty(lambda: machine.root("ps -u pi-agent-alice -o pid=").stdout.strip())
        shell.type("reset\n")
        shell.expect(re.escape(PROMPT))
        assert shell.modes_left() == (set(), set(), 0)
        assert shell.run("echo usable")[0] == b"usable\r\n"
        assert shell.settings()[3] == before[3]


def test_a_hung_up_terminal_ends_the_session(machine):
    shell = Shell(machine)
    shell.enter("pi sh 'trap \"\" HUP TERM; echo here; while :; do sleep 0.05; done'")
    shell.expect("here\r\n")
    os.close(shell.master)
    wait_until_empty(lambda: machine.root("ps -u pi-agent-alice -o pid=").stdout.strip(), deadline=15)
    shell.process.kill_all()
    shell.process.wait()


def test_an_unread_terminal_blocks_the_agent_and_loses_nothing(machine):
    """A minute of it with --full; what matters is that every buffer on the way is full."""
    with Shell(machine) as shell:
        shell.enter("pi sh 'seq 1 200000; exit 5'")
        shell.expect("1\r\n")
        time.sleep(60 if FULL else 5)
        assert machine.root("pgrep -u pi-agent-alice -x seq").returncode == 0
        shell.expect("200000\r\n" + PROMPT.decode(), seconds=60)
        shown = shell.seen[shell.seen.index(b"\r\n1\r\n") + 2 : -len(PROMPT)]
        assert shown == b"".join(b"%d\r\n" % number for number in range(1, 200001))
        assert shell.run("echo code=$?")[0].strip() == b"code=5"


def test_what_the_agent_wrote_last_waits_for_a_slow_terminal(machine):
    with Shell(machine) as shell:
        shell.enter("pi sh 'sleep 2; seq 1 3000; echo \"last words\"'")
        wait_until_empty(lambda: not machine.root("pgrep -u pi-agent-alice").stdout)
        wait_until_empty(lambda: machine.root("ps -u pi-agent-alice -o pid=").stdout.strip(), deadline=15)
        shell.expect("3000\r\nlast words\r\n" + PROMPT.decode())
        assert b"".join(b"%d\r\n" % number for number in range(1, 3001)) in shell.seen


def test_typed_ahead_input_waits_for_the_agent(machine):
    with Shell(machine) as shell:
        shell.enter("pi sh 'read x; read y; echo got $x $y'")
        shell.type("one\ntwo\n")
        shell.expect("got one two\r\n", seconds=20)


def test_every_code_arrives_on_a_terminal_too(machine):
    with Shell(machine) as shell:
        for code in range(256) if FULL else (0, 1, 42, 77, 130, 255):
            assert shell.run(f"pi sh 'exit {code}'")[1] == code


DEADLY = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT XCPU XFSZ VTALRM PROF IO PWR SYS".split()


def test_deaths_by_signal_arrive_on_a_terminal_too_and_leave_no_core(machine):
    machine.root("sysctl -qw kernel.core_pattern=core")
    with Shell(machine) as shell:
        shell.run("ulimit -c unlimited")
        for name in DEADLY if FULL else DEADLY[::4]:
            number = getattr(signal, f"SIG{name}")
            shell.enter(f"pi die {number}")  # bash leaves a list whose command died of INT
            shell.expect(re.escape(PROMPT))
            assert shell.run("echo code=$?")[0].strip() == b"code=%d" % (128 + number), name
        assert b"core" not in shell.run("ls -A")[0]


def test_a_debugger_is_not_opened_and_the_wrapper_survives_its_signal(machine):
    with Shell(machine) as shell:
        shell.enter("pi sh 'trap \"echo USR1\" USR1; echo here; read x; echo got $x'")
        shell.expect("here\r\n")
        machine.root("pkill -USR1 -x pi -u alice", check=True)
        assert shell.read(0.5) == b""
        shell.type("on\n")
        shell.expect("got on\r\n")


def test_keys_typed_before_the_agent_is_there_stop_or_end_it(machine):
    with Shell(machine) as shell:
        jobs = shell.run("echo $$")[0].strip().decode()  # the shell's own: what the first start made may end after the prompt is there
        shell.enter("pi sh 'sleep 1000'")
        machine.root(f"until pkill -INT -x pi -P {jobs}; do :; done", check=True)
        shell.expect(re.escape(PROMPT))
        assert shell.run("echo code=$?")[0].strip() == b"code=130"
        shell.enter("pi ticks")
        machine.root(f"until pkill -TSTP -x pi -P {jobs}; do :; done", check=True)
        shell.expect("Stopped.*" + re.escape(PROMPT.decode()))
        shell.type("fg\n")
        shell.expect("tick 5\\.")
        shell.type(b"\x03")
        shell.expect(re.escape(PROMPT))


def test_the_last_output_is_not_lost(machine):
    with Shell(machine) as shell:
        for count in range(20):
            assert f"last {count}\r\n".encode() in shell.run(f"pi sh 'seq 1000; printf \"last %s\\n\" {count}'")[0]

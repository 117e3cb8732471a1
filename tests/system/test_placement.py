"""Sessions on nodes of a Slurm cluster, asked for on a login node: nothing else changes for who types pi."""

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import time

import pytest
from launching import DEMO, PLAYING_POLICY, STANDARD_POLICY, WRAPPER_KILL, assert_refused, finish, pi, session, wait_until_empty, written_policy
from recipes import MACHINES
from rendered import slurm
from shells import PROMPT, Shell, stop_and_continue
from test_full_screen import Screen

PLACEMENT = "placement: {engine: slurm}\n"
PLACED = PLAYING_POLICY + PLACEMENT
JOBS = "squeue --noheader --format='%j %u %T'"
# The wrappers that Slurm started.
NODE_SIDE = "steps=$(pgrep -d, -x slurmstepd) && pgrep -x pi -P $steps"
UNAVAILABLE, FAILED = 69, 71


@pytest.fixture(scope="module")
def cluster(machine, machine_name, playing):
    """The machine as a login node and, by the daemons of Slurm's on it, as the two nodes of its cluster."""
    if MACHINES[machine_name].systemd < 257:
        pytest.skip("Debian 12 has a Slurm that wants munge")
    with machine.engines(), slurm(machine):
        yield machine


@pytest.fixture
def placed(cluster):
    with written_policy(cluster, PLACED):
        yield cluster
        wait_until_empty(lambda: cluster.root(JOBS).stdout, deadline=20)


@contextlib.contextmanager
def no_free_node(machine):
    machine.root("scontrol update nodename=one,two state=drain reason=test", check=True)
    try:
        yield
    finally:
        machine.root("scontrol update nodename=one,two state=resume", check=True)


def wait_for(look, deadline=20):
    until = time.monotonic() + deadline
    while not (found := look()):
        assert time.monotonic() < until, f"not there after {deadline} s"
        time.sleep(0.1)
    return found


def test_a_session_is_a_job_and_works_as_on_this_host(placed):
    with session(placed, "sh", "echo ready; read line; echo got $line; pwd; id -un") as running:
        assert placed.root(JOBS, check=True).stdout == b"pi alice RUNNING\n"
        assert placed.root(NODE_SIDE).stdout.count(b"\n") == 1
        running.stdin.write(b"words\n")
        running.stdin.flush()
        status, out, err = finish(running)
    assert (status, out, err) == (0, f"got words\n{DEMO}\npi-agent-alice\n".encode(), b"")


@pytest.mark.parametrize("status", [0, 1, 42, 255])
def test_the_agents_exit_status_is_pis(placed, status):
    assert pi(placed, "sh", f"exit {status}").returncode == status


def test_the_agents_signal_is_pis(placed):
    assert pi(placed, "sh", "kill -TERM $$").returncode == -signal.SIGTERM


def test_each_stream_is_its_own_and_every_byte_arrives(placed):
    data = os.urandom(3 << 20) + b"\n\r\n\0" * 1000
    done = pi(placed, "sh", "cat; echo here >&2; echo there", input=data)
    assert (done.returncode, len(done.stdout), done.stderr) == (0, len(data) + 6, b"here\n")
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data + b"there\n").digest()
    done = pi(placed, "sh", "cat >&2", input=data)
    assert (done.returncode, done.stdout, hashlib.sha256(done.stderr).digest()) == (0, b"", hashlib.sha256(data).digest())


def test_a_file_is_read_from_where_it_stands_and_written_on(placed):
    script = f"cd {DEMO}; printf 'one\\ntwo\\n' >lines; {{ read first; pi sh 'cat; echo more'; }} <lines >>lines-out; cat lines-out; rm lines lines-out"
    assert placed.run(["bash", "-c", script], check=True).stdout == b"two\nmore\n"


def test_a_reader_that_goes_away_ends_the_agent_as_in_any_pipeline(placed):
    for _ in range(8):  # with much on the way in both directions when it ends
        done = placed.run(["bash", "-c", f"cd {DEMO}; pi sh 'exec yes' | head -n 2; echo ${{PIPESTATUS[0]}}"], timeout=60)
        assert done.stdout == f"y\ny\n{128 + signal.SIGPIPE}\n".encode(), done.stderr.decode()


def test_a_slow_reader_of_one_stream_holds_up_no_other(placed):
    """Output for which there is no reader yet, more than any buffer, does not keep errors and signals."""
    script = "echo ready >&2; head -c 8000000 /dev/zero & sleep 1; echo still >&2; wait; echo written >&2"
    process = placed.popen(["pi", "sh", script], cwd=DEMO)
    assert process.stderr.readline() == b"ready\n" and process.stderr.readline() == b"still\n"
    out, err = process.communicate(timeout=60)
    assert (len(out), err, process.returncode) == (8000000, b"written\n", 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2])
def test_signals_reach_the_agent(placed, number):
    with session(placed, "signals") as running:
        placed.root(f"kill -{number.value} $(pgrep -u alice -x pi -o)", check=True)  # the wrapper that was typed
        assert running.stdout.readline() == signal.Signals(number).name.encode() + b"\n"
        assert finish(running)[0] == 0


def test_the_terminal_is_the_agents_with_its_size_and_settings(placed):
    with Shell(placed, rows=33, columns=101) as shell:
        assert shell.run("stty erase ^H -ixon")[1] == 0
        shell.enter("pi sh 'tty; stty size; stty -a; echo asks; read x; echo got $x; exit 3'")
        said = shell.expect(r"(.*)asks\r\n").group(1)
        shell.type("words\n")
        shell.expect("got words\r\n.*" + re.escape(PROMPT.decode()))
        assert shell.run("echo code=$?")[0] == b"code=3\r\n"
    assert b"33 101\r\n" in said and b"/dev/pts/0\r\n" in said
    assert b"erase = ^H" in said and b"-ixon" in said


def test_a_full_screen_agent_is_stopped_continued_and_resized(placed):
    with Shell(placed) as shell:
        stop_and_continue(shell, 5)


def test_a_window_that_changes_its_size(placed):
    with Shell(placed, rows=24, columns=80) as shell:
        shell.enter("""pi sh 'trap "stty size; exit 0" WINCH; echo here; while true; do sleep 0.1; done'""")
        shell.expect("here\r\n")
        shell.resize(40, 132)
        shell.expect("40 132\r\n.*" + re.escape(PROMPT.decode()))


def test_a_job_in_the_background_that_reads_waits_for_the_foreground(placed):
    with Shell(placed) as shell:
        shell.type("pi sh 'echo as''ks; read x; echo got $x' &\n")
        shell.expect("asks\r\n")
        wait_for(lambda: b"Stopped" in shell.run("jobs")[0])
        shell.enter("fg")
        shell.type("words\n")
        shell.expect("got words\r\n.*" + re.escape(PROMPT.decode()))


def test_an_interrupt_from_the_keyboard_ends_the_agent(placed):
    with Shell(placed) as shell:
        shell.enter("pi sh 'echo here; sleep 1000'")
        shell.expect("here\r\n")
        shell.type(b"\x03")
        shell.expect(re.escape(PROMPT))
        assert shell.run("echo code=$?")[0] == b"code=130\r\n"


def test_a_wait_in_the_queue_is_shown_stopped_and_given_up(placed):
    with no_free_node(placed), Shell(placed) as shell:
        shell.enter("pi sh 'echo here'")
        shell.expect("waiting for a node of the cluster")
        shell.type(b"\x1a")
        shell.expect("Stopped.*" + re.escape(PROMPT.decode()))
        assert placed.root(JOBS, check=True).stdout == b"pi alice PENDING\n"
        shell.enter("fg")
        shell.expect("waiting for a node of the cluster")
        shell.type(b"\x03")
        shell.expect(re.escape(PROMPT))
        assert shell.run("echo code=$?")[0] == b"code=130\r\n"
        wait_until_empty(lambda: placed.root(JOBS, check=True).stdout)


def test_a_wait_in_the_queue_ends_in_a_session(placed):
    with no_free_node(placed):
        process = placed.popen(["pi", "sh", "echo here"], cwd=DEMO)
        wait_for(lambda: placed.root(JOBS, check=True).stdout == b"pi alice PENDING\n")
        told = process.stderr.readline()  # after two seconds
    out, err = process.communicate(timeout=60)
    assert told.startswith(b"pi: waiting for a node of the cluster (Ctrl-C gives up): two seconds without progress"), told
    assert (process.returncode, out, err) == (0, b"here\n", b"")


@pytest.mark.parametrize("waits", [True, False], ids=["in the queue", "in a session"])
def test_a_wrapper_that_is_killed_leaves_no_job(placed, waits):
    """`placed` looks at jobs, and everybody's tests at sessions."""
    with no_free_node(placed) if waits else contextlib.nullcontext():
        process = placed.popen(["pi", "sh", "trap '' HUP TERM; echo ready; sleep 1000"], cwd=DEMO)
        wait_for(lambda: placed.root(JOBS, check=True).stdout == b"pi alice %s\n" % (b"PENDING" if waits else b"RUNNING"))
        if not waits:
            assert process.stdout.readline() == b"ready\n"
        placed.root(WRAPPER_KILL + " -o", check=True)
        wait_until_empty(lambda: placed.root(JOBS, check=True).stdout, deadline=20)
        process.communicate(timeout=60)


def test_a_terminal_that_is_closed_ends_the_session(placed):
    with Shell(placed) as shell:
        shell.enter("pi sh 'echo here; sleep 1000'")
        shell.expect("here\r\n")
        os.close(shell.master)
        wait_until_empty(lambda: placed.root(JOBS, check=True).stdout, deadline=20)
        shell.master = os.open("/dev/null", os.O_RDONLY)


def test_a_session_whose_part_on_the_node_is_killed_ends_with_words_about_it(placed):
    with session(placed, "sh", "trap '' HUP TERM; echo ready; sleep 1000") as running:
        placed.root(f"kill -9 $({NODE_SIDE})", check=True)
        status, out, err = finish(running, timeout=60)
    assert (status, out) == (FAILED, b"")
    assert b"pi on the node" in err and b"ended, and the session with it" in err and b"E71-runner" in err, err


def test_a_session_ends_on_the_node_when_nobody_tells_it_that_srun_is_gone(placed):
    """Slurm leaves the job as it is; both sides miss each other's signs of life."""
    with session(placed, "sh", "trap '' HUP TERM; echo ready; sleep 1000") as running:
        placed.root("pkill -9 -x srun", check=True)
        status, _, err = finish(running, timeout=60)
        assert status == FAILED and b"E71-runner" in err, err
        wait_until_empty(lambda: placed.root(NODE_SIDE).stdout, deadline=120)


def test_a_job_that_is_cancelled_ends_the_session(placed):
    """By the signal that Slurm sends to it, or with Slurm's words, whichever comes first."""
    with session(placed, "sh", "echo ready; sleep 1000") as running:
        placed.root("scancel --user alice", check=True)
        status, _, err = finish(running, timeout=60)
    assert status in (FAILED, -signal.SIGTERM), (status, err)


@pytest.mark.parametrize(
    "key, words",
    [
        ("partition: nope", ["nvalid partition name specified"]),
        ("constraint: nope", ["nvalid feature specification"]),
        ("srun: /nowhere/srun", ["/nowhere/srun", "placement.srun"]),
    ],
)
def test_a_cluster_that_gives_no_node_says_why(cluster, key, words):
    with written_policy(cluster, PLACED.replace("slurm}", f"slurm, {key}}}")):
        done = pi(cluster, "sh", "echo here")
    assert_refused(done, UNAVAILABLE, *words)
    assert b"E69-node" in done.stderr, done


def test_what_srun_says_at_the_end_does_nothing_to_the_terminal(cluster):
    """Scripts of the cluster's, and of users, write there."""
    noisy = "/usr/local/bin/noisy-srun"
    cluster.write(noisy, "#!/bin/sh\nsrun \"$@\"\nstatus=$?\nprintf 'over \\033]0;owned\\007 \\\\x41\\n' >&2\nexit $status\n", mode=0o755)
    with written_policy(cluster, PLACED.replace("slurm}", f"slurm, srun: {noisy}}}")):
        done = pi(cluster, "sh", "echo here")
    cluster.root(["rm", noisy], check=True)
    assert done.stdout == b"here\n" and b"over \\x1b]0;owned\\x07 " in done.stderr and b"\x1b" not in done.stderr, done


def test_a_refusal_on_the_node_is_told_here(placed):
    placed.root(["pi-agentctl", "drain", "--message", "at noon"], check=True)
    try:
        assert_refused(pi(placed, "sh", "echo here"), 75, "lets no session start on this host for now", "at noon")
    finally:
        placed.root(["pi-agentctl", "drain", "--off"], check=True)


def test_the_part_on_a_node_is_not_for_people(placed):
    done = placed.run(["pi", "--pi-agent-on-node"], cwd=DEMO, stdin=subprocess.DEVNULL)
    assert_refused(done, 77, "is pi's own option")


def test_what_a_session_leaves_is_told_here(placed):
    done = pi(placed, "sh", "mkdir .husky; echo x >.husky/pre-commit")
    placed.root(["rm", "-r", f"{DEMO}/.husky"], check=True)
    assert done.returncode == 0 and b".husky/pre-commit: git hook" in done.stderr and done.stderr.startswith(b"pi: "), done


def test_inside_of_a_job_pi_starts_where_it_is(placed):
    line = f"srun --quiet --chdir={DEMO} sh -c 'pi sh \"echo here; sleep 1\"'"
    process = placed.popen(["bash", "-c", line])
    jobs = set()
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        jobs.add(placed.root(JOBS, check=True).stdout)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, b"here\n", b"") and not any(job.count(b"\n") > 1 for job in jobs), (out, err, jobs)


def test_a_start_outside_of_jobs_is_refused_whatever_the_wrapper_says(placed):
    """A canary is for this very host, so the wrapper asks for no job."""
    done = placed.run(["pi", "--pi-agent-canary"], cwd=DEMO, env={"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0"})
    assert_refused(done, 77, "your sessions run in jobs of the cluster alone", "srun --pty pi")
    assert b"E77-job" in done.stderr
    assert placed.root(["pi-agentctl", "doctor"], timeout=300).stdout.count(b"probes passed") == 1


def test_a_user_may_be_excepted(cluster):
    policy = PLAYING_POLICY.replace("  alice:\n", "  alice:\n    placement: {engine: none}\n", 1)
    assert policy != PLAYING_POLICY
    with written_policy(cluster, policy + PLACEMENT):
        with session(cluster, "sh", "echo ready; read x") as running:
            assert cluster.root(JOBS, check=True).stdout == b""
            finish(running)
        said = cluster.root("pi-agentctl show --effective --user alice", check=True).stdout.decode()
    assert re.search(r"placement\.engine: none", said), said


@pytest.fixture
def screen(cluster):
    with written_policy(cluster, STANDARD_POLICY + PLACEMENT):
        shown = Screen(cluster, 120, 40)
        yield shown
        cluster.run("tmux kill-server")
        wait_until_empty(lambda: cluster.root(JOBS).stdout, deadline=20)


def test_the_real_agents_full_screen_program(screen):
    screen.line("clear; pi")
    screen.wait_for(r"^─{60,}$", 60)
    screen.wait_for("scripted")
    screen.keys("h", "e", "l", "l", "o")
    screen.wait_for("^hello")
    screen.tmux("resize-window -x 70 -y 20")
    screen.wait_for(r"^─{70}$")
    screen.keys("C-u")
    screen.keys("C-z")
    screen.wait_for(r"Stopped +pi\n(.*\n)*ready>")
    screen.line("fg")
    screen.wait_for(r"^─{70}$")
    screen.keys("C-d")
    screen.wait_for("ready>")
    screen.line("clear; echo code=$?")
    screen.wait_for("^code=0")

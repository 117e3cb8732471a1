"""How a session ends, and what the caller's shell sees of it: statuses, deaths by signal, signals on the way."""

import re
import signal

import pytest
from launching import DEMO, finish, leftovers, pi, read_line, session, wait_until_empty

FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2"]


pytestmark = pytest.mark.usefixtures("playing")


@pytest.mark.parametrize("status", [0, 1, 2, 42, 64, 69, 70, 71, 75, 77, 78, 126, 127, 128, 137, 143, 255])
def test_the_status_of_the_agent_is_the_status_of_pi(machine, status):
    done = pi(machine, "sh", f"exit {status}")
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")


@pytest.mark.parametrize("name", ["TERM", "SEGV", "KILL", "INT", "HUP", "ABRT", "PIPE", "USR1", "RTMIN"])
def test_a_death_by_signal_looks_the_same_to_the_callers_shell(machine, name):
    number = getattr(signal, f"SIG{name}")
    done = pi(machine, "sh", f"kill -{name} $$")
    assert (done.returncode, done.stdout, done.stderr) == (-number, b"", b"")
    done = machine.run(f"ulimit -c unlimited; pi sh 'kill -{name} $$' 2>/dev/null; echo $?", cwd=DEMO)
    assert done.stdout == f"{128 + number}\n".encode()
    assert machine.run("ls -A | grep core", cwd=DEMO).stdout == b""


def signal_to_wrapper(machine, running, name):
    machine.root(["kill", "-s", name.removeprefix("SIG"), str(running.inside_pid())], check=True)


@pytest.mark.parametrize("name", FORWARDED)
def test_a_signal_to_the_wrapper_reaches_the_agent_once(machine, name):
    with session(machine, "signals") as running:
        signal_to_wrapper(machine, running, name)
        assert read_line(running) == name.encode() + b"\n"
        status, out, err = finish(running)
    assert (status, out, err) == (0, b"", b"")


def test_signals_come_in_the_order_in_which_they_were_sent(machine):
    with session(machine, "signals") as running:
        for name in FORWARDED * 2:
            signal_to_wrapper(machine, running, name)
            assert read_line(running) == name.encode() + b"\n"
        assert finish(running) == (0, b"", b"")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_an_agent_that_does_not_care_dies_of_the_signal_and_so_does_pi(machine, name):
    with session(machine, "sh", "echo ready; exec sleep 1000") as running:
        signal_to_wrapper(machine, running, name)
        assert finish(running) == (-getattr(signal, name), b"", b"")


def test_the_status_that_an_agent_chooses_on_a_signal_counts(machine):
    with session(machine, "sh", "trap 'exit 143' TERM; echo ready; while :; do sleep 0.05; done") as running:
        signal_to_wrapper(machine, running, "TERM")
        assert finish(running) == (143, b"", b"")


def test_a_signal_that_the_caller_ignores_stays_ignored(machine):
    running = machine.popen("trap '' HUP INT; exec pi signals", cwd=DEMO)
    assert read_line(running) == b"ready\n"
    for name in ("HUP", "INT", "TERM"):
        signal_to_wrapper(machine, running, name)
    assert read_line(running) == b"SIGTERM\n"
    assert finish(running) == (0, b"", b"")


def test_dispositions_and_masks_of_the_caller_do_not_reach_the_agent(machine):
    script = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGCHLD})
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execvp("pi", ["pi", "sh", "grep -E '^Sig(Blk|Ign)' /proc/self/status"])
"""
    done = machine.run(["python3", "-c", script], cwd=DEMO)
    assert done.stdout.split() == [b"SigBlk:", b"0" * 16, b"SigIgn:", b"0" * 16], done


def test_processes_that_the_agent_leaves_behind_end_with_it(machine):
    done = pi(machine, "sh", "(trap '' TERM HUP; exec setsid sleep 4801) >/dev/null 2>&1 & echo left")
    assert (done.returncode, done.stdout) == (0, b"left\n"), done
    wait_until_empty(lambda: machine.root(["pgrep", "-f", "^sleep 4801"]).stdout)


def test_a_stopped_agent_goes_on_where_no_shell_would_continue_it(machine):
    """As under cron: nobody would ever type fg."""
    assert pi(machine, "sh", "kill -STOP $$; exit 6").returncode == 6
    assert pi(machine, "sh", "kill -TSTP $$; exit 7").returncode == 7


def test_a_stopped_agent_can_still_be_killed(machine):
    with session(machine, "sh", "echo ready; while :; do kill -STOP $$; done") as running:
        signal_to_wrapper(machine, running, "KILL")
        status, _, _ = finish(running)
        assert status == -signal.SIGKILL


def test_the_look_for_leftovers_after_each_test_sees_everything_of_a_session_while_it_runs(machine):
    with session(machine, "sh", "echo ready; cat") as running:
        seen = "\n".join(leftovers(machine))
        finish(running)
    for part in (".service", ".scope", ".slice", "directory ", "mount /run/pi-agent/sessions/", "process of pi-agent-alice", "process /usr/libexec/"):
        assert part in seen, seen


def agents_units(machine):
    """Without the units that will clean up after them, and without what systemd has yet to forget: that it does when it is idle."""
    states = "--state=active,activating,deactivating,reloading"
    units = machine.root(f"systemctl list-units --plain --no-legend {states} 'pi-agent-*.service'", check=True).stdout.splitlines()
    return [unit for unit in units if b"pi-agent-cleanup-" not in unit]


def count_of_sessions(machine):
    """Units in which an agent runs; what cleans up after each is a unit too."""
    units = machine.root("systemctl list-units --plain --no-legend 'pi-agent-*.service'", check=True).stdout.decode()
    return len(re.findall(r"^pi-agent-[0-9a-f]{32}\.service ", units, re.MULTILINE))


def test_two_sessions_of_one_user_run_at_once_and_end_apart(machine):
    script = 'echo ready; cat >/dev/null; echo "$PI_AGENT_SESSION"; touch "by-$1"; exit $1'
    with session(machine, "sh", script, "1") as first, session(machine, "sh", script, "2") as second:
        assert len(agents_units(machine)) == 2
        assert len(machine.root(["ls", "/run/pi-agent/sessions"]).stdout.split()) == 2
        status_of_first, name_of_first, _ = finish(first)
        assert second.poll() is None
        assert len(agents_units(machine)) == 1
        status_of_second, name_of_second, _ = finish(second)
    assert (status_of_first, status_of_second) == (1, 2)
    assert name_of_first != name_of_second and len(name_of_first) == len(name_of_second) == 33
    assert machine.run("rm by-1 by-2", cwd=DEMO).returncode == 0


def test_sessions_of_different_users_run_at_once_as_different_accounts(machine):
    with session(machine, "sh", "echo ready; cat; id -un") as first:
        with session(machine, "sh", "echo ready; cat; id -un", user="carol", cwd="/srv/devs") as second:
            assert finish(second)[:2] == (0, b"pi-agent-carol\n")
        assert finish(first)[:2] == (0, b"pi-agent-alice\n")


def test_six_starts_at_the_same_moment_all_succeed(machine):
    script = "for i in 1 2 3 4 5 6; do pi sh 'echo $PI_AGENT_SESSION' & done; wait"
    done = machine.run(script, cwd=DEMO)
    assert done.stderr == b"" and len(set(done.stdout.split())) == 6, done


def test_a_directory_renamed_during_a_session_is_followed(machine):
    machine.run(["mkdir", f"{DEMO}/early"], check=True)
    with session(machine, "sh", "echo ready; cat; touch made", cwd=f"{DEMO}/early") as running:
        machine.run(["mv", f"{DEMO}/early", f"{DEMO}/late"], check=True)
        assert finish(running) == (0, b"", b"")
    assert machine.run("ls late; rm -r late", cwd=DEMO).stdout == b"made\n"


def kept_of_users(machine):
    """What root keeps in /run for whoever had a session, and systemd: names, with the groups that systemd made."""
    look = "find /run/pi-agent /sys/fs/cgroup -path '*pi-agent*'; systemctl list-units --all --plain --no-legend 'pi-agent-*' | cut -d' ' -f1"
    return set(machine.root(look, check=True).stdout.decode().split())


@pytest.fixture
def dave(machine):
    """An account whose user may start pi as a member of a group."""
    machine.root(["useradd", "--create-home", "--groups", "devs", "dave"], check=True)
    try:
        machine.root(["pi-agentctl", "apply", "--no-canary"], check=True)
        yield "dave"
    finally:
        machine.root("userdel --remove dave; userdel pi-agent-dave; rm -rf /var/lib/pi-agent/users/dave")


def test_nothing_of_a_users_sessions_is_kept_when_the_last_is_over_not_of_one_who_is_gone_either(machine, dave):
    pi(machine, "sh", "true", check=True)
    wait_until_empty(lambda: leftovers(machine))
    before = kept_of_users(machine)
    users = {"alice": DEMO, dave: "/srv/devs"}
    starts = "for i in 1 2 3 4 5 6 7 8; do pi sh 'echo ready; cat' & done; wait"
    for user, cwd in users.items():
        done = machine.run(starts, user=user, cwd=cwd, check=True)
        assert done.stdout == b"ready\n" * 8, done
    with session(machine, "sh", "echo ready; cat") as killed, session(machine, "sh", "echo ready; cat", user=dave, cwd="/srv/devs") as other:
        uids = machine.root(f"id -u alice; id -u {dave}", check=True).stdout.decode().split()
        assert {f"pi-agent-u{uid}.slice" for uid in uids} <= kept_of_users(machine)
        machine.root("pkill -9 -f ^/usr/libexec/pi-agent/pi-agent-runner", check=True)
        for process in (killed, other):
            process.communicate(timeout=20)
    machine.root(["userdel", dave], check=True)
    wait_until_empty(lambda: kept_of_users(machine) - before, 10)


def test_a_start_is_no_failure_while_systemd_is_about_to_stop_the_users_slice(machine):
    """That is a moment after the last session; here it lasts, because something is stopped first."""
    last = "pi-agent-u1000.slice"
    with session(machine, "sh", "echo ready; cat") as running:
        slow = ["--property=PartOf=" + last, "--property=After=" + last, "--property=ExecStop=sleep 5", "sleep", "1000"]
        machine.root(["systemd-run", "--quiet", "--unit=stopped-before-the-slice", *slow], check=True)
        finish(running)
    wait_until_empty(lambda: b"pi-agent-u1000.slice stop waiting" not in b" ".join(machine.root(["systemctl", "list-jobs", "--no-legend"]).stdout.split()))
    refused = machine.root(["systemd-run", "--scope", "--slice=" + last, "true"])
    assert refused.returncode != 0 and b"is destructive" in refused.stderr, f"this systemd refuses no start then, so this shows nothing: {refused}"
    done = pi(machine, "sh", "echo ran")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ran\n", b""), done
    machine.root("systemctl kill --signal=KILL stopped-before-the-slice; systemctl reset-failed stopped-before-the-slice; true")

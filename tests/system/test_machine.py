"""The test machine itself: without what is shown here, the other system tests would show nothing."""

import os
import subprocess

import pytest
from machine import Machine

AGENT = "/usr/lib/pi-agent/agent/bin/pi"
DEMO = "/home/alice/projects/demo"


@pytest.fixture(scope="module")
def plain(machine_name):
    """A machine without the product: nothing between the account and the real agent."""
    with Machine(f"plain-{os.getpid()}", machine_name) as booted:
        booted.create()
        booted.boot()
        yield booted


def test_pid_1_is_a_systemd_without_failed_units(plain):
    assert plain.root(["cat", "/proc/1/comm"]).stdout == b"systemd\n"
    assert plain.root(["systemctl", "list-units", "--failed", "--plain", "--no-legend"]).stdout == b""


def test_a_command_runs_as_a_login_of_its_account_would(plain):
    shown = plain.run("id -un; id -Gn; pwd; echo $HOME $USER $SHELL; umask; ps -o tty= -p $$; grep CapEff /proc/self/status")
    lines = shown.stdout.decode().splitlines()
    assert lines[:5] == ["alice", "alice devs", "/home/alice", "/home/alice alice /bin/bash", "0022"]
    assert lines[5].strip() == "?" and lines[6].split()[1].strip("0") == ""
    assert plain.run("echo said >/dev/stderr").stderr == b"said\n"


def test_a_command_is_in_the_namespaces_and_in_a_control_group_of_the_machine(plain):
    script = "readlink /proc/self/ns/{mnt,pid,net,ipc,uts,user,cgroup}"
    mine = plain.root(script, check=True).stdout
    theirs = plain.root(script.replace("self", "1"), check=True).stdout
    assert mine == theirs
    group = plain.run("grep ^0:: /proc/self/cgroup").stdout.decode()
    assert group.startswith("0::/user.slice/harness-1000/")


def test_homes_are_closed_to_other_accounts(plain):
    assert plain.run(["ls", "/home/alice"], user="eve").returncode != 0
    assert plain.run("touch /srv/devs/x && stat -c %G /srv/devs/x", user="bob").stdout == b"devs\n"


@pytest.mark.parametrize("name", [b"a b", b"-", b"quote'\"s", b"$HOME %n", b"line\nbreak", b"\xff\xfe"])
def test_odd_directory_names_reach_the_command_unchanged(plain, name):
    directory = b"/home/alice/odd/" + name
    plain.run([b"mkdir", b"-p", b"--", directory], check=True)
    assert plain.run("pwd; ls -A", cwd=directory, check=True).stdout == directory + b"\n"


def test_status_signal_and_bytes_come_back_exactly(plain):
    payload = os.urandom(1 << 20)
    assert plain.run(["cat"], input=payload).stdout == payload
    assert plain.run("exit 42").returncode == 42
    assert plain.run("kill -TERM $$").returncode == -15


def test_a_command_that_takes_too_long_leaves_no_process(plain):
    with pytest.raises(subprocess.TimeoutExpired):
        plain.run("setsid sleep 4711 & sleep 4711", timeout=0.5)
    assert plain.root(["pgrep", "-f", "sleep 4711"]).returncode == 1


def test_a_background_command_is_found_by_its_pid_inside(plain):
    process = plain.popen(["sleep", "4712"])
    pid = process.inside_pid()
    assert plain.read(f"/proc/{pid}/cmdline") == b"sleep\x004712\x00"
    process.kill_all()
    assert process.wait() != 0
    assert plain.root(["pgrep", "-f", "sleep 4712"]).returncode == 1


def test_the_real_agent_follows_the_default_script_of_the_model(plain):
    done = plain.run([AGENT, "-p", "hello"], cwd=DEMO, env={"PI_OFFLINE": "1"}, check=True)
    assert b"wrote hello.txt" in done.stdout
    assert plain.read(f"{DEMO}/hello.txt") == b"hello from the agent\n"
    results = [message for message in plain.model_requests()[-1]["messages"] if message["role"] == "tool"]
    assert "alice" in str(results[0]["content"]) and DEMO in str(results[0]["content"])


def test_a_prompt_steers_the_model_and_shows_the_last_result(plain):
    plain.forget_model_requests()
    prompt = 'please {"steps": [{"write": {"path": "n.txt", "content": "6"}}, {"bash": "expr 7 \\\\* $(cat n.txt)"}], "say": "fin"}'
    done = plain.run([AGENT, "-p", prompt], cwd=DEMO, env={"PI_OFFLINE": "1"}, check=True)
    assert done.stdout.decode().split() == ["fin", "42"]
    assert len(plain.model_requests()) == 3
    assert plain.run(["cat", "/run/scripted-model/requests.jsonl"]).returncode != 0


def test_a_machine_ends_with_everything_in_it(machine_name):
    with Machine(f"ends-{os.getpid()}", machine_name) as short:
        short.create(agent=None)
        short.boot()
        process = short.popen("setsid sleep 4713 & exec sleep 4713")
        process.inside_pid()
        pids = short.cgroup.pids()
        assert short.leader in pids
        short.stop()
        process.wait()
        assert not short.cgroup.path.exists()
        assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]

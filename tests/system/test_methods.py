"""One scenario under every sandbox.method that confines: the user notices no difference."""

import json
import re
import time

import pytest
from engine import named_method, under_method
from launching import DEMO, DENIED, KILLS_OF_OURS, PLAYING_POLICY, STANDARD_POLICY, WRAPPER_KILL, assert_refused, leftovers, messages, owner_and_mode, pi, session, wait_until_empty
from shells import PROMPT, Shell

METHODS = ("systemd", "bwrap", "podman", "docker")
METHOD = "sandbox: {}\n"


@pytest.fixture(scope="module", params=METHODS)
def method(request, playing):
    with under_method(playing, request.param, PLAYING_POLICY):
        yield request.param


@pytest.fixture
def with_method(playing, method):
    """with_method(text): another policy for one test, under the same method."""

    def install(text):
        playing.install_policy(PLAYING_POLICY + METHOD.format(named_method(method)) + text)

    yield install
    playing.install_policy(PLAYING_POLICY + METHOD.format(named_method(method)))


def shell(machine, script, **options):
    return pi(machine, "sh", script, **options)


def test_what_the_agent_makes_is_the_users(playing, method):
    try:
        done = shell(playing, "id -un; mkdir made; echo text >made/file; cat README.md; pwd")
        assert (done.returncode, done.stderr) == (0, b""), done
        assert done.stdout.decode().splitlines() == ["pi-agent-alice", "# demo", DEMO], done
        assert owner_and_mode(playing, f"{DEMO}/made/file").startswith("alice:alice ")
    finally:
        playing.root(["rm", "-rf", f"{DEMO}/made"], check=True)


def test_a_root_granted_by_a_group(playing, method):
    done = shell(playing, "touch made", user="carol", cwd="/srv/devs")
    try:
        assert (done.returncode, done.stderr) == (0, b""), done
        assert owner_and_mode(playing, "/srv/devs/made").split()[0] == "carol:devs"
    finally:
        playing.root(["rm", "-f", "/srv/devs/made"], check=True)


@pytest.mark.parametrize("place", ["/", "/etc", "/usr/bin", "/home", "/home/alice", "/var/lib", "/run", "/dev", "/sys", "/proc/sys/kernel"])
def test_nothing_else_can_be_written(playing, method, place):
    done = shell(playing, f"echo x >{place}/made-by-the-agent")
    assert done.returncode != 0 and done.stdout == b"", done
    assert playing.root(["test", "-e", f"{place}/made-by-the-agent"]).returncode == 1


@pytest.mark.parametrize("code", [0, 1, 77, 255])
def test_the_exit_status_is_the_agents(playing, method, code):
    assert shell(playing, f"exit {code}").returncode == code


@pytest.mark.parametrize(("name", "number"), [("TERM", 15), ("KILL", 9), ("INT", 2), ("USR1", 10)])
def test_a_death_by_a_signal_is_told_as_one(playing, method, name, number):
    assert shell(playing, f"kill -{name} $$").returncode == -number


def test_streams_stay_apart_and_input_arrives(playing, method):
    done = shell(playing, "cat; echo error >&2", input=b"through\0bytes\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"through\0bytes\n", b"error\n"), done


def test_a_terminal_is_one_inside_and_the_agent_stops_with_pi(playing, method):
    """As a user of a shell sees it who types ^Z and fg."""
    with Shell(playing) as shell:
        shell.enter("pi sh 'tty; stty size; echo here; read line; echo got $line; exit 7'")
        shell.expect(r"/dev/pts/0\r\n24 80\r\nhere")
        playing.root("kill -TSTP $(pgrep -x pi -u alice)", check=True)
        shell.expect("Stopped.*" + re.escape(PROMPT.decode()))
        shell.enter("fg")
        shell.type("words\n")
        shell.expect("got words.*" + re.escape(PROMPT.decode()))
        assert shell.run("echo code=$?")[0] == b"code=7\r\n"


def test_a_denial_is_the_same(playing, method):
    assert_refused(pi(playing, cwd="/home/alice"), DENIED, "/home/alice")
    assert_refused(pi(playing, user="eve", cwd="/tmp"), DENIED, "eve")


def test_temporary_files_end_with_the_session(playing, method):
    done = shell(playing, 'touch "$TMPDIR/one" /tmp/two /var/tmp/three; ls "$TMPDIR"; echo "$TMPDIR"')
    assert done.stdout == b"one\ntwo\n/tmp\n", done
    wait_until_empty(lambda: leftovers(playing))
    assert playing.root("ls /tmp/one /tmp/two /var/tmp/three 2>&1 | grep -c 'No such file'").stdout == b"3\n"


KILLS = {"wrapper": WRAPPER_KILL, **KILLS_OF_OURS}


@pytest.mark.parametrize("victim", KILLS)
def test_whoever_is_killed_nothing_stays(playing, method, victim):
    with session(playing, "sh", "echo ready; trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; sleep 300' & sleep 300") as running:
        playing.root(KILLS[victim], check=True)
        running.wait()
    wait_until_empty(lambda: [line for line in leftovers(playing) if not line.startswith("pi-agent-run-")])
    assert playing.root(["pgrep", "-u", "pi-agent-alice"]).returncode == 1


def test_two_sessions_of_one_user_do_not_meet(playing, method):
    with session(playing, "sh", "echo ready; sleep 60"):
        done = shell(playing, "ls /proc | grep -c '^[0-9]'; pgrep -c sleep; kill -9 -1; true")
        processes, sleeping = done.stdout.decode().split()[:2]
        assert sleeping == "0", done
        assert int(processes) < 12, done
        time.sleep(0.1)
        assert playing.root(["pgrep", "-u", "pi-agent-alice", "sleep"]).returncode == 0, "the other session's process was killed"


def test_no_network_is_none(playing, method, with_method):
    with_method("network: none\n")
    done = shell(playing, "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '")
    assert (done.returncode, done.stdout) == (0, b"lo\n"), done


def test_the_hosts_view(playing, method, with_method):
    with_method("view: host\n")
    done = shell(playing, "echo $(cat /etc/hostname); ls -d /etc/systemd")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert done.stdout.split() == [playing.root(["hostname"], check=True).stdout.strip(), b"/etc/systemd"], done


def test_the_canary_finds_nothing(playing, method):
    done = playing.root(["pi-agentctl", "doctor", "--json"])
    report = json.loads(done.stdout)
    assert (done.returncode, report["faults"], report["good"]) == (0, [], True), report
    sandbox = report["sandbox"]
    assert (sandbox["method"], sandbox["user"], sandbox["wrong"]) == (method, "alice", []) and len(sandbox["answers"]) > 80, sandbox
    assert owner_and_mode(playing, DEMO).startswith("alice:")


def test_a_method_is_never_chosen_by_the_environment(playing, method):
    done = playing.run(["env", "SANDBOX_METHOD=none", "pi", "sh", "grep -c . /proc/self/mountinfo; readlink /proc/self/ns/mnt"], user="alice", cwd=DEMO)
    host = playing.root(["readlink", "/proc/1/ns/mnt"], check=True).stdout.decode().strip()
    assert done.returncode == 0 and host not in done.stdout.decode(), done


def test_debug_output_names_the_method(playing, method):
    said = messages(pi(playing, "--pi-agent-debug", "sh", "true"))
    assert f"pi: sandbox.method: {method}" in said, said


def test_another_name_is_no_method(playing):
    playing.write("/etc/pi-agent/policy.yaml", STANDARD_POLICY + "sandbox: {method: noop}\n")
    try:
        refused, checked = pi(playing), playing.root(["pi-agentctl", "check"])
    finally:
        playing.install_policy(PLAYING_POLICY)
    assert refused.returncode == 78 and "so nobody can start pi" in messages(refused)[0], refused
    assert checked.returncode == 78 and b"did you mean 'none'?" in checked.stderr, checked

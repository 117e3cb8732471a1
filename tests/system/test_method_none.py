"""sandbox.method none: a session that is not sandboxed, and says so. Its account, its view, its limits and its end are those of every session."""

import contextlib
import json

import pytest
from launching import DEMO, KILLS_OF_OURS, PLAYING_POLICY, STATE, WRAPPER_KILL, leftovers, messages, owner_and_mode, pi, session, wait_until_empty

METHOD = "sandbox:\n  method: none\n"
BANNER = "NOT SANDBOXED: the policy says sandbox.method: none (/etc/pi-agent/policy.yaml:"


@pytest.fixture(scope="module")
def unconfined(playing):
    playing.install_policy(PLAYING_POLICY + METHOD)
    yield playing
    playing.install_policy(PLAYING_POLICY)


@contextlib.contextmanager
def policy_of(machine, text):
    """Another policy meanwhile."""
    machine.install_policy(PLAYING_POLICY + text)
    try:
        yield
    finally:
        machine.install_policy(PLAYING_POLICY + METHOD)


def shell(machine, script, **options):
    return pi(machine, "sh", script, **options)


def test_every_start_says_that_there_is_no_sandbox(unconfined):
    for _ in range(2):
        done = shell(unconfined, "echo out")
        assert (done.returncode, done.stdout) == (0, b"out\n"), done
        banner = [line for line in messages(done) if BANNER in line]
        assert len(banner) == 1 and "runs as pi-agent-alice" in banner[0], done


def test_the_banner_is_of_this_method_alone(playing):
    with policy_of(playing, ""):
        done = shell(playing, "true")
    assert (done.returncode, done.stderr) == (0, b""), done


def test_account_and_ownership_are_those_of_every_session(unconfined):
    try:
        done = shell(unconfined, 'id -un; mkdir made; echo text >made/file; pwd; echo "$HOME"')
        assert done.stdout.decode().splitlines() == ["pi-agent-alice", DEMO, f"{STATE}/alice/home"], done
        assert owner_and_mode(unconfined, f"{DEMO}/made/file").startswith("alice:alice ")
    finally:
        unconfined.root(["rm", "-rf", f"{DEMO}/made"], check=True)


@pytest.mark.parametrize("place", ["/", "/etc", "/usr/bin", "/home", "/home/alice", "/var/lib", "/run", "/dev", "/sys", "/proc/sys/kernel"])
def test_the_account_may_write_nothing_else(unconfined, place):
    done = shell(unconfined, f"echo x >{place}/made-by-the-agent")
    assert done.returncode != 0 and done.stdout == b"", done
    assert unconfined.root(["test", "-e", f"{place}/made-by-the-agent"]).returncode == 1


# Each is refused under the method systemd and done here: the banner tells the truth.
@pytest.mark.parametrize(
    ("script", "answer"),
    [("cat /proc/1/comm", b"systemd\n"), ("unshare --user --map-root-user id -u", b"0\n"), ("readlink /proc/self/ns/ipc /proc/self/ns/uts", None)],
)
def test_what_a_sandbox_refuses_is_done(unconfined, script, answer):
    expected = answer or unconfined.root(["readlink", "/proc/1/ns/ipc", "/proc/1/ns/uts"], check=True).stdout
    done = shell(unconfined, script)
    assert (done.returncode, done.stdout) == (0, expected), done
    with policy_of(unconfined, ""):
        confined = shell(unconfined, script)
    assert confined.stdout != expected, confined


def test_a_setuid_file_of_the_users_is_still_refused(unconfined):
    done = shell(unconfined, "touch made; chmod u+s made; stat -c %a made; rm made")
    assert b"4" not in done.stdout.strip()[:1] and b"chmod" in done.stderr, done


def test_no_capability_and_no_way_to_another_account(unconfined):
    done = shell(unconfined, "grep -E '^(Cap|NoNew)' /proc/self/status | cut -f2 | sort -u; cat /etc/shadow; cat /root/.bashrc /home/alice/.bashrc")
    assert done.stdout.decode().split() == ["0" * 16, "1"], done


KILLS = {"agent": "pkill -9 -o -u pi-agent-alice -x bash", "wrapper": WRAPPER_KILL, **KILLS_OF_OURS}


@pytest.mark.parametrize("victim", KILLS)
def test_whoever_is_killed_nothing_stays(unconfined, victim):
    with session(unconfined, "sh", "echo ready; trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; sleep 300' & sleep 300") as running:
        unconfined.root(KILLS[victim], check=True)
        running.wait()
    wait_until_empty(lambda: [line for line in leftovers(unconfined) if not line.startswith("pi-agent-run-")])
    assert unconfined.root(["pgrep", "-u", "pi-agent-alice"]).returncode == 1


def test_a_network_that_the_policy_restricts_is_restricted(unconfined):
    with policy_of(unconfined, METHOD + "network: none\n"):
        done = shell(unconfined, "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '")
    assert (done.returncode, done.stdout) == (0, b"lo\n"), done


def test_doctor_asks_for_what_is_left(unconfined):
    # As the host's udev makes it: an agent that is not confined may open it.
    unconfined.root("rm -f /dev/fuse; mknod -m 0666 /dev/fuse c 10 229", check=True)
    done = unconfined.root(["pi-agentctl", "doctor", "--json"])
    report = json.loads(done.stdout)
    sandbox = report["sandbox"]
    assert (done.returncode, sandbox["method"], sandbox["wrong"]) == (69, "none", []), done
    assert [fault["about"] for fault in report["faults"]] == ["no-sandbox"], report["faults"]
    assert 40 < len(sandbox["answers"]) < 90, sandbox


def test_the_agent_is_told(unconfined):
    done = shell(unconfined, "cat /AGENTS.md")
    assert b"There is no sandbox around your processes" in done.stdout and b"other users' processes" not in done.stdout, done


def test_explain_and_the_record_name_it(unconfined):
    done = unconfined.root(["pi-agentctl", "explain", "--user", "alice", "--cwd", DEMO])
    assert b"NOT SANDBOXED" in done.stdout and b"sandbox:  none (/etc/pi-agent/policy.yaml:" in done.stdout, done
    shell(unconfined, "true")
    entry = unconfined.root("journalctl -o json --since=-60s SANDBOX_SELECT=none PI_AGENT_USER=alice | tail -1", check=True).stdout
    assert json.loads(entry)["SANDBOX_SELECT"] == "none"


def test_check_and_apply_warn(unconfined):
    for command in (["check"], ["apply", "--no-canary"]):
        done = unconfined.root(["pi-agentctl", *command])
        assert done.returncode == 0 and b"sandbox.method: is 'none', so sessions are not sandboxed" in done.stderr, done
    warnings = json.loads(unconfined.root(["pi-agentctl", "check", "--json"], check=True).stdout)["warnings"]
    assert any(warning["key"] == "sandbox.method" and warning["line"] for warning in warnings), warnings
    text = unconfined.root(["pi-agentctl", "doctor"])
    assert text.returncode == 69 and b"no-sandbox: " in text.stderr and b"no way around" not in text.stdout, text

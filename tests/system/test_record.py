"""The record: each refusal, start and end is in the journal once, with who, where and how; on a host without a journal it is in a file."""

import contextlib
import json

import pytest
from launching import (
    DEMO, DENIED, PLAYING_POLICY, POLICY_FILE, assert_refused, finish, leftovers, messages, pi, session, wait_until_empty, written_policy,
)  # fmt: skip
from record_check import FILE, IDS, findings, read_entries

pytestmark = pytest.mark.usefixtures("playing")

JOURNAL = "/run/systemd/journal/socket"
WORK = "python3 -c 'import time\nwhile time.process_time() < 0.5: pass'"
RUNNER = "pkill -9 -f ^/usr/libexec/pi-agent/pi-agent-runner"
CLEANUP = "/usr/libexec/pi-agent/pi-agent-cleanup"


class Since:
    """The entries that a test brought about."""

    def __init__(self, machine):
        self.machine = machine
        self.before = len(read_entries(machine))

    def entries(self):
        return read_entries(self.machine)[self.before :]

    def one(self, event):
        (entry,) = [entry for entry in self.entries() if entry["PI_AGENT_EVENT"] == event]
        return entry

    def events(self):
        return [entry["PI_AGENT_EVENT"] for entry in self.entries()]


QUIET = ("--property=StandardOutput=null", "--property=StandardError=null")


@pytest.fixture
def since(machine):
    return Since(machine)


def next_second(machine):
    """For --since, which counts in seconds: what was recorded until now began before."""
    return machine.root("sleep 1; date +@%s", check=True).stdout.decode().strip()


@contextlib.contextmanager
def without_journal(machine):
    machine.root(["mv", JOURNAL, f"{JOURNAL}-away"], check=True)
    try:
        yield
    finally:
        machine.root(["mv", f"{JOURNAL}-away", JOURNAL], check=True)


@contextlib.contextmanager
def without_file(machine):
    """What stands where the directory of the file belongs is in the way."""
    machine.root("rm -rf /var/log/pi-agent-kept; mv /var/log/pi-agent /var/log/pi-agent-kept; touch /var/log/pi-agent")
    try:
        yield
    finally:
        machine.root("rm /var/log/pi-agent; mv /var/log/pi-agent-kept /var/log/pi-agent; true", check=True)


def test_a_session_is_recorded_with_who_where_and_how_and_not_with_what_was_said(machine, since):
    assert pi(machine, "sh", "exit 3 # a secret prompt", env={"TERM": "secret-value"}).returncode == 3
    started, ended = since.entries()
    name = started["PI_AGENT_SESSION"]
    for entry, event in ((started, "started"), (ended, "ended")):
        assert entry["MESSAGE_ID"] == IDS[event] and entry["_UID"] == "0"
        expected = {
            "PI_AGENT_USER": "alice", "PI_AGENT_UID": "1000", "PI_AGENT_ACCOUNT": "pi-agent-alice", "PI_AGENT_SESSION": name,
            "PI_AGENT_PROJECT": "/home/alice/projects", "SANDBOX_SELECT": "systemd", "PI_AGENT_UNIT": f"pi-agent-{name}.service",
            "PI_AGENT_PROGRAM": "agent",
        }  # fmt: skip
        assert {key: entry[key] for key in expected} == expected
        assert "secret" not in json.dumps(entry)
    assert ended["PI_AGENT_EXIT_CODE"] == "3" and "PI_AGENT_REASON" not in ended
    assert 0 < int(ended["PI_AGENT_DURATION_USEC"]) < 30_000_000


def test_what_the_processors_worked_is_in_the_record(machine, since):
    assert pi(machine, "sh", WORK).returncode == 0
    ended = since.one("ended")
    assert 400_000 < int(ended["PI_AGENT_CPU_USEC"]) < 5_000_000, ended
    assert int(ended["PI_AGENT_DURATION_USEC"]) >= 500_000
    if machine.root(["test", "-e", "/sys/fs/cgroup/pi.slice/memory.peak"]).returncode == 0:
        assert int(ended["PI_AGENT_MEMORY_PEAK"]) > 1_000_000


def test_also_where_the_agent_was_killed_with_its_launcher(machine, since):
    """Nobody inside says that it ends; systemd still knows what it used."""
    with session(machine, "sh", f"{WORK}; echo ready; sleep 1000") as running:
        machine.root("pkill -9 -x pi-agent-exec", check=True)
        finish(running)
    ended = since.one("ended")
    assert ended["PI_AGENT_EXIT_SIGNAL"] == "9" and 400_000 < int(ended["PI_AGENT_CPU_USEC"]) < 5_000_000, ended


def test_a_shell_in_the_agents_place_is_recorded_as_one(machine, since):
    assert machine.run(["pi", "--pi-agent-shell", "-c", "true"], cwd=DEMO).returncode == 0
    assert [entry["PI_AGENT_PROGRAM"] for entry in since.entries()] == ["shell", "shell"]


def test_a_session_whose_runner_was_killed_has_one_end(machine, since):
    with session(machine, "sh", "echo ready; sleep 1000") as running:
        machine.root(RUNNER, check=True)
        finish(running)
        wait_until_empty(lambda: leftovers(machine))
    assert since.events() == ["started", "ended"]
    ended = since.one("ended")
    assert "PI_AGENT_EXIT_CODE" not in ended and "did not record how: it was killed" in ended["PI_AGENT_REASON"], ended


def test_so_it_has_where_the_cleanup_does_not_come_either_and_the_next_start_sweeps(machine, since):
    machine.root(["mv", CLEANUP, f"{CLEANUP}-away"], check=True)
    try:
        with session(machine, "sh", "echo ready; sleep 1000") as running:
            machine.root(RUNNER, check=True)
            finish(running)
            wait_until_empty(lambda: [line for line in leftovers(machine) if not line.startswith(("directory", "temporary", "mount"))])
        assert since.events() == ["started"]
    finally:
        machine.root(["mv", f"{CLEANUP}-away", CLEANUP], check=True)
    assert pi(machine, "sh", "true").returncode == 0
    assert sorted(event for event in since.events() if event != "problem") == ["ended"] * 2 + ["started"] * 2, since.entries()
    assert findings(machine) == []


def test_a_refusal_of_the_wrapper_is_recorded_once_and_says_whose_word_it_is(machine, since):
    assert_refused(pi(machine, "sh", "echo ran", cwd="/home/alice"), DENIED, "denied: ")
    (entry,) = since.entries()
    assert (entry["PI_AGENT_EVENT"], entry["_UID"], entry["SYSLOG_IDENTIFIER"]) == ("denied", "1000", "pi")
    assert entry["PI_AGENT_CODE"] == "E77-root"
    assert entry["PI_AGENT_STATUS"] == "77" and entry["PI_AGENT_REASON"].startswith("denied: /home/alice is outside")


def test_a_refusal_of_the_runner_is_recorded_once_and_by_root(machine, since):
    """One session too many: only the runner counts them."""
    with written_policy(machine, PLAYING_POLICY + "limits: {sessions: 1}\n"), session(machine, "sh", "echo ready; cat"):
        assert_refused(pi(machine, "sh", "echo ran"), 75, "limit: alice has 1 ")
    (entry,) = [one for one in since.entries() if one["PI_AGENT_EVENT"] == "denied"]
    assert (entry["PI_AGENT_EVENT"], entry["_UID"], entry["SYSLOG_IDENTIFIER"]) == ("denied", "0", "pi-agent-runner")
    assert len(entry["PI_AGENT_SESSION"]) == 32 and entry["SANDBOX_SELECT"] == "systemd"


def test_a_runner_that_is_called_in_another_way_records_that(machine, since):
    done = machine.run("sudo -n /usr/libexec/pi-agent/pi-agent-runner </dev/null")
    assert done.returncode == DENIED, done
    (entry,) = since.entries()
    assert (entry["PI_AGENT_EVENT"], entry["_UID"], entry["PI_AGENT_UID"]) == ("denied", "0", "1000"), entry


def test_whoever_sudo_refuses_is_recorded_by_the_wrapper(machine, since):
    machine.root(["mv", "/etc/sudoers.d/pi-agent", "/root/rule"], check=True)
    try:
        assert_refused(pi(machine, "sh", "echo ran"), DENIED, "sudo did not run the runner")
    finally:
        machine.root(["mv", "/root/rule", "/etc/sudoers.d/pi-agent"], check=True)
    (entry,) = since.entries()
    assert (entry["PI_AGENT_EVENT"], entry["_UID"]) == ("denied", "1000")


def test_without_a_journal_a_file_of_roots_has_it_all(machine, since):
    with without_journal(machine):
        assert pi(machine, "sh", "exit 4").returncode == 4
        with session(machine, "sh", "echo ready; sleep 1000") as running:
            machine.root(RUNNER, check=True)
            finish(running)
            wait_until_empty(lambda: leftovers(machine))
    modes = machine.root(["stat", "--format=%U %a", "/var/log/pi-agent", FILE], check=True).stdout.decode().split()
    assert modes == ["root", "700", "root", "600"]
    lines = [json.loads(line) for line in machine.read(FILE).splitlines()]
    assert [line["PI_AGENT_EVENT"] for line in lines[-4:]] == ["started", "ended", "started", "ended"]
    assert lines[-3]["PI_AGENT_EXIT_CODE"] == "4" and "did not record how" in lines[-1]["PI_AGENT_REASON"]
    assert since.events() == ["started", "ended"] * 2 and findings(machine) == []


def test_who_holds_the_file_keeps_nobody_from_starting(machine, since):
    """A user can stop a process of root's in the middle of recording; what it holds then must not be a lock that others need."""
    with without_journal(machine):
        assert pi(machine, "sh", "true").returncode == 0
        machine.root(["systemd-run", "--quiet", "--unit=holder", *QUIET, "flock", FILE, "sleep", "60"], check=True)
        machine.root(["sleep", "0.5"])
        done = pi(machine, "sh", "echo ran")
        machine.root(["systemctl", "stop", "holder"], check=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ran\n", b""), done


def test_where_nothing_can_be_recorded_nothing_starts(machine, since):
    with without_journal(machine), without_file(machine):
        done = pi(machine, "sh", "echo ran")
        wait_until_empty(lambda: leftovers(machine))
    assert_refused(done, 71, "the session cannot be recorded", "systemd-journald", "/var/log/pi-agent")
    assert len(messages(done)) == 2, done  # not once more that the refusal is not recorded
    assert since.events() == []


def test_an_end_that_cannot_be_recorded_is_told_and_recorded_by_the_next_start(machine, since):
    with session(machine, "sh", "echo ready; cat") as running, without_journal(machine), without_file(machine):
        status, _, said = finish(running)
        # Not while the cleanup tries, too: what it makes would be in the way of what comes back.
        wait_until_empty(lambda: [line for line in leftovers(machine) if line.startswith(("pi-agent", "process"))])
    assert status == 0 and b"pi: the end of this session is not recorded: the session cannot be recorded" in said, said
    assert since.events() == ["started"]
    assert pi(machine, "sh", "true").returncode == 0
    wait_until_empty(lambda: leftovers(machine))
    assert [event for event in since.events() if event != "problem"].count("ended") == 2 and findings(machine) == []


def history(machine, *arguments):
    done = machine.root(["pi-agentctl", "history", "--json", *arguments], check=True)
    return json.loads(done.stdout)["starts"]


def test_where_a_session_was_begun_is_recorded_whatever_the_name(machine, since):
    odd = f"{DEMO}/new\nline\x1b[2J"
    machine.run(["sh", "-c", 'mkdir -p "$0"', odd], user="alice", cwd=DEMO, check=True)
    try:
        assert pi(machine, "sh", "true", cwd=odd).returncode == 0
    finally:
        machine.run(["rmdir", odd], user="alice", check=True)
    for entry in since.entries():
        assert entry["PI_AGENT_DIRECTORY"] == f"{DEMO}/new\\nline\\x1b[2J" or entry["PI_AGENT_DIRECTORY"].startswith(f"{DEMO}/new\\"), entry
        assert "\n" not in entry["MESSAGE"] and "\x1b" not in entry["MESSAGE"], entry
        assert entry["PI_AGENT_REPOSITORY"] == DEMO if machine.root(["test", "-d", f"{DEMO}/.git"]).returncode == 0 else "PI_AGENT_REPOSITORY" not in entry
    assert history(machine, "--project", odd), "nothing was begun there"


def test_a_try_of_the_sandbox_is_no_session_of_its_users(machine):
    machine.root("pi-agentctl doctor >/dev/null 2>&1; true")
    since = next_second(machine)
    assert pi(machine, "--pi-agent-canary").returncode == 0  # alice's own
    machine.root("pi-agentctl doctor >/dev/null 2>&1; true")
    (own,) = history(machine, "--since", since)
    assert (own["program"], own["probe"], own["user"]) == ("canary", False, "alice"), own
    shown = history(machine, "--since", since, "--probes")
    assert [start["probe"] for start in shown][-2:] == [False, True], shown  # one more where the previous one ended in the same second


def test_what_failed_was_not_denied(machine, since):
    with machine.podman():
        with written_policy(machine, machine.read(POLICY_FILE).decode() + "sandbox: {method: podman}\n"):
            machine.root(["mv", "/usr/bin/crun", "/usr/bin/crun-away"], check=True)
            try:
                begun = next_second(machine)
                assert pi(machine, "sh", "true").returncode == 69
                machine.root("pi-agentctl doctor >/dev/null 2>&1; true")
            finally:
                machine.root(["mv", "/usr/bin/crun-away", "/usr/bin/crun"], check=True)
    entry = since.entries()[0]
    assert (entry["PI_AGENT_EVENT"], entry["PI_AGENT_STATUS"]) == ("denied", "69") and "not a denial" in entry["MESSAGE"], entry
    (start,) = history(machine, "--since", begun)
    assert (start["state"], start["denied_status"]) == ("failed", 69), start
    table = machine.root(["pi-agentctl", "history", "--since", begun], check=True).stdout.decode()
    assert "failed (69)" in table and "denied" not in table, table

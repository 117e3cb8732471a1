"""What the agent's home is given at every start, and what happens to it when pi-agent changes its version."""

import signal
import time

import pytest
from launching import INVALID, PLAYING_POLICY, STATE, agent_says, assert_refused, messages, owner_and_mode, pi, read_line, wait_until_empty

pytestmark = pytest.mark.usefixtures("playing")

HOME = f"{STATE}/alice/home"
STAMP = f"{STATE}/alice/meta/version"
SHARE = "/usr/share/pi-agent"
HOOKS = f"{SHARE}/migrations"
DEFAULT = ".config/of-a-test/deep/er/file"
SYSTEM_FAILURE = 71
AGENT = "pi-agent-alice:pi-agent-alice"


@pytest.fixture(autouse=True)
def share(machine):
    """A home that no start has used, two default files beside the installed ones, no hooks; afterwards as it was."""
    machine.root(f"cp -a {SHARE} /root/share-kept; rm -rf {STATE}/alice {HOOKS}/*", check=True)
    machine.write(f"{SHARE}/defaults/.of-a-test", "top\n")
    machine.write(f"{SHARE}/defaults/{DEFAULT}", "deep\n", mode=0o755)
    yield
    machine.root(f"rm -rf {SHARE} && mv /root/share-kept {SHARE}; rm -rf {STATE}/alice", check=True)


@pytest.fixture
def running(machine):
    """The version that runs; alice's home was made by it."""
    return agent_says(machine, "sh", "echo $PI_AGENT_VERSION").decode().strip()


def hook(machine, name, script):
    machine.write(f"{HOOKS}/{name}", script)


def stamp(machine, version=None):
    if version is not None:
        machine.write(STAMP, f"{version}\n", mode=0o600)
    return machine.read(STAMP).decode()


# --- what it is given


def test_every_default_file_is_in_a_new_home_at_any_depth_and_is_the_agents(machine):
    assert agent_says(machine, "sh", f"cd; cat .of-a-test {DEFAULT}") == b"top\ndeep\n"
    assert owner_and_mode(machine, f"{HOME}/.of-a-test") == f"{AGENT} 600"
    assert owner_and_mode(machine, f"{HOME}/{DEFAULT}") == f"{AGENT} 700"
    assert owner_and_mode(machine, f"{HOME}/.config/of-a-test/deep") == f"{AGENT} 700"
    defaults = machine.root(f"cd {SHARE}/defaults && find . | sort", check=True).stdout
    for path in defaults.decode().split():
        assert owner_and_mode(machine, f"{HOME}/{path}").startswith(AGENT)


def test_what_the_agent_changed_stays_and_what_it_removed_comes_back(machine):
    agent_says(machine, "sh", f"cd; echo its >.of-a-test; echo own >.config/own; rm {DEFAULT}")
    assert agent_says(machine, "sh", f"cd; cat .of-a-test .config/own {DEFAULT}; rm -r .config") == b"its\nown\ndeep\n"
    assert agent_says(machine, "sh", f"cd; cat .of-a-test {DEFAULT}; test -e .config/own || echo gone") == b"its\ndeep\ngone\n"


def test_a_file_that_is_new_among_the_defaults_comes_into_homes_that_are_there(machine):
    agent_says(machine, "sh", "true")
    machine.write(f"{SHARE}/defaults/.config/of-a-test/new", "new\n")
    assert agent_says(machine, "sh", "cat ~/.config/of-a-test/new") == b"new\n"


def test_links_of_the_agents_stay_and_lead_nowhere(machine):
    agent_says(machine, "sh", "cd; mkdir elsewhere; rm -r .of-a-test .config; ln -s elsewhere/new .of-a-test; ln -s elsewhere .config")
    assert agent_says(machine, "sh", "cd; readlink .of-a-test .config; ls -A elsewhere") == b"elsewhere/new\nelsewhere\n"


def test_a_file_where_a_directory_is_needed_stays_and_leaves_out_what_would_be_in_it(machine):
    agent_says(machine, "sh", "cd; rm -r .config .of-a-test; echo its >.config")
    assert agent_says(machine, "sh", "cd; cat .config .of-a-test") == b"its\ntop\n"


def test_an_installation_without_defaults_is_incomplete_and_says_what_to_do(machine):
    machine.root(["rm", "-r", f"{SHARE}/defaults"], check=True)
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, f"{SHARE}/defaults", "No such file or directory", "install pi-agent again")


def test_defaults_that_others_can_change_are_not_used(machine):
    machine.root(["chmod", "o+w", f"{SHARE}/defaults"], check=True)
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, f"{SHARE}/defaults", "writable by others than root", "chmod g-w,o-w")


# --- versions


def test_a_new_home_is_stamped_in_silence_and_the_agent_has_a_copy(machine):
    hook(machine, "0.0.1-x.sh", "echo ran >ran")
    said = agent_says(machine, "sh", "echo $PI_AGENT_VERSION; cat ~/.local/state/.pi-agent-version; test ! -e ~/ran")
    version = said.decode().split()[0]
    assert said.decode() == f"{version}\n{version}\n"
    assert stamp(machine) == f"{version}\n" and owner_and_mode(machine, STAMP) == "root:root 600"
    assert agent_says(machine, "sh", "echo 9.9.9 >~/.local/state/.pi-agent-version") == b""
    assert agent_says(machine, "sh", "cat ~/.local/state/.pi-agent-version").decode() == f"{version}\n"
    assert owner_and_mode(machine, f"{HOME}/.local/state/.pi-agent-version") == f"{AGENT} 600"


@pytest.mark.parametrize("policy_line", ["", "settings_lock: true\n"])
def test_a_newer_version_says_so_once_and_runs_its_hooks_in_order(machine, playing_policy, running, policy_line):
    playing_policy(PLAYING_POLICY + policy_line)
    stamp(machine, "0.0.1")
    for name, words in (("0.0.1-old", "wrong"), ("0.0.10-later", "later"), ("0.0.2-b", "b"), ("0.0.2-a", "a"), (f"{running}-this", "this"), ("99.0.0-x", "wrong")):
        hook(machine, f"{name}.sh", f"echo {words} >>ran; echo heard; echo heard >&2; cat")
    hook(machine, "0.0.3-variables.sh", 'echo "$PI_AGENT_OLD_VERSION $PI_AGENT_NEW_VERSION $HOME $PWD $(id -un) $PI_OFFLINE" >variables')
    done = pi(machine, "sh", "cat ~/ran ~/variables; cat ~/.local/state/.pi-agent-version")
    assert done.returncode == 0, done
    assert messages(done) == [f"pi: the agent's home was last used by pi-agent 0.0.1, this is {running}: it is brought up to date"]
    variables = f"0.0.1 {running} {HOME} {HOME} pi-agent-alice "
    assert done.stdout.decode() == f"a\nb\nlater\nthis\n{variables}\n{running}\n"
    assert stamp(machine) == f"{running}\n"
    assert agent_says(machine, "sh", "wc -l <~/ran") == b"4\n"  # silent, and not again


def test_what_a_hook_moves_away_is_seeded_anew_at_the_same_start(machine, running):
    stamp(machine, "0.0.1")
    hook(machine, "0.0.2-x.sh", f"mv .of-a-test old; mv {DEFAULT} deep")
    assert pi(machine, "sh", f"cd; cat old .of-a-test deep {DEFAULT}").stdout == b"top\ntop\ndeep\ndeep\n"


def test_a_hook_that_fails_ends_the_start_and_all_run_again_when_it_is_mended(machine, running):
    stamp(machine, "0.0.1")
    hook(machine, "0.0.2-a.sh", "echo a >>ran")
    hook(machine, "0.0.2-b.sh", "echo 'no cache here' >&2; exit 3")
    hook(machine, "0.0.3-c.sh", "echo c >>ran")
    for _ in range(2):
        words = (f"last used by pi-agent 0.0.1, this is {running}", f"{HOOKS}/0.0.2-b.sh", 'status 3 ("no cache here")', "next start")
        assert_refused(pi(machine, "sh", "echo ran"), SYSTEM_FAILURE, *words)
        assert stamp(machine) == "0.0.1\n"
    hook(machine, "0.0.2-b.sh", "true")
    assert pi(machine, "sh", "cat ~/ran").stdout == b"a\na\na\nc\n"
    assert stamp(machine) == f"{running}\n"


def test_a_hook_without_a_version_in_its_name_is_refused_when_it_would_count(machine, running):
    hook(machine, "cache.sh", "echo ran >ran")
    assert agent_says(machine, "sh", "true") == b""
    stamp(machine, "0.0.1")
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, "cache.sh is not named VERSION-name.sh")
    assert stamp(machine) == "0.0.1\n"


def test_an_older_version_says_so_and_runs_nothing(machine, running):
    stamp(machine, "99.0.0")
    hook(machine, "0.0.2-x.sh", "echo ran >ran")
    done = pi(machine, "sh", "ls ~/ran 2>/dev/null")
    assert done.stdout == b"", done
    assert messages(done) == [f"pi: the agent's home was last used by pi-agent 99.0.0, this is the older {running}: nothing in it is changed back"]
    assert stamp(machine) == f"{running}\n"


def test_a_stamp_that_is_no_version_ends_the_start_until_an_administrator_decides(machine, running):
    stamp(machine, "garbage")
    hook(machine, "0.0.2-x.sh", "echo ran >>ran")
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, f"{STAMP} must hold the version of pi-agent", 'it holds "garbage"', "write that version into it", "or to remove it")
    stamp(machine, "0.0.1")
    assert pi(machine, "sh", "cat ~/ran").stdout == b"ran\n"
    machine.root(["rm", STAMP], check=True)
    assert agent_says(machine, "sh", "cat ~/ran") == b"ran\n"  # new: no hook, no word


def test_another_users_home_has_a_stamp_of_its_own(machine, running):
    stamp(machine, "0.0.1")
    bobs = {"user": "bob", "cwd": "/home/bob/work/demo"}
    assert agent_says(machine, "sh", "cat ~/.local/state/.pi-agent-version", **bobs).decode() == f"{running}\n"
    assert stamp(machine) == "0.0.1\n"


# --- sudden ends


SLOW = "echo began >>ran; sleep 1000"


def start_slow_hook(machine):
    stamp(machine, "0.0.1")
    hook(machine, "0.0.2-x.sh", SLOW)
    process = machine.popen(["pi", "sh", "echo agent"], cwd="/home/alice/projects/demo")
    until = time.monotonic() + 20
    while machine.root(["test", "-e", f"{HOME}/ran"]).returncode != 0:
        assert time.monotonic() < until, "the hook does not run"
        time.sleep(0.05)
    return process


def assert_not_migrated(machine, running):
    wait_until_empty(lambda: machine.root("pgrep -u pi-agent-alice").stdout)
    assert stamp(machine) == "0.0.1\n"
    hook(machine, "0.0.2-x.sh", "echo whole >>ran")
    assert pi(machine, "sh", "cat ~/ran").stdout == b"began\nwhole\n"
    assert stamp(machine) == f"{running}\n"


def test_an_interrupt_ends_a_start_whose_hook_takes_long_and_the_hook(machine, running):
    process = start_slow_hook(machine)
    machine.root(["kill", "-INT", str(process.inside_pid())], check=True)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) in ((-signal.SIGINT, b""), (128 + signal.SIGINT, b"")), process.returncode
    assert_not_migrated(machine, running)


def test_a_runner_that_is_killed_takes_its_hook_along_and_the_next_start_runs_it_again(machine, running):
    process = start_slow_hook(machine)
    machine.root("pkill -9 -u root -f ^/usr/libexec/pi-agent/pi-agent-runner", check=True)
    assert process.communicate(timeout=20)[0] == b""
    assert_not_migrated(machine, running)


def test_of_starts_at_the_same_time_one_runs_the_hooks(machine, running):
    stamp(machine, "0.0.1")
    hook(machine, "0.0.2-x.sh", "echo began >>ran; sleep 0.5")
    processes = [machine.popen(["pi", "sh", "cat ~/ran; read x"], cwd="/home/alice/projects/demo") for _ in range(3)]
    assert [read_line(process) for process in processes] == 3 * [b"began\n"]
    for process in processes:
        process.communicate(b"\n", timeout=20)
    assert machine.read(f"{HOME}/ran") == b"began\n"

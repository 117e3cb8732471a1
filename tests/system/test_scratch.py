"""The temporary directory of each session, row by row of what was asked for (E1 to E8), on disk and in memory."""

import json
import os
import random
import re
import time

import pytest
from launching import DEMO, KILLS_OF_OURS, PLAYING_POLICY, WRAPPER_KILL, agent_says, assert_refused, finish, leftovers, messages, pi, read_line, session, variables, wait_until_empty, written_policy

SCRATCH = "/var/lib/pi-agent/sessions"
KINDS = {"disk": PLAYING_POLICY, "tmpfs": PLAYING_POLICY + "scratch: tmpfs\n"}
HOLD = "echo ready; echo $TMPDIR; cat >/dev/null"
TMPDIR = 'stat --format="%n %a %U" $TMPDIR /tmp /var/tmp'


@pytest.fixture(params=KINDS)
def scratch(request, machine, playing_policy):
    """Each test with a session's files on disk, and in memory."""
    if request.param != "disk":
        playing_policy(KINDS[request.param])
    return request.param


def on_disk(machine):
    """What is in the directory of temporary directories."""
    return machine.root(f"ls -A {SCRATCH} 2>/dev/null; true").stdout.decode().split()


def wait_until_removed(machine, deadline=5):
    wait_until_empty(lambda: leftovers(machine) + on_disk(machine), deadline)


def wait_while_removing(machine, patience=30):
    """For what is removed at the lowest priority, which a busy host leaves little time: until nothing is left, and as long as it becomes less.
    A sweep lets go after ten seconds, and that of the next start goes on."""
    before, until = None, 0
    while any(left := (leftovers(machine), on_disk(machine))):
        left = (*left, machine.root(f"find {SCRATCH} | wc -l").stdout)
        if left != before:
            before, until = left, time.monotonic() + patience
            next_start = time.monotonic() + patience / 3
        if time.monotonic() > next_start:
            pi(machine, "sh", "true")
            next_start += patience / 3
        assert time.monotonic() < until, f"still there, and for {patience} s no less: {left!r}"
        time.sleep(0.1)


def tmpdir_of(running):
    return read_line(running).decode().strip()


# --- E1, E4: unique, the agent's own, there before anything needs it, always set


def test_e1_tmpdir_is_the_sessions_own_private_and_there_from_the_start(machine, scratch):
    shown = agent_says(machine, "sh", f"echo $PI_AGENT_SESSION; {TMPDIR}").decode().split("\n")
    assert shown[1:4] == [f"{path} 700 pi-agent-alice" for path in ("/tmp", "/tmp", "/var/tmp")], shown
    assert agent_says(machine, "sh", "cd $TMPDIR && mktemp -p . && python3 -c 'import tempfile; print(tempfile.gettempdir())'").decode().split("\n")[1] == "/tmp"
    wait_until_removed(machine)


def test_e1_no_variable_chooses_it(machine, scratch):
    chosen = {name: "/home/alice/projects/chosen" for name in ("TMPDIR", "TEMP", "TMP", "PI_AGENT_TMPDIR", "XDG_RUNTIME_DIR", "PI_AGENT_SESSION")}
    inside = variables(agent_says(machine, "environment", env=chosen))
    assert inside[b"TMPDIR"] == b"/tmp" and b"chosen" not in b"".join(inside.values())


def test_e1_no_variable_of_policy_or_config_chooses_it(machine, playing):
    machine.write("/home/alice/.pi/agent/env", "TMPDIR=/home/alice/projects\n", "alice")
    done = pi(machine, "environment")
    machine.root(["rm", "/home/alice/.pi/agent/env"], check=True)
    assert variables(done.stdout)[b"TMPDIR"] == b"/tmp"
    assert messages(done) == ["pi: /home/alice/.pi/agent/env:1: TMPDIR is left out: it is set by pi-agent itself"]
    with written_policy(machine, PLAYING_POLICY.replace("env:\n", "env:\n  TMPDIR: /home/alice/projects\n")):
        assert_refused(pi(machine, "sh", "echo ran"), 78, "so nobody can start pi. Ask them to run: pi-agentctl check")
        checked = machine.root(["pi-agentctl", "check"])
        assert checked.returncode == 78 and b"env.TMPDIR: is set by pi-agent itself" in checked.stderr, checked


def test_e4_programs_can_tell_that_they_are_inside(machine, scratch):
    inside = variables(agent_says(machine, "environment"))
    assert inside[b"SANDBOX_RUNTIME"] == b"1" and len(inside[b"PI_AGENT_SESSION"]) == 32


def test_programs_run_from_there_and_nothing_is_setuid(machine, scratch):
    said = agent_says(machine, "sh", "cp /usr/bin/true $TMPDIR/p && $TMPDIR/p && findmnt -no OPTIONS --target $TMPDIR; df --output=fstype /tmp /var/tmp | tail -n +2")
    assert b"nosuid,nodev" in said and b"noexec" not in said, said
    assert (said.split()[1:] == [b"tmpfs", b"tmpfs"]) or scratch == "disk", said


# --- E2: the user's own choice


def test_e2_a_directory_of_the_users_is_made_with_its_parents_used_and_kept(machine, playing):
    named = f"{DEMO}/build/deep/tmp"
    said = agent_says(machine, f"--pi-agent-tmpdir={named}", "sh", 'echo $TMPDIR; touch $TMPDIR/made; stat --format="%a %U" $TMPDIR')
    assert said.decode().split() == [named, "700", "pi-agent-alice"]
    assert machine.root(["stat", "--format=%U %a", f"{DEMO}/build", f"{DEMO}/build/deep", named, f"{named}/made"]).stdout.decode().splitlines() == [
        "alice 755", "alice 755", "alice 700", "alice 644",
    ]  # fmt: skip
    wait_until_removed(machine)
    assert agent_says(machine, f"--pi-agent-tmpdir={named}", "sh", "ls $TMPDIR") == b"made\n"
    machine.root(["rm", "-r", f"{DEMO}/build"], check=True)


def test_e2_a_relative_path_is_relative_to_the_working_directory(machine, playing):
    machine.run("mkdir -p sub", cwd=DEMO, check=True)
    for named, meant in (("tmp", f"{DEMO}/sub/tmp"), ("../tmp", f"{DEMO}/tmp"), ("./a b/\u00e9", f"{DEMO}/sub/a b/\u00e9")):
        assert agent_says(machine, f"--pi-agent-tmpdir={named}", "sh", "echo $TMPDIR; touch \"$TMPDIR/x\"", cwd=f"{DEMO}/sub").decode() == meant + "\n"
    machine.root(["rm", "-r", f"{DEMO}/sub", f"{DEMO}/tmp"], check=True)


@pytest.mark.parametrize("named", ["/tmp/x", "/", "..", "../..", "/home/alice/x", "/home/alice/projects", "/home/alice/projects-evil", "/srv/shared/app/tmp"])
def test_e2_what_lies_outside_the_root_is_refused_and_not_made(named, machine, playing):
    assert_refused(pi(machine, f"--pi-agent-tmpdir={named}", "sh", "echo ran"), 77, "denied: --pi-agent-tmpdir: ", "is not in /home/alice/projects", "name a directory below it")
    assert machine.root("ls -d /tmp/x /home/alice/x /home/alice/projects-evil /srv/shared/app/tmp 2>/dev/null").stdout == b""


def test_e2_an_option_without_a_directory_is_a_mistake(machine, playing):
    for options in (["--pi-agent-tmpdir"], ["--pi-agent-tmpdir", "", "sh", "echo ran"], ["--pi-agent-tmpdir=", "sh", "echo ran"]):
        assert_refused(pi(machine, *options), 64, "--pi-agent-tmpdir needs a directory")


def test_e2_the_directory_may_be_an_argument_of_its_own(machine, playing):
    assert agent_says(machine, "--pi-agent-tmpdir", "apart", "sh", "basename $TMPDIR; rmdir $TMPDIR") == b"apart\n"


def test_e2_links_and_other_file_systems_are_refused(machine, playing):
    machine.run("ln -s /home/alice out; ln -s . here; touch file; mkdir mounted", cwd=DEMO, check=True)
    machine.root(["mount", "-t", "tmpfs", "none", f"{DEMO}/mounted"], check=True)
    for named, words in (("out/x", "is a symlink"), ("here/x", "is a symlink"), ("file", "is not a directory"), ("mounted/x", "another file system")):
        assert_refused(pi(machine, f"--pi-agent-tmpdir={named}", "sh", "echo ran"), 77, words)
    machine.root(f"umount {DEMO}/mounted; rm -r {DEMO}/out {DEMO}/here {DEMO}/file {DEMO}/mounted; test ! -e /home/alice/x", check=True)


# --- E3: removed at the end, however that comes


FILL = """
mkdir -p $TMPDIR/a/b /var/tmp/c; echo x >$TMPDIR/a/b/file; ln $TMPDIR/a/b/file /tmp/hard; ln -s $HOME $TMPDIR/home; ln -s / /tmp/root
ln -s nowhere /tmp/dangling; mkfifo /tmp/fifo; touch "$(printf '/tmp/a\\nb')" /tmp/-rf; chmod 0000 $TMPDIR/a/b $TMPDIR/a /var/tmp/c
python3 - <<'END'
import os
for depth in range(2500):
    os.mkdir("d")
    os.symlink(os.environ["HOME"], "link")
    os.chdir("d")
END
chmod 0500 d; chmod 0 .
"""


def test_e3_whatever_is_in_it_is_removed_at_the_end(machine, scratch):
    canary = "echo alive >$HOME/canary"
    assert agent_says(machine, "sh", f"{canary}; cd $TMPDIR; {FILL}") == b""
    wait_until_removed(machine, 15)
    assert agent_says(machine, "sh", "cat $HOME/canary; rm $HOME/canary") == b"alive\n"


KILLS = {
    "agent": "pkill -9 -u pi-agent-alice -x bash",
    "wrapper": WRAPPER_KILL,
    **KILLS_OF_OURS,
    "everything": "pkill -9 'pi|pi-agent-exec|bash' -u alice,pi-agent-alice; pkill -9 -f ^/usr/libexec/pi-agent/",
}


@pytest.mark.parametrize("victim", KILLS)
def test_e3_it_is_removed_after_kill_9_of(victim, machine, scratch):
    with session(machine, "sh", f"mkdir $TMPDIR/a; echo x >$TMPDIR/a/b; echo x >/var/tmp/c; {HOLD}") as running:
        tmpdir_of(running)
        assert (len(on_disk(machine)) == 1) == (scratch == "disk")
        machine.root(KILLS[victim])
        running.wait(timeout=20)
    if victim == "everything":  # the cleanup may be among those
        pi(machine, "sh", "true")
    wait_until_removed(machine)


def test_e3_it_is_removed_after_a_hang_up(machine, scratch):
    with session(machine, "sh", f"echo x >$TMPDIR/a; {HOLD}") as running:
        tmpdir_of(running)
        machine.root(["kill", "-HUP", str(running.inside_pid())], check=True)
        running.wait(timeout=20)
    wait_until_removed(machine)


def test_e3_it_is_removed_after_200_kills_at_any_moment(machine, playing):
    """Of the start, the session or the removal. A tenth of them by default; PI_AGENT_FULL=1 for all."""
    seed = os.environ.get("PI_AGENT_SEED", "0")
    draw = random.Random(seed)
    kills = list(KILLS.values())
    for turn in range(200 if os.environ.get("PI_AGENT_FULL") else 12):
        kill, delay = draw.choice(kills), draw.uniform(0, 0.5)
        running = machine.popen(["pi", "sh", "mkdir -p $TMPDIR/a/b; for i in $(seq 300); do echo x >$TMPDIR/a/b/$i; done; sleep 0.1"], cwd=DEMO)
        time.sleep(delay)
        machine.root(kill)
        running.communicate(timeout=30)
        # What a killed cleanup or runner left, the next start takes, and a scope that systemd made for a runner that had just died.
        pi(machine, "sh", "true")
        try:
            wait_until_removed(machine, 10)
        except AssertionError as left:
            raise AssertionError(f"seed {seed}, turn {turn}, {kill!r} after {delay:.3f} s: {left}") from None


def orphan(machine, name, content, owner="pi-agent-alice"):
    """What a session leaves on disk when the host's power goes: /run has no trace of it."""
    top = f"{SCRATCH}/{name * 16}"
    machine.root(f"mkdir -p {top}/tmp {top}/var-tmp && chmod 711 {top} && cd {top}/tmp && {content}; chown -R {owner}: {top}/*; chmod 700 {top}/*", check=True)
    return top


def test_e3_what_a_crash_of_the_host_left_is_swept_at_the_next_start_of_anybody(machine, playing):
    orphan(machine, "0a", "mkdir -p a/b; touch a/b/c")
    orphan(machine, "0b", "true")
    machine.root(f"mkdir {SCRATCH}/{'0c' * 16}; mkdir -p {SCRATCH}/{'0d' * 16}/tmp", check=True)  # half made
    assert agent_says(machine, "sh", "true", user="bob", cwd="/home/bob/work/demo") == b""
    wait_until_removed(machine)


def test_e3_a_huge_leftover_delays_nobody(machine, playing):
    began = time.monotonic()
    agent_says(machine, "sh", "true")
    plain = time.monotonic() - began
    orphan(machine, "0e", "for d in $(seq 30); do mkdir $d; (cd $d; seq 400 | xargs touch); done")
    began = time.monotonic()
    assert agent_says(machine, "sh", "echo here", user="bob", cwd="/home/bob/work/demo") == b"here\n"
    assert time.monotonic() - began < plain + 1.5
    pi(machine, "sh", "true")
    wait_while_removing(machine)


def test_e3_nobody_waits_for_the_removal_of_a_huge_one(machine, playing):
    began = time.monotonic()
    said = agent_says(machine, "sh", "cd $TMPDIR; for d in $(seq 30); do mkdir $d; (cd $d; seq 400 | xargs touch); done; date +%s.%N", timeout=120)
    ended = float(machine.root(["date", "+%s.%N"], check=True).stdout)
    assert ended - float(said) < 1.5, time.monotonic() - began
    wait_while_removing(machine)


# --- E5: debug output names it


def test_e5_debug_output_names_it(machine, scratch):
    done = pi(machine, "--pi-agent-debug", "sh", "echo $TMPDIR")
    said = messages(done)
    assert done.returncode == 0 and f"pi: TMPDIR={done.stdout.decode().strip()}" in said, done
    assert any(re.fullmatch("pi: session [0-9a-f]{32}", line) for line in said), said
    done = pi(machine, "--pi-agent-debug", "--pi-agent-tmpdir=x\ny", "sh", "true")
    machine.root(["rm", "-r", f"{DEMO}/x\ny"], check=True)
    assert f"pi: TMPDIR={DEMO}/x\\x0ay" in messages(done), done


# --- E6: arguments as an array


def test_e6_no_flag_is_swallowed_and_no_quoting_lost(machine, scratch):
    odd = ["-c", "--tmpdir=x", "--", "-", "", "a b", "'q\"q'", "$HOME", "`id`", "*", "a\nb", "\\", "--pi-agent-tmpdir=/nowhere", "-p", "-e"]
    assert agent_says(machine, "arguments", *odd).decode().split("\0")[:-1] == odd
    said = agent_says(machine, "--pi-agent-tmpdir=odd tmp", "arguments", *odd)
    machine.root(["rm", "-r", f"{DEMO}/odd tmp"], check=True)
    assert said.decode().split("\0")[:-1] == odd


# --- E7: no two share one


def test_e7_two_sessions_at_once_share_nothing(machine, scratch):
    with session(machine, "sh", f"echo first >$TMPDIR/a; echo first >/tmp/b; echo first >/var/tmp/c; {HOLD}") as first:
        tmpdir_of(first)
        with session(machine, "sh", f"ls -A $TMPDIR /var/tmp >$HOME/seen; ls -A /tmp >>$HOME/seen; {HOLD}") as second:
            tmpdir_of(second)
            seen = agent_says(machine, "sh", "cat $HOME/seen; rm $HOME/seen").decode()
            assert not {"a", "b", "c"} & set(seen.split()), seen
            assert finish(second)[0] == 0
        assert finish(first)[0] == 0
    wait_until_removed(machine)


# --- E8: what programs write to


def test_e8_standard_devices_and_npms_log_are_writable(machine, scratch):
    # Pipes as a user's shell makes them.
    done = machine.run("{ pi sh 'cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr' 2>&3 < <(echo in) | sed s/^/1/; } 3>&1 | sort", cwd=DEMO)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1in\n1out\nerr\n", b""), done
    assert agent_says(machine, "sh", "echo x >/dev/null; mkdir -p ~/.npm/_logs && echo x >~/.npm/_logs/e8 && cat ~/.npm/_logs/e8; rm ~/.npm/_logs/e8") == b"x\n"
    on_terminal = machine.run("script -qec \"pi sh 'echo on-tty >/dev/tty; echo out >/dev/stdout; echo err >/dev/stderr'\" /dev/null", cwd=DEMO)
    lines = on_terminal.stdout.replace(b"^@", b"").splitlines()  # what script types
    words = [word for line in lines if not line.startswith(b"pi: until this session ends, git commands") for word in line.split()]
    assert words == [b"on-tty", b"out", b"err"], on_terminal


# --- a full disk


@pytest.fixture
def small_disk(machine, playing):
    """mount(options) puts a small file system where the sessions' directories are made."""
    mounted = []

    def mount(options):
        machine.root(f"mkdir -p {SCRATCH} && mount -t tmpfs -o mode=0711,{options} none {SCRATCH}", check=True)
        mounted.append(options)

    yield mount
    for _ in mounted:
        machine.root(["umount", "-l", SCRATCH], check=True)


@pytest.mark.parametrize("full", ["nr_inodes=2", "size=4k"])
def test_a_full_disk_is_told_in_words(full, machine, small_disk):
    small_disk(full)
    if "size" in full:
        machine.root(f"head -c 4096 /dev/zero >{SCRATCH}/all", check=True)
    assert_refused(pi(machine, "sh", "echo ran"), 71, "the disk is full: ", SCRATCH, "No space left on device", "free some space", "scratch: tmpfs")
    # The attempt leaves nothing for the next one.
    assert machine.root(f"find {SCRATCH} -mindepth 1 -type d").stdout == b""


def test_a_disk_that_the_session_filled_is_told_at_its_end(machine, small_disk):
    small_disk("size=20m")
    done = pi(machine, "sh", "head -c 8M /dev/zero >$TMPDIR/a; echo wrote")
    assert done.stdout == b"wrote\n"
    (said,) = messages(done)
    assert said.startswith("pi: nearly full: the file system of the session's /tmp has ") and "free some" in said
    wait_until_removed(machine)


def test_memory_is_bounded_and_what_does_not_fit_is_an_error_inside(machine, playing_policy):
    playing_policy(KINDS["tmpfs"])
    said = agent_says(machine, "sh", "df --output=size -k /tmp | tail -1; awk '/MemTotal/ {print $2}' /proc/meminfo")
    size, memory = map(int, said.split())
    assert 0.19 < size / memory < 0.21


# --- the messages about it


def test_it_is_explained(machine, scratch):
    shown = json.loads(machine.root(["pi-agentctl", "explain", "--user", "alice", "--json"], check=True).stdout)
    assert shown["scratch"] == scratch and shown["environment"]["variables"]["TMPDIR"]["value"] == "/tmp"
    text = pi(machine, "--pi-agent-explain").stdout.decode()
    assert f"(scratch: {scratch})" in text and "TMPDIR=/tmp there" in text

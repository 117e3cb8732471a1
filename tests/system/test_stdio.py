"""Standard input, output and error pass to the agent as they are, or are refused in words."""

import hashlib
import os

import pytest
from launching import DEMO, DENIED, assert_refused, owner_and_mode, pi

MEGABYTE = 1 << 20
NAMES = ("standard input", "standard output", "standard error")


pytestmark = pytest.mark.usefixtures("playing")


def in_demo(machine, script, **options):
    return machine.run(script, cwd=DEMO, **options)


def test_a_pipeline_on_both_sides(machine):
    done = in_demo(machine, "echo x | pi sh 'sed s/x/y/' | cat; echo ${PIPESTATUS[*]}")
    assert (done.stdout, done.stderr) == (b"y\n0 0 0\n", b"")


def test_standard_error_is_apart_from_standard_output(machine):
    done = pi(machine, "sh", "echo out; echo error >&2; echo out again")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\nout again\n", b"error\n")
    done = in_demo(machine, "pi sh 'echo out; echo error >&2' 2>&1 >/dev/null | tr a-z A-Z")
    assert done.stdout == b"ERROR\n"


def test_100_megabytes_of_binary_come_through_pipes_exactly(machine):
    payload = os.urandom(100 * MEGABYTE)
    done = pi(machine, "sh", "exec cat", input=payload, timeout=120)
    assert (done.returncode, done.stderr, len(done.stdout)) == (0, b"", len(payload))
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(payload).digest()


def test_100_megabytes_of_binary_come_through_files_exactly(machine):
    script = f"""
        head -c {100 * MEGABYTE} /dev/urandom >in.bin
        pi sh 'exec cat' <in.bin >out.bin && cmp in.bin out.bin && stat -c %s out.bin
        rm in.bin out.bin
    """
    done = in_demo(machine, script, timeout=120)
    assert (done.stdout, done.stderr) == (f"{100 * MEGABYTE}\n".encode(), b"")


def test_a_file_goes_on_where_it_was_and_stays_where_the_agent_left_it(machine):
    script = """
        printf '1\\n2\\n3\\n' >lines
        { read -r first; pi sh 'read -r line; echo "agent $line"'; read -r last; echo $first $last; } <lines
        rm lines
    """
    assert in_demo(machine, script).stdout == b"agent 2\n1 3\n"


def test_a_file_that_is_appended_to_keeps_what_it_had(machine):
    agent = "pi sh 'echo agent; echo error >&2' >>log 2>>log"
    done = in_demo(machine, f"echo before >log; {agent}; echo after >>log; cat log; rm log")
    assert done.stdout == b"before\nagent\nerror\nafter\n"


def test_files_outside_the_roots_can_be_redirected_to_because_the_users_shell_opened_them(machine):
    agent = "pi sh 'cat; ls /home/alice' <~/private >~/answer 2>&1"
    done = in_demo(machine, f"echo of alice >~/private; {agent}; cat ~/answer; rm ~/private ~/answer")
    assert done.stdout == b"of alice\nprojects\n"


AGAIN = "echo one; echo two >/dev/stdout; echo three >>/dev/stderr; echo four | tee /dev/stderr"


@pytest.mark.parametrize("place", ["/home/alice", DEMO])
def test_what_is_a_file_outside_can_be_opened_again_inside(machine, place):
    """As /dev/stdout and /dev/stderr; and what comes after it in the user's shell goes on behind it."""
    script = f"{{ echo before; pi sh '{AGAIN}'; echo after; }} >{place}/out 2>{place}/err; cat {place}/out {place}/err; rm {place}/out {place}/err"
    assert in_demo(machine, script).stdout == b"before\none\ntwo\nfour\nafter\nthree\nfour\n"
    both = f"{{ echo before; pi sh '{AGAIN}'; }} >>{place}/out 2>&1; cat {place}/out; rm {place}/out"
    assert in_demo(machine, both).stdout == b"before\none\ntwo\nthree\nfour\nfour\n"


def test_a_file_that_takes_no_more_is_told(machine):
    done = in_demo(machine, "ulimit -S -f 8; pi sh 'head -c 1000000 /dev/zero; echo $? >&2' >~/out; stat -c %s ~/out; rm ~/out")
    assert (done.stdout, b"141" in done.stderr) == (b"8192\n", True), done
    assert b"pi: standard output: File too large: what the agent wrote from there on is lost\n" in done.stderr, done


def test_it_is_told_also_where_the_caller_ignores_how_its_children_end(machine):
    calling = 'import os, signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp("pi", ["pi", "sh", "head -c 1000000 /dev/zero"])'
    done = in_demo(machine, f"ulimit -S -f 8; python3 -c '{calling}' >~/out; rm ~/out")
    assert b"pi: standard output: File too large: what the agent wrote from there on is lost\n" in done.stderr, done


HANDING = "import socket; one = socket.socket(socket.AF_UNIX); one.connect('held'); socket.send_fds(one, [b'x'], [1, 2]); print('in time')"
HOLDING = f"""
import os, socket, subprocess, time
server = socket.socket(socket.AF_UNIX); server.bind("held"); server.listen()
with open("/home/alice/out", "wb") as out, open("/home/alice/err", "wb") as err:
    pi = subprocess.Popen(["pi", "sh", {f'python3 -c "{HANDING}"'!r}], stdout=out, stderr=err)
one = server.accept()[0]
held = socket.recv_fds(one, 1, 2)[1]
print(pi.wait())
time.sleep(1)
for number in held:
    try: os.write(number, b"late\\n")
    except BrokenPipeError: print("nobody reads")
"""


def test_who_still_holds_the_output_after_the_end_writes_into_no_file(machine):
    """The agent handed it out, through a socket in the project; and what is lost is said once."""
    try:
        done = in_demo(machine, ["python3", "-c", HOLDING], timeout=120)
        assert done.stdout.split(b"\n") == [b"0", b"nobody reads", b"nobody reads", b""], done
        assert machine.read("/home/alice/out") == b"in time\n"
        told = machine.read("/home/alice/err")
        assert told.count(b"pi: ") == 1 and b"pi: standard output and standard error: something still has the output open" in told, told
    finally:
        machine.root(f"rm -f /home/alice/out /home/alice/err {DEMO}/held", check=True)


@pytest.mark.parametrize("number", ["KILL", "TERM", "HUP"])
def test_what_was_written_is_in_the_file_whatever_ends_pi(machine, number):
    script = f"pi sh 'head -c 60000 /dev/zero; touch written; exec sleep 60' >~/out & until [ -e written ]; do sleep 0.1; done; kill -{number} $!; wait; sleep 1"
    done = in_demo(machine, f"{script}; stat -c %s ~/out; rm ~/out written", timeout=60)
    assert done.stdout == b"60000\n", done


def test_one_pipe_for_output_and_error_keeps_their_order(machine):
    done = in_demo(machine, "pi sh 'for i in $(seq 200); do echo o$i; echo e$i >&2; done' 2>&1 | cat")
    assert done.stdout.split() == [f"{kind}{i}".encode() for i in range(1, 201) for kind in "oe"]


def test_a_reader_that_has_enough_ends_the_agent(machine):
    done = in_demo(machine, "pi sh 'exec yes' | head -n 1; echo ${PIPESTATUS[*]}")
    assert (done.stdout, done.stderr) == (b"y\n141 0\n", b"")


def test_an_agent_that_has_read_enough_ends_the_writer(machine):
    done = in_demo(machine, "yes | pi sh 'head -n 1; exec <&-; kill -0 $$'; echo ${PIPESTATUS[*]}")
    assert done.stdout == b"y\n141 0\n"


def test_the_end_of_input_comes_through(machine):
    done = in_demo(machine, "pi sh 'cat; echo end' </dev/null")
    assert done.stdout == b"end\n"


def test_a_closed_descriptor_is_an_empty_one_and_nothing_else_takes_its_place(machine):
    done = in_demo(machine, "pi sh 'readlink /proc/$$/fd/0; cat' <&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"/dev/null\n", b"")
    done = in_demo(machine, "pi sh 'readlink /proc/$$/fd/1 >&2; echo lost' >&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"/dev/null\n")
    done = in_demo(machine, "pi sh 'readlink /proc/$$/fd/2; echo lost >&2' 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"/dev/null\n", b"")
    done = in_demo(machine, "pi sh 'cat; echo lost; echo lost >&2; exit 3' <&- >&- 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", b"")


def test_a_message_of_pi_itself_does_not_go_where_standard_error_was_closed(machine):
    done = machine.run("echo keep >kept; exec 3<>kept; pi sh true 2>&-; echo $?; cat kept; rm kept", cwd="/home/alice")
    assert done.stdout == b"77\nkeep\n"


def test_further_descriptors_of_the_caller_stay_outside(machine):
    look = "for fd in {0..1000}; do [ ! -e /proc/$$/fd/$fd ] || echo $fd; done"
    done = in_demo(machine, f"exec 3</etc 7</etc/passwd 99>/dev/null; pi sh '{look}'")
    assert done.stdout.split() == [b"0", b"1", b"2"]


@pytest.mark.parametrize("device", ["null", "zero", "full"])
def test_harmless_devices_are_passed(machine, device):
    done = in_demo(machine, f"pi sh 'head -c 3 | od -An -tx1; echo x >/dev/stderr 2>/dev/null; true' </dev/{device}")
    assert done.returncode == 0 and done.stdout.split() == ([] if device == "null" else [b"00"] * 3), done


def test_a_full_device_fails_as_such(machine):
    done = in_demo(machine, "pi sh 'echo x' >/dev/full")
    assert done.returncode == 1 and b"No space left on device" in done.stderr


def test_sockets_are_passed(machine):
    script = """
import socket, subprocess
own, theirs = socket.socketpair()
child = subprocess.Popen(["pi", "sh", "read line; echo agent $line"], stdin=theirs, stdout=theirs)
theirs.close()
own.sendall(b"hello\\n")
child.wait()
print(own.recv(100), own.recv(100))
"""
    assert machine.run(["python3", "-c", script], cwd=DEMO).stdout == b"b'agent hello\\n' b''\n"


REFUSED = [
    ("/home/alice", "<", 0, "a directory"),
    ("/", "<", 0, "a directory"),
    (DEMO, "1<", 1, "a directory"),
    ("/dev/random", "<", 0, "a terminal or another device"),
    ("/dev/urandom", "<", 0, "a terminal or another device"),
    ("/dev/urandom", ">", 1, "a terminal or another device"),
    ("/dev/ptmx", "<>", 0, "terminal"),
]


@pytest.mark.parametrize(("file", "redirection", "number", "what"), REFUSED)
def test_a_directory_or_another_device_is_refused_by_name(machine, file, redirection, number, what):
    done = in_demo(machine, f"pi sh 'echo ran' {redirection}{file}")
    assert_refused(done, DENIED, f"{NAMES[number]} is", what)


@pytest.mark.parametrize("file", [DEMO, "/dev/urandom"])
def test_a_directory_or_device_as_standard_error_is_refused_even_though_nobody_can_be_told(machine, file):
    redirection = "2<" if file == DEMO else "2>"
    done = in_demo(machine, f"pi sh 'echo ran' {redirection}{file}")
    assert (done.returncode, done.stdout) == (DENIED, b"")


def test_a_path_descriptor_is_refused(machine):
    script = """
import os, subprocess
fd = os.open("/etc/passwd", os.O_PATH)
done = subprocess.run(["pi", "sh", "echo ran"], stdin=fd, capture_output=True)
print(done.returncode, done.stdout, done.stderr.decode())
"""
    done = machine.run(["python3", "-c", script], cwd=DEMO)
    assert done.stdout.startswith(b"77 b'' pi: denied: standard input is a path descriptor;"), done


def test_a_block_device_is_refused(machine):
    machine.root("mknod /srv/shared/disk b 7 0 && chown alice /srv/shared/disk", check=True)
    try:
        probe = machine.run("exec 0</srv/shared/disk")
        done = in_demo(machine, "pi sh 'echo ran' </srv/shared/disk")
    finally:
        machine.root("rm /srv/shared/disk", check=True)
    if probe.returncode != 0:
        pytest.skip(f"this machine opens no block device: {probe.stderr!r}")
    assert_refused(done, DENIED, "standard input is a block device")


MASKS = [("022", "644", "755"), ("002", "664", "775"), ("077", "600", "700"), ("0", "666", "777"), ("027", "640", "750")]


@pytest.mark.parametrize(("mask", "file", "directory"), MASKS)
def test_new_files_get_the_modes_that_the_callers_own_would(machine, mask, file, directory):
    done = in_demo(machine, f"umask {mask}; pi sh 'mkdir made && touch made/file && umask'")
    assert done.returncode == 0 and int(done.stdout, 8) == int(mask, 8)
    assert owner_and_mode(machine, f"{DEMO}/made") == f"alice:alice {directory}"
    assert owner_and_mode(machine, f"{DEMO}/made/file") == f"alice:alice {file}"
    machine.run(["rm", "-r", f"{DEMO}/made"], check=True)

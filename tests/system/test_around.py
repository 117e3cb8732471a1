"""pi under the programs that people put around it: script, ssh, nohup, setsid, cron, env -i, tmux."""

import hashlib
import re
import time

import pytest
from launching import DEMO, finish, pi, session
from shells import PROMPT, Shell

pytestmark = pytest.mark.usefixtures("playing")


def test_under_script(machine):
    done = machine.run(["script", "-qec", "pi sh 'tty && stty size && exit 4'", "/dev/null"], cwd=DEMO)
    assert done.returncode == 4
    assert b"/dev/pts/0" in done.stdout


def test_under_nohup_a_hang_up_is_ignored(machine):
    done = machine.run("nohup pi sh 'kill -HUP $PPID; echo still here' 2>/dev/null", cwd=DEMO)
    assert (done.returncode, done.stdout) == (0, b"still here\n")


def test_under_nohup_the_wrapper_ignores_what_it_inherits(machine):
    with session(machine, program=("nohup", "pi", "sh", "echo ready; read x; echo end")) as running:
        machine.root(f"kill -HUP {running.inside_pid()}", check=True)
        running.stdin.write(b"\n")
        assert finish(running)[:2] == (0, b"end\n")


def test_under_setsid(machine):
    done = machine.run("setsid -w pi sh 'echo here; exit 6'", cwd=DEMO)
    assert (done.returncode, done.stdout) == (6, b"here\n")


def test_without_any_terminal_and_with_an_empty_environment_as_under_cron(machine):
    done = machine.run("cd ~/projects/demo && env -i /usr/bin/pi sh 'echo $HOME; test ! -t 0' </dev/null", cwd=DEMO)
    assert (done.returncode, done.stdout) == (0, b"/var/lib/pi-agent/users/alice/home\n")


def test_over_ssh_with_and_without_a_terminal(machine):
    machine.root("""
        test -f /etc/ssh/ssh_host_ed25519_key || ssh-keygen -qt ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
        mkdir -p /run/sshd; systemctl start ssh
        runuser -u alice -- sh -c 'umask 077; mkdir -p ~/.ssh; test -f ~/.ssh/id_ed25519 || ssh-keygen -qt ed25519 -N "" -f ~/.ssh/id_ed25519; cp ~/.ssh/id_ed25519.pub ~/.ssh/authorized_keys'
    """, check=True)  # fmt: skip
    ssh = "ssh -o StrictHostKeyChecking=no -o BatchMode=yes -o LogLevel=ERROR"
    done = machine.run(f"{ssh} 127.0.0.1 'cd projects/demo && pi sh \"cat; exit 9\"'", input=b"over ssh\n")
    assert (done.returncode, done.stdout, done.stderr) == (9, b"over ssh\n", b"")
    with Shell(machine, rows=31, columns=99) as shell:
        shell.type(f"{ssh} -tt 127.0.0.1 'cd projects/demo && pi sh \"tty; stty size; read x; exit 11\"'\n")
        shell.expect("/dev/pts/0\r\n31 99\r\n", seconds=20)
        shell.type("\n")
        shell.expect(re.escape(PROMPT))
        assert shell.run("echo code=$?")[0].strip() == b"code=11"
    machine.root("systemctl stop ssh; rm -rf /home/alice/.ssh", check=True)


def test_inside_tmux(machine):
    inside = "cd ~/projects/demo && pi sh 'tty; stty size; echo $TERM TMUX=${TMUX-unset}; tmux -L own new -d; tmux -L own ls | wc -l; sleep 5'"
    machine.run(["tmux", "-f", "/dev/null", "new-session", "-d", "-x", "90", "-y", "25", inside], check=True)
    until = time.monotonic() + 15
    screen = b""
    while b"TMUX=unset\n1" not in screen and time.monotonic() < until:
        screen = machine.run("tmux capture-pane -p").stdout
        time.sleep(0.1)
    machine.run("tmux kill-server")
    assert b"/dev/pts/0\n25 90\n" in screen and b" TMUX=unset\n1" in screen, screen


def test_pi_in_a_pipeline_that_ends_early(machine):
    done = machine.run("pi sh 'yes' | head -1; echo ${PIPESTATUS[*]}", cwd=DEMO)
    assert done.stdout == b"y\n141 0\n"


def test_a_gigabyte_through_a_pipe(machine):
    done = machine.run("pi sh 'head -c 1000000000 /dev/zero' | sha256sum; head -c 1000000000 /dev/zero | sha256sum", cwd=DEMO, timeout=120)
    inside, outside = done.stdout.splitlines()
    assert inside == outside


def test_binary_input_arrives_to_its_end(machine):
    data = bytes(range(256)) * 40000
    done = pi(machine, "digest", input=data)
    assert done.stdout.split() == [b"ready", str(len(data)).encode(), hashlib.sha256(data).hexdigest().encode()]


def test_a_half_closed_input_is_an_end_of_file_and_output_goes_on(machine):
    done = pi(machine, "sh", "cat >/dev/null; echo one; sleep 0.3; echo two", input=b"x" * 100000)
    assert (done.returncode, done.stdout) == (0, b"one\ntwo\n")
    script = """
import socket, subprocess
own, theirs = socket.socketpair()
child = subprocess.Popen(["pi", "sh", "wc -c; sleep 0.3; echo two"], stdin=theirs, stdout=theirs)
theirs.close()
own.sendall(b"x" * 100000)
own.shutdown(socket.SHUT_WR)
said = b""
while piece := own.recv(100):
    said += piece
print(said, child.wait())
"""
    assert machine.run(["python3", "-c", script], cwd=DEMO).stdout == b"b'100000\\ntwo\\n' 0\n"

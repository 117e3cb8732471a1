"""Runs in an emulated machine as root: commands from the host, a line of JSON each, through the virtio-serial port `commands`.

    {"user": "alice", "home": "/home/alice", "cwd": "/srv", "command": ["id"], "env": {}}     a command; its end is answered
    the same with "terminal": {"rows": 24, "columns": 80, "term": "xterm"}                     on a terminal, which the port `terminal` leads to
"""

import base64
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
from pathlib import Path

CHDIR = 'cd -- "$1" || exit 125; shift; exec "$@"'
USER_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"


def port(name):
    """Opened for reading and writing; there is no udev here that would name it."""
    (found,) = (entry for entry in Path("/sys/class/virtio-ports").iterdir() if (entry / "name").read_text().strip() == name)
    return os.open(f"/dev/{found.name}", os.O_RDWR)


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data) :]


def lines(fd):
    pending = b""
    while True:
        while b"\n" not in pending:
            pending += os.read(fd, 65536)
        line, pending = pending.split(b"\n", 1)
        yield json.loads(line)


def command_line(request):
    settings = {"LANG": "C.UTF-8", **({} if request["user"] == "root" else {"PATH": USER_PATH}), **request["env"]}
    line = ["setsid", "setpriv"] if "terminal" not in request else ["setpriv"]
    line += [f"--reuid={request['user']}", f"--regid={request['user']}", "--init-groups", "--reset-env"]
    return [*line, "env", *(f"{key}={value}" for key, value in settings.items()), "sh", "-c", CHDIR, "sh", request["cwd"], *request["command"]]


def run(request):
    done = subprocess.run(command_line(request), input=b"", capture_output=True)
    return {"status": done.returncode, "out": base64.b64encode(done.stdout).decode(), "err": base64.b64encode(done.stderr).decode()}


def run_on_terminal(request, outside):
    size = request["terminal"]
    request["env"]["TERM"] = size["term"]
    pid, terminal = pty.fork()
    if pid == 0:
        line = command_line(request)
        os.execvp(line[0], line)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size["rows"], size["columns"], 0, 0))
    while True:
        readable, _, _ = select.select([terminal, outside], [], [])
        try:
            if terminal in readable:
                write_all(outside, os.read(terminal, 65536))
            if outside in readable:
                write_all(terminal, os.read(outside, 65536))
        except OSError:  # EIO: nobody has the terminal open any more
            break
    return {"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "out": "", "err": ""}


def main():
    commands, terminal = port("commands"), port("terminal")
    write_all(commands, b'"ready"\n')
    for request in lines(commands):
        answer = run_on_terminal(request, terminal) if "terminal" in request else run(request)
        write_all(commands, json.dumps(answer).encode() + b"\n")


main()

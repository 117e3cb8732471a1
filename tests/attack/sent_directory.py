"""A directory of the host whose descriptor alice hands to whoever connects to a socket in her project, as inside can."""

import contextlib

from target import DEMO

DOOR = f"{DEMO}/door"
SEND = """
import os, socket, sys
path, directory = sys.argv[1:]
server = socket.socket(socket.AF_UNIX)
server.bind(path)
os.chmod(path, 0o777)
server.listen()
print("listening", flush=True)
peer, _ = server.accept()
socket.send_fds(peer, [b"x"], [os.open(directory, os.O_RDONLY | os.O_DIRECTORY)])
peer.recv(1)
os.unlink(path)
"""
# Inside: makes `fd` the directory.
TAKE = f"""
import errno, json, os, socket, sys
door = socket.socket(socket.AF_UNIX)
door.connect("{DOOR}")
_, (fd,), _, _ = socket.recv_fds(door, 1, 1)
"""


@contextlib.contextmanager
def sent(target, directory):
    """While it waits for somebody who takes it; ends when that one is gone."""
    server = target.machine.popen(["python3", "-c", SEND, DOOR, directory])
    assert server.stdout.readline() == b"listening\n", server.stderr.read()
    yield
    server.wait(timeout=10)
    for stream in (server.stdin, server.stdout, server.stderr):
        stream.close()

"""A file system of an unprivileged user's that leaves some requests unanswered for ever; layouts from <linux/fuse.h>, version 7.31."""

import ctypes
import os
import signal
import socket
import struct

from client import PR_SET_PDEATHSIG, enter_own_namespace, libc

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 17, 18, 25, 26
OPENDIR, READDIR, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET = 27, 28, 29, 34, 36, 42
NEVER_ANSWERED = (FORGET, INTERRUPT, BATCH_FORGET)
MS_NOSUID, MS_NODEV = 2, 4
ROOT, FILE, DIRECTORY = 1, 2, 3
NODES = {b"file": FILE, b"directory": DIRECTORY}
ENOENT, ENOSYS = 2, 38


def attributes(node):
    mode, links = (0o100666, 1) if node == FILE else (0o040755, 2)
    return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)


def answer(opcode, node, argument):
    """(error, bytes) for one request."""
    if opcode == INIT:
        return 0, struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8)
    if opcode == LOOKUP:
        found = NODES.get(argument.rstrip(b"\0"))
        if not found:
            return -ENOENT, b""
        return 0, struct.pack("<4Q2I", found, 0, 0, 0, 0, 0) + attributes(found)
    if opcode == GETATTR:
        return 0, struct.pack("<Q2I", 0, 0, 0) + attributes(node)
    if opcode == STATFS:
        return 0, struct.pack("<5Q10I", *[0] * 15)
    if opcode in (OPEN, OPENDIR):
        return 0, struct.pack("<Q2I", 1, 0, 0)
    if opcode in (RELEASE, FLUSH, READ, READDIR, RELEASEDIR, ACCESS):
        return 0, b""
    return -ENOSYS, b""


def serve(device, unanswered):
    while True:
        try:
            data = os.read(device, 1 << 20)
        except OSError as failure:
            if failure.errno in (ENOENT, 4):
                continue
            os._exit(0)
        _, opcode, unique, node = struct.unpack_from("<2I2Q", data)
        if opcode in unanswered or opcode in NEVER_ANSWERED:
            continue
        error, body = answer(opcode, node, data[40:])
        os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


def hanging(name, unanswered, flags=os.O_RDWR):
    """(pid of the server, descriptor of `name` in such a file system). Killing the server ends all waiting for it."""
    here, there = socket.socketpair()
    server = os.fork()
    if server:
        there.close()
        _, fds, _, _ = socket.recv_fds(here, 1, 1)
        return server, fds[0]
    # The caller's descriptors are closed here: an end of the wrapper's socket would keep the wrapper alive in the runner's eyes.
    os.closerange(3, there.fileno())
    os.closerange(there.fileno() + 1, 1024)
    point = f"/tmp/hanging-{os.getpid()}"
    os.mkdir(point)
    enter_own_namespace()
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"hanging", point.encode(), b"fuse", MS_NOSUID | MS_NODEV, options) != 0:
        print("mount:", os.strerror(ctypes.get_errno()), flush=True)
        os._exit(1)
    if os.fork() == 0:
        os.close(device)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        socket.send_fds(there, [b"x"], [os.open(f"{point}/{name}", flags)])
        signal.pause()  # leaving would close it, and wait
    serve(device, unanswered)

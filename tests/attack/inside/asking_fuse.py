"""As root: mounts a file system on argv[1] as fusermount does for alice, can be id-mapped, served by her; writes down who of root asks it.

It says "serving" and then, for each request of a process of root's, that process's name. It answers all of them, so nobody has to wait.
"""

import ctypes
import os
import struct
import sys

import fuse
from client import libc

ALICE = 1000
INIT_EXT, ALLOW_IDMAP = 1 << 30, 1 << (40 - 32)  # the latter in the second word of flags; both from <linux/fuse.h>, version 7.42


def attributes(node):
    mode, links = (0o100666, 1) if node == fuse.FILE else (0o040755, 2)
    return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, links, ALICE, ALICE, 0, 4096, 0)


def answer(opcode, node, argument):
    if opcode == fuse.INIT:
        return 0, struct.pack("<4I2H2I2H8I", 7, 42, 0, INIT_EXT, 0, 0, 4096, 1, 0, 0, ALLOW_IDMAP, *[0] * 7)
    if opcode in (fuse.LOOKUP, fuse.GETATTR):
        fuse.attributes = attributes
    return fuse.answer(opcode, node, argument)


def name_of_root(pid):
    """The program of a process, when root owns that program."""
    try:
        status = dict(line.rstrip("\n").split(":", 1) for line in open(f"/proc/{pid}/status"))
    except OSError:
        return None
    return status["Name"].strip() if status["Uid"].split()[0] == "0" and status["Uid"].split()[3] == "0" else None


def serve(device):
    while True:
        try:
            data = os.read(device, 1 << 20)
        except OSError as failure:
            if failure.errno in (fuse.ENOENT, 4):
                continue
            return
        _, opcode, unique, node, _, _, pid = struct.unpack_from("<2I2Q3I", data)
        if opcode in fuse.NEVER_ANSWERED:
            continue
        if name := name_of_root(pid):
            print(name, flush=True)
        error, body = answer(opcode, node, data[40:])
        os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id={ALICE},group_id={ALICE},allow_other,default_permissions".encode()
if libc.mount(b"of-alice", sys.argv[1].encode(), b"fuse", fuse.MS_NOSUID | fuse.MS_NODEV, options) != 0:
    raise OSError(ctypes.get_errno(), "mount")
os.setgroups([])
os.setresgid(ALICE, ALICE, ALICE)
os.setresuid(ALICE, ALICE, ALICE)
print("serving", flush=True)
serve(device)

"""A user's file system that claims that root owns its one file: forged_fuse.py POINT UID TEXT mounts it as fusermount3 would with allow_other, says so, and serves as that user."""

import ctypes
import os
import struct
import sys

import fuse
from client import libc

point, uid, text = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode() + b"\n"


def attributes(node):
    mode, links, size = (0o100600, 1, len(text)) if node == fuse.FILE else (0o040755, 2, 0)
    return struct.pack("<6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)


def answer(opcode, node, argument):
    if opcode == fuse.READ:
        _, offset, size = struct.unpack_from("<2QI", argument)
        return 0, text[offset : offset + size]
    return plain(opcode, node, argument)


plain, fuse.answer, fuse.attributes = fuse.answer, answer, attributes
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id={uid},group_id={uid},allow_other".encode()
if libc.mount(b"forged", point.encode(), b"fuse", fuse.MS_NOSUID | fuse.MS_NODEV, options) != 0:
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
os.setgid(uid)
os.setuid(uid)
print("serving", flush=True)
fuse.serve(device, ())

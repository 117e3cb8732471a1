"""An agent that wants more disk than its user may have: out of the quota's project."""

import pytest
from target import Outcome

pytestmark = pytest.mark.position("agent")

# FS_IOC_FSGETXATTR and FS_IOC_FSSETXATTR, with what the file has and then without a project; FS_IOC_SETFLAGS with what a directory has, without
# FS_PROJINHERIT_FL; file_setattr(2) without a project. On a file system without projects they change nothing, and succeed where nobody
# refuses them.
LEAVE = """
import ctypes, fcntl, json, os, struct
answers = {}
def tried(name, fd, number, data):
    try:
        fcntl.ioctl(fd, number, data)
        answers[name] = "done"
    except OSError as failure:
        answers[name] = os.strerror(failure.errno)
libc = ctypes.CDLL(None, use_errno=True)
path = os.path.expanduser("~/of-the-project")
os.makedirs(path, exist_ok=True)
fd = os.open(path, os.O_RDONLY)
facts = bytearray(28)
fcntl.ioctl(fd, 0x801C581F, facts)
tried("same", fd, 0x401C5820, bytes(facts))
flags = bytearray(8)
fcntl.ioctl(fd, 0x80086601, flags)
tried("flags", fd, 0x40086602, struct.pack("l", struct.unpack("l", flags)[0] & ~0x20000000))
tried("no project", fd, 0x401C5820, bytes(facts[:12]) + bytes(4) + bytes(facts[16:]))
xflags, extsize, _, _, cow_extsize = struct.unpack("5I", facts[:20])
failed = libc.syscall(469, -100, path.encode(), struct.pack("=Q4I", xflags, extsize, 0, 0, cow_extsize), ctypes.c_long(24), 0)
answers["file_setattr"] = os.strerror(ctypes.get_errno()) if failed else "done"
os.rmdir(path)
print(json.dumps(answers))
"""
LIMIT = "limits: {disk: 10G}"


def leaves(target):
    answers = target.python(LEAVE)
    return Outcome("done" in answers.values(), answers)


def test_files_stay_under_the_quota(prove, product, weak):
    with product.policy_with(LIMIT), weak.policy_with(LIMIT):
        on, off = prove(leaves, "attribute-filter")
    assert set(on.seen.values()) == {"Operation not supported"} and off.seen["same"] == "done", (on, off)


def test_without_a_limit_attributes_change_as_outside(product, control_seen):
    assert "done" in product.python(LEAVE).values()
    control_seen("the same calls succeed without the key")


def test_files_stay_under_the_quota_under_bwrap_too(prove, product, weak):
    section = f"{LIMIT}\nsandbox: {{method: bwrap}}"
    with product.policy_with(section), weak.policy_with(section):
        prove(leaves, "attribute-filter")


def test_a_quota_is_neither_asked_for_nor_set_inside(product, control_seen):
    look = "import ctypes, os; print(ctypes.CDLL(None, use_errno=True).syscall(443, os.open(os.path.expanduser('~'), os.O_RDONLY), 0x80000802, 0, None), ctypes.get_errno())"
    with product.policy_with(LIMIT):
        inside = product.pi("python3", "-c", look)
    outside = product.machine.root(["python3", "-c", look])
    assert inside.stdout == b"-1 1\n", inside  # EPERM, before the kernel looks at it
    assert outside.returncode == 0 and outside.stdout != inside.stdout, outside
    control_seen("root on the host gets another answer to the same call")

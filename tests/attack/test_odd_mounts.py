"""Projects on mounts that are not like others: served by a program of the user's, id-mapped already; and names that differ in case alone."""

import contextlib

import pytest
from target import DEMO, INSIDE, Outcome

pytestmark = pytest.mark.position("user")

UNAVAILABLE, DENIED = 69, 77
APP = "/srv/shared/app"


@contextlib.contextmanager
def file_system_of_alice(target):
    """On the root /srv/shared/app. Yields what tells which programs of root's have asked it."""
    server = target.machine.popen(["python3", f"{INSIDE}/asking_fuse.py", APP], user="root")
    assert server.stdout.readline() == b"serving\n", server.stderr.read()
    told = []

    def programs():
        server.kill_all()
        told.extend(line.decode().strip() for line in server.stdout)
        return told

    try:
        yield programs
    finally:
        server.kill_all()
        server.communicate()
        target.machine.root(["umount", "--lazy", APP], check=True)


def test_root_asks_no_program_of_its_users_for_a_file(prove):
    """Its user's program answers when it likes, and root would wait beyond SIGKILL, with a lock, mounts and a connection to the bus."""

    def attack(target):
        before = target.quiet_traces()
        with target.policy_with("projects: {protect: [directory, file]}"), file_system_of_alice(target) as programs:
            done = target.pi("true", cwd=APP)
            asked = [name for name in programs() if name.startswith("pi-agent")]
        target.expect_traces(before, seconds=20)
        return Outcome(bool(asked), (asked, done))

    on, _ = prove(attack, "fuse-projects")
    done = on.seen[1]
    assert done.returncode == UNAVAILABLE and b"a program answers for the file system of /srv/shared/app (fuse)" in done.stderr, done


def test_a_project_that_lies_on_another_file_system_than_such_a_program_serves_starts(product):
    """What is mounted inside a project is hidden, and asked as little as the project itself would be."""
    product.machine.run(["mkdir", "-p", f"{DEMO}/served"], check=True)
    server = product.machine.popen(["python3", f"{INSIDE}/asking_fuse.py", f"{DEMO}/served"], user="root")
    try:
        assert server.stdout.readline() == b"serving\n", server.stderr.read()
        done = product.pi("sh", "-c", f"ls -A {DEMO}/served")
        server.kill_all()
        asked = [line for line in server.stdout if line.startswith(b"pi-agent")]
    finally:
        server.kill_all()
        server.communicate()
        product.machine.root(f"umount --lazy {DEMO}/served; rmdir {DEMO}/served", check=True)
    assert done.returncode == 0 and done.stdout == b"" and not asked, (done, asked)


# As root: /srv/shared/app becomes an id-mapped mount of itself, on which uid 1000 of the disk is 1000, too.
MAP = f"""
import ctypes, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    result = libc.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), str(arguments[0]))
    return result
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    call(272, 0x10000000)  # unshare: CLONE_NEWUSER
    os.write(writing, b"x")
    time.sleep(60)
    os._exit(0)
os.read(reading, 1)
for kind in ("uid", "gid"):
    with open(f"/proc/{{child}}/{{kind}}_map", "w") as file:
        file.write("0 0 65536")
namespace = os.open(f"/proc/{{child}}/ns/user", os.O_RDONLY)
tree = call(428, -100, b"{APP}", 1)  # open_tree: OPEN_TREE_CLONE
call(442, tree, b"", 0x1000, struct.pack("<4Q", 0x100000, 0, 0, namespace), 32)  # mount_setattr: MOUNT_ATTR_IDMAP
call(429, tree, b"", -100, b"{APP}", 4)  # move_mount: MOVE_MOUNT_F_EMPTY_PATH
os.kill(child, 9)
"""


def test_a_project_that_is_id_mapped_already_is_refused_in_words(product):
    """A mapping of somebody else's, under which the agent's files would be who knows whose. The kernel maps nothing twice."""
    assert product.pi("true", cwd=APP).returncode == 0
    product.machine.root(["python3", "-c", MAP], check=True)
    try:
        mapped = b"idmapped" in product.machine.root(f"grep ' {APP} ' /proc/self/mountinfo", check=True).stdout
        done = product.pi("touch", f"{APP}/of-the-agent", cwd=APP)
    finally:
        product.machine.root(["umount", APP], check=True)
    assert mapped, "the mount is none that is id-mapped, so this proves nothing"
    assert done.returncode == UNAVAILABLE and b"is id-mapped already" in done.stderr, done
    assert product.machine.root(["test", "-e", f"{APP}/of-the-agent"]).returncode == 1


def test_names_that_differ_in_case_alone_are_two(product):
    """Names are compared byte by byte, as ext4, xfs and btrfs do. (A directory with casefold is opened by the name that the kernel tells.)"""
    other = "/home/alice/Projects/demo"
    product.machine.run(["mkdir", "-p", other], check=True)
    try:
        wrapper = product.pi("true", cwd=other)
        answer = product.play(f"tell(call(lambda c, s: ask(c, s, ['true'], cwd={other!r})))")
    finally:
        product.machine.run(["rm", "-r", "/home/alice/Projects"], check=True)
    assert wrapper.returncode == DENIED and b"is outside the project roots of alice" in wrapper.stderr, wrapper
    assert answer["ended"] is None and answer["status"] == DENIED and "/home/alice/Projects/demo is outside" in answer["said"], answer
    assert product.play(f"tell(call(lambda c, s: ask(c, s, ['true'], cwd={DEMO!r})))")["ended"] == 0

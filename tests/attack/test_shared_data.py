"""Data of others beside a project (`readable: [/data/sets]`): by no link that others than root can change, and not around the rules of a root."""

import contextlib

import pytest
from points import read_line
from target import POLICY_FILE, Outcome

pytestmark = pytest.mark.position("agent")

SECRET = b"quokka-data-4471"
MADE = f"""
mkdir -p /data/sets /data/others; echo {SECRET.decode()} >/data/others/file; echo open >/data/sets/file; chmod 755 /data /data/sets /data/others
install -d -m 777 -o alice /data/writable; ln -sfn /data/others /data/writable/link; chown -h alice /data/writable/link
install -d -o alice /srv/shared/app/data; echo {SECRET.decode()} >/srv/shared/app/data/.env; chown alice /srv/shared/app/data/.env
"""


@contextlib.contextmanager
def readable(target, path, section=""):
    target.machine.root(MADE, check=True)
    try:
        with target.policy_with(section):
            policy = target.machine.read(POLICY_FILE).decode()
            target.machine.write(POLICY_FILE, policy.replace("    env: {PER_USER_MARKER", f"    readable: [{path}]\n    env: {{PER_USER_MARKER"))
            yield
    finally:
        target.machine.root("rm -rf /data /srv/shared/app/data", check=True)


def test_a_link_that_an_agent_may_have_made_leads_nowhere(prove):
    def attack(target):
        with readable(target, "/data/writable/link"):
            done = target.pi("cat", "/data/others/file")
        return Outcome(SECRET in done.stdout, done)

    prove(attack, "root-links")


def test_what_a_root_masks_is_not_shown_beside_another(prove):
    def attack(target):
        with readable(target, "/srv/shared/app/data", "projects: {mask: [.env]}"):
            done = target.pi("cat", "/srv/shared/app/data/.env")
        return Outcome(SECRET in done.stdout, done)

    prove(attack, "data-beside-roots")


def test_nothing_is_changed_there(product, control_seen):
    """Though it is the user's own, and its mode would let the agent."""
    with readable(product, "/data/writable"):
        done = product.pi("sh", "-c", "echo x >/data/writable/new; rm /data/writable/link; chmod 777 /data/writable; mount -o remount,rw,bind /data/writable")
        assert done.stderr.count(b"Read-only file system") >= 3, done
        assert product.machine.root("ls -A /data/writable").stdout == b"link\n"
        assert product.machine.run(["touch", "/data/writable/new"], user="alice").returncode == 0
        control_seen("the user writes there")


@pytest.mark.position("user")
def test_the_group_of_the_data_is_given_only_with_it(product, control_seen):
    def has(group):
        """By a file that it alone may read: in a user namespace id(1) does not say which group it is."""
        product.machine.root(f"echo {SECRET.decode()} >/data/sets/of; chgrp {group} /data/sets/of; chmod 640 /data/sets/of", check=True)
        return SECRET in product.pi("cat", "/data/sets/of").stdout

    product.machine.root("groupadd -f genomes; usermod -aG genomes,disk alice", check=True)
    try:
        own = product.machine.run(["id", "-gn"], user="alice", check=True).stdout.decode().strip()
        with readable(product, "/data/sets"):
            assert not has("genomes")
            product.machine.root("chgrp genomes /data/sets", check=True)
            assert not has("genomes"), "it is open to all: the group would open other things alone"
            for closed in ("chmod 750", "chmod 751", "chmod 754"):
                product.machine.root(f"{closed} /data/sets", check=True)
                assert has("genomes"), closed
            control_seen("with the data the session has its group")
            for other in ("disk", own):
                product.machine.root(f"chgrp {other} /data/sets; chmod 750 /data/sets", check=True)
                assert not has(other), other
            product.machine.root("gpasswd -d alice genomes; chgrp genomes /data/sets", check=True)
            assert not has("genomes")
    finally:
        product.machine.root("gpasswd -d alice genomes; gpasswd -d alice disk; groupdel genomes; true", check=True)


SERVING = f"""
import os, socket
os.umask(0o022)
server = socket.socket(socket.AF_UNIX); server.bind("/data/writable/socket"); server.listen(); print("there", flush=True)
while True: server.accept()[0].sendall({SECRET!r})
"""
CONNECTING = "import socket\none = socket.socket(socket.AF_UNIX); one.connect('/data/writable/socket'); print(one.recv(100))"


def test_the_users_own_sockets_and_private_files_there_stay_the_users(product, control_seen):
    with readable(product, "/data/writable"):
        server = product.machine.popen(["python3", "-c", SERVING], user="alice")
        try:
            assert read_line(server) == b"there\n"
            product.machine.root("install -m 600 -o alice /data/others/file /data/writable/private", check=True)
            for command in (["python3", "-c", CONNECTING], ["cat", "/data/writable/private"]):
                done = product.pi(*command)
                assert SECRET not in done.stdout and b"Permission denied" in done.stderr, done
                assert SECRET in product.machine.run(command, user="alice", check=True).stdout
            control_seen("the user has both")
        finally:
            server.kill_all()
            server.communicate()


@pytest.mark.position("outsider")
def test_who_makes_a_users_root_first_does_not_share_it(prove):
    """Where users make their own directories, as on many clusters."""

    def attack(target):
        target.machine.root("install -d -m 1777 /scratch", check=True)
        try:
            target.machine.run(["mkdir", "-m", "777", "/scratch/alice"], user="bob", check=True)
            with target.policy_with(""):
                policy = target.machine.read(POLICY_FILE).decode()
                target.machine.write(POLICY_FILE, policy.replace("[~/projects, /srv/shared/app]", "[~/projects, '/scratch/{user}']"))
                done = target.pi("sh", "-c", "echo ran >made; cat made", cwd="/scratch/alice")
        finally:
            target.machine.root("rm -rf /scratch", check=True)
        return Outcome(done.stdout == b"ran\n", done)

    on, _ = prove(attack, "users-own-root")
    assert b"it belongs to somebody else than alice or root" in on.seen.stderr, on

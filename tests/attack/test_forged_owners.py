"""What root takes for root's own file though somebody else says so: the server of a FUSE file system chooses the owners that stat(2) tells."""

import pytest
from target import ATTACK_POLICY, INSIDE, Outcome

pytestmark = pytest.mark.position("user")

POINT = "/srv/mine"
MARK = "quoll-forged-2216"


@pytest.fixture(autouse=True)
def policy_comes_back(product, weak):
    yield
    for target in (product, weak):
        target.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text())


def test_a_file_that_a_users_file_system_calls_roots_is_not_read_as_roots(prove):
    """With user_allow_other in /etc/fuse.conf users mount what root sees as well; the directory below was the user's."""

    def attack(target):
        target.machine.root(f"install -d -o alice {POINT}", check=True)
        server = target.machine.popen(["python3", f"{INSIDE}/forged_fuse.py", POINT, "1000", f"FORGED={MARK}"], user="root", cwd="/")
        try:
            assert server.stdout.readline() == b"serving\n"
            assert target.machine.root(["stat", "-c", "%u %a", f"{POINT}/file"], check=True).stdout == b"0 600\n"
            target.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text() + f"env_files: [{POINT}/file]\n")
            done = target.pi("printenv", "FORGED")
        finally:
            target.machine.root(f"umount -l {POINT}; rmdir {POINT}", check=True)
            server.kill_all()
        return Outcome(MARK.encode() in done.stdout, done)

    on, _ = prove(attack, "trusted-fuse")
    assert on.seen.returncode == 78 and b"a file system that a user serves (FUSE)" in on.seen.stderr, on

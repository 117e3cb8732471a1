"""A root that holds keys does not count as a root, whoever wrote it into the policy and whatever name leads to it."""

import contextlib

import pytest
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("agent")

KEY = "quokka-key-5519"
# The directory in which the user types pi, and the root that the policy names.
ROOTS = {
    "~/.ssh": "/home/alice/.ssh",
    "~/.ssh/keys": "/home/alice/.ssh/keys",
    "~/.config": "/home/alice/.config",
    "~/.local": "/home/alice/.local",
    "~/.gnupg": "/home/alice/.gnupg",
    "~/.aws/cli": "/home/alice/.aws/cli",
    "/home/alice/.kube": "/home/alice/.kube",
    "/srv/shared/ci/.ssh": "/srv/shared/ci/.ssh",
    "/srv/shared/link": "/home/alice/.ssh",
}


@contextlib.contextmanager
def root_of_alice(target, root, place):
    target.machine.root(f"ln -sfn /home/alice/.ssh /srv/shared/link; test -d {place} && touch /run/was-there; install -d -o alice -g alice {place}", check=True)
    target.machine.root(f"echo {KEY} >{place}/key; chown alice: {place}/key; chmod 600 {place}/key", check=True)
    target.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text().replace("~/projects", f"~/projects, {root}", 1))
    try:
        yield
    finally:
        target.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text())
        target.machine.root(f"rm -f {place}/key /srv/shared/link; test -e /run/was-there || rm -r {place}; rm -rf /run/was-there /srv/shared/ci", check=True)


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_that_holds_keys_is_refused(root, prove):
    def attack(target):
        with root_of_alice(target, root, ROOTS[root]):
            done = target.pi("sh", "-c", "cat key; echo mine >>authorized_keys; rm -f authorized_keys", cwd=ROOTS[root])
            checked = target.machine.root(["pi-agentctl", "check"])
            return Outcome(KEY.encode() in done.stdout, (done, checked))

    on, _ = prove(attack, "root-secrets", quick=True)
    done, checked = on.seen
    assert done.returncode == 78, on
    assert checked.returncode == 78 and b"which no session is shown" in checked.stdout + checked.stderr, on

"""The keys that the policy names for a user, for ssh and for signatures: root lends nobody its eyes for it, and who is not its user's agent does not get it."""

import pytest
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("user")

KEY = "/home/alice/.ssh/id_agent"
MARK = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"
LOOKS_LIKE_ONE = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{MARK}AAAA\n-----END OPENSSH PRIVATE KEY-----\n"
POLICY = ATTACK_POLICY.read_text().replace("alice:\n", "alice:\n    ssh: {key: .ssh/id_agent}\n    signing: {key: .ssh/id_agent}\n")
COPIES = {"ssh": "/run/pi-agent/ssh/key", "signing": "/run/pi-agent/signing/key"}


@pytest.fixture(autouse=True)
def with_key(product, weak):
    for target in (product, weak):
        target.machine.install_policy(POLICY)
        target.machine.root("install -d -o alice -g alice -m 700 /home/alice/.ssh", check=True)
    yield
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text())
        # A start without `become-user` has made root's directories in the agent's home.
        target.machine.root("rm -rf /home/alice/.ssh /root/key /var/lib/pi-agent/users/alice; chmod 700 /root", check=True)


@pytest.mark.parametrize("what", COPIES)
def test_a_link_to_a_key_of_roots_brings_nothing_of_it(what, prove):
    def attack(target):
        target.machine.write("/root/key", LOOKS_LIKE_ONE, mode=0o600)
        target.machine.root("chmod 711 /root", check=True)
        target.machine.run(["ln", "-sfn", "/root/key", KEY], check=True)
        done = target.pi("cat", COPIES[what])
        return Outcome(MARK.encode() in done.stdout, done)

    on, _ = prove(attack, "become-user", quick=True)
    assert KEY.encode() in on.seen.stderr and b"Permission denied" in on.seen.stderr


@pytest.mark.position("agent")
@pytest.mark.parametrize("what", COPIES)
def test_another_users_session_of_the_same_account_does_not_see_it(what, product, control_seen):
    copy = COPIES[what]
    product.machine.write(KEY, LOOKS_LIKE_ONE, owner="alice", mode=0o600)
    session = product.session("sh", "-c", f"echo $PI_AGENT_SESSION; cat {copy} >/dev/null && sleep 60")
    search = f"cat {copy} /proc/*/root{copy}; true"
    other = product.pi("sh", "-c", search, user="bob", cwd="/home/bob/work/demo")
    outside = product.machine.run(f"cat /run/pi-agent/sessions/{session.id}{copy}; true")
    session.end()
    assert MARK.encode() not in other.stdout + outside.stdout, (other, outside)
    assert MARK.encode() in product.pi("cat", copy).stdout
    control_seen("the user's own session reads it there")

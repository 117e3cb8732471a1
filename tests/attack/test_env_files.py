"""Files of variables: they lend nobody root's eyes, and a secret that others can read is not taken for one."""

import time

import pytest
from target import ATTACK_POLICY, INSIDE, Outcome

pytestmark = pytest.mark.position("user")

HOST_FILE = "/home/alice/.pi/agent/env"
MANAGED_FILE = "/etc/pi-agent/env"
SECRET = "quoll-4410"


@pytest.fixture(autouse=True)
def clean(product, weak):
    yield
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text())
        # A start without `become-user` has made root's directories in the agent's home.
        target.machine.root(["rm", "-rf", HOST_FILE, MANAGED_FILE, "/root/.env", "/var/lib/pi-agent/users/alice"], check=True)


def test_a_users_file_that_leads_to_a_file_of_roots_brings_nothing_of_it(prove):
    def attack(target):
        target.machine.write("/root/.env", f"STOLEN={SECRET}\n", mode=0o600)
        target.machine.root("chmod 711 /root", check=True)
        target.machine.run(["ln", "-sfn", "/root/.env", HOST_FILE], check=True)
        done = target.pi("printenv", "STOLEN")
        return Outcome(SECRET.encode() in done.stdout + done.stderr, done)

    on, _ = prove(attack, "become-user", quick=True)
    assert on.seen.returncode == 78 and f"{HOST_FILE} is not a file that you can read".encode() in on.seen.stderr


def test_a_managed_file_that_everybody_can_read_is_not_used_as_if_it_were_secret(prove):
    def attack(target):
        target.machine.write(MANAGED_FILE, f"API_KEY={SECRET}\n", mode=0o600)
        target.machine.install_policy(ATTACK_POLICY.read_text() + f"env_files: [{MANAGED_FILE}]\n")
        target.machine.root(["chmod", "644", MANAGED_FILE], check=True)  # later, by hand: apply refuses it
        used = target.pi("printenv", "API_KEY")
        read = target.machine.run(["cat", MANAGED_FILE], user="eve")
        return Outcome(SECRET.encode() in used.stdout and SECRET.encode() in read.stdout, used)

    on, _ = prove(attack, "env-file-mode")
    assert on.seen.returncode == 78 and b"is readable for others than root" in on.seen.stderr


def test_a_users_file_that_never_answers_delays_that_users_start_alone_and_not_for_long(product):
    product.machine.run(["mkfifo", HOST_FILE], check=True)
    began = time.monotonic()
    done = product.pi("true")
    assert done.returncode == 78 and time.monotonic() - began < 5, done


def test_a_value_of_the_policys_files_lies_in_the_memory_of_the_agent_alone(prove, control_seen):
    """Root's runner forks children with the user's and the agent's rights all the time, and each has its memory."""

    def having(target, *pids):
        return target.machine.root(["python3", f"{INSIDE}/memory.py", SECRET, *map(str, pids)], check=True).stdout.split()

    def attack(target):
        target.machine.write(MANAGED_FILE, f"API_KEY={SECRET}\n", mode=0o600)
        target.machine.install_policy(ATTACK_POLICY.read_text() + f"env_files: [{MANAGED_FILE}]\n")
        session = target.session("sh", "-c", 'echo $PI_AGENT_SESSION; sleep 60; echo "$API_KEY"')
        try:
            assert having(target, *session.agent_pids()), "the agent itself should have it"
            found = having(target, session.runner_pid(), session.receiver_pid())
        finally:
            session.end()
        return Outcome(bool(found), found)

    prove(attack, "late-secrets")
    control_seen("the same look finds it in the memory of the agent")

"""Variables that name files of certificates: what root copies for the agent is what its user may read, and nothing but certificates."""

import pytest
from target import Outcome

pytestmark = pytest.mark.position("user")

HOST_FILE = "/home/alice/.pi/agent/env"
MARK = "quokka-5520"
LOOKS_LIKE_ONE = f"-----BEGIN CERTIFICATE-----\n{MARK}\n-----END CERTIFICATE-----\n"


@pytest.fixture(autouse=True)
def clean(product, weak):
    yield
    for target in (product, weak):
        # A start without `become-user` has made root's directories in the agent's home.
        target.machine.root(["rm", "-rf", HOST_FILE, "/root/ca.pem", "/home/bob/ca.pem", "/home/alice/notes", "/home/alice/link", "/var/lib/pi-agent/users/alice"], check=True)
        target.machine.root("chmod 700 /root /home/bob", check=True)


def get(target, path):
    """What the agent finds where SSL_CERT_FILE leads, beside what pi says."""
    target.machine.write(HOST_FILE, f"SSL_CERT_FILE={path}\n", owner="alice")
    return target.pi("sh", "-c", "cat \"$SSL_CERT_FILE\" /run/pi-agent/ca/*")


@pytest.mark.parametrize("place", ["/root/ca.pem", "/home/bob/ca.pem", "/home/alice/link"])
def test_a_file_of_somebody_else_is_not_copied_for_a_variable_of_the_users(prove, place):
    def attack(target):
        real = "/root/ca.pem" if "alice" in place else place
        target.machine.root("chmod 711 /root /home/bob", check=True)
        target.machine.write(real, LOOKS_LIKE_ONE, mode=0o600)
        target.machine.run(["ln", "-sfn", "/root/ca.pem", "/home/alice/link"], check=True)
        done = get(target, place)
        return Outcome(MARK.encode() in done.stdout + done.stderr, done)

    on, _ = prove(attack, "become-user", quick=True)
    assert b"SSL_CERT_FILE" in on.seen.stderr and b"Permission denied" in on.seen.stderr


def test_passwords_are_not_certificates_even_to_who_could_read_them(prove):
    def attack(target):
        done = get(target, "/etc/shadow")
        return Outcome(b"root:" in done.stdout, done)

    prove(attack, "become-user", "certificates-only", quick=True)


def test_a_users_own_notes_are_not_copied_by_mistake(prove):
    def attack(target):
        target.machine.write("/home/alice/notes", f"{MARK}\n", owner="alice", mode=0o600)
        done = get(target, "/home/alice/notes")
        return Outcome(MARK.encode() in done.stdout, done)

    prove(attack, "certificates-only", quick=True)


def test_a_file_that_never_answers_is_told_and_the_session_starts(product):
    product.machine.run(["mkfifo", "/home/alice/notes"], check=True)
    done = get(product, "/home/alice/notes")
    assert b"SSL_CERT_FILE" in done.stderr and b"not a regular file" in done.stderr, done

"""Commits and tags of the agent are signed with the key that the policy names, where the user's settings or the repository's say so."""

import pytest
from launching import PLAYING_POLICY, messages, pi

KEY = "/home/alice/.ssh/id_signing"
INSIDE = "/run/pi-agent/signing/key"
WITH_KEY = PLAYING_POLICY.replace("alice:\n", "alice:\n    signing: {key: .ssh/id_signing}\n")
PLACE = "/home/alice/projects/signed"
WORK = "set -e; git commit -q --allow-empty -m one; git tag -a -m one v1; git log -1 --format=%G?; git verify-commit HEAD 2>&1 | cut -d ' ' -f 1-4"

pytestmark = pytest.mark.usefixtures("playing")


@pytest.fixture(autouse=True)
def signing(machine, playing_policy):
    before = machine.read("/home/alice/.gitconfig")
    machine.run(f"mkdir -p ~/.ssh; ssh-keygen -q -t ed25519 -N '' -C signing -f {KEY} </dev/null; git init -q {PLACE}", cwd="/home/alice", check=True)
    machine.run(f"echo \"alice@x $(cat {KEY}.pub)\" >allowed; git config gpg.ssh.allowedSignersFile allowed", cwd=PLACE, check=True)
    machine.run("git config --global user.email alice@x; git config --global user.signingKey ~/.ssh/other.pub", cwd="/home/alice", check=True)
    playing_policy(WITH_KEY)
    yield
    machine.root(f"rm -rf /home/alice/.ssh {PLACE}", check=True)
    machine.write("/home/alice/.gitconfig", before, "alice")


@pytest.mark.parametrize("where", ["", "--global "])
def test_a_commit_is_signed_where_somebody_wants_it(where, machine):
    machine.run(f"git config {where}commit.gpgSign true; git config {where}gpg.format ssh", cwd=PLACE, check=True)
    done = pi(machine, "sh", WORK, cwd=PLACE)
    assert (done.returncode, done.stdout, messages(done)) == (0, b"G\nGood \"git\" signature for\n", []), done
    assert machine.run("git log --format=%G?", cwd=PLACE, check=True).stdout == b"G\n"


def test_none_is_signed_where_nobody_does(machine):
    done = pi(machine, "sh", "git commit -q --allow-empty -m one; git log -1 --format=%G?; git commit -q -S --allow-empty -m two; git log -1 --format=%G?", cwd=PLACE)
    assert (done.returncode, done.stdout) == (0, b"N\nG\n"), done


def test_the_copy_is_the_agents_to_read_and_nobodys_to_change(machine):
    done = pi(machine, "sh", f"stat -c %a {INSIDE}; cmp {INSIDE} {INSIDE} && echo read; (echo x >>{INSIDE}; rm -f {INSIDE}; chmod 644 {INSIDE}) 2>/dev/null || echo kept", cwd=PLACE)
    assert done.stdout == b"440\nread\nkept\n", done
    assert f"signing:  a copy of {KEY}\n" in machine.run(["pi", "--pi-agent-explain"], cwd=PLACE, check=True).stdout.decode()


def test_a_key_that_cannot_be_used_is_told_and_commits_go_on_unsigned(machine):
    machine.run(f"ssh-keygen -q -p -N secret -f {KEY}; git -C {PLACE} config commit.gpgSign true", cwd="/home/alice", check=True)
    done = pi(machine, "sh", "git commit -q --allow-empty -m one; git log -1 --format=%G?", cwd=PLACE)
    assert (done.returncode, done.stdout) == (0, b"N\n"), done
    assert any(line.startswith(f"pi: signing: the agent's git cannot use the key {KEY}: it has a passphrase") for line in messages(done)), done

"""git push and fetch without the user's ssh-agent: to a path, over ssh with a key that the policy names, over HTTPS with a token of env_files."""

import base64
from pathlib import Path

import pytest
from launching import PLAYING_POLICY, agent_says, pi, read_line

pytestmark = pytest.mark.usefixtures("playing")

PROJECT = "/home/alice/projects/pushed"
FORGE = "/srv/forge"
SSH_PORT, HTTPS_PORT = 2222, 8443
TOKEN = "quokka-token-9914"
KEY = "/home/alice/.ssh/id_agent"
WITH_KEY = PLAYING_POLICY.replace("alice:\n", "alice:\n    ssh: {key: .ssh/id_agent}\n")
INSIDE = "/run/pi-agent/ssh"
assert WITH_KEY != PLAYING_POLICY


@pytest.fixture(scope="module")
def forge(machine, playing):
    """A bare repository of another account, served by sshd and over HTTPS; alice's key may push there, and she knows the host."""
    machine.root(
        f"""set -e
        useradd --system --home-dir {FORGE} --shell /bin/sh --password '*' forge; install -d -o forge {FORGE}
        setpriv --reuid=forge --clear-groups git init -q --bare {FORGE}/repository.git
        ssh-keygen -q -t ed25519 -N '' -f {FORGE}/host; mkdir -p /run/sshd
        install -d -o alice -g alice -m 700 /home/alice/.ssh
        setpriv --reuid=alice --clear-groups ssh-keygen -q -t ed25519 -N '' -C agent -f {KEY}
        cp {KEY}.pub {FORGE}/authorized; chmod 644 {FORGE}/authorized
        echo "[127.0.0.1]:{SSH_PORT} $(cut -d ' ' -f 1,2 {FORGE}/host.pub)" >/home/alice/.ssh/known_hosts; chown alice: /home/alice/.ssh/*
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \\
            -addext subjectAltName=DNS:localhost -keyout {FORGE}/tls.key -out {FORGE}/tls.pem 2>/dev/null
        chmod 644 {FORGE}/tls.*
        """,
        check=True,
    )
    settings = [f"Port={SSH_PORT}", "ListenAddress=127.0.0.1", f"HostKey={FORGE}/host", f"AuthorizedKeysFile={FORGE}/authorized"]
    settings += ["UsePAM=no", "StrictModes=no", "PasswordAuthentication=no"]
    sshd = machine.popen(["/usr/sbin/sshd", "-D", "-f", "/dev/null", *(f"-o{setting}" for setting in settings)], user="root")
    script = Path(__file__).with_name("git_forge.py").read_text()
    program = ["python3", "-c", script, FORGE, f"{FORGE}/tls.pem", f"{FORGE}/tls.key", str(HTTPS_PORT), TOKEN]
    https = machine.popen(program, user="forge")
    assert read_line(https) == b"ready\n"
    machine.root(f"for i in $(seq 100); do ssh-keyscan -p {SSH_PORT} 127.0.0.1 2>/dev/null | grep -q . && exit; sleep 0.05; done; exit 1", check=True)
    yield f"{FORGE}/repository.git"
    for server in (sshd, https):
        server.kill_all()
        server.wait()
    machine.root(f"userdel forge; rm -rf {FORGE} /home/alice/.ssh", check=True)


@pytest.fixture
def project(machine):
    machine.run(f"git init -q {PROJECT} && cd {PROJECT} && git commit -q --allow-empty -m begin", cwd="/", check=True)
    yield PROJECT
    machine.root(["rm", "-rf", PROJECT], check=True)


def push(machine, address, branch, before="true"):
    script = f"{before}; git commit -q --allow-empty -m {branch} && git push -q {address} HEAD:refs/heads/{branch} && git fetch -q {address} {branch} && echo pushed"
    return pi(machine, "sh", script, cwd=PROJECT, timeout=30)


def assert_arrived(machine, bare, branch):
    log = machine.root(["git", "-c", "safe.directory=*", "-C", bare, "log", "--format=%s", "-1", branch], check=True)
    assert log.stdout.decode() == f"{branch}\n"


def test_to_a_path_that_the_session_shows(machine, project):
    bare = "/home/alice/projects/bare.git"
    machine.run(["git", "init", "-q", "--bare", bare], cwd="/", check=True)
    done = push(machine, bare, "local")
    assert (done.stdout, done.stderr) == (b"pushed\n", b""), done
    assert_arrived(machine, bare, "local")
    machine.root(["rm", "-r", bare], check=True)


def test_over_ssh_with_the_key_of_the_policy(machine, forge, project, playing_policy):
    playing_policy(WITH_KEY)
    done = push(machine, f"ssh://forge@127.0.0.1:{SSH_PORT}{forge}", "over-ssh")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"pushed\n", b""), done
    assert_arrived(machine, forge, "over-ssh")
    shown = machine.run(["pi", "--pi-agent-explain"], cwd=PROJECT, check=True).stdout.decode()
    assert f"ssh key:  a copy of {KEY}\n" in shown and "GIT_SSH_COMMAND" in shown, shown


def test_over_ssh_not_without_a_key_in_the_policy(machine, forge, project):
    done = push(machine, f"ssh://forge@127.0.0.1:{SSH_PORT}{forge}", "keyless", before="export GIT_SSH_COMMAND='ssh -oBatchMode=yes'")
    assert done.returncode != 0 and b"pushed" not in done.stdout, done
    assert agent_says(machine, "sh", f"echo $GIT_SSH_COMMAND; ls -d {INSIDE} 2>/dev/null; true", cwd=PROJECT) == b"\n"


def test_a_host_that_the_user_does_not_know_is_refused(machine, forge, project, playing_policy):
    playing_policy(WITH_KEY)
    done = push(machine, f"ssh://forge@localhost:{SSH_PORT}{forge}", "unknown")
    assert done.returncode != 0 and b"Host key verification failed" in done.stderr, done


def test_the_copy_is_the_agents_to_read_and_nobodys_to_change(machine, forge, project, playing_policy):
    playing_policy(WITH_KEY)
    script = (
        f"cd {INSIDE}; head -1 key; stat -c '%A' key; for f in key config known_hosts; do (echo x >>$f) 2>/dev/null && echo written;"
        " rm -f $f 2>/dev/null && echo removed; chmod 600 $f 2>/dev/null && echo changed; done; true"
    )
    said = agent_says(machine, "sh", script, cwd=PROJECT)
    assert said == b"-----BEGIN OPENSSH PRIVATE KEY-----\n-r--r-----\n", said
    other = pi(machine, "sh", f"ls {INSIDE}", user="bob", cwd="/home/bob/work/demo")
    assert other.returncode != 0 and b"No such file" in other.stderr, other


def test_the_key_is_on_no_disk_and_in_no_log(machine, forge, project, playing_policy):
    playing_policy(WITH_KEY)
    line = machine.read(KEY).splitlines()[2].decode()
    agent_says(machine, "sh", "true", cwd=PROJECT)
    found = machine.root(f"grep -rl -- '{line}' /var/lib/pi-agent /run/systemd /run/pi-agent /var/log /tmp /var/tmp; journalctl -b | grep -c -- '{line}'")
    assert found.stdout.split() == [b"0"], found


@pytest.mark.parametrize(
    ("arrange", "words"),
    [
        ("rm {0}", "No such file"),
        ("rm {0}; mkfifo {0}", "not a regular file"),
        ("rm {0}; ln -s /etc/shadow {0}", "Permission denied"),
        ("ssh-keygen -q -p -N secret -f {0}", "has a passphrase"),
        ("rm {0}; openssl genrsa -aes128 -passout pass:secret -out {0} 2>/dev/null", "has a passphrase"),
        ("cp {0}.pub {0}", "no private key"),
        ("head -c 20000 /dev/zero >{0}", "larger than 16384"),
    ],
)
def test_a_key_that_cannot_be_used_is_told_and_the_session_starts(machine, forge, project, playing_policy, arrange, words):
    playing_policy(WITH_KEY)
    machine.run(f"cp -p {KEY} {KEY}.kept", check=True)
    machine.run(arrange.format(KEY), check=True)
    done = pi(machine, "sh", f"echo ran $GIT_SSH_COMMAND; ls -d {INSIDE} 2>/dev/null", cwd=PROJECT)
    machine.run(f"rm -f {KEY}; mv {KEY}.kept {KEY}", check=True)
    assert done.stdout == b"ran\n", done
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"pi: ssh: the agent's git cannot use the key {KEY}: ") and words in line, line


def test_over_https_with_a_token_of_env_files(machine, forge, project, playing_policy):
    secret = base64.b64encode(f"agent:{TOKEN}".encode()).decode()
    address = f"https://localhost:{HTTPS_PORT}/repository.git"
    text = f"GIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=http.https://localhost:{HTTPS_PORT}/.extraHeader\nGIT_CONFIG_VALUE_0=Authorization: Basic {secret}\n"
    machine.write("/etc/pi-agent/forge.env", text, mode=0o600)
    machine.root(["git", "-c", "safe.directory=*", "-C", forge, "config", "http.receivepack", "true"], check=True)
    without = PLAYING_POLICY.replace("env:\n", f"env:\n  GIT_SSL_CAINFO: {FORGE}/tls.pem\n  GIT_TERMINAL_PROMPT: '0'\n")
    assert without != PLAYING_POLICY
    playing_policy(without)
    refused = push(machine, address, "tokenless")
    assert refused.returncode != 0 and b"could not read Username" in refused.stderr, refused
    playing_policy(without + "env_files: [/etc/pi-agent/forge.env]\n")
    done = push(machine, address, "over-https")
    machine.root(["rm", "/etc/pi-agent/forge.env"], check=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"pushed\n", b""), done
    assert_arrived(machine, forge, "over-https")

"""A start that gives something up gets no more by that: no key that the policy keeps outside, nothing that it masks or protects."""

import contextlib
import json

import pytest
from target import Outcome

pytestmark = pytest.mark.position("agent")

ROOT = "/home/alice/projects"
HOME = "/var/lib/pi-agent/users/alice/home/.pi/agent"
KEY_FILE, VARIABLES = "/etc/pi-agent/attack.key", "/etc/pi-agent/attack.env"
ROOTS_KEY, ROOTS_PROXY, OWN_KEY = "quokka-roots-key-5518", "http://quokka-proxy-6620@127.0.0.1:9", "quokka-own-key-7731"
HELD_ALONE = f"network: {{hosts: ['localhost:5432']}}\nproviders: {{anthropic: {{key_file: {KEY_FILE}}}}}"
HELD = f"{HELD_ALONE}\nenv_files: [{VARIABLES}]"
NARROWED = {"none": "--pi-agent-network=none", "loopback": "--pi-agent-network=loopback"}
ROUTE = "http://127.0.0.1:809/api.anthropic.com"


@contextlib.contextmanager
def keys_outside(target, section=HELD):
    target.machine.write(KEY_FILE, "sk-ant-oat01-held-outside\n", mode=0o600)
    target.machine.write(VARIABLES, f"ANTHROPIC_API_KEY={ROOTS_KEY}\nhttps_proxy={ROOTS_PROXY}\n", mode=0o600)
    try:
        with target.policy_with(section):
            yield
    finally:
        target.machine.root(["rm", KEY_FILE, VARIABLES], check=True)


@pytest.mark.parametrize("network", NARROWED)
def test_a_start_that_closes_its_network_does_not_get_the_key_of_root(network, prove):
    def attack(target):
        with keys_outside(target):
            done = target.pi(NARROWED[network], "sh", "-c", 'echo "$ANTHROPIC_API_KEY"', check=True)
        return Outcome(ROOTS_KEY.encode() in done.stdout, done)

    prove(attack, "keys-without-route")


def test_a_root_without_a_network_does_not_get_the_key_of_root(prove):
    def attack(target):
        roots = "    roots: [~/projects, /srv/shared/app]\n"
        with keys_outside(target):
            policy = target.machine.read("/etc/pi-agent/policy.yaml").decode()
            assert roots in policy
            closed = policy.replace(roots, "    roots: [{path: ~/projects, network: none}]\n")
            target.machine.write("/etc/pi-agent/policy.yaml", closed)
            done = target.pi("sh", "-c", 'echo "$ANTHROPIC_API_KEY"', check=True)
        return Outcome(ROOTS_KEY.encode() in done.stdout, done)

    prove(attack, "keys-without-route", quick=True)


def test_a_start_that_closes_its_network_does_not_get_the_password_of_the_proxy(prove):
    """Under a network with hosts, the gate's own address stands in these variables."""

    def attack(target):
        with keys_outside(target):
            done = target.pi("--pi-agent-network=none", "sh", "-c", 'echo "$https_proxy"', check=True)
        return Outcome(b"quokka-proxy" in done.stdout, done)

    prove(attack, "proxies-outside", quick=True)


@pytest.mark.parametrize("network", NARROWED)
def test_a_start_that_closes_its_network_does_not_bring_the_users_own_key_into_the_home(network, prove):
    """It would be there for a later session, too, which has a network. Where root has a key in the variables, that one would win."""

    def attack(target):
        with target.config_set_aside(f"{HOME}/auth.json", f"{HOME}/models.json"), keys_outside(target, HELD_ALONE):
            place = "/home/alice/.pi/agent"
            target.machine.root(f"install -d -o alice -g alice /home/alice/.pi {place}", check=True)
            target.machine.write(f"{place}/auth.json", json.dumps({"anthropic": {"type": "api_key", "key": OWN_KEY}}), owner="alice", mode=0o600)
            target.machine.write(f"{place}/models.json", json.dumps({"providers": {"anthropic": {"apiKey": OWN_KEY}}}), owner="alice", mode=0o600)
            done = target.pi(NARROWED[network], "true", check=True)
            found = target.machine.root(["grep", "-rl", OWN_KEY, HOME]).stdout
        return Outcome(found != b"", (done, found))

    prove(attack, "keys-without-route", quick=True)


def test_a_start_that_closes_its_network_takes_the_route_from_no_other_session(prove):
    """Sessions of one user share the home, and pi reads there where to ask its provider."""

    def attack(target):
        with keys_outside(target):
            session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 60")
            before = target.machine.read(f"{HOME}/models.json")
            assert ROUTE.encode() in before and b"sk-ant-oat-held-by-the-gate" in before, before
            done = target.pi("--pi-agent-network=none", "true", check=True)
            after = target.machine.read(f"{HOME}/models.json")
            session.end()
        return Outcome(after != before, (done, before, after))

    prove(attack, "keys-without-route", quick=True)


# --- What the policy masks and protects in a root, in a session that shows a part of it.

MADE = f"""
set -e; cd {ROOT}; rm -rf infra secrets app tree ci
mkdir -p infra/deploy/keys secrets app ci/deep
echo quokka-masked-8842 | tee infra/deploy/keys/key infra/deploy/keys/single >secrets/token
ln infra/deploy/keys/key app/linked; echo run >ci/deep/run
git init -q infra/main; git -C infra/main -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first
echo quokka-masked-8842 >infra/main/.git/private; git -C infra/main worktree add -q {ROOT}/tree
"""
ALONE = "--pi-agent-scope=project"
# The mask, the directory of the start, what it reads, and the defence.
MASKED = {
    "a path from the root": ("infra/deploy/keys", "infra/deploy", "keys/key", "mask-from-root"),
    "its own directory": ("secrets", "secrets", "token", "masked-starts"),
    "a directory above": ("infra", "infra/deploy/keys", "single", "masked-starts"),
    "another name of a file elsewhere": ("infra/deploy/keys", "app", "linked", "mask-whole-root"),
    "git's directory of a worktree": ("infra", "tree", "../infra/main/.git/private", "masked-git-directories"),
}


@contextlib.contextmanager
def made_root(target, projects):
    target.machine.run(["sh", "-c", MADE], user="alice", check=True)
    try:
        with target.policy_with(f"projects: {projects}"):
            yield
    finally:
        target.machine.root(f"cd {ROOT} && rm -rf infra secrets app tree ci", check=True)


def reading(mask, start, path, scope="root", options=(ALONE,)):
    def attack(target):
        with made_root(target, f"{{scope: {scope}, mask: [{mask}]}}"):
            done = target.pi(*options, "cat", path, cwd=f"{ROOT}/{start}")
        return Outcome(b"quokka-masked-8842" in done.stdout, done)

    return attack


@pytest.mark.parametrize("what", MASKED)
def test_a_start_that_shows_less_reads_nothing_that_is_masked(what, prove):
    mask, start, path, defence = MASKED[what]
    on, _ = prove(reading(mask, start, path), defence)
    if defence == "masked-starts":
        assert on.seen.returncode == 77 and b"is in what the policy masks in" in on.seen.stderr and b"E77-mask" in on.seen.stderr, on


@pytest.mark.parametrize("what", ["a path from the root", "its own directory", "git's directory of a worktree"])
def test_the_scope_of_the_policy_unmasks_nothing_either(what, prove):
    mask, start, path, defence = MASKED[what]
    prove(reading(mask, start, path, scope="project", options=()), defence, quick=True)


@pytest.mark.parametrize(("start", "path"), [("ci", "deep/run"), ("ci/deep", "run")])
def test_a_start_that_shows_less_writes_nothing_that_is_protected(start, path, prove):
    def attack(target):
        with made_root(target, "{protect: [ci/]}"):
            done = target.pi(ALONE, "sh", "-c", f"echo written >{path}", cwd=f"{ROOT}/{start}")
            found = target.machine.read(f"{ROOT}/ci/deep/run")
        return Outcome(found == b"written\n", done)

    on, _ = prove(attack, "protect-from-root", quick=True)
    assert on.seen.returncode == 77 and b"is in what the policy protects" in on.seen.stderr, on

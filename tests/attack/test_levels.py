"""What a root or a start takes away from a session stays away, whatever agent, wrapper or neighbouring root do (docs/concepts/levels.md)."""

import contextlib

import pytest
from target import ATTACK_POLICY, DEMO, POLICY_FILE, Outcome

pytestmark = pytest.mark.position("agent")

GREETING = "import socket; print(socket.create_connection(('127.0.0.1', 22), 2).recv(4).decode())"
ROOTS = "    roots: [~/projects, /srv/shared/app]\n"
ROOT = "/home/alice/projects"


@contextlib.contextmanager
def roots(target, text, more=""):
    """The policy of these tests with other roots for alice."""
    before = ATTACK_POLICY.read_text()
    assert ROOTS in before
    target.machine.write(POLICY_FILE, before.replace(ROOTS, f"    roots: {text}\n") + more)
    try:
        yield
    finally:
        target.machine.write(POLICY_FILE, before)


def test_a_root_without_a_network_reaches_no_service_of_the_host(prove):
    def attack(target):
        with roots(target, "[{path: ~/projects, network: none}]"):
            done = target.pi("python3", "-c", GREETING)
        return Outcome(b"SSH-" in done.stdout, done)

    prove(attack, "root-rules")


@pytest.mark.parametrize("paths", ["host", "alias"])
def test_a_read_only_root_is_not_written(paths, prove):
    def attack(target):
        with roots(target, "[{path: ~/projects, read_only: true}]", f"projects: {{paths: {paths}}}\n"):
            done = target.pi("sh", "-c", "echo x >planted; mkdir made; ls planted made")
        found = target.machine.root(f"ls -d {DEMO}/planted {DEMO}/made; rm -rf {DEMO}/planted {DEMO}/made").stdout
        return Outcome(found != b"", (done, found))

    prove(attack, "read-only-projects")


STARTS = {
    "network": (["--pi-agent-network=none"], f'python3 -c "{GREETING}"', b"SSH-"),
    "writing": (["--pi-agent-read-only"], "echo x >planted && rm planted && echo planted", b"planted"),
    "scope": (["--pi-agent-scope=project"], f"cat {ROOT}/beside/secret", b"beside"),
}


@pytest.mark.parametrize("what", STARTS)
def test_what_a_start_gave_up_is_gone(what, prove):
    options, command, success = STARTS[what]

    def attack(target):
        target.machine.run(["sh", "-ec", f"mkdir -p {ROOT}/beside; echo beside >{ROOT}/beside/secret"], user="alice", check=True)
        done = target.pi(*options, "sh", "-c", command)
        target.machine.root(["rm", "-rf", f"{ROOT}/beside"], check=True)
        return Outcome(success in done.stdout, done)

    prove(attack, "narrowed-starts")


def test_the_git_directory_of_a_root_with_rules_is_not_shown_elsewhere(prove):
    """A worktree in an open root, of a repository in a root that is read-only: its git directory would be written through it."""
    main, tree = "/srv/shared/app/kept", f"{ROOT}/tree"

    def attack(target):
        script = f"""mkdir -p {main}; cd {main}; git init -q .; git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first
        git worktree add -q {tree}"""
        target.machine.run(["sh", "-ec", script], user="alice", check=True)
        try:
            with roots(target, "[~/projects, {path: /srv/shared/app, read_only: true}]"):
                done = target.pi("sh", "-c", f"echo x >{main}/.git/planted", cwd=tree)
            return Outcome(target.machine.root(["test", "-e", f"{main}/.git/planted"]).returncode == 0, done)
        finally:
            target.machine.root(["rm", "-rf", main, tree], check=True)

    prove(attack, "root-rules")


@pytest.mark.parametrize("paths", ["host", "alias"])
def test_a_root_with_rules_is_closed_to_sessions_that_start_around_it(paths, prove):
    """Its network is closed: what is in it would leave through the session in the root around it."""

    def attack(target):
        target.machine.run(["sh", "-ec", f"mkdir -p {ROOT}/inner/deep; echo closed >{ROOT}/inner/deep/secret"], user="alice", check=True)
        try:
            with roots(target, "[~/projects, {path: ~/projects/inner, network: none}]", f"projects: {{paths: {paths}}}\n"):
                done = target.pi("sh", "-c", "cat ../inner/deep/secret; ls ../inner; mv ../inner ../moved; echo x >../inner/planted")
            kept = target.machine.root(f"cat {ROOT}/inner/deep/secret; ls {ROOT}/inner").stdout
            return Outcome(b"closed" in done.stdout or kept != b"closed\ndeep\n", (done, kept))
        finally:
            target.machine.root(f"rm -rf {ROOT}/inner {ROOT}/moved", check=True)

    prove(attack, "closed-roots")


# What a wrapper of the attacker's own may say: the first three are no request, the last asks for more than the policy gives. Then what it
# may ask instead, and under which policy.
NOTHING, LOOPBACK = "network: none", "network: loopback"
REQUESTS = {
    "a network beyond none": ("network=3", "impossible choice of a network", "network=2", NOTHING),
    "a read-only flag of two": ("read_only=2", "impossible read-only flag", "read_only=1", NOTHING),
    "a scope flag of two": ("project_only=2", "impossible scope flag", "project_only=1", NOTHING),
    "loopback where the policy gives nothing": ("network=1", "asks for more than the policy gives", "network=1", LOOPBACK),
}


@pytest.mark.position("user")
@pytest.mark.parametrize("request_of", REQUESTS)
def test_no_request_gives_a_start_more_than_the_policy(request_of, product, control_seen):
    said, words, may_say, given = REQUESTS[request_of]

    def told_by(asked, policy):
        with product.policy_with(policy):
            return product.play(f"tell(call(lambda c, s: ask(c, s, ['true'], {asked})))")

    told = told_by(said, NOTHING)
    assert told["ended"] is None and words in told["said"], told
    told = told_by(may_say, given)
    assert told["ended"] == 0, told
    control_seen(f"{may_say}, under a policy with {given}, runs an agent")

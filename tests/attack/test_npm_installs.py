"""An agent that npm installed for everybody does not lead around the wrapper: neither its command nor its files."""

import json

import pytest
from target import ATTACK_POLICY

pytestmark = pytest.mark.position("outsider")

POLICY = ATTACK_POLICY.read_text()
BINARY = "/usr/local/lib/attack/agent"
assert BINARY in POLICY
PACKAGES = ("@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent")
COMMAND = "/usr/local/bin/pi"
PREFIXES = ("/usr/local", "/usr", "/opt/node")

# As a user who wants the agent without its sandbox; TREE is the package. Each must say `agent` to succeed.
WAYS = {
    "the command": f"{COMMAND} go",
    "the program": "$TREE/dist/cli.sh go",
    "an interpreter": "sh $TREE/dist/cli.sh go",
    "a part of it": ". $TREE/dist/parts/main.sh; main go",
    "a copy": "cp -r $TREE /tmp/copied-by-$USER && /tmp/copied-by-$USER/dist/cli.sh go",
    "a link": "ln -s $TREE /tmp/copied-by-$USER && /tmp/copied-by-$USER/dist/cli.sh go",
    "from inside of it": "cd $TREE/dist/parts && . ./main.sh && main go",
}


def install(machine, prefix, package):
    """As `npm install -g` leaves it: root's, open to all, with a link among the commands."""
    tree = f"{prefix}/lib/node_modules/{package}"
    machine.root(f"""umask 022; mkdir -p {tree}/dist/parts
        printf '#!/bin/sh\\n. "$(dirname "$(readlink -f "$0")")/parts/main.sh"\\nmain "$@"\\n' >{tree}/dist/cli.sh
        printf 'main() {{ echo agent as "$(id -un)" "$@"; }}\\n' >{tree}/dist/parts/main.sh
        chmod 755 {tree}/dist/cli.sh; ln -sfn {tree}/dist/cli.sh {COMMAND}""", check=True)  # fmt: skip
    return tree


@pytest.fixture
def host(product):
    """The product's machine, which has the policy of the attack tests afterwards, whatever a test did."""
    yield product.machine
    product.machine.install_policy(POLICY)


@pytest.fixture
def policy(host):
    return host.install_policy


@pytest.fixture(params=[(prefix, package) for prefix in PREFIXES for package in PACKAGES], ids=lambda param: f"{param[0]}-{param[1][1:4]}")
def tree(host, request):
    prefix, package = request.param
    yield install(host, prefix, package)
    host.root(["rm", "-rf", COMMAND, f"{prefix}/lib/node_modules", "/opt/node"], check=True)


def ways_that_work(machine, tree, user="bob"):
    found = []
    for name, script in WAYS.items():
        done = machine.run(f"TREE={tree} USER={user}; rm -rf /tmp/copied-by-{user}; {script}; rm -rf /tmp/copied-by-{user}", user=user, cwd="/")
        if f"agent as {user} go".encode() in done.stdout:
            found.append(name)
    return found


def applied(machine):
    return machine.root(["pi-agentctl", "apply", "--no-canary"], check=True)


def test_beside_the_policys_agent(host, policy, tree, control_seen):
    assert ways_that_work(host, tree) == list(WAYS)  # before apply has seen it
    before = host.root(["pi-agentctl", "doctor", "--json"]).stdout
    assert tree.encode() in before and b"other-pi" in before
    assert tree.encode() in applied(host).stdout
    assert ways_that_work(host, tree) == []
    assert host.root(["stat", "--format=%U:%G %a", tree]).stdout == b"root:pi-agent 750\n"
    assert host.run("command -v pi; pi --pi-agent-help >/dev/null && echo wrapper", user="bob", cwd="/").stdout == b"/usr/bin/pi\nwrapper\n"
    assert tree.encode() not in host.root(["pi-agentctl", "doctor", "--json"]).stdout
    install_again = host.root(f"chmod 755 {tree}")  # what an upgrade by npm does
    assert install_again.returncode == 0 and tree.encode() in host.root(["pi-agentctl", "doctor", "--json"]).stdout
    policy(POLICY + "wrapper: {hide_direct_binary: false}\n")
    assert ways_that_work(host, tree) == list(WAYS)  # without the defence
    policy(POLICY)
    assert ways_that_work(host, tree) == []
    policy(POLICY + "wrapper: {hide_direct_binary: false}\n")
    assert ways_that_work(host, tree) == list(WAYS)
    control_seen("every way works before apply, and with `hide_direct_binary: false`")


def test_as_the_policys_agent(host, policy, tree, control_seen):
    """agent.binary is npm's link: the package is hidden whole, and the agent's account alone starts it."""
    text = POLICY.replace(BINARY, COMMAND)
    policy(text)
    assert host.root(["stat", "--format=%U:%G %a", tree]).stdout == b"root:pi-agent 750\n"
    assert ways_that_work(host, tree) == []
    inside = host.run(["pi", "go"], user="bob", cwd="/home/bob/work/demo")
    assert (inside.returncode, inside.stdout) == (0, b"agent as pi-agent go\n"), inside
    report = host.root(["pi-agentctl", "doctor", "--json"])
    assert b"other-pi" not in report.stdout and b"open-agent" not in report.stdout, report
    policy(text + "wrapper: {hide_direct_binary: false}\n")
    assert ways_that_work(host, tree) == list(WAYS)
    control_seen("every way works with `hide_direct_binary: false`")


def test_remove_opens_what_apply_has_closed(host, tree, control_seen):
    applied(host)
    assert ways_that_work(host, tree) == []
    host.root(["pi-agentctl", "remove", "--yes"], check=True)
    assert ways_that_work(host, tree) == list(WAYS)
    control_seen("every way works once the product is removed")


ELSEWHERE = "/srv/shared/app/package"


def applied_with_a_link(machine, tree):
    """What apply says, and doctor, and whose the directory is then that the package's link leads to."""
    machine.root(f"mv {tree} {ELSEWHERE}; chown -R alice: {ELSEWHERE}; ln -s {ELSEWHERE} {tree}", check=True)
    try:
        said = applied(machine)
        return said, machine.root(["pi-agentctl", "doctor", "--json"]), machine.root(["stat", "--format=%U %a", ELSEWHERE]).stdout
    finally:
        machine.root(["rm", "-rf", ELSEWHERE], check=True)


def test_what_others_can_change_is_left_and_told(host, tree, weak, seen_to_work):
    """Root closes nothing that a link of somebody's leads to: it might be any directory."""
    said, report, mode = applied_with_a_link(host, tree)
    assert mode == b"alice 755\n"
    assert f"{COMMAND} is not the wrapper".encode() in report.stdout, report
    if not tree.startswith("/opt"):  # of another prefix nothing is known but what the command leads to
        assert b"warning: everybody can run the agent in " + tree.encode() in said.stderr, said
        (fault,) = [fault["what"] for fault in json.loads(report.stdout)["faults"] if tree in fault["what"]]
        assert fault.startswith(f"npm installed the agent for everybody in {tree} (") and "/srv/shared/app" in fault, fault
        prefix, package = tree.split("/lib/node_modules/")
        defences = ("trusted-files", "npm-own-place")
        install(weak.machine, prefix, package)
        with weak.without(*defences):
            mode = applied_with_a_link(weak.machine, tree)[2]
        weak.machine.root(["rm", "-rf", COMMAND, f"{prefix}/lib/node_modules"], check=True)
        applied(weak.machine)
        assert mode == b"root 750\n"
        seen_to_work(defences)


def test_what_an_administrator_has_closed_is_left_alone(host, tree):
    host.root(["chmod", "o-rwx", tree], check=True)
    assert tree.encode() not in applied(host).stdout
    assert host.root(["stat", "--format=%U:%G %a", tree]).stdout == b"root:root 750\n"
    assert ways_that_work(host, tree) == []

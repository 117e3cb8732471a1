"""The agent that npm installed for everybody is no way around the wrapper: neither its command nor its files."""

import json

import pytest
from cache import HERE

STANDARD_POLICY = (HERE / "policy.yaml").read_text()
STANDARD_BINARY = "/usr/lib/pi-agent/agent/bin/pi"
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


@pytest.fixture(params=[(prefix, package) for prefix in PREFIXES for package in PACKAGES], ids=lambda param: f"{param[0]}-{param[1][1:4]}")
def tree(machine, request):
    prefix, package = request.param
    yield install(machine, prefix, package)
    machine.root(["rm", "-rf", COMMAND, f"{prefix}/lib/node_modules", "/opt/node"], check=True)


def ways_that_work(machine, tree, user="bob"):
    found = []
    for name, script in WAYS.items():
        done = machine.run(f"TREE={tree} USER={user}; rm -rf /tmp/copied-by-{user}; {script}; rm -rf /tmp/copied-by-{user}", user=user, cwd="/")
        if f"agent as {user} go".encode() in done.stdout:
            found.append(name)
    return found


def applied(machine):
    return machine.root(["pi-agentctl", "apply", "--no-canary"], check=True)


def test_beside_the_policys_agent(machine, policy, tree):
    assert ways_that_work(machine, tree) == list(WAYS)  # before apply has seen it
    before = machine.root(["pi-agentctl", "doctor", "--json"]).stdout
    assert tree.encode() in before and b"other-pi" in before
    assert tree.encode() in applied(machine).stdout
    assert ways_that_work(machine, tree) == []
    assert machine.root(["stat", "--format=%U:%G %a", tree]).stdout == b"root:pi-agent 750\n"
    assert machine.run("command -v pi; pi --pi-agent-help >/dev/null && echo wrapper", user="bob", cwd="/").stdout == b"/usr/bin/pi\nwrapper\n"
    assert tree.encode() not in machine.root(["pi-agentctl", "doctor", "--json"]).stdout
    install_again = machine.root(f"chmod 755 {tree}")  # what an upgrade by npm does
    assert install_again.returncode == 0 and tree.encode() in machine.root(["pi-agentctl", "doctor", "--json"]).stdout
    policy(STANDARD_POLICY + "wrapper: {hide_direct_binary: false}\n")
    assert ways_that_work(machine, tree) == list(WAYS)  # without the defence
    policy(STANDARD_POLICY)
    assert ways_that_work(machine, tree) == []
    policy(STANDARD_POLICY + "wrapper: {hide_direct_binary: false}\n")
    assert ways_that_work(machine, tree) == list(WAYS)


def test_as_the_policys_agent(machine, policy, tree):
    """agent.binary is npm's link: the package is hidden whole, and the agent's account alone starts it."""
    text = STANDARD_POLICY.replace(STANDARD_BINARY, COMMAND)
    policy(text)
    assert machine.root(["stat", "--format=%U:%G %a", tree]).stdout == b"root:pi-agent 750\n"
    assert ways_that_work(machine, tree) == []
    inside = machine.run(["pi", "go"], user="bob", cwd="/home/bob/work/demo")
    assert (inside.returncode, inside.stdout) == (0, b"agent as pi-agent-bob go\n"), inside
    report = machine.root(["pi-agentctl", "doctor", "--json"])
    assert b"other-pi" not in report.stdout and b"open-agent" not in report.stdout, report
    policy(text + "wrapper: {hide_direct_binary: false}\n")
    assert ways_that_work(machine, tree) == list(WAYS)


def test_remove_opens_what_apply_has_closed(machine, policy, tree):
    applied(machine)
    assert ways_that_work(machine, tree) == []
    machine.root(["pi-agentctl", "remove", "--yes"], check=True)
    assert ways_that_work(machine, tree) == list(WAYS)
    policy(STANDARD_POLICY)


def test_what_others_can_change_is_left_and_told(machine, policy, tree):
    """Root closes nothing that a link of somebody's leads to: it might be any directory."""
    elsewhere = "/srv/shared/app/package"
    machine.root(f"mv {tree} {elsewhere}; chown -R alice: {elsewhere}; ln -s {elsewhere} {tree}", check=True)
    try:
        said = applied(machine)
        mode = machine.root(["stat", "--format=%U %a", elsewhere]).stdout
        report = machine.root(["pi-agentctl", "doctor", "--json"])
    finally:
        machine.root(["rm", "-rf", elsewhere], check=True)
    assert mode == b"alice 755\n"
    assert f"{COMMAND} is not the wrapper".encode() in report.stdout, report
    if not tree.startswith("/opt"):  # of another prefix nothing is known but what the command leads to
        assert b"warning: everybody can run the agent in " + tree.encode() in said.stderr, said
        (fault,) = [fault["what"] for fault in json.loads(report.stdout)["faults"] if tree in fault["what"]]
        assert fault.startswith(f"npm installed the agent for everybody in {tree} (") and "/srv/shared/app" in fault, fault


def test_what_an_administrator_has_closed_is_left_alone(machine, policy, tree):
    machine.root(["chmod", "o-rwx", tree], check=True)
    assert tree.encode() not in applied(machine).stdout
    assert machine.root(["stat", "--format=%U:%G %a", tree]).stdout == b"root:root 750\n"
    assert ways_that_work(machine, tree) == []

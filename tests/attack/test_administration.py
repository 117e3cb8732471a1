"""What an administrator types is turned against the host by nobody: neither what is shown, nor what is run."""

import contextlib
import json
import uuid

import pytest
from record_check import IDS
from target import Outcome

pytestmark = pytest.mark.position("outsider")

EDITOR = "/usr/local/bin/test-editor"
TRACE = "/root/chosen-by-eve"
USERS = "/var/lib/pi-agent/users"
RULE = "/etc/sudoers.d/zz-edit"
# Two mistakes of an administrator: a rule for one command, and an environment that is kept.
RULE_TEXT = 'Defaults:eve env_keep += "EDITOR VISUAL SUDO_EDITOR"\neve ALL=(root) NOPASSWD: /usr/bin/pi-agentctl edit\n'


@contextlib.contextmanager
def editor_of_host(machine):
    """A host that has one, which ends at once."""
    machine.root("mv /usr/bin/editor /usr/bin/editor-away 2>/dev/null; printf '#!/bin/sh\\n' >/usr/bin/editor && chmod 0755 /usr/bin/editor", check=True)
    try:
        yield
    finally:
        machine.root("rm /usr/bin/editor; mv /usr/bin/editor-away /usr/bin/editor 2>/dev/null; true", check=True)


def test_who_may_edit_the_policy_through_sudo_names_no_program_that_root_runs(prove):
    def attack(target):
        machine = target.machine
        machine.write(EDITOR, f"#!/bin/sh\ntouch {TRACE}\n", mode=0o755)  # any program that root trusts will do, such as a shell
        machine.write(RULE, RULE_TEXT, mode=0o440)
        try:
            with editor_of_host(machine):
                done = machine.run(["env", f"SUDO_EDITOR={EDITOR}", "sudo", "-n", "/usr/bin/pi-agentctl", "edit"], user="eve")
            return Outcome(machine.root(["test", "-e", TRACE]).returncode == 0, done)
        finally:
            machine.root(["rm", "-f", EDITOR, RULE, TRACE], check=True)

    on, _ = prove(attack, "editor-choice")
    assert on.seen.returncode == 0 and b"the policy is as it was" in on.seen.stdout, on


def test_nobody_puts_a_session_of_somebody_else_into_the_history(prove):
    def attack(target):
        forged = uuid.uuid4().hex
        fields = {
            "MESSAGE": "forged", "MESSAGE_ID": IDS["started"], "PI_AGENT_EVENT": "started",
            "PI_AGENT_SESSION": forged, "PI_AGENT_USER": "bob", "PI_AGENT_UID": "0",
        }  # fmt: skip
        text = "".join(f"{name}={value}\n" for name, value in fields.items())
        target.machine.run(["logger", "--journald"], user="eve", input=text.encode(), check=True)
        target.machine.root(["journalctl", "--sync"], check=True)
        shown = target.machine.root(["pi-agentctl", "history", "--json"], check=True)
        return Outcome(forged in {start["id"] for start in json.loads(shown.stdout)["starts"]}, shown.stderr)

    prove(attack, "record-sender")


@pytest.mark.position("agent")
@pytest.mark.parametrize("place, link", [("given", "given"), ("given/away", "given")], ids=["in its place", "on the way"])
def test_an_export_of_its_sessions_goes_nowhere_that_an_agent_leads_it(place, link, prove):
    """The agent chooses names and content of what is exported, and can write where its user has the export made."""
    root, hidden = "/home/alice/projects", "/home/alice/.started-at-login"

    def attack(target):
        target.machine.run(["mkdir", "-p", hidden], check=True)
        script = f"mkdir -p ~/.pi/agent/sessions; echo run-me >~/.pi/agent/sessions/planted; ln -s {hidden} {root}/{link}"
        target.pi("sh", "-ec", script, check=True)
        done = target.machine.root(["pi-agentctl", "state", "export", "--user", "alice", f"{root}/{place}"])
        came = target.machine.root(["grep", "-r", "run-me", hidden]).returncode == 0
        target.machine.root(f"rm -r {hidden} {root}/given {USERS}/alice/home/.pi/agent/sessions", check=True)
        return Outcome(came, done)

    on, _ = prove(attack, "beneath")
    assert on.seen.returncode == 64 and b"behind a symlink" in on.seen.stderr, on

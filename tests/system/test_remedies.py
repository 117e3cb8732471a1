"""What an administrator pastes from a message harms nothing, whatever path or account a policy, a link or a user brought into it."""

import re

import pytest
from launching import DEMO, PLAYING_POLICY, POLICY_FILE, pi, written_policy

ETC = "/etc/pi-agent"
OWN = re.compile(r"(?:/etc|/usr/lib|/usr/libexec|/usr/share|/var/lib|/var/log)/pi-agent(?:/[\w.-]+)*")
# A command that changes something, with what it is to change.
COMMAND = re.compile(r"\b(?:chmod|chown|chgrp|setfacl|rm|mv|ln|cp|usermod|userdel|groupdel|gpasswd|crontab|loginctl)\s+[^;,()\n]+")
VICTIMS = ["/", "/etc", "/etc/passwd", "/etc/shadow", "/home", "/home/eve", "/home/eve/file", "/root", "/root/policy.yaml", "/run/keep"]
FILE_OF_EVE = "install -o eve -m 644 /dev/null /home/eve/file; echo A=1 >/home/eve/file"
POLICY_OF_EVE = f"install -o eve -m 644 {POLICY_FILE} /home/eve/file"


def env_file(path):
    return PLAYING_POLICY + f"env_files: [{path!r}]\n"


# {what it is: (a policy, what root or somebody else did before, words that must be said)}
CASES = {
    "a file of the system": (env_file("/etc/passwd"), "true", "/etc/passwd"),
    "a link to one": (env_file(f"{ETC}/link"), f"ln -s /etc/passwd {ETC}/link", "hold secrets"),
    "a second name of one": (env_file(f"{ETC}/second"), f"ln /etc/passwd {ETC}/second", "hold secrets"),
    "a link above it": (env_file(f"{ETC}/up/passwd"), f"ln -s /etc {ETC}/up", "hold secrets"),
    "a file of a user": (env_file("/home/eve/file"), FILE_OF_EVE, "cannot be trusted"),
    "a link to a user's": (env_file(f"{ETC}/link"), f"{FILE_OF_EVE}; ln -s /home/eve/file {ETC}/link", "cannot be trusted"),
    "a user's own link": (env_file(f"{ETC}/link"), f"ln -s /root {ETC}/link; chown -h eve {ETC}/link", "cannot be trusted"),
    "a name for a shell": (env_file(f"{ETC}/a;reboot $(id)"), f"install -m 644 /dev/null '{ETC}/a;reboot $(id)'", "hold secrets"),
    "a policy behind a user's link": (PLAYING_POLICY, f"{POLICY_OF_EVE}; ln -sf /home/eve/file {POLICY_FILE}; chown -h eve {POLICY_FILE}", "cannot be trusted"),
    "a policy of a user": (PLAYING_POLICY, f"{POLICY_OF_EVE}; ln -sf /home/eve/file {POLICY_FILE}", "cannot be trusted"),
    "a policy in root's home": (PLAYING_POLICY, f"install -m 600 {POLICY_FILE} /root/policy.yaml; ln -sf /root/policy.yaml {POLICY_FILE}", "readable"),
    "where root is nobody": (PLAYING_POLICY, "true", "a user namespace without the host's root"),
    "an account of the system": (
        PLAYING_POLICY.replace("  accounts: per-user\n", "").replace("agent:\n", "agent:\n  user: games\n  create_user: false\n"),
        "gpasswd -a games disk", "games"),
}  # fmt: skip
HARMLESS = {
    "a file of ours": (env_file(f"{ETC}/our.env"), f"install -m 644 /dev/null {ETC}/our.env", f"run: chmod 600 {ETC}/our.env"),
    "a policy of somebody": (PLAYING_POLICY, f"chown eve {POLICY_FILE}", f"run: chown root {POLICY_FILE}"),
    "a policy for root alone": (PLAYING_POLICY, f"chmod 600 {POLICY_FILE}", f"run: chmod a+r {POLICY_FILE}"),
}
PUT_BACK = f"""
cd {ETC} && rm -rf link second up our.env 'a;reboot $(id)' policy.yaml /home/eve/file /root/policy.yaml
gpasswd -d games disk >/dev/null 2>&1; true"""


def states(machine):
    return machine.root(["stat", "--format=%n %u:%g %a %F", "--", *VICTIMS], check=False).stdout


def everything_said(machine):
    """By whoever meets the fault: the administrator's check and doctor, and the user."""
    asked = [machine.root(["pi-agentctl", *words]) for words in (["check"], ["check", "--json"], ["doctor"], ["apply", "--dry-run"], ["apply", "--no-canary"])]
    # In a user namespace of the caller's own every file of root's seems to be nobody's.
    asked += [pi(machine, "sh", "true"), machine.run(["unshare", "--user", "--map-current-user", "pi"], cwd=DEMO)]
    return "\n".join((done.stdout + done.stderr).decode() for done in asked)


@pytest.fixture
def faulty(playing):
    """faulty(policy, script) brings a fault about; afterwards nothing is left of it."""
    playing.root("echo kept >/run/keep", check=True)
    with written_policy(playing, PLAYING_POLICY):

        def bring_about(policy, script):
            playing.write(POLICY_FILE, policy)
            playing.root(script, check=True)
            return playing

        yield bring_about
        playing.root(PUT_BACK, check=True)


@pytest.mark.parametrize("case", [*CASES, *HARMLESS])
def test_a_command_in_a_message_can_be_pasted(faulty, case):
    policy, script, words = {**CASES, **HARMLESS}[case]
    machine = faulty(policy, script)
    said = everything_said(machine)
    assert words in said, said
    before = states(machine)
    commands = {match.group().strip().rstrip('".') for match in COMMAND.finditer(said)}
    assert bool(commands) == (case in HARMLESS), commands
    for command in commands:
        assert f"run: {command}" in said, said
        changed = command.split()[-1]
        assert OWN.fullmatch(changed), command
        machine.root(command)
    assert states(machine) == before


# As a caller may be in a user namespace: what runs the command there. podman's has alice as root, and other numbers of hers.
NAMESPACES = {
    "without any number": ["unshare", "--user"],
    "as root": ["unshare", "--user", "--map-root-user"],
    "as oneself": ["unshare", "--user", "--map-current-user"],
    "bwrap": ["bwrap", "--unshare-user", "--dev-bind", "/", "/"],
    "podman": ["python3", "-c", """
import ctypes, os, sys, time
assert ctypes.CDLL(None).unshare(0x10000000) == 0
open("/tmp/in-namespace", "w").write(str(os.getpid()))
while len(open("/proc/self/uid_map").readlines()) < 2: time.sleep(0.01)
os.execvp(sys.argv[1], sys.argv[1:])
"""],
}  # fmt: skip
MAP_AS_PODMAN = "until pid=$(cat /tmp/in-namespace 2>/dev/null) && test -n \"$pid\"; do sleep 0.05; done; rm /tmp/in-namespace; printf '0 1000 1\n1 100000 65536\n' | dd iflag=fullblock of=/proc/$pid/uid_map status=none"


@pytest.mark.parametrize("kind", NAMESPACES)
def test_a_caller_in_a_user_namespace_is_told_to_use_an_ordinary_shell(playing, kind):
    def said(*command):
        with playing.popen([*NAMESPACES[kind], *command], cwd=DEMO) as running:
            if kind == "podman":
                playing.root(MAP_AS_PODMAN, check=True, timeout=20)
            return running.communicate(timeout=20), running.returncode

    (out, err), status = said("pi", "sh", "echo ran")
    assert (status, out) == (77, b""), err
    for (out, err), status in (said("pi", "sh", "echo ran"), said("pi-agentctl", "explain")):
        assert status in (77, 78) and out == b"", (out, err)
        assert b"in a user namespace without the host's root" in err and b"run pi from an ordinary shell of this host" in err, err
        assert b"belongs to" not in err and b"move it to" not in err, err

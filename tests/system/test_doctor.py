"""pi-agentctl doctor: nothing on a healthy host, and each fault that is planted, with what to do about it."""

import json

import pytest
from launching import DEMO, PLAYING_AGENT, PLAYING_POLICY, pi, session

RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
RULE = "/etc/sudoers.d/pi-agent"
LATER = "/etc/sudoers.d/zz-site"
COPY = "cp /bin/true {0} && chmod 755 {0}"
TREE = "/usr/local/lib/node_modules/@earendil-works/pi-coding-agent"


def later(rule):
    return f"printf '%s\\n' '{rule}' >{LATER}; chmod 440 {LATER}", f"rm {LATER}"


def of_alice(path):
    return f"runuser -u alice -- sh -c 'mkdir -p $(dirname {path}); cp /bin/true {path}'", f"rm {path}; rmdir -p --ignore-fail-on-non-empty $(dirname {path})"


# name: (how it is planted, how it goes, what doctor says, a word of the message)
FAULTS = {
    "first on the PATH": (*of_alice("/home/alice/bin/pi"), "other-pi", "/home/alice/bin/pi"),
    "in the home": (*of_alice("/home/alice/.npm-global/bin/pi"), "other-pi", "/home/alice/.npm-global/bin/pi"),
    "of nvm": (*of_alice("/home/alice/.nvm/versions/node/v20.1.0/bin/pi"), "other-pi", "v20.1.0/bin/pi"),
    "an alias": (
        "cp -p /home/alice/.bashrc /home/alice/.bashrc.away; echo \"alias pi='echo mine'\" >>/home/alice/.bashrc",
        "mv /home/alice/.bashrc.away /home/alice/.bashrc", "other-pi", "alias or a function"),
    "for everybody": (COPY.format("/usr/local/bin/pi"), "rm /usr/local/bin/pi", "other-pi", "/usr/local/bin/pi"),
    "npm's for everybody": (f"mkdir -p {TREE}", "rm -r /usr/local/lib/node_modules", "other-pi", "npm installed the agent"),
    "the agent is open": (f"chmod 755 {PLAYING_AGENT.removesuffix('/bin/pi')} {PLAYING_AGENT}", "pi-agentctl apply --no-canary", "open-agent", "without the wrapper"),
    "no rule": (f"rm {RULE}", "pi-agentctl apply --no-canary", "sudo-rule", "is missing"),
    "another rule": (f"sed -i 's/ \"\"//' {RULE}", "pi-agentctl apply --no-canary", "sudo-rule", "not as the policy says"),
    "a rule that is not read": ("sed -i.away 's/^@includedir/#away/' /etc/sudoers", "mv /etc/sudoers.away /etc/sudoers", "sudo-rule", "does not read"),
    "a later rule that asks": (*later("alice ALL=(ALL) ALL"), "sudo-rule-shadowed", "asks for a password"),
    "a later rule with SETENV": (*later("alice ALL=(root) NOPASSWD:SETENV: /usr/libexec/pi-agent/"), "sudo-environment", "SETENV:"),
    "a rule that forbids": (*later(f"alice ALL=(root) !{RUNNER}"), "sudo-rule-shadowed", "forbids the runner"),
    "a wider rule": (*later(f"alice ALL=(root) NOPASSWD: {RUNNER}"), "sudo-rule-wider", RUNNER),
    "sudo keeps its variables": (*later(f'Defaults!{RUNNER} env_keep += "SUDO_UID"'), "sudo-environment", "SUDO_UID"),
    "a later default of a command": (*later(f"Defaults!{RUNNER} log_output"), "sudo-terminal", "log_output"),
    "a configuration that is broken": (*later("nonsense ="), "sudo-configuration", "visudo"),
    "a crontab": (
        "mkdir -p /var/spool/cron/crontabs; echo '* * * * * true' >/var/spool/cron/crontabs/pi-agent-alice", "rm /var/spool/cron/crontabs/pi-agent-alice",
        "outside-sessions", "a crontab"),
    "a member without an account": ("useradd -m -G devs -s /bin/bash fay", "userdel -r fay", "agent-account", "fay cannot start pi"),
    "linger": ("mkdir -p /var/lib/systemd/linger; touch /var/lib/systemd/linger/pi-agent-alice", "rm /var/lib/systemd/linger/pi-agent-alice", "outside-sessions", "lingering"),
    "a stray process": ("setsid setpriv --reuid pi-agent-alice --clear-groups sleep 300 >/dev/null 2>&1 &", "pkill -u pi-agent-alice sleep", "outside-sessions", "(sleep)"),
    "a session that is gone": (
        "mkdir -p /run/pi-agent/sessions/0123456789abcdef0123456789abcdef", "true", "leftovers", "0123456789abcdef"),
    "our own file": ("chmod o+w /usr/libexec/pi-agent/pi-agent-exec", "chmod o-w /usr/libexec/pi-agent/pi-agent-exec", "own-files", "pi-agent-exec"),
    "a root that cannot be mapped": ("mount -t proc none /srv/shared/app", "umount /srv/shared/app", "root", "/srv/shared/app"),
    "a policy that only root reads": ("chmod 600 /etc/pi-agent/policy.yaml", "chmod 644 /etc/pi-agent/policy.yaml", "policy", "readable for all"),
}


@pytest.fixture(scope="module")
def host(playing):
    playing.install_policy(PLAYING_POLICY)
    playing.root(["pi-agentctl", "apply", "--no-canary"], check=True)
    pi(playing, "sh", "true")  # the directory of sessions is there
    yield playing
    playing.install_policy(PLAYING_POLICY)


def doctor(machine):
    done = machine.root(["pi-agentctl", "doctor", "--json"])
    report = json.loads(done.stdout)
    assert report["version"] == 1 and (done.returncode == 0) == report["good"], done
    return done, report


def test_a_healthy_host_has_nothing(host):
    done, report = doctor(host)
    assert (done.returncode, report["faults"], report["sandbox"]["wrong"]) == (0, [], []), report
    text = host.root(["pi-agentctl", "doctor"])
    assert text.returncode == 0 and b"no way around the wrapper was found" in text.stdout, text


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_with_a_remedy(host, name):
    plant, remove, about, word = FAULTS[name]
    host.root(plant, check=True)
    try:
        text = host.root(["pi-agentctl", "doctor"])
        if about == "leftovers":
            host.root(plant, check=True)  # the session that tried the sandbox has removed them
        done, report = doctor(host)
    finally:
        host.root(remove, check=True)
    found = [fault for fault in report["faults"] if fault["about"] == about and word in fault["what"]]
    assert done.returncode == 69 and found and all(fault["remedy"] for fault in found), report["faults"]
    assert text.returncode == 69 and f"{about}: ".encode() in text.stderr and b"remedy: " in text.stderr, text
    _, after = doctor(host)
    assert after["faults"] == [], after["faults"]


def test_a_missing_agent_is_one_fault(host):
    host.root(f"mv {PLAYING_AGENT} {PLAYING_AGENT}.away", check=True)
    try:
        _, report = doctor(host)
    finally:
        host.root(f"mv {PLAYING_AGENT}.away {PLAYING_AGENT}", check=True)
    assert len([fault for fault in report["faults"] if PLAYING_AGENT in fault["what"]]) == 1, report["faults"]


def test_a_program_that_the_policy_leaves_open_is_a_way_around(host):
    host.install_policy(PLAYING_POLICY + "wrapper: {hide_direct_binary: false}\n")
    try:
        done, report = doctor(host)
    finally:
        host.install_policy(PLAYING_POLICY)
    assert done.returncode == 69 and any(fault["about"] == "open-agent" and "hide_direct_binary is false" in fault["what"] for fault in report["faults"]), report


@pytest.mark.parametrize("method", ["systemd", "bwrap"])
def test_sessions_that_live_are_no_fault(host, method):
    host.install_policy(PLAYING_POLICY + f"sandbox: {{method: {method}}}\n")
    try:
        with session(host, "sh", "echo ready; sleep 60"):
            done, report = doctor(host)
    finally:
        host.install_policy(PLAYING_POLICY)
    assert (done.returncode, report["faults"]) == (0, []), report["faults"]


def test_users_that_share_an_account(host):
    begin_anew = "for user in $(ls /var/lib/pi-agent/users); do pi-agentctl state reset --user $user --yes || true; done"
    host.write("/etc/pi-agent/policy.yaml", PLAYING_POLICY.replace("accounts: per-user", "accounts: shared"))
    try:
        host.root(f"{begin_anew}; pi-agentctl apply --no-canary", check=True)
        done, report = doctor(host)
    finally:
        host.write("/etc/pi-agent/policy.yaml", PLAYING_POLICY)
        host.root(f"{begin_anew}; pi-agentctl apply --no-canary", check=True)
    assert done.returncode == 69 and any(fault["about"] == "shared-account" and "alice" in fault["what"] for fault in report["faults"]), report


@pytest.mark.parametrize("rule", ["Defaults requiretty", "Defaults log_output", "Defaults log_input", "Defaults use_pty", "Defaults !env_reset", "Defaults setenv",
                                  "Defaults:alice requiretty, log_output, !env_reset", "bob ALL=(ALL) NOPASSWD: ALL", "alice ALL=(bob) ALL", 'Defaults env_keep += "LD_LIBRARY_PATH EVIL"', "alice ALL=(root) NOPASSWD: /usr/bin/id"])
def test_what_sites_write_into_sudoers_is_no_hindrance(host, rule):
    plant, remove = later(rule)
    host.root(plant, check=True)
    try:
        done, report = doctor(host)
        ran = pi(host, "sh", "printenv EVIL; echo ran", env={"EVIL": "1"})
    finally:
        host.root(remove, check=True)
    assert (done.returncode, report["faults"]) == (0, []), report
    assert (ran.returncode, ran.stdout) == (0, b"ran\n"), ran


def test_tools_that_a_session_sees_in_the_users_home_are_no_fault(host):
    """The default policy shows mise's own directory below ~/.config."""
    host.run("mkdir -p ~/.config/mise && echo '[tools]' >~/.config/mise/config.toml", check=True)
    try:
        done, report = doctor(host)
        seen = pi(host, "sh", "cat /home/alice/.config/mise/config.toml")
    finally:
        host.run("rm -r ~/.config/mise && rmdir --ignore-fail-on-non-empty ~/.config", check=True)
    assert seen.stdout == b"[tools]\n", seen
    assert (done.returncode, report["faults"], report["sandbox"]["wrong"]) == (0, [], []), report


def test_every_probe_is_printed_when_asked_for(host):
    done = host.root(["pi-agentctl", "doctor", "--attack"])
    assert done.returncode == 0 and done.stdout.count(b"held ") > 80 and b"held  write /etc: refused (EROFS)" in done.stdout, done


def test_it_is_for_root_alone(host):
    done = host.run(["pi-agentctl", "doctor"], user="alice", cwd=DEMO)
    assert done.returncode == 77 and b"sudo pi-agentctl doctor" in done.stderr, done

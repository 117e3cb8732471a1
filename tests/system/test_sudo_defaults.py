"""What a site's own Defaults and rules do to pi: it works under each, or pi or doctor says what is in the way."""

import json

import pytest
from launching import DEMO, PLAYING_POLICY, pi, session

RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
LATER = "/etc/sudoers.d/zz-site"

# For everybody, this user, or commands as root: the rule's own Defaults are for one command, and win.
HARMLESS = """
log_subcmds | intercept | intercept, intercept_type=trace | log_output | log_input | command_timeout=1 | noexec | requiretty | use_pty
umask=0777, umask_override | rootpw | targetpw | runaspw | runcwd=/tmp | runcwd=* | runcwd=/gone | runchroot=* | fqdn | closefrom=3
authenticate | verifypw=always, listpw=always | timestamp_timeout=0 | exec_background | mail_always, mailerpath=/bin/false
logfile=/gone/sudo.log | log_servers=127.0.0.1:30343 | log_exit_status | pam_session, pam_setcred | pam_service=gone | runas_default=bob
set_utmp | stay_setuid | preserve_groups | setenv | !env_reset | env_file=/etc/environment | secure_path=/nonexistent | lecture=always
rlimit_nproc=10 | rlimit_nofile=20 | rlimit_as=10000000 | rlimit_fsize=0 | rlimit_core=default | fdexec=always | iolog_dir=/gone, log_output
noninteractive_auth | intercept_authenticate, intercept, log_subcmds, use_pty, noexec, requiretty
""".replace("\n", " | ").split(" | ")
BOUND = ["Defaults:alice log_subcmds", "Defaults>root intercept", "Defaults>root rlimit_fsize=0, noexec", "Defaults@ALL command_timeout=1",
         "Defaults!/usr/bin/id log_subcmds, intercept, runchroot=/srv"]  # fmt: skip
HARMLESS = [f"Defaults {text}" for text in HARMLESS if text] + BOUND

# What doctor names, by its fault, and what pi says where the start fails; None where it would hang.
TOLD = {
    f"Defaults!{RUNNER} log_subcmds": ("sudo-start", "log_subcmds", None),
    f"Defaults!{RUNNER} intercept": ("sudo-start", "intercept", None),
    "alice ALL=(ALL) NOPASSWD: INTERCEPT: ALL": ("sudo-start", "intercept", None),
    f"Defaults!{RUNNER} noexec": ("sudo-start", "noexec", ""),
    "alice ALL=(ALL) NOPASSWD: NOEXEC: ALL": ("sudo-start", "noexec", ""),
    "alice ALL=(ALL) NOPASSWD: LOG_OUTPUT: ALL": ("sudo-terminal", "log_output", ""),
    f"Defaults!{RUNNER} command_timeout=1h": ("sudo-start", "command_timeout", ""),
    "alice ALL=(ALL) TIMEOUT=3600 NOPASSWD: ALL": ("sudo-start", "command_timeout", ""),
    f"Defaults!{RUNNER} runcwd=/gone": ("sudo-start", "runcwd", "sudo did not run the runner: sudo: unable to change directory to /gone"),
    "Defaults runchroot=/srv": ("sudo-start", "runchroot", "sudo did not run the runner: sudo: "),
    f"Defaults!{RUNNER} stay_setuid": ("sudo-start", "stay_setuid", "only root can run this program"),
    f"Defaults!{RUNNER} rlimit_nproc=10": ("sudo-start", "rlimit_nproc", "resetting the resource limit RLIMIT_NPROC"),
    "Defaults logfile=/gone/sudo.log, !ignore_logfile_errors": (None, None, "unable to open log file /gone/sudo.log"),
}


@pytest.fixture(scope="module")
def host(playing):
    playing.install_policy(PLAYING_POLICY)
    playing.run(["git", "init", "-q"], cwd=DEMO, check=True)
    yield playing


@pytest.fixture
def site(host):
    """site(line) is the site's own line, which sudo reads after the product's rule, for one test."""

    def write(line):
        host.write(LATER, line + "\n", mode=0o440)
        assert host.root(["visudo", "-c"]).returncode == 0, line

    yield write
    host.root(["rm", "-f", LATER], check=True)


def sudo_faults(machine):
    report = json.loads(machine.root(["pi-agentctl", "doctor", "--json", "--user", "alice"]).stdout)
    return {(fault["about"], fault["what"]) for fault in report["faults"] if fault["about"].startswith("sudo-")}


@pytest.mark.parametrize("line", HARMLESS)
def test_pi_works_under_a_sites_setting(host, site, line):
    site(line)
    seconds = 1.5 if "command_timeout" in line else 0
    done = pi(host, "sh", f"git status --short && echo ran; sleep {seconds}; exit 7", timeout=20)
    assert (done.returncode, done.stdout.splitlines()[-1:], done.stderr) == (7, [b"ran"], b""), done


def test_pi_reads_the_users_name_from_git_though_a_site_forbids_programs(host, site):
    """The runner's own git, which noexec would have kept from starting."""
    host.run(["git", "config", "--global", "user.name", "Alice of the test"], check=True)
    try:
        site("Defaults noexec")
        assert pi(host, "sh", "git config user.name").stdout == b"Alice of the test\n"
        site(f"Defaults!{RUNNER} noexec")
        assert pi(host, "sh", "git config user.name").stdout != b"Alice of the test\n"  # so the line above matters
    finally:
        host.run(["git", "config", "--global", "--unset", "user.name"], check=True)


@pytest.mark.parametrize("line", TOLD)
def test_what_a_later_line_breaks_is_told(host, site, line):
    about, word, said = TOLD[line]
    site(line)
    if said is not None:
        done = pi(host, "sh", "echo ran", timeout=20)
        assert said in done.stderr.decode() if said else (done.returncode, done.stdout) == (0, b"ran\n"), done
    found = sudo_faults(host)
    assert about is None or any(fault == about and word in what for fault, what in found), found


@pytest.mark.parametrize("line", [f"Defaults!{RUNNER} command_timeout=2", "alice ALL=(ALL) TIMEOUT=2 NOPASSWD: ALL"])
def test_a_session_that_sudos_timeout_ends_is_told(host, site, line):
    site(line)
    with session(host, "sh", "echo ready; sleep 60") as process:
        out, err = process.communicate(timeout=20)
    assert process.returncode == -15 and b"sudo has ended the session" in err and b"command_timeout" in err, (process.returncode, out, err)


def test_a_session_that_is_ended_otherwise_does_not_blame_sudo(host):
    with session(host, "sh", "echo ready; sleep 60") as process:
        host.root("pkill -TERM -o -f ^" + RUNNER, check=True)
        _, err = process.communicate(timeout=20)
    assert process.returncode == -15 and b"sudo" not in err, (process.returncode, err)
    assert host.run(["id", "-u"], cwd=DEMO).stdout == b"1000\n"

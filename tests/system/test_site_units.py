"""What a host does to the units of sessions by itself: restarts after an upgrade, and drop-ins for all services."""

import json
import re
import subprocess

import pytest
from launching import DEMO, PLAYING_POLICY, finish, pi, session

ID = "[0-9a-f]" * 32
OF_SESSION = f"pi-agent-{ID}.service"
DROP_IN = "/etc/systemd/system/service.d/zz-site.conf"
LEFT_OUT = "/etc/systemd/system/pi-agent-.service.d/zz-site.conf"


@pytest.fixture(scope="module")
def host(playing):
    playing.install_policy(PLAYING_POLICY)
    yield playing


@pytest.fixture
def site(host):
    """site(text) is a drop-in of the site for all services, for one test."""

    def write(text, place=DROP_IN):
        host.write(place, text)
        host.root(["systemctl", "daemon-reload"], check=True)

    host.write("/etc/systemd/system/mailer@.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo %i >>/run/mail'\n")
    yield write
    host.root("rm -rf /etc/systemd/system/service.d /etc/systemd/system/pi-agent-.service.d /etc/systemd/system/mailer@.service /run/mail", check=True)
    host.root(["systemctl", "daemon-reload"], check=True)


def unit(machine, pattern=OF_SESSION):
    listed = machine.root(f"systemctl list-units --plain --no-legend '{pattern}' | cut -d ' ' -f 1", check=True).stdout.decode().split()
    assert len(listed) == 1, listed
    return listed[0]


@pytest.mark.parametrize("verb", ["restart", "try-restart", "reload-or-restart", "stop"])
def test_a_session_cannot_be_restarted_by_hand(host, verb):
    with session(host, "sh", "echo ready; read answer; exit 5") as process:
        refused = host.root(["systemctl", verb, unit(host)])
        assert refused.returncode != 0 and b"Operation refused" in refused.stderr, refused
        assert finish(process)[0] == 5


def test_the_unit_answers_needrestarts_question(host):
    """needrestart 3.6 of Debian 12 asks this of each unit (systemd_refuse_restart), and restarts none that says so."""
    with session(host, "sh", "echo ready; read answer; exit 5") as process:
        shown = host.root(["systemctl", "show", "--property=RefuseManualStop", unit(host)], check=True)
        assert shown.stdout == b"RefuseManualStop=yes\n"
        assert finish(process)[0] == 5


def test_needrestart_restarts_other_services_alone(host):
    """After an upgrade of the C library, which the sessions, the gate and root's programs use too."""
    host.write("/etc/systemd/system/other.service", "[Service]\nExecStart=/usr/bin/sleep 1000\n")
    # Debian's own configuration leaves these alone too.
    host.write("/etc/needrestart/needrestart.conf", "$nrconf{restart} = 'a'; $nrconf{override_rc} = {qr(^dbus) => 0, qr(^systemd-) => 0};\n")
    library = host.root("readlink -f /lib/x86_64-linux-gnu/libc.so.6", check=True).stdout.decode().strip()
    process_of_other = ["systemctl", "show", "--property=MainPID", "other"]
    with host.needrestart(), session(host, "sh", "echo ready; read answer; exit 5") as process:
        host.root("systemctl daemon-reload && systemctl start other", check=True)
        before = host.root(process_of_other).stdout
        host.root(f"mkdir /etc/needrestart/hook.d; cp -p {library} {library}.new && mv {library}.new {library}", check=True)
        done = host.root("needrestart -v", timeout=120)
        after = host.root(process_of_other).stdout
        assert finish(process)[0] == 5, done
    host.root("systemctl stop other; rm -r /etc/systemd/system/other.service /etc/needrestart; systemctl daemon-reload", check=True)
    restarted = next(line for line in done.stdout.splitlines() if line.startswith(b" systemctl restart "))
    assert before != after != b"MainPID=0\n" and b"pi-agent" not in restarted, done
    # It has seen that the session uses the old one; needrestart 3.11 of Debian 13 leaves PID namespaces alone by itself.
    assert re.search(rb"is pi-agent-[0-9a-f]{32}\.service|is part of a PID namespace and will be ignored", done.stderr), done
    assert pi(host, "sh", "echo ran").stdout == b"ran\n"


@pytest.mark.parametrize("asked", [f"pi-agent-cleanup-{ID}.service", "pi-agent-u1000.slice"])
def test_pi_ends_when_what_a_session_needs_is_restarted(host, asked):
    with session(host, "sh", "echo ready; sleep 60") as process:
        host.root(["systemctl", "restart", unit(host, asked)])
        try:
            _, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            pytest.fail("pi hangs")
    assert process.returncode != 0, err


def test_the_runners_scope_cannot_be_restarted(host):
    """systemd knows no such job for a scope."""
    with session(host, "sh", "echo ready; read answer; exit 5") as process:
        refused = host.root(["systemctl", "restart", unit(host, f"pi-agent-run-{ID}.scope")])
        assert refused.returncode != 0 and b"not applicable" in refused.stderr, refused
        assert finish(process)[0] == 5


def test_pi_says_that_the_unit_was_restarted_all_the_same(host, site):
    """A site's drop-in can allow it after the start, when nobody looks any more."""
    with session(host, "sh", "echo ready; sleep 60") as process:
        one = unit(host)
        site("[Unit]\nRefuseManualStop=no\n", f"/run/systemd/system/{one}.d/zz.conf")
        host.root(["systemctl", "restart", one], check=True)
        _, err = process.communicate(timeout=10)
        host.root(["rm", "-r", f"/run/systemd/system/{one}.d"], check=True)
    assert process.returncode == -9 and b"was restarted, which has killed the agent; start pi again" in err, (process.returncode, err)


@pytest.mark.parametrize("status", ["exit 3", "exit 255", "exit 203", "kill -TERM $$", "kill -SEGV $$", "kill -KILL $$"])
def test_no_end_of_an_agent_starts_a_sites_mailer(host, site, status):
    site("[Unit]\nOnFailure=mailer@%n.service\n")
    assert pi(host, "sh", status).returncode != 0
    assert host.root("systemctl is-failed --quiet 'pi-agent-*'").returncode != 0
    mailed = host.root("sleep 0.5; grep -h pi-agent /run/mail").stdout
    assert mailed == b"", mailed


@pytest.mark.parametrize("text", [
    "[Unit]\nDocumentation=man:site(7)\n", "[Service]\nRestart=on-failure\nRestartSec=100ms\n", "[Service]\nNice=5\nCPUWeight=20\nIOWeight=20\n",
    "[Service]\nEnvironment=FOO=bar\n", "[Service]\nTimeoutStopSec=5min\n", "[Service]\nLogRateLimitBurst=5\nStandardOutput=journal\n",
    "[Service]\nLimitNOFILE=4096\nTasksMax=500\n", "[Service]\nTimeoutStopFailureMode=abort\n",
])  # fmt: skip
def test_a_harmless_drop_in_changes_nothing(host, site, text):
    site(text)
    done = pi(host, "sh", "echo ran; printenv FOO; exit 3", timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"ran\n", b""), done


@pytest.mark.parametrize("setting", ["ProtectHome=no", "ProtectSystem=no", "NoNewPrivileges=no", "User=root", "IPAddressDeny=", "KillMode=process",
                                     "SystemCallFilter=", "DevicePolicy=auto", "Delegate=yes", "ExecStartPre=/bin/true", "RemainAfterExit=yes"])  # fmt: skip
def test_a_drop_in_that_could_weaken_is_refused_by_its_name_and_can_be_left_out(host, site, setting):
    site(f"[Service]\n{setting}\n")
    done = pi(host, "sh", "echo ran", timeout=20)
    assert done.returncode == 69 and done.stdout == b"", done
    assert f"{DROP_IN} sets {setting.split('=')[0]}=".encode() in done.stderr and b"pi-agent-.service.d" in done.stderr, done
    site("", LEFT_OUT)
    assert pi(host, "sh", "echo ran").stdout == b"ran\n"


def test_doctor_tells_of_such_a_drop_in(host, site):
    site("[Service]\nProtectHome=no\n")
    done = host.root(["pi-agentctl", "doctor", "--json"])
    assert done.returncode != 0 and DROP_IN in json.dumps(json.loads(done.stdout)), done


@pytest.mark.parametrize("setting", ["Restart=always", "Type=simple"])
def test_a_drop_in_that_breaks_the_cleanup_unit_is_told(host, site, setting):
    site(f"[Service]\n{setting}\n")
    done = pi(host, "sh", "echo ran", cwd=DEMO, timeout=20)
    host.root(f"rm {DROP_IN}; systemctl daemon-reload", check=True)
    assert pi(host, "sh", "echo ran").stdout == b"ran\n"  # this start removes what the refused one left
    assert done.returncode == 69 and b"bad unit file setting" in done.stderr and b"pi-agent-.service.d" in done.stderr, done

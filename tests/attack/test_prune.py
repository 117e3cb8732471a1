"""What pi-agentctl user prune takes for left behind: never what belongs to somebody, nor the home of somebody who is only not found just now."""

import pytest
from target import Outcome

pytestmark = pytest.mark.position("host")

USERS = "/var/lib/pi-agent/users"


def prune(target):
    return target.machine.root(["pi-agentctl", "user", "prune", "--yes"])


def exists(target, path):
    return target.machine.root(["test", "-e", path]).returncode == 0


def test_who_got_the_number_of_an_agents_account_loses_no_file(prove):
    """The account of somebody's agent was removed by hand, and its number went to the next one who came."""
    home = f"{USERS}/gone/home"

    def attack(target):
        target.machine.root(f"mkdir -p {home} && echo eves >{home}/file && chown -R eve:eve {home} && chmod 700 {home}", check=True)
        done = prune(target)
        is_gone = not exists(target, f"{home}/file")
        target.machine.root(["rm", "-rf", f"{USERS}/gone"], check=True)
        return Outcome(is_gone, done)

    on, _ = prove(attack, "left-owner")
    assert on.seen.returncode == 0 and b"but it belongs to eve" in on.seen.stdout, on


def test_while_a_directory_of_users_does_not_answer_nobody_loses_their_agents_home(prove):
    """carol comes by a group. Both are unknown for a moment, as on a host whose directory service is down."""
    home = f"{USERS}/carol/home"
    hide = "cp -a /etc/passwd /root/passwd && cp -a /etc/group /root/group && sed -i /^carol:/d /etc/passwd && sed -i /^devs:/d /etc/group"

    def attack(target):
        target.pi("true", user="carol", cwd="/srv/devs", check=True)
        target.quiet_traces()
        target.machine.root(hide, check=True)
        try:
            done = prune(target)
        finally:
            target.machine.root("mv /root/passwd /etc/passwd && mv /root/group /etc/group", check=True)
        return Outcome(not exists(target, home), done)

    on, _ = prove(attack, "known-people")
    assert on.seen.returncode == 78 and b"nobody can tell who left" in on.seen.stderr, on


SERVICE = "cp -a /etc/nsswitch.conf /root/ && sed -i 's/^passwd:.*/passwd: files extrausers/' /etc/nsswitch.conf && mkdir -p /var/lib/extrausers"


def test_whom_a_directory_service_does_not_know_just_now_keeps_their_agents_home(prove):
    """carol is the service's: her group is known and lists no members (ignore_group_members), and for a while the service has no entry of hers."""
    home = f"{USERS}/carol/home"
    move = f"{SERVICE} && cp -a /etc/passwd /etc/group /root/ && awk -F: -v OFS=: -v group=$(getent group devs | cut -d: -f3) '/^carol:/ {{ $4 = group; print }}' /etc/passwd >/var/lib/extrausers/passwd && sed -i /^carol:/d /etc/passwd && sed -i '/^devs:/s/[^:]*$//' /etc/group"

    def attack(target):
        target.pi("true", user="carol", cwd="/srv/devs", check=True)
        target.quiet_traces()
        target.machine.root(move, check=True)
        try:
            known = prune(target)
            assert exists(target, home), known
            target.machine.root(": >/var/lib/extrausers/passwd", check=True)
            done = prune(target)
            is_gone = not exists(target, home)
            said = target.machine.root(["pi-agentctl", "user", "prune", "--yes", "--gone", "carol"]) if not is_gone else done
            assert not exists(target, home), said
        finally:
            target.machine.root("mv /root/passwd /root/group /root/nsswitch.conf /etc/ && rm -r /var/lib/extrausers", check=True)
        return Outcome(is_gone, done)

    on, _ = prove(attack, "unknown-people")
    assert on.seen.returncode == 0 and b"only not answer just now (extrausers in /etc/nsswitch.conf)" in on.seen.stdout, on
    assert b"sudo pi-agentctl user prune --gone carol" in on.seen.stdout, on


def test_a_session_of_a_user_who_is_gone_from_the_database_keeps_their_agents_home(prove):
    def attack(target):
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; touch ~/work; exec sleep 60", user="carol", cwd="/srv/devs")
        target.machine.root("cp -a /etc/passwd /root/passwd && sed -i /^carol:/d /etc/passwd", check=True)
        try:
            done = target.machine.root(["pi-agentctl", "state", "reset", "--user", "carol", "--yes"])
            is_gone = not exists(target, f"{USERS}/carol/home/work")
        finally:
            target.machine.root(["mv", "/root/passwd", "/etc/passwd"], check=True)
            session.end()
        return Outcome(is_gone, done)

    on, _ = prove(attack, "sessions-of-unknown")
    assert on.seen.returncode == 75 and b"carol has a session" in on.seen.stderr, on

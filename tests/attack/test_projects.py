"""The project's mount: whose files are reachable through it, what it covers, and what of it the host sees."""

import contextlib

import pytest
from target import DEMO, Outcome

pytestmark = pytest.mark.position("agent")


@contextlib.contextmanager
def on_both(targets, before, after):
    for target in targets:
        target.machine.root(before, check=True)
    try:
        yield
    finally:
        for target in targets:
            target.machine.root(after, check=True)


def running(command, cwd=DEMO, user="alice"):
    def attack(target):
        done = target.pi("sh", "-c", command, cwd=cwd, user=user)
        return Outcome(done.returncode == 0, done)

    return attack


SECRET = f"{DEMO}/covered/secret"
HIDE = f"install -d -o alice -g alice {DEMO}/covered && echo hidden >{SECRET} && chmod 644 {SECRET}"
HIDE += f" && mount -t tmpfs -o mode=0755 none {DEMO}/covered && echo shown >{DEMO}/covered/other"
UNHIDE = f"umount {DEMO}/covered; rm -rf {DEMO}/covered"


def test_what_a_mount_inside_the_project_hides_stays_hidden(prove, product, weak):
    with on_both((product, weak), HIDE, UNHIDE):
        on, _ = prove(running(f"cat {SECRET}"), "cover-submounts")
        assert b"not shown to the agent: /home/alice/projects/demo/covered" in on.seen.stderr
        seen = product.pi("sh", "-c", f"ls -A {DEMO}/covered; touch {DEMO}/covered/x")
        assert seen.stdout == b"" and seen.returncode != 0, seen


def test_a_file_mounted_over_a_file_in_the_project_stays_as_hidden(prove, product, weak):
    file = f"{DEMO}/over"
    before = f"echo hidden >{file}; chmod 644 {file}; echo shown >/run/shown; mount --bind /run/shown {file}"
    with on_both((product, weak), before, f"umount {file}; rm {file} /run/shown"):
        prove(running(f"grep hidden {file}"), "cover-submounts")


def test_what_is_mounted_inside_the_sandbox_does_not_appear_on_the_host(prove, product, weak):
    def attack(target):
        """A copy that stays in the host's peer group would put our own stand-in for the submount on the host."""
        before = target.quiet_traces()["mounts"]
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
        during = [entry for entry in target.traces()["mounts"] if entry not in before and not entry[0].startswith("/run/pi-agent/")]
        session.end()
        target.machine.root(f"findmnt -n {DEMO}/covered -o SOURCE | grep -q pi-agent-hidden && umount {DEMO}/covered; true", check=True)
        return Outcome(bool(during), during)

    with on_both((product, weak), HIDE, UNHIDE):
        prove(attack, "private-clones")


OWNERS = {
    "a file of root": ("root:root", "600", "cat {0} || echo x >>{0}"),
    "a readable file of root": ("root:root", "644", "echo x >>{0}"),
    "a file of root's group": ("root:root", "660", "cat {0} || echo x >>{0}"),
}


@pytest.mark.parametrize("kind", OWNERS)
def test_roots_file_in_the_project_stays_roots(kind, prove, product, weak):
    # Without the defence the map exchanges root with the agent instead of the user.
    owner, mode, command = OWNERS[kind]
    file = "/srv/shared/app/theirs"
    before = f"chmod 777 /srv/shared/app; echo theirs >{file}; chown {owner} {file}; chmod {mode} {file}"
    with on_both((product, weak), before, f"rm {file}; chmod 755 /srv/shared/app"):
        prove(running(command.format(file), cwd="/srv/shared/app"), "own-ids-only")


def test_another_users_file_in_the_project_stays_theirs(product, control_seen):
    file = f"{DEMO}/bobs"
    product.machine.root(f"echo bobs >{file}; chown bob:bob {file}; chmod 600 {file}", check=True)
    shown = product.pi("sh", "-c", f"stat -c %U {file}; cat {file}; echo x >>{file}; chmod 666 {file}; chown $(id -u) {file}")
    assert shown.stdout in (b"nobody\n", b"UNKNOWN\n"), shown  # what the session's user namespace does not know, or the view's /etc/passwd
    assert product.machine.root(["stat", "-c", "%U %a", file]).stdout == b"bob 600\n"
    assert product.machine.read(file) == b"bobs\n"
    control_seen("root reads it there")
    product.machine.root(["rm", file], check=True)


def test_what_the_agent_makes_belongs_to_the_user_and_never_to_root(prove, product, weak):
    shared = "/srv/shared/app"

    def attack(target):
        target.pi("sh", "-c", "mkdir made && touch made/file && ln made/file made/link", check=True, cwd=shared)
        owners = target.machine.root(["stat", "-c", "%U:%G", f"{shared}/made", f"{shared}/made/file"]).stdout
        target.machine.root(["rm", "-r", f"{shared}/made"], check=True)
        return Outcome(b"root" in owners, owners)

    # Open to all, for without the defence the map exchanges root with the agent instead of the user.
    with on_both((product, weak), f"chmod 777 {shared}", f"chmod 755 {shared}"):
        on, _ = prove(attack, "own-ids-only")
    assert on.seen == b"alice:alice\n" * 2
    product.pi("sh", "-c", "mkdir made && touch made/file", check=True)
    for claim in ("chown 0 made/file", "chown 1001 made/file", "chgrp 0 made/file", "chgrp 1500 made/file"):
        assert product.pi("sh", "-c", claim).returncode != 0, claim
    product.machine.root(["rm", "-r", f"{DEMO}/made"], check=True)


LINKS = ("/etc/shadow", "/home/alice/.ssh/key", "/home/bob/work/demo", "/var/lib/pi-agent/users/bob/home/.pi/agent/settings.json")


@pytest.mark.parametrize("goal", LINKS)
def test_a_link_in_the_project_leads_nowhere_outside(goal, product, control_seen):
    product.machine.root("install -d /home/alice/.ssh && echo key >/home/alice/.ssh/key && chmod 644 /home/alice/.ssh/key", check=True)
    product.machine.run(["ln", "-sfn", goal, f"{DEMO}/link"], check=True)
    done = product.pi("sh", "-c", "cat link || ls link/")
    assert done.returncode != 0, done
    product.machine.root(f"cd {DEMO}; cat link || ls link/", check=True)
    control_seen("on the host root finds something where the link leads")
    product.machine.root(f"rm -r {DEMO}/link /home/alice/.ssh", check=True)


def test_climbing_out_of_the_project_ends_in_the_sessions_own_root(product, control_seen):
    climbing = "cd /proc/self/cwd/../../../../../../..; pwd -P; ls -A home/alice"
    assert product.pi("sh", "-c", climbing).stdout == b"/\nprojects\n"
    assert b"\n.pi\n" in product.machine.run(climbing, cwd=DEMO, check=True).stdout
    control_seen("on the host the same way shows the whole home")


def test_a_group_that_opens_the_host_is_never_given_to_an_agent(prove, product, weak):
    # An agent's account that somebody added to such a group would carry it into every session.
    with on_both((product, weak), "gpasswd -a pi-agent adm", "gpasswd -d pi-agent adm"):
        on, _ = prove(running("true"), "privileged-groups")
    assert on.seen.returncode == 78 and b"is in the group adm" in on.seen.stderr, on

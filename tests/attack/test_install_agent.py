"""What a registry, a package or a compromised node may do while an agent is installed: nothing to the host, and nothing that root takes over."""

import re
from pathlib import Path
from tarfile import BLKTYPE, CHRTYPE, FIFOTYPE, LNKTYPE, SYMTYPE, TarInfo

import pytest
from points import WAIT_AT
from scripted_registry import CERTIFICATE, SECURE_URL, URL, Registry
from target import Outcome

pytestmark = pytest.mark.position("host")

SOURCES = Path(__file__).resolve().parents[2]
AGENTS = "/usr/lib/pi-agent/agents"
TREE = f"{AGENTS}/pi/7.7.7"


@pytest.fixture(scope="module", autouse=True)
def registries(product, weak):
    for target in (product, weak):
        target.machine.root("cp -a /usr/share/pi-agent/agents /root/agents-data", check=True)
        target.machine.registry = Registry(target.machine)
    yield
    for target in (product, weak):
        target.machine.root(
            "systemctl stop scripted-registry; cp -a /root/agents-data/. /usr/share/pi-agent/agents; rm -rf /root/agents-data /srv/registry"
            f" /usr/local/lib/scripted_registry.* {AGENTS}; test ! -L /usr/lib/pi-agent/agent || rm /usr/lib/pi-agent/agent", check=True)  # fmt: skip


def install(target, play="", members=(), registry=URL):
    """An installation in which npm does `play` too; the tree of the agent is removed before, and what a test looks for."""
    machine = target.machine
    machine.registry.publish(play=play, members=members)
    # Beside the agent that these machines have by hand: the version alone is looked at.
    machine.root(f"rm -rf {AGENTS} /root/planted; test ! -L /usr/lib/pi-agent/agent || rm /usr/lib/pi-agent/agent", check=True)
    machine.root("test ! -d /usr/lib/pi-agent/agent || mv /usr/lib/pi-agent/agent /usr/lib/pi-agent/aside", check=True)
    try:
        return machine.root(["pi-agentctl", "agent", "install", "pi@7.7.7", "--registry", registry])
    finally:
        machine.root("test ! -d /usr/lib/pi-agent/aside || { rm -f /usr/lib/pi-agent/agent; mv /usr/lib/pi-agent/aside /usr/lib/pi-agent/agent; }", check=True)


def outcome(done, machine, found):
    """Whether what was planted is where `found`, a script, looks."""
    return Outcome(machine.root(found).returncode == 0, done)


# What the packages' own programs do in the unit: the script, what shows that it worked, and the defences against it.
INSIDE = {
    "a link out of the tree": ("ln -s ../../../../../../etc/shadow out", f"test -L {TREE}/out", ("agent-tree-links",)),
    "an absolute link": ("ln -s /etc/shadow out", f"test -L {TREE}/out", ("agent-tree-links",)),
    "a link through a link": ("ln -s . here && ln -s here/../../x out", f"test -L {TREE}/out", ("agent-tree-links",)),
    "a hard link": ("echo x >one && ln one two", f"test -e {TREE}/two", ("agent-tree-owner",)),
    "a file of the host": ("touch /root/planted || true", "test -e /root/planted", ("unit:DynamicUser", "unit:ProtectSystem", "unit:ProtectHome", "unit:CapabilityBoundingSet", "agent-fetch-unprivileged")),
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_a_package_plants(prove, name):
    play, found, defences = INSIDE[name]
    prove(lambda target: outcome(install(target, play), target.machine, found), *defences)


def test_another_archive_than_the_pinned_one(prove):
    def attack(target):
        machine = target.machine
        machine.registry.publish()
        install(target)
        machine.root(f"rm -rf {AGENTS}; test ! -L /usr/lib/pi-agent/agent || rm /usr/lib/pi-agent/agent", check=True)
        machine.registry.publish(play="touch evil", pinned=False)
        done = machine.root(["pi-agentctl", "agent", "install", "pi@7.7.7", "--registry", URL])
        return outcome(done, machine, f"test -e {TREE}/evil")

    prove(attack, "agent-integrity")


@pytest.mark.parametrize("leads", [False, True], ids=["by an archive's URL", "by a redirect"])
def test_a_registry_that_leads_from_https_to_http(prove, leads):
    """Others on the way could answer for the plain one; that anything is installed from there is their success."""

    def attack(target):
        machine = target.machine
        machine.registry.behave(lead=leads)
        machine.write("/root/.npmrc", f"cafile={CERTIFICATE}\n")
        try:
            return outcome(install(target, "touch led", registry=SECURE_URL), machine, f"test -e {TREE}/led")
        finally:
            machine.root(["rm", "/root/.npmrc"], check=True)
            machine.registry.behave()

    prove(attack, "agent-https")


# Where the seams stop the two programs: one line each of fetch/ and admin/agents/.
POINTS = ("agent-downloaded", "agent-npm-done", "agent-copying", "agent-copied", "agent-placed", "agent-switched")
ONLY_BY_HAND = ("agent-exchanged",)


def test_every_point_is_tried():
    files = [file for area in ("fetch", "admin/agents") for file in (SOURCES / area).glob("*.cpp")]
    found = {name for file in files for name in re.findall(r'fault_point\("([^"]+)"\)', file.read_text())}
    assert found == {*POINTS, *ONLY_BY_HAND}


@pytest.mark.parametrize("point", [*POINTS, *ONLY_BY_HAND])
def test_a_kill_at_a_named_point(weak, control_seen, point):
    """Whoever is killed there: what starts is a whole version or the one before, and the next run succeeds."""
    machine = weak.machine
    machine.registry.publish()
    by_hand = "mkdir -p /usr/lib/pi-agent/agent/bin; printf '#!/bin/sh\\necho by hand\\n' >/usr/lib/pi-agent/agent/bin/pi; chmod 755 /usr/lib/pi-agent/agent/bin/pi"
    machine.root(f"rm -rf {AGENTS} /usr/lib/pi-agent/agent; {by_hand if point in ONLY_BY_HAND else ':'}", check=True)
    command = ["pi-agentctl", "agent", "install", "pi@7.7.7", "--registry", URL]
    machine.write(WAIT_AT, f"{point}\n")
    with machine.popen(command, user="root") as running:
        machine.root(f"for i in $(seq 400); do pgrep -x {point[:15]} && exit; sleep .05; done; exit 1", check=True)
        machine.root(f"pkill -9 -x {point[:15]}", check=True)
        _, said = running.communicate(timeout=60)
    machine.root(["rm", WAIT_AT], check=True)
    assert running.returncode != 0, said
    started = machine.root("/usr/lib/pi-agent/agent/bin/pi").stdout
    assert started in (b"", b"by hand\n", b"agent 7.7.7\n"), started
    done = machine.root(command)
    assert done.returncode == 0, done
    assert machine.root("/usr/lib/pi-agent/agent/bin/pi").stdout == b"agent 7.7.7\n"
    left = machine.root(f"ls -A {AGENTS} /usr/lib/pi-agent; ls -d /var/lib/private/pi-agent-fetch").stdout.decode().split()
    assert ".new" not in left and ".agent" not in left and "/var/lib/private/pi-agent-fetch" not in left, left
    if point in ONLY_BY_HAND:
        assert machine.root(f"{AGENTS}/pi/by-hand/bin/pi").stdout == b"by hand\n"
    control_seen("a program of the two waited there and was killed")


def test_a_set_uid_program(product, weak, seen_to_work):
    """Nobody in the unit can make one (RestrictSUIDSGID=); here root plants it, before the tree is copied."""
    done = install(product, "touch s && chmod 4755 s")
    assert done.returncode == 69 and b"Operation not permitted" in done.stderr, done
    machine = weak.machine
    command = ["pi-agentctl", "agent", "install", "pi@7.7.7", "--registry", URL]
    for defences in ((), ("agent-tree-modes",)):
        machine.registry.publish(play="touch s")
        machine.root(f"rm -rf {AGENTS} /usr/lib/pi-agent/agent", check=True)
        machine.write(WAIT_AT, "agent-copying\n")
        with machine.popen(command, user="root") as running, weak.without(*defences):
            machine.root("for i in $(seq 400); do pgrep -x agent-copying && exit; sleep .05; done; exit 1", check=True)
            machine.root(f"chmod 4755 /var/lib/private/pi-agent-fetch/tree/s; rm {WAIT_AT}", check=True)
            _, said = running.communicate(timeout=60)
        assert machine.root(f"test -u {TREE}/s").returncode == (0 if defences else 1), said
        assert bool(defences) or b"s is setuid or setgid, which no package needs" in said, said
    seen_to_work(defences)


SPECIAL = {
    "a fifo": "mkfifo special",
    "a socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"special\")'",
    "an unsafe name": "touch \"$(printf 'special\\033[2J')\"",
}


@pytest.mark.parametrize("name", SPECIAL)
def test_what_root_has_no_way_to_copy(product, control_seen, name):
    refused = install(product, SPECIAL[name])
    assert refused.returncode == 77 and b"the package is not installed: special" in refused.stderr, refused
    assert product.machine.root(f"ls {TREE}").returncode != 0
    fine = install(product, "touch harmless")
    assert fine.returncode == 0 and product.machine.root(f"ls {TREE}/harmless").returncode == 0, fine
    control_seen("with a file in its place the same package is installed")


def member(name, kind, link=""):
    made = TarInfo(name)
    made.type, made.linkname, made.mode = kind, link, 0o6777
    made.devmajor, made.devminor = 1, 3
    return made


ARCHIVES = {
    "a path with ..": [member("package/../../../../../tmp/planted", SYMTYPE, "x")],
    "an absolute path": [member("/var/tmp/planted", SYMTYPE, "x")],
    "a character device": [member("package/device", CHRTYPE)],
    "a block device": [member("package/device", BLKTYPE)],
    "a fifo": [member("package/fifo", FIFOTYPE)],
    "a hard link to the host": [member("package/passwd", LNKTYPE, "../../../../../../etc/passwd")],
    "a directory through a link": [member("package/way", SYMTYPE, "/var/tmp"), member("package/way/planted", SYMTYPE, "x")],
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_hostile_archive(product, control_seen, name):
    """tar runs without any right in a directory of its own, and what it makes of the archive of npm is never taken over."""
    machine = product.machine
    install(product, members=ARCHIVES[name])
    planted = machine.root(f"find / -xdev \\( -name planted -o -path '{AGENTS}/*' \\( -type b -o -type c -o -type p -o -perm /6000 \\) \\) 2>/dev/null").stdout
    assert planted == b"", planted
    machine.write("/var/tmp/planted", "")
    assert b"/var/tmp/planted" in machine.root("find / -xdev -name planted").stdout
    machine.root("rm /var/tmp/planted", check=True)
    control_seen("the same look finds a file that root puts there")

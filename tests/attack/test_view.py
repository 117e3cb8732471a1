"""What the agent can see and write: its own state, temporary directories and the project, and nothing else."""

import re

import pytest
from target import DEMO, INSIDE, USER_NAMESPACE, Outcome

pytestmark = pytest.mark.position("agent")

HOME = "/var/lib/pi-agent/users/alice/home"
# Kernel switches that anybody may write by design: a pressure trigger only tells its own writer.
KERNEL = {f"/proc/pressure/{name}" for name in ("cpu", "io", "memory")}
DEVICES = {f"/dev/{name}" for name in ("full", "null", "random", "urandom", "zero", "pts/ptmx")}
# Private to the session, each of them: test_neighbours.py.
TEMPORARY = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"}
EXPECTED = {HOME, "/home/alice/projects", DEMO} | TEMPORARY | DEVICES | KERNEL
OPEN_ON_HOST = ("/opt/open", "/etc/open", "/usr/local/open", "/srv/open", "/var/lib/open")
# systemd counts what it refuses itself, and not what the launcher's filter does: 0.1 for what debuggers call (docs/decisions/0034-debuggers.md), as much for
# netlink (0033), as much for set-gid directories (0035), and as much for addresses that are not random (0034 again).
EXPOSURE_LIMITS = {"": 1.9, "hardening: {tracing: never}": 1.8}


def seen_in(place, probe):
    def attack(target):
        seen = target.probe(probe, cwd="/srv/shared/app")[probe][place]
        return Outcome(bool(set(seen) & HOST_ONLY[place]) if isinstance(seen, list) else False, seen)

    return attack


HOST_ONLY = {
    "/home": {"bob", "eve", "carol"},
    "/root": {"secret"},
    "/run/user": {"1002"},
    "/srv": {"devs"},
    "/mnt": {"planted"},
    "/media": {"planted"},
    "/run": {"dbus", "scripted-model"},
    "/var": {"log", "cache"},
    "/var/lib": {"systemd"},
}


@pytest.fixture(scope="module", autouse=True)
def things_to_find(product, weak):
    """Directories that anybody could write or read on the host."""
    made = f"install -d -m 0777 {' '.join(OPEN_ON_HOST)}; touch /opt/open/file; chmod 666 /opt/open/file"
    made += "; chmod 755 /root; touch /root/secret /mnt/planted /media/planted; install -d -m 0777 /run/user/1002"
    for target in (product, weak):
        target.machine.root(made, check=True)
    yield
    for target in (product, weak):
        target.machine.root(f"rm -rf {' '.join(OPEN_ON_HOST)} /root/secret /mnt/planted /media/planted /run/user/1002; chmod 700 /root", check=True)


def test_nothing_is_writable_but_state_temporary_directories_and_the_project(prove):
    def attack(target):
        writable = set(target.probe("writable")["writable"])
        return Outcome(bool(writable - EXPECTED), writable)

    on, _ = prove(attack, "unit:ProtectSystem", "read-only-clones", quick=True)
    assert on.seen == EXPECTED


@pytest.mark.parametrize("place", OPEN_ON_HOST)
def test_what_anybody_may_write_on_the_host_is_not_writable_for_the_agent(place, prove):
    def attack(target):
        done = target.pi("sh", "-c", f"touch {place}/mine && rm {place}/mine")
        return Outcome(done.returncode == 0, done)

    defences = ["unit:ProtectSystem"]
    defences += ["unit:RootDirectory", "unit:BindReadOnlyPaths"] if place.startswith(("/srv", "/var")) else ["read-only-clones"]
    defences += ["minimal-view"] if place.startswith("/etc") else []
    prove(attack, *defences)


SAYS_TOO_MUCH = {
    "who has an account here": "grep -E '^(bob|carol):' /etc/passwd",
    "who is in which group": "grep '^devs:' /etc/group",
    "how the host lets people in": "cat /etc/ssh/sshd_config",
    "what starts when": "ls /etc/systemd/system",
    "who may run the agent where": "cat /etc/sudoers.d/README /etc/pam.d/sudo",
}


@pytest.mark.parametrize("what", SAYS_TOO_MUCH)
def test_the_hosts_configuration_does_not_tell(what, prove):
    def attack(target):
        done = target.pi("sh", "-c", SAYS_TOO_MUCH[what])
        return Outcome(done.stdout != b"", done)

    prove(attack, "minimal-view")


# Both are conffiles of packages that every Debian has; everybody on the host may read them.
CONFFILE = "/etc/issue.net"
OF_SIGNING_IN = "/etc/pam.d/other"
LOOK_AGAIN = "pi-agentctl apply --package-files"


def in_a_session(path, needle):
    def attack(target):
        target.machine.root(LOOK_AGAIN, check=True)
        done = target.pi("sh", "-c", f"cat {path}; cat /var/lib/pi-agent/etc{path[4:]}")
        return Outcome(needle in done.stdout, done)

    return attack


@pytest.fixture
def changed_conffile(product, weak):
    """The administrator wrote a password into a file that a package ships."""
    for target in (product, weak):
        target.machine.root(f"cp -p {CONFFILE} /root/kept; echo 'password = a-secret' >>{CONFFILE}", check=True)
    yield
    for target in (product, weak):
        target.machine.root(f"cp -p /root/kept {CONFFILE}; rm /root/kept; {LOOK_AGAIN}", check=True)


def test_a_package_s_file_that_somebody_wrote_a_password_into_stays_hidden(prove, product, changed_conffile):
    prove(in_a_session(CONFFILE, b"a-secret"), "unchanged-package-files")
    product.machine.root(f"cp -p /root/kept {CONFFILE}", check=True)
    assert in_a_session(CONFFILE, b"Debian")(product).succeeded, "it is shown as the package ships it, or this test proves nothing"


def test_what_a_package_made_itself_is_none_of_its_files(product, control_seen):
    made = "/etc/issue.net.made-at-installation"
    product.machine.root(f"cp -p {CONFFILE} {made}", check=True)
    outcome = in_a_session(made, b"Debian")(product)
    assert not outcome.succeeded, outcome
    assert in_a_session(CONFFILE, b"Debian")(product).succeeded
    control_seen("the same text is shown where a package ships it")
    product.machine.root(f"rm {made}", check=True)


def test_how_people_sign_in_is_not_shown_though_nobody_changed_it(product, control_seen):
    assert product.machine.run(["cat", OF_SIGNING_IN], check=True).stdout
    control_seen("on the host everybody reads it")
    assert product.pi("cat", OF_SIGNING_IN).returncode != 0


@pytest.mark.parametrize("instead", ["ln -s /etc/shadow", "mkfifo", "mkdir", "cp -p /etc/shadow"])
def test_whatever_is_in_the_place_of_a_package_s_file_is_not_read_for_it(instead, product):
    product.machine.root(f"mv {CONFFILE} /root/kept; {instead} {CONFFILE}", check=True)
    try:
        assert not in_a_session(CONFFILE, b"")(product).seen.stdout
    finally:
        product.machine.root(f"rm -rf {CONFFILE}; mv /root/kept {CONFFILE}; {LOOK_AGAIN}", check=True)


@pytest.mark.parametrize("place", ["/home", "/root", "/run/user"])
def test_other_homes_are_not_there(place, prove):
    prove(seen_in(place, "homes"), "unit:RootDirectory", "unit:ProtectHome", "unit:TemporaryFileSystem", "unit:BindReadOnlyPaths")


@pytest.mark.parametrize("place", ["/srv", "/mnt", "/media", "/run", "/var", "/var/lib"])
def test_other_places_of_the_host_are_not_there(place, prove):
    prove(seen_in(place, "places of the host"), "unit:RootDirectory", "unit:BindReadOnlyPaths")


def test_exactly_one_project_and_nothing_of_its_home_is_shown(prove, product):
    homes = product.probe("homes")["homes"]
    empty = {"/root": [], "/run/user": [], "/home/bob": "ENOENT", "/home/eve": "ENOENT"}
    assert homes == {"/home": ["alice"], "/home/alice": ["projects"], **empty}

    def attack(target):
        seen = target.probe("homes", "places of the host", cwd="/srv/shared/app")
        return Outcome(seen["homes"]["/home"] not in ([], "EACCES") or seen["places of the host"]["/srv"] != ["shared"], seen)

    prove(attack, "unit:RootDirectory", "unit:ProtectHome", "unit:TemporaryFileSystem", "unit:BindReadOnlyPaths")


def test_the_kernels_own_files_are_not_readable(product, control_seen):
    for path in ("/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/sysrq-trigger", "/dev/mem", "/dev/kmsg"):
        assert product.pi("head", "-c", "1", path).returncode != 0, path
    assert product.machine.run(["head", "-c", "1", "/proc/kallsyms"]).returncode == 0
    control_seen("on the host every user reads /proc/kallsyms")
    assert product.pi("ls", "/sys").stdout == b"devices\nfs\n"
    assert product.pi("ls", "-A", "/sys/fs/cgroup").stdout == b""


def test_a_device_that_root_left_in_the_project_is_not_opened(prove, product, weak):
    node = f"{DEMO}/node"
    for target in (product, weak):
        target.machine.root(["mknod", "-m", "666", node, "c", "1", "5"], check=True)

    def attack(target):
        done = target.pi("head", "-c", "1", node)
        return Outcome(done.returncode == 0, done)

    prove(attack, "nosuid-clones")
    for target in (product, weak):
        target.machine.root(["rm", node], check=True)


def test_a_setuid_program_that_root_left_in_the_project_gives_nothing(product, control_seen):
    planted = f"{DEMO}/planted-id"
    product.machine.root(["cp", "-p", f"{INSIDE}/setuid-id", planted], check=True)
    assert product.pi(planted, "-u").stdout.strip() not in (b"0", b"")
    assert product.machine.run([planted, "-u"], check=True).stdout == b"0\n"
    control_seen("on the host it makes its user root")
    assert "nosuid" in product.pi("findmnt", "-no", "OPTIONS", "--target", DEMO).stdout.decode()
    product.machine.root(["rm", planted], check=True)


# The last one is not among what the container around the machine makes read-only itself, which systemd 257 takes over.
KERNEL_SETTINGS = ("/proc/sys", "/proc/sys/kernel/core_pattern", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/sys/net")
READ_ONLY_MOUNT = "import os, sys; print(*(path for path in sys.argv[1:] if not os.statvfs(path).f_flag & os.ST_RDONLY))"


def test_the_kernels_settings_are_on_a_read_only_file_system(prove):
    """For an agent that has become root after all, as which it could write them: file modes keep out only others."""

    def attack(target):
        done = target.pi("python3", "-c", READ_ONLY_MOUNT, *KERNEL_SETTINGS)
        writable = done.stdout.decode().split()
        return Outcome(bool(writable), done if done.returncode else writable)

    on, _ = prove(attack, "kernel-files")
    assert on.seen == []


def test_the_kernels_symbols_are_not_readable(prove):
    def attack(target):
        done = target.pi("head", "-c", "1", "/proc/kallsyms")
        return Outcome(done.returncode == 0 and len(done.stdout) == 1, done)

    prove(attack, "kernel-files")


def exposure(target):
    """What systemd-analyze says of a live unit; lower is better."""
    session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
    shown = target.machine.root(["systemd-analyze", "security", "--no-pager", session.service]).stdout.decode()
    session.end()
    return float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", shown).group(1))


@pytest.mark.parametrize("section", EXPOSURE_LIMITS)
def test_the_live_unit_is_hardened_in_the_eyes_of_systemd(section, prove):
    def attack(target):
        with target.policy_with(section):
            level = exposure(target)
        print(f"exposure of the live unit: {level}")
        return Outcome(level > EXPOSURE_LIMITS[section], level)

    prove(attack, *USER_NAMESPACE, "unit:SystemCallFilter")


def test_the_agent_gets_no_core_files(prove):
    def attack(target):
        limit = target.pi("sh", "-c", "ulimit -Hc").stdout.decode().strip()
        return Outcome(limit != "0", limit)

    prove(attack, "unit:LimitCORE")


@pytest.mark.position("outsider")
def test_the_agents_home_is_closed_to_everybody_else(product, control_seen):
    made = product.pi("sh", "-c", "stat -c %a $HOME $HOME/.pi $HOME/.pi/agent/settings.json")
    assert made.stdout.decode().split() == ["700", "700", "600"], made
    assert product.machine.run(["ls", HOME], user="eve").returncode != 0
    product.machine.root(["ls", f"{HOME}/.pi"], check=True)
    control_seen("root sees what is in it")

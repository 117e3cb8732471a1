"""What an agent tries inside its session, call by call: each is refused, and answered by the kernel without its defences."""

import json

import pytest
from target import DEMO, INSIDE, PRELUDE, USER_NAMESPACE, Outcome

pytestmark = pytest.mark.position("agent")

FILTERS = ("seccomp-filter", "unit:SystemCallFilter")
# Several properties bring a system call filter of their own, and each filter sets no_new_privs.
ALL_FILTERS = FILTERS + tuple(
    f"unit:{name}" for name in
    ("RestrictNamespaces", "RestrictRealtime", "RestrictAddressFamilies", "ProtectClock",
     "ProtectHostname", "ProtectKernelModules", "ProtectKernelLogs", "PrivateDevices", "SystemCallArchitectures")
)  # fmt: skip
MORE_RIGHTS = (*ALL_FILTERS, "unit:NoNewPrivileges", "landlock", "nosuid-clones", "minimal-view")
LAUNCHER = ("exec-not-dumpable", "agent-below-launcher")  # each is enough: test_tracing.py
NO_SUID_BITS = FILTERS
AS_ROOT = (*ALL_FILTERS, "unit:User", "unit:Group", "unit:CapabilityBoundingSet", "unit:AmbientCapabilities", *USER_NAMESPACE)
CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
NO_CAPABILITY = "0" * 16

# (defences, answer with them in, probes): one session tries all probes of a line.
GROUPS = (
    (FILTERS, "EPERM", (
        "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "pidfd_getfd", "add_key", "request_key", "keyctl", "name_to_handle_at", "open_by_handle_at", "bpf",
        "perf_event_open", "mount", "umount2", "open_tree", "quotactl")),
    ((*FILTERS, "unit:RestrictNamespaces"), "EPERM", ("unshare", "clone into a user namespace", "setns")),
    ((*FILTERS, "unit:RestrictNamespaces"), "ENOSYS", ("clone3",)),
    (FILTERS, "ENOSYS", ("openat2",)),
    ((*FILTERS, "unit:ProtectClock"), "EPERM", ("settimeofday", "clock_settime", "clock_adjtime", "adjtimex")),
    (("seccomp-filter",), "EPERM", ("personality",)),
    (("unit:RestrictRealtime",), "EPERM", ("real-time scheduling",)),
    (("unit:RestrictAddressFamilies",), "EAFNOSUPPORT", ("AF_PACKET", "AF_VSOCK")),
    (("seccomp-filter",), "EPROTONOSUPPORT", (
        "netlink for uevents", "netlink for sockets", "netlink for families", "netlink for uevents with high bits")),
    (("seccomp-filter",), "EAFNOSUPPORT", ("socketpair of netlink", "socketpair of inet", "socketpair of inet with high bits", "socketpair of AF_PACKET")),
    (("seccomp-filter",), "EPERM", ("btrfs snapshot", "btrfs snapshot with flags", "TIOCSTI", "TIOCSTI with high bits", "TIOCLINUX", "write lease", "read lease", "lease with high bits", "delegation")),
    (("seccomp-filter", "unit:SystemCallArchitectures"), "killed by SIGSYS", ("32-bit call", "x32 call")),
    # Those that need a capability: the kernel's own answer shows only to an agent that has all of them.
    (AS_ROOT, "EPERM", (
        "reboot", "init_module", "finit_module", "delete_module", "kexec_load", "acct", "swapon", "swapoff", "sethostname",
        "setdomainname", "chroot", "pivot_root", "fsopen", "fsmount", "move_mount", "mount_setattr", "kernel log", "ioperm", "iopl", "mknod of a device")),
    (AS_ROOT, NO_CAPABILITY, ("CapPrm", "CapEff")),
    (("unit:CapabilityBoundingSet",), NO_CAPABILITY, ("CapBnd",)),
    ((*ALL_FILTERS, "unit:NoNewPrivileges", "landlock"), "1", ("NoNewPrivs",)),
    ((*ALL_FILTERS, "unit:NoNewPrivileges", "landlock"), "2", ("Seccomp",)),
    (LAUNCHER, "ENOENT", tuple(
        f"launcher's {what}" for what in ("mem", "environ", "fd", "map_files", "root", "cwd", "auxv"))),
    # Its /run is a directory of the session; with the host's root and /run these would be there.
    (("unit:RootDirectory", "unit:BindReadOnlyPaths"), "ENOENT", (
        "system bus", "systemd's private bus", "systemd's notify socket", "journal", "journal's datagrams", "syslog", "user database")),
)  # fmt: skip
CASES = [(probe, answer, defences) for defences, answer, probes in GROUPS for probe in probes]

# How a mode with a setuid or setgid bit can be asked for. mkdir is not here: the kernel itself drops these bits from it.
BIT_CALLS = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chmod through /proc", "open", "open with high flag bits", "openat",
    "openat with high mode bits", "openat of a nameless file", "openat2", "creat", "mknod", "mknodat",
)  # fmt: skip
BIT_PROBES = [f"{bit} by {call}" for bit in ("setuid", "setgid") for call in BIT_CALLS]


@pytest.fixture(scope="module")
def results(product, weak):
    """results(target, defences taken out, probes): each such session is run once for the whole file."""
    known = {}

    def results(target, defences, probes):
        key = (target, defences, probes)
        if key not in known:
            with target.without(*defences) if defences else target.intact():
                known[key] = target.probe(*probes)
        return known[key]

    return results


def makes_32_bit_calls(target):
    """Whether this host's kernel and processor do at all: outside of any session."""
    done = target.machine.run(["python3", f"{INSIDE}/probe.py", "32-bit call"], check=True)
    return json.loads(done.stdout.splitlines()[-1])["32-bit call"] == "done"


EVERYTHING = tuple(dict.fromkeys(probe for probe, _, _ in CASES)) + tuple(BIT_PROBES)


@pytest.mark.parametrize(("probe", "answer", "defences"), CASES, ids=[probe for probe, _, _ in CASES])
def test_inside_the_agent_is_refused(probe, answer, defences, product, weak, results, seen_to_work):
    if probe == "32-bit call" and not makes_32_bit_calls(weak):
        pytest.skip("this host makes no 32-bit calls, so there is none to refuse")
    assert results(product, (), EVERYTHING)[probe] == answer
    assert results(weak, (), EVERYTHING)[probe] == answer
    together = tuple(dict.fromkeys(name for name, _, group in CASES if group == defences))
    off = results(weak, defences, together)[probe]
    assert off != answer, f"without {defences} the kernel should answer {probe}, so this test proves nothing"
    seen_to_work(defences)


@pytest.mark.parametrize("probe", BIT_PROBES)
def test_no_call_leaves_a_setuid_or_setgid_bit_in_the_project(probe, product, weak, results, seen_to_work):
    assert results(product, (), EVERYTHING)[probe] != "done"
    assert results(weak, (), EVERYTHING)[probe] != "done"
    assert results(weak, NO_SUID_BITS, tuple(BIT_PROBES))[probe] == "done"
    seen_to_work(NO_SUID_BITS)


def test_a_setuid_program_gives_the_agent_nothing(prove, outcome_of_probe):
    prove(outcome_of_probe("setuid program"), *ALL_FILTERS, "unit:NoNewPrivileges", "landlock", "nosuid-clones")


def test_the_launcher_cannot_be_traced(prove, outcome_of_probe):
    prove(outcome_of_probe("launcher's ptrace"), *LAUNCHER)


def test_all_five_capability_sets_are_empty_and_no_group_came_along(prove):
    def attack(target):
        shown = target.probe(*CAPABILITY_SETS, "NoNewPrivs", "Seccomp", "Groups", "Uid")
        return Outcome({shown[name] for name in CAPABILITY_SETS} != {NO_CAPABILITY}, shown)

    on, _ = prove(attack, *AS_ROOT)
    shown = on.seen
    assert (shown["NoNewPrivs"], shown["Seccomp"]) == ("1", "2")
    assert len(set(shown["Uid"].split())) == 1 and shown["Groups"] not in ("", "0")


# The host's own programs with a setuid or setgid bit, which tell every account of its line in /etc/shadow: what is in it alone, and what they need.
OF_SHADOW = {
    "passwd (setuid)": ("passwd -S", b" L ", MORE_RIGHTS),
    "chage (setgid)": ("chage -l $(id -un)", b"Last password change", (*MORE_RIGHTS, *USER_NAMESPACE, "unit:CapabilityBoundingSet")),
}


@pytest.mark.parametrize("program", OF_SHADOW)
def test_the_hosts_programs_with_more_rights_than_the_agent_read_nothing_for_it(program, prove):
    command, told, defences = OF_SHADOW[program]

    def attack(target):
        done = target.pi("sh", "-c", command)
        return Outcome(told in done.stdout, done)

    prove(attack, *defences)


def test_pi_starts_no_session_inside_of_one(product, weak, control_seen):
    nested = ["/usr/bin/pi", "echo", "ran"]
    done = product.pi(*nested)
    assert (done.returncode, done.stdout) == (69, b"") and b"no_new_privs" in done.stderr, done
    with weak.without(*MORE_RIGHTS):  # then it is the account that is refused
        done = weak.pi(*nested)
    assert (done.returncode, done.stdout) == (77, b"") and b"an agent's own" in done.stderr, done
    assert product.machine.run(nested, cwd=DEMO).stdout == b"ran\n"
    control_seen("outside of one the same command starts one")


@pytest.mark.parametrize("uid", ["os.getuid()", "1000"])
def test_the_runner_does_nothing_for_an_agent_that_runs_it(uid, product, right_call_seen):
    answer = product.python(PRELUDE + f"tell(call(lambda c, s: ask(c, s, ['true']), argv=DIRECT, env={{'SUDO_UID': str({uid})}}))")
    assert answer["ended"] is None and answer["status"] == 77 and "only root can run this program" in answer["said"], answer


def test_a_namespace_that_systemd_forgot_to_refuse_is_refused_all_the_same(weak, seen_to_work):
    """systemd writes RestrictNamespaces= down so that it reads it as "any" after a reload; without it the launcher's filter is left."""
    name, both = "clone into a user namespace", ("unit:RestrictNamespaces", "seccomp-filter")
    with weak.without("unit:RestrictNamespaces"):
        assert weak.probe(name) == {name: "EPERM"}
    with weak.without(*both):
        assert weak.probe(name) != {name: "EPERM"}
    seen_to_work(both)

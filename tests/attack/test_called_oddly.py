"""How root's programs are called: without a name, with variables that send libraries to files, with a policy of the caller's, in a sticky state."""

import pytest
from keyring import ADD_KEY, READ_KEY, SECRET
from target import ATTACK_POLICY, INSIDE, Outcome

pytestmark = pytest.mark.position("user")

LIBEXEC = "/usr/libexec/pi-agent"
NAMELESS = """
import ctypes, os, sys
nothing = (ctypes.c_char_p * 1)(None)
ctypes.CDLL(None).execve(sys.argv[1].encode(), nothing, nothing)
"""
# Without a first argument what follows it in memory, the environment, would be read as arguments (CVE-2021-4034).
PROGRAMS = {
    f"{LIBEXEC}/pi-agent-exec": (77, b"do not run it by hand"),
    f"{LIBEXEC}/pi-agent-cleanup": (64, b""),
    f"{LIBEXEC}/pi-agent-runner": (77, b"pi-agent-runner: "),
    "/usr/bin/pi-agentctl": (64, b"no command given"),
    "/usr/bin/pi": (77, b"pi: "),
}


@pytest.mark.parametrize("user", ["root", "alice"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_started_without_even_its_own_name(program, user, product):
    status, said = PROGRAMS[program]
    done = product.machine.run(["python3", "-c", NAMELESS, program], user=user, cwd="/")
    assert done.returncode == (77 if user == "alice" and "cleanup" in program else status), done
    assert said in done.stderr or user == "alice", done
    told = product.machine.run(["python3", "-c", NAMELESS, "/usr/bin/env"], user=user, cwd="/")
    assert (told.returncode, told.stdout) == (0, b""), "the call that these tests make is not one without arguments and environment"


# --- variables


# Each leads a library, or a careless program, to a file below {there}.
VARIABLES = {
    "NLSPATH": "{there}/%N", "LOCPATH": "{there}", "LC_ALL": "xx_XX.UTF-8", "LANGUAGE": "xx", "GCONV_PATH": "{there}", "TZ": ":{there}/zone", "TZDIR": "{there}",
    "HOSTALIASES": "{there}/hosts", "RES_OPTIONS": "debug", "HOME": "{there}", "XDG_CONFIG_HOME": "{there}", "XDG_RUNTIME_DIR": "{there}", "TMPDIR": "{there}",
    "SPDLOG_LEVEL": "trace", "YAML_PATH": "{there}", "FMT_LOCALE": "xx", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path={there}/bus", "SYSTEMD_LOG_LEVEL": "debug",
    "SYSTEMD_LOG_TARGET": "console", "NOTIFY_SOCKET": "{there}/notify", "LISTEN_FDS": "1", "MALLOC_TRACE": "{there}/trace", "MALLOC_CHECK_": "3", "PATH": "{there}",
    "GIT_DIR": "{there}", "GIT_CONFIG_GLOBAL": "{there}/git", "GIT_EXEC_PATH": "{there}", "OPENSSL_CONF": "{there}/ssl", "LD_LIBRARY_PATH": "", "IFS": "x",
    "PI_AGENT_POLICY": "{there}/policy.yaml", "PI_AGENT_POLICY_PATH": "{there}/policy.yaml", "PI_AGENT_CONFIG": "{there}/policy.yaml", "POLICY": "{there}/policy.yaml",
}  # fmt: skip
# Everything that happens below `there` while the last line runs is told as names; inotify(7).
WATCHING = """
THERE = "/tmp/there-of-alice"
os.makedirs(THERE + "/xx_XX.UTF-8/LC_MESSAGES", exist_ok=True)
for name in ("zone", "hosts", "policy.yaml", "git", "ssl", "gconv-modules", "xx_XX.UTF-8/LC_CTYPE"):
    open(THERE + "/" + name, "w").close()
for name in ("git", "systemctl", "bwrap", "setpriv", "sh"):  # for PATH
    with open(THERE + "/" + name, "w") as program:
        program.write("#!/bin/sh\\n")
    os.chmod(THERE + "/" + name, 0o755)
os.makedirs(THERE + "/pi-agent", exist_ok=True)
open(THERE + "/pi-agent/policy.yaml", "w").close()
watch = libc.inotify_init1(os.O_NONBLOCK)
for directory in [directory for directory, _, _ in os.walk(THERE)]:
    assert libc.inotify_add_watch(watch, directory.encode(), 0xfff) > 0
def seen():
    names = set()
    try:
        while data := os.read(watch, 1 << 16):
            while data:
                _, _, _, size = struct.unpack_from("iIII", data)
                names.add(data[16:16 + size].rstrip(b"\\0").decode())
                data = data[16 + size:]
    except BlockingIOError:
        return sorted(names)
"""


def variables():
    return {name: value.format(there="/tmp/there-of-alice") for name, value in VARIABLES.items()}


def test_no_variable_of_the_callers_sends_root_to_a_file(product):
    """As if a site's sudo kept them all. The same variables send an ordinary program there, so the watch sees it."""
    call = f"call(lambda c, s: ask(c, s, ['env']), argv=DIRECT, pair=socket_made_by(1000), env={{**{variables()!r}, 'SUDO_UID': '1000'}})"
    control = f"subprocess.run(['/usr/bin/locale'], env={variables()!r}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
    script = f"{WATCHING}\nanswer = {call}\nduring = seen()\n{control}\ntell([answer, during, seen()])"
    answer, during, by_another = product.play(script, user="root")
    product.machine.root(["rm", "-r", "/tmp/there-of-alice"], check=True)
    assert answer["ended"] == 0 and during == [], (during, answer)
    assert by_another, "nothing was seen of a program that does follow them"
    assert "there-of-alice" not in answer["out"], answer


def test_sudo_passes_none_of_them_either(product):
    script = f"tell(call(lambda c, s: ask(c, s, ['env']), env={{**{variables()!r}, 'PATH': os.environ['PATH']}}))"
    answer = product.play(script)
    assert answer["ended"] == 0 and "there-of-alice" not in answer["out"], answer


# --- a policy of the caller's

OWN = "/home/alice/own"
OWN_POLICY = ATTACK_POLICY.read_text().replace("roots: [~/projects,", "roots: [~/own, ~/projects,")
PLACES = [f"{OWN}/policy.yaml", f"{OWN}/.config/pi-agent/policy.yaml", f"{OWN}/pi-agent/policy.yaml", f"{OWN}/policy.d/x.yaml", f"{OWN}/etc/pi-agent/policy.yaml"]
NAMING = {
    "no variable": {},
    **{name: {name: f"{OWN}/policy.yaml"} for name in ("PI_AGENT_POLICY", "PI_AGENT_POLICY_PATH", "PI_AGENT_CONFIG", "POLICY", "CONFIG")},
    **{name: {name: OWN} for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "DESTDIR", "PI_AGENT_ROOT", "PWD", "OLDPWD")},
}


@pytest.fixture
def own_policy(product):
    for place in PLACES:
        product.machine.write(place, OWN_POLICY)  # root's own, so that no rule about owners hides the question
    yield
    product.machine.root(["rm", "-r", OWN], check=True)


def test_a_policy_of_the_callers_is_not_read_whatever_names_it(product, own_policy):
    asking = "call(lambda c, s: ask(c, s, ['true'], cwd=OWN), argv=DIRECT, pair=socket_made_by(1000), prepare=lambda: os.chdir(OWN), env={**ENV, 'SUDO_UID': '1000'})"
    for named, env in NAMING.items():
        answer = product.play("tell(" + asking.replace("OWN", repr(OWN)).replace("ENV", repr(env)) + ")", user="root")
        assert answer["ended"] is None and "/home/alice/own is outside the project roots" in answer["said"], (named, answer)
    for arguments in (["--policy", f"{OWN}/policy.yaml"], [f"--policy={OWN}/policy.yaml"], ["-c", f"{OWN}/policy.yaml"], [f"{OWN}/policy.yaml"]):
        given = asking.replace("DIRECT", f"[*DIRECT, *{arguments!r}]").replace("OWN", repr(OWN)).replace("ENV", "{}")
        answer = product.play(f"tell({given})", user="root")
        assert answer["ended"] is None and "takes no arguments" in answer["said"], (arguments, answer)
        wrapper = product.machine.run(["pi", *arguments], cwd=OWN, env={"PI_AGENT_POLICY": f"{OWN}/policy.yaml"})
        assert wrapper.returncode == 77 and b"outside the project roots" in wrapper.stderr, wrapper
    product.machine.write("/etc/pi-agent/policy.yaml", OWN_POLICY)  # where it counts, that policy does let her in
    try:
        answer = product.play("tell(" + asking.replace("OWN", repr(OWN)).replace("ENV", "{}") + ")", user="root")
    finally:
        product.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text())
    assert answer["ended"] == 0, answer


# --- calls that do nothing

# A filter that answers setgroups(2) itself: BPF as in seccomp(2), on x86-64. Root alone can put one over root without no_new_privs.
FILTER = """
SHADOW = 42
def answering(error):
    def prepare():
        os.setgroups([0, SHADOW])
        code = [(0x20, 0, 0, 0), (0x15, 0, 1, 116), (0x06, 0, 0, 0x50000 | error), (0x06, 0, 0, 0x7fff0000)]
        program = b"".join(struct.pack("<HBBI", *line) for line in code)
        buffer = ctypes.create_string_buffer(program)
        arguments = struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(buffer))
        assert libc.syscall(317, 1, 0, ctypes.create_string_buffer(arguments)) == 0  # SECCOMP_SET_MODE_FILTER
        if error == 0:
            os.setgroups([])
            assert SHADOW in os.getgroups()
    return prepare
"""
CALLED = "call(lambda c, s: ask(c, s, ['id']), argv=DIRECT, pair=socket_made_by(1000), env={'SUDO_UID': '1000'}, prepare=answering(ERROR))"


def test_a_child_that_kept_roots_groups_does_nothing(prove):
    """setgroups(2) says that it did it and did nothing (CVE-2026-35535): the receiver would act as alice with root's groups."""

    def attack(target):
        answer = target.play(f"{FILTER}\ntell({CALLED.replace('ERROR', '0')})", user="root")
        return Outcome(answer["ended"] is not None, answer)

    on, _ = prove(attack, "groups-check")
    assert "did not take the account's groups" in on.seen["said"], on


@pytest.mark.parametrize("error", [1, 12, 22])
def test_groups_that_the_kernel_does_not_take_back_end_the_start(error, product):
    answer = product.play(f"{FILTER}\ntell({CALLED.replace('ERROR', str(error))})", user="root")
    assert answer["ended"] is None and answer["status"] in (71, 77) and "group" in answer["said"], answer


# --- what stays with a process through execve(2)

BOUND = ", prepare=lambda: libc.syscall(238, 2, ctypes.byref(ctypes.c_ulong(1)), 64)"  # set_mempolicy: MPOL_BIND, node 0


def test_the_memory_of_roots_process_comes_from_every_node(prove):
    """One node of many, chosen by the caller to be the fullest, is where root's process would be the first to run out of memory."""

    def attack(target):
        script = "print(json.dumps(call(lambda c, s: ask(c, s, ['sh', '-c', 'sleep 60'])" + BOUND + ")))"
        process = target.machine.popen(["python3", "-c", target.prelude + script])
        try:
            look = "until pgrep -u pi-agent -x sleep >/dev/null; do sleep 0.1; done; pid=$(pgrep -u root -f ^/usr/libexec/pi-agent/pi-agent-runner); cat /proc/$pid/numa_maps"
            maps = target.machine.root(look, check=True, timeout=20).stdout.decode()
        finally:
            process.kill_all()
            process.communicate()
        policies = {line.split()[1] for line in maps.splitlines()}
        return Outcome("bind:0" in policies, sorted(policies))

    on, _ = prove(attack, "reset-memory-and-keys", quick=True)
    assert "default" in on.seen, on


HOME = "/var/lib/pi-agent/users/alice/home"
HOOK = "/usr/share/pi-agent/migrations/0.0.3-key.sh"


def test_a_hook_does_not_hold_its_callers_keyring(prove, product, weak):
    """A migration hook runs as the agent's account, in a child of the runner: with the caller's keyring the agent's files could use her keys."""
    for target in (product, weak):
        target.machine.write(f"{INSIDE}/read_key.py", READ_KEY)
        target.machine.write(HOOK, f"python3 {INSIDE}/read_key.py >read-key 2>&1; true\n")

    def attack(target):
        target.machine.write("/var/lib/pi-agent/users/alice/meta/version", "0.0.1\n", mode=0o600)
        done = target.machine.run(["python3", "-c", ADD_KEY, "pi", "cat", f"{HOME}/read-key"], user="alice", cwd="/home/alice/projects/demo")
        return Outcome(SECRET.encode() in done.stdout, done)

    try:
        on, _ = prove(attack, "reset-memory-and-keys")
    finally:
        for target in (product, weak):
            target.machine.root(["rm", "-f", HOOK, f"{HOME}/read-key"], check=True)
    assert b"error" in on.seen.stdout, on

"""A session plants symlinks where its user keeps configuration in a root: they bring nothing from outside into a later session."""

import os
import time

import pytest
from target import ATTACK_POLICY, DEMO, Outcome

pytestmark = pytest.mark.position("agent")

USERS = "/var/lib/pi-agent/users"
HOME = "/home/alice"
ROOT = f"{HOME}/projects"
CONFIG = f"{HOME}/.pi/agent"
SKILLS = f"{ROOT}/skills"
MARK = "dingo-secret-7730"
SECRET = f"{HOME}/.private/key"
POLICY = ATTACK_POLICY.read_text()
ROUNDS = 1000 if os.environ.get("PI_AGENT_FULL") else 60
# What clear() and these attacks make, beside the config directory.
MADE = (f"{USERS}/alice", f"{HOME}/.agents", f"{HOME}/.private", f"{HOME}/.chain", f"{ROOT}/skills", f"{ROOT}/cfg", f"{ROOT}/other")


def policy(alice="", section=""):
    text = POLICY.replace("  alice:\n", f"  alice:\n    {alice}\n") if alice else POLICY
    return f"{text}{section}\n"


@pytest.fixture(scope="module", autouse=True)
def config_comes_back(product, weak):
    with product.config_set_aside(*MADE), weak.config_set_aside(*MADE):
        yield


@pytest.fixture(autouse=True)
def policy_comes_back(product, weak):
    yield
    for target in (product, weak):
        target.end_all()
        target.machine.write("/etc/pi-agent/policy.yaml", POLICY)


def clear(target):
    """No state of alice's agent, an empty config directory, a secret of hers beside it, two directories in her root."""
    target.machine.root(["rm", "-rf", f"{HOME}/.pi", *MADE], check=True)
    script = f"mkdir -p {CONFIG} {HOME}/.private/deep {SKILLS} {ROOT}/cfg {ROOT}/other; echo {MARK} >{SECRET}; echo {MARK} >{HOME}/.private/deep/key; echo {MARK} >{ROOT}/other/key; chmod 600 {SECRET}"
    target.machine.run(["sh", "-ec", script], check=True)


def is_inside(target):
    """Whether the secret has come anywhere into what alice's agent has."""
    return target.machine.root(["grep", "-rlF", MARK, f"{USERS}/alice"]).returncode == 0


def planted(target, text, user, plant, look="true", cwd=DEMO):
    """The user arranges, one session plants, the next one looks: its end, and whether the secret came in."""
    clear(target)
    target.machine.write("/etc/pi-agent/policy.yaml", text)
    target.machine.run(["sh", "-ec", user], check=True)
    target.pi("sh", "-ec", plant, cwd=cwd, check=True)
    done = target.pi("sh", "-c", look, cwd=cwd)
    return Outcome(is_inside(target) or MARK.encode() in done.stdout, done)


LINKED = f"ln -s {SKILLS} {CONFIG}/skills"
# What the policy says of alice and beside; what alice arranged; what the session plants.
PLANTED = {
    "a file": ("", LINKED, f"ln -s {SECRET} {SKILLS}/k.md"),
    "a file, relatively": ("", LINKED, f"ln -s ../../.private/key {SKILLS}/k.md"),
    "a directory": ("", LINKED, f"ln -s {HOME}/.private {SKILLS}/k"),
    "the root's own name": ("", LINKED, f"ln -s ../../projects/../.private/key {SKILLS}/k.md"),
    "the directory itself": ("", LINKED, f"rmdir {SKILLS}; ln -s {HOME}/.private {SKILLS}"),
    "a chain": ("", LINKED, f"ln -s b {SKILLS}/a; ln -s c/key {SKILLS}/b; ln -s ../../.private {SKILLS}/c"),
    "a chain of the user's": ("", f"mkdir {HOME}/.chain; ln -s {ROOT}/cfg {HOME}/.chain/l; ln -s {HOME}/.chain/l/skills {CONFIG}/skills", f"ln -s {HOME}/.private {ROOT}/cfg/skills"),
    "below ~/.agents/skills": ("", f"mkdir ~/.agents; ln -s {SKILLS} ~/.agents/skills", f"ln -s {SECRET} {SKILLS}/k.md"),
    "~/.agents": ("", f"ln -s {ROOT}/cfg ~/.agents", f"mkdir {ROOT}/cfg/skills; ln -s {SECRET} {ROOT}/cfg/skills/k.md"),
    "a single file": ("", f"echo x >{ROOT}/cfg/A; ln -s {ROOT}/cfg/A {CONFIG}/AGENTS.md", f"ln -sf {SECRET} {ROOT}/cfg/A"),
    "in a config directory that is a link": ("", f"rmdir {CONFIG}; ln -s {ROOT}/cfg {CONFIG}", f"ln -s {SECRET} {ROOT}/cfg/AGENTS.md"),
    "in a config directory of the policy's": ("config: projects/cfg", "true", f"ln -s {SECRET} {ROOT}/cfg/AGENTS.md"),
    "in the place of that": ("config: projects/cfg", "true", f"rmdir {ROOT}/cfg; ln -s {HOME}/.private {ROOT}/cfg"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_link_that_a_session_planted_brings_nothing_of_the_users_in(what, prove):
    alice, user, plant = PLANTED[what]
    on, _ = prove(lambda target: planted(target, policy(alice), user, plant), "stay-in-root")
    assert on.seen.returncode == 0, on
    assert b"where an agent can have made it" in on.seen.stderr, on


def test_a_link_planted_in_another_root_than_the_sessions_brings_nothing_in(prove):
    other = "/srv/shared/app"

    def attack(target):
        clear(target)
        target.machine.write("/etc/pi-agent/policy.yaml", POLICY)
        target.machine.run(["sh", "-ec", f"ln -s {other} {CONFIG}/skills"], check=True)
        target.pi("sh", "-ec", f"ln -sfn {SECRET} k.md", cwd=other, check=True)
        done = target.pi("true")
        target.machine.root(f"rm {other}/k.md", check=True)
        return Outcome(is_inside(target), done)

    prove(attack, "stay-in-root")


@pytest.mark.parametrize("alice, user, made", [("", LINKED, SKILLS), ("config: projects/cfg", "true", f"{ROOT}/cfg")], ids=["linked", "by the policy"])
def test_a_link_to_the_top_of_the_host_keeps_nobody_from_starting(alice, user, made, prove):
    def attack(target):
        outcome = planted(target, policy(alice), user, f"rmdir {made}; ln -s / {made}", "echo started")
        return Outcome(outcome.succeeded or b"started" not in outcome.seen.stdout, outcome.seen)

    prove(attack, "stay-in-root")


@pytest.mark.parametrize("name", ["settings.json", "auth.json", "mcp-auth.json"])
def test_a_document_that_a_session_spoiled_keeps_nobody_from_starting(name, product, control_seen):
    for plant in (f"ln -s {SECRET} {ROOT}/cfg/{name}", f"mkfifo {ROOT}/cfg/{name}", f"ln -s nowhere {ROOT}/cfg/{name}", f"ln -s {name} {ROOT}/cfg/{name}"):
        outcome = planted(product, policy("config: projects/cfg"), "true", plant, "echo started")
        assert outcome.seen.stdout == b"started\n" and not outcome.succeeded, (plant, outcome)
        assert f"{ROOT}/cfg/{name} is left out: ".encode() in outcome.seen.stderr, (plant, outcome)
    control_seen("each was told at the start that passed it over")


def kept_from_starting(target, policy_text, plant):
    outcome = planted(target, policy_text, "true", plant, "echo started")
    return Outcome(b"started" not in outcome.seen.stdout, outcome.seen)


WRONG = {
    "settings": "echo { >settings.json",
    "credentials": "head -c 5M /dev/zero >auth.json",
}


@pytest.mark.parametrize("what", WRONG)
def test_a_document_that_a_session_wrote_wrong_keeps_nobody_from_starting(what, prove):
    on, _ = prove(lambda target: kept_from_starting(target, policy("config: projects/cfg"), f"cd {ROOT}/cfg; {WRONG[what]}"), "agents-documents")
    assert b"is left out: " in on.seen.stderr, on


LOOPS = {
    "the config directory": ("config: projects/cfg", "", "rmdir cfg; ln -s cfg cfg"),
    "a file of variables": ("", "host_env_files: [projects/cfg/env]", "ln -s env cfg/env"),
}


@pytest.mark.parametrize("what", LOOPS)
def test_a_loop_of_links_keeps_nobody_from_starting(what, prove):
    alice, section, plant = LOOPS[what]
    on, _ = prove(lambda target: kept_from_starting(target, policy(alice, section), f"cd {ROOT}; {plant}"), "agents-loops")
    assert b"symlinks are on the path" in on.seen.stderr, on


# With the scope `project` the root is more than a session was shown.
PROJECT = "projects: {scope: project}"
NEIGHBOURS = {
    "the neighbour's file": f"ln -s ../other/key {SKILLS}/k.md",
    "the neighbour's file, absolutely": f"ln -s {ROOT}/other/key {SKILLS}/k.md",
    "the neighbour itself": f"mkdir {SKILLS}/d; ln -s ../../other {SKILLS}/d/o",
    "by way of its own": f"mkdir {SKILLS}/d; ln -s d/e {SKILLS}/a; ln -s ../../other {SKILLS}/d/e",
    "outside": f"ln -s {SECRET} {SKILLS}/k.md",
}


@pytest.mark.parametrize("link", NEIGHBOURS)
def test_a_session_of_one_project_brings_in_nothing_of_another_project(link, prove):
    defences = ["links-in-projects", "stay-in-root"] if link == "outside" else ["links-in-projects"]
    on, _ = prove(lambda target: planted(target, policy("", PROJECT), LINKED, NEIGHBOURS[link], cwd=SKILLS), *defences)
    assert on.seen.returncode == 0 and b"where an agent can have made it" in on.seen.stderr, on


def test_a_config_directory_in_a_root_brings_in_nothing_of_another_project(prove):
    prove(lambda target: planted(target, policy("config: projects/cfg", PROJECT), "true", "ln -s ../other/key AGENTS.md", cwd=f"{ROOT}/cfg"), "links-in-projects")


def test_what_is_masked_in_the_project_does_not_come_in_by_a_link(prove):
    def attack(target):
        return planted(target, policy("", "projects: {mask: [key]}"), LINKED, f"ln -s ../other/key {SKILLS}/k.md")

    on, _ = prove(attack, "masked-config")
    assert b"the policy masks" in on.seen.stderr, on


def brought_in(target, source, at, policy_text, arrange, plant):
    """What a link that the agent plants among the skills brings in, while `source` is mounted at `at` as well."""
    clear(target)
    target.machine.root(f"mkdir -p {at}; mount --bind {source} {at}", check=True)
    try:
        target.machine.write("/etc/pi-agent/policy.yaml", policy_text)
        target.machine.run(["sh", "-ec", arrange], check=True)
        target.pi("sh", "-ec", f"ln -s {plant} {SKILLS}/k.md", check=True)
        done = target.pi("true")
        return Outcome(is_inside(target), done)
    finally:
        target.machine.root(f"umount {at}; rmdir {at}", check=True)


def test_what_is_masked_does_not_come_in_by_a_bind_mount_of_the_root(prove):
    """The mask is for the root, by whatever path its user has come to it."""
    masked = policy("", "projects: {mask: [key]}")
    arrange = f"ln -s {HOME}/bound/skills {CONFIG}/skills"
    on, _ = prove(lambda target: brought_in(target, ROOT, f"{HOME}/bound", masked, arrange, "../other/key"), "masked-config")
    assert b"the policy masks" in on.seen.stderr, on


def test_what_is_mounted_inside_a_root_does_not_come_in_by_a_link(prove):
    """Sessions are not shown it."""
    on, _ = prove(lambda target: brought_in(target, f"{HOME}/.private", f"{ROOT}/mnt", POLICY, LINKED, "../mnt/key"), "mounts-in-roots")
    assert b"another file system is mounted at" in on.seen.stderr, on


# --- other files that are read as the user


KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU{MARK}\n-----END OPENSSH PRIVATE KEY-----\n"
CERTIFICATE = f"-----BEGIN CERTIFICATE-----\n{MARK}\n-----END CERTIFICATE-----\n"
# Policy, the secret's text, what alice arranged, what the session plants, what the next one looks at.
READ_AS_USER = {
    "variables": (("", "host_env_files: [.pi/agent/env]"), f"STOLEN={MARK}\n", f"touch {ROOT}/cfg/env; ln -s {ROOT}/cfg/env {CONFIG}/env", f"ln -sf {SECRET} {ROOT}/cfg/env", "echo $STOLEN"),
    "variables in a root": (("", "host_env_files: [projects/cfg/env]"), f"STOLEN={MARK}\n", "true", f"ln -sf {SECRET} {ROOT}/cfg/env", "echo $STOLEN"),
    "an ssh key": (("ssh: {key: projects/cfg/id}", ""), KEY, "true", f"ln -s {SECRET} {ROOT}/cfg/id", "cat /run/pi-agent/ssh/key"),
    "an ssh key that is a link": (("ssh: {key: .ssh/id}", ""), KEY, f"mkdir -p ~/.ssh; ln -sf {ROOT}/cfg/id ~/.ssh/id", f"ln -s {SECRET} {ROOT}/cfg/id", "cat /run/pi-agent/ssh/key"),
    "a certificate": ((f"env: {{SSL_CERT_FILE: {HOME}/ca.pem}}", ""), CERTIFICATE, f"ln -sfn {ROOT}/cfg/ca.pem ~/ca.pem", f"ln -s {SECRET} {ROOT}/cfg/ca.pem", "cat $SSL_CERT_FILE"),
}


@pytest.mark.parametrize("what", READ_AS_USER)
def test_a_link_that_a_session_planted_gives_it_no_other_file_of_the_users(what, prove):
    (alice, section), text, user, plant, look = READ_AS_USER[what]

    def attack(target):
        written = f"cat >{SECRET} <<'END'\n{text}END\n"
        outcome = planted(target, policy(alice, section).replace("    env: {PER_USER_MARKER: quokka-per-user-8251}\n", ""), f"{written}{user}", plant, look)
        target.machine.root(f"rm -rf {HOME}/.ssh {HOME}/ca.pem", check=True)
        return Outcome(MARK.encode() in outcome.seen.stdout, outcome.seen)

    on, _ = prove(attack, "stay-in-root")
    assert b"where an agent can have made it" in on.seen.stderr and on.seen.returncode != 78, on


# What alice's git is told, what the session plants beside.
GIT = {
    "its own file": (f"ln -s {ROOT}/cfg/git .gitconfig", f"ln -s {SECRET} {ROOT}/cfg/git"),
    "an include of its own file": (f"ln -s {ROOT}/cfg/git .gitconfig", f"printf '[include]\\n\\tpath = {SECRET}\\n' >{ROOT}/cfg/git"),
    "an include of an include": (f"printf '[include]\\n\\tpath = {ROOT}/cfg/git\\n' >.gitconfig", f"printf '[include]\\n\\tpath = ~/.private/key\\n' >{ROOT}/cfg/git"),
    "a link among the includes": (f"printf '[includeIf \"gitdir:~/\"]\\n\\tpath = projects/cfg/git\\n' >.gitconfig", f"ln -s ../../.private/key {ROOT}/cfg/git"),
}


def leading_git(secret, user, plant, look):
    """The attack: alice's git is told something and has a secret file, a session plants something beside, and the next one looks."""

    def attack(target):
        arrange = f"cd; mv .gitconfig .gitconfig-kept; {secret} >{SECRET}; {user}"
        try:
            outcome = planted(target, POLICY, arrange, f"rm -rf {ROOT}/cfg/git; {plant}", look)
        finally:
            target.machine.run("cd; mv .gitconfig-kept .gitconfig; rm -rf .config/git", check=True)
        return Outcome(MARK.encode() in outcome.seen.stdout, outcome.seen)

    return attack


@pytest.mark.parametrize("what", GIT)
def test_git_is_led_to_no_other_file_of_the_users(what, prove):
    on, _ = prove(leading_git(f"printf '[user]\\n\\tname = {MARK}\\n'", *GIT[what], "git config user.name"), "stay-in-root")
    assert b"pi: git: " in on.seen.stderr and b"is left out: " in on.seen.stderr, on


# Settings that a session plants, which name a file of the user's; and symlinks instead of git's own files.
GIT_FILES = {
    "excludes": (f"ln -s {ROOT}/cfg/git .gitconfig", f"printf '[core]\n\texcludesFile = {SECRET}\n' >{ROOT}/cfg/git", "git-files-of-agents"),
    "attributes": (f"ln -s {ROOT}/cfg/git .gitconfig", f"printf '[core]\n\tattributesFile = ~/.private/key\n' >{ROOT}/cfg/git", "git-files-of-agents"),
    "a template, from an include": (f"printf '[include]\n\tpath = {ROOT}/cfg/git\n' >.gitconfig", f"printf '[commit]\n\ttemplate = {SECRET}\n' >{ROOT}/cfg/git", "git-files-of-agents"),
    "a link in the place of the user's ignore file": (f"mkdir -p .config; ln -sfn {ROOT}/cfg/git .config/git", f"mkdir {ROOT}/cfg/git; ln -s {SECRET} {ROOT}/cfg/git/ignore", "stay-in-root"),
}


@pytest.mark.parametrize("what", GIT_FILES)
def test_git_s_files_are_copied_from_no_place_that_an_agent_named(what, prove):
    user, plant, defence = GIT_FILES[what]
    on, _ = prove(leading_git(f"echo {MARK}", user, plant, "cat /run/pi-agent/git/*"), defence)
    assert b"is left out: " in on.seen.stderr, on


# --- races


SWAPPING = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.chdir("{ROOT}/cfg")
for name in ("d", "e/d"):
    os.makedirs(name, exist_ok=True)
    open(name + "/key", "w").write("harmless\\n")
os.symlink("{HOME}/.private", "l")
os.symlink("{SECRET}", "f")
open("g", "w").write("harmless\\n")
os.symlink("g", "stays")  # in the tree: a link inside as well
print(os.environ["PI_AGENT_SESSION"], flush=True)
while True:
    libc.renameat2(-100, b"d", -100, b"l", 2)  # RENAME_EXCHANGE: a directory and a link, a file and a link
    libc.renameat2(-100, b"f", -100, b"g", 2)
    libc.renameat2(-100, b"d", -100, b"e/d", 2)
    libc.renameat2(-100, b"stays", -100, b"f", 2)
"""


def test_links_and_directories_that_are_exchanged_while_a_start_reads_lead_nowhere(product, weak, control_seen, figures):
    """The reader lists, and opens later what it listed: at any moment each name is a directory, a file or a link out."""

    def race(target, rounds):
        clear(target)
        target.machine.write("/etc/pi-agent/policy.yaml", POLICY)
        target.machine.run(["sh", "-ec", f"ln -s {ROOT}/cfg {CONFIG}/skills; ln -s {ROOT}/cfg/d {CONFIG}/prompts; ln -s {ROOT}/cfg/f {CONFIG}/AGENTS.md"], check=True)
        session = target.session("python3", "-c", SWAPPING)
        came, told = 0, 0
        for turn in range(rounds):
            done = target.pi("true", timeout=90)
            assert done.returncode == 0, f"turn {turn}: {done}"
            told += b"where an agent can have made it" in done.stderr
            came = turn + 1 if is_inside(target) else 0
            if came:
                break
        session.end()
        return came, told

    begun = time.monotonic()
    came, told = race(product, ROUNDS)
    assert not came, f"the secret came in at start {came}"
    assert told, "no start met a link"
    figures(f"{ROUNDS} starts beside an agent that exchanges links and directories, {told} met one of its links, in {time.monotonic() - begun:.0f} s")
    with weak.without("stay-in-root"):
        came, _ = race(weak, 60)
    assert came, "without the defence the race should be won"
    control_seen("the same race is won in a build without the defence")

"""Attacks on the config sync: by the agent that rearranges its home, by the user who links to others' files, by kill -9 at any moment."""

import json
import os
import random
import time

import pytest
from target import INSIDE, Outcome

pytestmark = pytest.mark.position("agent")

USERS = "/var/lib/pi-agent/users"
CONFIG = "/home/alice/.pi/agent"
BOBS = "/home/bob/work/demo"
FULL = bool(os.environ.get("PI_AGENT_FULL"))
# A trap in the home of bob's agent: the same account, so that nothing but the sync's own care keeps alice's writer out of it.
TRAP = f"{USERS}/bob/home/trap"


@pytest.fixture(scope="module", autouse=True)
def config_comes_back(product, weak):
    for target in (product, weak):
        target.machine.root("cp -a /home/alice/.pi /root/config-of-alice", check=True)
    yield
    for target in (product, weak):
        target.machine.root("rm -rf /home/alice/.pi && mv /root/config-of-alice /home/alice/.pi", check=True)


@pytest.fixture(autouse=True)
def fresh(product, weak):
    """Both machines: an empty config directory of alice, no state of her agent, an untouched trap."""
    for target in (product, weak):
        clear(target)
    yield
    for target in (product, weak):
        target.end_all()
        clear(target)


def clear(target):
    target.machine.root(f"rm -rf {USERS}/alice {CONFIG} /home/alice/.agents; install -d -o alice -g alice {CONFIG}", check=True)
    target.machine.root(f"chmod -R u+rwX {TRAP}; rm -rf {TRAP}; install -d -m 700 -o pi-agent -g pi-agent {TRAP} {TRAP}/deep", check=True)
    target.machine.root(f"for f in {TRAP}/canary {TRAP}/deep/canary; do echo alive >$f; chown pi-agent:pi-agent $f; done", check=True)


def on_host(target, script):
    target.machine.run(script, cwd=CONFIG, check=True)


def as_agent(target, script):
    done = target.pi("sh", "-c", f"cd $HOME/.pi/agent && {script}")
    assert done.returncode == 0, done
    return done.stdout


# --- what tells a changed file


def test_a_mirrored_file_that_the_agent_changed_with_size_and_time_kept_is_restored(prove):
    def attack(target):
        clear(target)
        on_host(target, "mkdir prompts; echo 'good words' >prompts/a; touch -d 2001-02-03 prompts/a")
        for _ in range(2):  # the second one compares the bytes, and knows then that the times tell all
            as_agent(target, "true")
        as_agent(target, "cp -p prompts/a ../kept; echo 'evil words' >prompts/a; touch -r ../kept prompts/a")
        seen = as_agent(target, "cat prompts/a")
        return Outcome(seen != b"good words\n", seen)

    prove(attack, "change-time")


def test_a_file_that_is_changed_right_after_a_start_is_restored_at_the_next(product, control_seen):
    """Within the same tick of the kernel's clock, times tell nothing."""
    on_host(product, "for i in $(seq 30); do echo good >f$i; done")
    for _ in range(5):
        before, after = as_agent(product, "cat f*; for i in $(seq 30); do echo evil >f$i; done; echo; cat f*").split(b"\n\n")
        assert b"evil" in after and before == after.replace(b"evil", b"good").strip(), before
    control_seen("the session that changes it sees the change")


# --- the agent's home


# What is arranged in the agent's home, what the user's config then has, and which new file or which loss in the trap means success.
LINKS = {
    ".pi": ("rm -rf $HOME/.pi; ln -s {trap} $HOME/.pi", "echo x >new", "agent/new"),
    ".pi/agent": ("rm -rf $HOME/.pi/agent; ln -s {trap} $HOME/.pi/agent", "echo x >new", "new"),
    ".pi/agent, for settings": ("rm -rf $HOME/.pi/agent; ln -s {trap} $HOME/.pi/agent", "true", "settings.json"),
    "a mirrored directory": ("rm -rf prompts; ln -s {trap} prompts", "echo x >prompts/new", "new"),
    "a directory in it": ("rm -rf prompts/deep; ln -s {trap} prompts/deep", "echo x >prompts/deep/new", "new"),
    "a new directory": ("ln -s {trap} fresh", "mkdir fresh; echo x >fresh/new", "new"),
    ".agents": ("rm -rf $HOME/.agents; ln -s {trap} $HOME/.agents", "mkdir -p ~/.agents/skills; echo x >~/.agents/skills/new", "skills/new"),
    "two links, one of its own": ("rm -rf prompts; ln -s {trap} $HOME/l; ln -s ../../l prompts", "echo x >prompts/new", "new"),
}


@pytest.mark.parametrize("place", LINKS)
def test_nothing_is_made_where_a_link_leads_at(place, prove):
    arrange, change, made = LINKS[place]

    def attack(target):
        clear(target)
        on_host(target, "mkdir -p prompts/deep; echo 1 >prompts/canary; echo 1 >prompts/deep/canary")
        as_agent(target, "true")
        as_agent(target, arrange.format(trap=TRAP))
        on_host(target, change)
        done = target.pi("true")
        return Outcome(target.machine.root(["test", "-e", f"{TRAP}/{made}"]).returncode == 0, done)

    on, _ = prove(attack, "beneath")
    assert on.seen.returncode == 0, on


LOSSES = {
    "a file that the host deleted": ("rm -r prompts; ln -s {trap} prompts", "rm prompts/canary", "! test -e {trap}/canary"),
    "a directory that the host deleted": ("rm -r prompts; ln -s {trap} prompts", "rm -r prompts", "! test -e {trap}/deep/canary"),
    "a file that the host changed": ("rm -r prompts; ln -s {trap} prompts", "echo 2 >prompts/canary", "! grep -q alive {trap}/canary"),
    "the rights of a directory": ("rm -r prompts; ln -s {trap} prompts", "echo 2 >prompts/canary", "test $(stat -c %a {trap}) != 500"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_lost_where_a_link_leads_to(loss, prove):
    arrange, change, lost = LOSSES[loss]

    def attack(target):
        clear(target)
        on_host(target, "mkdir -p prompts/deep; echo 1 >prompts/canary; echo 1 >prompts/deep/canary")
        as_agent(target, "true")
        as_agent(target, arrange.format(trap=TRAP))
        if "rights" in loss:
            target.machine.root(["chmod", "500", TRAP], check=True)
        on_host(target, change)
        done = target.pi("true")
        return Outcome(target.machine.root(lost.format(trap=TRAP)).returncode == 0, done)

    on, _ = prove(attack, "beneath")
    assert on.seen.returncode == 0, on


def test_another_name_of_a_file_that_is_replaced_keeps_its_content(prove):
    def attack(target):
        clear(target)
        on_host(target, "mkdir d; echo 1 >a; echo 1 >d/b; echo '{\"x\": 1}' >settings.json; echo '{}' >auth.json")
        as_agent(target, "for f in a d/b settings.json; do ln $f $HOME/own-${f##*/}; echo its >$HOME/own-${f##*/}; done; echo x >$HOME/o; ln $HOME/o auth.json.lock")
        on_host(target, "echo 2 >a; echo 2 >d/b; echo '{\"x\": 2}' >settings.json")
        seen = as_agent(target, "cat a d/b; cat $HOME/own-*").split()
        return Outcome(seen[2:] != [b"its"] * 3, seen)

    on, _ = prove(attack, "new-file")
    assert on.seen[:2] == [b"2"] * 2, on


# Everything outside alice's agent's home that a sync could reach: kind, owner, mode, size, times of change of all of it.
FINGERPRINT = f"""
find {USERS}/bob {USERS}/carol /home /etc /root /srv /opt -xdev -printf '%p|%y|%U:%G|%m|%s|%T@|%C@|%l\\n' 2>/dev/null | LC_ALL=C sort
stat -c '%n %U %a' {USERS} {USERS}/alice {USERS}/alice/*
ls -A {USERS}/alice {USERS}/alice/staging; ls -A /var/lib/pi-agent /run/pi-agent
"""
OUTSIDE = ":".join([TRAP, f"{USERS}/bob/home/.pi", f"{USERS}/alice/meta", f"{USERS}/alice/staging", "/etc", "/root", "/home/alice/.pi"])


def fingerprint(target):
    lines = target.machine.root(FINGERPRINT, check=True).stdout.splitlines()
    # Where a session had something stand for missing paths, the directory remembers when that went.
    return [line for line in lines if line.split(b"|")[0] not in (b"/home/alice/projects/demo/.git", b"/home/alice/projects/demo/.git/info")]


def assert_untouched(target, before, where):
    now = fingerprint(target)
    assert now == before, f"{where}: {sorted(set(now) ^ set(before))[:10]}"


def trap_springs(target):
    """Whether the look that found nothing would have: last in a test."""
    before = fingerprint(target)
    target.machine.root(["touch", f"{TRAP}/new"], check=True)
    return fingerprint(target) != before


def change_host(target, draw):
    """The user changes, deletes and adds something, at a random place."""
    number = draw.randrange(10**6)
    place = draw.choice(["AGENTS.md", "prompts/1.md", "prompts/deep/er/x", f"prompts/{number}.md", "prompts", "prompts/deep", "other"])
    acts = [f"mkdir -p $(dirname {place}); test -d {place} || echo {number} >{place}", f"rm -rf {place}"]
    script = draw.choice(acts + acts[:1]) + f"; echo '{{\"number\": {number}}}' >settings.json; mkdir -p ~/.agents/skills/a; echo {number} >~/.agents/skills/a/SKILL.md"
    on_host(target, script)


def assert_in_line(target):
    """A start that nobody disturbs: everything of the user's is inside, as it is on the host."""
    done = target.pi("true")
    assert done.returncode == 0, done
    pairs = ((f"{CONFIG}", f"{USERS}/alice/home/.pi/agent"), ("/home/alice/.agents/skills", f"{USERS}/alice/home/.agents/skills"))
    for host, inside in pairs:
        # settings.json and auth.json are merged with what the agent wrote into them.
        compare = 'cd "$1" && find . -type f ! -path ./settings.json ! -path ./auth.json -print0 | while IFS= read -r -d "" f; do cmp "$f" "$2/$f" || exit 1; done'
        compared = target.machine.root(["bash", "-c", compare, "bash", host, inside])
        assert compared.returncode == 0, compared
    number = json.loads(target.machine.read(f"{CONFIG}/settings.json"))["number"]
    assert json.loads(target.machine.read(f"{USERS}/alice/home/.pi/agent/settings.json"))["number"] == number


def test_a_home_rearranged_between_starts_leads_nowhere(product, control_seen):
    seed = os.environ.get("PI_AGENT_SEED", "0")
    draw = random.Random(seed)
    on_host(product, "mkdir -p prompts/deep/er; echo '{\"openai\": {\"type\": \"api_key\", \"key\": \"k\"}}' >auth.json")
    change_host(product, draw)
    product.pi("true", check=True)
    for turn in range(100 if FULL else 20):
        product.pi("python3", f"{INSIDE}/rearrange.py", "once", OUTSIDE, str(draw.randrange(10**9)))
        change_host(product, draw)
        before = fingerprint(product)
        done = product.pi("true")
        assert_untouched(product, before, f"seed {seed}, turn {turn}")
        # 75 only where it left a lock that looks fresh.
        assert done.returncode in (0, 75), f"seed {seed}, turn {turn}: {done}"
    product.pi("sh", "-c", "cd; chmod -R u+rwX .; rm -rf .pi/agent/*.lock .pi/agent/auth.json")
    product.machine.root(f"rm -rf {USERS}/alice/home/.pi/agent/*.lock", check=True)
    assert_in_line(product)
    assert trap_springs(product)
    control_seen("the same look sees a file that root makes in the trap")


def test_a_home_rearranged_all_the_time_leads_nowhere(product, control_seen):
    seed = os.environ.get("PI_AGENT_SEED", "0")
    draw = random.Random(seed)
    on_host(product, "mkdir -p prompts/deep/er; for i in $(seq 300); do echo $i >prompts/$i.md; done")
    change_host(product, draw)
    product.pi("true", check=True)
    session = product.session("python3", f"{INSIDE}/rearrange.py", "always", OUTSIDE, str(draw.randrange(10**9)))
    statuses = []
    for turn in range(200 if FULL else 60):
        change_host(product, draw)
        before = fingerprint(product)
        done = product.pi("true", timeout=90)
        statuses.append(done.returncode)
        assert_untouched(product, before, f"seed {seed}, turn {turn}")
        # It may fail in words; it must not break.
        assert done.returncode in (0, 71, 75, 78), f"seed {seed}, turn {turn}: {done}"
    session.end()
    assert statuses.count(0) > 0, statuses
    product.machine.root(f"chmod -R u+rwX {USERS}/alice/home; rm -rf {USERS}/alice/home/.pi/agent/*.lock", check=True)
    assert_in_line(product)
    assert trap_springs(product)
    control_seen("the same look sees a file that root makes in the trap")


# --- the user's side


SECRETS = {"the shadow file": ("/etc/shadow", "root:*:"), "another user's file": ("/home/bob/.secret", "dingo-secret-5518"), "a file of root's": ("/root/.secret", "dingo-secret-5518")}


@pytest.mark.position("user")
@pytest.mark.parametrize("secret", SECRETS)
def test_a_link_to_what_the_user_may_not_read_brings_nothing_into_the_state(secret, prove, product, weak):
    goal, mark = SECRETS[secret]
    if goal != "/etc/shadow":
        for target in (product, weak):
            target.machine.write(goal, f"{mark}\n", owner="bob" if "bob" in goal else "root", mode=0o600)

    def attack(target):
        clear(target)
        on_host(target, f"mkdir d; ln -s {goal} AGENTS.md; ln -s {goal} d/x")
        done = target.pi("true")
        found = target.machine.root(["grep", "-rlF", mark, f"{USERS}/alice"])
        return Outcome(found.returncode == 0, (done, found.stdout))

    on, _ = prove(attack, "become-user", quick=True)
    assert f"skipped {CONFIG}/AGENTS.md: opening: Permission denied".encode() in on.seen[0].stderr, on
    assert f"skipped {CONFIG}/d/x: opening: Permission denied".encode() in on.seen[0].stderr, on


# --- sudden ends


@pytest.mark.position("user")
def test_after_a_kill_at_any_moment_each_file_is_old_or_new_and_the_next_start_repairs(product, control_seen):
    rounds = 200 if FULL else 20
    seed = os.environ.get("PI_AGENT_SEED", "0")
    done = product.machine.root(["python3", f"{INSIDE}/kill_sync.py", str(rounds), seed], timeout=60 + 10 * rounds, check=True)
    seen = json.loads(done.stdout.splitlines()[-1])
    assert not seen["wrong"], f"seed {seed}: {seen['wrong']}"
    assert seen["killed"] >= rounds // 2, f"seed {seed}: only {seen['killed']} of {rounds} while the sync went on"
    control_seen("half of the kills or more came while the sync went on")


# --- a lock that never goes


HOLDING = """
import os, time
print(os.environ["PI_AGENT_SESSION"], flush=True)
lock = os.environ["PI_CODING_AGENT_DIR"] + "/settings.json.lock"
while True:
    try:
        os.mkdir(lock)
    except OSError:
        pass
    try:
        os.utime(lock)
    except OSError:
        pass
    time.sleep(0.01)
"""


def test_a_lock_that_its_holder_keeps_fresh_ends_the_start_with_a_remedy_and_delays_nobody_else(product):
    on_host(product, "echo '{\"a\": 1}' >settings.json")
    product.pi("true", check=True)
    product.session("python3", "-c", HOLDING)
    on_host(product, "echo '{\"a\": 2}' >settings.json")
    began = time.monotonic()
    waiting = product.machine.popen(["pi", "true"], cwd="/home/alice/projects/demo")
    time.sleep(1)
    others = time.monotonic()
    product.pi("true", user="bob", cwd=BOBS, check=True)
    assert time.monotonic() - others < 3
    _, said = waiting.communicate(timeout=30)
    assert waiting.returncode == 75 and time.monotonic() - began < 16, said
    assert b"settings.json locked" in said and b"end that session, then try again" in said, said
    product.end_all()
    product.pi("true", check=True)


# --- the sync's own files


REACH = f"""
import json, os
told = {{}}
for name in ("meta", "meta/manifest", "meta/lock", "staging"):
    for path in ("{USERS}/alice/" + name, os.environ["HOME"] + "/../" + name):
        for how in ("look", "read", "make"):
            try:
                if how == "look":
                    os.stat(path)
                elif how == "read":
                    os.open(path, os.O_RDONLY)
                else:
                    os.close(os.open(path + "-planted", os.O_WRONLY | os.O_CREAT))
                told[path + " " + how] = "done"
            except OSError as error:
                told[path + " " + how] = os.strerror(error.errno)
print(json.dumps(told))
"""


def test_manifest_and_staging_are_out_of_the_agents_reach(prove):
    def attack(target):
        target.pi("true", check=True)
        told = target.python(REACH)
        return Outcome("done" in told.values(), told)

    prove(attack, "unit:RootDirectory", "unit:BindReadOnlyPaths", "unit:ProtectSystem", "unit:PrivateTmp")


def test_a_home_with_meta_and_staging_of_the_agents_own_changes_nothing(product, control_seen):
    on_host(product, "echo mine >AGENTS.md")
    product.pi("sh", "-c", "cd; mkdir -p meta staging; echo x >meta/manifest; ln -s / staging/1; mkdir .pi/agent/staging", check=True)
    before = product.machine.root(f"stat -c '%n %i %U %a' {USERS}/alice/*", check=True).stdout
    assert as_agent(product, "cat AGENTS.md; cat ../../meta/manifest; readlink ../../staging/1") == b"mine\nx\n/\n"
    control_seen("the agent's own files are there, where it made them")
    assert product.machine.root(f"stat -c '%n %i %U %a' {USERS}/alice/*", check=True).stdout == before

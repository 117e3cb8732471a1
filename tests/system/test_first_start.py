"""The first start of somebody who had pi before: what it had works at once, or one screen says what is missing and how to get it."""

import json

import pytest
from launching import DEMO, PLAYING_POLICY, STATE, agent_says, messages, pi

pytestmark = pytest.mark.usefixtures("playing")

CONFIG = "/home/alice/.pi/agent"
SESSIONS = f"{CONFIG}/sessions/--{DEMO[1:].replace('/', '-')}--"
# A skill as pnpm lays its modules out, packages from npm and git, logins, trust, keys, programs that pi had fetched.
HAD = f"""
set -e
mkdir -p .pi/agent && cd .pi/agent
m=skills/s/node_modules; mkdir -p $m/.bin $m/.pnpm/branch@1/node_modules/branch $m/.pnpm/leaf@1/node_modules/leaf
printf -- '---\\nname: s\\ndescription: s\\n---\\n' >skills/s/SKILL.md
ln -s .pnpm/branch@1/node_modules/branch $m/branch; ln -s ../../leaf@1/node_modules/leaf $m/.pnpm/branch@1/node_modules/leaf
echo 'cat "$(dirname "$(readlink -f "$0")")/../leaf/words"' >$m/branch/run; chmod 755 $m/branch/run; echo leaf >$m/.pnpm/leaf@1/node_modules/leaf/words
ln -s ../branch/run $m/.bin/branch
mkdir -p npm/node_modules/p/lib npm/node_modules/.bin git/example.org/o/r/.git bin prompts
echo '{{"dependencies": {{"p": "1"}}}}' >npm/package.json; echo '#!/bin/sh' >npm/node_modules/p/lib/cli; chmod 755 npm/node_modules/p/lib/cli; ln -s ../p/lib/cli npm/node_modules/.bin/p
echo '{{"name": "r"}}' >git/example.org/o/r/package.json; echo 'ref: x' >git/example.org/o/r/.git/HEAD
printf '#!/bin/sh\\necho had\\n' >bin/fd; chmod 755 bin/fd
echo '{{"packages": ["npm:p", "git:example.org/o/r"], "theme": "dark"}}' >settings.json
echo '{{"x": {{"type": "oauth", "access": "a", "refresh": "r", "expires": 1}}}}' >auth.json; chmod 600 auth.json
echo '{{"{DEMO}": true}}' >trust.json
echo '{{"app.exit": "ctrl+q"}}' >keybindings.json
echo words >prompts/p.md
mkdir -p {SESSIONS} {CONFIG}/sessions/--elsewhere--
echo '{{"type": "session", "cwd": "{DEMO}"}}' >{SESSIONS}/2026-01-01_a.jsonl; touch -d 2026-01-01 {SESSIONS}/2026-01-01_a.jsonl
echo '{{"type": "session", "cwd": "/elsewhere"}}' >{CONFIG}/sessions/--elsewhere--/2026-01-01_b.jsonl
"""
OUTSIDE = f"pi: config: your sessions of this directory ({SESSIONS}) stay outside, since they may hold what your agent read in other places; to bring copies of them in, start once with: pi --pi-agent-sessions"


@pytest.fixture(autouse=True)
def had(machine, playing_policy):
    """What alice's pi had, no state of her agent; her own config comes back afterwards."""
    machine.run("mv .pi .pi-kept", check=True)
    machine.root(["rm", "-rf", f"{STATE}/alice"], check=True)
    machine.run(["sh", "-ec", HAD], cwd="/home/alice", check=True)
    yield playing_policy
    machine.root(f"cd /home/alice && rm -rf .pi && mv .pi-kept .pi && rm -rf {STATE}/alice", check=True)


def inside(machine, script, *options):
    """What it says in the agent's config directory."""
    done = pi(machine, *options, "sh", f'cd "$PI_CODING_AGENT_DIR" && {script}')
    assert done.returncode == 0, done
    return done.stdout.decode()


EVERYTHING = {
    "a skill's modules, as pnpm lays them out": ("skills/s/node_modules/.bin/branch", "leaf\n"),
    "a package from npm": ("npm/node_modules/.bin/p && cat npm/package.json", '{"dependencies": {"p": "1"}}\n'),
    "a package from git": ("cat git/example.org/o/r/package.json git/example.org/o/r/.git/HEAD", '{"name": "r"}\nref: x\n'),
    "a program that pi had fetched": ("bin/fd", "had\n"),
    "the settings": ("grep -c npm:p settings.json", "1\n"),
    "the login": ("grep -o refresh auth.json", "refresh\n"),
    "what the user trusts": ("grep -c true trust.json", "1\n"),
    "the keys": ("cat keybindings.json", '{"app.exit": "ctrl+q"}\n'),
    "a prompt": ("cat prompts/p.md", "words\n"),
}


def test_all_that_the_users_pi_had_is_there_and_one_line_says_what_stays_outside(machine):
    first = pi(machine, "sh", "true")
    assert (first.returncode, messages(first)) == (0, [OUTSIDE]), first
    for what, (script, words) in EVERYTHING.items():
        assert inside(machine, script) == words, what
    assert messages(pi(machine, "sh", "true")) == []  # said once
    assert inside(machine, "ls sessions 2>/dev/null || true") == ""


def test_sessions_come_in_when_they_are_asked_for_and_go_on_there(machine):
    name = SESSIONS.removeprefix(CONFIG + "/")
    assert inside(machine, f"ls sessions {name}; stat -c %Y {name}/*", "--pi-agent-sessions").split() == ["sessions:", name.partition("/")[2], f"{name}:", "2026-01-01_a.jsonl", "1767225600"]
    inside(machine, f"echo more >>{name}/2026-01-01_a.jsonl")
    machine.run(f"echo more outside >>{SESSIONS}/2026-01-01_a.jsonl; echo new >{SESSIONS}/2026-01-02_c.jsonl", check=True)
    assert inside(machine, f"tail -qn1 {name}/*", "--pi-agent-sessions") == "more\nnew\n"
    assert inside(machine, f"tail -qn1 {name}/*") == "more\nnew\n"
    # None of it goes back.
    assert machine.run(f"tail -n1 {SESSIONS}/2026-01-01_a.jsonl").stdout == b"more outside\n"


def test_the_policy_may_bring_all_sessions_in_or_none(machine, had):
    had(PLAYING_POLICY + "config: {classes: {sessions: once}}\n")
    assert messages(pi(machine, "sh", "true")) == []
    assert len(inside(machine, "ls sessions").split()) == 2
    had(PLAYING_POLICY + "config: {classes: {sessions: never}}\n")
    refused = pi(machine, "--pi-agent-sessions", "sh", "true")
    assert refused.returncode == 77 and b"the policy keeps the sessions of your own agent outside (config.classes)" in refused.stderr, refused
    assert messages(pi(machine, "sh", "true")) == []


def test_what_the_user_updates_comes_in_until_the_agent_has_its_own(machine):
    inside(machine, "true")
    machine.run(f"cd {CONFIG}/npm; echo '#new' >>node_modules/p/lib/cli; mkdir node_modules/q; echo q >node_modules/q/i.js", check=True)
    assert inside(machine, "tail -n1 npm/node_modules/p/lib/cli; cat npm/node_modules/q/i.js") == "#new\nq\n"
    inside(machine, "echo its >npm/package.json")
    machine.run(f"echo '#newer' >>{CONFIG}/npm/node_modules/p/lib/cli", check=True)
    done = pi(machine, "sh", "tail -n1 $PI_CODING_AGENT_DIR/npm/node_modules/p/lib/cli")
    assert done.stdout == b"#new\n" and "pi: config: ~/.pi/agent/npm of the agent's home is the agent's own by now" in messages(done)[-1], done
    assert messages(pi(machine, "sh", "rm -r $PI_CODING_AGENT_DIR/npm")) == []
    assert inside(machine, "tail -n1 npm/node_modules/p/lib/cli") == "#newer\n"


def test_packages_that_nobody_has_installed_are_told_before_the_agent_looks_for_them(machine):
    machine.run(["sh", "-ec", f"""printf '%s' '{{"packages": ["npm:p@1", "npm:@s/gone@2", {{"source": "https://example.org/o/r.git"}}, "git:example.org/o/other"]}}' >{CONFIG}/settings.json"""], check=True)
    told = messages(pi(machine, "sh", "true"))
    assert any(line.startswith("pi: config: settings.json names packages that neither you nor the agent has installed: npm:@s/gone@2, git:example.org/o/other; ") for line in told), told
    assert messages(pi(machine, "sh", "mkdir -p $HOME/.local/share/npm-global/lib/node_modules/@s/gone")) == []


def test_trust_is_merged_place_by_place(machine):
    inside(machine, """printf '%s' '{"/inside": true, "/both": true}' >trust.json""")
    machine.run(["sh", "-ec", f"""printf '%s' '{{"/outside": true, "/both": false}}' >{CONFIG}/trust.json"""], check=True)
    assert json.loads(inside(machine, "cat trust.json")) == {"/inside": True, "/outside": True, "/both": False}


def test_what_is_too_much_to_bring_in_is_left_out_as_a_whole_and_keeps_nobody_from_starting(machine):
    machine.run(["sh", "-ec", f"cd {CONFIG}/npm; for i in 1 2 3 4 5 6 7 8 9; do truncate -s 250M f$i; done"], check=True)
    done = pi(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"; ls bin; test ! -e npm/f1')
    assert (done.returncode, done.stdout) == (0, b"fd\n"), done
    assert any(f"skipped {CONFIG}/npm: this part of the config holds more than" in line for line in messages(done)), done

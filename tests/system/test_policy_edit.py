"""pi-agentctl user add, user remove, set and show KEY: one thing changes, what was written by hand stays, and no policy with a mistake is ever written."""

import json

import pytest
from administering import BUSY, NOTHING, SYSTEM_FAILURE, USAGE, answer, ctl, said
from launching import DEMO, DENIED, INVALID, POLICY_FILE, STANDARD_POLICY, owner_and_mode, pi

PARTS, USERS = "/etc/pi-agent/policy.d", "/etc/pi-agent/users.d"
SET = f"{PARTS}/set.yaml"
EVES = f"{USERS}/eve.yaml"
RULE = "/etc/sudoers.d/pi-agent"
HEAD = "# Written by pi-agentctl (user add, set), which leaves this file alone once it has comments of your own.\n"
COMMENTED = STANDARD_POLICY.replace("    roots: [~/work]\n", "    # Where bob works.\n    roots: [~/work] # and nowhere else\n")
assert COMMENTED != STANDARD_POLICY


@pytest.fixture
def host(machine):
    machine.root(["rm", "-rf", PARTS, USERS], check=True)
    machine.install_policy(COMMENTED)
    yield machine
    machine.root(["rm", "-rf", PARTS, USERS], check=True)
    machine.install_policy(STANDARD_POLICY)


def files(machine):
    """What the policy's files hold; two pictures differ where anything was written."""
    return machine.root("cd /etc/pi-agent && grep -r '' . | sort", check=True).stdout.decode()


def test_a_user_is_added_applied_and_removed(host):
    machine = host
    machine.root("userdel pi-agent-eve 2>/dev/null; true", check=True)  # of another test
    before = files(machine)
    shown = said(machine, "user", "add", "eve", "--root", "/srv/devs", "--dry-run")
    assert "    +roots: [/srv/devs]\n" in shown and f"would: write {EVES}\n" in shown and files(machine) == before, shown
    shown = said(machine, "user", "add", "eve", "--root", "/srv/devs")
    assert shown.startswith(f"done: write {EVES}\nrun 'sudo pi-agentctl apply', which does this:\n"), shown
    assert "would: create the account pi-agent-eve\n" in shown and f"would: install the sudo rule {RULE}\n" in shown, shown
    assert machine.read(EVES).decode() == f"{HEAD}roots: [/srv/devs]\n" and owner_and_mode(machine, EVES) == "root:root 644"
    assert owner_and_mode(machine, USERS) == "root:root 755" and machine.root(["ls", "-A", USERS]).stdout == b"eve.yaml\n"
    assert machine.root(["getent", "passwd", "pi-agent-eve"]).returncode == 2  # nothing is applied
    said(machine, "apply", "--no-canary")
    try:
        assert pi(machine, "--version", user="eve", cwd="/srv/devs").returncode == 0
        assert f"eve has an entry already, {EVES}:2:" in said(machine, "user", "add", "eve", "--root", "/srv/devs", status=USAGE)
        assert "use --yes" in said(machine, "user", "remove", "eve", status=USAGE)
        assert machine.root(["test", "-e", EVES]).returncode == 0
        shown = said(machine, "user", "remove", "eve", "--yes")
        assert f"done: remove {EVES}\n" in shown and f"would: install the sudo rule {RULE}\n" in shown, shown
        assert pi(machine, "--version", user="eve", cwd="/srv/devs").returncode == DENIED
        assert "the policy has no entry users.eve" in said(machine, "user", "remove", "eve", "--yes", status=NOTHING)
        assert files(machine) == before
        said(machine, "apply", "--no-canary")
    finally:
        machine.root("userdel pi-agent-eve; rm -rf /var/lib/pi-agent/users/eve; true", check=True)


def test_what_was_written_by_hand_is_changed_with_the_editor(host):
    machine = host
    part = f"{PARTS}/more.yaml"
    machine.write(part, "users:\n  eve:\n    roots: [/srv/devs]\nprojects: {mask: []}\n")
    before = files(machine)
    for arguments, place, command in (
        (("user", "remove", "bob", "--yes"), f"{POLICY_FILE}:", "edit\n"),
        (("set", "users.bob.roots", "[~/work, /srv/devs]"), f"{POLICY_FILE}:", "edit\n"),
        (("set", "env.PI_OFFLINE", "0"), f"{POLICY_FILE}:", "edit\n"),
        (("user", "remove", "eve", "--yes"), f"{part}:3:5: users.eve stands here", "edit policy.d/more.yaml\n"),
        (("set", "projects.mask", "[docs]"), f"{part}:4:18: projects.mask stands here", "edit policy.d/more.yaml\n"),
    ):
        shown = said(machine, *arguments, status=INVALID)
        assert place in shown and f"change it with: sudo pi-agentctl {command}" in shown, shown
    assert said(machine, "set", "env.PI_OFFLINE", "1") == "the policy says that already\n" and files(machine) == before
    machine.root(["rm", part], check=True)
    said(machine, "set", "limits.sessions", "3")
    for text in (f"{HEAD}limits: {{sessions: 3}} # for now\n", f"{HEAD}# For now.\nlimits: {{sessions: 3}}\n", "limits: {sessions: 3}\n"):
        machine.write(SET, text)
        shown = said(machine, "set", "network", "none", status=INVALID)
        assert f"{SET} was written or changed by hand; change it with: sudo pi-agentctl edit policy.d/set.yaml\n" in shown, shown
        assert machine.read(SET).decode() == text


@pytest.mark.parametrize("arguments, status, words", [
    (["user", "add", "eve"], USAGE, "--root is required"),
    (["user", "add", "eve", "--root", "work"], INVALID, f"{EVES}:2:"),
    (["user", "add", "eve", "--root", "/etc"], INVALID, f"{EVES}:2:"),
    (["user", "add", "nobody-here", "--root", "/srv/devs"], INVALID, "this host has no user 'nobody-here'"),
    (["user", "add", "%ops", "--root", "/srv/devs"], USAGE, "is not the name of a user"),
    (["user", "add", "../eve", "--root", "/srv/devs"], USAGE, "is not the name of a user"),
    (["user", "add", "eve\nbob", "--root", "/srv/devs"], USAGE, "is not the name of a user"),
    (["user", "add", "eve", "--root", "/srv/\033[31m"], USAGE, r"/srv/\x1b[31m"),
    (["set", "limits.memroy", "8G"], USAGE, "did you mean 'memory'?"),
    (["set", "limits.memory", "8Q"], INVALID, f"{SET}:"),
    (["set", "network", "[full"], INVALID, "the value:1:"),
    (["set", "network", "full\nmask: []"], USAGE, "several lines"),
    (["set", "users.nobody.roots", "[~/x]"], USAGE, "the policy has no entry users.nobody"),
    (["set", "users.bob.rots", "[~/x]"], USAGE, "did you mean 'roots'?"),
    (["set", "agent.binary", "/no/such/agent"], INVALID, f"{POLICY_FILE}:"),
    (["set", "users", "{}"], INVALID, f"{POLICY_FILE}:"),
    (["show", "nonsense"], USAGE, "is not a key of a policy"),
])  # fmt: skip
def test_what_would_not_pass_check_is_not_written(host, arguments, status, words):
    before = files(host)
    assert words in said(host, *arguments, status=status)
    assert files(host) == before and host.root("ls -A /etc/pi-agent | grep -F .new").returncode == 1
    assert host.root(["test", "-e", USERS]).returncode == 1


def test_a_key_is_set_in_a_file_of_its_own_and_a_users_in_the_users(host):
    machine = host
    assert "network is not set; its default is full\n" in said(machine, "show", "network", status=NOTHING)
    shown = said(machine, "set", "network", "loopback")
    assert shown == f"done: write {SET}\nnothing to apply: the next start follows this\n", shown
    assert machine.read(SET).decode() == f"{HEAD}network: loopback\n" and said(machine, "show", "network") == "loopback\n"
    said(machine, "set", "limits.runtime", "12h")
    said(machine, "set", "limits.sessions", "3")
    said(machine, "set", "network", "none")
    assert machine.read(SET).decode() == f"{HEAD}network: none\nlimits: {{runtime: 12h, sessions: 3}}\n"
    assert machine.read(POLICY_FILE).decode() == COMMENTED and owner_and_mode(machine, SET) == "root:root 644"
    assert answer(machine, "explain", "--user", "alice")["network"]["mode"] == "none"

    said(machine, "user", "add", "eve", "--root", "/srv/devs")
    assert f"{EVES}:2:" in said(machine, "set", "users.eve.roots", "[/etc]", status=INVALID)
    said(machine, "set", "users.eve.env.PI_OFFLINE", "0")  # a text, whatever it looks like
    assert machine.read(EVES).decode() == f"{HEAD}roots: [/srv/devs]\nenv: {{PI_OFFLINE: '0'}}\n"
    said(machine, "set", "env.NEW", "it's: so")
    assert said(machine, "show", "env.NEW") == "it's: so\n" and machine.read(SET).decode().endswith("env: {NEW: 'it''s: so'}\n")
    assert machine.read(POLICY_FILE).decode() == COMMENTED
    assert said(machine, "set", "network", "none") == "the policy says that already\n"
    assert "policy is valid: " in said(machine, "check")


def test_allow_adds_a_host_wherever_the_list_stands_and_touches_nothing_else(host):
    machine = host
    assert "network is full (the default)" in said(machine, "allow", "github.com", status=NOTHING)
    lists = {
        "network:\n  hosts:  # what we need\n    - github.com   # code\n    - \"*.example.org\"\n  # more\nbox_notes: true\n":
            ("    - \"*.example.org\"\n", "    - \"*.example.org\"\n    - mirror.example\n"),
        "network: {hosts: [github.com, 'b.example:22']} # [not here]\n": ("22']", "22', mirror.example]"),
        "network:\n  hosts: []\n  may_grant: [c.example]\n": ("hosts: []", "hosts: [mirror.example]"),
        "network:\n  hosts: [github.com,\n          b.example]\n": ("b.example]", "b.example, mirror.example]"),
    }  # fmt: skip
    for text, (before, after) in lists.items():
        machine.write(POLICY_FILE, COMMENTED + text)
        assert f"would: write {POLICY_FILE}" in said(machine, "allow", "mirror.example", "-n") and machine.read(POLICY_FILE).decode() == COMMENTED + text
        shown = said(machine, "allow", "mirror.example", "github.com" if "github" in text else "mirror.example", "mirror.example:443")
        assert f"done: write {POLICY_FILE}\n" in shown and "nothing to apply: the next start follows this\n" in shown, shown
        assert machine.read(POLICY_FILE).decode() == COMMENTED + text.replace(before, after)
        assert said(machine, "allow", "mirror.example") == "the policy says that already\n"
        assert "mirror.example" in answer(machine, "explain", "--user", "alice")["network"]["hosts"]
    before = files(machine)
    for wrong, words in (("https://github.com/", "is a URL; name the host alone: github.com"), ("*.github.io", "anybody can have a name below"), ("a b", "'a b'")):
        assert words in said(machine, "allow", wrong, status=INVALID if "github.io" in wrong else USAGE) and files(machine) == before
    machine.write(POLICY_FILE, COMMENTED + "network: none\n")
    assert f"network ({POLICY_FILE}:" in said(machine, "allow", "mirror.example", status=INVALID)


def test_allow_for_one_user_begins_with_what_holds_for_them(host):
    machine = host
    machine.write(POLICY_FILE, COMMENTED + "network: {hosts: [github.com], may_grant: [c.example]}\n")
    said(machine, "user", "add", "eve", "--root", "/srv/devs")
    shown = said(machine, "allow", "mirror.example", "--user", "eve")
    assert f"users.eve.network is a list of its own from now on: it begins as {POLICY_FILE}:" in shown, shown
    assert machine.read(EVES).decode() == f"{HEAD}roots: [/srv/devs]\nnetwork: {{hosts: [github.com, mirror.example], may_grant: [c.example]}}\n"
    shown = said(machine, "allow", "d.example")
    assert f"unchanged: users.eve.network ({EVES}:3" in shown, shown
    said(machine, "allow", "d.example", "--user", "eve")
    assert "d.example" in machine.read(EVES).decode() and machine.read(EVES).decode().startswith(HEAD)
    assert "the policy has no entry users.carol" in said(machine, "allow", "e.example", "--user", "carol", status=USAGE)
    assert "users.bob stands here" in said(machine, "allow", "x.example", "--user", "bob", status=INVALID)
    assert "this host has no user nobody-here" in said(machine, "allow", "d.example", "--user", "nobody-here", status=USAGE)


def test_set_shows_what_it_takes_away_and_warns_of_what_counts_for_nothing(host):
    machine = host
    said(machine, "set", "network", "{hosts: [github.com]}")
    shown = said(machine, "set", "network", "none")
    assert "    -network: {hosts: [github.com]}\n" in shown, shown
    said(machine, "set", "network", "{hosts: [github.com]}")
    shown = said(machine, "set", "env.HTTPS_PROXY", "http://proxy.example:3128")
    assert "env.HTTPS_PROXY: counts for nothing: network (" in shown, shown
    assert "counts for nothing" not in said(machine, "set", "env.OTHER", "1")  # it was told
    shown = said(machine, "set", "models.providers.local", "{baseUrl: 'http://127.0.0.1:11434/v1', api: openai-completions}")
    assert 'leads to 127.0.0.1:11434, which network.hosts (' in shown and 'add "localhost:11434" to network.hosts' in shown, shown
    said(machine, "allow", "localhost:11434")
    assert "11434" not in said(machine, "check")


def test_get_prints_what_the_files_say(host):
    machine = host
    assert said(machine, "show", "users.bob.roots") == "[~/work]\n"
    shown = answer(machine, "show", "users.bob.roots")
    assert (shown["key"], shown["value"], shown["default"]) == ("users.bob.roots", ["~/work"], None)
    assert shown["where"].startswith(f"{POLICY_FILE}:")
    machine.write(EVES, "roots: [/srv/devs]\n")
    machine.write(f"{PARTS}/more.yaml", "env: {MORE: 'true'}\n")
    assert answer(machine, "show", "env")["value"] == {"PI_OFFLINE": "1", "MORE": "true"}
    assert sorted(answer(machine, "show", "users")["value"]) == ["%devs", "alice", "bob", "eve"]
    done = ctl(machine, "show", "limits.memory", "--json")
    assert done.returncode == NOTHING and json.loads(done.stdout) == {"version": 1, "key": "limits.memory", "value": None, "where": None, "default": "80%"}
    assert machine.run(["pi-agentctl", "show", "users.bob.roots"], user="alice").stdout == b"[~/work]\n"


def test_another_place_for_the_homes_can_be_said_before_they_move(host):
    machine = host
    pi(machine, "--version", check=True)  # alice's agent has a home
    machine.root(["mkdir", "/srv/agents"], check=True)
    try:
        shown = said(machine, "set", "agent.state_dir", "/srv/agents")
        assert f"done: write {SET}\n" in shown and "apply would stop: " in shown and "sudo pi-agentctl state move" in shown, shown
        assert said(machine, "show", "agent.state_dir") == "/srv/agents\n"
    finally:
        machine.root(["rmdir", "/srv/agents"], check=True)


def test_what_apply_would_do_includes_sessions_that_end_and_the_emergency_stop(host):
    shown = said(host, "set", "wrapper.enable", "false", "-n")
    assert "would: remove the sudo rule" in shown and "wrapper.enable is false: nobody may start pi" in shown, shown
    assert pi(host, "--version").returncode == 0


def test_a_second_user_needs_accounts_to_be_said_and_nothing_is_written_before(host):
    """README's policy has one user. A second one is possible from users.d on."""
    machine = host
    agent = "agent: {binary: /usr/lib/pi-agent/agent/bin/pi}\n"
    machine.write(POLICY_FILE, f"version: 1\n{agent}users:\n  alice:\n    roots: [~/projects]        # in here, at any depth\n")
    shown = said(machine, "user", "add", "eve", "--root", "/srv/devs", status=INVALID)
    assert "agent.accounts" in shown and "nothing is written" in shown, shown
    assert machine.root(["test", "-e", USERS]).returncode == 1
    said(machine, "set", "agent.accounts", "per-user")
    assert machine.read(POLICY_FILE).decode().count("#") == 1
    said(machine, "user", "add", "eve", "--root", "/srv/devs")
    assert said(machine, "show", "users.eve.roots") == "[/srv/devs]\n"


def test_the_emergency_stop_can_be_said_whatever_is_wrong_with_the_host(host):
    """A user's root has become a file."""
    machine = host
    machine.write(POLICY_FILE, COMMENTED.replace("users:\n", "users:\n  eve:\n    roots: [/usr/bin/env]\n"))
    assert "it is not a directory" in said(machine, "set", "network", "none", status=INVALID)
    shown = said(machine, "set", "wrapper.enable", "false")
    assert f"done: write {SET}\n" in shown and "wrapper.enable is false: nobody may start pi" in shown, shown
    assert pi(machine, "--version").returncode == DENIED
    assert "it is not a directory" in said(machine, "set", "wrapper.enable", "true", status=INVALID)


def test_users_d_without_a_file_is_in_nobodys_way(host):
    """The package makes it; a policy of one user need not say agent.accounts before the first file."""
    machine = host
    machine.root("rm -rf /var/lib/pi-agent/users/eve", check=True)
    machine.write(POLICY_FILE, "version: 1\nagent: {binary: /usr/lib/pi-agent/agent/bin/pi}\nusers:\n  eve:\n    roots: [/srv/devs]\n")
    shown = said(machine, "edit", "users.d/alice.yaml", status=INVALID)
    assert "sudo pi-agentctl set agent.accounts per-user" in shown and machine.root(["test", "-e", USERS]).returncode == 1, shown
    machine.root(["mkdir", USERS], check=True)
    assert "policy is valid: " in said(machine, "check")
    said(machine, "set", "limits.sessions", "3")
    said(machine, "apply", "--no-canary")
    assert pi(machine, "--version", user="eve", cwd="/srv/devs").returncode == 0
    machine.write(f"{USERS}/bob.yaml", "roots: [~/work]\n")
    assert "agent.accounts: missing, and more than one user is possible" in said(machine, "check", status=INVALID)
    assert pi(machine, "--version", user="eve", cwd="/srv/devs").returncode == INVALID
    machine.root(["chmod", "0711", USERS], check=True)  # whose users cannot list it: there may be a file
    machine.root(["rm", f"{USERS}/bob.yaml"], check=True)
    assert pi(machine, "--version", user="eve", cwd="/srv/devs").returncode == INVALID
    machine.root("rm -rf /var/lib/pi-agent/users/eve", check=True)  # of the account that all shared
    said(machine, "set", "agent.accounts", "per-user")
    assert owner_and_mode(machine, USERS) == "root:root 711"


def test_a_tree_is_checked_without_root_and_without_this_host(host):
    machine = host
    tree = "/home/alice/projects/policy"
    machine.run(f"mkdir -p {tree}/policy.d {tree}/users.d", check=True)
    files = {"policy.yaml": "version: 1\nagent: {accounts: per-user}\nusers: {nobody-here: {roots: [/srv/x]}}\n", "policy.d/a.yaml": "network: none\n", "users.d/zoe.yaml": "roots: [~/zoe]\n"}
    for name, text in files.items():
        machine.write(f"{tree}/{name}", text, owner="alice")
    check = ["pi-agentctl", "check", "--directory", tree]
    done = machine.run(check, check=True)
    assert b"policy is valid: 2 entries" in done.stdout and b"not verified: this host" in done.stdout, done
    machine.write(f"{tree}/policy.d/b.yaml", "network: full\n", owner="alice")
    machine.write(f"{tree}/users.d/zoe.yml", "", owner="alice")
    done = machine.run(check)
    assert done.returncode == INVALID and f"{tree}/policy.d/b.yaml:1:1: network: given twice".encode() in done.stderr and b"zoe.yml: is not read" in done.stderr, done
    assert machine.run([*check, "--json"]).returncode == INVALID
    assert machine.run(["pi-agentctl", "check", "--directory", "/nowhere"]).returncode == SYSTEM_FAILURE
    machine.run(["rm", "-r", tree], check=True)


def test_one_command_at_a_time_changes_the_policy(host):
    machine = host
    before = files(machine)
    holder = machine.popen(["flock", "/run/pi-agentctl-edit.lock", "sleep", "1000"], user="root")
    try:
        while machine.root(["flock", "--nonblock", "/run/pi-agentctl-edit.lock", "true"]).returncode == 0:
            pass
        for arguments in (["set", "network", "none"], ["user", "add", "eve", "--root", "/srv/devs"], ["user", "remove", "bob", "--yes"]):
            assert "somebody is editing the policy" in said(machine, *arguments, status=BUSY)
    finally:
        holder.kill_all()
        holder.wait()
    assert files(machine) == before


def test_a_file_that_is_a_link_of_somebodys_is_no_file_of_the_policy(host):
    """What others could change is refused, and nothing is written through it."""
    machine = host
    machine.root(["mkdir", "-p", PARTS], check=True)
    machine.run(["sh", "-c", "echo 'network: full' >/home/eve/set.yaml"], user="eve", check=True)
    machine.root(["ln", "-s", "/home/eve/set.yaml", SET], check=True)
    try:
        assert "cannot be trusted" in said(machine, "set", "network", "none", status=INVALID)
        assert machine.read("/home/eve/set.yaml") == b"network: full\n"
    finally:
        machine.root(["rm", SET, "/home/eve/set.yaml"], check=True)


def test_only_root_changes_the_policy(machine):
    for arguments in (["set", "network", "none"], ["user", "add", "eve", "--root", "/srv/devs"], ["user", "remove", "bob", "--yes"]):
        done = machine.run(["pi-agentctl", *arguments], user="alice", cwd=DEMO)
        assert done.returncode == DENIED and b"only root can run it" in done.stderr, done

"""What users, groups, roots and starts say for their own sessions: probes inside agree with `explain` and `why` (docs/concepts/levels.md)."""

import json
from dataclasses import dataclass

import pytest
from launching import DENIED, INVALID, PLAYING_AGENT, assert_refused, pi, written_policy

HOMES = {"alice": "/home/alice/projects", "carol": "/srv/devs", "bob": "/home/bob/work"}
PLACES = {user: f"{root}/levels-a" for user, root in HOMES.items()}
GREETING = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 7022), 2)' 2>/dev/null && echo open || echo closed"


@dataclass(frozen=True)
class Key:
    """What the whole policy says and what an inner level says, each with what the probe then prints."""

    probe: str
    outer: tuple
    inner: tuple
    in_root: str = ""  # what a root calls it


KEYS = {
    "network": Key(GREETING, ("none", "closed"), ("full", "open"), "network"),
    "projects.scope": Key("test -e ../levels-b && echo seen || echo hidden", ("root", "seen"), ("project", "hidden"), "scope"),
    "projects.mask": Key("cat keys 2>/dev/null || echo masked", ("[keys]", "masked"), ("[]", "secret"), "mask"),
    "projects.read_only": Key("touch new 2>/dev/null && echo written || echo kept", ("false", "written"), ("true", "kept"), "read_only"),
    "projects.paths": Key("case $PWD in /var/lib/*) echo alias;; *) echo host;; esac", ("host", "host"), ("alias", "alias")),
    "env_files": Key("echo $LEVEL", ("[/etc/pi-agent/outer.env]", "outer"), ("[/etc/pi-agent/inner.env]", "inner")),
    "view_paths": Key("test -e /srv/levels/file && echo seen || echo hidden", ("[]", "hidden"), ("[/srv/levels]", "seen")),
    "path": Key("case $PATH in */usr/lib:*) echo there;; *) echo missing;; esac", ("[]", "missing"), ("[/usr/lib]", "there")),
    "scratch": Key("stat --file-system --format=%T /tmp | grep -x tmpfs || echo disk", ("disk", "disk"), ("tmpfs", "tmpfs")),
    "toolchains.readable": Key("cat ~/.levels/file 2>/dev/null || echo missing", ("[]", "missing"), ("[~/.levels]", "tool")),
    "settings": Key("grep -o 'level-[a-z]*' ~/.pi/agent/settings.json", ("{theme: level-outer}", "level-outer"), ("{theme: level-inner}", "level-inner")),
}


def said(key, value):
    section, _, name = key.partition(".")
    return f"{section}: {{{name}: {value}}}" if name else f"{section}: {value}"


def policy(top="", alice="", devs="", root=""):
    """alice has an entry of her own, carol that of her group, and bob, who is in that group too, a root with rules."""
    return "\n".join([
        "version: 1", f"agent: {{binary: {PLAYING_AGENT}, accounts: per-user}}", "env: {PI_OFFLINE: '1'}", top, "users:",
        "  alice:", "    roots: [~/projects]", f"    {alice}",
        "  bob:", f"    roots: [{{path: ~/work{root}}}]",
        "  '%devs':", "    roots: [/srv/devs]", f"    {devs}", "",
    ])  # fmt: skip


@pytest.fixture(scope="module")
def people(playing):
    """Each has two directories side by side in the root, a file with a secret, and a directory of tools at home."""
    for user, root in HOMES.items():
        script = f"mkdir -p {root}/levels-a {root}/levels-b ~/.levels; echo secret >{root}/levels-a/keys; echo tool >~/.levels/file"
        playing.run(["sh", "-ec", script], user=user, check=True)
    playing.root("mkdir -p /srv/levels; touch /srv/levels/file", check=True)
    playing.root(["systemd-run", "--quiet", "--unit=levels-listener", "python3", "-m", "http.server", "--bind", "127.0.0.1", "7022"], check=True)
    playing.root(f"for i in $(seq 100); do {GREETING} | grep -q open && exit; sleep .1; done; exit 1", check=True)
    for level in ("outer", "inner"):
        playing.write(f"/etc/pi-agent/{level}.env", f"LEVEL={level}\n", mode=0o600)
    yield playing
    playing.root(["systemctl", "stop", "levels-listener"], check=True)
    for user, root in HOMES.items():
        playing.root(f"rm -rf {root}/levels-a {root}/levels-b ~{user}/.levels", check=True)
    playing.root("rm -r /srv/levels /etc/pi-agent/outer.env /etc/pi-agent/inner.env", check=True)


def probed(machine, user, probe, *options):
    done = pi(machine, *options, "sh", probe, user=user, cwd=PLACES[user])
    assert done.returncode == 0, done
    return done.stdout.decode().strip()


def explained(machine, user):
    return json.loads(machine.root(["pi-agentctl", "explain", "--json", "--user", user, "--cwd", PLACES[user]], check=True).stdout)


@pytest.mark.parametrize("name", KEYS)
def test_each_session_gets_what_the_innermost_level_says(people, name):
    key = KEYS[name]
    root = f", {key.in_root}: {key.inner[0]}" if key.in_root else ""
    with written_policy(people, policy(said(name, key.outer[0]))):
        assert {user: probed(people, user, key.probe) for user in HOMES} == dict.fromkeys(HOMES, key.outer[1])
        assert {explained(people, user)["said"][name]["key"] for user in HOMES} == {name}
    inner = said(name, key.inner[0])
    with written_policy(people, policy(said(name, key.outer[0]), inner, inner, root)):
        found = {user: probed(people, user, key.probe) for user in HOMES}
        places = {user: explained(people, user)["said"][name] for user in HOMES}
    assert found == dict.fromkeys(HOMES, key.inner[1])
    bobs = f"users.bob.roots[0].{key.in_root}" if root else f"users.%devs.{name}"
    assert {user: place["key"] for user, place in places.items()} == {"alice": f"users.alice.{name}", "carol": f"users.%devs.{name}", "bob": bobs}
    assert all(place["where"].startswith("/etc/pi-agent/policy.yaml:") for place in places.values())


def test_why_names_the_level_that_says_it(people):
    with written_policy(people, policy("projects: {mask: [keys]}", root=", read_only: true")):
        answers = {}
        for user in ("alice", "bob"):
            command = ["pi-agentctl", "why", "--json", "--user", user, "--cwd", PLACES[user], f"{PLACES[user]}/keys", PLACES[user]]
            answers[user] = [answer["key"] for answer in json.loads(people.root(command, check=True).stdout)["paths"]]
    hiding = "projects.mask, projects.protect or projects.read_only"  # what would take the directory from sessions
    assert answers == {"alice": ["projects.mask", hiding], "bob": ["projects.mask", "users.bob.roots[0].read_only"]}


def test_a_directory_of_the_users_own_is_readable_and_nothing_else(people):
    with written_policy(people, policy(alice="readable: [~/.levels]")):
        assert probed(people, "alice", "cat /home/alice/.levels/file ~/.levels/file; touch ~/.levels/new 2>/dev/null || echo kept") == "tool\ntool\nkept"
        assert probed(people, "bob", "cat /home/bob/.levels/file 2>/dev/null || echo missing") == "missing"


def test_a_root_with_rules_inside_another_is_seen_by_its_own_sessions_alone(people):
    inner = f"{HOMES['bob']}/levels-b"
    people.run(["sh", "-ec", f"echo inner >{inner}/file"], user="bob", check=True)
    text = policy(root=f"}}, {{path: {inner}, read_only: true")
    with written_policy(people, text):
        done = pi(people, "sh", "ls -A ../levels-b; touch ../levels-b/new || echo kept", user="bob", cwd=PLACES["bob"])
        assert done.stdout == b"kept\n" and f"not shown to the agent: {inner} (a root with rules of its own".encode() in done.stderr, done
        done = pi(people, "sh", "cat file; touch new 2>/dev/null || echo kept", user="bob", cwd=inner)
        assert done.stdout == b"inner\nkept\n", done
        command = ["pi-agentctl", "why", "--json", "--user", "bob", "--cwd", PLACES["bob"], f"{inner}/file"]
        assert "a root with rules of its own" in json.loads(people.root(command, check=True).stdout)["paths"][0]["rule"]


def test_show_prints_every_value_with_its_level(people):
    with written_policy(people, policy("network: none", alice="limits: {memory: 1G}\n    env: {PI_OFFLINE: 'no', EDITOR: nano}", root=", scope: project")):
        shown = json.loads(people.root(["pi-agentctl", "show", "--effective", "--json", "--user", "bob", "--directory", PLACES["bob"]], check=True).stdout)
        text = people.run(["pi-agentctl", "show", "--effective"], user="alice", check=True).stdout.decode()
    effective = shown["effective"]
    assert (effective["network"]["value"], effective["network"]["key"]) == ("none", "network")
    assert (effective["projects.scope"]["value"], effective["projects.scope"]["key"]) == ("project", "users.bob.roots[0].scope")
    assert (effective["limits.tasks"]["value"], effective["limits.tasks"]["key"]) == ("4096", None)
    assert "limits.memory: 1G    # users.alice.limits.memory, /etc/pi-agent/policy.yaml:" in text and "scratch: disk    # default\n" in text, text
    assert (effective["env.PI_OFFLINE"]["value"], effective["env.PI_OFFLINE"]["key"]) == ("1", "env.PI_OFFLINE") and "env.EDITOR" not in effective
    for line in ("env.EDITOR: nano", "env.PI_OFFLINE: no"):
        assert f"{line}    # users.alice.{line.partition(':')[0]}, /etc/pi-agent/policy.yaml:" in text, text


STARTS = {
    "--pi-agent-network=none": (GREETING, "open", "closed"),
    "--pi-agent-read-only": ("touch new 2>/dev/null && echo written || echo kept", "written", "kept"),
    "--pi-agent-scope=project": ("test -e ../levels-b && echo seen || echo hidden", "seen", "hidden"),
}


@pytest.mark.parametrize("option", STARTS)
def test_a_start_may_take_less(people, option):
    probe, without, asked = STARTS[option]
    with written_policy(people, policy()):
        assert (probed(people, "alice", probe), probed(people, "alice", probe, option)) == (without, asked)


def test_a_start_gets_nothing_more(people):
    with written_policy(people, policy("network: none")):
        done = pi(people, "--pi-agent-network=loopback", "true", user="alice", cwd=PLACES["alice"])
        assert_refused(done, DENIED, "asks for more than the policy gives", "E77-start")
        done = pi(people, "--pi-agent-network=full", "true", user="alice", cwd=PLACES["alice"])
        assert_refused(done, DENIED, "--pi-agent-network=full asks for more than the policy gives", "E77-start")


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ({"alice": "view: host"}, "users.alice.view: unknown key"),
        ({"alice": "projects: {ownership: idmap}"}, "users.alice.projects.ownership: unknown key"),
        ({"root": ", limits: {memory: 1G}"}, "users.bob.roots[0].limits: unknown key"),
        ({"root": ", network: nothing"}, "users.bob.roots[0].network: unknown value"),
        ({"devs": "readable: [srv/x]"}, "users.%devs.readable[0]: "),
        ({"alice": "view_paths: [/home/bob]"}, "users.alice.view_paths[0]: "),
        ({"alice": "env_files: [/etc/pi-agent/missing.env]"}, "users.alice.env_files: "),
    ],
)
def test_check_refuses_what_may_not_stand_there(people, pieces, words):
    with written_policy(people, policy(**pieces)):
        done = people.root(["pi-agentctl", "check"])
    assert done.returncode == INVALID and f": {words}" in done.stderr.decode() and b"/etc/pi-agent/policy.yaml:" in done.stderr, done


def test_a_users_own_view_paths_can_take_the_policys_path_away(people):
    with written_policy(people, policy("view_paths: [/srv/levels]\npath: [/srv/levels]", alice="view_paths: []")):
        done = people.root(["pi-agentctl", "check"])
        assert done.returncode == INVALID and b": users.alice.view_paths: the directory that path (" in done.stderr, done
        assert_refused(pi(people, "true", user="alice", cwd=PLACES["alice"]), INVALID, "/srv/levels is not shown to sessions", "E78-path")
        assert probed(people, "bob", "case $PATH in */srv/levels:*) echo there;; esac") == "there"


def test_a_users_own_path_may_be_in_what_their_groups_show(people):
    """bob is in the group, and alice is not."""
    people.root("groupadd levels-view && gpasswd -a bob levels-view", check=True)
    try:
        text = policy(alice="path: [/srv/levels]").replace("  bob:\n", "  bob:\n    path: [/srv/levels]\n")
        with written_policy(people, text + "  '%levels-view':\n    roots: [/srv/devs]\n    view_paths: [/srv/levels]\n"):
            done = people.root(["pi-agentctl", "check"])
            assert b": users.alice.path: the directory that path (" in done.stderr and b"users.bob.path" not in done.stderr, done
            assert probed(people, "bob", "case $PATH in */srv/levels:*) echo there;; esac") == "there"
    finally:
        people.root("groupdel levels-view", check=True)


def test_check_warns_of_groups_of_one_user_that_contradict_each_other(people):
    people.root("groupadd levels-one && groupadd levels-two && gpasswd -a carol levels-one && gpasswd -a carol levels-two", check=True)
    try:
        groups = "".join(f"  '%{name}':\n    roots: [/srv/devs]\n    network: {value}\n" for name, value in (("levels-one", "none"), ("levels-two", "full")))
        with written_policy(people, policy() + groups):
            done = people.root(["pi-agentctl", "check"])
            assert b"users.%levels-two.network: another group of carol sets another value, so carol cannot start pi" in done.stderr, done
            assert_refused(pi(people, "true", user="carol", cwd=PLACES["carol"]), INVALID, "another group of carol sets another value")
        own = "  carol: {roots: [/srv/devs], config: .config/pi}\n"  # which check looks for with what her entries grant
        with written_policy(people, policy() + groups + own):
            done = people.root(["pi-agentctl", "check"])
            assert b"so carol cannot start pi" in done.stderr and done.stdout.startswith(b"policy is valid: "), done
    finally:
        people.root("groupdel levels-one; groupdel levels-two", check=True)


def test_check_warns_of_an_own_entry_that_contradicts_that_of_a_group(people):
    """Of bob's start the group says whose key stays outside, and his root that nothing keeps it there."""
    key = "/etc/pi-agent/levels.key"
    people.write(key, "secret\n", mode=0o600)
    devs = f"network: {{hosts: [github.com]}}\n    providers: {{anthropic: {{key_file: {key}}}}}"
    words = "its key stays outside, but the network of these sessions is full"
    try:
        with written_policy(people, policy(devs=devs, root=", network: full")):
            done = people.root(["pi-agentctl", "check"])
            assert words in done.stderr.decode() and b", so bob cannot start pi in ~/work; " in done.stderr, done
            told = json.loads(people.root(["pi-agentctl", "explain", "--json"], check=True).stdout)["users"]
            assert {user["user"]: words in (user["problem"] or "") for user in told if user["user"] in HOMES} == {"alice": False, "bob": True, "carol": False}, told
            assert_refused(pi(people, "true", user="bob", cwd=PLACES["bob"]), INVALID, words)
    finally:
        people.root(["rm", key], check=True)

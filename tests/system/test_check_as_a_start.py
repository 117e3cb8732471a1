"""What check, explain and why say of random policies is what the starts of all their users then do."""

import json
import os
import random

import pytest
from launching import INVALID, PLAYING_AGENT, pi, written_policy

SEED = os.environ.get("PI_AGENT_SEED", "0")
# A start takes half a second. With --full, as many as the promise names.
POLICIES = 60 if os.environ.get("PI_AGENT_FULL") else 4
GROUPS = {"check-one": ("alice", "bob", "carol"), "check-two": ("bob", "carol")}
USERS = ("alice", "bob", "carol")
ROOTS = ("/srv/check/a", "/srv/check/a/below", "/srv/check/b", "/opt/check/p", "~/check")
NETWORKS = ("none", "full", "{hosts: []}", "{hosts: [a.example]}")
KEY = "/etc/pi-agent/check.key"
ROOT_KEYS = ("read_only: true", "scope: project", "mask: [keys]", "mask: [keys, '*.pem']")
LEVEL_KEYS = (f"providers: {{anthropic: {{key_file: {KEY}}}}}", "limits: {sessions: 4}", "limits: {sessions: 5}", "env: {A: one}", "env: {A: two}",
              "settings: {theme: light}", "settings: {theme: dark}")  # fmt: skip


@pytest.fixture(scope="module")
def places(playing):
    """Roots of everybody's, one that its owner can exchange where sessions see the directories around it, and two groups."""
    script = ["mkdir -p /srv/check/a/below /srv/check/b /opt/check/p", "chmod -R 777 /srv/check", "chmod 777 /opt/check/p", "chown alice /opt/check"]
    script += [f"groupadd {group}; " + "; ".join(f"gpasswd -a {user} {group}" for user in users) for group, users in GROUPS.items()]
    playing.root("; ".join(script), check=True)
    for user in USERS:
        playing.run(["sh", "-c", "mkdir -p ~/check"], user=user, check=True)
    playing.write(KEY, "secret\n", mode=0o600)
    yield playing
    playing.root(f"rm -r /srv/check /opt/check {KEY} ~alice/check ~bob/check ~carol/check; groupdel check-one; groupdel check-two", check=True)


def entry(draw, name):
    roots = []
    for _ in range(draw.randint(1, 2)):
        rules = [f"network: {draw.choice(NETWORKS)}"] * (draw.random() < 0.3) + [draw.choice(ROOT_KEYS)] * (draw.random() < 0.3)
        roots.append("{" + ", ".join([f"path: {draw.choice(ROOTS)}", *rules]) + "}")
    said = [f"network: {draw.choice(NETWORKS)}"] * (draw.random() < 0.4) + [draw.choice(LEVEL_KEYS)] * (draw.random() < 0.5)
    return f"  '{name}': {{" + ", ".join([f"roots: [{', '.join(roots)}]", *said]) + "}\n"


def drawn(draw):
    top = [f"network: {draw.choice(NETWORKS)}\n"] * (draw.random() < 0.3)
    names = [f"%{group}" for group in GROUPS if draw.random() < 0.8] + ["alice"] * (draw.random() < 0.6) + ["bob"] * (draw.random() < 0.2)
    head = f"version: 1\nagent: {{binary: {PLAYING_AGENT}, accounts: per-user}}\nenv: {{PI_OFFLINE: '1'}}\n"
    return head + "".join(top) + "users:\n" + "".join(entry(draw, name) for name in names or ["alice"])


def told(problem, user):
    """The roots in which a message keeps this user from starting: "" for all of them, none at all for others."""
    before, mark, after = problem.partition(", so ")
    who, _, where = after.partition(" cannot start pi")
    return {where.removeprefix(" in ")} if mark and before and who.split(" (")[0] == user else set()


def check_agrees(machine, text):
    """Returns how many starts there were, and how many of them were refused."""
    counts = [0, 0]
    report = json.loads(machine.root(["pi-agentctl", "check", "--json"]).stdout)
    overview = {}
    if report["valid"]:
        overview = {user["user"]: user for user in json.loads(machine.root(["pi-agentctl", "explain", "--json"], check=True).stdout)["users"]}
    if any("twice, with different rules" in one["message"] and one["key"].startswith("users.") and ".roots[" in one["key"] for one in report["errors"]):
        return counts  # a text that nothing reads further
    for user in USERS:
        for root in ROOTS:
            cwd = root.replace("~", f"/home/{user}")
            started = pi(machine, "sh", "true", user=user, cwd=cwd)
            said = started.stderr.decode()
            counts[0] += 1
            counts[1] += started.returncode != 0
            asked = machine.root(["pi-agentctl", "explain", "--user", user, "--cwd", cwd, "--json"])
            answer = json.loads(asked.stdout) if asked.stdout else {}
            directory = answer.get("directory")
            context = (SEED, text, user, cwd, started, asked, report)
            if directory:
                assert directory["allowed"] is (started.returncode == 0), context
                assert directory["allowed"] or directory["reason"].splitlines()[0] in said, context
            else:  # no entry, or entries that contradict each other
                assert started.returncode != 0, context
            granted = root in (overview.get(user, {}).get("roots") or ())
            messages = [one["message"] for one in report["errors"] + report["warnings"]]
            roots = set().union(*(told(message, user) for message in messages))
            by_error = any(one["key"].startswith(f"users.{user}.roots[") and f" {cwd}" in one["message"] for one in report["errors"])
            same_as_other = any("more with the same entries" in message for message in messages)
            if granted and not same_as_other:
                assert ("" in roots or root in roots or by_error) is (started.returncode != 0), context
            if granted and started.returncode == INVALID and same_as_other:
                assert roots or any(f"in {root}" in message or message.endswith("cannot start pi") for message in messages), context
    return counts


def test_check_and_explain_say_of_random_policies_what_starts_do(places):
    draw = random.Random(SEED)
    starts = refused = 0
    for _ in range(POLICIES):
        text = drawn(draw)
        with written_policy(places, text):
            one, other = check_agrees(places, text)
        starts += one
        refused += other
    assert starts > POLICIES * 5 and 0 < refused < starts, (SEED, starts, refused)


# name: (the entries, where, what the start says)
CASES = {
    "equal rules of two groups": ("'%check-one': {roots: [{path: /srv/check/a, network: none}]}, '%check-two': {roots: [{path: /srv/check/a, network: none}]}",
                                  "/srv/check/a", ""),
    "different rules of two groups": ("'%check-one': {roots: [{path: /srv/check/a, network: none}]}, '%check-two': {roots: [{path: /srv/check/a, network: full}]}",
                                      "/srv/check/a", "twice, with different rules"),
    "a key, and a root of another group": (
        f"'%check-one': {{roots: [/srv/check/a], network: {{hosts: []}}, providers: {{anthropic: {{key_file: {KEY}}}}}}}, "
        "'%check-two': {roots: [{path: /srv/check/b, network: full}]}", "/srv/check/b", "its key stays outside"),
    "long lists of two groups": (
        "".join(f"'%check-{group}': {{roots: [/srv/check/a], network: {{hosts: [{', '.join(f'{group}{number}.example' for number in range(600))}]}}}}, "
                for group in ("one", "two")), "/srv/check/a", "have 1200 rules together, and a session has 1000 at most"),
    "a root that alice can exchange": ("'%check-two': {roots: [/opt/check/p]}", "/opt/check/p", "which others could replace while a session runs"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_check_explain_why_and_a_start_agree(places, name):
    entries, cwd, words = CASES[name]
    text = f"version: 1\nagent: {{binary: {PLAYING_AGENT}, accounts: per-user}}\nusers: {{{entries.rstrip(', ')}}}\n"
    with written_policy(places, text):
        started = pi(places, "sh", "true", user="carol", cwd=cwd)
        checked = json.loads(places.root(["pi-agentctl", "check", "--json"]).stdout)
        explained = json.loads(places.root(["pi-agentctl", "explain", "--user", "carol", "--cwd", cwd, "--json"], check=True).stdout)["directory"]
        why = places.root(["pi-agentctl", "why", "--user", "carol", "--cwd", cwd, cwd])
    warned = "\n".join(one["message"] for one in checked["warnings"] if "cannot start pi" in one["message"])
    assert checked["valid"], checked
    if not words:
        assert started.returncode == 0 and explained["allowed"] and why.returncode == 0 and not warned, (started, checked, explained, why)
        return
    assert started.returncode != 0 and words in started.stderr.decode() and "--pi-agent-allow" not in started.stderr.decode(), started
    named = "more with the same entries) cannot start pi" in warned or "so carol cannot start pi" in warned
    assert words in warned and named, checked
    assert explained["allowed"] is False and words in explained["reason"], explained
    assert why.returncode != 0 and words in (why.stdout + why.stderr).decode(), why

"""pi-agentctl check tells everything at once: unsafe roots, roots that overlap, what the method lacks; and that there is no policy."""

import json

import pytest
from administering import said
from launching import PLAYING_POLICY, POLICY_FILE, STATE, pi, written_policy
from test_apply import moved_away

INVALID = 78
DRAFT = "/root/draft.yaml"


@pytest.fixture
def host(playing):
    playing.install_policy(PLAYING_POLICY)
    playing.root("install -d /srv/open && chmod 0777 /srv/open && install -d -o alice /srv/open/of-alice && install -d -m 1777 /srv/sticky"
                 " && install -d -o bob /srv/sticky/of-bob && install -d -o alice /srv/all && chmod 0777 /srv/all", check=True)  # fmt: skip
    yield playing
    playing.root(["rm", "-rf", "/srv/open", "/srv/sticky", "/srv/all", DRAFT], check=True)


def roots_of_alice(*roots):
    return PLAYING_POLICY.replace("[~/projects, /srv/shared/app]", f"[{', '.join(['~/projects', *roots])}]")


def warnings(machine, policy):
    """Those of JSON, which a person is told, too."""
    machine.write(DRAFT, policy)
    done = machine.root(["pi-agentctl", "check", "--json", DRAFT])
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == (report["errors"] == []), report
    text = machine.root(["pi-agentctl", "check", DRAFT]).stderr.decode()
    found = {warning["key"]: warning["message"] for warning in report["warnings"] if warning["key"]}
    assert all(message in text for message in found.values()), (text, found)
    return found, report


UNSAFE = {
    "/srv/open/of-alice": "everybody can write to /srv/open (owner root, mode 0777), and so put another directory in the root's place",
    "/srv/sticky/of-bob": "bob can put another directory in the root's place: everybody can write to /srv/sticky (owner root, mode 1777)",
    "/srv/all": "everybody can write to /srv/all (owner alice, mode 0777): the agent reads and obeys what they leave there",
}


@pytest.mark.parametrize("root", UNSAFE)
def test_a_root_that_others_can_exchange_is_a_warning(host, root):
    found, report = warnings(host, roots_of_alice(root))
    assert found["users.alice.roots[1]"] == UNSAFE[root] and report["valid"], report


def test_a_safe_policy_has_no_warning_of_roots(host):
    found, report = warnings(host, PLAYING_POLICY)
    assert not [key for key in found if "roots" in key], report


def test_roots_that_overlap_are_told_with_both_places(host):
    policy = roots_of_alice("/srv/shared").replace("roots: [~/work]", "roots: [~/work, /srv/shared/app]")
    found, report = warnings(host, policy)
    assert "/srv/shared/app lies in /srv/shared (users.alice.roots[1], " in found["users.bob.roots[1]"], report
    assert "a root of alice" in found["users.bob.roots[1]"]
    found, _ = warnings(host, roots_of_alice("/srv/shared", "/srv/shared/app"))
    assert "a session there has the inner root alone" in found["users.alice.roots[2]"]


def test_everything_is_told_at_once(host):
    """Text, rules, host, roots and method."""
    policy = roots_of_alice("/srv/open/of-alice").replace("  bob:\n", "  nobody-here: {roots: [/srv/all]}\n  bob:\n") + "sandbox: {method: bwrap}\nnetwork: none\n"
    with moved_away(host, "/usr/bin/bwrap"):
        found, report = warnings(host, policy)
    errors = {error["key"]: error["message"] for error in report["errors"]}
    assert "this host has no user" in found["users.nobody-here"] and "bwrap needs /usr/bin/bwrap" in errors["sandbox.method"], report
    assert found["users.alice.roots[1]"] == UNSAFE["/srv/open/of-alice"]
    found, report = warnings(host, policy.replace("method: bwrap", "method: none"))
    assert "so sessions are not sandboxed" in found["sandbox.method"], report


def test_a_name_by_which_nobody_starts_is_an_error(host):
    """A start knows its user by the number, and the user database has one name for that."""
    uid = host.root(["id", "-u", "alice"], check=True).stdout.decode().strip()
    host.root(f"cp -p /etc/passwd /root/passwd && echo 'Alice.Smith:*:{uid}:{uid}::/home/alice:/bin/bash' >>/etc/passwd", check=True)
    try:
        _, report = warnings(host, PLAYING_POLICY.replace("users:\n", "users:\n  Alice.Smith: {roots: [~/projects]}\n"))
    finally:
        host.root(["mv", "/root/passwd", "/etc/passwd"], check=True)
    assert [(error["key"], error["message"], error["remedy"]) for error in report["errors"]] == [
        ("users.Alice.Smith", f"this host calls the user with the uid {uid} 'alice', so nobody starts by this entry", "write 'alice', or remove the entry"),
    ], report  # fmt: skip


def test_an_inner_root_of_ones_own_with_rules_is_what_it_was_written_for(host):
    """Sessions that start beside it do not see it: a warning would say the opposite."""
    found, report = warnings(host, roots_of_alice("{path: /srv/shared/app/secret, network: none}").replace("/srv/shared/app/secret", "/home/alice/projects/demo"))
    assert not [key for key in found if "roots" in key], report


@pytest.mark.parametrize(
    ("path", "whose"),
    [("/run/pi-agent/drain", ""), (f"{STATE}/alice", " of alice"), (f"{STATE}/alice/meta", " of alice"), (f"{STATE}/alice/meta/manifest", " of alice")],
)
def test_what_replaces_a_file_or_directory_of_ours_is_told(host, path, whose):
    """No start works then, and the policy is valid all the same."""
    assert pi(host, "sh", "true").returncode == 0
    kept = f"{STATE}/../kept"
    kind = "directory" if not path.endswith(("drain", "manifest")) else "regular file"
    host.root(f"(! test -e {path} || mv {path} {kept}) && ln -s {kept} {path}", check=True)
    try:
        refused = pi(host, "sh", "true")
        done = host.root(["pi-agentctl", "check"])
    finally:
        host.root(f"rm {path}; (! test -e {kept} || mv {kept} {path})", check=True)
    assert refused.returncode != 0, refused
    assert done.returncode == 0 and f"{path} is not a {kind}, so no session{whose} starts; look at it, and move it away" in done.stderr.decode(), done
    assert f"{path} is not a" not in said(host, "check") and pi(host, "sh", "true").returncode == 0


def test_a_file_in_the_place_of_users_d_is_not_called_unreadable(host):
    host.root("cd /etc/pi-agent && (! test -e users.d || mv users.d /root/users.d) && echo x >users.d", check=True)
    try:
        done = pi(host, "sh", "true")
    finally:
        host.root("cd /etc/pi-agent && rm users.d && (! test -e /root/users.d || mv /root/users.d users.d)", check=True)
    assert done.returncode == INVALID and b"/etc/pi-agent/users.d" in done.stderr and b"Not a directory" in done.stderr, done
    assert b"make it readable" not in done.stderr and b"ask the administrator to look at it: sudo pi-agentctl check" in done.stderr, done


def test_no_policy_has_a_code_of_its_own(host):
    with written_policy(host, PLAYING_POLICY):
        host.root(["rm", POLICY_FILE], check=True)
        for options in ((), ("--json",), ("--policy-only",)):
            done = host.root(["pi-agentctl", "check", *options])
            assert done.returncode == INVALID and b"pi-agentctl explain E78-no-policy" in done.stderr, done
        host.write(POLICY_FILE, "version: 1\n")
        assert "E78-no-policy" not in said(host, "check", status=INVALID)

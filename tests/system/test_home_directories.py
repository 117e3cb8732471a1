"""Toolchains of the user's home, read-only inside, and caches below an overlay: rows C1 to C8."""

import hashlib
import json

import pytest
from launching import DEMO, PLAYING_POLICY, STATE, agent_says, assert_refused, messages, pi, session

OUTSIDE = "/home/alice"
INSIDE = f"{STATE}/alice/home"
# Where each is outside, and where a tool inside looks for it.
READABLE = {
    ".asdf": ".asdf",
    ".config/mise": ".config/mise",
    ".local/share/mise": ".local/share/mise",
    ".nvm": ".nvm",
    ".pyenv": ".pyenv",
    ".rbenv": ".rbenv",
    ".rustup": ".local/share/rustup",
    ".cargo/bin": ".cargo/bin",
    ".sdkman": ".sdkman",
    "go/bin": "go/bin",
    ".foundry/bin": ".foundry/bin",
}
CACHES = {
    ".cache/pip": ".cache/pip",
    ".cache/uv": ".cache/uv",
    ".cargo/registry": ".local/share/cargo/registry",
    ".gradle/caches": ".gradle/caches",
    ".gradle/jdks": ".gradle/jdks",
    ".gradle/wrapper/dists": ".gradle/wrapper/dists",
    ".ivy2/cache": ".ivy2/cache",
    ".m2/repository": ".m2/repository",
    ".npm": ".npm",
    ".local/share/pnpm": ".local/share/pnpm",
    ".nuget/packages": ".nuget/packages",
    "go/pkg/mod": ".local/share/go/pkg/mod",
    ".cache/huggingface": ".cache/huggingface",
    ".dotnet": ".dotnet",
    "miniforge3": "miniforge3",
    ".local/state/mise/trusted-configs": ".local/state/mise/trusted-configs",
    ".platformio/packages": ".platformio/packages",
    ".terraform.d/plugin-cache": ".terraform.d/plugin-cache",
}
# At their own path, too, and what a session changes at one it finds at the other.
ENVIRONMENTS = [".dotnet", ".local/share/pnpm", "miniforge3", ".platformio/packages", ".terraform.d/plugin-cache"]
EVERYTHING = {**READABLE, **CACHES}
# Row C5, and others of their kind.
CREDENTIALS = [
    ".gradle/gradle.properties",
    ".gradle/init.d/x.gradle",
    ".gradle/enterprise/keys.properties",
    ".gradle/daemon/registry.bin",
    ".m2/settings.xml",
    ".cargo/credentials.toml",
    ".ivy2/.credentials",
    ".npmrc",
    ".ssh/id_ed25519",
    ".android/adbkey",
    ".ansible/galaxy_token",
    ".bunfig.toml",
    ".cabal/config",
    ".cache/huggingface/token",
    ".composer/auth.json",
    ".condarc",
    ".config/composer/auth.json",
    ".config/dart/pub-tokens.json",
    ".config/hatch/config.toml",
    ".config/nix/nix.conf",
    ".config/pypoetry/auth.toml",
    ".config/solana/id.json",
    ".deno/credentials.json",
    ".docker/config.json",
    ".foundry/keystores/main",
    ".dotnet/corefx/cryptography/x509stores/my/key.pfx",
    ".gem/credentials",
    ".hex/hex.config",
    ".julia/servers/pkg.example.org/auth.toml",
    ".local/share/gem/credentials",
    ".local/share/uv/credentials/credentials.toml",
    ".luarocks/upload_config.lua",
    ".netrc",
    ".nuget/NuGet/NuGet.Config",
    ".opam/plugins/opam-publish/alice.token",
    ".pub-cache/credentials.json",
    ".platformio/appstate.json",
    ".pypirc",
    ".rye/credentials",
    ".stack/upload/credentials.json",
    ".terraform.d/credentials.tfrc.json",
    "miniforge3/.condarc",
]
FINGERPRINT = r"find . -printf '%p %y %U:%G %m %s %T@ %l\n' -type f -exec sha256sum {} + | sort"


def as_alice(machine, script, **options):
    return machine.run(["sh", "-ec", script], cwd=OUTSIDE, check=True, **options).stdout


def fingerprint(machine):
    """Of all that alice has of these: names, owners, modes, sizes, times, links and content."""
    tops = " ".join(sorted({path.split("/")[0] for path in EVERYTHING}))
    return hashlib.sha256(as_alice(machine, f"for top in {tops}; do [ ! -e $top ] || (cd $top; {FINGERPRINT}); done")).hexdigest()


@pytest.fixture
def furnished(playing):
    """Alice's home with all of them, private and with something in each; the agent's home as new."""
    playing.root(["rm", "-rf", INSIDE], check=True)
    made = "".join(f"mkdir -p {path}/deep; echo 'of {path}' >{path}/deep/file; chmod -R go-rwx {path}\n" for path in EVERYTHING)
    made += "".join(f"mkdir -p $(dirname {path}); echo secret-wombat-4410 >{path}\n" for path in CREDENTIALS)
    as_alice(playing, made)
    yield playing
    tops = " ".join(sorted({path.split("/")[0] for path in [*EVERYTHING, *CREDENTIALS]} - {".config", ".local", ".cache", ".ssh"}))
    below = " ".join(path for path in [*EVERYTHING, *CREDENTIALS] if path.split("/")[0] in {".config", ".local", ".cache", ".ssh"})
    playing.root(f"cd {OUTSIDE} && chmod -R u+rwX {tops} 2>/dev/null; rm -rf {tops} {below} {INSIDE}", check=True)


def test_each_is_where_the_tool_looks_for_it(furnished):
    script = "".join(f"cat ~/{inside}/deep/file\n" for inside in EVERYTHING.values())
    assert agent_says(furnished, "sh", script).decode().splitlines() == [f"of {path}" for path in EVERYTHING]


def test_toolchains_are_at_their_own_path_too_and_nothing_else_of_the_home_is(furnished):
    shown = [*READABLE, *ENVIRONMENTS]
    script = "".join(f"cat {OUTSIDE}/{path}/deep/file\n" for path in shown) + f"cd {OUTSIDE}; find . -name deep -prune -o -print | sort"
    lines = agent_says(furnished, "sh", script).decode().splitlines()
    assert lines[: len(shown)] == [f"of {path}" for path in shown]
    above = {"."}
    for path in [*shown, ".opam", "projects"]:
        parts = path.split("/")
        above |= {"./" + "/".join(parts[:end]) for end in range(1, len(parts) + 1)}
    assert {line for line in lines[len(shown) :] if not line.startswith("./projects/")} == above


def test_toolchains_are_read_only(furnished):
    before = fingerprint(furnished)
    places = [f"~/{inside}" for inside in READABLE.values()] + [f"{OUTSIDE}/{path}" for path in READABLE]
    script = "".join(f"for do in 'touch {place}/x' 'rm {place}/deep/file' 'mv {place}/deep {place}/d' 'chmod 700 {place}'; do eval \"$do\" && echo done $do; done\n" for place in places)
    done = pi(furnished, "sh", script + "true")
    assert (done.returncode, done.stdout) == (0, b""), done
    assert done.stderr.count(b"Read-only file system") == 4 * len(places), done
    assert fingerprint(furnished) == before


def test_what_a_session_changes_in_a_cache_is_there_until_its_end_and_the_users_stays_as_it_was(furnished):
    before = fingerprint(furnished)
    change = "".join(
        f"cd ~/{inside}; echo changed >>deep/file; echo new >deep/new; mkdir more; mv deep/new more/; ln -s deep/file link; chmod 500 more; cat deep/file link more/new\n"
        for inside in CACHES.values()
    )
    change += "".join(f"cd ~/{inside}; rm -r deep; ls\n" for inside in CACHES.values())
    lines = agent_says(furnished, "sh", change).decode().splitlines()
    expected = [line for path in CACHES for line in [f"of {path}", "changed"] * 2 + ["new"]]
    assert lines == expected + ["link", "more"] * len(CACHES)
    assert fingerprint(furnished) == before
    look = "".join(f"cd ~/{inside}; find . -type f -exec cat {{}} +\n" for inside in CACHES.values())
    assert agent_says(furnished, "sh", look).decode().splitlines() == [f"of {path}" for path in CACHES]


def test_an_environment_is_one_at_both_places(furnished):
    before = fingerprint(furnished)
    script = "".join(f"echo changed >>{OUTSIDE}/{path}/deep/file; cat ~/{path}/deep/file; rm ~/{path}/deep/file; ls {OUTSIDE}/{path}/deep\n" for path in ENVIRONMENTS)
    assert agent_says(furnished, "sh", script).decode().splitlines() == [line for path in ENVIRONMENTS for line in (f"of {path}", "changed")]
    assert fingerprint(furnished) == before


def test_what_is_at_its_own_path_alone_leaves_the_agents_own_in_peace(furnished):
    as_alice(furnished, "mkdir -p .local/bin; printf '#!/bin/sh\necho hers\n' >.local/bin/tool; chmod +x .local/bin/tool")
    script = f"mkdir -p ~/.local/bin; cp {OUTSIDE}/.local/bin/tool ~/.local/bin/mine; ls ~/.local/bin; {OUTSIDE}/.local/bin/tool; touch {OUTSIDE}/.local/bin/x 2>/dev/null || echo closed"
    said = agent_says(furnished, "sh", script).decode().splitlines()
    as_alice(furnished, "rm -r .local/bin")
    assert said == ["mine", "hers", "closed"]


def test_two_sessions_at_once_do_not_see_each_others_changes(furnished):
    before = fingerprint(furnished)
    write = "cd ~/.npm; echo one >deep/file; echo one >one; echo ready; read answer; ls; cat deep/file"
    look = "cd ~/.npm; ls; cat deep/file; echo two >two; rm -r deep"
    with session(furnished, "sh", write) as first:
        second = agent_says(furnished, "sh", look)
        out, said = first.communicate(b"\n", timeout=20)
    assert second == b"deep\nof .npm\n"
    assert (out, said) == (b"deep\none\none\n", b"")
    assert fingerprint(furnished) == before


@pytest.mark.parametrize("who", ["runner", "agent"])
def test_sudden_death_leaves_nothing(who, furnished):
    """What must not be left: see the fixture nothing_is_left of conftest.py."""
    before = fingerprint(furnished)
    fill = "cd ~/.local/share/go/pkg/mod; mkdir -p a/b; touch a/b/c; chmod 500 a a/b; rm -r deep; echo ready; sleep 60"
    kill = "pkill -9 -f ^/usr/libexec/pi-agent/pi-agent-runner" if who == "runner" else "pkill -9 -x sleep"
    with session(furnished, "sh", fill) as process:
        furnished.root(kill, check=True)
        process.wait(timeout=20)
    assert fingerprint(furnished) == before


def test_parents_are_the_agents_own_and_credentials_are_nowhere(furnished):
    script = f"""touch ~/.gradle/own ~/.m2/own ~/.ivy2/own ~/.cache/own ~/.local/share/cargo/own
    ls -A ~/.gradle ~/.m2 ~/.ivy2; grep -rl secret-wombat-4410 ~ {OUTSIDE} 2>/dev/null; true"""
    out = agent_says(furnished, "sh", script).decode()
    home = INSIDE
    assert out == f"{home}/.gradle:\ncaches\njdks\nown\nwrapper\n\n{home}/.ivy2:\ncache\nown\n\n{home}/.m2:\nown\nrepository\n", out


def test_what_is_missing_or_no_directory_is_left_out_without_a_trace(furnished):
    as_alice(furnished, "rm -r .nvm .npm .cargo .rbenv; echo file >.npm; ln -s .pyenv .nvm; ln -s /nowhere .rbenv")
    done = pi(furnished, "sh", f"ls -Ad ~/.nvm ~/.npm ~/.local/share/cargo ~/.rbenv {OUTSIDE}/.nvm {OUTSIDE}/.rbenv; cat ~/.pyenv/deep/file")
    assert done.stdout == b"of .pyenv\n", done
    notices = [line for line in done.stderr.decode().splitlines() if line.startswith("pi: ")]
    assert notices == [
        "pi: not shown to the agent: ~/.nvm (toolchains.readable): it is a symlink or not a directory; name the directory itself",
        "pi: not shown to the agent: ~/.npm (toolchains.caches): it is a symlink or not a directory; name the directory itself",
    ]


def test_a_users_own_directory_is_named_by_the_users_own_key(furnished, playing_policy):
    playing_policy(PLAYING_POLICY.replace("  alice:\n", "  alice:\n    readable: [~/data-sets]\n"))
    as_alice(furnished, "ln -s .pyenv data-sets")
    done = pi(furnished, "sh", "echo ran")
    as_alice(furnished, "rm data-sets")
    (notice,) = messages(done)
    assert done.stdout == b"ran\n" and notice.startswith("pi: not shown to the agent: ~/data-sets (users.alice.readable): it is a symlink"), done


def test_the_agents_own_is_hidden_and_comes_back(furnished):
    as_alice(furnished, "mv .nvm .kept")
    agent_says(furnished, "sh", "mkdir ~/.nvm; echo own >~/.nvm/own")
    as_alice(furnished, "mv .kept .nvm")
    done = pi(furnished, "sh", "cat ~/.nvm/deep/file; ls ~/.nvm")
    assert done.stdout == b"of .nvm\ndeep\n"
    assert messages(done) == [
        "pi: your toolchain replaces the agent's own ~/.nvm, which is hidden meanwhile (toolchains.readable)"
    ]
    as_alice(furnished, "rm -r .nvm")
    assert agent_says(furnished, "sh", "cat ~/.nvm/own") == b"own\n"


POLICIES = {
    "{readable: [], caches: []}": [],
    "{readable: []}": list(CACHES),
    "{caches: [~/.npm], readable: [~/.nvm]}": [".nvm", ".npm"],
    "{readable: [default, ~/extra]}": [*EVERYTHING, "extra"],
}


@pytest.mark.parametrize("section", POLICIES)
def test_the_policy_replaces_or_extends_the_lists(section, furnished, playing_policy):
    as_alice(furnished, "mkdir -p extra/deep; echo of extra >extra/deep/file")
    playing_policy(PLAYING_POLICY + f"toolchains: {section}\n")
    script = "".join(f"cat ~/{inside}/deep/file\n" for inside in [*EVERYTHING.values(), "extra"])
    shown = agent_says(furnished, "sh", f"exec 2>/dev/null; {script}true").decode().splitlines()
    as_alice(furnished, "rm -r extra")
    assert sorted(shown) == sorted(f"of {path}" for path in POLICIES[section])


def test_a_policy_that_names_credentials_is_refused(furnished):
    text = PLAYING_POLICY + "toolchains: {caches: [~/.m2]}\n"
    furnished.write("/etc/pi-agent/policy.yaml", text)
    done = pi(furnished, "sh", "true")
    checked = furnished.root(["pi-agentctl", "check"])
    furnished.install_policy(PLAYING_POLICY)
    assert_refused(done, 78, "the administrator's policy has 1 error, so nobody can start pi. Ask them to run: pi-agentctl check")
    said = checked.stderr.decode()
    assert all(word in said for word in ("toolchains.caches[0]", "'~/.m2' holds ~/.m2/settings", "which no session is shown")), checked


UNFIT = {
    "another overlay": "mkdir -p /tmp/o/u /tmp/o/w /tmp/o/l; mount -t overlay overlay -o lowerdir=/tmp/o/l,upperdir=/tmp/o/u,workdir=/tmp/o/w {}",
    "something mounted inside": "mkdir -p {0}/inner; mount -t tmpfs tmpfs {0}/inner",
}


@pytest.mark.parametrize("place, key", [(".npm", "caches"), (".nvm", "readable")])
def test_what_the_file_system_cannot_is_an_error_or_a_named_omission(place, key, furnished, playing_policy):
    furnished.root(UNFIT["another overlay"].format(f"{OUTSIDE}/{place}"), check=True)
    try:
        refused = pi(furnished, "sh", "true")
        playing_policy(PLAYING_POLICY + f"toolchains: {{{key}: best_effort}}\n")
        done = pi(furnished, "sh", f"ls ~/{place}; cat ~/.m2/repository/deep/file")
    finally:
        furnished.root(f"umount {OUTSIDE}/{place} && rm -r /tmp/o", check=True)
    assert_refused(refused, 69, f"~/{place}", f"overlay mounted at {OUTSIDE}/{place}", f"'toolchains.{key}: best_effort'")
    assert (done.returncode, done.stdout) == (0, b"of .m2/repository\n"), done
    (notice,) = messages(done)
    assert notice.startswith(f"pi: not shown to the agent: ~/{place} (toolchains.{key}): this kernel cannot"), notice


def test_where_no_overlay_is_possible_it_is_an_error_or_every_cache_is_left_out(furnished, playing_policy):
    scratch = "/var/lib/pi-agent/sessions"
    furnished.root(UNFIT["another overlay"].format(scratch), check=True)
    try:
        refused = pi(furnished, "sh", "true")
        playing_policy(PLAYING_POLICY + "toolchains: {caches: best_effort}\n")
        done = pi(furnished, "sh", "ls ~/.npm ~/.m2/repository; cat ~/.nvm/deep/file")
    finally:
        furnished.root(f"umount {scratch} && rm -r /tmp/o", check=True)
    assert_refused(refused, 69, "~/.cache/", "'scratch: tmpfs'")
    assert (done.returncode, done.stdout.decode()) == (0, f"{INSIDE}/.m2/repository:\n\n{INSIDE}/.npm:\nof .nvm\n"), done
    left_out = {line.split("~/")[1].split(" (")[0] for line in messages(done) if " (toolchains.caches): this kernel" in line}
    assert left_out == {*CACHES, ".opam"}  # which is there for what is hidden in it


def test_what_another_mount_hides_in_one_stays_hidden(furnished):
    furnished.root(UNFIT["something mounted inside"].format(f"{OUTSIDE}/.nvm"), check=True)
    done = pi(furnished, "sh", "ls ~/.nvm")
    furnished.root(f"umount {OUTSIDE}/.nvm/inner", check=True)
    assert done.stdout == b"", done
    assert b"~/.nvm (toolchains.readable): something is mounted inside it" in done.stderr


@pytest.mark.parametrize("place", [".npm", ".nvm"])
def test_what_a_session_shows_can_be_unmounted_outside(place, furnished):
    furnished.root(f"mount -t tmpfs -o uid=1000 tmpfs {OUTSIDE}/{place}; echo there >{OUTSIDE}/{place}/file", check=True)
    with session(furnished, "sh", f"echo ready; read answer; cat ~/{place}/file") as process:
        furnished.root(["umount", f"{OUTSIDE}/{place}"], check=True)
        assert process.communicate(b"\n", timeout=20)[0] == b"there\n"


def test_with_scratch_in_memory_and_aliases_too(furnished, playing_policy):
    playing_policy(PLAYING_POLICY + "scratch: tmpfs\nprojects: {paths: alias}\n")
    before = fingerprint(furnished)
    out = agent_says(furnished, "sh", f"echo new >~/.npm/new; rm -r ~/.npm/deep; ls ~/.npm; cat ~/.nvm/deep/file; ls {OUTSIDE} 2>/dev/null; true")
    assert out == b"new\nof .nvm\n"
    assert fingerprint(furnished) == before


def test_a_link_in_a_cache_leads_nowhere_outside(furnished):
    as_alice(furnished, f"cd .npm; ln -s {OUTSIDE}/.ssh/id_ed25519 whole; ln -s ../.ssh/id_ed25519 relative; ln -s ../.npmrc above")
    done = pi(furnished, "sh", "cd ~/.npm; cat whole relative above; echo written >whole")
    assert done.stdout == b"" and done.stderr.count(b"No such file") >= 3, done
    assert as_alice(furnished, "cat .ssh/id_ed25519 .npmrc") == b"secret-wombat-4410\n" * 2


def test_the_agent_is_told(furnished):
    notes = agent_says(furnished, "sh", "cat /AGENTS.md").decode()
    assert "Toolchains of the user's, read-only: `~/.asdf`" in notes
    assert "gone when the session ends: `~/.cache/huggingface`" in notes
    assert "as are their caches" not in notes


def test_explain_tells_what_is_there_and_what_is_not(furnished):
    as_alice(furnished, "rm -r .npm .nvm; ln -s .pyenv .nvm")
    told = json.loads(furnished.run(["pi-agentctl", "explain", "--json"], cwd=DEMO, check=True).stdout)["toolchains"]
    by_path = {one["path"]: one for one in told["readable"] + told["caches"]}
    assert {f"~/{path}" for path in EVERYTHING} < {*by_path}
    assert by_path["~/.npm"] == {"path": "~/.npm", "inside": "~/.npm", "own_path": False, "state": "missing"}
    assert (by_path["~/.local/bin"]["inside"], by_path["~/.local/bin"]["own_path"]) == (None, True)
    assert by_path["~/.nvm"]["state"] == "not shown" and "symlink" in by_path["~/.nvm"]["reason"]
    assert by_path["~/.rustup"] == {"path": "~/.rustup", "inside": "~/.local/share/rustup", "own_path": True, "state": "shown"}
    text = furnished.run(["pi-agentctl", "explain"], cwd=DEMO, check=True).stdout.decode()
    assert "goes with it: ~/.cache/huggingface, " in text and "of the default list" in text, text

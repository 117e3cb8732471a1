"""Documents that host and agent both write: logins, keys and settings are merged by key, and nobody's are lost."""

import json
import time

import pytest
from launching import INVALID, PLAYING_POLICY, STATE, agent_says, assert_refused, finish, messages, pi, picture, session

pytestmark = pytest.mark.usefixtures("playing")

CONFIG = "/home/alice/.pi/agent"
INSIDE = f"{STATE}/alice/home/.pi/agent"
OAUTH = {"type": "oauth", "refresh": "r1", "access": "a1", "expires": 1}
KEY = {"type": "api_key", "key": "k1"}


@pytest.fixture(autouse=True)
def config(machine):
    """An empty config directory of alice and no state of her agent; her own config comes back afterwards."""
    machine.run("mv .pi .pi-kept && mkdir -p .pi/agent", check=True)
    machine.root(["rm", "-rf", f"{STATE}/alice"], check=True)
    yield
    machine.root("cd /home/alice && rm -rf .pi && mv .pi-kept .pi", check=True)


def host(machine, **documents):
    """host(machine, auth={...}) writes auth.json of alice in place."""
    for name, document in documents.items():
        text = document if isinstance(document, str) else json.dumps(document)
        machine.run(["sh", "-c", 'cat >"$1"', "sh", f"{CONFIG}/{name.replace('_', '-')}.json"], input=text.encode(), check=True)


def inside(machine, name="auth"):
    """What the next start finds."""
    return json.loads(agent_says(machine, "sh", f'cat "$PI_CODING_AGENT_DIR/{name}.json"'))


def agent_writes(machine, name, document):
    """A start in which the agent writes a document, as it does: in place, under its lock."""
    script = 'cd "$PI_CODING_AGENT_DIR" && mkdir $1.lock && cat >$1 && rmdir $1.lock'
    agent_says(machine, "sh", script, f"{name}.json", input=json.dumps(document).encode())


# --- auth.json


def test_an_oauth_entry_refreshed_inside_survives_ten_starts(machine):
    host(machine, auth={"anthropic": OAUTH, "openai": KEY})
    assert inside(machine) == {"anthropic": OAUTH, "openai": KEY}
    for turn in range(10):
        refreshed = {**OAUTH, "refresh": f"inside {turn}"}
        agent_writes(machine, "auth", {"anthropic": refreshed, "openai": KEY})
        assert inside(machine) == {"anthropic": refreshed, "openai": KEY}
    for _ in range(10):
        assert inside(machine)["anthropic"] == refreshed
    assert json.loads(machine.read(f"{CONFIG}/auth.json"))["anthropic"] == OAUTH


def test_a_new_login_on_the_host_wins_once(machine):
    host(machine, auth={"anthropic": OAUTH})
    agent_writes(machine, "auth", {"anthropic": {**OAUTH, "refresh": "inside"}})
    new = {**OAUTH, "refresh": "of a new login"}
    host(machine, auth={"anthropic": new})
    assert inside(machine)["anthropic"] == new
    agent_writes(machine, "auth", {"anthropic": {**OAUTH, "refresh": "inside again"}})
    for _ in range(3):
        assert inside(machine)["anthropic"]["refresh"] == "inside again"


def test_a_login_inside_survives_and_one_that_the_host_has_first_is_not_forked(machine):
    agent_writes(machine, "auth", {"anthropic": {**OAUTH, "refresh": "inside"}})
    assert inside(machine)["anthropic"]["refresh"] == "inside"
    host(machine, auth={"anthropic": OAUTH, "openai": KEY})
    for _ in range(2):
        assert inside(machine) == {"anthropic": {**OAUTH, "refresh": "inside"}, "openai": KEY}


def test_a_logout_inside_lasts_and_a_logout_on_the_host_ends_what_was_not_refreshed(machine):
    host(machine, auth={"anthropic": OAUTH, "google": OAUTH})
    assert set(inside(machine)) == {"anthropic", "google"}
    agent_writes(machine, "auth", {"google": OAUTH})
    for _ in range(2):
        assert set(inside(machine)) == {"google"}
    host(machine, auth={})
    assert inside(machine) == {}


def test_a_key_is_the_hosts_and_one_that_the_agent_entered_stays_where_the_host_has_none(machine):
    host(machine, auth={"openai": KEY})
    agent_writes(machine, "auth", {"openai": {**KEY, "key": "inside"}, "groq": {**KEY, "key": "its own"}})
    for _ in range(3):
        assert inside(machine) == {"openai": KEY, "groq": {**KEY, "key": "its own"}}
    host(machine, auth={"openai": {**KEY, "key": "k2"}})
    assert inside(machine)["openai"]["key"] == "k2"
    host(machine, auth={})
    assert inside(machine) == {"groq": {**KEY, "key": "its own"}}


def test_a_managed_key_beats_login_and_key_in_auth_and_models(machine, playing_policy):
    host(machine, auth={"anthropic": OAUTH, "openai": KEY, "groq": KEY})
    host(machine, models='{"providers": {"anthropic": {"apiKey": "host", "baseUrl": "u"}, // mine\n "groq": {"apiKey": "g"},}}')
    assert set(inside(machine)) == {"anthropic", "openai", "groq"}
    agent_writes(machine, "auth", {"anthropic": {**OAUTH, "refresh": "inside"}, "openai": KEY, "groq": KEY})
    managed = PLAYING_POLICY + "  ANTHROPIC_API_KEY: managed\n"
    playing_policy(managed.replace("  alice:\n", "  alice:\n    env: {OPENAI_API_KEY: managed}\n"))
    for _ in range(2):
        assert inside(machine) == {"groq": KEY}
        assert inside(machine, "models") == {"providers": {"anthropic": {"baseUrl": "u"}, "groq": {"apiKey": "g"}}}
    # What the agent enters for such a provider goes as well; when the key is managed no more, the host's is there again.
    agent_writes(machine, "auth", {"groq": KEY, "openai": {**KEY, "key": "inside"}})
    assert inside(machine) == {"groq": KEY}
    playing_policy(PLAYING_POLICY)
    for _ in range(2):
        assert inside(machine) == {"anthropic": OAUTH, "openai": KEY, "groq": KEY}
        said = agent_says(machine, "sh", 'cat "$PI_CODING_AGENT_DIR/models.json"')
        assert said == machine.read(f"{CONFIG}/models.json")


def test_a_key_in_the_managed_models_counts_as_managed(machine, playing_policy):
    host(machine, auth={"corp": KEY, "groq": KEY}, models={"providers": {"corp": {"apiKey": "host", "baseUrl": "host"}, "mine": {}}})
    playing_policy(PLAYING_POLICY + 'models: {providers: {corp: {apiKey: managed, api: x}}}\n')
    for _ in range(2):
        assert inside(machine) == {"groq": KEY}
        assert inside(machine, "models") == {"providers": {"corp": {"apiKey": "managed", "baseUrl": "host", "api": "x"}, "mine": {}}}


def test_every_entry_of_the_mcp_logins_belongs_to_the_agent_once_it_is_there(machine):
    host(machine, mcp_auth={"server": {"tokens": "host"}})
    assert inside(machine, "mcp-auth") == {"server": {"tokens": "host"}}
    agent_writes(machine, "mcp-auth", {"server": {"tokens": "inside"}, "other": {"tokens": "its own"}})
    for _ in range(2):
        assert inside(machine, "mcp-auth") == {"server": {"tokens": "inside"}, "other": {"tokens": "its own"}}
    host(machine, mcp_auth={"server": {"tokens": "new"}})
    assert inside(machine, "mcp-auth")["server"] == {"tokens": "new"}


def test_credentials_are_the_agents_alone_and_a_spoilt_file_of_its_is_kept(machine):
    host(machine, auth={"openai": KEY})
    assert agent_says(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"; stat -c %a auth.json; echo "{ torn" >auth.json') == b"600\n"
    done = pi(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"; cat auth.json.kept-*')
    assert done.stdout == b"{ torn\n" and "was not valid; it is kept beside it as auth.json.kept-" in "".join(messages(done)), done
    assert inside(machine) == {"openai": KEY}


# --- settings.json and what is managed


def test_settings_that_were_changed_only_inside_survive_and_the_hosts_changes_win(machine):
    host(machine, settings={"theme": "light", "model": "a", "deep": {"x": 1, "y": 1}, "list": [1]})
    agent_writes(machine, "settings", {"theme": "dark", "model": "a", "deep": {"x": 2, "y": 1, "z": 1}, "list": [1], "own": True})
    for _ in range(4):
        expected = {"theme": "dark", "model": "a", "deep": {"x": 2, "y": 1, "z": 1}, "list": [1], "own": True}
        assert inside(machine, "settings") == expected
    host(machine, settings={"theme": "light", "model": "b", "deep": {"x": 3, "y": 1}, "list": [1, 2]})
    for _ in range(3):
        expected = {"theme": "dark", "model": "b", "deep": {"x": 3, "y": 1, "z": 1}, "list": [1, 2], "own": True}
        assert inside(machine, "settings") == expected
    host(machine, settings={"theme": "blue"})
    for _ in range(3):
        assert inside(machine, "settings") == {"theme": "blue", "own": True}


def test_settings_that_the_agent_deleted_stay_deleted_until_the_host_changes_them(machine):
    host(machine, settings={"a": 1, "b": 1})
    agent_writes(machine, "settings", {"b": 1})
    for _ in range(3):
        assert inside(machine, "settings") == {"b": 1}
    host(machine, settings={"a": 2, "b": 1})
    for _ in range(2):
        assert inside(machine, "settings") == {"a": 2, "b": 1}


def test_documents_that_the_agent_deleted_as_a_whole_are_the_hosts_again(machine):
    host(machine, settings={"a": 1}, auth={"openai": KEY, "anthropic": OAUTH})
    assert set(inside(machine)) == {"openai", "anthropic"}
    agent_says(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"; rm settings.json auth.json')
    for _ in range(2):
        assert inside(machine, "settings") == {"a": 1}
        assert inside(machine) == {"openai": KEY, "anthropic": OAUTH}


def test_what_is_managed_wins_over_both_and_gives_way_when_it_is_managed_no_more(machine, playing_policy):
    host(machine, settings={"theme": "light", "model": "host"})
    agent_writes(machine, "settings", {"theme": "dark", "model": "host"})
    playing_policy(PLAYING_POLICY + "settings: {theme: managed, model: managed, new: managed}\n")
    for _ in range(2):
        assert inside(machine, "settings") == {"theme": "managed", "model": "managed", "new": "managed"}
    playing_policy(PLAYING_POLICY)
    for _ in range(3):
        assert inside(machine, "settings") == {"theme": "dark", "model": "host"}


def test_the_agents_own_keys_stay_and_the_larger_version_counts(machine, playing_policy):
    host(machine, settings={"lastChangelogVersion": "0.9.1"})
    agent_writes(machine, "settings", {"lastChangelogVersion": "0.10.0", "trackingId": "t", "deviceId": "d"})
    for _ in range(2):
        assert inside(machine, "settings") == {"lastChangelogVersion": "0.10.0", "trackingId": "t", "deviceId": "d"}
    host(machine, settings={"lastChangelogVersion": "0.11.0"})
    playing_policy(PLAYING_POLICY + "config: {classes: {settings.json: mirror}}\n")
    for _ in range(2):
        assert inside(machine, "settings") == {"lastChangelogVersion": "0.11.0", "trackingId": "t", "deviceId": "d"}


@pytest.mark.parametrize("file_class", ["agent", "never"])
def test_settings_of_another_class_are_the_agents(machine, playing_policy, file_class):
    playing_policy(PLAYING_POLICY + f"config: {{classes: {{settings.json: {file_class}}}}}\nsettings: {{managed: true}}\n")
    host(machine, settings={"host": 1})
    agent_writes(machine, "settings", {"own": 1})
    for _ in range(3):
        assert inside(machine, "settings") == {"own": 1, "managed": True}


def test_managed_keybindings_and_servers_are_merged_over_the_hosts(machine, playing_policy):
    host(machine, keybindings={"submit": ["enter"], "mine": ["x"]}, mcp={"mcpServers": {"host": {"command": "h"}}})
    playing_policy(PLAYING_POLICY + "keybindings: {submit: [ctrl-enter]}\nmcp: {mcpServers: {corp: {command: c}}}\n")
    agent_writes(machine, "keybindings", {"submit": ["agent"], "own": []})
    assert inside(machine, "keybindings") == {"submit": ["ctrl-enter"], "mine": ["x"]}
    assert inside(machine, "mcp") == {"mcpServers": {"host": {"command": "h"}, "corp": {"command": "c"}}}
    playing_policy(PLAYING_POLICY)
    assert inside(machine, "keybindings") == {"submit": ["enter"], "mine": ["x"]}
    machine.run("rm keybindings.json mcp.json", cwd=CONFIG, check=True)
    assert agent_says(machine, "sh", 'cd "$PI_CODING_AGENT_DIR"; ls') == b"settings.json\n"


def test_paths_in_the_settings_that_lead_out_of_the_directory_are_named(machine):
    host(machine, settings={"extensions": ["~/mine.ts", "ok.ts", "-../other"], "skills": ["/opt/skills"]})
    done = pi(machine, "sh", "true")
    named = [line.split(": ", 3)[3] for line in messages(done)]
    assert done.returncode == 0 and len(named) == 3 and all("outside the config directory" in line for line in named)
    assert [line.split(" is outside")[0] for line in named] == ["extensions: ~/mine.ts", "extensions: ../other", "skills: /opt/skills"]


# --- what is malformed


MALFORMED = [
    ("settings", '{\n  "a": oops}', "2:8"),
    ("auth", '{"a": {"type": "oauth",}}', "1:24"),
    ("auth", "[]", "1:1"),
    ("mcp_auth", '{"a"', "1:5"),
]


@pytest.mark.parametrize(("name", "text", "place"), MALFORMED, ids=str)
def test_a_malformed_document_is_refused_with_its_place_and_nothing_changes(machine, name, text, place):
    host(machine, settings={"a": 1}, auth={"openai": KEY})
    machine.run("mkdir d; echo one >d/f", cwd=CONFIG, check=True)
    inside(machine)
    before = picture(machine, f"{STATE}/alice")
    machine.run("echo two >d/f; echo new >new; rm -f auth.json", cwd=CONFIG, check=True)
    host(machine, **{name: text})
    file = f"{CONFIG}/{name.replace('_', '-')}.json"
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, f"{file}:{place}:", "nothing was changed")
    assert picture(machine, f"{STATE}/alice") == before


def test_malformed_models_are_refused_where_they_are_merged_and_copied_where_they_are_not(machine, playing_policy):
    host(machine, models='{"providers": {\n  oops}}')
    assert agent_says(machine, "sh", 'cat "$PI_CODING_AGENT_DIR/models.json"') == machine.read(f"{CONFIG}/models.json")
    playing_policy(PLAYING_POLICY + "  ANTHROPIC_API_KEY: managed\n")
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, f"{CONFIG}/models.json:2:3:")


# --- while somebody writes

REWRITING = """
import json, os, sys, time
lock = sys.argv[1] == "locked"
for turn in range(10**9):
    for name, document in {"settings": {"turn": turn, "pad": "x" * 20000}, "auth": {"openai": {"type": "api_key", "key": str(turn)}}}.items():
        path = f"%s/{name}.json"
        if lock:
            os.mkdir(path + ".lock")
        with open(path, "w") as file:
            for piece in (json.dumps(document)[:9], json.dumps(document)[9:]):
                file.write(piece)
                file.flush()
        if lock:
            os.rmdir(path + ".lock")
        time.sleep(0.0005)
"""


@pytest.mark.parametrize("kind", ["locked", "not locked"])
def test_documents_that_are_rewritten_in_place_all_the_time_refuse_and_lose_nothing(machine, kind):
    host(machine, settings={"turn": -1}, auth={"openai": {**KEY, "key": "-1"}})
    process = machine.popen(["python3", "-c", REWRITING % CONFIG, kind])
    try:
        turns = []
        for _ in range(25):
            both = agent_says(machine, "sh", 'cd "$PI_CODING_AGENT_DIR" && cat settings.json && echo "=" && cat auth.json').split(b"=\n")
            settings, auth = map(json.loads, both)
            assert settings["turn"] == -1 or len(settings["pad"]) == 20000
            turns.append((settings["turn"], int(auth["openai"]["key"])))
    finally:
        process.kill_all()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
    assert turns == sorted(turns) and turns[-1][0] > turns[0][0] >= -1


LOCKED = 'cd "$PI_CODING_AGENT_DIR"; mkdir settings.json.lock auth.json.lock; touch -d "$1" settings.json.lock auth.json.lock'


def test_a_stale_lock_inside_is_taken_over(machine):
    host(machine, settings={"a": 1}, auth={"openai": KEY})
    for age in ("31 seconds ago", "1970-01-02", "tomorrow"):
        agent_says(machine, "sh", LOCKED, age)
        host(machine, settings={"a": age}, auth={"openai": {**KEY, "key": age}})
        began = time.monotonic()
        assert inside(machine, "settings") == {"a": age} and time.monotonic() - began < 5
        assert machine.root(f"ls -d {INSIDE}/*.lock").returncode != 0


def test_a_fresh_lock_inside_is_waited_for_and_what_its_holder_wrote_is_kept(machine):
    host(machine, settings={"a": 1})
    inside(machine, "settings")
    holding = 'cd "$PI_CODING_AGENT_DIR"; mkdir settings.json.lock; echo ready; sleep 2; echo "{\\"a\\": 1, \\"its\\": 1}" >settings.json; rmdir settings.json.lock; read x'
    with session(machine, "sh", holding) as holder:
        host(machine, settings={"a": 2})
        began = time.monotonic()
        assert inside(machine, "settings") == {"a": 2, "its": 1}
        assert 1 < time.monotonic() - began < 8
        assert finish(holder)[0] == 1  # read at the end of the input


def test_a_fresh_lock_is_not_waited_for_when_there_is_nothing_to_write(machine):
    host(machine, settings={"a": 1})
    inside(machine, "settings")
    agent_says(machine, "sh", LOCKED, "now")
    began = time.monotonic()
    assert inside(machine, "settings") == {"a": 1} and time.monotonic() - began < 3

"""Settings and environment inside: what the host has, what the policy manages, and what never passes."""

import json

import pytest
from launching import DEMO, INVALID, PLAYING_AGENT, PLAYING_POLICY, STATE, agent_says, assert_refused, pi, picture, variables

pytestmark = pytest.mark.usefixtures("playing")

CONFIG = "/home/alice/.pi/agent"
SETTINGS = f"{CONFIG}/settings.json"
HOME = f"{STATE}/alice/home"

MANAGED = """
settings:
  managed: "by policy"
  number: 7
  nothing: null
  list: [9]
  object: {kept-out: false, both: policy}
  replaced: {now: "an object"}
"""


@pytest.fixture(autouse=True)
def settings(machine):
    """settings(text) writes alice's settings.json; her own comes back afterwards."""
    before = machine.read(SETTINGS)
    machine.root(["rm", "-f", f"{HOME}/.pi/agent/settings.json"], check=True)  # the real agent keeps keys of its own in it
    yield lambda text: machine.write(SETTINGS, text, "alice")
    machine.root(["rm", "-rf", SETTINGS], check=True)
    machine.write(SETTINGS, before, "alice")


def settings_inside(machine):
    return json.loads(agent_says(machine, "sh", 'cat "$PI_CODING_AGENT_DIR/settings.json"'))


def test_managed_settings_are_merged_over_the_hosts(machine, playing_policy, settings):
    playing_policy(PLAYING_POLICY + MANAGED)
    host = {"mine": [1, 2], "number": 1, "nothing": 1, "list": [1, 2, 3], "replaced": 5, "ü": "\u2028"}
    host["object"] = {"both": "host", "only": "host"}
    settings(json.dumps(host))
    assert settings_inside(machine) == {
        "mine": [1, 2], "managed": "by policy", "number": 7, "nothing": None, "list": [9],
        "object": {"both": "policy", "only": "host", "kept-out": False}, "replaced": {"now": "an object"}, "ü": "\u2028",
    }  # fmt: skip
    assert json.loads(machine.read(SETTINGS)) == host


def test_managed_settings_are_there_without_settings_of_the_user(machine, playing_policy):
    playing_policy(PLAYING_POLICY + "settings: {managed: true}\n")
    machine.run(["rm", SETTINGS], check=True)
    assert settings_inside(machine) == {"managed": True}
    assert machine.root(["test", "-e", SETTINGS]).returncode == 1


def test_what_the_agent_wrote_over_a_managed_setting_is_gone_at_the_next_start(machine, playing_policy, settings):
    playing_policy(PLAYING_POLICY + "settings: {managed: true}\n")
    settings('{"mine": 1}')
    agent_says(machine, "sh", 'echo \'{"managed": false, "mine": 1}\' >"$PI_CODING_AGENT_DIR/settings.json"')
    assert settings_inside(machine) == {"managed": True, "mine": 1}


MALFORMED = [
    ('{"a": 1,\n  "b": oops}', "2:8"),
    ('{"a": 1', "1:8"),
    ("", "1:1"),
    ("{'a': 1}", "1:2"),
    ('{"a": 1}\n\n// a comment', "3:1"),
    ('{"a": "\n"}', "1:8"),
    ("[1, 2]", "1:1"),
    ("null", "1:1"),
    (b'{"a": "\xff"}', "1:8"),
]


NUMBERS = ["18446744073709551616", "-123456789012345678901234567890", "9007199254740993", "-0", "1.50", "1e400", "0.1000000000000000000001"]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_passes_as_it_is_written_and_stays_so(number, machine, playing_policy, settings):
    playing_policy(PLAYING_POLICY + MANAGED)
    settings(f'{{"mine": {number}, "deep": {{"list": [{number}, "{number}"]}}}}')
    for _ in range(3):
        text = agent_says(machine, "sh", 'cat "$PI_CODING_AGENT_DIR/settings.json"').decode()
        assert f'"mine": {number}' in text and "".join(text.split()).count(f'[{number},"{number}"]') == 1, text
    settings('{"mine": 1}')
    assert '"mine": 1' in agent_says(machine, "sh", 'cat "$PI_CODING_AGENT_DIR/settings.json"').decode()


def test_a_path_that_the_policy_sets_is_no_mistake_of_the_users(machine, playing_policy, settings):
    playing_policy(PLAYING_POLICY + "settings: {extensions: [/usr/share/site/extension]}\n")
    settings("{}")
    assert settings_inside(machine)["extensions"] == ["/usr/share/site/extension"]  # and pi says nothing
    settings('{"skills": ["~/elsewhere"]}')
    done = pi(machine, "true")
    assert f"config: {SETTINGS}: skills: ~/elsewhere is outside the config directory" in done.stderr.decode(), done


@pytest.mark.parametrize(("text", "place"), MALFORMED, ids=[repr(text)[:20] for text, _ in MALFORMED])
def test_settings_that_do_not_parse_are_refused_with_their_place_and_nothing_changes(machine, settings, text, place):
    settings('{"good": true}')
    assert settings_inside(machine)["good"]
    machine.write(f"{CONFIG}/AGENTS.md", "new", "alice")
    before = picture(machine, f"{STATE}/alice")
    settings(text)
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, f"{SETTINGS}:{place}:", "nothing was changed")
    assert picture(machine, f"{STATE}/alice") == before
    machine.root(["rm", f"{CONFIG}/AGENTS.md"], check=True)


def test_settings_nested_too_deeply_are_refused(machine, settings):
    settings('{"a":' * 100_000)
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, "settings.json", "nested deeper than")


def test_settings_that_are_too_large_are_refused(machine, settings):
    settings('{"a": "' + "x" * 5_000_000 + '"}')
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, "settings.json is larger than")


LINKS = [f"ln -s {target}" for target in ("/dev/zero", "/etc/shadow", "settings.json", "/nowhere")]


@pytest.mark.parametrize("making", ["mkfifo", "mkdir", "install -m 0 /dev/null", *LINKS])
def test_settings_that_cannot_be_read_are_refused_by_name(machine, making):
    machine.run(f"rm settings.json; {making} settings.json", cwd=CONFIG, check=True)
    assert_refused(pi(machine, "sh", "echo ran"), INVALID, SETTINGS)


# --- environment

PRESENTATION = {
    name: f"value of {name}"
    for name in """TERM COLORTERM COLORFGBG TERM_PROGRAM TERM_PROGRAM_VERSION TERMINAL_EMULATOR KITTY_WINDOW_ID GHOSTTY_RESOURCES_DIR
    WEZTERM_PANE ITERM_SESSION_ID ALACRITTY_WINDOW_ID WT_SESSION ZELLIJ SSH_CONNECTION SSH_CLIENT SSH_TTY NO_COLOR FORCE_COLOR
    VISUAL EDITOR TZ PI_CLIPBOARD_OSC52 PI_PROGRAM_STATUS""".split()
} | {"EDITOR": "cat -n", "VISUAL": "sh -c x", "LANG": "C.UTF-8", "LC_ALL": "C", "LC_TIME": "C.UTF-8"}
NEVER = {
    "NODE_OPTIONS": "--require=/tmp/x.js", "NODE_PATH": "/tmp", "LD_PRELOAD": "/lib/x86_64-linux-gnu/libm.so.6", "LD_LIBRARY_PATH": "/tmp",
    "BASH_ENV": "/tmp/x", "ENV": "/tmp/x", "PATH": "/tmp/evil:/usr/bin:/bin", "HOME": "/home/alice", "USER": "root", "LOGNAME": "root",
    "SHELL": "/tmp/sh", "TMPDIR": "/home/alice", "PI_CODING_AGENT_DIR": CONFIG, "PI_AGENT_SESSION": "forged", "PI_AGENT_VERSION": "9",
    "PI_OFFLINE": "0", "SANDBOX_RUNTIME": "0", "SANDBOX_METHOD": "none", "SUDO_USER": "bob", "SUDO_UID": "1001", "DISPLAY": ":0",
    "WAYLAND_DISPLAY": "w", "XAUTHORITY": "/x", "XDG_RUNTIME_DIR": "/run/user/1000", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x",
    "SSH_AUTH_SOCK": "/x", "npm_config_prefix": "/x", "GIT_EXEC_PATH": "/x", "JITI_DEBUG": "1", "PI_PACKAGE_DIR": "/x", "PYTHONPATH": "/x",
    "PERL5OPT": "-x", "GCONV_PATH": "/x", "LOCPATH": "/x", "GLIBC_TUNABLES": "glibc.malloc.check=0", "LC_": "x", "LC_all": "x", "TERMX": "x", "MY_OWN": "x",
    "OPENAI_API_KEY": "x", "TMUX": "/tmp/tmux-1000/default,1,0", "STY": "1.x", "TERMINFO": "/tmp/ti", "TERMINFO_DIRS": "/tmp/ti", "BASH_FUNC_cat%%": "() { echo forged; }", "PS1": "x", "IFS": "x",
}  # fmt: skip
# For package managers and shells; test_environment.py knows their values.
TOOLS = "CARGO_HOME GOPATH NPM_CONFIG_GLOBALCONFIG PIP_BREAK_SYSTEM_PACKAGES RUSTUP_HOME".split()


def test_presentation_variables_pass_and_no_other_variable_of_the_caller_does(machine):
    pi(machine, "environment", env=NEVER | PRESENTATION)  # that a key stays in the shell is told once
    inside = variables(agent_says(machine, "environment", env=NEVER | PRESENTATION))
    session = inside.pop(b"PI_AGENT_SESSION")
    version = inside.pop(b"PI_AGENT_VERSION")
    path = inside.pop(b"PATH")
    own = {name: inside.pop(name.encode()).decode() for name in TOOLS}
    assert all(value in ("1", "/usr/share/pi-agent/npmrc") or value.startswith(f"{HOME}/.") for value in own.values()), own
    assert inside == {
        b"HOME": HOME.encode(), b"USER": b"pi-agent-alice", b"LOGNAME": b"pi-agent-alice", b"SHELL": b"/bin/bash", b"TMPDIR": b"/tmp",
        b"PI_CODING_AGENT_DIR": f"{HOME}/.pi/agent".encode(), b"SANDBOX_RUNTIME": b"1", b"SCREENDIR": b"/tmp/screen", b"PI_OFFLINE": b"1",
        b"GIT_CONFIG_SYSTEM": b"/run/pi-agent/gitconfig",  # alice has a name in hers
        **{name.encode(): value.encode() for name, value in PRESENTATION.items()},
    }  # fmt: skip
    assert len(session) == 32 and session.isalnum() and version[:1].isdigit() and version != b"9"
    directories = path.decode().split(":")
    assert {"/usr/bin", "/bin"} <= set(directories)
    assert all(directory.startswith(("/usr/", "/bin", "/sbin", "/opt/", HOME)) for directory in directories)
    assert directories[-1] == PLAYING_AGENT.rpartition("/")[0]


def test_values_of_presentation_variables_pass_byte_by_byte(machine):
    odd = {"EDITOR": b"cat %n $HOME ${X} \\x41 'a' \"b\" \n c=d \xff\x1b[0m", "VISUAL": b"", "TZ": b"() { :;}; echo"}
    odd["ZELLIJ"] = b"x" * 60_000
    inside = variables(agent_says(machine, "environment", env=odd))
    assert {name: inside[name.encode()] for name in odd} == odd


def test_no_function_or_startup_file_of_the_caller_runs_inside(machine):
    machine.run("echo 'echo from BASH_ENV' >~/startup", check=True)
    hooks = {"BASH_ENV": "/home/alice/startup", "BASH_FUNC_cat%%": "() { echo forged; }"}
    said = agent_says(machine, "sh", "echo x | cat", env=hooks)
    machine.run("rm ~/startup", check=True)
    assert said == b"x\n"


def test_managed_variables_beat_the_shell_and_those_of_a_user_beat_those_of_all(machine, playing_policy):
    text = PLAYING_POLICY.replace("  alice:\n", "  alice:\n    env: {BOTH: of alice, ALICE: only, TERM: managed}\n")
    playing_policy(text + "  BOTH: of all\n  ALL: 'odd %n $HOME \"x\"'\n")
    inside = variables(agent_says(machine, "environment", env={"TERM": "mine", "ALL": "mine", "BOTH": "mine", "ALICE": "mine"}))
    assert inside[b"BOTH"] == b"of alice" and inside[b"ALICE"] == b"only" and inside[b"TERM"] == b"managed"
    assert inside[b"ALL"] == b'odd %n $HOME "x"'
    inside = variables(agent_says(machine, "environment", user="carol", cwd="/srv/devs", env={"TERM": "mine"}))
    assert inside[b"BOTH"] == b"of all" and b"ALICE" not in inside and inside[b"TERM"] == b"mine"


def test_the_agent_runs_where_the_caller_is_and_not_where_the_environment_says(machine):
    said = agent_says(machine, "sh", "/bin/pwd; echo $PWD", env={"PWD": "/root", "OLDPWD": "/root"})
    assert said == f"{DEMO}\n{DEMO}\n".encode()

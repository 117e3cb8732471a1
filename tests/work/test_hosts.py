"""Programs of work under a network of hosts: with a rule for its host each does what it does outside, without a variable of the user's, and without one
it fails at once, and everybody is told."""

import base64
import hashlib
import io
import json
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from launching import PLAYING_POLICY, leftovers, pi, read_line, wait_until_empty
from test_package_managers import WHEEL, npm_package, packed, wheel

SYSTEM = Path(__file__).resolve().parents[1] / "system"
PLACE = "/var/lib/world"
PROJECT = "/home/alice/projects/world"
AUTHORITY = "/usr/local/share/ca-certificates/world-test.crt"
OUTSIDE = "45.155.1.2"  # as tests/system/gate_driver.py has it
LATE_SECONDS = 2
# Of libraries of node alone, which do not ask the host whom it trusts: that is the administrator's to say.
POLICY = PLAYING_POLICY.replace("env:\n", f"env:\n  NODE_EXTRA_CA_CERTS: {AUTHORITY}\n", 1).replace("  alice:\n", "  alice:\n    ssh: {key: .ssh/id_ed25519}\n", 1)
assert POLICY.count(AUTHORITY) == 1 and POLICY.count("id_ed25519") == 1

ASK_IN_JAVA = """
import java.net.*; import java.net.http.*;
class Ask { public static void main(String[] a) throws Exception {
  System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).body()); } }
"""
ASK_BY_AIOHTTP = """
import aiohttp, asyncio
async def ask():
    async with aiohttp.ClientSession() as session, session.get("https://aiohttp.example/hello") as answer: print(await answer.text(), end="")
asyncio.run(ask())
"""
CARGO = '[package]\nname = "work"\nversion = "1.0.0"\nedition = "2018"\n[dependencies]\nhello-crate = "1.0.0"\n'
CARGO_CONFIG = """[source.crates-io]
replace-with = "world"
[source.world]
registry = "https://cargo.example/index.git"
[net]
git-fetch-with-cli = true
retry = 0
"""
CRATE = {
    "Cargo.toml": '[package]\nname = "hello-crate"\nversion = "1.0.0"\nedition = "2018"\n',
    "src/lib.rs": 'pub fn hello() -> &\'static str { "hello from a crate" }\n',
}
MODULE = {
    "go.mod": "module hello.example/module\n\ngo 1.19\n",
    "hello.go": 'package hello\n\nfunc Hello() string { return "hello from a module" }\n',
}
GO = 'package main\n\nimport (\n\t"fmt"\n\n\t"hello.example/module"\n)\n\nfunc main() { fmt.Println(hello.Hello()) }\n'
GO_SETTINGS = "export GOPROXY=https://go.example GOSUMDB=off GOFLAGS='-mod=mod -modcacherw' GOTOOLCHAIN=local GOMODCACHE=$PWD/mod"  # which registry, not which way; no cache
PARENT = "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>parent</artifactId><version>1</version><packaging>pom</packaging></project>\n"
POM = (
    "<project><modelVersion>4.0.0</modelVersion><parent><groupId>org.example</groupId><artifactId>parent</artifactId><version>1</version><relativePath/></parent>"
    "<artifactId>hello</artifactId><packaging>pom</packaging></project>\n"
)
MIRROR = "<settings><mirrors><mirror><id>world</id><mirrorOf>*</mirrorOf><url>https://maven.example/</url></mirror></mirrors></settings>\n"
APT = """
mkdir -p a/etc/apt/apt.conf.d a/etc/apt/preferences.d a/etc/apt/trusted.gpg.d a/var/lib/apt/lists/partial a/var/cache/apt/archives/partial
: >status; echo 'deb [trusted=yes] http://deb.example/ ./' >a/etc/apt/sources.list
apt() { apt-get -qq -o Dir="$PWD/a" -o Dir::State::status="$PWD/status" -o Debug::NoLocking=1 -o Acquire::Retries=0 "$@"; }
apt update; apt download hello-deb; dpkg-deb --field hello-deb_1.0_all.deb Package
"""


@dataclass(frozen=True)
class Tool:
    host: str
    script: str  # for bash -e, in a new directory
    says: str  # the last line of what it prints
    files: tuple = ()  # (name, text) in that directory
    port: int = 443
    is_told: bool = True  # the gate sees what it tries


TOOLS = {
    "curl": Tool("curl.example", "curl -sS https://curl.example/hello", "hello from curl.example"),
    "curl that asks no proxy": Tool("direct.example", "curl -sS --noproxy '*' https://direct.example/hello", "hello from direct.example"),
    "wget": Tool("wget.example", "wget -q --tries=1 -O - https://wget.example/hello", "hello from wget.example"),
    "git by https": Tool("git.example", "git clone -q https://git.example/repository.git cloned; cat cloned/file", "hello from git.example"),
    "git by ssh": Tool("ssh.example", f"git clone -q forge@ssh.example:{PLACE}/git/ssh.example/repository.git cloned; cat cloned/file", "hello from ssh.example", port=22),
    "pip": Tool("pip.example", "pip install -q --disable-pip-version-check --no-cache-dir --retries 0 --index-url https://pip.example/simple/ --target t hello-box; "
                "PYTHONPATH=t python3 -c 'import hello_box; hello_box.main()'", "hello from /usr"),
    "npm": Tool("npm.example", "npm install --silent --no-audit --no-fund --no-update-notifier --fetch-retries=0 --cache ./cache hello-npm; "
                "node_modules/.bin/hello-npm | cut -c 1-10", "hello from", (("package.json", '{"name": "work"}'), (".npmrc", "registry=https://npm.example/\n"))),
    "cargo": Tool("cargo.example", "cargo run --quiet", "hello from a crate",
                  (("Cargo.toml", CARGO), (".cargo/config.toml", CARGO_CONFIG), ("src/main.rs", 'fn main() { println!("{}", hello_crate::hello()); }\n'))),
    "go": Tool("go.example", f"{GO_SETTINGS}; go run .", "hello from a module",
               (("go.mod", "module work.example/work\n\ngo 1.19\n\nrequire hello.example/module v1.0.0\n"), ("main.go", GO))),
    "apt": Tool("deb.example", APT, "hello-deb", port=80),
    "maven": Tool("maven.example", "mvn -B -q -s settings.xml -Dmaven.repo.local=$PWD/m2 validate >&2; head -c 9 m2/org/example/parent/1/parent-1.pom", "<project>",
                  (("pom.xml", POM), ("settings.xml", MIRROR))),
    "java HttpClient": Tool("java.example", "java Ask.java https://java.example/hello", "hello from java.example", (("Ask.java", ASK_IN_JAVA),)),
    "node fetch": Tool("fetch.example", "node -e 'fetch(\"https://fetch.example/hello\").then(a => a.text()).then(t => process.stdout.write(t))'", "hello from fetch.example"),
    "python requests": Tool("requests.example", "python3 -c 'import requests; print(requests.get(\"https://requests.example/hello\").text, end=\"\")'", "hello from requests.example"),
    "python aiohttp": Tool("aiohttp.example", "python3 ask.py", "hello from aiohttp.example", (("ask.py", ASK_BY_AIOHTTP),)),
    "psql": Tool("localhost", "psql -h localhost -p 5432 -U me -Atc \"select 'hello from ' || current_database()\" postgres", "hello from postgres", port=5432,
                 is_told=False),  # without a rule the session's loopback is its own, with nobody there
}  # fmt: skip
HOSTS = sorted({tool.host for tool in TOOLS.values()} - {"localhost"})
SET_UP = f"""
set -e; cd {PLACE}
new="openssl req -config cnf -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
printf '[req]\\ndistinguished_name=name\\n[name]\\n[ca]\\nbasicConstraints=critical,CA:true\\nkeyUsage=critical,keyCertSign\\n' >cnf
$new -x509 -days 2 -subj /CN=world-test -extensions ca -keyout ca.key -out ca.pem
$new -subj /CN=leaf -keyout leaf.key -out leaf.csr
echo subjectAltName={",".join("DNS:" + host for host in HOSTS)} >names
openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out leaf.pem
cp ca.pem {AUTHORITY}; update-ca-certificates
echo nameserver {OUTSIDE} >/etc/resolv.conf
useradd --system --home-dir {PLACE} --shell /bin/sh --password '*' forge
for host in git ssh; do
  mkdir -p made; git init -q -b main made; echo hello from $host.example >made/file; git -C made add .; git -C made -c user.name=x -c user.email=x commit -q -m x
  git clone -q --bare made git/$host.example/repository.git; rm -r made
done
git init -q -b main made; cp -r index/. made; git -C made add .; git -C made -c user.name=x -c user.email=x commit -q -m x
git clone -q --bare made git/cargo.example/index.git; rm -r made; chown -R forge git
mkdir -p deb/DEBIAN; printf 'Package: hello-deb\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: x <x@x.example>\\nDescription: x\\n' >deb/DEBIAN/control
cd www/deb.example; dpkg-deb --build --root-owner-group ../../deb hello-deb_1.0_all.deb
{{ cat ../../deb/DEBIAN/control; echo Filename: ./hello-deb_1.0_all.deb; echo Size: $(stat -c %s *.deb); echo SHA256: $(sha256sum *.deb | cut -d ' ' -f 1); }} >Packages
printf 'SHA256:\\n %s %s Packages\\n' $(sha256sum Packages | cut -d ' ' -f 1) $(stat -c %s Packages) >Release
cd {PLACE}; ssh-keygen -q -t ed25519 -N '' -f host; mkdir -p /run/sshd
install -d -o alice -g alice -m 700 /home/alice/.ssh; setpriv --reuid=alice --regid=alice --clear-groups ssh-keygen -q -t ed25519 -N '' -f /home/alice/.ssh/id_ed25519
cp /home/alice/.ssh/id_ed25519.pub authorized; chmod 644 authorized
echo "ssh.example $(cut -d ' ' -f 1,2 host.pub)" >/home/alice/.ssh/known_hosts; chown alice: /home/alice/.ssh/known_hosts
bin=$(echo /usr/lib/postgresql/*/bin); install -d -o bob db
setpriv --reuid=bob --regid=bob --clear-groups sh -ec "cd /; $bin/initdb -A trust -U me -D {PLACE}/db >/dev/null; $bin/pg_ctl -s -w -D {PLACE}/db -l {PLACE}/db/log -o '-p 5432 -k {PLACE}/db' start"
"""
REMOVE = f"""
bin=$(echo /usr/lib/postgresql/*/bin); setpriv --reuid=bob --regid=bob --clear-groups sh -c "cd /; $bin/pg_ctl -s -D {PLACE}/db -m fast stop"
rm /etc/resolv.conf; userdel forge; rm -rf {PLACE} /home/alice/.ssh {PROJECT} {AUTHORITY}; update-ca-certificates --fresh
"""
# Prints at last how many milliseconds the script took.
MEASURED = 'begin=${EPOCHREALTIME/./}; bash -ec "$1"; status=$?; echo; echo took $(( (${EPOCHREALTIME/./} - begin) / 1000 )); exit $status'


def npm_document():
    data = npm_package()
    dist = {"tarball": "https://npm.example/hello-npm.tgz", "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}
    version = {"name": "hello-npm", "version": "1.0.0", "bin": {"hello-npm": "hello.js"}, "dist": dist}
    return json.dumps({"name": "hello-npm", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}})


def go_archive():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in MODULE.items():
            archive.writestr(f"hello.example/module@v1.0.0/{name}", text)
    return content.getvalue()


def served():
    """What the servers have, but for what is made in the machine."""
    crate = packed("hello-crate-1.0.0", CRATE, 0o644)
    entry = {"name": "hello-crate", "vers": "1.0.0", "deps": [], "cksum": hashlib.sha256(crate).hexdigest(), "features": {}, "yanked": False}
    module = "www/go.example/hello.example/module/@v"
    return {
        **{f"www/{host}/hello": f"hello from {host}\n" for host in HOSTS},
        f"www/pip.example/{WHEEL}": wheel(),
        "www/pip.example/simple/hello-box/index": f'<!DOCTYPE html><html><body><a href="/{WHEEL}">{WHEEL}</a></body></html>',
        "www/npm.example/hello-npm": npm_document(),
        "www/npm.example/hello-npm.tgz": npm_package(),
        "www/cargo.example/crates/hello-crate/1.0.0/download": crate,
        "index/config.json": '{"dl": "https://cargo.example/crates"}',
        "index/he/ll/hello-crate": json.dumps(entry) + "\n",
        f"{module}/list": "v1.0.0\n",
        f"{module}/v1.0.0.info": '{"Version": "v1.0.0", "Time": "2026-01-02T03:04:05Z"}',
        f"{module}/v1.0.0.mod": MODULE["go.mod"],
        f"{module}/v1.0.0.zip": go_archive(),
        "www/maven.example/org/example/parent/1/parent-1.pom": PARENT,
        "gate_driver.py": (SYSTEM / "gate_driver.py").read_text(),
        "outside_world.py": Path(__file__).with_name("outside_world.py").read_text(),
    }


@pytest.fixture(scope="module")
def world_process(work_machine):
    """A world outside of the machine, which says what it is asked."""
    machine = work_machine
    for name, content in served().items():
        machine.write(f"{PLACE}/{name}", content)
    with machine.clients():
        machine.root(["bash", "-c", SET_UP], check=True, timeout=300)
        process = machine.popen(["python3", "-B", f"{PLACE}/outside_world.py", PLACE, "forge"], user="root")
        assert read_line(process) == b"ready\n"
        machine.run(["mkdir", PROJECT], check=True)
        yield process
        process.kill_all()
        process.communicate()
        machine.install_policy(PLAYING_POLICY)
        machine.root(["bash", "-c", REMOVE], check=True, timeout=300)


@pytest.fixture(scope="module")
def world(work_machine, world_process):
    assert world_process
    return work_machine


@pytest.fixture(scope="module")
def worlds_policy(world):
    """worlds_policy(*rules): applies it, where it is not there already."""
    there = []

    def apply(*rules):
        text = POLICY + f"network: {{hosts: {json.dumps(rules)}}}\n"
        if there != [text]:
            world.install_policy(text)
            there[:] = [text]

    return apply


@dataclass(frozen=True)
class Ran:
    status: int
    says: str
    seconds: float
    err: str


def ran(done):
    *said, took = done.stdout.decode().strip().splitlines()
    assert took.startswith("took "), done
    return Ran(done.returncode, ([line for line in said if line] or [""])[-1], int(took.split()[1]) / 1000, done.stderr.decode())


def prepare(world, tool):
    """A new directory, with the tool's files."""
    world.root(["rm", "-rf", f"{PROJECT}/it"], check=True)
    world.run(["mkdir", f"{PROJECT}/it"], check=True)
    for name, text in tool.files:
        world.run(["sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1"', "sh", name], cwd=f"{PROJECT}/it", input=text.encode(), check=True)


def outside(world, tool):
    prepare(world, tool)
    environment = {"NODE_EXTRA_CA_CERTS": AUTHORITY}
    return ran(world.run(["bash", "-c", MEASURED, "bash", tool.script], cwd=f"{PROJECT}/it", env=environment, timeout=180))


def inside(world, tool):
    prepare(world, tool)
    done = pi(world, "sh", 'exec bash -c "$1" bash "$2"', MEASURED, tool.script, cwd=f"{PROJECT}/it", timeout=180)
    wait_until_empty(lambda: leftovers(world))
    return ran(done)


def rule_of(tool):
    return f"{tool.host}:{tool.port}"


def test_each_has_a_host_of_its_own():
    assert len({rule_of(tool) for tool in TOOLS.values()}) == len(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_with_a_rule_it_works_and_without_it_fails_at_once_and_is_told(name, world, worlds_policy):
    """Refused first: nothing is in its caches then. What it takes to begin at all is measured outside."""
    tool = TOOLS[name]
    free = outside(world, tool)
    assert (free.status, free.says) == (0, tool.says), free
    worlds_policy("nobody.example")
    refused = inside(world, tool)
    assert refused.status != 0 and refused.says != tool.says, refused
    assert refused.seconds < free.seconds + LATE_SECONDS, (refused, free)
    told = denials(world, tool.host)
    if tool.is_told:
        assert "denied" in refused.err and rule_of(tool) in refused.err, refused
        assert {(one["user"], one["port"], one["key"]) for one in told} == {("alice", tool.port, "network.hosts")}, told
    worlds_policy(*[rule_of(tool) for tool in TOOLS.values()])
    allowed = inside(world, tool)
    assert (allowed.status, allowed.says) == (0, tool.says), allowed
    assert "denied" not in allowed.err, allowed
    assert denials(world, tool.host) == told


def names_asked(world, process):
    """Those that the name server outside was asked for since the last time."""
    last = f"last-{time.monotonic_ns()}.example"
    world.run(["getent", "ahostsv4", last], check=True)
    names = set()
    while (line := read_line(process).decode().split()) != ["NAME", last]:
        assert line, "the world has ended"
        if line[0] == "NAME":
            names.add(line[1])
    return names


ASK_FOR = r"""
getent ahostsv4 by-name-$1.example; getent ahosts by-both-$1.example
curl -sS -m 5 -o /dev/null https://by-proxy-$1.example; curl -sS -m 5 -o /dev/null --noproxy '*' https://by-itself-$1.example
curl -sS -m 5 -o /dev/null -k --noproxy '*' --resolve by-sni-$1.example:443:192.0.2.9 https://by-sni-$1.example
curl -sS -m 5 -o /dev/null http://by-http-$1.example
python3 -c 'import socket,sys; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(b"\1\2\1\0\0\1\0\0\0\0\0\0" + bytes([len(sys.argv[1])]) + sys.argv[1].encode() + b"\7example\0\0\20\0\1", ("127.0.0.53", 53)); s.recv(512)' "by-text-$1"
true
"""


def test_a_name_without_a_rule_is_never_asked_for_outside(world, world_process, worlds_policy):
    """Whatever it says would get out by it. One with a rule is asked for, so this looks where it would be seen."""
    worlds_policy("named.example")
    names_asked(world, world_process)
    pi(world, "sh", 'sh -c "$1" sh "$2"; curl -sS -m 5 -o /dev/null https://named.example', ASK_FOR, "secret", cwd=PROJECT, timeout=60)
    asked = names_asked(world, world_process)
    assert "named.example" in asked, asked
    assert not [name for name in asked if "secret" in name], asked
    world.run(["sh", "-c", ASK_FOR, "sh", "secret"], timeout=60)
    assert {"by-name-secret.example", "by-itself-secret.example"} <= names_asked(world, world_process)


def denials(world, host):
    world.root(["journalctl", "--sync"], check=True)
    found = json.loads(world.root(["pi-agentctl", "denials", "--json", "--since", "30m"]).stdout or b'{"denials": []}')["denials"]
    return [one for one in found if one["host"] == host]

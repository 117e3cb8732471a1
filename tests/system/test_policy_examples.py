"""Each of policy-examples/ is applied as it is, and sessions under it are what its comments say."""

import contextlib
import json
import re

import pytest
from cache import SOURCE
from launching import DEMO, DENIED, PLAYING_AGENT, PLAYING_POLICY, STATE, agent_says, assert_refused, pi, session, wait_until_empty
from test_limits_enforced import left, legacy  # noqa: F401: a fixture
from test_real_agent import prompt

EXAMPLES = {file.stem: file.read_text() for file in sorted((SOURCE / "policy-examples").glob("*.yaml"))}
LIMITED = [name for name, text in EXAMPLES.items() if "\nlimits:" in text]
AGENT = "/opt/pi"
REAL_AGENT = ("minimal", "offline")  # these are tried with the agent that README installs
CLUSTER_KEYS = "/etc/pi-agent/cluster.env"
KEY = "k3y-of-the-gateway"
MADE = f"{AGENT} {CLUSTER_KEYS} /srv/ops /srv/ci /srv/devs/tool /srv/devs/other {DEMO}/.env.local {DEMO}/key.pem {DEMO}/shown"


def without(key, text):
    """The example without a line that this host cannot enforce."""
    return re.sub(rf"^{key}: .*\n", "", text, flags=re.MULTILINE)


def with_agent_of_tests(name):
    """The example, but with the agent that does what it is told, which is not at the place of the real one."""
    text = EXAMPLES[name]
    if name in REAL_AGENT:
        return text
    binary = f"agent:\n  binary: {AGENT}/bin/pi\n"
    return text.replace("agent:\n", binary, 1) if "\nagent:\n" in text else text + binary


@contextlib.contextmanager
def furnished(machine):
    """The accounts and directories that the examples speak of, and the agent that does what it is told at /opt/pi."""
    tree = PLAYING_AGENT.removesuffix("/bin/pi")
    machine.root(f"cp -a {tree} {AGENT}; useradd --create-home ci; groupadd ops; gpasswd -a carol ops", check=True)
    machine.root("install -d -o root -g ops -m 2775 /srv/ops; install -d -o ci -g ci /srv/ci /srv/ci/one /srv/ci/two", check=True)
    machine.run("git init -q /srv/ci/one; git init -q /srv/ci/two", user="ci", cwd="/srv/ci", check=True)
    machine.run("git init -q /srv/devs/tool; git init -q /srv/devs/other", user="carol", cwd="/srv/devs", check=True)
    machine.write(CLUSTER_KEYS, f"LLM_KEY={KEY}\n", mode=0o600)
    machine.run(f"touch {DEMO}/.env.local {DEMO}/key.pem {DEMO}/shown", check=True)
    yield machine
    machine.install_policy(PLAYING_POLICY)
    machine.root(f"rm -rf {MADE} {STATE}/*; userdel --remove ci; gpasswd -d carol ops; groupdel ops", check=True)


@pytest.fixture(scope="module")
def example_host(playing):
    with furnished(playing) as host:
        yield host


@pytest.fixture
def example(request, example_host):
    """The machine under the example that the test names; without its limits where the machine has no controllers (see below for these)."""
    example_host.root(f"rm -rf {STATE}/*", check=True)  # homes are of the accounts of another policy
    unenforced = not passes_check(example_host, EXAMPLES[request.param])
    text = with_agent_of_tests(request.param)
    example_host.install_policy(without("limits", text) if unenforced else text)
    return example_host


def passes_check(machine, text):
    """Whether this host can enforce its limits, too; nothing else may be wrong with it."""
    machine.write("/root/example.yaml", text)
    report = json.loads(machine.root(["pi-agentctl", "check", "--json", "/root/example.yaml"]).stdout)
    machine.root(["rm", "/root/example.yaml"], check=True)
    unenforced = [error for error in report["errors"] if error["key"].startswith("limits.") and "controller" in error["message"]]
    assert report["errors"] == unenforced, report
    return not unenforced


def named(name):
    return pytest.mark.parametrize("example", [name], indirect=True)


def test_every_example_is_launched_here():
    assert set(EXAMPLES) == {"minimal", "shared-host", "strict", "team-with-groups", "ci-runner", "offline", "cluster"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_passes_check_where_the_agent_is_as_readme_installs_it(example_host, name):
    assert "binary: /opt" not in EXAMPLES[name]
    example_host.root(f"rm -rf {STATE}/*", check=True)  # as after an installation: no home of another policy's account
    passes_check(example_host, EXAMPLES[name])


@named("minimal")
def test_minimal_lets_alice_start_the_agent_in_her_projects_and_nowhere_else(example):
    done = pi(example, "-p", prompt({"bash": "pwd"}))
    assert (done.returncode, done.stdout.split()[:1]) == (0, [b"finished"]), done
    assert_refused(pi(example, "--version", cwd="/srv/shared/app"), DENIED)
    assert_refused(pi(example, "--version", user="bob", cwd="/home/bob/work"), DENIED)


@named("shared-host")
@pytest.mark.parametrize(("user", "directory"), [("alice", DEMO), ("alice", "/srv/shared/app"), ("bob", "/home/bob/work"), ("carol", "/srv/devs")])
def test_shared_host_gives_everybody_their_directories_and_an_account_of_their_own(example, user, directory):
    said = agent_says(example, "sh", "id -un; pwd; echo $PI_OFFLINE $EDITOR", user=user, cwd=directory).decode().splitlines()
    assert said == [f"pi-agent-{user}", directory, "1 nano" if user == "alice" else "1"]


@named("shared-host")
def test_shared_host_reaches_hosts_by_name_and_its_users_may_add_one(example):
    why = json.loads(example.root(["pi-agentctl", "why", "--user=alice", f"--cwd={DEMO}", "--json", "packages.example.org:443", "elsewhere.example:443"], check=True).stdout)
    assert [host["reach"] for host in why["hosts"]] == [True, False] and why["paths"] == [], why
    assert_refused(pi(example, "--pi-agent-allow", "elsewhere.example", "sh", "true"), DENIED)
    assert pi(example, "--pi-agent-allow", "deb.debian.org:80", "sh", "true").returncode == 0


@named("strict")
def test_strict_shows_one_repository_under_an_alias_and_no_home_at_all(example):
    script = "pwd; ls -A /home; cat shown .env.local; cat key.pem; echo x >$PI_CODING_AGENT_DIR/settings.json; stat -fc %T $TMPDIR"
    done = pi(example, "sh", script)
    directory, *rest = done.stdout.decode().splitlines()
    assert directory.startswith("/var/lib/pi-agent/users/alice/home/projects/demo-") and rest == ["tmpfs"], done
    for refused in ("'/home': Permission denied", ".env.local: Permission denied", "key.pem: Permission denied", "settings.json: Read-only"):
        assert refused in done.stderr.decode(), done


@named("strict")
def test_strict_is_a_unit_without_homes_and_with_a_list_of_addresses(example):
    with_unit = "systemctl show --property=ProtectHome,IPAddressAllow 'pi-agent-*.service'"
    with session(example, "signals"):
        shown = example.root(with_unit, check=True).stdout.decode()
    units = [dict(line.split("=", 1) for line in unit.splitlines()) for unit in shown.split("\n\n")]
    allowed = [sorted(unit["IPAddressAllow"].split()) for unit in units if unit["ProtectHome"] == "yes"]  # in no order
    assert allowed == [["127.0.0.0/8", "203.0.113.7/32"]], shown


@named("team-with-groups")
def test_a_team_works_where_its_groups_do_one_repository_at_a_time(example):
    assert agent_says(example, "sh", "id -un; ls /srv/devs", user="carol", cwd="/srv/devs/tool") == b"pi-agent-carol\ntool\n"
    assert agent_says(example, "sh", "pwd; echo $EDITOR", user="carol", cwd="/srv/ops") == b"/srv/ops\nnano\n"
    assert agent_says(example, "sh", "pwd; grep -o anthropic $PI_CODING_AGENT_DIR/settings.json", user="bob", cwd="/home/bob/work") == (
        b"/home/bob/work\nanthropic\n"
    )
    # With the group, which a colleague's directory asks for: only a group's entry gives a session its group.
    example.root("install -d -o bob -g devs -m 2770 /srv/devs/tool/of-bob", check=True)
    made = "touch of-bob/made && rm of-bob/made && echo written"
    assert agent_says(example, "sh", made, user="carol", cwd="/srv/devs/tool") == b"written\n"
    for user, directory in (("bob", "/srv/devs/tool"), ("alice", "/srv/ops")):
        assert_refused(pi(example, "sh", "true", user=user, cwd=directory), DENIED)


@named("ci-runner")
def test_a_job_sees_its_own_checkout_and_what_the_policy_says(example):
    script = "id -un; ls /srv/ci; echo $CI; git config user.name || echo nobody"
    assert agent_says(example, "sh", script, user="ci", cwd="/srv/ci/one") == b"pi-agent\none\ntrue\nnobody\n"
    assert_refused(pi(example, "sh", "true", user="alice"), DENIED)


@named("offline")
def test_offline_the_agent_asks_the_model_of_this_host(example):
    # The model of the tests answers at another port.
    example.install_policy(EXAMPLES["offline"].replace(":8080/", ":8099/"))
    example.forget_model_requests()
    done = pi(example, "-p", prompt({"bash": "echo $PI_OFFLINE"}))
    assert (done.returncode, done.stdout.split()[:1]) == (0, [b"finished"]), done
    assert example.model_requests()[-1]["model"] == "coder"
    explained = json.loads(example.root(["pi-agentctl", "explain", "--user=alice", "--json"], check=True).stdout)
    assert explained["network"]["mode"] == "loopback", explained["network"]


@named("cluster")
def test_a_cluster_and_a_host_have_the_same_policy_and_no_rendering_has_the_key(example):
    assert agent_says(example, "sh", "echo $LLM_KEY") == f"{KEY}\n".encode()
    command = f"pi-agentctl render --target kubernetes --user alice --cwd {DEMO} --image registry.example/pi:1"
    rendered = example.root(command, check=True).stdout.decode()
    assert KEY not in rendered and "secretRef:" in rendered and 'cidr: "10.20.0.0/16"' in rendered, rendered


def test_limits_of_the_examples_hold_where_the_host_has_controllers(legacy):  # noqa: F811
    """On a machine that has them, and for want of the unified hierarchy cannot restrict the network."""
    assert LIMITED == ["ci-runner", "cluster", "strict", "team-with-groups"]
    with furnished(legacy):
        for name, user, directory, expected in (
            ("ci-runner", "ci", "/srv/ci/one", {"TasksMax=2000", "RuntimeMaxUSec=2h"}),
            ("cluster", "alice", DEMO, {"MemoryMax=8589934592", "CPUQuotaPerSecUSec=4s", "RuntimeMaxUSec=2h"}),
            ("strict", "alice", DEMO, {"TasksMax=2000", "MemoryMax=8589934592", "CPUQuotaPerSecUSec=4s", "RuntimeMaxUSec=12h"}),
            ("team-with-groups", "carol", "/srv/devs/tool", {"TasksMax=4096"}),
        ):
            legacy.root(f"rm -rf {STATE}/*", check=True)
            legacy.install_policy(without("network", with_agent_of_tests(name)))
            with session(legacy, "signals", user=user, cwd=directory):
                properties = "TasksMax,MemoryMax,CPUQuotaPerSecUSec,RuntimeMaxUSec"
                shown = legacy.root(f"systemctl show --property={properties} 'pi-agent-*.service'", check=True).stdout.decode()
            units = [{*unit.splitlines()} for unit in shown.split("\n\n")]
            wait_until_empty(lambda: left(legacy))
            assert any(expected <= unit and "MemoryMax=infinity" not in unit for unit in units), units

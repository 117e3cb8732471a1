"""pi-agentctl metrics: what lives, what was, and the policy, as a collector reads them."""

import re
import time

import pytest
from administering import USAGE, ctl, said
from launching import PLAYING_POLICY, finish, owner_and_mode, pi, session, written_policy

DIRECTORY = "/var/lib/pi-agent-metrics"
OUTPUT = f"{DIRECTORY}/pi-agent.prom"
SAMPLE = re.compile(r'(?P<name>[a-z_][a-z0-9_]*)(?:\{(?P<labels>[^}]*)\})? (?P<value>[0-9.]+)')

pytestmark = pytest.mark.usefixtures("playing")


def parsed(text):
    """{family: {labels: value}}, by the rules of the text form."""
    families, family = {}, None
    lines = text.splitlines()
    assert lines[-1] == "# EOF" and text.endswith("\n"), lines[-3:]
    for line in lines[:-1]:
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in families and len(line.split()) > 4, line
            families[family] = {}
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {family} gauge" and not families[family], line
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample and sample["name"] == family, line
            labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', sample["labels"] or ""))
            families[family][tuple(sorted(labels.items()))] = float(sample["value"])
    return families


def metrics(machine, *arguments):
    machine.root(["journalctl", "--sync"], check=True)
    return parsed(said(machine, "metrics", *arguments))


def of(family, **labels):
    """The sum of the samples that have these labels."""
    return sum(value for key, value in family.items() if labels.items() <= dict(key).items())


def test_sessions_starts_ends_and_refusals_are_counted(playing):
    before = metrics(playing)
    with session(playing, "sh", "echo ready; cat; exit 7") as process:
        during = metrics(playing)
        assert of(during["pi_agent_sessions"], user="alice", method="systemd") == 1
        assert 0 <= of(during["pi_agent_sessions_oldest_age_seconds"], user="alice") < 60
        assert finish(process)[0] == 7
    assert pi(playing, "sh", "true", cwd="/home/alice").returncode == 77
    assert pi(playing, "sh", "kill -9 $$").returncode == -9
    after = metrics(playing)
    assert of(after["pi_agent_sessions"], user="alice") == 0

    def grown(family, **labels):
        return of(after[family], user="alice", **labels) - of(before[family], user="alice", **labels)

    assert grown("pi_agent_recent_starts", method="systemd") == 2
    assert grown("pi_agent_recent_ends", exit="7") == 1
    assert grown("pi_agent_recent_ends") == 2
    assert grown("pi_agent_recent_refusals", code="E77-root") == 1


def test_a_window_begins_where_it_is_said(playing):
    assert pi(playing, "sh", "true").returncode == 0
    time.sleep(1.1)  # the window is one of whole seconds
    recent = metrics(playing, "--since", "1s")
    assert of(recent["pi_agent_recent_starts"], user="alice") == 0 and recent["pi_agent_recent_window_seconds"][()] < 2
    assert of(metrics(playing, "--since", "1h")["pi_agent_recent_starts"], user="alice") >= 1
    assert "is not in the past" in said(playing, "metrics", "--since", "@9000000000", status=USAGE)


def test_the_policy_is_told_while_it_is_applied_changed_and_broken(playing):
    applied = metrics(playing)
    assert [applied[f"pi_agent_policy_{name}"][()] for name in ("valid", "enabled", "applied", "errors")] == [1, 1, 1, 0]
    now = time.time()
    assert now - 86400 < applied["pi_agent_last_apply_timestamp_seconds"][()] <= now
    assert now - 86400 < applied["pi_agent_policy_changed_timestamp_seconds"][()] <= now
    with written_policy(playing, PLAYING_POLICY + "network: loopback\n"):
        changed = metrics(playing)
        assert [changed[f"pi_agent_policy_{name}"][()] for name in ("valid", "applied")] == [1, 0]
    with written_policy(playing, PLAYING_POLICY + "nonsense: true\nlimits: {memory: 1}\n"):
        broken = metrics(playing)
        assert [broken[f"pi_agent_policy_{name}"][()] for name in ("valid", "errors")] == [0, 2]


def test_an_apply_that_changes_nothing_counts_as_the_last_one(playing):
    before = metrics(playing)["pi_agent_last_apply_timestamp_seconds"][()]
    said(playing, "apply", "--no-canary")
    assert metrics(playing)["pi_agent_last_apply_timestamp_seconds"][()] > before


def test_a_file_for_the_collector_is_replaced_in_one_step(playing):
    playing.root(["mkdir", DIRECTORY], check=True)
    try:
        assert said(playing, "metrics", "--output", OUTPUT) == ""
        first = playing.root(["stat", "--format=%i", OUTPUT], check=True).stdout
        assert owner_and_mode(playing, OUTPUT) == "root:root 644"
        assert "pi_agent_sessions" in parsed(playing.read(OUTPUT).decode())
        assert said(playing, "metrics", "--output", OUTPUT) == ""
        assert playing.root(["stat", "--format=%i", OUTPUT], check=True).stdout != first
        assert playing.root(["ls", "-A", DIRECTORY], check=True).stdout == b"pi-agent.prom\n"
        for wrong in ("pi-agent.prom", f"{DIRECTORY}/pi-agent.txt", f"{DIRECTORY}/.prom"):
            assert "ends in .prom" in said(playing, "metrics", "--output", wrong, status=USAGE)
    finally:
        playing.root(["rm", "-r", DIRECTORY], check=True)


def test_no_path_of_a_project_is_told_and_only_root_asks(playing):
    assert pi(playing, "sh", "true").returncode == 0
    text = ctl(playing, "metrics").stdout.decode()
    assert "/home" not in text and "demo" not in text and "projects" not in text, text
    done = playing.run(["pi-agentctl", "metrics"], user="alice")
    assert done.returncode == 77 and b"only root" in done.stderr, done

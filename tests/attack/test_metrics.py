"""What users report themselves, and directories of others, against the metrics that root writes."""

import re

import pytest
from record_check import IDS

OUTPUT = "pi-agent.prom"
EVE = 1002


def metrics(target, *arguments):
    return target.machine.root(["pi-agentctl", "metrics", *arguments])


def report(target, code, **fields):
    """A refusal that eve tells the journal, as her own pi would."""
    fields = {"MESSAGE": "forged", "MESSAGE_ID": IDS["denied"], "PI_AGENT_EVENT": "denied", "PI_AGENT_USER": "alice", "PI_AGENT_UID": str(EVE),
              "PI_AGENT_STATUS": "77", "PI_AGENT_CODE": code, **fields}  # fmt: skip
    text = "".join(f"{name}={value}\n" for name, value in fields.items())
    target.machine.run(["logger", "--journald"], user="eve", input=text.encode(), check=True)


@pytest.mark.position("outsider")
def test_nobody_adds_metrics_by_what_they_report(weak, control_seen):
    odd = ['x"} 1 # forged', "forged{a='b'}", "\\n forged 1", "E77-forged"]
    for code in (*odd, "E77-root"):
        report(weak, code, PI_AGENT_REASON="forged", PI_AGENT_DIRECTORY="/forged", SANDBOX_SELECT="forged")
    weak.machine.root(["journalctl", "--sync"], check=True)
    done = metrics(weak)
    assert done.returncode == 0 and b"forged" not in done.stdout, done
    eves = re.findall(r'^pi_agent_recent_refusals\{user="eve",code="([^"]*)",said_by="user"\} (\d+)$', done.stdout.decode(), re.MULTILINE)
    counts = {code: int(count) for code, count in eves}
    assert counts["other"] >= len(odd) and counts["E77-root"] >= 1, counts
    control_seen("the reports are counted, as eve's word, under codes that exist")


@pytest.mark.position("outsider")
@pytest.mark.parametrize("place", ["of a user", "of everybody", "behind a link"])
def test_a_file_is_written_only_where_root_alone_can_write(place, product, control_seen):
    machine = product.machine
    directory = {"of a user": "/home/eve/metrics", "of everybody": "/tmp", "behind a link": "/home/eve/link"}[place]
    machine.root("install -d -o eve /home/eve/metrics; install -d /var/lib/pi-agent-metrics; ln -sfn /etc/cron.d /home/eve/link; chown -h eve /home/eve/link", check=True)
    try:
        refused = metrics(product, "--output", f"{directory}/{OUTPUT}")
        assert refused.returncode == 78 and refused.stdout == b"", refused
        assert machine.root(f"ls {directory}/{OUTPUT}* /etc/cron.d/{OUTPUT}*").stdout == b""
        assert metrics(product, "--output", f"/var/lib/pi-agent-metrics/{OUTPUT}").returncode == 0
        assert machine.root(["tail", "-n1", f"/var/lib/pi-agent-metrics/{OUTPUT}"], check=True).stdout == b"# EOF\n"
    finally:
        machine.root("rm -rf /home/eve/metrics /home/eve/link /var/lib/pi-agent-metrics", check=True)
    control_seen("the same command writes into a directory of root's")

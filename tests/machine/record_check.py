"""Is the record of a machine what docs/reference/record.md promises? Every entry by its form, every session and refusal exactly once."""

import json
import re
import time
from collections import Counter

FILE = "/var/log/pi-agent/record.jsonl"
IDS = {
    "denied": "7bf4d9228dc9412783564f72533c539c",
    "started": "66c98c44df044d42bb1c1db95e628542",
    "ended": "1473189816fb46f78756d779503e642b",
    "preflight": "17fc8ec4217144418246ed895f08a192",
    "connection-denied": "e13f445bcda001cb4f6ba8951f7ee7de",
    "problem": "6b13904c28cc477ab38d0614f010c115",
}
TEXT, NUMBER, POSITIVE = r"[^\x00-\x1f\x7f]+", r"\d{1,20}", r"[1-9]\d{0,19}"
SESSION = r"[0-9a-f]{32}"
# What each field may be; whatever else begins with PI_AGENT_ is a finding.
FORMS = {
    "MESSAGE": TEXT,
    "PRIORITY": r"[3456]",
    "SYSLOG_IDENTIFIER": r"pi-agent-runner|pi|pi-agentctl",
    "PI_AGENT_EVENT": "|".join(IDS),
    "PI_AGENT_VERSION": r"\d+\.\d+\.\d+",
    "PI_AGENT_SESSION": SESSION,
    "PI_AGENT_USER": TEXT,
    "PI_AGENT_UID": NUMBER,
    "PI_AGENT_ACCOUNT": r"[a-z_][a-z0-9_.-]*",
    "PI_AGENT_PROJECT": r"/[^\x00-\x1f\x7f]*",
    "SANDBOX_SELECT": r"systemd|bwrap|podman|docker|none",
    "PI_AGENT_DIRECTORY": r"/[^\x00-\x1f\x7f]*",
    "PI_AGENT_REPOSITORY": r"/[^\x00-\x1f\x7f]*",
    "PI_AGENT_UNIT": rf"pi-agent-{SESSION}\.service",
    "PI_AGENT_PROGRAM": r"agent|shell|canary",
    "PI_AGENT_SIGNING": r"off",
    "PI_AGENT_ADDED_HOSTS": r"\S+( \S+)*",
    "PI_AGENT_STATUS": r"6[49]|7[01578]",
    "PI_AGENT_CODE": r"E(6[49]|7[01578])(-[a-z0-9-]+)?|[a-z]+(-[a-z]+)*",
    "PI_AGENT_HOST": r"[a-z0-9._:*-]{1,253}",
    "PI_AGENT_PORT": r"[1-9]\d{0,4}",
    "PI_AGENT_KEY": r"network\.(hosts|via|via_login_file)|providers",
    "PI_AGENT_WHERE": TEXT,
    "PI_AGENT_COUNT": POSITIVE,
    "PI_AGENT_REASON": TEXT,
    "PI_AGENT_RESULT": r"passed|failed",
    "PI_AGENT_EXIT_CODE": r"\d{1,3}",
    "PI_AGENT_EXIT_SIGNAL": r"[1-9]\d?",
    "PI_AGENT_DURATION_USEC": NUMBER,
    "PI_AGENT_MEMORY_PEAK": POSITIVE,
    "PI_AGENT_CPU_USEC": NUMBER,
}
ALWAYS = {"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "PI_AGENT_EVENT", "PI_AGENT_VERSION"}
SUBJECT = {"PI_AGENT_SESSION", "PI_AGENT_USER", "PI_AGENT_UID", "PI_AGENT_ACCOUNT", "PI_AGENT_PROJECT", "PI_AGENT_DIRECTORY", "SANDBOX_SELECT", "PI_AGENT_PROGRAM"}
OPTIONAL_SUBJECT = {"PI_AGENT_UNIT", "PI_AGENT_REPOSITORY"}
# event: what it must have, and what it may have.
FIELDS = {
    "started": (SUBJECT, OPTIONAL_SUBJECT | {"PI_AGENT_SIGNING", "PI_AGENT_ADDED_HOSTS"}),
    "ended": (
        SUBJECT | {"PI_AGENT_DURATION_USEC"},
        OPTIONAL_SUBJECT
        | {"PI_AGENT_EXIT_CODE", "PI_AGENT_EXIT_SIGNAL", "PI_AGENT_REASON", "PI_AGENT_MEMORY_PEAK", "PI_AGENT_CPU_USEC"},
    ),
    "denied": ({"PI_AGENT_STATUS", "PI_AGENT_CODE", "PI_AGENT_REASON"}, SUBJECT | OPTIONAL_SUBJECT),
    "preflight": (
        {"PI_AGENT_RESULT", "SANDBOX_SELECT", "PI_AGENT_USER", "PI_AGENT_UID", "PI_AGENT_DIRECTORY", "PI_AGENT_DURATION_USEC"},
        {"PI_AGENT_REASON"},
    ),
    "connection-denied": (
        SUBJECT | {"PI_AGENT_CODE", "PI_AGENT_REASON", "PI_AGENT_COUNT"},
        OPTIONAL_SUBJECT | {"PI_AGENT_HOST", "PI_AGENT_PORT", "PI_AGENT_KEY", "PI_AGENT_WHERE"},
    ),
    "problem": ({"PI_AGENT_REASON"}, {"PI_AGENT_SESSION"}),
}
SETTLE_SECONDS = 15


def findings_in_form(entry):
    """What is wrong with one entry by itself."""
    event = entry.get("PI_AGENT_EVENT")
    if not isinstance(event, str) or entry.get("MESSAGE_ID") != IDS.get(event):
        return [f"the event {event!r} does not belong to the MESSAGE_ID {entry.get('MESSAGE_ID')!r}"]
    required, allowed = FIELDS[event]
    found = [f"has no {name}" for name in sorted((ALWAYS | required) - entry.keys())]
    for name, value in entry.items():
        if not (name.startswith("PI_AGENT_") or name in FORMS):
            continue
        if name not in ALWAYS | required | allowed:
            found.append(f"has {name}, which does not belong to {event}")
        elif not isinstance(value, str) or not re.fullmatch(FORMS[name], value):
            # A problem may be about something else than a session, which it names.
            if (event, name) != ("problem", "PI_AGENT_SESSION"):
                found.append(f"has {name}={value!r}")
    if event == "ended":
        ways = {"PI_AGENT_EXIT_CODE", "PI_AGENT_EXIT_SIGNAL"} & entry.keys()
        if len(ways) == 2 or not (ways or "PI_AGENT_REASON" in entry):
            found.append("says not, or twice, how it ended")
    if entry.get("SYSLOG_IDENTIFIER") == "pi" and (event != "denied" or entry.get("_UID") != entry.get("PI_AGENT_UID")):
        found.append("is the wrapper's, which may only say of its own user that it was refused")
    return [f"an entry {text}: {entry}" for text in found]


def told(entry):
    """When, by whom and why, for messages; without a process it is of the file."""
    names = ("__REALTIME_TIMESTAMP", "_COMM", "_PID", "PI_AGENT_EXIT_CODE", "PI_AGENT_EXIT_SIGNAL", "PI_AGENT_REASON", "PI_AGENT_PROJECT")
    return ", ".join(str(entry[name]) for name in names if name in entry)


def is_second_of_killed(first, second):
    """What docs/reference/record.md allows: whoever recorded the first end was killed before it noted that, and the next one does not know how it was."""
    return first.get("_PID") != second.get("_PID") and second.get("PI_AGENT_REASON", "").startswith("its runner did not record how")


def findings_in_sessions(entries, boot, living, killed=False):
    """What is wrong between entries: each session has one started and one ended, a refused one neither. `killed`: who records was, on purpose."""
    found = []
    by_event = {event: [entry for entry in entries if entry["PI_AGENT_EVENT"] == event] for event in IDS}
    session_of = lambda entry: entry.get("PI_AGENT_SESSION")  # noqa: E731
    for event in ("started", "ended", "denied"):
        counts = Counter(session_of(entry) for entry in by_event[event] if session_of(entry))
        for session in (session for session, count in counts.items() if count > 1):
            which = [entry for entry in by_event[event] if session_of(entry) == session]
            if not (killed and event == "ended" and len(which) == 2 and is_second_of_killed(*which)):
                found.append(f"session {session} has {len(which)} {event}: {'; '.join(map(told, which))}")
    started = {session_of(entry): entry for entry in by_event["started"]}
    ended = {session_of(entry): entry for entry in by_event["ended"]}
    denied = {session_of(entry) for entry in by_event["denied"]}
    found += [f"session {session} was refused, and started" for session in started.keys() & denied]
    found += [f"session {session} ended, but never started" for session in ended.keys() - started.keys()]
    for session in started.keys() - ended.keys() - set(living):
        if started[session].get("_BOOT_ID", boot) == boot:  # after a crash of the host there is nobody left to record it
            found.append(f"session {session} started and never ended: {started[session]}")
    for session in started.keys() & ended.keys():
        others = {name for name in SUBJECT | OPTIONAL_SUBJECT if started[session].get(name) != ended[session].get(name)}
        found += [f"session {session} ended with another {name} than it started with" for name in sorted(others)]
    # One start is one process, which refuses once.
    processes = Counter((entry["_BOOT_ID"], entry["_PID"]) for entry in by_event["denied"] if "_PID" in entry)
    found += [f"process {process} has {count} denied" for (_, process), count in processes.items() if count > 1]
    return found


def findings_in_refusals(entries, refusals):
    """Each refusal that a user was told is in the record. Others may have been told where nobody counted."""
    recorded = Counter((entry.get("PI_AGENT_USER"), entry["PI_AGENT_REASON"]) for entry in entries if entry["PI_AGENT_EVENT"] == "denied")
    told = Counter(refusals)
    return [f"{count} times {user} was told {reason!r}, recorded {recorded[user, reason]} times"
            for (user, reason), count in told.items() if recorded[user, reason] < count]  # fmt: skip


def without_waits(stderr):
    """What a command wrote to standard error, without the line that pi writes once after two seconds of a wait."""
    return re.sub(rb"^pi: [^\n]*: two seconds without progress; [^\n]*\n", b"", stderr, flags=re.MULTILINE)


def refusal_in(status, stderr):
    """The reason that pi gave, as the record has it; None where it is not certain that this was a refusal, and of pi itself."""
    beginnings = {77: "pi: denied: ", 75: "pi: limit: ", 78: "pi: /etc/pi-agent/"}
    said = stderr.decode(errors="replace")
    lines = [line for line in said.splitlines() if not line.startswith("pi: see: pi-agentctl explain E")]  # the record has the code for itself
    if not said.startswith(beginnings.get(status, "\0")) or not all(line.startswith("pi: ") for line in lines):
        return None
    reason = "\n".join(line.removeprefix("pi: ") for line in lines)
    return reason.replace("\\", "\\x5c").replace("\n", "\\x0a") if len(reason) < 4000 else None


def read_entries(machine):
    """Of the journal those that root, or the wrapper, can have sent; what others send is theirs. And those of the file."""
    if not machine.has_journal:
        return [json.loads(line) for line in machine.root(["cat", FILE]).stdout.splitlines()]
    machine.root(["journalctl", "--sync"], check=True)
    wanted = [f"MESSAGE_ID={message_id}" for message_id in IDS.values()]
    lines = machine.root(["journalctl", "--all", "--output=json", *wanted], check=True).stdout.splitlines()
    entries = [json.loads(line) for line in lines]
    entries = [entry for entry in entries if entry.get("_UID") == "0" or entry.get("SYSLOG_IDENTIFIER") == "pi"]
    kept = machine.root(["cat", FILE])
    entries += [json.loads(line) for line in kept.stdout.splitlines()]
    return sorted(entries, key=lambda entry: int(entry["__REALTIME_TIMESTAMP"]))


def findings(machine, forms=True):
    """Everything that is wrong with the record of a machine. `forms` off: a defence may have been out that makes values harmless."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        entries = read_entries(machine)
        boot = machine.read("/proc/sys/kernel/random/boot_id").decode().strip().replace("-", "")
        living = machine.root("ls /run/pi-agent/sessions 2>/dev/null; true", check=True).stdout.decode().split()
        found = findings_in_sessions(entries, boot, living, machine.recorders_killed)
        if not found or time.monotonic() > deadline:
            break
        time.sleep(0.5)  # who cleans up after a killed runner may be about to
    if forms:
        found += [text for entry in entries for text in findings_in_form(entry)]
        found += findings_in_refusals(entries, machine.refusals)
    return found


def require_valid(machine, forms=True):
    found = findings(machine, forms)
    shown = " | ".join(found[:20])  # in one line: a summary shows the first of a message
    assert not found, f"the record of {machine.name} has {len(found)} faults: {shown}"

"""Writes docs/assurance.md, one screen about a whole `check --full`, and docs/assurance-rows.txt.gz, the result of every test of that run."""

import gzip
import json
import os
import platform
import re
import struct
import subprocess
import time

from cache import SOURCE, agent_tree, build_root, machine_root
from recipes import AGENTS, EMULATED, MACHINES

PAGE = SOURCE / "docs/assurance.md"
ROWS = SOURCE / "docs/assurance-rows.txt.gz"
HEAD = """# Assurance

What one whole run of the tests saw. `./check --full` writes this page; do not edit it. With
`--suite NAME` it is about that suite alone. It says what was tried, not that there is no fault.

"""
OUTCOMES = ("passed", "failed", "skipped")
SHOWN = 10  # of what failed, of the reasons for skipping, and of the slowest tests
IN_THE_MACHINE = {"systemd": "systemd", "sudo": "sudo", "D-Bus": "dbus"}
TO_BUILD = {"g++": "g++", "sdbus-c++": "libsdbus-c++-dev"}
TO_BUILD_TOO = {"clang": "clang"}


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |\n" for line in lines) + "\n"


def git(*arguments):
    """What git says of this checkout, which may be somebody else's."""
    command = ["git", "-c", f"safe.directory={SOURCE}", "-C", SOURCE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def commit():
    """What was checked: a commit, and whether the checkout differed from it."""
    try:
        name = git("rev-parse", "HEAD")
        # The page and the rows are written by every run.
        changed = git("status", "--porcelain", "--", ".", *(f":!{file.relative_to(SOURCE)}" for file in (PAGE, ROWS)))
    except (OSError, subprocess.CalledProcessError):
        return "unknown: no git, or no checkout"
    return name + (" with changes that are not committed" if changed else "")


def versions(root, wanted):
    """{what: version} of the installed packages {what: package} of a root."""
    show = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show", "--showformat=${Version}"]
    return {what: subprocess.run([*show, package], capture_output=True, text=True, check=True).stdout for what, package in wanted.items()}


def version_of_kernel(image):
    """The text that the boot header of an x86 kernel points to (Documentation/arch/x86/boot.rst, kernel_version)."""
    start = image.read_bytes()[:0x10000]
    (offset,) = struct.unpack_from("<H", start, 0x20E)
    return start[0x200 + offset :].split(b" ")[0].split(b"\0")[0].decode()


def version_of_node(agent):
    package = agent_tree(agent) / "node_modules" / AGENTS[agent].node.split("/")[0] / "package.json"
    return json.loads(package.read_text())["version"]


def machines(names, emulated_kernel):
    rows = []
    for name in names:
        found = versions(machine_root(name), IN_THE_MACHINE) | versions(build_root(name), TO_BUILD)
        found |= versions(build_root(name, tools=True), TO_BUILD_TOO)
        kernel = f"the host's, {platform.release()}"
        kernel += f"; emulated: {emulated_kernel}" if emulated_kernel and name == EMULATED.machine else ""
        rows.append([f"{name} (Debian {MACHINES[name].release})", kernel, *found.values()])
    return table(["machine", "kernel", *IN_THE_MACHINE, *TO_BUILD, *TO_BUILD_TOO], rows)


SHARE = re.compile(r", \d+ of \d+$")  # a suite that ran in several parts


def suites(results):
    """One line for each suite, its parts taken together, with a column for each machine. A build counts only when it fails."""
    names = list(dict.fromkeys(suite["machine"] for suite in results.suites))
    found = {}
    for suite in results.suites:
        seen = found.setdefault(SHARE.sub("", suite["suite"]), {}).setdefault(suite["machine"], dict.fromkeys(OUTCOMES, 0) | {"sample": "", "processor": 0})
        for outcome in OUTCOMES:
            seen[outcome] += suite[outcome]
        seen["sample"] = seen["sample"] or suite["sample"]
        seen["processor"] += suite["processor_seconds"]
    rows = [
        [name, *(counted(seen.get(machine)) for machine in names), f"{sum(each['processor'] for each in seen.values()) / 60:.0f}"]
        for name, seen in found.items()
        if any(each[outcome] for each in seen.values() for outcome in OUTCOMES)
    ]
    minutes = sum(suite["processor_seconds"] for suite in results.suites) / 60
    rows.append(["**all**", *(counted(summed(results.suites, machine)) for machine in names), f"{minutes:.0f}"])
    return table(["suite", *names, "processor minutes"], rows)


def summed(of_suites, machine):
    return {outcome: sum(suite[outcome] for suite in of_suites if suite["machine"] == machine) for outcome in OUTCOMES}


def counted(seen):
    """The counts of one suite on one machine, in words."""
    if seen is None:
        return "–"
    counts = ", ".join(f"{seen[outcome]} {outcome}" for outcome in OUTCOMES if seen[outcome]) or "0 passed"
    return counts + (f" (a sample of {seen['sample']})" if seen.get("sample") else "")


def failures(results):
    lines = [f"- {what}: {' '.join(why.split())[:160]}\n" for outcome, what, why in results.notes if outcome == "failed"]
    more = f"- and {len(lines) - SHOWN} more, which the rows have\n" if len(lines) > SHOWN else ""
    return "".join(lines[:SHOWN]) + more or "Nothing.\n"


def skips(results):
    """How many were skipped for each reason, the most frequent first."""
    reasons = {}
    for outcome, what, why, count, _ in results.rows:
        if outcome == "skipped":
            reason = reasons.setdefault(why or "no reason given", [0, set()])
            reason[0] += count
            reason[1].update(re.findall(r" on (\w+)", what)[:1])
    rows = sorted(([count, ", ".join(sorted(names)), why[:160]] for why, (count, names) in reasons.items()), key=lambda row: -row[0])
    if len(rows) > SHOWN:
        rows[SHOWN:] = [[sum(row[0] for row in rows[SHOWN:]), "", f"{len(rows) - SHOWN} other reasons, which the rows have"]]
    return table(["skipped", "machine", "reason"], rows) if rows else "Nothing.\n\n"


def slowest(results):
    timed = sorted((row for row in results.rows if row[4]), key=lambda row: -row[4])[:SHOWN]
    return table(["seconds", "test"], [[round(seconds), what] for _, what, _, _, seconds in timed]) if timed else "Nothing was timed.\n"


ATTACKERS = {
    "user": "an allowed user", "outsider": "who is not allowed", "agent": "the agent", "host": "nobody: the host is not as it should be",
}  # fmt: skip
OF_ATTACKS = {"passed": "failed, as it should", "failed": "**worked, or was not seen**", "skipped": "not tried"}
CASE = re.compile(r"^tests\.attack\.test_(?P<area>\w+)::test_(?P<sentence>\w+)(\[(?P<machine>[a-z]+)-?(?P<parameters>.*)\])?$", re.DOTALL)


def attacks(cases):
    """One line for each attack, with what came of it on each machine, and without which defences or by which control it was seen to be one."""
    lines, tried, proven, controlled = {}, 0, 0, 0
    for case in cases:
        found = CASE.match(case["name"])
        if not found or case["position"] not in ATTACKERS:
            continue
        what = found["sentence"].replace("_", " ") + (f": {found['parameters']}" if found["parameters"] else "")
        without, control = case.get("works without", ""), case.get("control", "")
        shown = without or (f"control: {control}" if control else "–")
        line = lines.setdefault((found["area"].replace("_", " "), what, ATTACKERS[case["position"]], shown), {})
        line[found["machine"] or ""] = OF_ATTACKS[case["outcome"]]
        tried += case["outcome"] == "passed"
        proven += case["outcome"] == "passed" and bool(without)
        controlled += case["outcome"] == "passed" and bool(control and not without)
    rows = []
    for (area, what, attacker, shown), seen in sorted(lines.items()):
        outcomes = dict.fromkeys(seen.values())
        told = [f"{outcome} ({', '.join(name for name in seen if seen[name] == outcome)})" for outcome in outcomes]
        rows.append([area, what, attacker, "; ".join(told), shown])
    head = ["area", "attack", "attacker", "with every defence", "seen to work without, or control"]
    return (
        f"{tried} tries failed as they should, each on one machine. {proven} of them were repeated in a build that\n"
        "leaves the named defences out: there the attack worked, or the probe saw what the defence prevents.\n"
        f"{controlled} have a control instead: the same look finds, on the host and as root, what the attacker must\n"
        "not find, or the attack was seen to take place. The rest have neither, because more than one defence\n"
        "holds or because the defence cannot be left out.\n\n" + table(head, rows)
    )


FUZZER = re.compile(r"^tests\.fuzz::(?P<sentence>\w+)\[(?P<machine>[a-z]+)(?P<parameters>)\]$")


def figures(cases):
    """What the long runs and the fuzzers measured, a line for each on each machine."""
    found = [(CASE.match(case["name"]) or FUZZER.match(case["name"]), case) for case in cases if case.get("figures")]
    rows = [
        [("the fuzzer " if match.re is FUZZER else "") + match["sentence"].replace("_", " ") + (f": {match['parameters']}" if match["parameters"] else ""), match["machine"] or "", case["figures"]]
        for match, case in found
        if match
    ]
    return table(["what was run", "machine", "before → after, or how much"], sorted(rows)) if rows else "No long run was among them.\n\n"


WORK = re.compile(r"^tests\.work\.test_work::test_comes_to_the_same_inside\[(?P<machine>[a-z]+)-.*\]$", re.DOTALL)


def work(cases):
    """How many scripts of each family came to the same inside as outside, on each machine."""
    families = {}
    for case in cases:
        found = WORK.match(case["name"])
        if found and case.get("family"):
            counts = families.setdefault((case["family"].replace("_", " "), found["machine"]), dict.fromkeys(("same", "listed", "failed"), 0))
            counts[("listed" if case.get("differs") else "same") if case["outcome"] == "passed" else "failed"] += 1
    if not families:
        return "The suite `work` was not among them.\n\n"
    said = "Each script runs as the user outside and by the agent inside, on a new tree; what came of both is compared (docs/reference/differences.md).\n\n"
    return said + table(["family", "machine", "the same", "differ as listed", "failed"], [[*key, *counts.values()] for key, counts in sorted(families.items())])


def tests(results):
    """Every row of the run, in the order in which it came."""
    lines = [f"{outcome:8}{'' if seconds is None else f'{seconds:.1f} s':>10}  {what}{f' ({count} cases)' if count > 1 else ''}{f': {why}' if why else ''}\n"
             for outcome, what, why, count, seconds in results.rows]  # fmt: skip
    return "".join(lines) or "Nothing ran.\n"


def rows(results, run):
    """The text that is compressed: the run, every test with its result, and what attacks, long runs and ordinary work showed."""
    return "".join([
        "The rows of docs/assurance.md\n\n", *(f"{key}: {value}\n" for key, value in run.items()),
        "\n## Tests\n\nA test program of doctest has one row for all of its cases.\n\n", tests(results),
        "\n## Endurance\n\n", figures(results.cases),
        "## Work inside and outside\n\n", work(results.cases),
        "## Attacks\n\n", attacks(results.cases),
    ])  # fmt: skip


def page(results, run, machines_table):
    return "".join([
        HEAD, table(["", ""], run.items()),
        "Every test of the run with its result, what each attack was shown to do, and what long runs measured:\n"
        f"`zless {ROWS.relative_to(SOURCE)}`.\n\n",
        "## Machines\n\n", machines_table,
        "## Suites\n\n", suites(results),
        "## Attacks\n\n", attacks(results.cases).partition("\n\n")[0] + "\n\n",
        "## Failed\n\n", failures(results),
        "\n## Skipped\n\n", skips(results),
        "## Slowest\n\n", slowest(results),
    ]).rstrip("\n") + "\n"  # fmt: skip


def kernel_of_emulated():
    from emulated import kernel  # its own needs are those of --full

    return version_of_kernel(kernel() / "vmlinuz")


def duration(beginnings, now):
    """What an interrupted part took is not known: only that what ended in it was kept."""
    minutes = f"{(now - beginnings[-1]) / 60:.0f} minutes on {os.cpu_count()} processors"
    if len(beginnings) == 1:
        return minutes
    return f"{minutes}, and before that what ended in parts that were interrupted (`--continue`): {len(beginnings) - 1}"


def write(results, commit_before, beginnings, chosen=(), changes=()):
    """The page and the rows of a run that has just ended, of all suites or of those that were chosen; beginnings: of its parts, seconds of the epoch;
    changes: in words, what changed between them."""
    run = {
        "commit": commit_before if commit() == commit_before else f"{commit_before}, changed meanwhile to {commit()}",
        "began": ", ".join(time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(began)) for began in beginnings),
        "took": duration(beginnings, time.time()),
        "suites": f"these alone, each whole: {', '.join(chosen)}" if chosen else "all, each whole, and the long form of every test that has one",
        "result": f"{results.counts['passed']} passed, {results.counts['failed']} failed, {results.counts['skipped']} skipped",
        **({"changed between its parts": "; ".join(changes)} if changes else {}),
        "seed": f"{os.environ['PI_AGENT_SEED']} (set `PI_AGENT_SEED` to draw the same again)",
        "agents": ", ".join(f"pi {agent} with node {version_of_node(agent)}" for agent in AGENTS),
    }
    PAGE.write_text(page(results, run, machines(MACHINES, "" if chosen else kernel_of_emulated())))
    ROWS.write_bytes(gzip.compress(rows(results, run).encode(), mtime=0))  # the same run makes the same bytes
    owner = PAGE.parent.stat()  # the check runs as root, the checkout is somebody's
    for file in (PAGE, ROWS):
        os.chown(file, owner.st_uid, owner.st_gid)
    return f"{PAGE.relative_to(SOURCE)} and {ROWS.relative_to(SOURCE)}"

"""Writes docs/assurance.md: what a whole `check --full` ran, on what, and what came of it, from the data of that run."""

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
HEAD = """# Assurance

Written by `sudo ./check --full`, or with `--suite` for some suites alone, from what that run saw; do not edit. It says what was tried, not that there is no fault.

"""
IN_THE_MACHINE = {"systemd": "systemd", "sudo": "sudo", "D-Bus": "dbus"}
TO_BUILD = {"g++": "g++", "sdbus-c++": "libsdbus-c++-dev"}
TO_BUILD_TOO = {"clang": "clang"}


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |\n" for line in lines) + "\n"


def commit():
    """What was checked: a commit, and whether the checkout differed from it."""
    git = ["git", "-c", f"safe.directory={SOURCE}", "-C", SOURCE]
    try:
        name = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        # This page itself is written by every run.
        status = [*git, "status", "--porcelain", "--", ".", ":!docs/assurance.md"]
        changed = subprocess.run(status, capture_output=True, text=True, check=True).stdout.strip()
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


def suites(results):
    rows = []
    for suite in results.suites:
        counts = [suite[outcome] for outcome in ("passed", "failed", "skipped")]
        part = f"a sample of {suite['sample']}" if suite["sample"] else "all"
        rows.append([suite["suite"], suite["machine"], part, *counts, round(suite["seconds"]), round(suite["processor_seconds"])])
    total = [results.counts[outcome] for outcome in ("passed", "failed", "skipped")]
    rows.append(["**sum**", "", "", *total, "", round(sum(suite["processor_seconds"] for suite in results.suites))])
    return table(["suite", "machine", "tests", "passed", "failed", "skipped", "seconds", "processor seconds"], rows)


def of_notes(results, wanted):
    lines = [f"- {what}: {' '.join(why.split())[:300]}\n" for outcome, what, why in results.notes if outcome == wanted]
    return "".join(lines) or "Nothing.\n"


ATTACKERS = {
    "user": "an allowed user", "outsider": "who is not allowed", "agent": "the agent", "host": "nobody: the host is not as it should be",
}  # fmt: skip
OUTCOMES = {"passed": "failed, as it should", "failed": "**worked, or was not seen**", "skipped": "not tried"}
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
        line[found["machine"] or ""] = OUTCOMES[case["outcome"]]
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
        f"{tried} tries failed as they should, each on one machine. {proven} of them were also made without the defences named in the last\n"
        "column, in a build that can leave them out, and worked there (or the probe saw what the defence prevents).\n"
        f"{controlled} have a control instead, which is named there: the same look found what the attacker is not to find where it is (on the\n"
        "host, as root, before), or the attack itself was seen to take place. A dash says that the case has neither: more than one\n"
        "defence holds, or what holds cannot be taken out.\n\n" + table(head, rows)
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
    said = "Each script runs as the user outside and by the agent inside, on a new tree; what came of both is compared ([differences.md](differences.md)).\n\n"
    return said + table(["family", "machine", "the same", "differ as listed", "failed"], [[*key, *counts.values()] for key, counts in sorted(families.items())])


def page(results, run, machines_table):
    return "".join([
        HEAD, table(["", ""], run.items()),
        "## On what\n\n", machines_table,
        "## What ran\n\n", suites(results),
        "Machines run side by side, so the seconds of one contain waiting for the other. A build counts only when it fails; what was built\n"
        "before is not built again. Processor seconds are those of all processes of a suite, in the machines too.\n\n",
        "## Failed\n\n", of_notes(results, "failed"),
        "\n## Skipped, and why\n\n", of_notes(results, "skipped"),
        "\n## Endurance\n\n", figures(results.cases),
        "## Work inside and outside\n\n", work(results.cases),
        "## Attacks\n\n", attacks(results.cases),
    ])  # fmt: skip


def kernel_of_emulated():
    from emulated import kernel  # its own needs are those of --full

    return version_of_kernel(kernel() / "vmlinuz")


def duration(beginnings, now):
    """What an interrupted part took is not known: only that what ended in it was kept."""
    minutes = f"{(now - beginnings[-1]) / 60:.0f} minutes on {os.cpu_count()} processors"
    if len(beginnings) == 1:
        return minutes
    return f"{minutes}, and before that what ended in parts that were interrupted (`--continue`): {len(beginnings) - 1}"


def write(results, commit_before, beginnings, chosen=()):
    """The page of a run that has just ended, of all suites or of those that were chosen; beginnings: of its parts, seconds of the epoch."""
    run = {
        "began": ", ".join(time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(began)) for began in beginnings),
        "took": duration(beginnings, time.time()),
        "commit": commit_before if commit() == commit_before else f"{commit_before}, changed meanwhile to {commit()}",
        "suites": f"these alone, each whole: {', '.join(chosen)}" if chosen else "all, each whole, and the long form of every test that has one",
        "came out": f"{results.counts['passed']} passed, {results.counts['failed']} failed, {results.counts['skipped']} skipped",
        "seed": f"{os.environ['PI_AGENT_SEED']} (`PI_AGENT_SEED`, repeats what was drawn)",
        "agents": ", ".join(f"pi {agent} with node {version_of_node(agent)}" for agent in AGENTS),
    }
    PAGE.write_text(page(results, run, machines(MACHINES, "" if chosen else kernel_of_emulated())))
    owner = PAGE.parent.stat()  # the check runs as root, the checkout is somebody's
    os.chown(PAGE, owner.st_uid, owner.st_gid)
    return PAGE.relative_to(SOURCE)

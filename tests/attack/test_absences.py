"""A failing call of one start does not mean absence: a sweep that is short of memory or descriptors leaves other users' sessions alone."""

import os
import random
import re

import pytest
from points import TRACE
from target import Outcome

pytestmark = pytest.mark.position("host")

FULL = bool(os.environ.get("PI_AGENT_FULL"))
ROUNDS = 150 if FULL else 15
SESSIONS = "/run/pi-agent/sessions"
SCRATCH = "/var/lib/pi-agent/sessions"
WORK = "/home/bob/work/demo"
ERRORS = ("ENOMEM", "EMFILE", "EIO", "EINTR")
# Ends, and says which file was lost, as soon as one is.
KEEPING = """
cd /; for place in /tmp /var/tmp; do mkdir $place/kept && echo x >$place/kept/file; done
echo $PI_AGENT_SESSION; while test ! -e {work}/enough; do
for place in /tmp /var/tmp; do test -e $place/kept/file || {{ echo lost $place; exit 9; }}; done; sleep 0.02; done; exit 7
"""
# As root instead of sudo: only alice's runner is traced.
STARTING = """
strace = ["/usr/bin/strace", "-qq", "-y", "-o", {trace!r}, *{injection!r}, RUNNER]
tell(call(lambda c, s: ask(c, s, ["echo", "ran"]), argv=strace, pair=socket_made_by(1000), env={{"SUDO_UID": "1000"}}))
"""
# What a sweep looks at: in half of the rounds one of these calls fails, in the others any.
OF_SWEEPS = re.compile(r"/run/pi-agent/sessions|/var/lib/pi-agent/sessions|pi-agent-run-|cgroup\.procs")
BEGINS = "/run/pi-agent/starts"  # what comes before is of the process itself
NOT_FAILING = {"exit_group", "execve", "exit", "rt_sigreturn"}


class Kept:
    """A session of bob's that lives, with files of its own."""

    def __init__(self, target):
        self.machine = target.machine
        self.machine.run(["rm", "-f", f"{WORK}/enough"], user="bob", check=True)
        self.session = target.session("sh", "-c", KEEPING.format(work=WORK), user="bob", cwd=WORK)

    def loses(self):
        """What was lost or ended, None while it is as it was."""
        status = self.session.process.poll()
        return None if status is None else (status, self.session.process.stdout.read(), self.session.process.stderr.read())

    def ends_well(self):
        self.machine.run(["touch", f"{WORK}/enough"], user="bob", check=True)
        status = self.session.process.wait(timeout=20)
        self.machine.run(["rm", "-f", f"{WORK}/enough"], user="bob", check=True)
        return status == 7

    def end(self):
        self.session.end()


def start(target, *injection):
    answer = target.play(STARTING.format(trace=TRACE, injection=injection), user="root")
    return answer, target.machine.read(TRACE).decode(errors="replace").splitlines()


def plant_orphans(machine, draw):
    """What a host's crash would leave: a session's directory in /run, and another one's temporary files."""
    one, other = (f"{draw.getrandbits(128):032x}" for _ in range(2))
    machine.root(
        f"mkdir -p {SESSIONS}/{one}/root/etc {SCRATCH}/{other}/tmp/left && chmod 700 {SCRATCH}/{other} && chown -R pi-agent: {SCRATCH}/{other}/tmp", check=True
    )


def calls_in(lines):
    """Of a start: [(name, its turn among all of this name, the line)], from where it looks at what others share."""
    found, counts, begun = [], {}, False
    for line in lines:
        if not (name := re.match(r"(\w+)\(", line)):
            continue
        counts[name[1]] = counts.get(name[1], 0) + 1
        begun = begun or BEGINS in line
        if begun and name[1] not in NOT_FAILING:
            found.append((name[1], counts[name[1]], line))
    return found


# strace's options: which calls fail.
ATTACKS = {
    "who has a session is not seen": (f"--trace-path={SESSIONS}", "--inject=faccessat2,faccessat:error=ENOMEM"),
    "the processes of a scope are not seen": ("--trace-path={scope}/cgroup.procs", "--inject=openat:error=ENOMEM"),
}


@pytest.mark.parametrize(
    ("what", "defences"),
    [("who has a session is not seen", ("only-enoent", "scratch-lock")), ("the processes of a scope are not seen", ("only-enoent",))],
    ids=list(ATTACKS),
)
def test_who_cannot_see_a_session_does_not_take_it_for_gone(what, defences, prove):
    def attack(target):
        kept = Kept(target)
        try:
            group = target.machine.root(["systemctl", "show", "--property=ControlGroup", "--value", kept.session.scope], check=True).stdout.decode().strip()
            answer, lines = start(target, *(option.format(scope=f"/sys/fs/cgroup{group}") for option in ATTACKS[what]))
            assert any("(INJECTED)" in line for line in lines), (answer, lines)
            lost = kept.loses() or (None if kept.ends_well() else "its end")
            return Outcome(lost is not None, lost)
        finally:
            kept.end()

    prove(attack, *defences, quick=True)


def test_a_failing_call_of_one_start_touches_nothing_of_another_users_session(product, machine_name, control_seen, figures):
    draw = random.Random(f"{os.environ.get('PI_AGENT_SEED', '')} {machine_name}")
    traces = product.quiet_traces()
    kept = Kept(product)
    try:
        plant_orphans(product.machine, draw)
        answer, lines = start(product)
        assert (answer["ended"], answer["out"]) == (0, "ran\n"), answer
        calls = calls_in(lines)
        swept = [call for call in calls if OF_SWEEPS.search(call[2])]
        assert len(swept) > 20, "the calls of a sweep are not seen"
        failed = ran = 0
        for _ in range(2 * ROUNDS):  # another start may make fewer of these calls, and then none fails
            if failed == ROUNDS:
                break
            plant_orphans(product.machine, draw)
            name, turn, line = draw.choice(swept if draw.random() < 0.5 else calls)
            error = draw.choice(ERRORS)
            answer, lines = start(product, f"--inject={name}:error={error}:when={turn}")
            has_failed = any("(INJECTED)" in seen for seen in lines)
            failed += has_failed
            ran += has_failed and answer["ended"] == 0
            lost = kept.loses()
            assert lost is None, (name, turn, error, line, lost, [seen for seen in lines if "(INJECTED)" in seen], answer)
        assert failed == ROUNDS, f"only {failed} calls failed in {2 * ROUNDS} starts, so this shows little"
        assert kept.ends_well()
    finally:
        kept.end()
    product.warm_up()  # sweeps what a start left that could not remove it
    product.expect_traces(traces, 10)
    control_seen(f"strace made {failed} calls fail")
    figures(f"{failed} starts beside a session had a call fail, and {ran} of them ran all the same")

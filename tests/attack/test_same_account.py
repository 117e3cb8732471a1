"""The runner's own programs with the agent's account: what an agent of that account, in a session that is not sandboxed, does to them."""

import json
import select
import subprocess
import time

import pytest
from target import DEMO, INSIDE, Outcome

pytestmark = pytest.mark.position("agent")

CONFIG = "/home/alice/.pi/agent"
USERS = "/var/lib/pi-agent/users"
HOOK = "/usr/share/pi-agent/migrations/0.0.2-of-an-attack.sh"
BOBS = "/home/bob/work/demo"
POLICY = "sandbox: {method: none}\nview: host"  # another view has a child that reads /etc, which would be caught first
RUNNER = "pi-agent-runner"
AGE = "0.03"  # of shorter ones nobody would notice that they are stopped
FILES = 2000  # so many that the writer of the configuration can be caught at work
HURRY = 5  # seconds in which another start is through, whatever is stopped
PATIENCE = 20  # what the runner gives such a program, and a slow machine
LEFT = 30  # seconds until nothing is left of a start that was given up


@pytest.fixture(scope="module", autouse=True)
def unconfined(product, weak):
    """Where every agent sees and reaches all processes of its account: nothing but the runner's own care is left."""
    make = f"install -d -o alice -g alice {CONFIG} {CONFIG}/skills && cd {CONFIG}/skills && seq {FILES} | xargs touch && chown alice: *"
    with product.policy_with(POLICY), weak.policy_with(POLICY):
        for target in (product, weak):
            target.machine.root(make, check=True)
        yield
        for target in (product, weak):
            target.end_all()
            target.machine.root(f"rm -rf {CONFIG}/skills {USERS}/alice", check=True)


@pytest.fixture
def slow_hook(product, weak):
    for target in (product, weak):
        target.machine.write(HOOK, "sleep 1\n")
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-f", HOOK], check=True)


def answer_of(session):
    """What the session's agent says of its catch, or None."""
    ready, _, _ = select.select([session.process.stdout], [], [], 40)
    return json.loads(session.process.stdout.readline()) if ready else None


def seconds_of_a_start(target):
    began = time.monotonic()
    done = target.pi("true", user="bob", cwd=BOBS, timeout=60)
    assert done.returncode == 0, done
    return time.monotonic() - began


def catching(action, prepare):
    """alice's start while bob's agent catches a child of its runner: what was caught, what came of the start, whether it was late."""

    def run(target, command=("true",)):
        target.machine.root(prepare, check=True)
        traces = target.quiet_traces()
        catcher = target.session("python3", f"{INSIDE}/catch.py", action, RUNNER, AGE, user="bob", cwd=BOBS)
        starting = target.machine.popen(["pi", *command], cwd=DEMO, stdin=subprocess.DEVNULL)
        answer = answer_of(catcher)
        assert answer and answer["victim"] and "refused" not in answer, f"nothing was caught, so this shows nothing: {answer}"
        other = seconds_of_a_start(target)
        try:
            out, said = starting.communicate(timeout=PATIENCE)
            late = False
        except subprocess.TimeoutExpired:
            target.machine.root(f"kill -CONT {answer['victim']}; true")
            out, said = starting.communicate(timeout=60)
            late = True
        catcher.end()
        return {"answer": answer, "status": starting.returncode, "out": out, "said": said, "late": late, "other": other, "traces": traces}

    return run


FRESH = f"rm -rf {USERS}/alice/home/.pi/agent/skills"


def test_the_writer_of_the_configuration_cannot_be_read_or_traced_by_an_agent_of_its_account(prove):
    run = catching("pry", FRESH)

    def attack(target):
        seen = run(target)
        return Outcome(bool(seen["answer"]["got"]), seen)

    prove(attack, "children-not-dumpable")


def test_a_writer_that_an_agent_of_its_account_stops_is_given_up_and_delays_nobody_else(prove):
    run = catching("stop", FRESH)

    def attack(target):
        seen = run(target)
        target.expect_traces(seen.pop("traces"), LEFT)
        return Outcome(seen["late"], seen)

    on, _ = prove(attack, "sync-deadline", quick=True)
    assert on.seen["status"] == 71 and b"no progress for 5 seconds" in on.seen["said"] and on.seen["other"] < HURRY, on


def test_the_start_after_one_whose_writer_was_stopped_brings_all_in(product):
    catching("stop", FRESH)(product)
    product.pi("true", check=True)
    listing = product.machine.root(f"ls {USERS}/alice/home/.pi/agent/skills | wc -l", check=True).stdout
    assert int(listing) == FILES


def test_a_migration_hook_that_an_agent_of_its_account_stops_is_given_up(prove, slow_hook):
    run = catching("stop", f"echo 0.0.1 >{USERS}/alice/meta/version")

    def attack(target):
        target.pi("true", check=True)
        seen = run(target)
        target.expect_traces(seen.pop("traces"), LEFT)
        return Outcome(seen["late"], seen)

    on, _ = prove(attack, "hook-deadline", quick=True)
    assert on.seen["status"] == 71 and b"migration hook was stopped" in on.seen["said"] and on.seen["other"] < HURRY, on

"""What the numbers of the host's processes tell: the kernel answers some questions about any number, whoever asks."""

import json

import pytest
from recipes import MACHINES
from target import Outcome

pytestmark = pytest.mark.position("agent")

# Asks of one number what needs no right; the answers of the kernel tell whether a process has it, and some of what it does.
ASKING = """
import json, os, sys
number = int(sys.argv[1])
questions = {
    "session": lambda: os.getsid(number), "group": lambda: os.getpgid(number), "niceness": lambda: os.getpriority(os.PRIO_PROCESS, number),
    "policy": lambda: os.sched_getscheduler(number), "existence": lambda: os.kill(number, 0),
}
answers = {}
for name, question in questions.items():
    try:
        answers[name] = question() or 0
    except ProcessLookupError:
        pass
    except PermissionError:
        answers[name] = "there, and not yours"
print(json.dumps(answers))
"""


@pytest.fixture
def with_own_numbers(machine_name):
    if MACHINES[machine_name].systemd < 257:
        pytest.skip(f"systemd {MACHINES[machine_name].systemd} has no PrivatePIDs=: there an agent can tell (docs/security/known-weaknesses.md)")


def test_an_agent_cannot_tell_which_numbers_the_processes_of_the_host_have(with_own_numbers, prove):
    def attack(target):
        somebody = target.machine.popen(["sleep", "60"], user="eve")
        done = target.pi("python3", "-c", ASKING, str(somebody.inside_pid()))
        somebody.kill_all()
        somebody.wait()
        answers = json.loads(done.stdout)
        return Outcome(bool(answers), answers)

    prove(attack, "unit:PrivatePIDs")


def test_the_numbers_in_a_session_begin_with_its_own(with_own_numbers, prove):
    """The launcher is 1 and hides; what is left behind by its parents becomes its child, and does not stay as a zombie."""
    orphans = "for i in 1 2 3 4 5; do (sleep 0.1 & ) ; done; sleep 0.5; ps -eo pid=,ppid=,stat=,comm="

    def attack(target):
        lines = [line.split() for line in target.pi("sh", "-c", orphans, check=True).stdout.decode().splitlines()]
        return Outcome({line[3] for line in lines} != {"sh", "ps"} or any(int(line[0]) >= 40 for line in lines), lines)

    on, _ = prove(attack, "unit:PrivatePIDs")
    assert not [line for line in on.seen if "Z" in line[2]]

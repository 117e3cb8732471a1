"""Signals and calls of any local user on the system bus, where the runner and systemd are reached by everybody."""

import time

import pytest
from target import INSIDE, Outcome

pytestmark = pytest.mark.position("outsider")

CONFIG = "/home/alice/.pi/agent"
FILES = 1000  # so that the child that reads them can be seen at work
TRIES = 6
FLOOD = (200, 4 << 20)  # signals, bytes in each
MEMORY = 100 << 20
STAYING = ("sh", "-c", "echo $PI_AGENT_SESSION; exec sleep 300")

# As alice: starts pi and tells in which control groups its children with her uid were seen, and her own.
WATCHING = """
def group_of(pid):
    return open(f"/proc/{pid}/cgroup").read().strip().splitlines()[-1].split("::")[-1]
wrapper = subprocess.Popen(["pi", "true"], cwd=DEMO, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
seen = set()
while wrapper.poll() is None:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
            if status["Name"].strip() == "pi-agent-runner" and int(status["Uid"].split()[0]) == os.getuid():
                seen.add(group_of(pid))
        except OSError:
            pass
tell({"groups": sorted(seen), "own": group_of("self"), "status": wrapper.returncode, "out": wrapper.stdout.read().decode()})
"""


def test_a_child_of_the_runner_is_never_left_in_its_callers_control_group(prove, product, weak):
    """Whoever believes a signal (anybody can send one) that the scope has been made goes on before the runner is in it."""
    for target in (product, weak):
        target.machine.root(f"install -d -o alice -g alice {CONFIG}/skills && cd {CONFIG}/skills && seq {FILES} | xargs touch", check=True)

    def attack(target):
        answers = []
        for _ in range(TRIES):
            target.machine.root("rm -rf /var/lib/pi-agent/users/alice/home/.pi/agent/skills", check=True)
            # Meanwhile systemd makes no scope: it takes the runner's call, and answers, but its jobs have to wait.
            eve = target.machine.popen(["python3", f"{INSIDE}/bus.py", "busy", "2", "20"], user="eve")
            time.sleep(0.5)
            answers.append(target.play(WATCHING))
            eve.communicate(timeout=30)
            if answers[-1]["own"] in answers[-1]["groups"]:
                return Outcome(True, answers[-1])
        seen = {group.rsplit("/", 1)[-1].split("-run-")[0] for answer in answers for group in answer["groups"]}
        assert "pi-agent" in seen, f"no child was seen at work, so this shows nothing: {answers}"
        return Outcome(False, answers)

    try:
        prove(attack, "kernels-word", quick=True)
    finally:
        for target in (product, weak):
            target.machine.root(f"rm -rf {CONFIG}/skills /var/lib/pi-agent/users/alice/home/.pi/agent/skills", check=True)


def memory_of(target, pid):
    status = target.machine.read(f"/proc/{pid}/status").decode()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def name_on_bus(target, pid):
    names = target.machine.run(["busctl", "list", "--no-legend", "--unique"], user="eve", check=True).stdout.decode()
    (name,) = [line.split()[0] for line in names.splitlines() if line.split()[1] == str(pid)]
    return name


def test_nobody_but_systemd_tells_the_runner_that_its_session_has_ended(prove):
    def attack(target):
        session = target.session(*STAYING)
        name = name_on_bus(target, session.runner_pid())
        path = f"/org/freedesktop/systemd1/unit/pi_2dagent_2d{session.id}_2eservice"
        target.machine.run(["python3", f"{INSIDE}/bus.py", "end", name, path], user="eve", check=True)
        time.sleep(1)
        ended = session.process.poll()
        session.end()
        return Outcome(ended is not None, ended)

    _, off = prove(attack, "signal-sender")
    assert off.seen == 7, "the status that was forged"


def test_forged_signals_fill_no_memory_and_end_no_session(product, control_seen):
    count, size = FLOOD
    session = product.session(*STAYING)
    runner = session.runner_pid()
    name = name_on_bus(product, runner)
    # What is really delivered, as the bus itself tells root.
    watching = f"timeout 60 dbus-monitor --system \"type='signal',member='JobRemoved',destination='{name}'\" | grep -c --line-buffered failed-by-eve"
    watch = product.machine.popen(watching, user="root")
    time.sleep(1)
    product.machine.run(["python3", f"{INSIDE}/bus.py", "forge", name, str(count), str(size)], user="eve", check=True, timeout=120)
    peak = memory_of(product, runner)
    product.machine.root("pkill -x dbus-monitor; true")
    delivered = int(watch.communicate(timeout=30)[0])
    assert delivered > count // 2, f"only {delivered} of {count} signals came through, so this shows nothing"
    control_seen("the bus tells root that the forged signals were delivered")
    assert peak < MEMORY, f"{peak >> 20} MiB after {delivered} signals"
    assert session.process.poll() is None and product.machine.root(["systemctl", "is-active", session.service]).returncode == 0
    session.end()

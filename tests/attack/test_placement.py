"""Sessions run in jobs of the cluster alone: a user of the login node who asks its runner directly gets none, whatever they pretend."""

import time

import pytest
from session import pids_in
from target import DEMO, INSIDE, Outcome

pytestmark = pytest.mark.position("user")

PLACEMENT = "placement: {engine: slurm}"
SLURMS = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURMD_NODENAME": "one"}
ASK = "tell(call(lambda c, s: ask(c, s, ['echo', 'ran'])))"
# Everything below runs as a child of a process with that name and program, whose owner is the user.
IMPOSTOR = """
import shutil
shutil.copy("/usr/bin/bash", "/tmp/slurmstepd")
child = subprocess.run(["/tmp/slurmstepd", "-c", sys.argv[1] + "; true"], capture_output=True)
os.unlink("/tmp/slurmstepd")
print(child.stdout.decode().splitlines()[-1])
"""
# A program of root's with all its ids, under a name and in a directory that the user chose: where the kernel lets users link to it.
LINK = "/home/alice/slurmstepd"
BY_LINK = f"tell(call(lambda c, s: ask(c, s, ['echo', 'ran']), argv=[{LINK!r}, *SUDO[1:]]))"


def assert_refused(outcome):
    assert outcome.seen["status"] == 77 and "your sessions run in jobs of the cluster alone" in str(outcome.seen), outcome


def attack_by(script, **options):
    def attack(target):
        with target.policy_with(PLACEMENT):
            seen = target.play(script, **options)
        return Outcome("ran" in seen["out"], seen)

    return attack


@pytest.mark.parametrize("env", [{}, SLURMS], ids=["plainly", "with a job's variables"])
def test_a_call_of_the_runner_outside_of_jobs_starts_nothing(prove, env):
    on, _ = prove(attack_by(ASK, env=env), "jobs-alone")
    assert_refused(on)


def test_a_program_of_the_users_with_the_name_of_slurms_is_no_job(prove):
    """By its name and its program, but not by its owner."""

    def attack(target):
        with target.policy_with(PLACEMENT):
            line = f"python3 -c {shell_word(target.prelude + ASK)}"
            done = target.machine.run(["python3", "-c", target.prelude + IMPOSTOR, line], user="alice")
        return Outcome(b'"out": "ran' in done.stdout, done)

    on, _ = prove(attack, "jobs-alone")
    assert b"your sessions run in jobs of the cluster alone" in on.seen.stdout, on


def shell_word(text):
    return "'" + text.replace("'", "'\\''") + "'"


def test_a_set_uid_program_by_a_name_of_the_users_is_no_job(prove):
    """sudo that waits for the runner is its parent, and root's with all its ids."""

    def attack(target):
        target.machine.root(["ln", "/usr/bin/sudo", LINK], check=True)
        try:
            with target.sudo_that_waits():
                return attack_by(BY_LINK)(target)
        finally:
            target.machine.root(["rm", LINK], check=True)

    on, _ = prove(attack, "jobs-alone")
    assert_refused(on)


def test_a_wrapper_that_believes_to_be_in_a_job_starts_nothing(prove):
    """Its own look is a convenience: a user may leave it out, and here a canary does."""

    def attack(target):
        with target.policy_with(PLACEMENT):
            done = target.machine.run(["pi", "--pi-agent-canary"], user="alice", cwd="/home/alice/projects/demo", env=SLURMS)
        return Outcome(b'"findings"' in done.stdout, done)

    on, _ = prove(attack, "jobs-alone")
    assert on.seen.returncode == 77 and b"E77-job" in on.seen.stderr, on


# A program of root's that looks like Slurm's, with alice's wrapper below it. As by sbatch: no terminal and no pipe ends with the job.
STEP = f"{INSIDE}/slurmstepd"
IN_A_JOB = f"""cd {DEMO}; setpriv --reuid=alice --regid=alice --init-groups --reset-env pi sh -c 'echo $PI_AGENT_SESSION; exec sleep 60'; true"""
SECONDS = 10


def test_a_session_ends_with_its_job_though_the_jobs_processes_live_on(prove):
    """Slurm may not end them, or its own process dies first; and a user may hand the runner's socket to a process outside of the job."""

    def attack(target):
        target.machine.root(["cp", "/usr/bin/bash", STEP], check=True)
        try:
            with target.policy_with(PLACEMENT):
                process = target.machine.popen([STEP, "-c", IN_A_JOB], user="root")
                identity = process.stdout.readline().decode().strip()
            assert len(identity) == 32, process.stderr.read()
            unit = f"pi-agent-{identity}.service"
            assert pids_in(target.machine, unit)
            target.machine.root(["pkill", "-KILL", "-x", "slurmstepd"], check=True)
            until = time.monotonic() + SECONDS
            while (left := pids_in(target.machine, unit)) and time.monotonic() < until:
                time.sleep(0.1)
            process.kill_all()
            _, said = process.communicate()
            return Outcome(bool(left), said)
        finally:
            target.machine.root(["rm", STEP], check=True)

    on, _ = prove(attack, "job-end")
    assert b"the job of the cluster has ended" in on.seen, on

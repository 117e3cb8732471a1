"""Debuggers work in a session, on its own processes: what their calls try on the launcher, on neighbours, on the host, and on the filters."""

import contextlib
import json

import pytest
from engine import engine_of, named_method
from recipes import MACHINES
from target import INSIDE, USER_NAMESPACE, Outcome
from test_inside import AS_ROOT, FILTERS, LAUNCHER

pytestmark = pytest.mark.position("agent")

ALWAYS, NEVER = "hardening: {tracing: always}", "hardening: {tracing: never}"
WALLS = {"user namespace": USER_NAMESPACE, "process numbers": ("unit:PrivatePIDs",), "Landlock": ("landlock",)}
ALL_WALLS = tuple(name for wall in WALLS.values() for name in wall)
DEBUGGING = ("attach", "seize", "process_vm_readv", "process_vm_writev", "kcmp")  # what was refused before, whoever it was tried on
REACHING = (*DEBUGGING, "/proc/PID/mem")
PUT_IN = ("unshare", "io_uring_setup", "keyctl", "userfaultfd", "personality")
NO_FILTERS = (*FILTERS, "unit:RestrictNamespaces")


def look(target, *whom, **options):
    """{whom: {call: answer}} of inside/tracing.py, as the agent."""
    done = target.pi("python3", f"{INSIDE}/tracing.py", *whom, **options)
    assert done.returncode == 0, done
    return json.loads(done.stdout.splitlines()[-1])


def reached(answers):
    return {call: answer for call, answer in answers.items() if answer == "done"}


def on(whom, *calls):
    """The attack that reaches a process by one of these calls."""

    def attack(target):
        answers = look(target, whom)[whom]
        return Outcome(bool(reached({call: answers[call] for call in calls or REACHING})), answers)

    return attack


@contextlib.contextmanager
def neighbours(target, user="alice"):
    """The number of a process of another session of the same account."""
    victim = target.session("python3", f"{INSIDE}/victim.py", user=user)
    yield str(victim.agent_pid())
    victim.end()


# --- What works.


def test_a_session_traces_its_own_processes_and_nothing_of_it_lifts_a_filter(product, weak, seen_to_work):
    for target in (product, weak):
        answers = look(target, "own")["own"]
        assert set(reached(answers)) == {*REACHING, "TRACEME"}, answers
        assert answers["pidfd_getfd"] == answers["suspended filters"] == "EPERM"
    with weak.without(*FILTERS):
        assert look(weak, "own")["own"]["pidfd_getfd"] == "done"
    seen_to_work(FILTERS)


# --- The launcher: of the same account, in the same session.


@pytest.mark.parametrize("call", REACHING)
def test_the_launcher_is_out_of_reach_of(call, prove):
    prove(on("launcher", call), *LAUNCHER)


def test_a_descriptor_of_the_launcher_is_out_of_reach(prove):
    prove(on("launcher", "pidfd_getfd"), *LAUNCHER, *FILTERS)


@pytest.mark.parametrize("kept", LAUNCHER)
def test_each_of_the_launchers_two_defences_is_enough(kept, weak, seen_to_work):
    with weak.without(*(name for name in LAUNCHER if name != kept)):
        assert not reached(look(weak, "launcher")["launcher"])
    with weak.without(*LAUNCHER):
        assert set(reached(look(weak, "launcher")["launcher"])) >= {"seize", "process_vm_readv", "kcmp"}
    seen_to_work(LAUNCHER)


@pytest.mark.parametrize("method", ["bwrap", "podman", "docker"])
def test_under_every_method_the_own_processes_are_reached_and_the_launcher_is_not(method, prove, product, weak):
    with contextlib.ExitStack() as stack:
        for target in (product, weak):
            stack.enter_context(engine_of(target.machine, method))
            stack.enter_context(target.policy_with(f"sandbox: {named_method(method)}"))
        assert set(reached(look(product, "own")["own"])) == {*REACHING, "TRACEME"}
        prove(on("launcher"), *LAUNCHER)


# --- A neighbour: another session of the same account, whoever started it.


@pytest.mark.parametrize("wall", WALLS)
def test_each_wall_alone_keeps_a_debugger_from_the_neighbour(wall, machine_name, weak, seen_to_work):
    if wall == "process numbers" and MACHINES[machine_name].systemd < 257:
        pytest.skip("this systemd has no PrivatePIDs=")
    others = tuple(name for name in ALL_WALLS if name not in WALLS[wall])
    with weak.policy_with(ALWAYS):
        with weak.without(*others), neighbours(weak) as victim:
            assert not reached(look(weak, victim)[victim])
        with weak.without(*ALL_WALLS), neighbours(weak) as victim:
            assert set(reached(look(weak, victim)[victim])) == {*REACHING}
    seen_to_work(ALL_WALLS)


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_a_debugger_reaches_no_session_of_the_same_account(user, prove):
    cwd = {"alice": "/home/alice/projects/demo", "bob": "/home/bob/work/demo"}[user]

    def attack(target):
        with neighbours(target) as victim:
            answers = look(target, victim, user=user, cwd=cwd)[victim]
        return Outcome(bool(reached(answers)), answers)

    prove(attack, *ALL_WALLS, *FILTERS)


# --- Where neither Landlock nor process numbers of its own keep it in the session.


def traced_at_all(target):
    answers = look(target, "own")["own"]
    return Outcome(bool(reached({call: answers[call] for call in (*DEBUGGING, "TRACEME")})), answers)


def test_without_landlock_and_process_numbers_nothing_is_traced(weak, seen_to_work):
    """As on a kernel that lacks Landlock."""
    bare = ("unit:PrivatePIDs", "landlock")
    with weak.without(*bare):
        assert not traced_at_all(weak).succeeded
    with weak.without(*bare, *FILTERS):
        assert traced_at_all(weak).succeeded
    seen_to_work(FILTERS)


def test_the_policy_takes_it_back(prove, product, weak):
    with product.policy_with(NEVER), weak.policy_with(NEVER):
        prove(traced_at_all, *FILTERS)


def test_the_policy_opens_it_all_the_same_and_the_user_namespace_holds(weak, control_seen):
    with weak.policy_with(ALWAYS), weak.without("unit:PrivatePIDs", "landlock"), neighbours(weak) as victim:
        answers = look(weak, "own", victim)
    assert set(reached(answers["own"])) == {*REACHING, "TRACEME"} and not reached(answers[victim])
    control_seen("the same calls reach the session's own processes")


# --- The host.


def test_processes_of_the_host_are_out_of_reach(product, weak, control_seen):
    """The runner, the first process, one of the user's, and one of nobody's session that has the agent's account."""
    everybody = []
    for target in (product, weak):
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION; sleep 60")
        running = [target.machine.popen(["sleep", "60"], user=user) for user in ("alice", "pi-agent")]
        victims = [str(session.runner_pid()), "1", *(str(one.inside_pid()) for one in running)]
        answers = look(target, *victims)
        reaching = json.loads(target.machine.root(["python3", f"{INSIDE}/tracing.py", *victims[2:]], check=True).stdout)
        for one in running:
            one.kill_all()
            one.wait()
        session.end()
        # Where a session has numbers of its own, 1 is its launcher.
        assert not [victim for victim in victims if reached(answers[victim])], answers
        everybody.append(all("seize" in reached(reaching[victim]) for victim in victims[2:]))
    assert all(everybody)
    control_seen("root reaches the same processes by the same calls")


# --- The filters: the kernel asks them after a tracer has had its say (since Linux 4.8).


@pytest.mark.parametrize("way", ["entry", "filter"])
def test_a_call_that_a_tracer_puts_in_is_judged_all_the_same(way, prove):
    def attack(target):
        answers = {name: each[way] for name, each in look(target, "after", *PUT_IN).items()}
        return Outcome(any(answer != "EPERM" for answer in answers.values()), answers)

    _, off = prove(attack, *NO_FILTERS)
    assert "EPERM" not in off.seen.values(), off


def test_no_tracer_suspends_the_filters(prove):
    def attack(target):
        answer = look(target, "own")["own"]["suspended filters"]
        return Outcome(answer != "EPERM", answer)

    prove(attack, *AS_ROOT)


def test_a_set_uid_program_that_is_traced_has_no_more_rights(product, control_seen):
    trace = (
        "import os, sys; sys.path.insert(0, %r); from tracing import *\n"
        "child = os.fork()\n"
        "if child == 0:\n    traced(TRACEME, 0); os.execv(%r, ['id', '-u'])\n"
        "wait_for_stop(child); traced(CONT, child); os.waitpid(child, 0)\n" % (INSIDE, f"{INSIDE}/setuid-id")
    )
    inside = product.pi("python3", "-c", trace)
    outside = product.machine.run([f"{INSIDE}/setuid-id", "-u"], user="alice")
    assert inside.returncode == 0 and inside.stdout.split() not in ([], [b"0"]), inside
    assert outside.stdout.split() == [b"0"]
    control_seen("the same program is root's outside, untraced")

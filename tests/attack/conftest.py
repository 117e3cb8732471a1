"""Two machines for each attack: one with the product as it is installed, one with a build whose defences can be taken out."""

import os

import pytest
import record_check
from cache import WITH_SEAMS, Build
from machine import Machine
from target import ATTACK_POLICY, Outcome, Target, prepare

STANDARD_POLICY = (ATTACK_POLICY.parents[1] / "machine" / "policy.yaml").read_text()

# Who attacks. "host": nobody, but the host is not as it should be; "tests": nobody, it is about these tests themselves.
POSITIONS = ("user", "outsider", "agent", "host", "tests")


def pytest_configure(config):
    config.addinivalue_line("markers", f"position(name): who attacks, one of {', '.join(POSITIONS)} (docs/assurance-rows.txt.gz)")


def pytest_itemcollected(item):
    position = item.get_closest_marker("position")
    if not position or position.args[0] not in POSITIONS:
        raise pytest.UsageError(f"{item.nodeid}: mark who attacks: pytest.mark.position({' | '.join(POSITIONS)})")
    item.user_properties.append(("position", position.args[0]))


@pytest.fixture(scope="session")
def weak_machine(machine_name):
    """A machine like `machine`, with the product built with test seams: Target.without() takes defences out of it."""
    with Machine(f"weak-{os.getpid()}", machine_name) as booted:
        booted.create(agent=None)
        booted.install(Build(machine_name, **WITH_SEAMS))
        booted.boot()
        yield booted
        record_check.require_valid(booted, forms=False)
        booted.stop()


@pytest.fixture(scope="session")
def weak_target(weak_machine):
    prepare(weak_machine)
    weak_machine.install_policy(ATTACK_POLICY.read_text())
    target = Target(weak_machine, has_seams=True)
    target.warm_up()
    return target


@pytest.fixture(scope="session")
def prepared_machine(machine):
    prepare(machine)
    return machine


@pytest.fixture(scope="module")
def product(prepared_machine):
    """The product as it is installed, with the policy of the attack tests; the standard policy comes back afterwards."""
    switch_policy(prepared_machine, ATTACK_POLICY.read_text())
    target = Target(prepared_machine)
    target.warm_up()
    yield target
    target.end_all()
    switch_policy(prepared_machine, STANDARD_POLICY)


def switch_policy(machine, text):
    """The two policies give agents other accounts, and `apply` refuses one under which an account could not use the home that is there."""
    machine.root("rm -rf /var/lib/pi-agent/users/*", check=True)
    machine.install_policy(text)


@pytest.fixture(scope="module")
def weak(weak_target):
    """The same product with seams; with nothing taken out it must behave as `product` does."""
    yield weak_target
    weak_target.end_all()


@pytest.fixture
def seen_to_work(request):
    """seen_to_work(defences): notes that the attack of this case was just seen to succeed without them."""

    def note(defences):
        assert defences, "an attack that needs no defence to be out works on the product"
        request.node.user_properties.append(("works without", ", ".join(defences)))

    return note


@pytest.fixture
def control_seen(request):
    """control_seen(what): notes, once in a case, what was just seen that shows that the case can fail.

    For what no single defence can be taken out of: the same look finds, on the host, as root or before, what the attacker is not to find;
    or the attack itself was seen to take place.
    """

    def note(what):
        request.node.user_properties.append(("control", what))

    return note


@pytest.fixture
def figures(request):
    """figures(text): what a long run measured, once in a case (docs/assurance-rows.txt.gz)."""

    def note(text):
        request.node.user_properties.append(("figures", text))

    return note


@pytest.fixture(scope="module")
def right_calls(product):
    """Runs an agent by the calls of inside/client.py, which wrong calls are compared with: through sudo, and as root instead of sudo."""
    directly = ", argv=DIRECT, pair=socket_made_by(1000), env={'SUDO_UID': '1000'}"
    for user, how in (("alice", ""), ("root", directly)):
        answer = product.play(f"tell(call(lambda c, s: ask(c, s, ['true']){how}))", user=user)
        assert answer["ended"] == 0, answer


@pytest.fixture
def right_call_seen(right_calls, control_seen):
    """For refusals of a call: notes that nothing but what is wrong in it keeps an agent from running."""
    control_seen("the same call with nothing wrong in it runs an agent")


@pytest.fixture
def prove(product, weak, seen_to_work):
    """prove(attack, *defences): the attack fails on the product, and succeeds when these defences are taken out.

    attack(target) returns an Outcome. A test that cannot see its attack succeed proves nothing, so that is a failure.
    Returns what the attack got from the product and what it got without the defences. `quick`: leaves out the third run, which
    shows that the build with seams behaves as the product does while nothing is taken out of it.
    """

    def prove(attack, *defences, quick=False):
        on = attack(product)
        assert not on.succeeded, f"the attack works: {on}"
        if not quick:
            intact = attack(weak)
            assert not intact.succeeded, f"the build with seams differs from the product even with every defence in: {intact}"
        with weak.without(*defences):
            off = attack(weak)
        assert off.succeeded, f"without {', '.join(defences)} the attack should work, so this test proves nothing: {off}"
        seen_to_work(defences)
        return on, off

    return prove


@pytest.fixture
def nothing_left(product):
    """Fails the test when it leaves a mount, unit, directory or process behind on the product's machine."""
    before = product.quiet_traces()
    yield
    product.expect_traces(before)


@pytest.fixture
def outcome_of_probe():
    """The attack that is one probe of inside/probe.py, and succeeds when its answer is "done"."""

    def attack_with(name, **options):
        def attack(target):
            seen = target.probe(name, **options)[name]
            return Outcome(seen == "done", seen)

        return attack

    return attack_with

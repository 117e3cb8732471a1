"""YAML and JSON made to explode, to confuse or to cost: the agent's documents, which its next start merges, the user's, and the policy."""

import json
import time

import pytest
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("agent")

CONFIG = "/home/alice/.pi/agent"
STATE = "/var/lib/pi-agent/users/alice/home/.pi/agent"
MARKER = b"quokka-settings-3307"
INVALID = 78
SECONDS = 20  # for a whole start, on a busy machine; the writer's own bound is five seconds without progress
# Files that are not documents: each as Python that the test, or the agent, evaluates to bytes.
BROKEN = {
    "a list a hundred thousand deep": "b'{\"a\":' + b'[' * 100000 + b']' * 100000 + b'}'",
    "an object a hundred thousand deep": "b'{\"a\":' * 100000 + b'1' + b'}' * 100000",
    "a hundred megabytes": "b'{\"a\":\"' + b'x' * 100_000_000 + b'\"}'",
    "a NUL": "b'{\"a\":\"\\0\"}'",
    "a NUL after its end": "b'{}\\0{}'",
    "no UTF-8": "b'{\"a\":\"\\xff\\xfe\"}'",
    "no object": "b'[1]'",
    "nothing": "b''",
    "half an object": "b'{\"a\":'",
    "two objects": "b'{}{}'",
}
# Valid, and odd: the agent's own key must be there afterwards.
ODD = {
    "eighty thousand objects in a list": "b'{\"own\":[{}' + b',{}' * 80_000 + b']}'",
    "half a million objects in a list": "b'{\"own\":[{}' + b',{}' * 500_000 + b']}'",
    "eighty thousand keys": "b'{\"own\":{' + b','.join(b'\"k%d\":{}' % n for n in range(80_000)) + b'}}'",
    "the managed key twice": "b'{\"own\":1,\"managedMarker\":\"mine\",\"managedMarker\":\"mine too\"}'",
    "the managed key in other letters": "b'{\"own\":1,\"managed\\\\u004darker\":\"mine\"}'",
    "a huge number": "b'{\"own\":1,\"n\":1.7976931348623157e308,\"m\":-99999999999999999999999999}'",
    "a number beyond all": "b'{\"own\":1,\"n\":1e999}'",
    "a number of a million digits": "b'{\"own\":1,\"n\":' + b'9' * 1_000_000 + b'.0}'",
    "a number that is nearly nothing": "b'{\"own\":1,\"n\":1e-999}'",
    "half a surrogate pair": "b'{\"own\":1,\"s\":\"\\\\ud800\"}'",
    "both halves in the wrong order": "b'{\"own\":1,\"s\":\"\\\\udc00\\\\ud800\"}'",
    "a whole surrogate pair": "b'{\"own\":1,\"s\":\"\\\\ud83d\\\\ude00\"}'",
    "the name of an inner key": "b'{\"own\":1,\"__proto__\":{\"a\":1},\"\":{\"\":{}}}'",
    "128 levels": "b'{\"own\":' + b'[' * 127 + b']' * 127 + b'}'",
}


@pytest.fixture(scope="module", autouse=True)
def as_before(product, weak):
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-rf", STATE], check=True)


def leave(target, name, expression):
    """What the agent of one session leaves in its home for the next one."""
    target.pi("python3", "-c", f"import os; open(os.environ['HOME'] + '/.pi/agent/{name}', 'wb').write({expression})", check=True)


def next_start(target):
    """(result of the next start, which shows the settings; seconds that it took)"""
    start = time.monotonic()
    done = target.pi("sh", "-c", "cat $HOME/.pi/agent/settings.json")
    return done, time.monotonic() - start


@pytest.mark.parametrize("kind", BROKEN)
def test_the_agent_keeps_nobody_from_starting_with_settings_that_are(kind, prove):
    def attack(target):
        leave(target, "settings.json", BROKEN[kind])
        try:
            done, seconds = next_start(target)
        finally:
            target.machine.root(["rm", f"{STATE}/settings.json"], check=True)
        return Outcome(done.returncode != 0 or MARKER not in done.stdout or seconds > SECONDS, (done.returncode, done.stdout[:200], done.stderr, seconds))

    prove(attack, "broken-inside", quick=True)


@pytest.mark.parametrize("name", ["models.json", "auth.json", "mcp-auth.json"])
@pytest.mark.parametrize("kind", ["a list a hundred thousand deep", "a hundred megabytes", "half an object", "no UTF-8"])
def test_nor_with_another_document(name, kind, product, control_seen):
    leave(product, name, BROKEN[kind])
    assert int(product.machine.root(["stat", "-c", "%s", f"{STATE}/{name}"], check=True).stdout) == len(eval(BROKEN[kind]))
    control_seen("the broken document lay there when the start began")
    done, seconds = next_start(product)
    product.machine.root(f"rm -f {STATE}/{name}*", check=True)
    assert done.returncode == 0 and MARKER in done.stdout and seconds < SECONDS, done


@pytest.mark.parametrize("kind", ODD)
def test_the_agents_odd_settings_are_merged_and_the_policys_stay_with(kind, product, control_seen):
    """Those with many objects ended the next start before nesting was looked at first: the parser compared each with all before it."""
    leave(product, "settings.json", ODD[kind])
    done, seconds = next_start(product)
    product.machine.root(["rm", f"{STATE}/settings.json"], check=True)
    assert done.returncode == 0 and seconds < SECONDS, (done.returncode, done.stderr, seconds)
    merged = json.loads(done.stdout)
    assert merged["managedMarker"] == MARKER.decode() and "own" in merged
    control_seen("the agent's own key is in what was merged")


@pytest.mark.position("user")
@pytest.mark.parametrize("kind", BROKEN)
def test_a_users_settings_end_that_users_start_in_words_when_they_are(kind, product, control_seen):
    before = product.machine.read(f"{CONFIG}/settings.json")
    product.machine.write(f"{CONFIG}/settings.json", eval(BROKEN[kind]), owner="alice")
    try:
        done, seconds = next_start(product)
        other = product.pi("true", user="bob", cwd="/home/bob/work/demo")
    finally:
        product.machine.write(f"{CONFIG}/settings.json", before, owner="alice")
    assert done.returncode == INVALID and b"settings.json" in done.stderr and seconds < SECONDS, (done.returncode, done.stderr, seconds)
    assert len(done.stderr) < 1000 and other.returncode == 0, (done.stderr, other)
    assert next_start(product)[0].returncode == 0
    control_seen("with her settings as they were she starts")


def explosion():
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(["a0: &a0 [x]", *levels]) + "\n"


# Replaces the whole policy, or follows it.
POLICIES = {
    "anchors that explode": (explosion(), "anchors and aliases"),
    "an anchor that holds itself": (ATTACK_POLICY.read_text() + "x: &x [*x]\n", "anchors and aliases"),
    "a list a hundred thousand deep": (ATTACK_POLICY.read_text() + "x: " + "[" * 100_000 + "]" * 100_000 + "\n", "nested more than"),
    "a mapping a hundred thousand deep": (ATTACK_POLICY.read_text() + "x: " + "{a: " * 100_000 + "}" * 100_000 + "\n", "nested more than"),
    "dashes a hundred thousand deep": (ATTACK_POLICY.read_text() + "x:\n" + "- " * 100_000 + "\n", "nested more than"),
    "a hundred megabytes": (ATTACK_POLICY.read_text() + "#" * 100_000_000 + "\n", "larger than"),
    "a NUL": (ATTACK_POLICY.read_text() + "x: \0\n", ""),
    "no UTF-8": (ATTACK_POLICY.read_text().encode() + b"x: \xff\xfe\n", ""),
    "users twice": (ATTACK_POLICY.read_text() + "users: {eve: {roots: [/srv/shared/app]}}\n", "twice"),
    "a tab": (ATTACK_POLICY.read_text() + "\tx: 1\n", ""),
    "a number for a list": (ATTACK_POLICY.read_text().replace("[~/work]", "7"), "roots"),
    "another document": (ATTACK_POLICY.read_text() + "---\nusers: {eve: {roots: [/srv/shared/app]}}\n", ""),
}


@pytest.mark.position("host")
@pytest.mark.parametrize("kind", POLICIES)
def test_a_policy_lets_nobody_in_and_keeps_nobody_waiting_that_is(kind, product, control_seen):
    text, said = POLICIES[kind]
    product.machine.write("/etc/pi-agent/policy.yaml", text)
    try:
        start = time.monotonic()
        answer = product.play("tell(call(lambda c, s: ask(c, s, ['true'])))")
        seconds = time.monotonic() - start
        told = product.machine.root(["pi-agentctl", "check"]).stderr.decode()
    finally:
        product.machine.write("/etc/pi-agent/policy.yaml", ATTACK_POLICY.read_text())
    assert answer["ended"] is None and answer["status"] == INVALID and seconds < SECONDS, (answer, seconds)
    assert "pi-agentctl check" in answer["said"] or (said and said in answer["said"]), answer
    assert len(answer["said"]) < 400, answer
    assert "policy.yaml" in told and said in told and len(told) < 4000, told
    assert product.play("tell(call(lambda c, s: ask(c, s, ['true'])))")["ended"] == 0
    control_seen("with the policy as it was the same call runs an agent")


def test_a_package_json_of_many_objects_hides_no_door_that_a_session_opened(product):
    """Its reader gave up after two seconds, and pi could only say that it did not know what was left."""
    leaving = "open('package.json', 'w').write('{\"scripts\":{},\"x\":[{}' + ',{}' * 300_000 + ']}'); open('.envrc', 'w').write('touch x')"
    done = product.pi("python3", "-c", leaving)
    product.machine.root("cd /home/alice/projects/demo && rm package.json .envrc", check=True)
    assert b"pi: Review before you go on: this session added or changed files that run code outside the sandbox:" in done.stderr and b".envrc" in done.stderr, done

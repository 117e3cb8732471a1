"""`pi-agentctl show --schema` says of a policy what `pi-agentctl check` says of its shape."""

import contextlib
import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from broken_policies import read_broken_policies
from cache import SOURCE, node_modules

# What a JSON Schema can say too: kinds of values, keys, choices, what is required, names. docs/reference/policy-files.md lists what it cannot.
SHAPE = re.compile(
    r"must be |unknown (?:key|value)|missing$|another value than |has no (?:roots|path|key_file)$"
    r"|is empty$|is nothing, |is an empty list$|.* is not a plain name$|is \d+, which is newer"
)
KNOWN_OF_USERS = (
    "known here: roots, readable, config, run_as, ssh, signing, env, wrapper, projects, settings, models, keybindings, mcp, settings_lock, mcp_lock, env_files, "
    "network, providers, toolchains, view_paths, path, devices, scratch, limits, placement"
)
VALUES = [None, True, 5, 1.5, "word", "", [], ["word"], [5], {}, {"word": "word"}]


@pytest.fixture(scope="module")
def schema(machine):
    return json.loads(machine.root(["pi-agentctl", "show", "--schema"], check=True).stdout)


def validate(schema, policies):
    """What the schema says against each policy; None for one that is not YAML."""
    script = Path(__file__).with_name("validate_policies.mjs")
    question = json.dumps({"schema": schema, "policies": policies})
    done = subprocess.run(["node", script, node_modules("schema")], input=question, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def check(machine, policies):
    """What check says against each policy."""
    script = "while IFS= read -r -d '' text; do printf '%s' \"$text\" >draft.yaml; pi-agentctl check --json draft.yaml; printf '\\0'; done; rm draft.yaml"
    done = machine.root(["bash", "-c", script], cwd="/root", input="".join(f"{policy}\0" for policy in policies).encode(), timeout=300)
    answers = done.stdout.decode().split("\0")[:-1]
    assert len(answers) == len(policies)
    reports = [json.loads(answer) for answer in answers]
    assert all(report["version"] == 1 and report["valid"] == (not report["errors"]) for report in reports)
    return [[f"{error['key']}: {error['message']}" for error in report["errors"]] for report in reports]


def is_about_shape(error):
    return SHAPE.match(error.split(": ", 1)[1]) is not None


def paths_of(schema, path=()):
    """Every key of the schema; a free name is `*`."""
    for name, below in schema.get("properties", {}).items():
        yield (*path, name)
        yield from paths_of(below, (*path, name))
        for item in below.get("items", {}).get("anyOf", []):  # a root may be a mapping
            yield from paths_of(item, (*path, name, "[]"))
    if isinstance(schema.get("additionalProperties"), dict):
        yield (*path, "*")
        yield from paths_of(schema["additionalProperties"], (*path, "*"))


def policy_with(path, value):
    """A policy that is valid except for this value."""
    policy = {"version": 1, "users": {"alice": {"roots": ["~/projects"]}}}
    put(policy, path, value)
    return json.dumps(policy)  # which is YAML, too


def put(policy, path, value):
    names = ["alice" if part == "*" and path[0] == "users" and index == 1 else ("anthropic" if "providers" in path else "A") if part == "*" else part for index, part in enumerate(path)]
    at = policy
    for name in names[:-1]:
        if name == "roots":
            at["roots"] = [{"path": "~/projects"}]
            at = at["roots"][0]
        elif name != "[]":
            at = at.setdefault(name, {})
    at[names[-1]] = value


def test_the_schema_takes_the_examples(schema):
    examples = [file.read_text() for file in sorted((SOURCE / "policy-examples").glob("*.yaml"))]
    assert len(examples) >= 3
    assert validate(schema, examples) == [[]] * len(examples)


def test_the_schema_refuses_what_has_another_shape_and_nothing_else(schema):
    shapes, rules = (read_broken_policies(kind) for kind in ("shapes", "rules"))
    assert [title for title, errors in zip(shapes, validate(schema, list(shapes.values())), strict=True) if not errors] == []
    assert [(title, errors) for title, errors in zip(rules, validate(schema, list(rules.values())), strict=True) if errors] == []


def test_parser_and_schema_agree_on_every_kind_of_value_of_every_key(machine, schema):
    paths = list(paths_of(schema))
    assert ("users", "*", "ssh", "key") in paths and ("users", "*", "roots", "[]", "network") in paths and len(paths) > 100
    policies = [policy_with(path, value) for path in paths for value in VALUES]
    said, told = check(machine, policies), validate(schema, policies)
    apart = [(policy, errors, against) for policy, errors, against in zip(policies, said, told, strict=True)
             if any(map(is_about_shape, errors)) != bool(against)]  # fmt: skip
    assert apart == []


def examples_of(schema, path=()):
    """{path: examples} of every key of the schema."""
    for name, below in schema.get("properties", {}).items():
        yield (*path, name), below.get("examples", [])
        yield from examples_of(below, (*path, name))
        for item in below.get("items", {}).get("anyOf", []):
            yield from examples_of(item, (*path, name, "[]"))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from examples_of(schema["additionalProperties"], (*path, "*"))


def test_parser_and_schema_agree_on_policies_drawn_at_random(machine, schema):
    """At every level, several values at once, of which most stand there. A part of 10,000 by default; PI_AGENT_FULL=1 for all."""
    draw = random.Random(os.environ.get("PI_AGENT_SEED", "0"))
    examples = dict(examples_of(schema))
    paths = [path for path in paths_of(schema) if path not in {("users",), ("users", "*"), ("version",)}]
    policies = []
    for _ in range(10000 if os.environ.get("PI_AGENT_FULL") else 300):
        policy = {"version": 1, "agent": {"accounts": "shared"}, "users": {"alice": {"roots": ["~/projects"]}}}
        for path in sorted(draw.sample(paths, draw.randint(1, 4)), key=len):  # what is around a value first
            good = examples.get(path, [])
            value = draw.choice(good) if good and draw.random() < 0.8 else draw.choice(VALUES)
            with contextlib.suppress(AttributeError, TypeError):  # below a value that is no mapping
                put(policy, path, value)
        policies.append(json.dumps(policy))
    for first in range(0, len(policies), 1000):
        part = policies[first : first + 1000]
        said, told = check(machine, part), validate(schema, part)
        apart = [(policy, errors, against) for policy, errors, against in zip(part, said, told, strict=True)
                 if any(map(is_about_shape, errors)) != bool(against)]  # fmt: skip
        assert apart == []


def test_a_broken_policy_is_told_with_its_line_by_check_and_by_apply(machine):
    text = "version: 1\nusers:\n  alice:\n    root: [~/projects]\n"
    machine.write("/root/draft.yaml", text)
    done = machine.root(["pi-agentctl", "check", "/root/draft.yaml"])
    assert (done.returncode, done.stdout) == (78, b""), done
    # Messages about this host, whatever the policy, come besides.
    assert [line for line in done.stderr.decode().splitlines() if not line.startswith("pi-agentctl: warning: this host has no ")] == [
        f"pi-agentctl: /root/draft.yaml:4:5: users.alice.root: unknown key; did you mean 'roots'?; {KNOWN_OF_USERS}",
        "    4 |     root: [~/projects]",
        "      |     ^",
        "pi-agentctl: /root/draft.yaml:3:3: users.alice: has no roots; add 'roots' with at least one directory, or remove the user",
        "    3 |   alice:",
        "      |   ^",
        "pi-agentctl: see: pi-agentctl explain E78-policy",
    ]
    report = json.loads(machine.root(["pi-agentctl", "check", "--json", "/root/draft.yaml"]).stdout)
    assert report["errors"][0] == {
        "file": "/root/draft.yaml", "line": 4, "column": 5, "key": "users.alice.root",
        "message": "unknown key; did you mean 'roots'?", "remedy": KNOWN_OF_USERS}  # fmt: skip
    machine.root("cp /etc/pi-agent/policy.yaml /root/saved && cp /root/draft.yaml /etc/pi-agent/policy.yaml", check=True)
    try:
        for command in ("apply", "explain", "doctor"):
            done = machine.root(["pi-agentctl", command, *(["--user=alice"] if command == "explain" else [])])
            assert done.returncode == 78 and b"\n    4 |     root: [~/projects]\n      |     ^\n" in done.stderr, done
    finally:
        machine.root("cp /root/saved /etc/pi-agent/policy.yaml; rm /root/saved /root/draft.yaml", check=True)


def test_what_is_valid_has_no_errors_and_says_what_root_could_verify(machine):
    report = json.loads(machine.root(["pi-agentctl", "check", "--json"], check=True).stdout)
    assert (report["version"], report["valid"], report["errors"]) == (1, True, [])
    assert any("users.%devs" in text for text in report["unverified"])

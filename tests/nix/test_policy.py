"""The policies that the module writes are what people would write by hand, and the options are the keys of the policy."""

import json

import pytest
from evaluating import HERE, SOURCE, as_built, evaluate_modules, nix, read_yaml

BY_HAND = {file.stem: file.read_text() for file in sorted((HERE / "policies").glob("*.yaml"))}


@pytest.fixture(scope="module")
def schema(product):
    return product.schema()


@pytest.fixture(scope="module")
def keys():
    return nix(SOURCE / "nix/keys.nix")


@pytest.fixture(scope="module")
def made():
    """Keys that no option of the table writes."""
    values = "{ hostUsers = {}; }"
    return set(nix("--expr", f"builtins.attrNames (import {SOURCE}/nix/policy.nix {{ binary = \"/a/b\"; values = {values}; }}).made"))


def leaves(schema, path=()):
    """{key: its schema}, without those of mappings of further keys; a free name is `*`."""
    for name, below in schema["properties"].items():
        if "properties" in below:
            yield from leaves(below, (*path, name))
        elif name == "users":
            yield from leaves(below["additionalProperties"], (*path, name, "*"))
        else:
            yield ".".join((*path, name)), below


def type_in(schema):
    """What keys.nix says of a key whose schema this is."""
    if "enum" in schema:
        return {"oneOf": schema["enum"]}
    if "anyOf" in schema.get("items", {}):
        return "roots"
    if "anyOf" in schema:
        return {"oneOf": schema["anyOf"][0]["enum"], "orList": True} | ({"orHosts": True} if len(schema["anyOf"]) == 3 else {})
    values = schema.get("additionalProperties")
    if values and "properties" in values:
        return "providers"
    if values:
        return {"valuesOf": values["enum"]} if "enum" in values else "variables"
    return {"boolean": "bool", "integer": "count", "array": "list", "object": "document", "string": "text", None: "text"}[schema.get("type")]


def table(keys):
    return {entry["key"]: entry for entry in keys["policy"]} | {f"users.*.{entry['key']}": entry for entry in keys["users"]}


def test_every_key_of_the_policy_is_an_option_and_no_option_is_anything_else(schema, keys, made):
    known = dict(leaves(schema))
    ours = set(table(keys)) | made
    assert len(known) > 45 and len(ours) == len(table(keys)) + len(made)
    assert ours == set(known)


def test_types_and_defaults_of_the_options_are_those_of_the_keys(schema, keys):
    known = dict(leaves(schema))
    for key, entry in table(keys).items():
        empties = {"list": [], "roots": [], "variables": {}, "document": {}, "providers": {}}
        nothing = empties.get(entry["type"]) if isinstance(entry["type"], str) else {} if "valuesOf" in entry["type"] else None
        assert entry["type"] == type_in(known[key]), key
        if key == "users.*.config":  # said once for all of them, by wrapper.hostConfigPath
            options = (SOURCE / "nix/options.nix").read_text()
            assert f'default = "{known[key]["default"]}";' in options.split("hostConfigPath = mkOption", 1)[1].split("};", 1)[0]
            continue
        of_all = key.removeprefix("users.*.")
        if of_all != key and of_all in known and of_all != "env":  # what a user does not say is said for everybody
            nothing = None
        assert entry["default"] == known[key].get("default", nothing), key


def test_what_a_user_adds_to_documents_is_said_to_be_merged(schema, keys):
    of_users = dict(leaves(schema["properties"]["users"]["additionalProperties"]))
    for entry in keys["users"]:
        if entry["key"] in ("settings", "models", "keybindings", "mcp"):
            for said in (entry["description"], of_users[entry["key"]]["description"]):
                assert "merged over what holds for others" in said, entry["key"]
        else:
            assert "merged over" not in entry["description"], entry["key"]


def test_the_product_takes_the_example_of_every_option(product, keys):
    policies = {}
    for number, (key, entry) in enumerate(table(keys).items()):
        policy = {"version": 1, "agent": {"accounts": "shared"}, "users": {"alice": {"roots": ["~/projects"]}}}
        at, parts = policy, key.replace("*", "alice").split(".")
        for part in parts[:-1]:
            at = at.setdefault(part, {})
        at[parts[-1]] = entry["example"]
        if key.endswith("providers"):  # they need a network with a gate
            policy["network"] = {"hosts": []}
        if key.startswith("sandbox."):  # each says that the other is needed
            policy["sandbox"].update({"method": "docker"} if key == "sandbox.image" else {"image": "debian:12"} if entry["example"] == "docker" else {})
        policies[f"{number}_{key.replace('*', 'NAME')}"] = json.dumps(policy)
    assert len(policies) == len(table(keys)) > 35
    assert {name: errors for name, errors in product.check(policies).items() if errors} == {}


def test_the_policy_of_each_configuration_is_that_of_its_twin_by_hand(configurations):
    assert set(configurations) == set(BY_HAND) and len(BY_HAND) >= 12
    made, by_hand = (read_yaml([texts[name] for name in BY_HAND])
                     for texts in ({name: as_built(seen["draft"]) for name, seen in configurations.items()}, BY_HAND))  # fmt: skip
    for name, ours, theirs in zip(BY_HAND, made, by_hand, strict=True):
        assert ours == theirs, name


def test_the_product_accepts_the_policies_and_their_twins(configurations, product):
    texts = {f"{name}_made": as_built(seen["draft"]) for name, seen in configurations.items()} | BY_HAND
    assert {name: errors for name, errors in product.check(texts).items() if errors} == {}


def test_what_only_the_product_knows_to_be_wrong_fails_where_the_policy_is_built(product):
    """The build of the system runs the same check (test_module.py), so these do not get to a user."""
    wrong = evaluate_modules("wrong_for_check.nix", "configurations")
    assert all(seen["failed"] == [] for seen in wrong.values())
    errors = product.check({name: as_built(seen["draft"]) for name, seen in wrong.items()})
    words = {"two_users": "agent.accounts: missing, and more than one user is possible", "state_among_homes": "agent.state_dir: '/home/agents' lies where",
             "agent_is_a_user": "agent.user: the agent's account 'alice' is a user of this policy", "no_amount": "limits.memory: ",
             "public_suffix": "network.hosts: '*.github.io': anybody can have a name below github.io"}  # fmt: skip
    assert set(errors) == set(words)
    for name, expected in words.items():
        assert len(errors[name]) == 1 and errors[name][0].startswith(expected), errors[name]

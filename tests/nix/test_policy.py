"""The policies that the module writes are what people would write by hand, and the options are the keys of the policy."""

import functools
import json
import re

import pytest
from evaluating import HERE, SOURCE, as_built, evaluate_modules, nix, read_yaml

BY_HAND = {file.stem: file.read_text() for file in sorted((HERE / "policies").glob("*.yaml"))}


@pytest.fixture(scope="module")
def keys():
    return nix(SOURCE / "nix/keys.nix")


def leaves(schema, path=()):
    """Every key without those of mappings of further keys; a free name is `*`."""
    for name, below in schema["properties"].items():
        if "properties" in below:
            yield from leaves(below, (*path, name))
        elif name == "users":
            yield from leaves(below["additionalProperties"], (*path, name, "*"))
        else:
            yield ".".join((*path, name))


def test_every_key_of_the_policy_is_an_option_or_the_modules_own(keys):
    known = set(leaves(json.loads((SOURCE / "nix/schema.json").read_text())))
    options = [entry["key"] for entry in keys["policy"]] + [f"users.*.{entry['key']}" for entry in keys["users"]]
    assert len(known) > 45 and sorted([*options, *keys["withoutOption"]]) == sorted([*known, "users"])
    assert set(keys["renamed"]) <= {key.removeprefix("users.*.") for key in options}


def test_descriptions_name_options_and_no_keys(keys):
    entries = keys["policy"] + keys["users"]
    other_names = {*(entry["key"] for entry in entries), *keys["withoutOption"]} - {entry["option"] for entry in entries}
    named = {word for entry in entries for word in re.findall("`([^`]+)`", entry["description"])}
    assert {"environment", "limits.diskWithoutQuota", "user"} <= named and named & other_names == set()


def test_the_example_of_every_option_gets_into_a_policy_that_the_product_takes(library, keys, product):
    seen = evaluate_modules("examples.nix", "configurations", library)
    assert len(seen) == len(keys["policy"]) + len(keys["users"]) > 80
    assert {key: shown["failed"] for key, shown in seen.items() if shown["failed"]} == {}
    drafts = {key: as_built(shown["draft"]) for key, shown in seen.items()}
    for before, entries in (("", keys["policy"]), ("users.alice.", keys["users"])):
        for entry in entries:
            policy = json.loads(drafts[before + entry["key"]].split("\n", 1)[1])
            assert functools.reduce(dict.__getitem__, (before + entry["key"]).split("."), policy) == entry["example"], entry["key"]
    assert {key: errors for key, errors in product.check(drafts).items() if errors} == {}


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

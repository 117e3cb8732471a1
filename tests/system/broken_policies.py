"""The broken policies of the unit tests, as tests of the whole program use them."""

from pathlib import Path

DIRECTORY = Path(__file__).resolve().parents[1] / "unit" / "data"


def read_broken_policies(kind):
    """{title: policy} of broken_KIND.txt; tests/unit/admin/diagnose/broken_policies_test.cpp says how it is written."""
    policies = {}
    for case in (DIRECTORY / f"broken_{kind}.txt").read_text().split("=== ")[1:]:
        title, rest = case.split("\n", 1)
        lines = rest.split("\n---\n", 1)[0].split("\n")
        policies[title] = "\n".join(line.removeprefix("\\") for line in lines) + "\n"
    return policies

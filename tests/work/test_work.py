"""Work inside is work outside: the same script on the same tree comes to the same, or to what docs/reference/differences.md says."""

import os

import pytest
from families import CASES
from normal import differences, foresees, unforeseen
from sides import BrokenCase

EACH = [pytest.param(family, case, id=case.name) for family, cases in CASES.items() for case in cases]
# For who writes a case: the second run is outside, too, so that what no two runs make alike is seen.
TWICE_OUTSIDE = bool(os.environ.get("PI_AGENT_WORK_TWICE"))


@pytest.mark.parametrize(("family", "case"), EACH)
def test_comes_to_the_same_inside(sides, family, case, request):
    request.node.user_properties += [("family", family), *([("differs", case.differs.what)] if case.differs else [])]
    try:
        outside = sides.outside(case)
        if outside.status != 0:
            raise BrokenCase(f"outside it ended with {outside.status}: {outside.out[-2000:]}\n{outside.err[-2000:]}")
        inside = sides.outside(case) if TWICE_OUTSIDE else sides.inside(case)
    except BrokenCase as broken:
        pytest.fail(f"the case is broken: {broken}", pytrace=False)
    found = differences(outside, inside)
    if foresees(case.seen, sides.machine.recipe) and not found and not TWICE_OUTSIDE:
        pytest.fail(f"both sides come to the same, so this is out of date: differs, {case.differs.what}", pytrace=False)
    wrong = found if TWICE_OUTSIDE else unforeseen(found, case.seen, sides.machine.recipe)
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)

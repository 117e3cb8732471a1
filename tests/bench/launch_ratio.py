"""Medians, and how sure a ratio of them is: a bootstrap, because launch times have a long tail and no known distribution."""

import itertools
import math
import random
import statistics

RESAMPLES = 4000


def summary(times):
    ordered = sorted(times)
    tenth = max(len(ordered) // 10, 1)
    return {"runs": len(times), "median": statistics.median(ordered), "p10": ordered[tenth - 1], "p90": ordered[-tenth]}


def hundredth(turns):
    """What 99 of 100 times are not slower than, of all turns together."""
    times = sorted(itertools.chain.from_iterable(turns))
    return times[math.ceil(len(times) * 0.99) - 1]


def ratio(ours, theirs, seed, of=statistics.median):
    """Ratio of the medians, or of what `of` says, with the 95 % interval of resampled pairs: what was measured in the same turn stays together.
    Of one pair there is no interval."""
    if len(ours) < 2:
        return {"median": of(ours) / of(theirs), "low": None, "high": None}
    draw = random.Random(seed)
    pairs = list(zip(ours, theirs))
    ratios = []
    for _ in range(RESAMPLES):
        sample = draw.choices(pairs, k=len(pairs))
        ratios.append(of([our for our, _ in sample]) / of([their for _, their in sample]))
    ratios.sort()
    cut = RESAMPLES // 40
    return {"median": of(ours) / of(theirs), "low": ratios[cut], "high": ratios[-cut - 1]}


def difference(ours, theirs, seed):
    """Difference of the medians, with its interval as above."""
    if len(ours) < 2:
        return {"median": ours[0] - theirs[0], "low": None, "high": None}
    draw = random.Random(seed)
    pairs = list(zip(ours, theirs))
    found = []
    for _ in range(RESAMPLES):
        sample = draw.choices(pairs, k=len(pairs))
        found.append(statistics.median(our for our, _ in sample) - statistics.median(their for _, their in sample))
    found.sort()
    cut = RESAMPLES // 40
    return {"median": statistics.median(ours) - statistics.median(theirs), "low": found[cut], "high": found[-cut - 1]}

"""Tell noise from change: a permutation test over repeats, for many quantities at once.

A repeat is one observation. Executions of one run share its machine, its neighbours and its memory, so 1,000 of them are not
1,000 independent measurements.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from daskscope.model.table import Array

#: Chance of naming any difference between runs of identical code, for each of two families: times, and CPU times. With five repeats
#: each, the observed division must be one of the two most extreme of 126. Chosen with two pools of 60 recorded runs, one on a busy
#: machine: a prefix that computes 20 % more was named in 98 to 100 of 100 comparisons, with 0.01 in 92 to 100; one that sleeps 20 %
#: longer in 100, with 0.01 in 93 to 97; identical code showed no difference in 97 to 98 either way.
ALPHA = 0.016
#: Divisions that are all enumerated, up to seven repeats each; of more, a fixed random sample of as many is drawn. At most 200
#: prefixes have 1 % of the time on one of two sides, and a table of them takes 8 MB.
MAX_EXACT = 5_000
#: Added to the standard error. Without it, a quantity that varies by 0.01 % outranks all others, and the slowed prefix was named in
#: 92 to 98 of 100 comparisons.
FLOOR = 0.02


def smallest_p(before: int, after: int) -> float:
    """Return the smallest p-value that numbers of repeats can give: one of all ways to divide them, or two mirrored ones."""
    if not before or not after:
        return 1.0
    return (2 if before == after else 1) / comb(before + after, before)


def can_prove(before: int, after: int) -> bool:
    """Return whether enough repeats exist to prove any difference."""
    return smallest_p(before, after) <= ALPHA


def repeats_needed() -> int:
    """Return how many repeats each side needs to prove any difference."""
    return next(count for count in range(1, 100) if can_prove(count, count))


def run_factors(before: Array, after: Array) -> Array:
    """Return by which factor the quantities of each repeat are larger than usual, as a mean over all of them.

    A busy machine slows all prefixes of a run by about the same factor. In 30 runs of one workload beside other programs, the time
    of a task varied by 13 to 45 % (standard deviation; five of six prefixes above 30 %), its CPU time by 7 to 23 %, and divided
    by this factor by 2.6 to 4.2 % (from quartiles: a few runs are far out). With a median instead of the mean, a prefix slowed by
    20 % was named in 91 to 96 of 100 comparisons on a busy machine instead of 99.
    """
    values = np.log(np.concatenate((before, after)))
    factors: Array = np.exp((values - values.mean(axis=0)).mean(axis=1))
    return factors


def relative_to_others(before: Array, after: Array) -> tuple[Array, Array]:
    """Return each quantity divided by the factor of the other quantities of the same repeat."""
    count = before.shape[1]
    factors = run_factors(before, after)[:, None]
    values = np.concatenate((before, after))
    # The factor includes the quantity itself, with a share of 1 / count.
    values = np.exp((np.log(values) - np.log(values).mean(axis=0) - np.log(factors)) * count / (count - 1))
    return values[: len(before)], values[len(before) :]


def adjusted_p(before: Array, after: Array) -> Array:
    """Return a p-value for each quantity (column), given positive values by repeat (row).

    The values are corrected for the number of quantities by Westfall and Young's step-down maxT method: a division of the repeats
    counts against a quantity if *any* quantity of the same or lower rank differs as much in it. Holm's correction would ignore that
    task prefixes on one machine vary together: with five repeats each the smallest p-value is 2/252, and times seven it is 0.06.
    """
    values = np.log(np.concatenate((before, after)))
    count, size = len(before), values.shape[1]
    if not count or not len(after) or not size:
        return np.ones(size)
    statistics = _statistics(values, _divisions(count, len(values)))
    order = np.argsort(-statistics[0], kind="stable")
    # For each division, the largest statistic among the quantities of this rank and below.
    ordered = statistics[:, order]
    largest = np.maximum.accumulate(ordered[:, ::-1], axis=1)[:, ::-1]
    # Rounding must not make the observed division less extreme than its mirror image.
    shares = (largest >= ordered[0] * (1 - 1e-6) - 1e-9).mean(axis=0)
    result = np.empty(size)
    result[order] = np.maximum.accumulate(shares)
    return result


def _divisions(count: int, total: int) -> Array:
    """Return masks of the repeats that count as before, one per row; the first one is the observed division."""
    if comb(total, count) <= MAX_EXACT:
        chosen = np.array(list(combinations(range(total), count)))
    else:
        random = np.random.default_rng(0)
        chosen = np.argsort(random.random((MAX_EXACT, total)), axis=1)[:, :count]
        chosen[0] = np.arange(count)
    masks = np.zeros((len(chosen), total), dtype=bool)
    masks[np.arange(len(chosen))[:, None], chosen] = True
    return masks


def _statistics(values: Array, masks: Array) -> Array:
    """Return the difference of means in standard errors, for each division and quantity."""
    total = len(values)
    first = masks.astype(np.float64)
    count = first[0].sum()
    rest = total - count
    # Centred: with large values the sums of squares would lose digits.
    values = values - values.mean(axis=0)
    sums, squares = first @ values, first @ values**2
    all_squares = (values**2).sum(axis=0)
    mean_first, mean_rest = sums / count, -sums / rest
    within = squares - count * mean_first**2 + (all_squares - squares) - rest * mean_rest**2
    variance = np.maximum(within, 0.0) / max(1, total - 2)
    result: Array = np.abs(mean_first - mean_rest) / (np.sqrt(variance * (1 / count + 1 / rest)) + FLOOR)
    return result

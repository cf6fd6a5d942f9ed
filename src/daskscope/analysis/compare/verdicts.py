"""Verdicts about measurements before and after a change, and how noisy they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, log
from statistics import median

import numpy as np

from daskscope import units
from daskscope.analysis.compare.measurements import Measured, PrefixTimes
from daskscope.model.recording import Array

#: Smaller changes are not named, even if they are proven: neighbours on a machine cause as much. With 5 %, identical code showed no
#: difference in 96 to 97 of 100 comparisons, with 8 % in 97 to 98.
MIN_EFFECT = 0.07
#: Prefixes with a smaller share of the compute time on both sides are listed but not tested.
MIN_SHARE = 0.01
#: Maximum prefixes that are tested, of those with the largest share. Repeats whose prefixes differ may have 400 of that share, and
#: tests of so many take a minute.
MAX_TESTED = 100
#: Prefixes with a smaller CPU share of their time are not tested for CPU time: there is none to speak of.
MIN_CPU_SHARE = 0.2
#: Share of prefixes whose CPU times may change for the others to tell how fast the machine was.
MAX_CHANGED = 1 / 3
#: CPU times are compared relative to other prefixes if there are at least this many; two would explain each other.
MIN_RELATIVE = 3
#: Smallest change of CPU times on a machine that was busier on one side, without other prefixes to compare with: a neighbour on the
#: same core at most doubles them.
MIN_LOADED_EFFECT = 1.0
#: Times prove nothing if other programs used so many more cores on one side, as a part of the workers' threads.
MAX_LOAD_DIFFERENCE = 0.1
#: A load that varies alike on both sides is noise like any other, and the test of times counts with it.
MAX_LOAD_P = 0.1
#: One run each: standard errors of the median, and relative change, that are worth a hint.
HINT_ERRORS, HINT_EFFECT = 5.0, 0.1
#: Earlier runs that a single run is ranked among.
MIN_HISTORY = 5
#: Standard error of a median in quartile distances, before the division by the root of the count (normal values).
MEDIAN_ERROR = 0.93


@dataclass(frozen=True)
class Tested:
    """The result of a test; without ``p``, the runs cannot tell."""

    p: float | None
    is_proven: bool


UNKNOWN = Tested(None, is_proven=False)


@dataclass(frozen=True)
class Judgement:
    """Results for the total time, and for the time and the CPU time of each prefix that was tested."""

    wall: Tested
    times: dict[str, Tested]
    cpu: dict[str, Tested]
    #: How slow the machine was in each run, before and after: CPU times are divided by it.
    slowness: tuple[list[float], list[float]]
    is_load_different: bool
    hints: tuple[str, ...]


def is_large(ratio: float, limit: float = MIN_EFFECT) -> bool:
    """Return whether a relative change is worth naming; 1.07 and 1 / 1.07 are equally large."""
    return ratio <= -1 or abs(log(1 + ratio)) >= log(1 + limit) * (1 - 1e-9)


def judge(before: Sequence[Measured], after: Sequence[Measured]) -> Judgement:
    """Judge two sets of runs, each of which is one repeat."""
    tested = _tested_prefixes(before, after)
    computing = [
        name
        for name in _using_cpu(before, after, tested)
        if all(run.prefixes[name].cpu_us > 0 for run in (*before, *after))
    ]
    is_loaded = _is_load_different(before, after)
    slowness = np.ones(len(before) + len(after))
    if not can_prove(len(before), len(after)):
        times, cpu = dict.fromkeys(("", *tested), UNKNOWN), dict.fromkeys(computing, UNKNOWN)
    else:
        times = _test_times(before, after, tested)
        cpu, slowness = _test_cpu(before, after, computing)
        if is_loaded:
            # A thread that sleeps or waits for data needs no core.
            times |= dict.fromkeys(("", *_using_cpu(before, after, tested)), UNKNOWN)
            if len(computing) < MIN_RELATIVE:
                cpu = {name: found if _is_twice(name, before, after) else UNKNOWN for name, found in cpu.items()}
    divided = slowness[: len(before)].tolist(), slowness[len(before) :].tolist()
    return Judgement(times.pop(""), times, cpu, divided, is_loaded, _hints(before, after, tested))


def _tested_prefixes(before: Sequence[Measured], after: Sequence[Measured]) -> list[str]:
    """Return the prefixes that ran in all runs and are a fair part of the compute time on one side: the largest, by name."""
    # Once per run: a sum for each prefix made 20,000 prefixes take minutes.
    totals = [max(1, sum(times.total_us for times in run.prefixes.values())) for run in (*before, *after)]
    found = dict[str, float]()
    for name in before[0].prefixes:
        times = [run.prefixes.get(name) for run in (*before, *after)]
        shares = [
            t.total_us / total for t, total in zip(times, totals, strict=True) if t is not None and t.median_us > 0
        ]
        if len(shares) == len(totals):
            found[name] = max(median(shares[: len(before)]), median(shares[len(before) :]))
    large = sorted((name for name, share in found.items() if share >= MIN_SHARE), key=lambda name: (-found[name], name))
    return sorted(large[:MAX_TESTED])


def _using_cpu(before: Sequence[Measured], after: Sequence[Measured], names: list[str]) -> list[str]:
    """Return the prefixes that use the CPU for a fair part of their time in one run, or may do so: their CPU time is unknown."""

    def share(times: PrefixTimes) -> float:
        return times.cpu_us * times.count / max(1, times.total_us)

    found = {name: [run.prefixes[name] for run in (*before, *after)] for name in names}
    return [
        name
        for name, runs in found.items()
        if max(map(share, runs)) >= MIN_CPU_SHARE or not any(times.cpu_us for times in runs)
    ]


def _matrix(runs: Sequence[Measured], names: Sequence[str], value: Callable[[PrefixTimes], float]) -> Array:
    return np.array([[float(value(run.prefixes[name])) for name in names] for run in runs])


def _test_times(before: Sequence[Measured], after: Sequence[Measured], names: list[str]) -> dict[str, Tested]:
    """Test the total time, under an empty name, and the median time of each prefix."""

    def values(runs: Sequence[Measured]) -> Array:
        walls = np.array([[float(max(1, run.wall_us))] for run in runs])
        return np.concatenate((walls, _matrix(runs, names, lambda times: times.median_us)), axis=1)

    found = adjusted_p(values(before), values(after))
    return {name: Tested(p, p <= ALPHA) for name, p in zip(("", *names), found.tolist(), strict=True)}


def _test_cpu(
    before: Sequence[Measured], after: Sequence[Measured], names: list[str]
) -> tuple[dict[str, Tested], Array]:
    """Test the CPU time of each prefix, relative to the other prefixes if there are enough.

    Return the results, and how slow the machine was in each run. A prefix that changed is taken out before the others are tested
    again: otherwise it shifts what they are compared with. If many changed, the others cannot tell how slow the machine was.
    """
    found, tested, rest = dict[str, Tested](), dict[str, Tested](), list(names)
    # If more have changed, what was found does not count.
    while len(rest) >= MIN_RELATIVE and len(found) <= MAX_CHANGED * len(names):
        first, second = (_matrix(runs, rest, lambda times: times.cpu_us) for runs in (before, after))
        tested, moved = _tested(rest, *relative_to_others(first, second))
        changed = [name for name in rest if tested[name].is_proven]
        if not changed:
            break
        largest = max(changed, key=lambda name: moved[name])
        found[largest] = tested[largest]
        rest.remove(largest)
    first, second = (_matrix(runs, names, lambda times: times.cpu_us) for runs in (before, after))
    if len(names) < MIN_RELATIVE or len(found) > MAX_CHANGED * len(names):
        return _tested(names, first, second)[0], np.ones(len(before) + len(after))
    unchanged = {name: Tested(tested[name].p, is_proven=False) for name in rest}
    kept = [names.index(name) for name in rest]
    return {**unchanged, **found}, run_factors(first[:, kept], second[:, kept])


def _tested(names: list[str], before: Array, after: Array) -> tuple[dict[str, Tested], dict[str, float]]:
    """Return the result of each column, and how much it changed, whichever way."""
    if not names:
        return {}, {}
    ratios = (np.median(after, axis=0) / np.median(before, axis=0)).tolist()
    results = zip(names, adjusted_p(before, after).tolist(), ratios, strict=True)
    found = {name: Tested(p, p <= ALPHA and is_large(ratio - 1)) for name, p, ratio in results}
    return found, {name: abs(log(ratio)) for name, ratio in zip(names, ratios, strict=True)}


def _is_twice(name: str, before: Sequence[Measured], after: Sequence[Measured]) -> bool:
    first, second = (median(run.prefixes[name].cpu_us for run in runs) for runs in (before, after))
    return is_large(second / first - 1, MIN_LOADED_EFFECT)


def _is_load_different(before: Sequence[Measured], after: Sequence[Measured]) -> bool:
    loads = [[run.other_cores for run in runs if run.other_cores >= 0] for runs in (before, after)]
    threads = median(run.threads for run in (*before, *after))
    if not all(loads) or not threads:
        return False
    if abs(median(loads[1]) - median(loads[0])) <= MAX_LOAD_DIFFERENCE * threads:
        return False
    if not can_prove(len(before), len(after)):
        return True
    # The test takes logarithms, and a load may be 0.
    first, second = (1.0 + np.array(side)[:, None] for side in loads)
    return bool(adjusted_p(first, second)[0] <= MAX_LOAD_P)


def _hints(before: Sequence[Measured], after: Sequence[Measured], names: list[str]) -> tuple[str, ...]:
    if len(before) == len(after) == 1:
        return tuple(filter(None, (_spread_hint(name, before[0], after[0]) for name in names)))
    if len(after) == 1 and len(before) >= MIN_HISTORY and not can_prove(len(before), 1):
        walls = [run.wall_us for run in before]
        found = [_rank_hint("The run", after[0].wall_us, walls)]
        for name in names:
            medians = [run.prefixes[name].median_us for run in before]
            found.append(_rank_hint(f"A {name} task", after[0].prefixes[name].median_us, medians))
        return tuple(filter(None, found))
    return ()


def _spread_hint(name: str, before: Measured, after: Measured) -> str:
    """Compare the medians of one run each with the spread of their executions."""
    first, second = before.prefixes[name], after.prefixes[name]
    error = sum((MEDIAN_ERROR * (t.high_us - t.low_us)) ** 2 / t.count for t in (first, second)) ** 0.5
    moved, ratio = second.median_us - first.median_us, second.median_us / first.median_us - 1
    if abs(moved) <= HINT_ERRORS * max(1.0, error) or abs(ratio) < HINT_EFFECT:
        return ""
    word = "longer" if moved > 0 else "shorter"
    return f"A {name} task took {units.percent(abs(ratio))} {word}, more than the tasks of one run differ."


def _rank_hint(subject: str, value: float, history: Sequence[float]) -> str:
    """Compare a value with a history: it is worth a hint outside of all of it."""
    word = "longer" if value > max(history) else "shorter" if value < min(history) else ""
    ratio = value / median(history) - 1 if median(history) > 0 else 0.0
    if not word or not is_large(ratio):
        return ""
    return f"{subject} took {word} than in all {len(history)} earlier runs ({units.percent(abs(ratio))} from their median)."


# A permutation test over repeats tells noise from change, for many quantities at once.
#
# A repeat is one observation. Executions of one run share its machine, its neighbours and its memory, so 1,000 of them are not
# 1,000 independent measurements.

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

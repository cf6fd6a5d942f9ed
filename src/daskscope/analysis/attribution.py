"""Say what changed between two levels of a computation's history: the data, the code, the cluster or the libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from daskscope import units

#: Changes by less are noise.
MIN_RATIO = 1.1
#: A prefix explains a change if it is this share of it.
MIN_EXPLAINED = 0.25
MAX_PREFIXES = 3


@dataclass(frozen=True)
class PastRun:
    """One run of a computation."""

    start_us: int
    wall_us: int
    tasks: int
    nbytes: int
    transfer_us: int
    disk_us: int
    errors: int
    threads: int
    #: Number of executions and their compute time, by prefix.
    prefixes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Versions of packages.
    versions: Mapping[str, str] = field(default_factory=dict)


def causes(before: Sequence[PastRun], after: Sequence[PastRun]) -> list[str]:
    """Return what changed, as sentences; empty if nothing that is recorded did."""

    def of(value: Callable[[PastRun], float]) -> tuple[float, float]:
        return median(map(value, before)), median(map(value, after))

    said = []
    tasks, nbytes, wall = of(lambda run: run.tasks), of(lambda run: run.nbytes), of(lambda run: run.wall_us)
    is_slower = wall[1] > wall[0]
    # What went the other way did not cause it.
    if _differs(*nbytes) and (nbytes[1] > nbytes[0]) == is_slower:
        said.append(f"The data {_grew(nbytes)}: results of {units.nbytes(nbytes[0])} became {units.nbytes(nbytes[1])}.")
    if _differs(*tasks) and (tasks[1] > tasks[0]) == is_slower:
        said.append(f"There are {units.count(round(tasks[1]))} instead of {units.count(round(tasks[0]))} tasks.")
    said += _prefixes(before, after, is_slower=is_slower)
    threads = of(lambda run: run.threads)
    if _differs(*threads) and (threads[1] < threads[0]) == is_slower:
        said.append(
            f"The cluster has {units.count(round(threads[1]))} instead of {units.count(round(threads[0]))} threads."
        )
    for what, times in (
        ("transfers", of(lambda run: run.transfer_us)),
        ("spilled results", of(lambda run: run.disk_us)),
    ):
        if _differs(*times) and abs(times[1] - times[0]) > MIN_EXPLAINED * abs(wall[1] - wall[0]):
            said.append(f"Thread time on {what} went from {units.duration(times[0])} to {units.duration(times[1])}.")
    errors = of(lambda run: run.errors)
    if round(errors[0]) != round(errors[1]):
        said.append(f"Failures went from {units.count(round(errors[0]))} to {units.count(round(errors[1]))} per run.")
    return said + _versions(before[-1].versions, after[0].versions)


def _differs(before: float, after: float) -> bool:
    low, high = sorted((before, after))
    return high > 0 and high >= MIN_RATIO * low


def _grew(pair: tuple[float, float]) -> str:
    return "grew" if pair[1] > pair[0] else "shrank"


def _prefixes(before: Sequence[PastRun], after: Sequence[PastRun], *, is_slower: bool) -> list[str]:
    """Return the prefixes whose tasks became slower or faster like the run, those that explain most first."""

    def per_task(runs: Sequence[PastRun], prefix: str) -> float:
        found = [us / count for count, us in (run.prefixes.get(prefix, (0, 0)) for run in runs) if count]
        return median(found) if found else 0.0

    def count(prefix: str) -> float:
        return median(run.prefixes.get(prefix, (0, 0))[0] for run in after)

    names = {name for run in (*before, *after) for name in run.prefixes}
    changes = {name: (per_task(before, name), per_task(after, name)) for name in names}
    effects = {
        name: abs(new - old) * count(name)
        for name, (old, new) in changes.items()
        if old and new and (new > old) == is_slower
    }
    total = sum(effects.values())
    largest = sorted(effects, key=lambda name: -effects[name])[:MAX_PREFIXES]
    return [
        f"Tasks of {name or 'an unnamed prefix'} take {units.duration(changes[name][1])} instead of "
        f"{units.duration(changes[name][0])}."
        for name in largest
        if _differs(*changes[name]) and effects[name] >= MIN_EXPLAINED * total
    ]


def _versions(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    changed = [name for name in sorted(before.keys() & after.keys()) if before[name] != after[name]]
    if not changed:
        return []
    listed = ", ".join(f"{name} {before[name]} → {after[name]}" for name in changed)
    return [f"Versions changed: {listed}."]

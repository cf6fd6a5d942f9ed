"""Compare two sets of runs: what changed, and whether it is more than noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import unified_diff
from statistics import median
from typing import Any, Literal, TypeVar

from daskscope import units
from daskscope.analysis.compare.measurements import Measured
from daskscope.analysis.compare.verdicts import Judgement, Tested, can_prove, is_large, judge
from daskscope.analysis.time.breakdown import CATEGORIES

#: Maximum prefixes, spans, packages and config keys that are listed, and lines of code on each side. A recording may have as many
#: prefixes as tasks.
MAX_LISTED, MAX_CODE_LINES = 1_000, 5_000

T = TypeVar("T")
Verdict = Literal["slower", "faster", "no difference shown", "cannot tell", "only before", "only after", ""]


@dataclass(frozen=True)
class Change:
    """One quantity before and after: medians over the repeats, and their ranges. None: the quantity does not exist."""

    name: str
    before: float | None
    after: float | None
    before_range: tuple[float, float] | None
    after_range: tuple[float, float] | None
    #: Empty if the quantity was not tested.
    verdict: Verdict = ""
    #: Chance of such a difference between runs of identical code, corrected for the number of quantities; None if not tested.
    p: float | None = None

    @property
    def ratio(self) -> float | None:
        """Return the relative change: 0.2 means 20 % more."""
        if self.before is None or self.after is None or self.before <= 0:
            return None
        return self.after / self.before - 1


@dataclass(frozen=True)
class PrefixChange:
    """One task prefix before and after. ``time`` is the median compute time of a task, ``cpu`` its mean CPU time, both in µs.

    If differences can be proven, CPU times are corrected for how slow the machine was in each run, judged by the other prefixes.
    """

    prefix: str
    time: Change
    cpu: Change
    total_us: Change
    count: Change
    nbytes: Change

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the prefix: slower or faster if its time or its CPU time is proven to be."""
        both = self.time.verdict, self.cpu.verdict
        for verdict in PROVEN:
            if verdict in both:
                return verdict
        return self.time.verdict

    @property
    def proven(self) -> Change | None:
        """Return the change that proves the verdict."""
        return next((change for change in (self.time, self.cpu) if change.verdict in PROVEN), None)


#: Verdicts that are proven; a slowdown in one quantity outweighs a speed-up in the other.
PROVEN: tuple[Verdict, ...] = ("slower", "faster")


@dataclass(frozen=True)
class Difference:
    """A package or a config key with different values; empty where it does not exist."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Changes:
    """All changes between two sets of runs."""

    repeats_before: int
    repeats_after: int
    #: Whether there are enough repeats to prove a difference.
    can_prove: bool
    #: In microseconds.
    wall: Change
    #: Of every run, in the order given.
    walls_before: tuple[int, ...]
    walls_after: tuple[int, ...]
    #: The largest change of the total compute time first.
    prefixes: tuple[PrefixChange, ...]
    #: Thread time by category, in microseconds.
    thread_us: tuple[Change, ...]
    #: Compute time by span, in microseconds.
    spans_us: tuple[Change, ...]
    peak_memory: Change
    #: Memory of all workers at equal parts of a run, of the repeat with the median peak; -1 where it was not sampled.
    memory_before: tuple[int, ...]
    memory_after: tuple[int, ...]
    transferred: Change
    workers: Change
    threads: Change
    errors: Change
    #: Cores that other programs used on the hosts of the workers.
    other_cores: Change
    #: Whether other programs used so different a share of the hosts that times prove nothing.
    is_load_different: bool
    versions: tuple[Difference, ...]
    config: tuple[Difference, ...]
    #: Unified diff of the calling code; empty if it is the same or was not recorded.
    code: str
    #: Evidence that is no proof, as sentences.
    hints: tuple[str, ...]
    #: What is not listed because there is too much of it, as sentences.
    left_out: tuple[str, ...] = ()

    @property
    def tested(self) -> tuple[Change, ...]:
        """Return the quantities that were tested for noise."""
        found = (self.wall, *(change for prefix in self.prefixes for change in (prefix.time, prefix.cpu)))
        return tuple(change for change in found if change.p is not None)

    @property
    def is_shown(self) -> bool:
        """Return whether any difference in speed is proven."""
        return any(change.verdict in PROVEN for change in self.tested)

    def slowdowns(self, limit: float = 0.0) -> tuple[Change, ...]:
        """Return the proven slowdowns of more than ``limit`` (0.1: 10 %)."""
        return tuple(c for c in self.tested if c.verdict == "slower" and c.ratio is not None and c.ratio > limit)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with the relative change of each quantity."""
        plain: dict[str, Any] = _plain(self)
        return plain


def compare_runs(before: Sequence[Measured], after: Sequence[Measured]) -> Changes:
    """Compare two sets of runs; each run is one repeat of the same work."""
    found = judge(before, after)

    def change(name: str, value: Callable[[Measured], float]) -> Change:
        return _change(name, [value(run) for run in before], [value(run) for run in after])

    left_out = list[str]()
    spans = _by_name(
        before,
        after,
        sorted({name for run in (*before, *after) for name in run.spans_us}),
        lambda run: run.spans_us,
    )
    names = _limited(_names_by_change(before, after, found), "task prefixes", left_out)
    longest = _limited(sorted(spans, key=lambda change: -_moved(change)), "spans", left_out)
    versions = _differences([run.versions for run in before], [run.versions for run in after])
    config = _differences([run.config for run in before], [run.config for run in after])
    prefixes = [_prefix(name, before, after, found) for name in names]
    return Changes(
        repeats_before=len(before),
        repeats_after=len(after),
        can_prove=can_prove(len(before), len(after)),
        wall=_judged(change("total time", lambda run: run.wall_us), found.wall),
        walls_before=tuple(run.wall_us for run in before),
        walls_after=tuple(run.wall_us for run in after),
        prefixes=tuple(sorted(prefixes, key=lambda prefix: (-_moved(prefix.total_us), prefix.prefix))),
        thread_us=_by_name(before, after, CATEGORIES, lambda run: run.thread_us),
        spans_us=tuple(sorted(longest, key=lambda change: change.name)),
        peak_memory=_change(
            "peak memory", *([run.peak_memory for run in runs if _is_sampled(run)] for runs in (before, after))
        ),
        memory_before=_typical(before).memory,
        memory_after=_typical(after).memory,
        transferred=change("transferred", lambda run: run.transferred),
        workers=change("workers", lambda run: run.workers),
        threads=change("threads", lambda run: run.threads),
        errors=change("failed tasks", lambda run: run.errors),
        other_cores=change("cores used by other programs", lambda run: run.other_cores),
        is_load_different=found.is_load_different,
        versions=tuple(_limited(versions, "packages", left_out)),
        config=tuple(_limited(config, "config keys", left_out)),
        code=_code_diff(before, after, left_out),
        hints=found.hints,
        left_out=tuple(left_out),
    )


def _limited(items: Sequence[T], what: str, left_out: list[str]) -> Sequence[T]:
    """Return the first items, and note how many there are if these are not all."""
    if len(items) > MAX_LISTED:
        left_out.append(f"Only {units.count(MAX_LISTED)} of {units.count(len(items))} {what} are listed.")
    return items[:MAX_LISTED]


def _names_by_change(before: Sequence[Measured], after: Sequence[Measured], found: Judgement) -> list[str]:
    """Return the prefixes that were tested, and then the others: the largest change of the total compute time first."""
    totals = dict[str, list[list[int]]]()
    for at, runs in enumerate((before, after)):
        for run in runs:
            for name, times in run.prefixes.items():
                totals.setdefault(name, [[], []])[at].append(times.total_us)
    moved = {name: abs(median(new or [0]) - median(old or [0])) for name, (old, new) in totals.items()}
    return sorted(moved, key=lambda name: (name not in found.times, -moved[name], name))


def _prefix(name: str, before: Sequence[Measured], after: Sequence[Measured], found: Judgement) -> PrefixChange:
    sides = [[run.prefixes[name] for run in runs if name in run.prefixes] for runs in (before, after)]

    def change(field: str) -> Change:
        return _change(name, *([getattr(times, field) for times in side] for side in sides))

    cpu = [
        [run.prefixes[name].cpu_us / factor for run, factor in zip(runs, factors, strict=True) if name in run.prefixes]
        for runs, factors in zip((before, after), found.slowness, strict=True)
    ]
    return PrefixChange(
        prefix=name,
        time=_judged(change("median_us"), found.times.get(name)),
        cpu=_judged(_change(name, *cpu), found.cpu.get(name)),
        total_us=change("total_us"),
        count=change("count"),
        nbytes=change("nbytes"),
    )


def _change(name: str, before: Sequence[float], after: Sequence[float]) -> Change:
    def middle(values: Sequence[float]) -> float | None:
        return float(median(values)) if values else None

    def bounds(values: Sequence[float]) -> tuple[float, float] | None:
        return (float(min(values)), float(max(values))) if values else None

    return Change(name, middle(before), middle(after), bounds(before), bounds(after))


def _judged(change: Change, tested: Tested | None) -> Change:
    """Return the change with its verdict; without ``tested``, the quantity was not tested."""
    if change.before is None or change.after is None:
        return replace(change, verdict="only after" if change.before is None else "only before")
    if tested is None:
        return change
    if tested.p is None:
        return replace(change, verdict="cannot tell")
    ratio = change.ratio or 0.0
    verdict: Verdict = "no difference shown"
    if tested.is_proven and is_large(ratio):
        verdict = "slower" if ratio > 0 else "faster"
    return replace(change, verdict=verdict, p=tested.p)


def _moved(change: Change) -> float:
    return abs((change.after or 0.0) - (change.before or 0.0))


def _by_name(
    before: Sequence[Measured],
    after: Sequence[Measured],
    names: Iterable[str],
    values: Callable[[Measured], Mapping[str, int]],
) -> tuple[Change, ...]:
    """Return the changes of quantities by name; a run without one has 0."""
    return tuple(
        _change(name, *([values(run).get(name, 0) for run in runs] for runs in (before, after))) for name in names
    )


def _is_sampled(run: Measured) -> bool:
    """Return whether memory was recorded: otherwise its peak is not known, rather than 0."""
    return max(run.memory, default=-1) >= 0


def _typical(runs: Sequence[Measured]) -> Measured:
    return sorted(runs, key=lambda run: run.peak_memory)[(len(runs) - 1) // 2]


def _differences(before: Sequence[Mapping[str, str]], after: Sequence[Mapping[str, str]]) -> tuple[Difference, ...]:
    """Return the names whose values differ. A side whose runs disagree has all their values."""

    def of(side: Sequence[Mapping[str, str]], name: str) -> str:
        return ", ".join(sorted({run[name] for run in side if name in run}))

    if not any(before) or not any(after):
        # Recordings of reports have no versions: every package would seem to be new.
        return ()
    names = sorted({name for run in (*before, *after) for name in run})
    found = [Difference(name, of(before, name), of(after, name)) for name in names]
    return tuple(item for item in found if item.before != item.after)


def _code_diff(before: Sequence[Measured], after: Sequence[Measured], left_out: list[str]) -> str:
    """Return the unified diff of the calling code, of the last run of each side with code."""

    def lines(runs: Sequence[Measured]) -> list[str]:
        code = next((run.code for run in reversed(runs) if run.code), ())
        found = [line.rstrip() for text in code for line in text.splitlines()]
        if len(found) > MAX_CODE_LINES:
            left_out.append(f"Only the first {units.count(MAX_CODE_LINES)} lines of code are compared.")
        return found[:MAX_CODE_LINES]

    first, second = lines(before), lines(after)
    if not first or not second:
        return ""
    return "\n".join(unified_diff(first, second, "before", "after", lineterm="", n=3))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        plain = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        derived = {Change: ("ratio",), PrefixChange: ("verdict",)}.get(type(value), ())
        return {**plain, **{name: getattr(value, name) for name in derived}}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value

"""A comparison of recordings, ready to print, to send and to draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from daskscope.analysis.compare import Change, Changes, compare_runs
from daskscope.analysis.compare_text import headline, notes, to_markdown
from daskscope.analysis.differential import DifferentialFlame, Side, merge_sides
from daskscope.analysis.measured import Measured, measure
from daskscope.analysis.selection import Selection, select
from daskscope.analysis.summary import extent, lifetime
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording

#: A recording, and the times that are compared.
Part = tuple[Recording, int, int]


@dataclass(frozen=True, repr=False)
class Comparison:
    """The comparison of two sets of runs."""

    #: Names of the runs.
    before: tuple[str, ...]
    after: tuple[str, ...]
    changes: Changes
    flame: DifferentialFlame

    @property
    def headline(self) -> str:
        """Return what changed in one sentence."""
        return headline(self.changes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what else a reader should know, as sentences."""
        return notes(self.changes)

    @property
    def is_shown(self) -> bool:
        """Return whether any difference in speed is proven."""
        return self.changes.is_shown

    def slowdowns(self, limit: float = 0.0) -> tuple[Change, ...]:
        """Return the proven slowdowns of more than ``limit`` (0.1: 10 %)."""
        return self.changes.slowdowns(limit)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; times are in microseconds, with names ending in ``_us``."""
        return {
            "before": list(self.before),
            "after": list(self.after),
            "headline": self.headline,
            "notes": list(self.notes),
            **self.changes.to_dict(),
            "flame": self.flame.to_dict(),
        }

    def to_markdown(self, title: str = "") -> str:
        """Return a comment for a pull request."""
        return to_markdown(self.changes, title)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.before)} and {len(self.after)} runs: {self.headline}>"


def compare_parts(before: Iterable[Part], after: Iterable[Part]) -> Comparison:
    """Compare two sets of recordings. Each is read once and not kept, so that many large ones fit."""
    measured, flames = list[list[Measured]](), list[Side]()
    for parts in (before, after):
        runs, side = list[Measured](), Side()
        for recording, start_us, stop_us in parts:
            runs.append(measure(recording, start_us, stop_us))
            side.add(recording, start_us, stop_us)
        if not runs:
            raise DaskscopeError("There is nothing to compare. Give at least one run before and one after.")
        measured.append(runs)
        flames.append(side)
    first, second = measured
    names = [tuple(run.source for run in runs) for runs in measured]
    return Comparison(names[0], names[1], compare_runs(first, second), merge_sides(*flames))


def part_of(recording: Recording, computation: str = "", time: tuple[float, float] | None = None) -> Part:
    """Return the part of a recording to compare: all of it, one computation (ID or position), or seconds from its start."""
    if computation:
        return _computation(recording, computation)
    start, stop = extent(recording)
    if time is not None:
        begin, end = (start + round(1e6 * seconds) for seconds in time)
        start, stop = begin, min(stop, end)
        if start >= stop:
            raise DaskscopeError(
                f"{recording.source} has no data from {time[0]:g} to {time[1]:g} s. Give seconds from its start."
            )
        return select(recording, Selection(start_us=start, stop_us=stop)), start, stop
    return recording, start, stop


def _computation(recording: Recording, wanted: str) -> Part:
    table = recording["computations"]
    rows = sorted(table.records("start_us", "computation", "stop_us"))
    names = [name for _, name, _ in rows]
    place = int(wanted) if wanted.lstrip("-").isdecimal() else 0
    if 0 < abs(place) <= len(rows):
        start, name, stop = rows[place - 1 if place > 0 else place]
    elif wanted in names:
        start, name, stop = rows[names.index(wanted)]
    else:
        raise DaskscopeError(
            f"{recording.source} has no computation {wanted}. It has {len(rows)}: give an ID, 1 for the first or -1 for the last."
        )
    stop = stop or lifetime(recording)[1]
    return select(recording, Selection(start_us=start, stop_us=stop, computation=name)), start, stop

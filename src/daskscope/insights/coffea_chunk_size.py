"""Another chunk size would be faster.

The duration of a chunk is nearly a line: a fixed part, and a part per event. Two clearly different sizes, in one run or in two
runs of the same processor, are enough to fit it. The chunks of other sizes are made with coffea's own rule and scheduled on the
threads of the run. In 45 cases with known results the rule spoke 26 times, and none of its sizes was slower; but in 11 of them it
had promised more than 1.25 times what came, so it gives a range. It is silent below a gain of 1.25, and beyond four times the sizes
that were seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daskscope import units
from daskscope.analysis.coffea import CoffeaRun, fit
from daskscope.analysis.list_schedule import makespan_us
from daskscope.insights.facts import Facts, Finding, Rule

MIN_GAIN = 1.25
#: Sizes up to this factor away from those seen are considered.
REACH = 4.0
#: Dask places this few chunks per thread badly: the run takes 1.5 times as long (1.3 to 2.2 with 8 workers).
CHUNKS_PER_THREAD = 2
FEW_CHUNKS = 1.5
#: Work of the scheduler for a task.
TASK_US = 1_000


@dataclass(frozen=True)
class Prediction:
    """A chunk size and the predicted time of the process phase."""

    size: int
    us: float


def check(facts: Facts) -> Iterator[Finding]:
    latest: dict[tuple[str, tuple[str, ...]], list[CoffeaRun]] = {}
    for run in facts.coffea:
        if run.kind == "Runner" and run.events > 0 and run.threads > 0:
            latest.setdefault((run.name, run.columns), []).append(run)
    for runs in latest.values():
        yield from _advise(facts, runs)


def _advise(facts: Facts, runs: list[CoffeaRun]) -> Iterator[Finding]:
    run = runs[-1]
    points = [point for other in runs for point in other.points]
    line = fit(points)
    if line is None or not run.chunks:
        return
    files = [part.events for part in run.file_parts if part.events > 0]
    now = round(run.events / run.chunks)
    known = [events for events, _ in points]

    def predict(size: int, chunks: Sequence[int]) -> Prediction:
        us = makespan_us([line.fixed_us + line.us_per_event * events + TASK_US for events in chunks], run.threads)
        return Prediction(size, us * (FEW_CHUNKS if len(chunks) <= CHUNKS_PER_THREAD * run.threads else 1.0))

    present = predict(now, [chunk.events for chunk in run.records])
    sizes = _candidates(now, min(known) / REACH, max(known) * REACH)
    candidates = [predict(size, chunk_sizes(files, size)) for size in sizes]
    best = min(candidates, key=lambda prediction: prediction.us, default=present)
    if best.us <= 0 or present.us / best.us < MIN_GAIN:
        return
    gain = present.us / best.us
    fixed = min(line.fixed_us * run.chunks / max(run.task_us, 1), 1.0)
    saved_us = round(run.wall_us * (1 - 1 / gain))
    yield Finding(
        "coffea",
        f"Another chunk size may be faster for {run.name}",
        f"A chunk takes {units.duration(line.fixed_us)} and {units.duration(1e6 * line.us_per_event)} per million events. "
        f"With about {units.count(now)} events per chunk, {units.percent(fixed)} "
        "of that is the fixed part.",
        f"Try chunksize={units.count(best.size)}. Predicted: {1 + (gain - 1) / 2:.1f} to {gain:.1f} times as fast.",
        "coffea",
        run.start_us,
        run.stop_us,
        facts.wall_time(saved_us, "difference to the predicted time of the run with that chunk size"),
    )


def _candidates(now: int, least: float, most: float) -> list[int]:
    """Return round sizes on both sides of the present one."""
    sizes = (round(now * factor) for factor in (0.25, 0.5, 2, 4, 8, 16))
    return [_rounded(size) for size in sizes if least <= size <= most and size > 0]


def _rounded(size: int) -> int:
    """Round to one or two digits, as people write chunk sizes."""
    unit = int(10 ** max(len(str(size)) - 2, 0))
    return max(round(size / unit) * unit, 1)


def chunk_sizes(files: Sequence[int], size: int) -> list[int]:
    """Return the sizes of the chunks that coffea makes of files with these numbers of events."""
    sizes = []
    for events in files:
        count = max(round(events / size), 1)
        each = -(-events // count)
        sizes += [min(each, events - start) for start in range(0, events, each)]
    return sizes


RULE = Rule(
    "coffea-chunk-size",
    "Another chunk size would be faster",
    "A chunk has a fixed cost; a few large ones leave threads idle.",
    "A fit of fixed cost and cost per event predicts at least 1.25 times less time.",
    check,
)

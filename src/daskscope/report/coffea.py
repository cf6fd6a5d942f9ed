"""The runs of coffea in a report, each with a sentence that sums it up."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

import numpy as np

from daskscope import units
from daskscope.analysis.bins import Bins
from daskscope.analysis.coffea import CoffeaRun, event_rate
from daskscope.analysis.intervals import overlaps_us
from daskscope.insights.facts import Facts
from daskscope.report.coffea_schema import CoffeaRun as RunInReport

_SAME = (
    "name", "kind", "start_us", "stop_us", "threads", "events", "chunks", "chunks_skipped", "chunks_failed", "files",
    "files_skipped", "bytes_read", "requests", "task_us", "open_us", "process_us", "useful_share", "overhead_us",
    "bytes_per_event", "read_amplification", "points",
)  # fmt: skip


def coffea_runs(facts: Facts, bins: Bins) -> list[RunInReport]:
    """Return all runs of coffea."""
    return [_run(facts, run, bins) for run in facts.coffea]


def headline(run: CoffeaRun) -> str:
    """Return how many events were processed how fast, and how much of the time was the user's code."""
    wall = units.duration(run.wall_us)
    rate = run.rate(run.wall_us)
    if rate is None:
        first = f"{units.counted(run.chunks, 'chunk')} in {wall}."
    else:
        first = f"{units.counted(run.events, 'event')} in {wall} ({units.frequency(rate)})."
    if run.useful_share is None:
        return first
    besides = f"each chunk took another {units.duration(run.overhead_us)}"
    return f"{first} Your code took {units.percent(run.useful_share)} of the task time; {besides}."


def _run(facts: Facts, run: CoffeaRun, bins: Bins) -> RunInReport:
    times = {"wall": run.wall_us, "thread": run.thread_us, "task": run.task_us, "process": run.process_us}
    return cast(
        RunInReport,
        {
            **{name: getattr(run, name) for name in _SAME},
            "headline": headline(run),
            "rates": {name: run.rate(us) for name, us in times.items()},
            "phases": [asdict(phase) for phase in run.phases],
            "datasets": [asdict(part) for part in run.datasets],
            "file_parts": [asdict(part) for part in run.file_parts],
            "columns": list(run.columns),
            "fit": None if run.fit is None else asdict(run.fit),
            "workers": list(run.tasks_by_worker),
            "event_rate": np.round(event_rate(run, bins), 1).tolist(),
            "worker_count": np.round(_worker_count(facts, bins), 2).tolist(),
        },
    )


def _worker_count(facts: Facts, bins: Bins) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    edges = bins.start_us + bins.width_us * np.arange(bins.count + 1, dtype=np.float64)
    starts = np.array([worker.start_us for worker in facts.workers], dtype=np.float64)
    stops = np.array([worker.end_us or facts.stop_us for worker in facts.workers], dtype=np.float64)
    if not len(starts):
        return np.zeros(bins.count)
    total: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = overlaps_us(starts, stops, edges).sum(axis=0)
    return total / bins.width_us

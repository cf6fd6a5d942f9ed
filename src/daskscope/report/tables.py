"""The tables, the events and the task groups of a report.

A report has the first rows of each table and the latest events, each with the total number, and all task groups.
"""

from __future__ import annotations

import json
import logging
import math
from dataclasses import asdict
from typing import Any, Literal, cast

import numpy as np

from daskscope import units
from daskscope.analysis.coffea import CoffeaRun, event_rate
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.columns.grouping import combine, sums, where
from daskscope.analysis.columns.intervals import overlaps_us
from daskscope.analysis.executions import recomputed_pairs
from daskscope.analysis.failures import final_failures
from daskscope.analysis.time.breakdown import WASTED
from daskscope.analysis.time.waiting import cpu_share
from daskscope.insights.facts import Facts
from daskscope.model.recording import Array, Completeness, Recording, Table
from daskscope.model.untrusted import LARGEST, parse_object
from daskscope.report.blocks import Blocks
from daskscope.report.coffea_schema import CoffeaRun as RunInReport
from daskscope.report.schema import Category, Event, Group, ReportColumn, ReportTable

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


#: Rows of a table in the report: enough to look through. An export has them all.
MAX_ROWS = 2_000
#: The task stream already has every task.
MAX_TASKS = 500
MAX_TEXT = 2_000
MAX_EVENTS = 2_000
#: Dask's names of actions besides computing, and their category of thread time.
ACTIONS: dict[str, Category] = {
    "transfer": "transfer",
    "disk-read": "disk",
    "disk-write": "disk",
    "deserialize": "serialize",
}


def report_tables(recording: Recording, blocks: Blocks) -> list[ReportTable]:
    """Return every table that has rows."""
    return [_table(recording, name, blocks) for name in recording if recording[name].rows]


def _table(recording: Recording, name: str, blocks: Blocks) -> ReportTable:
    table = recording[name]
    shown = table.take(np.arange(min(table.rows, MAX_TASKS if name == "tasks" else MAX_ROWS)))
    completeness = recording.completeness.get(name, Completeness(table.rows))
    lines = [json.dumps(list(map(_plain, shown[column])), allow_nan=False) for column in shown]
    return {
        "name": name,
        "row": table.definition.row,
        "rows": shown.rows,
        "of": table.rows,
        "dropped": completeness.dropped + completeness.missing,
        "columns": [_column(table, column.name) for column in table.definition.columns],
        "data": blocks.lines(f"table.{name}", lines),
    }


def _column(table: Table, name: str) -> ReportColumn:
    column = next(column for column in table.definition.columns if column.name == name)
    kind: Literal["int", "float", "str", "time", "list"] = "list" if column.kind.endswith("[]") else column.kind  # type: ignore[assignment]
    return {"name": name, "kind": kind, "meaning": column.meaning}


def _plain(value: Any) -> Any:
    """Return a cell as a JSON value; lists become text, because they are never sorted."""
    if isinstance(value, list):
        return ", ".join(map(str, value))[:MAX_TEXT]
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]} …"
    if isinstance(value, np.generic):
        value = value.item()
    return value if not isinstance(value, float) or math.isfinite(value) else None


def events(recording: Recording) -> tuple[list[Event], int]:
    """Return the latest events and log lines in order of time, and the total number."""
    found = sorted([*_events(recording), *_logs(recording)], key=lambda event: event["time_us"])
    return found[-MAX_EVENTS:], len(found)


def _events(recording: Recording) -> list[Event]:
    rows = recording["events"].records("time_us", "topic", "kind", "worker", "detail")
    return [
        {"time_us": time, "source": topic, "kind": kind, "worker": worker, "text": detail, "repeats": 1}
        for time, topic, kind, worker, detail in rows
    ]


def _logs(recording: Recording) -> list[Event]:
    rows = recording["logs"].records("time_us", "level", "logger", "worker", "message", "repeats")
    return [
        {
            "time_us": time,
            "source": logger,
            "kind": logging.getLevelName(level).lower(),
            "worker": worker,
            "text": message,
            "repeats": repeats,
        }
        for time, level, logger, worker, message, repeats in rows
    ]


def groups(recording: Recording) -> list[Group]:
    """Return every task group in the order of their first tasks."""
    names = ("group", "prefix", "computation", "span", "start_us", "stop_us", "states", "durations_us", "nbytes")
    rows = list(recording["groups"].records(*names, "dependencies"))
    order = sorted(range(len(rows)), key=lambda i: (rows[i][4], rows[i][0]))
    # A name may occur in several computations. Prefer the dependency in the same computation, else the latest one.
    positions: dict[tuple[str, str], int] = {(rows[i][0], rows[i][2]): at for at, i in enumerate(order)}
    anywhere = {rows[i][0]: at for at, i in enumerate(order)}
    failed = final_failures(recording, "group", "computation")
    recorded = final_failures(recording, "computation")
    shares, tasks = _cpu_shares(recording), recording["tasks"]
    # Dask's counters leave out runs without a result, and have those that were recomputed.
    no_result = _times_us(tasks, np.flatnonzero(where(tasks.strings("status"), *WASTED)))
    recomputed = _times_us(tasks, recomputed_pairs(recording)[0])
    found: list[Group] = []
    for i in order:
        group, prefix, computation, span, start, stop, states, durations, nbytes, needs = rows[i]
        again_us = recomputed.get((group, computation), 0)
        durations_us = _by_category(durations, shares.get(prefix, 1.0), again_us)
        if wasted_us := no_result.get((group, computation), 0) + again_us:
            durations_us["failed"] = wasted_us
        counts = {name: n for name, n in parse_object(states).items() if isinstance(n, int) and abs(n) <= LARGEST}
        at = (positions.get((name, computation), anywhere.get(name)) for name in needs)
        found.append(
            {
                "group": group,
                "prefix": prefix,
                "computation": computation,
                "span": span,
                "start_us": start,
                "stop_us": stop,
                "tasks": sum(counts.values()),
                "nbytes": nbytes,
                # Dask's counter drops a failure once its task is forgotten, and has tasks that only depended on a failed one.
                "errors": failed.get((group, computation), 0 if (computation,) in recorded else counts.get("erred", 0)),
                "durations_us": durations_us,
                "dominant": _dominant(durations_us),
                "dependencies": sorted({position for position in at if position is not None}),
            }
        )
    return found


def _times_us(tasks: Table, rows: Array) -> dict[tuple[str, ...], int]:
    """Return the time of these task runs by group and computation."""
    codes, labels = combine([tasks.strings(name).take(rows) for name in ("group", "computation")])
    us = np.clip(tasks["stop_us"][rows] - tasks["start_us"][rows], 0, LARGEST)
    return dict(zip(labels, sums(codes, us, len(labels)).tolist(), strict=True))


def _cpu_shares(recording: Recording) -> dict[str, float]:
    """Return the CPU share of the compute time of each prefix."""
    prefixes = recording["tasks"].strings("prefix")
    return dict(zip(prefixes.values.tolist(), cpu_share(recording, prefixes).tolist(), strict=True))


def _by_category(durations: str, cpu: float, recomputed_us: int) -> dict[str, int]:
    """Return the useful time of a task group by category. Dask counts waiting inside of tasks as computing."""
    found: dict[str, int] = {}
    for action, value in parse_object(durations).items():
        if not isinstance(value, (int, float)) or not abs(value) <= LARGEST:
            continue
        us = max(0, int(value) - recomputed_us) if action == "compute" else int(value)
        on_cpu = round(us * cpu) if action == "compute" else 0
        rest = ACTIONS.get(action, "noncpu")
        for category, part in (("cpu", on_cpu), (rest, us - on_cpu)):
            if part:
                found[category] = found.get(category, 0) + part
    return found


def _dominant(durations_us: dict[str, int]) -> Category:
    return cast(Category, max(durations_us, key=lambda category: durations_us[category], default="idle"))

"""A recording as a report: every number from ``analysis``, nothing computed here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from typing import cast

import numpy as np

from daskscope import units
from daskscope.analysis import bandwidth, memory, profiles
from daskscope.analysis.answer import answer
from daskscope.analysis.bins import Bins, Cube, make_cube
from daskscope.analysis.breakdown import Breakdown, breakdown
from daskscope.analysis.completeness import is_complete, statement
from daskscope.analysis.cost import Cost, recorded_cost
from daskscope.analysis.counts import counts
from daskscope.analysis.critical_path import CriticalPath, critical_path
from daskscope.analysis.failures import Failure
from daskscope.analysis.findings import findings
from daskscope.analysis.fine_metrics import fine_metrics
from daskscope.analysis.parallelism import parallelism
from daskscope.analysis.selection import Selection, select
from daskscope.analysis.summary import Summary, extent, summarise
from daskscope.analysis.workers import Worker
from daskscope.model.recording import Recording
from daskscope.report import groups, schema
from daskscope.report.blocks import Blocks
from daskscope.report.events import events
from daskscope.report.html import render
from daskscope.report.stream import edges, stream
from daskscope.report.tables import report_tables

#: Steps of the critical path that are listed.
MOST_STEPS = 500
#: The steps in which time can be selected, and how many of them times workers a report holds apart.
BINS = 400
#: Cells of workers by bins that are added up; beyond them there are fewer bins. 20,000 workers in 400 bins took 1.4 GB.
MOST_SUMS = 2_000_000
FEWEST_BINS = 20
MOST_CELLS = 6_000
LABELS: dict[schema.Category, str] = {
    "cpu": "CPU",
    "noncpu": "Waiting in task",
    "serialize": "Serialize",
    "disk": "Disk",
    "transfer": "Transfer",
    "failed": "Lost or failed",
    "idle": "Idle",
}


def report_page(
    recording: Recording, *, title: str, code: str = "", failure: str = "", view: str = "overview"
) -> bytes:
    """A recording as one HTML page that opens on the given view."""
    report, blocks = build(recording, title=title, code=code, failure=failure, view=view)
    return render(report, blocks).encode()


def build(
    recording: Recording, *, title: str = "", code: str = "", failure: str = "", view: str = "overview"
) -> tuple[schema.Report, dict[str, bytes]]:
    """The document of a recording, or of the one window in it, and its binary columns."""
    start, stop = extent(recording)
    recording = since(recording, start)
    summary = summarise(recording)
    bins = Bins.over(start, max(stop, start + 1), most=_most_bins(recording["workers"].rows))
    split = breakdown(recording, bins)
    blocks = Blocks()
    placed = stream(
        recording,
        start,
        bins.stop_us,
        [p.prefix for p in summary.prefixes],
        [w.worker for w in summary.workers],
        blocks,
    )
    happened, happened_of = events(recording)
    report: schema.Report = {
        "schema": schema.SCHEMA,
        "generator": _generator(),
        "title": title or summary.source,
        "made_us": time.time_ns() // 1000,
        "start_us": start,
        "stop_us": stop,
        "answer": cast(schema.Answer, asdict(answer(recording, split))),
        "totals": _totals(summary, split, recording, bins, stop - start),
        "split": [{"category": c, "label": LABELS[c], "us": split.split.get(c, 0)} for c in schema.CATEGORIES],
        "findings": [cast(schema.Finding, asdict(finding)) for finding in findings(recording, split, summary.prefixes)],
        "facts": _facts(summary),
        "statement": statement(recording),
        "complete": is_complete(recording),
        "view": view,
        "calling_code": code,
        "failure": failure,
        "prefixes": [
            cast(schema.Prefix, {**asdict(p), "intervals_us": dict(p.intervals_us)}) for p in summary.prefixes
        ],
        "workers": [_worker(worker, stop) for worker in summary.workers],
        "computations": _computations(recording),
        "groups": groups.groups(recording),
        "spans": _spans(recording),
        "errors": [_error(failure) for failure in summary.errors],
        "events": happened,
        "events_of": happened_of,
        "critical_path": _path(critical_path(recording)),
        "bins": {"count": bins.count, "width_us": bins.width_us},
        "time_by_prefix": _cube("time_by_prefix", split.by_prefix, blocks),
        "time_by_worker": _cube(
            "time_by_worker", split.by_worker, blocks, step=max(1, len(summary.workers) * bins.count // MOST_CELLS)
        ),
        "time_by_span": _cube("time_by_span", split.by_span, blocks),
        "counts": _cube("counts", counts(recording, bins), blocks),
        "activities": _cube("activities", fine_metrics(recording, bins), blocks),
        "transfers": _cube("transfers", bandwidth.transfers(recording, bins), blocks),
        "series": _series(recording, bins, blocks),
        "flame": _flame(recording, bins, blocks),
        "stream": placed.stream,
        "edges": edges(recording, placed.numbers, blocks),
        "tables": report_tables(recording, blocks),
    }
    return report, blocks.data


def _most_bins(workers: int) -> int:
    return max(FEWEST_BINS, min(BINS, MOST_SUMS // max(1, workers)))


def since(recording: Recording, start_us: int) -> Recording:
    """What belongs to a window that began then; what came after its end is not in its file.

    Workers report times that are some milliseconds off. An execution belongs to the window if the scheduler assigned it after the
    window began, whatever the clock of its worker says.
    """
    tasks = recording["tasks"]
    selected = select(recording, Selection(start_us=start_us))
    kept = (tasks["assigned_us"] >= start_us) | (tasks["stop_us"] > start_us)
    return replace(selected, tables={**selected.tables, "tasks": tasks if kept.all() else tasks.take(kept)})


def _totals(summary: Summary, split: Breakdown, recording: Recording, bins: Bins, duration_us: int) -> schema.Totals:
    lost = {"memory kill", "vanished", "lost connection"}
    transferred = bandwidth.transfers(recording, bins).measures["nbytes"]
    return {
        "duration_us": duration_us,
        "tasks": recording["tasks"].rows,
        "errors": sum(error.count - error.retried for error in summary.errors),
        "retries": sum(error.retried for error in summary.errors),
        "killed": sum(prefix.killed for prefix in summary.prefixes),
        "recomputed": split.recomputed,
        "workers": len(summary.workers),
        "workers_lost": sum(worker.verdict in lost for worker in summary.workers),
        "threads": _most_at_once(summary, lambda worker: worker.threads),
        "thread_us": split.thread_us,
        "compute_us": split.compute_us,
        "idle_us": split.idle_us,
        "fully_idle_us": split.fully_idle_us,
        "nbytes": sum(prefix.nbytes for prefix in summary.prefixes),
        "peak_memory": _peak(recording, bins, "process"),
        "memory_limit": _most_at_once(summary, lambda worker: worker.memory_limit),
        "spilled": _peak(recording, bins, "spilled"),
        "transferred": int(transferred.sum()),
        "parallelism": float(np.mean(parallelism(recording, bins))),
        "cost": _cost(recorded_cost(recording, bins.start_us, bins.stop_us, split.compute_us)),
    }


def _cost(cost: Cost | None) -> schema.Cost | None:
    if cost is None:
        return None
    return {"total": round(cost.total, 6), "idle": round(cost.idle, 6), "formula": cost.formula}


def _peak(recording: Recording, bins: Bins, measure: str) -> int:
    """The most that all workers together had."""
    _, values = memory.cluster(recording, measure, bins.start_us, bins.stop_us, bins.width_us)
    return int(np.nan_to_num(values).max(initial=0))


def _most_at_once(summary: Summary, amount: Callable[[Worker], int]) -> int:
    """What workers had together (threads, memory) at the moment when that was most."""
    steps = sorted(
        step
        for w in summary.workers
        for step in ((w.start_us, amount(w)), (w.end_us or max(summary.end_us, w.start_us) + 1, -amount(w)))
    )
    level = most = 0
    for _, change in steps:
        level += change
        most = max(most, level)
    return most


def _facts(summary: Summary) -> list[schema.Fact]:
    cluster = summary.cluster
    if cluster is None:
        return []
    facts = [
        ("Cluster", cluster.name or cluster.cluster),
        ("Scheduler", cluster.address),
        ("User", cluster.user),
        ("Recorded", f"{units.moment(summary.start_us)} to {units.moment(summary.end_us)}"),
        *((name, version) for name, version in cluster.versions.items() if name in ("python", "dask", "distributed")),
    ]
    return [{"label": label, "text": text} for label, text in facts if text]


def _worker(worker: Worker, stop_us: int) -> schema.Worker:
    return {
        "worker": worker.worker,
        "name": worker.name,
        "host": worker.host,
        "threads": worker.threads,
        "memory_limit": worker.memory_limit,
        "start_us": worker.start_us,
        "stop_us": worker.end_us or stop_us,
        "verdict": worker.verdict,
        "evidence": worker.evidence,
        "tasks": worker.tasks,
        "busy_us": worker.busy_us,
        "utilisation": worker.utilisation,
        "peak_memory": worker.peak_memory,
        "spilled": worker.spilled,
        "processing": list(worker.processing),
        "processing_count": worker.processing_count,
        "lost_count": worker.lost_count,
        "recomputed_us": worker.recomputed_us,
    }


def _computations(recording: Recording) -> list[schema.Computation]:
    names = ("computation", "state", "start_us", "stop_us", "tasks", "erred", "span", "code", "code_line", "code_file")
    rows = zip(*(recording["computations"][name].tolist() for name in names), strict=True)
    found: list[schema.Computation] = [
        {
            "computation": id_,
            "state": state,
            "start_us": start,
            "stop_us": stop,
            "tasks": tasks,
            "errors": erred,
            "span": span,
            "code": code,
            "code_line": line,
            "code_file": file,
        }
        for id_, state, start, stop, tasks, erred, span, code, line, file in rows
    ]
    return sorted(found, key=lambda computation: (computation["start_us"], computation["computation"]))


def _spans(recording: Recording) -> list[schema.Span]:
    names = ("span", "tags", "parent", "start_us", "stop_us")
    rows = zip(*(recording["spans"][name].tolist() for name in names), strict=True)
    return [
        {"span": id_, "name": " / ".join(tags), "parent": parent, "start_us": start, "stop_us": stop}
        for id_, tags, parent, start, stop in rows
    ]


def _error(failure: Failure) -> schema.Error:
    return {
        "fingerprint": failure.fingerprint,
        "type": failure.type,
        "message": failure.message,
        "traceback": failure.traceback,
        "count": failure.count,
        "retried": failure.retried,
        "first_us": failure.first_us,
        "last_us": failure.last_us,
        "prefixes": list(failure.prefixes),
        "workers": list(failure.workers),
        "keys": list(failure.keys),
    }


def _path(path: CriticalPath) -> schema.CriticalPath:
    steps: list[schema.Step] = [
        {
            "key": step.key,
            "prefix": step.prefix,
            "worker": step.worker,
            "start_us": step.start_us,
            "stop_us": step.stop_us,
            "wait_us": step.wait_us,
        }
        for step in path.steps[-MOST_STEPS:]
    ]
    return {
        "known": path.known,
        "length_us": path.length_us,
        "compute_us": path.compute_us,
        "wait_us": path.wait_us,
        "bound_us": path.bound_us,
        "by_prefix": list(path.by_prefix),
        "steps": steps,
        "of": len(path.steps),
    }


def _cube(name: str, cube: Cube, blocks: Blocks, step: int = 1) -> schema.Cube:
    cube = _coarser(cube, step)
    columns = {key: blocks.codes(f"{name}.{key}", codes) for key, codes in cube.codes.items()}
    columns["bin"] = blocks.codes(f"{name}.bin", cube.bin)
    for measure, values in cube.measures.items():
        whole = values.dtype.kind in "iu"
        block = f"{name}.{measure}"
        columns[measure] = blocks.codes(block, values) if whole else blocks.column(block, values, "f64")
    return {"keys": cube.keys, "measures": list(cube.measures), "step": step, "rows": cube.rows, "columns": columns}


def _coarser(cube: Cube, step: int) -> Cube:
    """Bins taken together where there are many keys: a row for each of 1,000 workers and 400 bins would be half of the file."""
    if step == 1:
        return cube
    codes, bins = cube.codes, cube.bin // step * step
    return make_cube(cube.keys, [codes[name] for name in cube.keys], bins, int(bins.max(initial=0)) + 1, cube.measures)


def _series(recording: Recording, bins: Bins, blocks: Blocks) -> schema.Series:
    sizes = memory.memory(recording, bins)
    measures = {
        name: blocks.column(f"series.{name}", values.reshape(-1), "f32") for name, values in sizes.measures.items()
    }
    return {"workers": list(sizes.workers), "measures": measures}


def _flame(recording: Recording, bins: Bins, blocks: Blocks) -> schema.Flame:
    profile = profiles.profile(recording, bins)
    return {
        "frames": [(file, function, line, profiles.owner(file)) for file, function, line in profile.frames],
        "parents": blocks.codes("flame.parents", np.asarray(profile.parents) + 1),
        "nodes": blocks.codes("flame.nodes", np.asarray(profile.nodes)),
        "cube": _cube("flame", profile.cube, blocks),
        "seconds_per_sample": profile.seconds_per_sample,
        "got": profile.got,
        "expected": profile.expected,
    }


def _generator() -> str:
    try:
        return f"daskscope {version('daskscope')}"
    except PackageNotFoundError:
        return "daskscope"

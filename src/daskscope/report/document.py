"""Build the document of a report from a recording; all numbers come from ``analysis``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from typing import cast

import numpy as np

from daskscope import units
from daskscope.analysis import profiles, resources
from daskscope.analysis.columns.bins import Bins, Cube, make_cube
from daskscope.analysis.columns.grouping import where
from daskscope.analysis.cost import Cost, recorded_cost
from daskscope.analysis.executions import counts, parallelism
from daskscope.analysis.failures import Failure, final_failures
from daskscope.analysis.selection import since
from daskscope.analysis.summary import Summary, computation_states, extent, fine_metrics, is_open, summarise
from daskscope.analysis.time.breakdown import Breakdown, breakdown
from daskscope.analysis.time.critical_path import CriticalPath, critical_path
from daskscope.analysis.workers import LOST, Worker
from daskscope.insights.facts import Facts
from daskscope.insights.rules import findings
from daskscope.insights.story import outcome
from daskscope.model.recording import Array, Recording
from daskscope.report import schema, tables
from daskscope.report.blocks import Blocks
from daskscope.report.html import render
from daskscope.report.stream import edges, stream
from daskscope.report.tables import coffea_runs, events, report_tables

#: Steps listed of the critical path.
MAX_STEPS = 500
#: Computations whose critical paths are shown besides the longest one, and executions above which they are not.
MAX_OTHER_PATHS = 9
MAX_PATH_TASKS = 200_000
#: Bins of time, the resolution of time selections.
MAX_BINS = 400
#: Workers × bins to compute; with more workers there are fewer bins. 20,000 workers in 400 bins took 1.4 GB.
MAX_SUMS = 2_000_000
MIN_BINS = 20
#: Workers × bins in the report; beyond that, neighbouring bins are merged.
MAX_CELLS = 6_000
LABELS: dict[schema.Category, str] = {
    "cpu": "CPU",
    "noncpu": "Waiting",
    "serialize": "Serialize",
    "disk": "Disk",
    "transfer": "Transfer",
    "failed": "Lost or failed",
    "idle": "Idle",
}
WAITING_LABELS = {
    "core": "CPU core",
    "gil": "GIL",
    "lock": "Locks and queues",
    "network": "Network",
    "file": "Files",
    "subprocess": "Subprocesses",
    "native": "Library threads",
    "blocked": "Asleep or native code",
    "unknown": "Not sampled",
}
IDLE_LABELS = {
    "nothing submitted": "Nothing submitted",
    "large graph": "Graph built or sent",
    "too few tasks": "Too few tasks",
    "not started": "Assigned, not started",
    "queued": "Queued at the scheduler",
    "elsewhere": "Tasks at other workers",
    "paused": "Worker paused",
    "starting": "Worker starting",
    "cannot run": "No worker can run them",
    "unknown": "Unknown",
}


def report_page(
    recording: Recording, *, title: str, code: str = "", failure: str = "", view: str = "overview"
) -> bytes:
    """Return a recording as one HTML page that opens on the given view."""
    start, stop = extent(recording)
    return render(*build(recording, start, stop, title=title, code=code, failure=failure, view=view)).encode()


def build(
    recording: Recording,
    start_us: int,
    stop_us: int,
    *,
    title: str = "",
    code: str = "",
    failure: str = "",
    view: str = "overview",
    computation: str = "",
) -> tuple[schema.Report, dict[str, bytes]]:
    """Return the document of a recording between two times, and its binary columns by name.

    ``code`` is the calling code and ``failure`` the traceback of the block that was recorded. ``computation`` is the only
    one that the recording was reduced to, if any: then the headline is about it and not about the cluster.
    """
    recording = since(recording, start_us)
    summary = summarise(recording)
    bins = Bins.over(start_us, max(stop_us, start_us + 1), max_count=_bin_limit(recording["workers"].rows))
    split = breakdown(recording, bins)
    transfers = resources.transfers(recording, bins)
    is_running = not computation and is_open(recording)
    facts = Facts(recording, split, summary.prefixes, summary.workers, summary.errors, start_us, stop_us, is_running)
    blocks = Blocks()
    placed = stream(
        recording,
        start_us,
        bins.stop_us,
        [p.prefix for p in summary.prefixes],
        [w.worker for w in summary.workers],
        blocks,
    )
    latest_events, event_count = events(recording)
    longest, busy = facts.path, split.busy_shares()
    report: schema.Report = {
        "schema": schema.SCHEMA,
        "generator": _generator(),
        "title": title or summary.source,
        "made_us": time.time_ns() // 1000,
        "start_us": start_us,
        "stop_us": stop_us,
        "answer": cast(schema.Answer, asdict(outcome(facts))),
        "totals": _totals(facts, bins, int(transfers.measures["nbytes"].sum())),
        "split": [_share(split, category) for category in schema.CATEGORIES],
        "findings": [cast(schema.Finding, asdict(finding)) for finding in findings(facts)],
        "facts": _facts(summary, recording),
        "statement": summary.statement,
        "complete": summary.complete,
        "view": view,
        "calling_code": code,
        "failure": failure,
        "prefixes": _prefixes(recording, summary),
        "workers": [_worker(worker, stop_us, busy.get(worker.worker, 0.0)) for worker in summary.workers],
        "worker_periods": [cast(schema.WorkerPeriod, asdict(period)) for period in split.idle.periods],
        "computations": _computations(recording, stop_us),
        "groups": tables.groups(recording),
        "spans": _spans(recording),
        "errors": [_error(failure) for failure in summary.errors],
        "events": latest_events,
        "events_of": event_count,
        "critical_path": _path(longest, placed.numbers),
        "other_paths": _other_paths(recording, longest, placed.numbers),
        "bins": {"count": bins.count, "width_us": bins.width_us},
        "time_by_prefix": _cube("time_by_prefix", split.by_prefix, blocks),
        "time_by_worker": _cube(
            "time_by_worker", split.by_worker, blocks, step=max(1, len(summary.workers) * bins.count // MAX_CELLS)
        ),
        "time_by_span": _cube("time_by_span", split.by_span, blocks),
        "idle_by_reason": _cube("idle_by_reason", split.idle.cube(), blocks),
        "counts": _cube("counts", counts(recording, bins), blocks),
        "activities": _cube("activities", fine_metrics(recording, bins), blocks),
        "transfers": _cube("transfers", transfers, blocks),
        "series": _series("series", resources.memory(recording, bins), blocks),
        "scheduler": _series("scheduler", resources.scheduler(recording, bins), blocks),
        "flame": _flame(recording, bins, blocks),
        "stream": placed.stream,
        "edges": edges(recording, placed.numbers, blocks),
        "coffea": coffea_runs(facts, bins),
        "tables": report_tables(recording, blocks),
    }
    return report, blocks.data


def _bin_limit(workers: int) -> int:
    return max(MIN_BINS, min(MAX_BINS, MAX_SUMS // max(1, workers)))


def _totals(facts: Facts, bins: Bins, transferred: int) -> schema.Totals:
    recording, split = facts.recording, facts.split
    return {
        "duration_us": facts.stop_us - facts.start_us,
        "tasks": recording["tasks"].rows,
        "errors": sum(error.count - error.retried for error in facts.errors),
        "retries": sum(error.retried for error in facts.errors),
        "killed": sum(prefix.killed for prefix in facts.prefixes),
        "recomputed": split.recomputed,
        "workers": len(facts.workers),
        "workers_lost": sum(worker.verdict in LOST for worker in facts.workers),
        "threads": _peak_at_once(facts, lambda worker: worker.threads),
        "thread_us": split.thread_us,
        "compute_us": split.compute_us,
        "idle_us": split.idle_us,
        "fully_idle_us": split.fully_idle_us,
        "nbytes": sum(prefix.nbytes for prefix in facts.prefixes),
        "peak_memory": peak(recording, bins, "process"),
        "memory_limit": _peak_at_once(facts, lambda worker: worker.memory_limit),
        "spilled": peak(recording, bins, "spilled"),
        "transferred": transferred + resources.shuffled(recording),
        "shuffled": resources.shuffled(recording),
        "parallelism": float(np.mean(parallelism(recording, bins))),
        "cost": _cost(recorded_cost(recording, bins.start_us, bins.stop_us, split.compute_us)),
    }


def _cost(cost: Cost | None) -> schema.Cost | None:
    if cost is None:
        return None
    return {"total": round(cost.total, 6), "idle": round(cost.idle, 6), "formula": cost.formula}


def peak(recording: Recording, bins: Bins, measure: str) -> int:
    """Return the peak of a measure over all workers together."""
    _, values = resources.cluster(recording, measure, bins.start_us, bins.stop_us, bins.width_us)
    return int(np.nan_to_num(values).max(initial=0))


def _peak_at_once(facts: Facts, amount: Callable[[Worker], int]) -> int:
    """Return the peak of an amount (threads, memory limit) over all workers connected at the same time."""
    steps = sorted(
        step
        for w in facts.workers
        for step in ((w.start_us, amount(w)), (w.end_us or max(facts.stop_us, w.start_us) + 1, -amount(w)))
    )
    level = peak = 0
    for _, change in steps:
        level += change
        peak = max(peak, level)
    return peak


def has_no_gil_samples(recording: Recording) -> bool:
    """Return whether workers were sampled, but never with the contention of the GIL."""
    samples = recording["samples"]
    of_workers = ~where(samples.strings("worker"), resources.SCHEDULER)
    return bool(of_workers.any()) and not bool((samples["gil_contention"][of_workers] >= 0).any())


def _facts(summary: Summary, recording: Recording) -> list[schema.Fact]:
    cluster = summary.cluster
    if cluster is None:
        return []
    gil = "not measured: gilknocker is not installed on the workers" if has_no_gil_samples(recording) else ""
    facts = [
        ("Cluster", cluster.name or cluster.cluster),
        ("Scheduler", cluster.address),
        ("User", cluster.user),
        ("Recorded", f"{units.moment(summary.start_us)} to {units.moment(summary.end_us)}"),
        *((name, version) for name, version in cluster.versions.items() if name in ("python", "dask", "distributed")),
        ("GIL contention", gil),
    ]
    return [{"label": label, "text": text} for label, text in facts if text]


def _prefixes(recording: Recording, summary: Summary) -> list[schema.Prefix]:
    """Return the prefixes with their failed tasks: a task that killed its workers failed, but none of its runs did."""
    failed = final_failures(recording, "prefix")
    return [
        cast(
            schema.Prefix,
            {
                **asdict(prefix),
                "intervals_us": dict(prefix.intervals_us),
                "errors": failed.get((prefix.prefix,), 0) if failed else prefix.errors,
            },
        )
        for prefix in summary.prefixes
    ]


def _worker(worker: Worker, stop_us: int, busy_share: float) -> schema.Worker:
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
        "busy_share": busy_share,
        "peak_memory": worker.peak_memory,
        "peak_us": worker.peak_us,
        "spilled": worker.spilled,
        "processing": list(worker.processing),
        "processing_count": worker.processing_count,
        "lost_count": worker.lost_count,
        "recomputed_us": worker.recomputed_us,
    }


def _computations(recording: Recording, stop_us: int) -> list[schema.Computation]:
    names = (
        "computation",
        "start_us",
        "stop_us",
        "tasks",
        "erred",
        "span",
        "code",
        "code_line",
        "code_file",
        "graph_us",
    )
    failed = final_failures(recording, "computation")
    rows = zip(computation_states(recording, stop_us), recording["computations"].records(*names), strict=True)
    found = []
    for state, row in rows:
        fields = dict(zip(names, row, strict=True))
        # Dask's counter also counts tasks that only depended on a failed one.
        erred = fields.pop("erred")
        errors = failed.get((fields["computation"],), erred)
        found.append(cast(schema.Computation, {"state": state, "errors": errors, **fields}))
    return sorted(found, key=lambda computation: (computation["start_us"], computation["computation"]))


def _spans(recording: Recording) -> list[schema.Span]:
    rows = recording["spans"].records("span", "tags", "parent", "start_us", "stop_us")
    return [
        {"span": id_, "name": " / ".join(tags), "parent": parent, "start_us": start, "stop_us": stop}
        for id_, tags, parent, start, stop in rows
    ]


def _error(failure: Failure) -> schema.Error:
    return {
        "fingerprint": failure.fingerprint,
        # The cause, which the headline and the error groups of a server name, too.
        "type": failure.cause_type or failure.type,
        "message": failure.cause_message or failure.message,
        "traceback": failure.traceback,
        "count": failure.count,
        "retried": failure.retried,
        "first_us": failure.first_us,
        "last_us": failure.last_us,
        "prefixes": list(failure.prefixes),
        "workers": list(failure.workers),
        "keys": list(failure.keys),
    }


def _other_paths(recording: Recording, longest: CriticalPath, numbers: Array) -> list[schema.CriticalPath]:
    """Return the paths of the next longest computations; none of a large recording, where each takes a second."""
    if recording["tasks"].rows > MAX_PATH_TASKS:
        return []
    rows = recording["computations"].records("computation", "start_us", "stop_us")
    names = [str(name) for name, _, _ in sorted(rows, key=lambda row: row[1] - row[2]) if name != longest.computation]
    paths = [critical_path(recording, name) for name in names[:MAX_OTHER_PATHS]]
    return [_path(path, numbers) for path in paths if path.known]


def _path(path: CriticalPath, numbers: Array) -> schema.CriticalPath:
    steps = [{**asdict(step), "task": int(numbers[step.task_row])} for step in path.steps[-MAX_STEPS:]]
    return cast(schema.CriticalPath, {**asdict(replace(path, steps=())), "steps": steps, "of": len(path.steps)})


def _share(split: Breakdown, category: schema.Category) -> schema.Share:
    labels = {"noncpu": WAITING_LABELS, "idle": IDLE_LABELS}.get(category, {})
    amounts = {"noncpu": split.waiting_us, "idle": split.idle.us}.get(category, {})
    found = [schema.Reason(reason=name, label=labels[name], us=us) for name, us in amounts.items() if us]
    found.sort(key=lambda reason: -reason["us"])
    return {"category": category, "label": LABELS[category], "us": split.split.get(category, 0), "reasons": found}


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
    """Merge neighbouring bins if there are many keys: 1,000 workers × 400 bins would be half of the file."""
    if step == 1:
        return cube
    codes, bins = cube.codes, cube.bin // step * step
    return make_cube(cube.keys, [codes[name] for name in cube.keys], bins, int(bins.max(initial=0)) + 1, cube.measures)


def _series(block: str, sampled: resources.Memory, blocks: Blocks) -> schema.Series:
    measures = {
        name: blocks.column(f"{block}.{name}", values.reshape(-1), "f32") for name, values in sampled.measures.items()
    }
    return {"workers": list(sampled.workers), "measures": measures}


def _flame(recording: Recording, bins: Bins, blocks: Blocks) -> schema.Flame:
    profile = profiles.profile(recording, bins)
    return {
        "frames": [(file, function, line, profiles.owner(file)) for file, function, line in profile.frames],
        "parents": blocks.codes("flame.parents", np.asarray(profile.parents) + 1),
        "nodes": blocks.codes("flame.nodes", np.asarray(profile.nodes)),
        "cube": _cube("flame", profile.cube, blocks),
        "seconds_per_sample": profile.seconds_per_sample.tolist(),
        "got": profile.got,
        "expected": profile.expected,
        "note": profiles.loops_note(recording),
    }


def _generator() -> str:
    try:
        return f"daskscope {version('daskscope')}"
    except PackageNotFoundError:
        return "daskscope"

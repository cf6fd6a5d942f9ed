"""Runs of coffea: events, bytes and columns by dataset and by file, rates, and the time besides the user's own code.

Only successful chunks are added up, each once: failed and recomputed executions have rows, too. The value -1 stands for a number
that was not recorded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from daskscope.analysis.coffea_phases import EXECUTOR, SKIPPED, RunRows, runs
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.columns.grouping import flat_strings, where
from daskscope.analysis.columns.intervals import overlaps_us
from daskscope.analysis.executions import CLOCK_NOISE_US
from daskscope.model.recording import Array, Recording

UNKNOWN = -1
#: Two chunk sizes must differ by this factor for a fit.
MIN_SIZE_RATIO = 1.2
#: A worker's estimate of the scheduler's clock usually changes by less than this between the ends of a chunk and of its task.
CLOCK_SLACK_US = 20_000
#: A task stops this long after its chunk at most: it compresses and stores the result, or runs the rest of a fused graph.
MAX_AFTER_US = 3_600_000_000
#: Points of the fit and of the chart; of more chunks, an even selection.
MAX_POINTS = 400
#: Chunks that are spread over bins at a time: 400 bins of 1,000 chunks take 3 MB.
MAX_AT_ONCE = 1_000
#: Datasets and files that are listed; the rest is added up in one more part.
MAX_PARTS = 200


@dataclass(frozen=True)
class Chunk:
    """A chunk that was processed, with the duration of its task."""

    key: str
    worker: str
    dataset: str
    file: str
    events: int
    bytes_read: int
    requests: int
    columns: tuple[str, ...]
    open_us: int
    process_us: int
    stalled_us: int
    task_us: int
    start_us: int
    stop_us: int
    entry_start: int


@dataclass(frozen=True)
class Part:
    """All chunks of a dataset or a file."""

    name: str
    chunks: int
    events: int
    bytes_read: int
    task_us: int
    process_us: int
    slowest_us: int
    #: First event of the slowest chunk.
    slowest_start: int


@dataclass(frozen=True)
class PhaseTime:
    """The tasks of a phase, and the sum of their durations."""

    phase: str
    tasks: int
    us: int


@dataclass(frozen=True)
class Fit:
    """Duration of a chunk's task as a line: a fixed part, and a part per event."""

    fixed_us: float
    us_per_event: float


@dataclass(frozen=True)
class CoffeaRun:
    """One call of coffea's Runner, or one computation with dask-awkward."""

    name: str
    kind: str
    computations: tuple[str, ...]
    start_us: int
    stop_us: int
    #: Threads of all workers × their time in the run.
    thread_us: int
    threads: int
    phases: tuple[PhaseTime, ...]
    #: Tasks of the process phase, each key once: planned chunks.
    chunks: int
    chunks_skipped: int
    chunks_failed: int
    files: int
    files_skipped: int
    #: Time of failed executions.
    failed_us: int
    task_us: int
    #: Sums over the chunks; -1 without ``chunks``.
    events: int = UNKNOWN
    bytes_read: int = UNKNOWN
    requests: int = UNKNOWN
    open_us: int = UNKNOWN
    process_us: int = UNKNOWN
    stalled_us: int = UNKNOWN
    #: Share of the task time in the user's ``process()``.
    useful_share: float | None = None
    columns: tuple[str, ...] = ()
    datasets: tuple[Part, ...] = ()
    file_parts: tuple[Part, ...] = ()
    fit: Fit | None = None
    points: tuple[tuple[int, int], ...] = ()
    tasks_by_worker: tuple[tuple[str, int], ...] = ()
    #: The least bytes per event of any run in the recording that read the same columns.
    least_bytes_per_event: float | None = None
    records: tuple[Chunk, ...] = field(default=(), repr=False)

    @property
    def wall_us(self) -> int:
        return max(self.stop_us - self.start_us, 0)

    @property
    def bytes_per_event(self) -> float | None:
        return self.bytes_read / self.events if self.events > 0 and self.bytes_read >= 0 else None

    @property
    def read_amplification(self) -> float | None:
        """Return how many times more bytes were read per event than in the best run with the same columns."""
        least, own = self.least_bytes_per_event, self.bytes_per_event
        return own / least if own and least else None

    @property
    def overhead_us(self) -> int:
        """Return the time that a chunk takes besides ``process()``, on average; -1 if not known."""
        if self.useful_share is None or not self.chunks:
            return UNKNOWN
        return round(self.task_us * (1 - self.useful_share) / self.chunks)

    def rate(self, us: int) -> float | None:
        """Return events per second of the given time."""
        return self.events / us * 1e6 if self.events > 0 and us > 0 else None


def coffea_runs(recording: Recording) -> tuple[CoffeaRun, ...]:
    """Return the runs of coffea in a recording, in order of their start."""
    found = runs(recording)
    if not found:
        return ()
    chunks = _chunks_by_run(recording, found)
    made = [_run(recording, rows, part) for rows, part in zip(found, chunks, strict=True)]
    least: dict[tuple[str, ...], float] = {}
    for run in made:
        if run.columns and run.bytes_per_event:
            least[run.columns] = min(least.get(run.columns, np.inf), run.bytes_per_event)
    return tuple(replace(run, least_bytes_per_event=least.get(run.columns)) for run in made)


def _run(recording: Recording, rows: RunRows, chunks: list[Chunk]) -> CoffeaRun:
    tasks = recording["tasks"]
    every = np.concatenate([rows.preprocess, rows.process, rows.merge])
    start, stop = int(tasks["start_us"][every].min()), int(tasks["stop_us"][every].max())
    thread_us, threads = _threads(recording, start, stop)
    is_ok = where(tasks.strings("status"), "ok")
    durations = np.maximum(tasks["stop_us"] - tasks["start_us"], 0)
    done = _once(recording, rows.process[is_ok[rows.process]])
    is_skipped = _skipped(recording)
    failed = rows.process[where(tasks.strings("status"), "error", "retried")[rows.process]]
    files = _once(recording, rows.preprocess[where(tasks.strings("prefix"), "automatic_retries")[rows.preprocess]])
    task_us = int(durations[done].sum())
    parts = ((name, getattr(rows, name)) for name in ("preprocess", "process", "merge"))
    run = CoffeaRun(
        name=_name(recording, rows),
        kind=rows.kind,
        computations=rows.computations,
        start_us=start,
        stop_us=stop,
        thread_us=thread_us,
        threads=threads,
        phases=tuple(PhaseTime(name, len(part), int(durations[part].sum())) for name, part in parts if len(part)),
        chunks=len(_once(recording, rows.process)),
        chunks_skipped=int(is_skipped[done].sum()),
        chunks_failed=len(_once(recording, failed)),
        files=len(files) or len({chunk.file for chunk in chunks if chunk.file}),
        files_skipped=int(is_skipped[files].sum()),
        failed_us=int(durations[failed].sum()),
        task_us=task_us,
        useful_share=_profiled_share(recording, rows) if not chunks else None,
        tasks_by_worker=tuple(Counter(tasks.strings("worker").take(done).to_numpy().tolist()).most_common()),
    )
    return _with_chunks(run, chunks) if chunks else run


def _with_chunks(run: CoffeaRun, chunks: list[Chunk]) -> CoffeaRun:
    process_us = _sum(chunk.process_us for chunk in chunks)
    points = [(chunk.events, chunk.task_us) for chunk in chunks if chunk.events > 0 and chunk.task_us > 0]
    shown = points[:: max(1, -(-len(points) // MAX_POINTS))]
    return replace(
        run,
        events=_sum(chunk.events for chunk in chunks),
        bytes_read=_sum(chunk.bytes_read for chunk in chunks),
        requests=_sum(chunk.requests for chunk in chunks),
        open_us=_sum(chunk.open_us for chunk in chunks),
        process_us=process_us,
        stalled_us=_sum(chunk.stalled_us for chunk in chunks),
        useful_share=min(process_us / run.task_us, 1.0) if process_us >= 0 and run.task_us else None,
        columns=tuple(sorted({column for chunk in chunks for column in chunk.columns})),
        datasets=_parts(chunks, [chunk.dataset for chunk in chunks]),
        file_parts=_parts(chunks, [chunk.file for chunk in chunks]),
        fit=fit(shown),
        points=tuple(shown),
        records=tuple(chunks),
    )


def event_rate(run: CoffeaRun, bins: Bins) -> Array:
    """Return the events per second in each bin; the events of a chunk are spread evenly over its task."""
    edges = bins.start_us + bins.width_us * np.arange(bins.count + 1, dtype=np.float64)
    rates = np.zeros(bins.count)
    for first in range(0, len(run.records), MAX_AT_ONCE):
        part = [chunk for chunk in run.records[first : first + MAX_AT_ONCE] if chunk.events > 0 and chunk.task_us > 0]
        if part:
            starts, stops, events = np.array([(c.start_us, c.stop_us, c.events) for c in part], dtype=np.float64).T
            rates += (events / (stops - starts)) @ overlaps_us(starts, stops, edges)
    result: Array = rates / bins.width_us * 1e6
    return result


def fit(points: Sequence[tuple[int, int]]) -> Fit | None:
    """Return the Theil-Sen line through (events, microseconds); None without two clearly different sizes.

    It is the median of the slopes of all pairs, so a few slow chunks do not move it.
    """
    if not points:
        return None
    events, us = (np.array(column, dtype=np.float64) for column in zip(*points, strict=True))
    left, right = np.triu_indices(len(events), 1)
    wide = np.maximum(events[left], events[right]) > MIN_SIZE_RATIO * np.minimum(events[left], events[right])
    left, right = left[wide], right[wide]
    if not len(left):
        return None
    slope = max(float(np.median((us[left] - us[right]) / (events[left] - events[right]))), 0.0)
    return Fit(max(float(np.median(us - slope * events)), 0.0), slope)


#: Columns of ``chunks`` that are read.
_NAMES = (
    "time_us", "key", "worker", "kind", "dataset", "file", "file_id", "entry_start", "entry_stop", "bytes_read",
    "requests", "columns", "open_us", "process_us", "stalled_us", "failed",
)  # fmt: skip
_KINDS = {"Runner": "process", "dask-awkward": "read"}


def _chunks_by_run(recording: Recording, found: list[RunRows]) -> list[list[Chunk]]:
    """Return the successful chunks of each run, each once."""
    tasks = recording["tasks"]
    owners = _Owners(recording, found)
    kept: list[dict[tuple[Any, ...], Chunk]] = [{} for _ in found]
    for values in recording["chunks"].records(*_NAMES):
        row = dict(zip(_NAMES, values, strict=True))
        owner = None if row["failed"] else owners.find(row["kind"], row["key"], row["worker"], row["time_us"])
        if owner is None:
            continue
        number, task = owner
        file = row["file"] or row["file_id"]
        identity = (row["key"], row["dataset"], file, row["entry_start"], row["entry_stop"])
        start, stop = int(tasks["start_us"][task]), int(tasks["stop_us"][task])
        kept[number][identity] = Chunk(
            **{name: row[name] for name in _SAME},
            file=file,
            events=max(row["entry_stop"] - row["entry_start"], 0) if row["entry_start"] >= 0 else UNKNOWN,
            columns=tuple(row["columns"]),
            task_us=max(stop - start, 0),
            start_us=start,
            stop_us=stop,
        )
    return [list(chunks.values()) for chunks in kept]


#: Columns of ``chunks`` that a ``Chunk`` has, too.
_SAME = (
    "key", "worker", "dataset", "bytes_read", "requests", "open_us", "process_us", "stalled_us", "entry_start",
)  # fmt: skip


class _Owners:
    """Finds the execution of a chunk: the one with its key on its worker that stopped next. A key may run several times."""

    def __init__(self, recording: Recording, found: list[RunRows]) -> None:
        tasks = recording["tasks"]
        self._stops: dict[tuple[str, str, str], list[tuple[int, int, int]]] = {}
        for number, rows in enumerate(found):
            part = tasks.take(rows.process)
            for row, (key, worker, stop) in zip(rows.process.tolist(), part.records("key", "worker", "stop_us")):
                self._stops.setdefault((_KINDS[rows.kind], key, worker), []).append((stop, number, row))
        for stops in self._stops.values():
            stops.sort()

    def find(self, kind: str, key: str, worker: str, time_us: int) -> tuple[int, int] | None:
        """Return the number of the run and the row of the execution; None if there is none near that time."""
        stops = self._stops.get((kind, key, worker), [])
        place = bisect_left(stops, (time_us - CLOCK_SLACK_US, 0, 0))
        if place < len(stops) and stops[place][0] - time_us <= MAX_AFTER_US:
            return stops[place][1:]
        # On a busy worker the estimate of the scheduler's clock may jump further.
        if place and time_us - stops[place - 1][0] <= CLOCK_NOISE_US:
            return stops[place - 1][1:]
        return None


def _parts(chunks: list[Chunk], names: list[str]) -> tuple[Part, ...]:
    groups: dict[str, list[Chunk]] = {}
    for chunk, name in zip(chunks, names, strict=True):
        groups.setdefault(name, []).append(chunk)
    made = [_part(name, group) for name, group in groups.items()]
    return tuple(sorted(made, key=lambda part: (-part.task_us, part.name))[:MAX_PARTS])


def _part(name: str, chunks: list[Chunk]) -> Part:
    slowest = max(chunks, key=lambda chunk: chunk.task_us)
    return Part(
        name=name,
        chunks=len(chunks),
        events=_sum(chunk.events for chunk in chunks),
        bytes_read=_sum(chunk.bytes_read for chunk in chunks),
        task_us=_sum(chunk.task_us for chunk in chunks),
        process_us=_sum(chunk.process_us for chunk in chunks),
        slowest_us=slowest.task_us,
        slowest_start=slowest.entry_start,
    )


def _sum(values: Iterable[int]) -> int:
    """Return the sum of the known values; -1 if none is known."""
    known = [value for value in values if value >= 0]
    return sum(known) if known else UNKNOWN


def _name(recording: Recording, rows: RunRows) -> str:
    if rows.kind != "Runner":
        return rows.kind
    tasks = recording["tasks"]
    names = Counter(tasks.strings("prefix").take(rows.process).to_numpy().tolist())
    return str(names.most_common(1)[0][0])


def _once(recording: Recording, rows: Array) -> Array:
    """Return the last execution of each key; all of them if keys are not recorded, and are the names of groups instead."""
    tasks = recording["tasks"]
    keys = tasks.strings("key").take(rows).to_numpy().tolist()
    if keys == tasks.strings("group").take(rows).to_numpy().tolist():
        return rows
    return np.array(list(dict(zip(keys, rows.tolist(), strict=True)).values()), dtype=np.int64)


def _skipped(recording: Recording) -> Array:
    types = recording["tasks"].strings("type")
    result: Array = np.array([str(text).endswith(SKIPPED) for text in types.values], dtype=bool)[types.codes]
    return result


def _threads(recording: Recording, start_us: int, stop_us: int) -> tuple[int, int]:
    """Return the thread time between two times, and the number of threads that were there at any time."""
    workers = recording["workers"]
    if not workers.rows:
        return 0, 0
    ends = np.where(workers["end_us"] == 0, stop_us, workers["end_us"])
    edges = np.array([start_us, max(stop_us, start_us)], dtype=np.float64)
    inside = overlaps_us(workers["start_us"].astype(np.float64), ends.astype(np.float64), edges)[:, 0]
    return int(inside @ workers["nthreads"]), int(workers["nthreads"][inside > 0].sum())


def _profiled_share(recording: Recording, rows: RunRows) -> float | None:
    """Return the share of samples below coffea's call of ``process``; for recordings without ``chunks``."""
    table = recording["profiles"]
    stacks = table.lists("stack")
    texts = flat_strings(stacks)
    prefix = table.strings("prefix")
    wanted = set(recording["tasks"].strings("prefix").take(rows.process).to_numpy().tolist())
    of_run = np.array([str(text) in wanted for text in prefix.values] or [False], dtype=bool)[prefix.codes]
    frames = [str(text).replace("\\", "/").split("\t") for text in texts.values]
    calls = {code for code, frame in enumerate(frames) if EXECUTOR in frame[0] and frame[1] == "_work_function"}
    processes = {code for code, frame in enumerate(frames) if frame[1:2] == ["process"]}
    inside = total = 0
    for row in np.flatnonzero(of_run & where(table.strings("kind"), "compute")).tolist():
        codes = texts.codes[stacks.offsets[row] : stacks.offsets[row + 1]].tolist()
        count = int(table["count"][row])
        total += count
        inside += count * any(a in calls and b in processes for a, b in pairwise(codes))
    return inside / total if total and calls else None

"""Why threads were idle: idle thread time by reason, over time.

An idle thread of a worker is explained by what existed at that moment: no work at all, a paused worker, tasks that the worker had
but did not start, tasks waiting at the scheduler or at other workers, tasks that no worker can run, or too few tasks that could
run in parallel. Before tasks exist, a large graph is built, sent and unpacked. Where nothing proves one of these, the reason is
unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from daskscope.analysis.columns.bins import Bins, Cube, make_cube
from daskscope.analysis.columns.grouping import steps, sums, where
from daskscope.analysis.columns.intervals import Spread, merge, merge_all, spread, spread_all
from daskscope.analysis.workers import Lifetimes
from daskscope.model.recording import Array, Recording, Strings, Table
from daskscope.model.untrusted import parse_object

#: In display order.
REASONS = (
    "nothing submitted",
    "large graph",
    "too few tasks",
    "not started",
    "queued",
    "elsewhere",
    "paused",
    "starting",
    "cannot run",
    "unknown",
)
NOTHING, GRAPH, TOO_FEW, NOT_STARTED, QUEUED, ELSEWHERE, PAUSED, STARTING, CANNOT_RUN, UNKNOWN = range(10)
#: A worker that has no task this long after it joined is no longer starting: it gets none.
STARTING_US = 30_000_000
MAX_PERIODS = 2_000
#: Dask warns of graphs from this size. Pickling, sending and reading one of 288 MB took 2.9 s on one machine; networks are slower,
#: but a client may also pause before it submits, so no more than this is explained.
LARGE_GRAPH_NBYTES = 10_000_000
GRAPH_BYTES_PER_S = 50_000_000
#: Tasks of a graph that its client builds for a while before it sends it: 3,000 took 0.9 s beside other programs.
MANY_TASKS = 1_000
BUILDING_US = 200
#: Larger sizes and numbers are invalid, and would overflow times.
MAX_COUNT = 1_000_000_000_000


@dataclass(frozen=True)
class WorkerPeriod:
    """Time in which a connected worker did not take tasks."""

    worker: str
    state: Literal["paused", "starting"]
    start_us: int
    stop_us: int


@dataclass(frozen=True)
class Idle:
    """Idle thread time by reason. ``by_bin`` has a row per reason and a column per bin; the sum is the idle time."""

    by_bin: Array
    #: Wall time with work but without a single thread.
    no_workers_us: int
    #: Wall time in which something was submitted and not finished.
    work_us: int
    #: Idle thread time while there was work.
    with_work_us: int
    #: When workers were paused or had just joined, at most ``MAX_PERIODS``.
    periods: tuple[WorkerPeriod, ...]

    def cube(self) -> Cube:
        """Return microseconds by reason and bin."""
        reasons, bins = np.nonzero(self.by_bin)
        return make_cube({"reason": REASONS}, [reasons], bins, self.by_bin.shape[1], {"us": self.by_bin[reasons, bins]})

    @property
    def us(self) -> dict[str, int]:
        return dict(zip(REASONS, self.by_bin.sum(axis=1).astype(np.int64).tolist(), strict=True))


def idle(recording: Recording, lived: Lifetimes, threads: Spread, free: Array, bins: Bins) -> Idle:
    """Explain ``free``, the idle time of each cell (worker and bin) of ``threads``."""
    starts, stops = work(recording, bins)
    width = float(bins.width_us)
    busy_wall = spread(starts, stops, bins)
    with_work = np.zeros(bins.count)
    with_work[busy_wall.bin] = busy_wall.us / width
    bin_ = threads.bin
    size, cells = len(lived.workers), threads.group * bins.count + threads.bin
    left = free.astype(np.float64)
    found = np.zeros((len(REASONS), len(cells)))

    def explain(reason: int, at_most: Array) -> None:
        nonlocal left
        found[reason] += (taken := np.minimum(left, np.maximum(at_most, 0.0)))
        left = left - taken

    def in_cells(parts: Spread) -> Array:
        """Return the time in each cell."""
        table = sums(parts.group * bins.count + parts.bin, parts.us, size * bins.count)
        result: Array = table[cells].astype(np.float64)
        return result

    def of_workers(begin: Array, end: Array, worker: Array) -> Spread:
        known = worker >= 0
        return spread(begin[known], end[known], bins, worker[known])

    explain(NOTHING, threads.us * (1.0 - with_work[bin_]))
    paused, started = _paused(recording, lived), _starting(recording, lived, bins)
    explain(PAUSED, threads.us * np.minimum(in_cells(of_workers(*paused)) / width, 1.0))
    tasks = recording["tasks"]
    assigned = spread_all(_assigned(recording, lived), bins, max(1, size), tasks.rows)
    explain(NOT_STARTED, in_cells(assigned))
    queued = np.flatnonzero((tasks["queued_us"] > 0) & (tasks["assigned_us"] > tasks["queued_us"]))
    waited = spread(tasks["queued_us"][queued], tasks["assigned_us"][queued], bins)
    explain(QUEUED, _share(waited, left, bin_, bins))
    explain(ELSEWHERE, _share(assigned, left, bin_, bins))
    graphs = _by_bin(spread(*merge(*graph_intervals(recording)), bins), bins) / width
    explain(GRAPH, threads.us * graphs[bin_])
    # Tasks existed, but this worker had just joined.
    starting = np.minimum(in_cells(of_workers(*started)) / width, 1.0)
    for reason in (QUEUED, ELSEWHERE):
        found[STARTING] += found[reason] * starting
        found[reason] -= found[reason] * starting
    unrunnable = spread(*_unrunnable(recording, bins), bins)
    explain(CANNOT_RUN, np.where(_by_bin(unrunnable, bins)[bin_] > 0, left, 0.0))
    # While a task ran, all others waited for it or were finished. While none ran, something else held the work up.
    explain(
        TOO_FEW, threads.us * (_by_bin(spread(*merge(tasks["start_us"], tasks["stop_us"]), bins), bins) / width)[bin_]
    )
    found[UNKNOWN] += left
    by_bin = np.zeros((len(REASONS), bins.count))
    for reason in range(len(REASONS)):
        by_bin[reason] = np.bincount(bin_, weights=found[reason], minlength=bins.count)
    connected = spread(*merge(lived.start_us[lived.threads > 0], lived.stop_us[lived.threads > 0]), bins)
    present = _by_bin(connected, bins) / width
    by_bin = _whole(by_bin, sums(bin_, free, bins.count))
    return Idle(
        by_bin=by_bin,
        no_workers_us=int((np.maximum(with_work - present, 0.0) * width).sum()),
        work_us=int(busy_wall.us.sum()),
        with_work_us=int(by_bin[1:].sum()),
        periods=(*_periods("paused", lived.workers, *paused), *_periods("starting", lived.workers, *started))[
            :MAX_PERIODS
        ],
    )


def _periods(
    state: Literal["paused", "starting"], workers: list[str], starts: Array, stops: Array, owners: Array
) -> Iterator[WorkerPeriod]:
    """Yield the periods of each worker, with those that touch merged."""
    for number in np.unique(owners[owners >= 0]).tolist():
        for start, stop in zip(*merge(starts[owners == number], stops[owners == number]), strict=True):
            yield WorkerPeriod(workers[number], state, int(start), int(stop))


def work(recording: Recording, bins: Bins) -> tuple[Array, Array]:
    """Return when anything was submitted and not finished, as merged intervals."""
    computations, tasks = recording["computations"], recording["tasks"]
    open_ = computations["stop_us"] == 0
    submitted = graph_intervals(recording)[0], np.where(open_, bins.stop_us, computations["stop_us"])
    columns = [tasks[name] for name in ("queued_us", "assigned_us", "start_us")]
    existing = (
        (_runnable_us(*(column[some] for column in columns)), tasks["stop_us"][some]) for some in steps(tasks.rows)
    )
    return merge_all((submitted, *existing))


def graph_intervals(recording: Recording) -> tuple[Array, Array]:
    """Return for each computation when its client began to build and send its graph, if it is large, and when it was unpacked.

    Of several graphs, only the first one counts, as long as they take on average: tasks of it may run while others arrive.
    """
    computations = recording["computations"]
    arrived, graphs = computations["start_us"], np.maximum(computations["submissions"], 1)
    return arrived - sending_us(computations), arrived + np.maximum(computations["graph_us"], 0) // graphs


def sending_us(computations: Table) -> Array:
    """Return the estimated time of a client to build and send a graph of each computation; 0 for small ones."""
    graphs = np.maximum(computations["submissions"], 1)
    nbytes, tasks = (np.clip(computations[name], 0, MAX_COUNT) // graphs for name in ("graph_nbytes", "tasks"))
    sending = np.where(nbytes >= LARGE_GRAPH_NBYTES, nbytes * 1_000_000 // GRAPH_BYTES_PER_S, 0)
    result: Array = sending + np.where((tasks >= MANY_TASKS) & (nbytes > 0), tasks * BUILDING_US, 0)
    return result


def _runnable_us(queued: Array, assigned: Array, start: Array) -> Array:
    """Return when each task could have run: when it was queued, else assigned, else started."""
    return np.where(queued > 0, queued, np.where(assigned > 0, np.minimum(assigned, start), start))


def _assigned(recording: Recording, lived: Lifetimes) -> Iterator[tuple[Array, Array, Array, None]]:
    """Yield when executions were assigned to a worker and not started: start, stop, worker, in parts."""
    tasks = recording["tasks"]
    for some in steps(tasks.rows):
        assigned, start = tasks["assigned_us"][some], tasks["start_us"][some]
        yield np.where(assigned > 0, assigned, start), start, lived.worker[lived.of_tasks[some]], None


def _starting(recording: Recording, lived: Lifetimes, bins: Bins) -> tuple[Array, Array, Array]:
    """Return the time from joining to the first task, for workers that joined during the recording."""
    tasks = recording["tasks"]
    first = np.full(len(lived.worker), np.iinfo(np.int64).max)
    for some in steps(tasks.rows):
        assigned, start = tasks["assigned_us"][some], tasks["start_us"][some]
        np.minimum.at(first, lived.of_tasks[some], _runnable_us(np.zeros_like(start), assigned, start))
    stop = np.minimum(np.minimum(first, lived.stop_us), lived.start_us + STARTING_US)
    joined = lived.start_us > bins.start_us
    return lived.start_us[joined], np.maximum(stop, lived.start_us)[joined], lived.worker[joined]


def _paused(recording: Recording, lived: Lifetimes) -> tuple[Array, Array, Array]:
    """Return when workers were paused, from their samples and changes of their status: start, stop, worker."""
    samples, events = recording["samples"], recording["events"]
    names = {address: number for number, address in enumerate(lived.workers)}

    def owners(texts: Strings) -> Array:
        result: Array = np.array([names.get(str(text), -1) for text in texts.values] or [-1], dtype=np.int64)[
            texts.codes
        ]
        return result

    changes = np.flatnonzero(where(events.strings("kind"), "worker-status-change"))
    details = events.strings("detail").take(changes).to_numpy().tolist()
    changed_to_paused = np.array([parse_object(str(text)).get("status") == "paused" for text in details], dtype=bool)
    owner = np.concatenate((owners(samples.strings("worker")), owners(events.strings("worker"))[changes]))
    times = np.concatenate((samples["time_us"], events["time_us"][changes]))
    paused = np.concatenate((where(samples.strings("status"), "paused"), changed_to_paused))
    order = np.lexsort((times, owner))
    owner, times, paused = owner[order], times[order], paused[order]
    # A status holds until the next one of the same worker is known.
    same = np.concatenate((owner[1:] == owner[:-1], [False])) if len(owner) else np.zeros(0, dtype=bool)
    rows = np.flatnonzero(paused & same)
    return times[rows], times[rows + 1], owner[rows]


def _unrunnable(recording: Recording, bins: Bins) -> tuple[Array, Array]:
    """Return when tasks existed that no connected worker could run, from samples of the scheduler."""
    samples = recording["samples"]
    rows = np.flatnonzero(where(samples.strings("worker"), "scheduler"))
    rows = rows[np.argsort(samples["time_us"][rows], kind="stable")]
    times = samples["time_us"][rows]
    until = np.concatenate((times[1:], [max(int(bins.stop_us), int(times[-1]))])) if len(rows) else times
    some = samples["unrunnable"][rows] > 0
    # Such tasks came with a graph, so the time between it and the first sample counts, too.
    graphs = np.sort(recording["computations"]["start_us"])
    latest = np.searchsorted(graphs, times, side="right") - 1
    arrived = graphs[np.maximum(latest, 0)] if len(graphs) else times
    before = np.concatenate((times[:1], times[:-1]))
    begins = np.where((latest >= 0) & (arrived > before), np.minimum(arrived, times), times)
    return begins[some], until[some]


def _by_bin(parts: Spread, bins: Bins) -> Array:
    result: Array = sums(parts.bin, parts.us, bins.count).astype(np.float64)
    return result


def _share(waited: Spread, left: Array, bin_: Array, bins: Bins) -> Array:
    """Divide the waiting time of tasks in each bin among the idle threads in it."""
    total = _by_bin(waited, bins)
    idle_now = np.bincount(bin_, weights=left, minlength=bins.count)
    ratio = np.minimum(total / np.where(idle_now > 0, idle_now, 1.0), 1.0)
    result: Array = left * ratio[bin_]
    return result


def _whole(by_bin: Array, totals: Array) -> Array:
    """Round to microseconds so that each bin adds up to its total."""
    whole = np.floor(by_bin).astype(np.int64)
    largest = np.argmax(by_bin, axis=0)
    whole[largest, np.arange(whole.shape[1])] += totals - whole.sum(axis=0)
    return whole

"""Predict wall time, cost and memory of a computation on another cluster, or with faster tasks, by replaying its graph.

Every answer comes with a check: the replay of the recorded cluster, beside what the run took. There are no predictions if the two
differ by more than a fifth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise

import numpy as np

from daskscope import units
from daskscope.analysis.cost import Prices, choose_prices, estimate, own_prices
from daskscope.analysis.what_if.chunks import with_chunks
from daskscope.analysis.what_if.from_recording import (
    MAX_DEVIATION,
    CannotReplay,
    Replayable,
    balancing,
    one_native_thread,
    recorded_graph,
    with_us,
    without_disk,
)
from daskscope.analysis.what_if.graph import Replayed, Setup
from daskscope.analysis.what_if.locks import with_locks
from daskscope.analysis.what_if.replay import replay
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording

#: The task that ends the first half of a P2P shuffle or rechunk.
P2P_PREFIX = "shuffle-barrier"


def assumptions(recorded: Replayable, threads: int, *, has_transfers: bool) -> tuple[str, ...]:
    """Return the assumptions of predictions with the given number of threads per worker."""
    found = ["All workers are there from the start, and tasks do the same work as in the run.", _cores(recorded)]
    if recorded.sending_us:
        found.append(
            "Times count from the arrival of the graph at the scheduler. Building and sending it took the client up to "
            f"{units.duration(recorded.sending_us)} before, which other workers do not change."
        )
    if threads > 1 and any(group.gil_share for group in recorded.graph.groups):
        found.append("Tasks in Python loops hold the GIL, and run one after the other on the threads of a worker.")
    if recorded.lock_wait_us:
        found.append(
            f"Tasks waited {units.duration(recorded.lock_wait_us)} for locks. A replay knows one lock, which they hold one after "
            "the other, as long as fits these waits."
        )
    if has_transfers and "bandwidth" in recorded.assumed:
        overheads = recorded.overheads
        found.append(
            f"Too few transfers were recorded to measure them: {overheads.bandwidth:,.0f} MB/s and "
            f"{units.duration(overheads.transfer_us)} each are assumed."
        )
    if assumed := _assumed_overheads(recorded, has_transfers=has_transfers):
        found.append(f"Too little was recorded to measure some overheads. Assumed: {', '.join(assumed)}.")
    if has_transfers and P2P_PREFIX in {recorded.prefixes[code] for code in set(recorded.prefix.tolist())}:
        found.append("What workers send each other in a P2P shuffle is not part of the graph, and takes no time here.")
    return tuple(found)


def _cores(recorded: Replayable) -> str:
    cores, others = recorded.setup.cores, recorded.setup.others
    busy = f", of which other programs use {others:.2g}" if others >= 0.05 else ""
    if not math.isfinite(cores):
        return "The number of cores is not known: each thread has one."
    if recorded.is_local:
        return f"All workers share the {cores:g} cores of one machine{busy}."
    return f"A host has {units.counted(recorded.workers_per_host, 'worker')} and {cores:g} cores{busy}."


def _assumed_overheads(recorded: Replayable, *, has_transfers: bool) -> list[str]:
    """Return the assumed overheads that the sentence about transfers does not name."""
    overheads, assumed = recorded.overheads, recorded.assumed
    found = []
    if "link_us" in assumed and recorded.graph.inputs:
        found.append(f"{units.duration(overheads.link_us)} between a task and its dependent")
    if "gap_us" in assumed:
        found.append(f"{units.duration(overheads.gap_us)} between two tasks on a thread")
    if "scheduler_us" in assumed:
        found.append(f"{units.duration(overheads.scheduler_us)} of the scheduler per task")
    if has_transfers and "transfer_us" in assumed and "bandwidth" not in assumed:
        found.append(f"{units.duration(overheads.transfer_us)} per transfer besides its bytes")
    return found


#: Work of balancing (``balancing``) that takes 15 s: 30 hours of tasks on a thousand workers.
MAX_BALANCING = 100_000_000
#: From this difference between the replay of the recorded run and the run, wall times are ranges.
MIN_ERROR = 0.05
#: A step to more workers is worth it if it gives this share of the speed-up that the workers could give.
MIN_RETURN = 0.5
MAX_WORKERS, MAX_THREADS, MAX_COUNTS = 10_000, 1_000, 20
#: Executions of a prefix from which its slowest twentieth are stragglers.
MIN_EXECUTIONS = 20


@dataclass(frozen=True)
class Options:
    """What differs from the recorded run besides the number of workers and threads."""

    #: Task prefixes, and how many times faster their tasks are.
    faster: Mapping[str, float] = field(default_factory=dict)
    no_transfers: bool = False
    no_spill: bool = False
    #: No task takes longer than 95 % of its prefix do.
    no_stragglers: bool = False
    #: Chunks of this many times the size.
    chunks: float = 1.0

    @classmethod
    def from_attributes(cls, faster: Mapping[str, float], given: object) -> Options:
        """Return the options that a query or the arguments of a command have as attributes of the same names."""
        return cls(faster, **{one.name: getattr(given, one.name) for one in fields(cls) if one.name != "faster"})


@dataclass(frozen=True)
class Prediction:
    """What the computation would take on a cluster of equal workers."""

    workers: int
    #: Threads of each worker.
    threads: int
    wall_us: int
    #: Wall time if native code of a worker's threads runs one after the other, and other programs of the host keep their cores;
    #: usually the same.
    max_wall_us: int
    #: Wall time of the run divided by the predicted wall time.
    speedup: float
    #: Share of thread time in which tasks run.
    efficiency: float
    #: In dollars; None if there are no prices.
    cost: float | None
    #: Memory of results: the highest of one worker, and of all together.
    peak_worker_nbytes: int
    peak_nbytes: int
    transferred_nbytes: int
    #: Whether a worker would have more results than fit into the memory of a recorded one.
    exceeds_memory: bool


@dataclass(frozen=True, repr=False)
class WhatIf:
    """Predictions, and how well the replay repeats the recorded run."""

    computation: str
    #: Why there are no predictions; empty if there are.
    reason: str
    #: Workers, threads of each, and wall time of the run; and the wall time of its replay.
    workers: int = 0
    threads: int = 0
    wall_us: int = 0
    replayed_us: int = 0
    #: Wall time that the longest chain of dependencies takes, with any number of workers.
    bound_us: int = 0
    #: By number of workers.
    predictions: tuple[Prediction, ...] = ()
    #: The last number of workers up to which more of them pay off; 0 without predictions.
    knee: int = 0
    assumptions: tuple[str, ...] = ()
    #: Task prefixes, longest total time first.
    prefixes: tuple[str, ...] = ()

    @property
    def check(self) -> str:
        """Return how well the replay repeats the recorded run, as a sentence."""
        if not self.wall_us:
            return ""
        took, ran = units.duration(self.replayed_us), units.duration(self.wall_us)
        return f"The replay of the recorded run takes {took}; the run took {ran}."

    @property
    def advice(self) -> str:
        """Return up to how many workers more of them pay off, as a sentence."""
        if len(self.predictions) < 2:
            return ""
        if self.knee == self.predictions[-1].workers:
            return f"Every step up to {self.knee:,} workers pays off."
        return (
            f"Beyond {units.counted(self.knee, 'worker')}, more of them give less than half of the speed-up they could."
        )

    def __repr__(self) -> str:
        if self.reason:
            return f"<WhatIf: {self.reason}>"
        parts = [f"{p.workers} × {p.threads}: {wall_time(p)}" for p in self.predictions]
        return f"<WhatIf {', '.join(parts)}. {self.check}>"


def wall_time(prediction: Prediction) -> str:
    """Return the wall time of a prediction, or its range."""
    least, most = units.duration(prediction.wall_us), units.duration(prediction.max_wall_us)
    return least if least == most else f"{least} to {most}"


def what_if(
    recording: Recording,
    *,
    workers: Sequence[int] | None = None,
    threads: int | None = None,
    options: Options | None = None,
    computation: str | None = None,
    prices: Prices | None = None,
) -> WhatIf:
    """Predict a computation, by default the one that took longest, for each number of workers.

    By default there are as many threads as recorded, and from a quarter to eight times as many workers.
    """
    options = options or Options()
    try:
        recorded = with_locks(recorded_graph(recording, computation))
    except CannotReplay as error:
        return WhatIf(computation or "", str(error))
    changed, notes = _changed(recorded, options), tuple[str, ...]()
    if options.chunks != 1:
        try:
            other = with_chunks(recording, changed, options.chunks)
        except CannotReplay as error:
            return WhatIf(
                recorded.computation, str(error), recorded.workers, recorded.threads, prefixes=_prefixes(recorded)
            )
        changed, notes = other.recorded, other.assumptions
    counts = _worker_counts(workers, recorded.workers)
    per_worker = _checked("threads", threads or min(recorded.threads, MAX_THREADS), MAX_THREADS)
    if max(balancing(one, max(recorded.workers, *counts)) for one in (recorded, changed)) > MAX_BALANCING:
        reason = "The tasks take too long in total to be replayed with that many workers. Ask for fewer workers."
        return WhatIf(recorded.computation, reason)
    check_us = round(recorded.before_us + _replayed(recorded, recorded.setup).wall_us)
    found = WhatIf(
        computation=recorded.computation,
        reason="",
        workers=recorded.workers,
        threads=recorded.threads,
        wall_us=recorded.wall_us,
        replayed_us=check_us,
        bound_us=round(recorded.before_us + longest_chain_us(changed)),
        prefixes=_prefixes(recorded),
    )
    if abs(check_us - recorded.wall_us) > MAX_DEVIATION * recorded.wall_us:
        reason = (
            f"{found.check} They differ by more than {MAX_DEVIATION:.0%}, so that a prediction would not be reliable."
        )
        return replace(found, reason=reason.replace("%", " %"))
    prices = prices or _recorded_prices(recording)
    ratio = recorded.wall_us / max(check_us, 1)
    predictions = tuple(_predict(recorded, changed, options, (count, per_worker), prices, ratio) for count in counts)
    return replace(
        found,
        predictions=predictions,
        knee=knee(predictions),
        assumptions=(
            *assumptions(recorded, per_worker, has_transfers=not options.no_transfers),
            *notes,
            *_range_notes(recorded, per_worker, predictions, ratio),
        ),
    )


def knee(predictions: Sequence[Prediction]) -> int:
    """Return the last number of workers up to which each step gives half of the speed-up that its workers could give."""
    found = predictions[0].workers
    for before, after in pairwise(predictions):
        gain = before.wall_us / max(after.wall_us, 1) - 1
        if gain < MIN_RETURN * (after.workers / before.workers - 1):
            break
        found = after.workers
    return found


def longest_chain_us(recorded: Replayable) -> float:
    """Return the time of the longest chain of executions: no cluster is faster."""
    graph = recorded.graph
    missing = np.diff(graph.inputs_from).tolist()
    ready = [task for task, count in enumerate(missing) if not count]
    chain = [0.0] * len(missing)
    longest = 0.0
    while ready:
        task = ready.pop()
        end = chain[task] + graph.us[task]
        longest = max(longest, end)
        for dependent in graph.dependents[graph.dependents_from[task] : graph.dependents_from[task + 1]]:
            chain[dependent] = max(chain[dependent], end)
            missing[dependent] -= 1
            if not missing[dependent]:
                ready.append(dependent)
    return longest


def _changed(recorded: Replayable, options: Options) -> Replayable:
    """Return the computation with changed durations."""
    result = without_disk(recorded) if options.no_spill else recorded
    us = np.array(result.graph.us)
    for prefix, times in options.faster.items():
        if prefix not in recorded.prefixes or not (recorded.prefix == recorded.prefixes.index(prefix)).any():
            known = ", ".join(_prefixes(recorded)[:10])
            raise DaskscopeError(f"No task has the prefix {prefix!r}. The prefixes are {known}.")
        if not (math.isfinite(times) and times > 0):
            raise DaskscopeError(f"{prefix} can't be {times} times faster. Give a number above 0.")
        rows = recorded.prefix == recorded.prefixes.index(prefix)
        us[rows] /= times
    if options.no_stragglers:
        for code in np.unique(recorded.prefix).tolist():
            rows = np.flatnonzero(recorded.prefix == code)
            if len(rows) >= MIN_EXECUTIONS:
                us[rows] = np.minimum(us[rows], np.percentile(us[rows], 95))
    return with_us(result, us)


def _worker_counts(workers: Sequence[int] | None, recorded: int) -> list[int]:
    if workers is None:
        counts = {max(1, recorded // 4), max(1, recorded // 2), recorded, 2 * recorded, 4 * recorded, 8 * recorded}
        return sorted({min(count, MAX_WORKERS) for count in counts})
    if not workers or len(workers) > MAX_COUNTS:
        raise DaskscopeError(f"Give 1 to {MAX_COUNTS} numbers of workers.")
    return sorted({_checked("workers", count, MAX_WORKERS) for count in workers})


def _checked(what: str, count: int, limit: int) -> int:
    if not 1 <= count <= limit:
        raise DaskscopeError(f"{count} {what} can't be replayed. Give a number from 1 to {limit:,}.")
    return count


def _replayed(recorded: Replayable, setup: Setup) -> Replayed:
    return replay(recorded.graph, setup, recorded.overheads)


def _predict(
    recorded: Replayable,
    changed: Replayable,
    options: Options,
    size: tuple[int, int],
    prices: Prices | None,
    error: float,
) -> Prediction:
    """Predict for a number of workers and threads of each. ``error`` is the run's time in times of its replay."""
    workers, threads = size
    setup = Setup.uniform(
        workers,
        threads,
        per_host=workers if recorded.is_local else recorded.workers_per_host,
        cores=recorded.setup.cores,
        others=recorded.setup.others,
        saturation=recorded.setup.saturation,
        has_stealing=recorded.setup.has_stealing,
        has_transfers=not options.no_transfers,
    )
    changed = with_warm_up(changed, workers)
    fastest = with_free_cores(changed, workers * threads)
    found = _replayed(fastest, setup)
    wall_us = max_wall_us = recorded.before_us + found.wall_us
    slowest = one_native_thread(changed) if threads > recorded.threads else changed
    kept = setup.with_kept_cores()
    if slowest is not fastest or kept is not setup:
        max_wall_us = max(wall_us, recorded.before_us + _replayed(slowest, kept).wall_us)
    if abs(error - 1.0) >= MIN_ERROR:
        wall_us, max_wall_us = wall_us * min(error, 1.0), max_wall_us * max(error, 1.0)
    thread_s = workers * threads * wall_us / 1e6
    cost = None
    if prices is not None:
        cost = estimate(
            prices,
            thread_s=thread_s,
            memory_byte_s=workers * recorded.memory_limit * wall_us / 1e6,
            compute_s=found.busy_us / 1e6,
            threads=workers * threads,
            memory_limit=workers * recorded.memory_limit,
        ).total
    return Prediction(
        workers=workers,
        threads=threads,
        wall_us=round(wall_us),
        max_wall_us=round(max_wall_us),
        speedup=round(recorded.wall_us / max(wall_us, 1.0), 3),
        efficiency=round(min(1.0, found.busy_us / 1e6 / thread_s), 3) if thread_s else 0.0,
        cost=cost,
        peak_worker_nbytes=found.peak_worker_nbytes,
        peak_nbytes=found.peak_nbytes,
        transferred_nbytes=found.transferred,
        exceeds_memory=0 < recorded.memory_limit < found.peak_worker_nbytes,
    )


def with_warm_up(recorded: Replayable, workers: int) -> Replayable:
    """Return the computation with the warm-up of another number of workers."""
    warm_up, us = recorded.warm_up, np.array(recorded.graph.us)
    if workers < recorded.workers:
        return with_us(recorded, warm_up.left_out(us, workers))
    return with_us(recorded, warm_up.added(us, workers, recorded.workers))


def with_free_cores(recorded: Replayable, threads: int) -> Replayable:
    """Return the computation if threads of libraries use the cores that fewer threads of workers leave to them."""
    before = recorded.workers * recorded.threads
    if threads >= before or not recorded.library_us.any():
        return recorded
    return with_us(recorded, np.array(recorded.graph.us) - recorded.library_us * (1.0 - threads / before))


def _recorded_prices(recording: Recording) -> Prices | None:
    own = own_prices(recording)
    return choose_prices({"core_hour": 0.0, "gib_hour": 0.0}, own, []) if own else None


def _prefixes(recorded: Replayable) -> tuple[str, ...]:
    totals = np.bincount(recorded.prefix, weights=recorded.graph.us, minlength=len(recorded.prefixes))
    present = np.bincount(recorded.prefix, minlength=len(recorded.prefixes)) > 0
    return tuple(recorded.prefixes[code] for code in np.argsort(-totals, kind="stable").tolist() if present[code])


def _range_notes(recorded: Replayable, threads: int, predictions: Sequence[Prediction], error: float) -> list[str]:
    """Say why wall times are ranges, if one is."""
    found: list[str] = []
    if all(wall_time(prediction) == units.duration(prediction.wall_us) for prediction in predictions):
        return found
    if threads > recorded.threads and one_native_thread(recorded) is not recorded:
        found.append(
            "The recording does not say how much native code, such as numpy's, slows down the other threads of its worker. "
            "The longer wall time assumes threads that run it one after the other."
        )
    if recorded.setup.with_kept_cores() is not recorded.setup:
        found.append(
            "Other programs may share their cores with more workers, or keep them. In the longer wall time they keep them."
        )
    if abs(error - 1.0) >= MIN_ERROR:
        longer = "longer" if error < 1.0 else "shorter"
        found.append(
            f"The replay of the recorded run was {longer} than the run by {units.percent(abs(1 / error - 1))}. So may "
            "predictions be."
        )
    if any(with_free_cores(recorded, one.workers * one.threads) is not recorded for one in predictions):
        found.append(
            "Threads of libraries, such as BLAS, may use the cores that fewer workers leave to them, as the shorter time has it."
        )
    return found

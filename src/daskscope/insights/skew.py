"""Rules about uneven work: one task that takes much longer than others, one that runs alone, and slow workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import MAX_DENSE, rows_by_group, where
from daskscope.analysis.columns.intervals import alone_us
from daskscope.analysis.executions import EXECUTED, input_nbytes
from daskscope.analysis.what_if.savings import MAX_TASKS, Change, with_durations
from daskscope.insights.facts import MIN_US, RELEVANT, Facts, Finding, Gain, Rule, at_least
from daskscope.insights.python_code import MIN_LOADING, loading_us
from daskscope.model.recording import Array, Table

#: Rows of a prefix that say what is usual; more of them change the median by little, and cost time.
MAX_SAMPLED = 10_000
#: Long executions that are looked at for one that is not the first of its worker.
MAX_LONG = 50
#: Data of a skewed task, by the median of its prefix, and at least this many bytes.
MIN_BYTES_RATIO = 5.0
MIN_NBYTES = 100_000
#: A task with ten times the data takes three to thirty times as long: else something else makes it slow.
MAX_UNEXPLAINED = 3.0


@dataclass(frozen=True)
class Longest:
    """The longest execution of a prefix, besides the first of each worker, and its data: inputs and result."""

    prefix: str
    count: int
    row: int
    us: int
    median_us: int
    nbytes: int
    median_nbytes: int

    @property
    def is_skewed(self) -> bool:
        """Whether the task took longer because it had more data than others."""
        times = self.nbytes / max(self.median_nbytes, 1)
        is_larger = times >= MIN_BYTES_RATIO and self.nbytes >= MIN_NBYTES
        return is_larger and self.us / max(self.median_us, 1) <= MAX_UNEXPLAINED * times


def _longest_executions(facts: Facts, min_ratio: float, min_share: float) -> list[Longest]:
    """Return the longest execution of prefixes where it takes a multiple of the median, a share of the run, and 1 s.

    On a single thread nothing waits for it, and nothing could share its work.
    """
    if sum(worker.threads for worker in facts.workers) < 2:
        return []
    tasks, min_us = facts.recording["tasks"], max(MIN_US, min_share * facts.run_us)
    candidates = [p for p in facts.longest_prefixes if p.p50_us > 0 and p.max_us > max(min_ratio * p.p50_us, min_us)]
    found = []
    for prefix in candidates:
        mine = where(tasks.strings("status"), *EXECUTED) & where(tasks.strings("prefix"), prefix.prefix)
        row = _longest_row(tasks, mine, max(min_ratio * prefix.p50_us, min_us))
        if row < 0:
            continue
        rows = np.flatnonzero(mine)
        some = np.union1d(row, rows[:: -(-len(rows) // MAX_SAMPLED)])
        nbytes = input_nbytes(facts.recording, some) + np.maximum(tasks["nbytes"][some], 0)
        size, usual_size = int(nbytes[np.searchsorted(some, row)]), int(np.median(nbytes))
        us = int(tasks["stop_us"][row] - tasks["start_us"][row])
        found.append(Longest(prefix.prefix, prefix.count, row, us, prefix.p50_us, size, usual_size))
    return found


def _longest_row(tasks: Table, mine: Array, min_us: float) -> int:
    """Return the row of the longest of the given executions that is not the first of its worker; -1 if none takes that long."""
    long = np.flatnonzero(mine & (tasks["stop_us"] - tasks["start_us"] > min_us))
    long = long[np.argsort(tasks["start_us"][long] - tasks["stop_us"][long], kind="stable")]
    workers = tasks.strings("worker").codes
    firsts: dict[int, int] = {}
    for row in long[:MAX_LONG].tolist():
        worker = int(workers[row])
        if worker not in firsts:
            beside = np.flatnonzero(mine & (workers == worker))
            # A worker with one execution of a prefix has no later one to compare it with: that one counts as usual.
            firsts[worker] = int(beside[np.argmin(tasks["start_us"][beside])]) if len(beside) > 1 else -1
        if row != firsts[worker]:
            return int(row)
    return -1


def _straggler_saving(facts: Facts, one: Longest) -> Gain | None:
    """Return the estimated saving if the execution were split: in two at least, and over all threads at most."""
    tasks = facts.recording["tasks"]
    threads = facts.sharing_threads(one.prefix, int(tasks["start_us"][one.row]), int(tasks["stop_us"][one.row]))
    alone = alone_us(tasks["start_us"], tasks["stop_us"], one.row)
    shortest_us = max(one.median_us, one.us // threads)
    us = min(_shared_us(alone, threads), one.us - shortest_us)
    return facts.wall_time(
        us,
        f"time in which no other task was computing, less what remains if {units.counted(threads, 'thread')} share the work",
        with_durations(np.array([one.row]), np.array([shortest_us])),
        min(us, _shared_us(alone, 2)),
    )


def _as_long(facts: Facts, one: Longest) -> int:
    """Return how many executions of the prefix took at least half as long."""
    tasks = facts.recording["tasks"]
    mine = where(tasks.strings("status"), *EXECUTED) & where(tasks.strings("prefix"), one.prefix)
    return int(np.count_nonzero(2 * (tasks["stop_us"] - tasks["start_us"])[mine] >= one.us))


def _shared_us(alone: int, threads: int) -> int:
    """Return how much shorter the time of one thread becomes if several share its work."""
    return alone - alone // threads


#: A straggler takes more than 10 times the median of its prefix, more than 10 % of the run, and more than 1 s.
STRAGGLER_RATIO = 10
STRAGGLER_SHARE = 0.1


def _stragglers(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    for one in _longest_executions(facts, STRAGGLER_RATIO, STRAGGLER_SHARE):
        # Data skew is a finding of its own. Importing and compiling, or waiting for another thread that does, is not its input.
        if one.is_skewed or sum(loading_us(facts, np.array([one.row]))) >= MIN_LOADING * one.us:
            continue
        name, count = one.prefix or "unnamed", _as_long(facts, one)
        took = f"took {units.duration(one.us)}"
        title = (
            f"One {name} task {took}"
            if count == 1
            else f"{units.count(count)} {name} tasks took up to {units.duration(one.us)}"
        )
        evidence = (
            f"The median of {units.counted(one.count, 'task')} is {units.duration(one.median_us)}. "
            f"{'This one' if count == 1 else 'The longest one'} took "
            f"{units.percent(one.us / facts.run_us) if facts.run_us else 'all'} of the run."
        )
        advice = "Split its input, or partition the data more evenly."
        start, stop = int(tasks["start_us"][one.row]), int(tasks["stop_us"][one.row])
        yield Finding("straggler", title, evidence, advice, "stream", start, stop, _straggler_saving(facts, one))


STRAGGLERS = Rule(
    "stragglers",
    "One task takes much longer than the others of its prefix",
    "The last task decides when a computation ends. All other threads wait for it.",
    f"More than {STRAGGLER_RATIO:g} times the median of its prefix, {at_least(STRAGGLER_SHARE, 'the run')}, if the size of its "
    "data does not explain it. The first execution on a worker does not count.",
    _stragglers,
)


#: Duration by the median of the prefix (95th percentile by median of skewed runs), and share of the run.
SKEW_RATIO = 5.0
SKEW_SHARE = 0.1


def _data_skew(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    for one in _longest_executions(facts, SKEW_RATIO, SKEW_SHARE):
        if not one.is_skewed:
            continue
        name = one.prefix or "unnamed"
        start, stop = int(tasks["start_us"][one.row]), int(tasks["stop_us"][one.row])
        times = f"{one.nbytes / one.median_nbytes:,.0f} times the" if one.median_nbytes else "much more"
        than = "of the others" if one.median_nbytes else "than the others"
        yield Finding(
            "skew",
            f"One {name} task had {times} data {than} and took {units.duration(one.us)}",
            f"Inputs and result are {units.nbytes(one.nbytes)}; the median of {units.counted(one.count, 'task')} is "
            f"{units.nbytes(one.median_nbytes)} and {units.duration(one.median_us)}.",
            "Divide the data more evenly: repartition(), rechunk(), or split the key or file that is so much larger than others.",
            "stream",
            start,
            stop,
            _straggler_saving(facts, one),
        )


DATA_SKEW = Rule(
    "data-skew",
    "One task has much more data than the others of its prefix",
    "The task with the largest partition decides when a computation ends, however many workers there are.",
    f"{SKEW_RATIO:g} times the median duration of its prefix, {at_least(SKEW_SHARE, 'the run')}, and {MIN_BYTES_RATIO:g} times the "
    f"bytes, which explain the duration within a factor of {MAX_UNEXPLAINED:g}.",
    _data_skew,
)


# ---------------------------------------------------------------- slow workers

#: Executions of a prefix that say how fast a worker is, and workers with as many that it is compared with.
MIN_EXECUTIONS = 5
MIN_COMPARED = 3
#: How many times slower, and the largest share of all workers: if more are slow, slow is normal.
SLOW_RATIO = 1.5
MAX_SLOW = 0.34
#: Executions that are added up at a time: 20 MB.
BLOCK = 500_000


def _slow_workers(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    worker = tasks.strings("worker")
    if len(worker.values) < MIN_COMPARED or len(worker.values) * len(tasks.strings("prefix").values) > MAX_DENSE:
        return
    sums = _add_up(tasks)
    # A worker that got the larger chunks is not slow: data skew.
    ratios = _ratios(sums.durations, sums.counts) / np.maximum(_ratios(sums.sizes, sums.counts), 1.0)
    slow = np.flatnonzero(ratios >= SLOW_RATIO)
    if not len(slow) or len(slow) > MAX_SLOW * np.isfinite(ratios).sum():
        return
    us = int((sums.spent_us * (1.0 - 1.0 / np.maximum(ratios, 1.0)))[slow].sum())
    if not facts.is_relevant(us):
        return
    worst = int(slow[np.argmax(ratios[slow])])
    name = next((w.name for w in facts.workers if w.worker == worker.values[worst]), "") or worker.values[worst]
    others = f", and {units.counted(len(slow) - 1, 'other')} more than {SLOW_RATIO:g} times" if len(slow) > 1 else ""
    yield facts.finding(
        "workers",
        f"Worker {name} took {ratios[worst]:.1f} times as long as others for the same tasks",
        f"It is compared with {units.counted(int(np.isfinite(ratios).sum()) - 1, 'worker')}, prefix by prefix{others}. "
        f"{units.duration(us)} of thread time is beyond what the others would have taken.",
        "Look at its host: other programs, slower cores, a throttled or swapping machine, or storage that is far away. Replace it, "
        "or leave it out.",
        "workers",
        facts.thread_time(
            us,
            "compute time of slow workers beyond what others took for the same prefixes",
            _as_fast_as_others(tasks, slow, ratios),
        ),
    )


@dataclass(frozen=True)
class _Sums:
    """Executions by prefix (a row) and worker (a column), with the sums of logarithms; and the time of each worker."""

    counts: Array
    durations: Array
    sizes: Array
    spent_us: Array


def _add_up(tasks: Table) -> _Sums:
    """Add up executions block by block: all at once would need 180 MB for five million."""
    prefix, worker = tasks.strings("prefix"), tasks.strings("worker")
    shape = len(prefix.values), len(worker.values)
    ran = where(tasks.strings("status"), *EXECUTED)
    totals = [np.zeros(shape[0] * shape[1]) for _ in range(3)]
    spent_us = np.zeros(shape[1])
    for first in range(0, tasks.rows, BLOCK):
        block = slice(first, first + BLOCK)
        kept = ran[block]
        workers = worker.codes[block][kept]
        cells = prefix.codes[block][kept].astype(np.int64) * shape[1] + workers
        durations = np.maximum(tasks["stop_us"][block] - tasks["start_us"][block], 1)[kept]
        weights = (None, np.log(durations), np.log(np.maximum(tasks["nbytes"][block], 1)[kept]))
        for total, weight in zip(totals, weights, strict=True):
            total += np.bincount(cells, weights=weight, minlength=len(total))
        spent_us += np.bincount(workers, weights=durations, minlength=shape[1])
    counts, of_durations, of_sizes = (total.reshape(shape) for total in totals)
    return _Sums(counts, of_durations, of_sizes, spent_us)


def _ratios(totals: Array, counts: Array) -> Array:
    """Return by which factor the values of each worker exceed the median of all workers; NaN if it can't be compared.

    Geometric means, because one long execution must not make its worker slow.
    """
    known = counts >= MIN_EXECUTIONS
    comparable = known.sum(axis=1) >= MIN_COMPARED
    if not comparable.any():
        return np.full(counts.shape[1], np.nan)
    means = np.where(known, totals / np.maximum(counts, 1), np.nan)[comparable]
    weights = np.where(known, counts, 0)[comparable]
    excess = means - np.nanmedian(means, axis=1)[:, None]
    compared = weights.sum(axis=0)
    result: Array = np.exp(
        np.where(compared > 0, np.nansum(excess * weights, axis=0) / np.maximum(compared, 1), np.nan)
    )
    return result


def _as_fast_as_others(tasks: Table, slow: Array, ratios: Array) -> Change | None:
    """Return the change to executions that take on slow workers what they take on others; None if there are too many."""
    if tasks.rows > MAX_TASKS:
        return None
    workers = tasks.strings("worker").codes
    rows = np.flatnonzero(np.isin(workers, slow))
    durations = np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[rows]
    return with_durations(rows, durations / ratios[workers[rows]])


SLOW_WORKERS = Rule(
    "slow-workers",
    "Some workers are slower than the others at the same work",
    "A slow worker gets its share of tasks all the same, and others wait for the last of them.",
    "At most a third of the workers take 1.5 times as long as the median worker for the same prefixes (5 executions each, results "
    f"of the same size); from {RELEVANT}.",
    _slow_workers,
)


# ---------------------------------------------------------------- serial sections

#: Share of the run in which exactly one task computes.
MIN_ALONE = 0.2
#: Executions of a prefix that is serial by its nature, per computation, and how many there are of others for each: without those,
#: there is no parallel work that waits.
MAX_SERIAL = 3
MIN_OTHERS = 10
#: Executions of such a prefix that are looked at. Each takes 10 ms beside five million others.
MAX_SERIAL_ROWS = 50


def _serial_sections(facts: Facts) -> Iterator[Finding]:
    if sum(worker.threads for worker in facts.workers) < 2:
        return
    tasks = facts.recording["tasks"]
    prefix, computation = tasks.strings("prefix"), tasks.strings("computation")
    ran = where(tasks.strings("status"), *EXECUTED)
    rows_of = {
        str(prefix.values[code]): rows for code, rows in rows_by_group(np.where(ran, prefix.codes, -1)) if code >= 0
    }
    total, min_us = int(ran.sum()), max(MIN_US, MIN_ALONE * facts.run_us)
    # A prefix cannot be alone for longer than it computed.
    long = sorted(one.prefix for one in facts.longest_prefixes if one.total_us >= min_us)
    for rows in (rows_of[name] for name in long if 0 < len(rows_of[name]) <= MAX_SERIAL_ROWS):
        if total - len(rows) < MIN_OTHERS * len(rows):
            continue
        if len(rows) > MAX_SERIAL * len(np.unique(computation.codes[rows])):
            continue
        us = sum(alone_us(tasks["start_us"], tasks["stop_us"], row) for row in rows.tolist())
        if us < min_us:
            continue
        one = str(prefix.values[prefix.codes[rows[0]]])
        name = one or "unnamed tasks"
        first_us, last_us = int(tasks["start_us"][rows].min()), int(tasks["stop_us"][rows].max())
        threads = facts.sharing_threads(one, first_us, last_us)
        saved = _shared_us(us, threads)
        yield facts.finding(
            "overhead",
            f"{name} ran alone for {units.percent(us / facts.run_us)} of the run",
            f"{units.counted(len(rows), 'task')} of {name} computed for {units.duration(us)} while no other task did.",
            "Split it into tasks that can run in parallel, for example with split_every= or a tree of partial results.",
            "stream",
            facts.wall_time(
                saved,
                f"time in which it was the only task that computed, less what remains if {units.counted(threads, 'thread')} share "
                "the work",
                with_durations(rows, (tasks["stop_us"] - tasks["start_us"])[rows] / threads),
                min(saved, _shared_us(us, 2)),
            ),
        )


SERIAL_SECTIONS = Rule(
    "serial-sections",
    "One task runs alone while other threads wait for it",
    "While a single task computes, every other thread is paid for and does nothing: Amdahl's law.",
    "Prefixes with at most 3 tasks per computation, beside ten times as many others, that are alone for 20 % of the run, and 1 s.",
    _serial_sections,
)

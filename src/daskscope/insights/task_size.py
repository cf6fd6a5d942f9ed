"""Rules about the size and number of tasks: too short, too many at once, the wrong chunks, and work that is done again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import percentile, rows_by_group, where
from daskscope.analysis.columns.intervals import union_us
from daskscope.analysis.executions import EXECUTED, first_on_worker, has_hidden_keys, recomputed_rows
from daskscope.analysis.summary import Prefix
from daskscope.analysis.time.idle import graph_intervals
from daskscope.analysis.what_if.chunks import MIN_TASKS, Line, fit_line, makespan_us
from daskscope.analysis.what_if.savings import with_durations, without_overheads
from daskscope.insights.facts import RELEVANT, Facts, Finding, Gain, Rule, at_least
from daskscope.insights.python_code import MIN_LOADING, loading_us, stalled_us
from daskscope.insights.waiting import full_hosts
from daskscope.model.recording import Array, Table

SHORT_US = 10_000
MANY_TASKS = 1_000
#: Dask's documentation: a task costs 0.2 to 1 ms.
MIN_TASK_US = 200


def _short_tasks(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    ran = where(tasks.strings("status"), *EXECUTED)
    lengths = (tasks["stop_us"] - tasks["start_us"])[ran]
    # Counting is ten times faster than sorting, and most runs have longer tasks.
    if len(lengths) > MANY_TASKS and 2 * np.count_nonzero(lengths < SHORT_US) >= len(lengths):
        median = units.duration(max(0, percentile(np.sort(lengths), 0.5)))
        title = f"Half of {units.counted(len(lengths), 'task')} took less than {units.duration(SHORT_US)}"
        evidence = f"The median is {median}. Dask's own overhead is up to 1 ms per task, however short the task is."
        advice = "Use larger chunks or partitions, or batch several calls into one task."
        yield facts.finding("overhead", title, evidence, advice, "stream", _overhead_saving(facts, len(lengths)))


def _overhead_saving(facts: Facts, count: int) -> Gain | None:
    """Return the wall time that the overhead of tasks cost.

    Threads waited while the scheduler, messages and event loops were busy with tasks. But all of that and the tasks share the
    cores, so no run is shorter than its CPU time on all of them.
    """
    split = facts.split
    idle_us = sum(split.idle.us[reason] for reason in ("queued", "elsewhere", "unknown"))
    # What blocks an event loop for seconds is no short task. Nor are other programs, for whose cores event loops wait.
    full = full_hosts(facts)
    started_late_us = max(0, split.idle.us["not started"] - stalled_us(facts))
    idle_us += round(started_late_us * (1.0 - (full.others if full else 0.0)))
    waited_us = (idle_us + split.split["serialize"] + split.split["transfer"]) * facts.run_us // max(1, split.thread_us)
    needed_us = split.split["cpu"] // facts.cores if facts.cores else 0
    # The client needs as long for the graph before anything is submitted.
    before = split.idle.us["nothing submitted"] + split.idle.us["large graph"]
    before_us = min(before * facts.run_us // max(1, split.thread_us), count * TASK_US)
    us = min(waited_us, max(0, split.idle.work_us - needed_us)) + before_us
    how = "time in which threads waited for tasks that existed, or for the client to submit as many"
    return facts.wall_time(us, how, without_overheads, min(us, count * MIN_TASK_US))


SHORT_TASKS = Rule(
    "short-tasks",
    "Tasks are too short",
    "Every task costs the scheduler up to 1 ms, however short it is. Below 10 ms, that is more than a tenth.",
    "More than 1,000 tasks with a median below 10 ms. Dask's own best practices ask for more than 100 ms.",
    _short_tasks,
)


# ---------------------------------------------------------------- chunks

MIN_GAIN = 1.25
#: Share of the compute time of a prefix: the others could not make the run 1.25 times faster.
MIN_COMPUTE = 0.2
#: Chunks of this many times the present size, up to this factor beyond those seen, and up to this share of a thread's memory.
FACTORS = (0.25, 0.5, 2, 4, 8)
REACH = 4.0
MAX_MEMORY = 0.1
#: Work of the scheduler for a task.
TASK_US = 1_000
#: Rows of a prefix that are looked at.
MAX_CHUNKS = 20_000


def _predict_us(line: Line, factor: float, threads: int) -> float:
    """Return the time of all tasks on some threads, with chunks of ``factor`` times the size."""
    if factor >= 1:
        sizes = np.add.reduceat(line.nbytes, np.arange(0, len(line.nbytes), round(factor)))
    else:
        sizes = np.repeat(line.nbytes * factor, round(1 / factor))
    return makespan_us((line.fixed_us + line.us_per_byte * sizes + TASK_US).tolist(), threads)


def _chunk_size(facts: Facts) -> Iterator[Finding]:
    """Find prefixes that would be faster with chunks of another size.

    A line through durations and sizes tells the fixed cost of a chunk. Tasks of other sizes are scheduled on the threads of the
    run.
    """
    if facts.run_us <= 0 or facts.split.compute_us <= 0:
        return
    # On average: workers that came one after the other are not there at the same time.
    threads = max(1, round(facts.split.thread_us / facts.run_us))
    memory = min((w.memory_limit / max(w.threads, 1) for w in facts.workers if w.memory_limit), default=0.0)
    for prefix in facts.longest_prefixes:
        is_large = prefix.total_us >= MIN_COMPUTE * facts.split.compute_us and MIN_TASKS <= prefix.count <= MAX_CHUNKS
        line = _line(facts, prefix) if is_large and prefix.p50_us >= SHORT_US else None
        if line is None:
            continue
        present_us = _predict_us(line, 1, threads)
        factors = [factor for factor in FACTORS if _is_near(line, factor, memory)]
        best = min(factors, key=lambda factor: _predict_us(line, factor, threads), default=1)
        saved_us = round(present_us - _predict_us(line, best, threads))
        if facts.run_us < MIN_GAIN * (facts.run_us - min(saved_us, facts.run_us)):
            continue
        yield _chunk_finding(facts, prefix, line, best, saved_us)


def _chunk_finding(facts: Facts, prefix: Prefix, line: Line, factor: float, saved_us: int) -> Finding:
    name, now = prefix.prefix or "unnamed", float(np.median(line.nbytes))
    fixed = line.fixed_us * len(line.nbytes) / max(prefix.total_us, 1)
    size = units.nbytes(now * factor)
    return facts.finding(
        "overhead",
        f"{'Larger' if factor > 1 else 'Smaller'} chunks would be faster for {name}",
        f"A task takes {units.duration(line.fixed_us)} and {units.duration(line.us_per_byte * (1 << 20))} per MiB. "
        f"With {units.nbytes(now)} per chunk (median), {units.percent(min(fixed, 1.0))} of that is the fixed part.",
        f"Try chunks or partitions of about {size}, {_times(factor)} as large.",
        "stream",
        facts.wall_time(saved_us, "difference to the predicted time of these tasks with such chunks"),
    )


def _times(factor: float) -> str:
    return f"{factor:g} times" if factor > 1 else "half" if factor == 0.5 else "a quarter"


def _line(facts: Facts, prefix: Prefix) -> Line | None:
    tasks = facts.recording["tasks"]
    rows = np.flatnonzero(where(tasks.strings("status"), "ok") & where(tasks.strings("prefix"), prefix.prefix))
    return fit_line(facts.recording, rows)


def _is_near(line: Line, factor: float, memory: float) -> bool:
    """Return whether chunks of this size are close to those seen, and fit into memory."""
    largest = float(line.nbytes.max())
    fits = not memory or largest * factor <= MAX_MEMORY * memory
    return factor < 1 or (fits and float(np.median(line.nbytes)) * factor <= REACH * largest)


CHUNK_SIZE = Rule(
    "chunk-size",
    "Larger or smaller chunks would be faster",
    "Every chunk has a fixed cost, and a few large ones leave threads idle.",
    "A fit of fixed cost and cost per byte of a prefix predicts that the run becomes 1.25 times faster. The fit explains 70 % of "
    "the variance of 20 and more executions, whose sizes differ by a factor of 1.5 to 5.",
    _chunk_size,
)


# ---------------------------------------------------------------- graphs

#: Share of the run, and the time from which it is a delay.
MIN_GRAPH, MIN_GRAPH_US = 0.1, 300_000


def _large_graphs(facts: Facts) -> Iterator[Finding]:
    computations = facts.recording["computations"]
    if not computations.rows:
        return
    unpacking_us = int(np.maximum(computations["graph_us"], 0).sum())
    begins, ends = graph_intervals(facts.recording)
    us = union_us(np.clip(begins, facts.start_us, facts.stop_us), np.clip(ends, facts.start_us, facts.stop_us))
    # A part of a run may have more of it than time: the graph was unpacked before.
    if us < max(MIN_GRAPH_US, MIN_GRAPH * facts.run_us) or unpacking_us > facts.run_us:
        return
    row, nbytes = int(np.argmax(ends - begins)), int(computations["graph_nbytes"].max())
    tasks = units.counted(int(computations["tasks"][row]), "task")
    if us > unpacking_us:
        size = units.nbytes(int(computations["graph_nbytes"].sum()))
        title = f"Building, sending and unpacking graphs of {size} took up to {units.duration(us)}"
        evidence = (
            f"The largest one had {tasks} and {units.nbytes(nbytes)}. The scheduler took {units.duration(unpacking_us)} to "
            "unpack all; the time of the client is estimated."
        )
    else:
        title = f"The scheduler spent {units.percent(us / facts.run_us)} of the run on unpacking graphs"
        took = units.duration(int(computations["graph_us"][row]))
        evidence = f"{units.duration(us)} in total; the largest one had {tasks} and took {took}."
    how = "time in which graphs were built, sent and unpacked, until their tasks existed"
    yield facts.finding(
        "overhead",
        title,
        evidence,
        "The graph is large, or has data in it. Use fewer, larger chunks, scatter large objects instead of passing them as "
        "arguments, and load data inside of tasks.",
        "computations",
        facts.wall_time(us, how, low_us=min(us, unpacking_us)),
    )


LARGE_GRAPHS = Rule(
    "large-graphs",
    "Graphs take long to send and unpack",
    "Workers wait until the scheduler has the graph and made tasks of it. It does nothing else meanwhile.",
    f"From {at_least(MIN_GRAPH, 'the run', MIN_GRAPH_US)}. Graphs of more than 10 MB count with the time to send them, at 50 MB/s; "
    "graphs of 1,000 tasks and more with 0.2 ms per task to build them.",
    _large_graphs,
)


# ---------------------------------------------------------------- work that is done again


def _repeated_work(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    rows, numbers = tasks.strings("key").repeated
    if has_hidden_keys(tasks, tasks.rows - len(rows) + len(np.unique(numbers))):
        return
    computation = tasks.strings("computation")
    ok = where(tasks.strings("status"), "ok")[rows] & ~computation.is_empty[rows]
    rows, numbers = rows[ok], numbers[ok]
    # The first execution of each key is needed; later ones in the same computation were lost in between.
    order = np.lexsort((tasks["start_us"][rows], numbers))
    rows, numbers = rows[order], numbers[order]
    firsts = np.unique(numbers, return_index=True)[1]
    first_of = np.repeat(firsts, np.diff(np.append(firsts, len(rows))))
    codes = computation.codes[rows]
    is_again = codes != codes[first_of] if len(rows) else np.zeros(0, dtype=bool)
    # Results that were lost with their worker are another matter.
    is_again &= ~recomputed_rows(facts.recording)[rows[first_of]] if len(rows) else is_again
    again = rows[is_again]
    us = int(np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[again].sum())
    if not facts.is_relevant(us):
        return
    names = _largest_prefix(facts, again)
    count = len(np.unique(codes[np.isin(numbers, numbers[is_again])]))
    yield facts.finding(
        "overhead",
        f"{units.counted(len(again), 'task')} ran again in another computation",
        f"{count} computations share keys; computing them again took {units.duration(us)}, most of it in {names}.",
        "Call persist() on what both need, or compute both in one call: dask.compute(a, b). Dask forgets results as soon as nobody "
        "holds them.",
        "computations",
        facts.thread_time(us, "compute time of keys that an earlier computation had computed"),
    )


def _largest_prefix(facts: Facts, rows: np.ndarray) -> str:
    tasks = facts.recording["tasks"]
    prefix = tasks.strings("prefix")
    sums = np.bincount(
        prefix.codes[rows], weights=(tasks["stop_us"] - tasks["start_us"])[rows], minlength=len(prefix.values)
    )
    return str(prefix.values[int(np.argmax(sums))]) or "unnamed tasks"


REPEATED_WORK = Rule(
    "repeated-work",
    "The same keys are computed in several computations",
    "Two compute() calls on the same collection compute its common part twice.",
    f"From {RELEVANT}.",
    _repeated_work,
)


#: The first executions take this many times the median of the others, on this share of the workers.
WARM_UP_RATIO = 3.0
WARM_UP_WORKERS = 0.75
#: What a first execution does, and what to do about it: importing, and compiling.
WARM_UP_ADVICE = (
    (
        "imports modules",
        "Every worker process imports them. Import them when workers start (--preload), and keep workers between computations.",
    ),
    (
        "compiles code",
        "Every worker process compiles. Let the compiler cache its results (cache=True of Numba), compile when workers start "
        "(--preload), and keep workers between computations.",
    ),
)


def _warm_up(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    ran, first = where(tasks.strings("status"), *EXECUTED), first_on_worker(tasks)
    names = tasks.strings("prefix")
    rows_of = {str(names.values[code]): rows for code, rows in rows_by_group(names.codes)}
    for prefix in facts.prefixes:
        mine = rows_of[prefix.prefix][ran[rows_of[prefix.prefix]]]
        durations = np.maximum(tasks["stop_us"][mine] - tasks["start_us"][mine], 0)
        rows, warm, later = mine[first[mine]], durations[first[mine]], durations[~first[mine]]
        if not len(warm) or len(later) < 2 * len(warm):
            continue
        usual = float(np.median(later))
        slow = warm > WARM_UP_RATIO * max(usual, 1.0)
        if slow.mean() < WARM_UP_WORKERS:
            continue
        # Other threads of the worker that need the same module wait for it.
        late = _beside(tasks, rows[slow], mine[durations > WARM_UP_RATIO * max(usual, 1.0)])
        us = int((tasks["stop_us"][late] - tasks["start_us"][late] - usual).sum())
        if not facts.is_relevant(us):
            continue
        # First tasks may have other inputs, or wait for something.
        importing_us, compiling_us = loading_us(facts, late)
        if importing_us + compiling_us < MIN_LOADING * us:
            continue
        name = prefix.prefix or "unnamed tasks"
        does, advice = WARM_UP_ADVICE[compiling_us > importing_us]
        yield facts.finding(
            "overhead",
            f"The first {name} on each worker took {units.duration(float(np.median(warm)))}: it {does}",
            f"Later ones took {units.duration(usual)} (median). On {units.counted(int(slow.sum()), 'worker')}, that is "
            f"{units.duration(us)} in total. The profile has {units.duration(importing_us + compiling_us)} of it.",
            advice,
            "stream",
            facts.thread_time(
                us,
                "time of first executions, and of those that waited beside them, beyond the median of later ones",
                with_durations(late, np.full(len(late), usual)),
            ),
        )


def _beside(tasks: Table, firsts: Array, among: Array) -> Array:
    """Return the given executions that began before the first one of their worker stopped, with the first ones."""
    workers = tasks.strings("worker").codes
    stops = np.zeros(len(tasks.strings("worker").values), dtype=np.int64)
    stops[workers[firsts]] = tasks["stop_us"][firsts]
    result: Array = among[tasks["start_us"][among] < stops[workers[among]]]
    return result


WARM_UP = Rule(
    "warm-up",
    "The first execution on each worker is slow",
    "Imports and compilation happen in every worker process, and again whenever a worker is replaced.",
    "First executions of a prefix take 3 times the median of later ones on three quarters of the workers, and the profile shows "
    f"imports or a compiler for half of that time; from {RELEVANT}.",
    _warm_up,
)

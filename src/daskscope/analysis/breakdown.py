"""Split thread time into categories, by prefix, worker and span; the parts add up exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.actors import with_actor_calls
from daskscope.analysis.bins import Bins, Cube, make_cube
from daskscope.analysis.executions import cancelled_until_us, recomputed_rows, seceded_at_us
from daskscope.analysis.grouping import counts, product, sums, where
from daskscope.analysis.idle import Idle
from daskscope.analysis.idle import idle as explain_idle
from daskscope.analysis.intervals import Spread, merge, spread, steps, task_intervals, union_us
from daskscope.analysis.library_threads import processes
from daskscope.analysis.waiting import Waits, cpu_share, waiting_us
from daskscope.analysis.workers import Lifetimes, lifetimes
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Strings, Table

#: In display order. ``failed`` is wasted work: failed, killed or recomputed.
CATEGORIES = ("cpu", "noncpu", "serialize", "disk", "transfer", "failed", "idle")
CPU, NONCPU, SERIALIZE, DISK, TRANSFER, FAILED, IDLE = range(7)
#: Categories of the activities besides computing. They do not occupy a thread, so they count only while threads are free.
ACTIONS = {
    "transfer": TRANSFER,
    "disk-read": DISK,
    "disk-write": DISK,
    "deserialize": SERIALIZE,
    "serialize": SERIALIZE,
    "compress": SERIALIZE,
    "decompress": SERIALIZE,
}
WASTED = ("error", "retried", "killed", "cancelled")
#: Activities of a worker's memory monitor. While it spills, its event loop starts no task.
MONITORED = {"disk-write": DISK, "serialize": SERIALIZE, "compress": SERIALIZE}
#: Fine metrics are recorded this often; a value may have arisen at any time since the previous one.
METRICS_US = 5_000_000


@dataclass(frozen=True)
class Breakdown:
    """Thread time by category. All cubes have the same sums by category and bin; the measure is ``us``."""

    by_prefix: Cube
    by_worker: Cube
    by_span: Cube
    #: Microseconds by category; they add up to ``thread_us``.
    split: dict[str, int]
    #: Worker threads × their uptime.
    thread_us: int
    idle_us: int
    #: Wall time in which no execution computed, transferred or used the disk.
    fully_idle_us: int
    #: Compute time that was not wasted.
    compute_us: int
    #: Number of executions whose result was lost and recomputed.
    recomputed: int
    idle: Idle
    #: Waiting time (category ``noncpu``) by reason.
    waiting_us: dict[str, int]
    #: Compute time of tasks after they seceded from their worker's threads; not part of thread time.
    seceded_us: int
    #: Time of actor calls while all threads of their worker were busy; not part of thread time.
    actors_beside_us: int


@dataclass(frozen=True)
class Atoms:
    """Thread time by worker, prefix, span, category and bin, from which all cubes are summed."""

    worker: Array
    prefix: Array
    span: Array
    category: Array
    bin: Array
    us: Array

    def take(self, rows: Array) -> Atoms:
        return Atoms(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def with_us(self, us: Array, category: Array | None = None) -> Atoms:
        """Return the same parts with other amounts."""
        return Atoms(self.worker, self.prefix, self.span, self.category if category is None else category, self.bin, us)


def breakdown(recording: Recording, bins: Bins) -> Breakdown:
    """Split the thread time inside the bins into the seven categories."""
    first_call = recording["tasks"].rows
    recording = with_actor_calls(recording)
    tasks, lived = recording["tasks"], lifetimes(recording, bins.start_us, bins.stop_us)
    again = recomputed_rows(recording)
    threads = spread(lived.start_us, lived.stop_us, bins, lived.worker, lived.threads)
    cells = threads.group * bins.count + threads.bin
    seceded = seceded_at_us(recording)
    executed, called = _computed(recording, lived, again, seceded, first_call, bins)
    executed, free = _fit(executed, cells, threads.us, bins.count)
    # Actors have a thread beside those of tasks: their calls fill threads that are idle, and never make tasks look shorter.
    fitting, free = _fit(called, cells, free, bins.count)
    moved, free = _fit(_other_activities(tasks, lived, bins), cells, free, bins.count)
    names = tasks.strings("prefix")
    share = cpu_share(recording, names)
    atoms = _join(_divide_cpu(_join(executed, fitting), share, names), moved)
    beside_us = int(called.us.sum() - fitting.us.sum())
    # Five million tasks have 200 MB of them.
    del executed, called, fitting, moved
    free, monitored = _spilling(recording, threads, free, bins)
    idle = _join(_without_task(threads, IDLE, free), *monitored)
    split = sums(np.concatenate((atoms.category, idle.category)), np.concatenate((atoms.us, idle.us)), len(CATEGORIES))
    prefixes, spans = names.values.tolist(), tasks.strings("span").values.tolist()
    waits = atoms.take(np.flatnonzero(atoms.category == NONCPU))
    return Breakdown(
        by_prefix=_cube("prefix", *_with_idle(atoms.prefix, prefixes, len(idle.us)), atoms, idle, bins),
        by_worker=_cube("worker", np.concatenate((atoms.worker, idle.worker)), lived.workers, atoms, idle, bins),
        by_span=_cube("span", *_with_idle(atoms.span, spans, len(idle.us)), atoms, idle, bins),
        split=dict(zip(CATEGORIES, split.tolist(), strict=True)),
        thread_us=int(threads.us.sum()),
        idle_us=int(split[IDLE]),
        fully_idle_us=_fully_idle(tasks, lived, bins),
        compute_us=int(split[CPU] + split[NONCPU]),
        recomputed=int(np.count_nonzero(again)),
        idle=explain_idle(recording, lived, threads, free, bins),
        waiting_us=waiting_us(
            recording,
            Waits(waits.worker, waits.prefix, waits.us),
            names,
            processes(recording, lived.workers, names, share),
        ),
        seceded_us=int(np.maximum(bins.clip(tasks["stop_us"]) - bins.clip(seceded), 0)[seceded > 0].sum()),
        actors_beside_us=beside_us,
    )


def _computed(
    recording: Recording, lived: Lifetimes, again: Array, seceded: Array, first_call: int, bins: Bins
) -> tuple[Atoms, Atoms]:
    """Return executions and actor calls, cut to the lifetimes of their workers; ``_divide_cpu`` splits ``cpu`` later."""
    tasks = recording["tasks"]
    wasted = where(tasks.strings("status"), *WASTED) | again
    stops = np.where(seceded > 0, np.minimum(seceded, tasks["stop_us"]), cancelled_until_us(recording))
    starts, stops = lived.clip(tasks["start_us"], stops, lived.of_tasks)
    categories, rows = np.where(wasted, FAILED, CPU), np.arange(tasks.rows)

    def atoms(part: Array) -> Atoms:
        return _atoms(tasks, lived, part, categories[part], starts[part], stops[part], bins)

    return atoms(rows[:first_call]), atoms(rows[first_call:])


def _without_task(threads: Spread, category: int, us: Array) -> Atoms:
    """Return thread time that belongs to no task."""
    none = np.zeros(len(us), dtype=np.int64)
    return Atoms(threads.group, none, none, np.full(len(us), category), threads.bin, us)


def _spilling(recording: Recording, threads: Spread, free: Array, bins: Bins) -> tuple[Array, list[Atoms]]:
    """Return the idle time that is left, and the parts of it in which workers were spilling results."""
    table = recording["activities"]
    monitored = where(table.strings("context"), "memory-monitor") & where(table.strings("unit"), "seconds")
    found = []
    for activity, category in MONITORED.items():
        rows = np.flatnonzero(monitored & where(table.strings("activity"), activity))
        if not len(rows):
            continue
        times, us = (
            table["time_us"][rows],
            (1e6 * np.nan_to_num(np.maximum(table["value"][rows], 0.0))).astype(np.int64),
        )
        # Milliseconds as weights: the sums stay far below the limit of 64 bits.
        spent = spread(times - METRICS_US, times, bins, None, us // 1000)
        by_bin = sums(spent.bin, spent.us, bins.count) * 1000.0 / METRICS_US
        idle_now = np.bincount(threads.bin, weights=free, minlength=bins.count)
        ratio = np.minimum(by_bin / np.where(idle_now > 0, idle_now, 1.0), 1.0)
        part = np.floor(free * ratio[threads.bin]).astype(np.int64)
        free = free - part
        # Few cells have any: 1,000 workers and 400 bins are many cells.
        found.append(_without_task(threads, category, part).take(np.flatnonzero(part)))
    return free, found


def _other_activities(tasks: Table, lived: Lifetimes, bins: Bins) -> Atoms:
    """Return the activities of executions besides computing, cut to the lifetimes of their workers."""
    owners, actions, starts, stops = task_intervals(tasks)
    categories = np.array([ACTIONS.get(action, -1) for action in actions.values], dtype=np.int64)[actions.codes]
    known = np.flatnonzero(categories >= 0)
    owners = owners[known]
    starts, stops = lived.clip(starts[known], stops[known], lived.of_tasks[owners])
    return _atoms(tasks, lived, owners, categories[known], starts, stops, bins)


def _atoms(
    tasks: Table, lived: Lifetimes, owners: Array, categories: Array, starts: Array, stops: Array, bins: Bins
) -> Atoms:
    """Distribute intervals of executions over the bins; ``owners`` has the execution of each interval."""
    prefixes, spans = tasks.strings("prefix"), tasks.strings("span")
    columns = [lived.worker[lived.of_tasks[owners]], prefixes.codes[owners], spans.codes[owners], categories]
    sizes = [len(lived.workers), len(prefixes.values), len(spans.values), len(CATEGORIES)]
    groups, parts = product(columns, sizes)
    found = spread(starts, stops, bins, groups)
    worker, prefix, span, category = (part[found.group] for part in parts)
    return Atoms(worker, prefix, span, category, found.bin, found.us)


def _fit(atoms: Atoms, cells: Array, room: Array, count: int) -> tuple[Atoms, Array]:
    """Scale atoms down to the thread time of each cell (worker and bin); return them and the time left.

    Executions exceed it if tasks secede from their threads, or if clocks disagree.
    """
    if not len(cells):
        return atoms.take(np.zeros(0, dtype=np.int64)), room
    keys = atoms.worker * count + atoms.bin
    at = np.minimum(np.searchsorted(cells, keys), len(cells) - 1)
    inside = cells[at] == keys
    if not inside.all():
        atoms, at = atoms.take(np.flatnonzero(inside)), at[inside]
    wanted = sums(at, atoms.us, len(cells))
    over = np.flatnonzero((wanted > room)[at])
    over = over[np.argsort(at[over], kind="stable")]
    us = atoms.us.copy()
    us[over] = _scaled(us[over], at[over], wanted, room)
    return atoms.with_us(us), room - sums(at, us, len(cells))


def _scaled(us: Array, at: Array, wanted: Array, room: Array) -> Array:
    """Return amounts, ordered by cell, scaled so that each cell adds up to its room despite rounding."""
    ends = np.cumsum(us)
    firsts = np.flatnonzero(np.diff(at, prepend=-1))
    sizes = np.diff(firsts, append=len(at))
    upto = ends - np.repeat(ends[firsts] - us[firsts], sizes)
    # Scale running sums; the last one of a cell is the room itself.
    scaled = np.minimum(np.floor(upto * (room / np.maximum(wanted, 1))[at]).astype(np.int64), room[at])
    scaled[firsts + sizes - 1] = room[at[firsts]]
    result: Array = np.diff(scaled, prepend=0)
    result[firsts] = scaled[firsts]
    return result


def _divide_cpu(atoms: Atoms, cpu_share: Array, prefixes: Strings) -> Atoms:
    """Divide compute time into CPU and waiting by the CPU share of its prefix."""
    share = cpu_share[atoms.prefix]
    divided = (atoms.category == CPU) & (share < 1.0)
    rows = np.flatnonzero(divided)
    rows = rows[np.argsort(atoms.prefix[rows], kind="stable")]
    whole, share = atoms.take(rows), share[rows]
    totals = sums(whole.prefix, whole.us, len(prefixes.values))
    before = np.cumsum(whole.us) - whole.us - (np.cumsum(totals) - totals)[whole.prefix]
    # Round running sums, so that the CPU time of a prefix is exact to the microsecond, whatever the number of bins.
    cpu = np.floor((before + whole.us) * share).astype(np.int64) - np.floor(before * share).astype(np.int64)
    cpu = np.clip(cpu, 0, whole.us)
    noncpu = whole.with_us(whole.us - cpu, np.full(len(rows), NONCPU))
    return _join(atoms.take(np.flatnonzero(~divided)), whole.with_us(cpu), noncpu)


def _fully_idle(tasks: Table, lived: Lifetimes, bins: Bins) -> int:
    """Return the time inside the bins that no execution and no other activity covers."""
    owners, _, starts, stops = task_intervals(tasks)
    covered = [
        *_covered(tasks["start_us"], tasks["stop_us"], lived.of_tasks, lived, bins),
        *_covered(starts, stops, lived.of_tasks[owners], lived, bins),
    ]
    return bins.stop_us - bins.start_us - union_us(*map(np.concatenate, zip(*covered, strict=True)))


def _covered(
    starts: Array, stops: Array, lifetimes: Array, lived: Lifetimes, bins: Bins
) -> Iterator[tuple[Array, Array]]:
    """Yield the union of intervals inside the lifetimes of their workers and the bins, in parts."""
    for some in steps(len(starts)):
        begin, end = lived.clip(starts[some], stops[some], lifetimes[some])
        yield merge(bins.clip(begin), bins.clip(end))


def _join(*parts: Atoms) -> Atoms:
    return Atoms(*(np.concatenate([getattr(part, name) for part in parts]) for name in Atoms.__dataclass_fields__))


def _with_idle(codes: Array, texts: list[str], idle: int) -> tuple[Array, list[str]]:
    """Return the key column extended by rows for idle time, which has an empty key."""
    names = texts if "" in texts else [*texts, ""]
    return np.concatenate((codes, np.full(idle, names.index("")))), names


def _cube(key: str, codes: Array, texts: list[str], atoms: Atoms, idle: Atoms, bins: Bins) -> Cube:
    used = np.flatnonzero(counts(codes, len(texts)))
    place = np.zeros(len(texts), dtype=np.int64)
    place[used] = np.arange(len(used))
    categories = np.concatenate((atoms.category, idle.category))
    return make_cube(
        {key: [texts[i] for i in used.tolist()], "category": CATEGORIES},
        [place[codes], categories],
        np.concatenate((atoms.bin, idle.bin)),
        bins.count,
        {"us": np.concatenate((atoms.us, idle.us))},
    )

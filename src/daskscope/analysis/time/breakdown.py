"""Split thread time into categories, by prefix, worker and span; the parts add up exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.bins import Bins, Cube, make_cube
from daskscope.analysis.columns.grouping import counts, narrow, product, steps, sums, where
from daskscope.analysis.columns.intervals import Spread, merge, spread, spread_all, task_intervals, union_us
from daskscope.analysis.executions import cancelled_until_us, recomputed_rows, seceded_at_us, with_actor_calls
from daskscope.analysis.time.idle import Idle
from daskscope.analysis.time.idle import idle as explain_idle
from daskscope.analysis.time.processes import processes
from daskscope.analysis.time.waiting import Waits, cpu_share, p2p_shares, waiting_us
from daskscope.analysis.workers import Lifetimes, lifetimes
from daskscope.model.recording import Array, Recording, Strings, Table

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
    #: Wall time with workers in which no execution computed, transferred or used the disk.
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

    def busy_shares(self) -> dict[str, float]:
        """Return by address how much of the thread time of a worker was not idle, while it was up."""
        cube = self.by_worker
        worker, us = cube.codes["worker"], cube.measures["us"]
        size = len(cube.keys["worker"])
        is_idle = cube.codes["category"] == cube.keys["category"].index("idle")
        threads, idle = sums(worker, us, size), sums(worker[is_idle], us[is_idle], size)
        shares = (threads - idle) / np.maximum(threads, 1)
        return dict(zip(cube.keys["worker"], shares.tolist(), strict=True))


@dataclass(frozen=True)
class Atoms:
    """Thread time by worker, prefix, span, category and bin, from which all cubes are summed.

    All but the time are in few bits, because five million tasks have three million atoms.
    """

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

    def with_keys(self, prefix: int, span: int) -> Atoms:
        """Return the same parts with one prefix and one span."""
        prefixes, spans = (np.full(len(self.us), code, dtype=np.int32) for code in (prefix, span))
        return Atoms(self.worker, prefixes, spans, self.category, self.bin, self.us)


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
    # Actors have a thread beside the threads of tasks: their calls fill threads that are idle, and never make tasks look shorter.
    fitting, free = _fit(called, cells, free, bins.count)
    moved, free = _fit(_other_activities(tasks, lived, bins), cells, free, bins.count)
    names = tasks.strings("prefix")
    share = cpu_share(recording, names)
    beside_us = int(called.us.sum() - fitting.us.sum())
    divided = _divide(_join(executed, fitting), CPU, NONCPU, share, names)
    moving = p2p_shares(recording, names)
    divided = _divide(divided, NONCPU, TRANSFER, 1.0 - moving, names)
    free, monitored = _spilling(recording, threads, free, bins)
    prefixes, spans = _with_empty(names.values.tolist()), _with_empty(tasks.strings("span").values.tolist())
    idle = _join(_without_task(threads, IDLE, free), *monitored).with_keys(prefixes.index(""), spans.index(""))
    atoms = _join(divided, moved, idle)
    # Five million tasks have 60 MB of them.
    del executed, called, fitting, divided, moved, idle
    split = sums(atoms.category, atoms.us, len(CATEGORIES))
    waits = atoms.take(np.flatnonzero(atoms.category == NONCPU))
    cubes = {
        "prefix": _cube("prefix", atoms.prefix, prefixes, atoms, bins),
        "worker": _cube("worker", atoms.worker, lived.workers, atoms, bins),
        "span": _cube("span", atoms.span, spans, atoms, bins),
    }
    del atoms
    return Breakdown(
        by_prefix=cubes["prefix"],
        by_worker=cubes["worker"],
        by_span=cubes["span"],
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
            moving,
        ),
        seceded_us=_seceded_us(tasks, seceded, bins),
        actors_beside_us=beside_us,
    )


def _computed(
    recording: Recording, lived: Lifetimes, again: Array, seceded: Array, first_call: int, bins: Bins
) -> tuple[Atoms, Atoms]:
    """Return executions and actor calls, cut to the lifetimes of their workers; ``_divide`` splits ``cpu`` later."""
    tasks = recording["tasks"]
    wasted = where(tasks.strings("status"), *WASTED) | again
    categories = np.where(wasted, np.int8(FAILED), np.int8(CPU))
    until_us = cancelled_until_us(recording)

    def intervals(rows: slice) -> tuple[Array, Array]:
        stops = np.where(seceded[rows] > 0, np.minimum(seceded[rows], tasks["stop_us"][rows]), until_us[rows])
        return lived.clip(tasks["start_us"][rows], stops, lived.of_tasks[rows])

    def atoms(first: int, stop: int) -> Atoms:
        rows = slice(first, stop)
        owners = _Owners(lived.of_tasks[rows], tasks.strings("prefix").codes[rows], tasks.strings("span").codes[rows])
        parts = (intervals(slice(first + some.start, min(first + some.stop, stop))) for some in steps(stop - first))
        return _atoms(tasks, lived, owners, categories[rows], parts, bins)

    return atoms(0, first_call), atoms(first_call, tasks.rows)


def _seceded_us(tasks: Table, seceded: Array, bins: Bins) -> int:
    rows = np.flatnonzero(seceded > 0)
    return int(np.maximum(bins.clip(tasks["stop_us"][rows]) - bins.clip(seceded[rows]), 0).sum())


def _without_task(threads: Spread, category: int, us: Array) -> Atoms:
    """Return thread time that belongs to no task."""
    none = np.zeros(len(us), dtype=np.int8)
    worker, bin_ = (values.astype(np.int32) for values in (threads.group, threads.bin))
    return Atoms(worker, none, none, np.full(len(us), category, dtype=np.int8), bin_, us)


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
    categories = np.array([ACTIONS.get(action, -1) for action in actions.values], dtype=np.int8)[actions.codes]
    known = np.flatnonzero(categories >= 0)
    owners = owners[known]
    of_tasks, prefixes, spans = lived.of_tasks[owners], tasks.strings("prefix"), tasks.strings("span")
    intervals = (lived.clip(starts[known[some]], stops[known[some]], of_tasks[some]) for some in steps(len(known)))
    found = _Owners(of_tasks, prefixes.codes[owners], spans.codes[owners])
    return _atoms(tasks, lived, found, categories[known], intervals, bins)


@dataclass(frozen=True)
class _Owners:
    """Worker lifetime, prefix and span of the execution of each interval."""

    lifetime: Array
    prefix: Array
    span: Array


def _atoms(
    tasks: Table,
    lived: Lifetimes,
    owners: _Owners,
    categories: Array,
    intervals: Iterable[tuple[Array, Array]],
    bins: Bins,
) -> Atoms:
    """Distribute intervals, given in steps, over the bins."""
    sizes = [
        len(lived.workers),
        len(tasks.strings("prefix").values),
        len(tasks.strings("span").values),
        len(CATEGORIES),
    ]
    groups, parts = product([lived.worker[owners.lifetime], owners.prefix, owners.span, categories], sizes)
    steps_of = zip(intervals, steps(len(groups)), strict=True)
    given = ((starts, stops, groups[some], None) for (starts, stops), some in steps_of)
    found = spread_all(given, bins, max(1, len(parts[0])), len(groups))
    worker, prefix, span, category = (narrow(part, size)[found.group] for part, size in zip(parts, sizes, strict=True))
    return Atoms(worker, prefix, span, category, narrow(found.bin, bins.count), found.us)


def _fit(atoms: Atoms, cells: Array, room: Array, count: int) -> tuple[Atoms, Array]:
    """Scale atoms down to the thread time of each cell (worker and bin); return them and the time left.

    Executions exceed it if tasks secede from their threads, or if clocks disagree.
    """
    if not len(cells):
        return atoms.take(np.zeros(0, dtype=np.int64)), room
    keys = atoms.worker.astype(np.int64) * count + atoms.bin
    at = np.minimum(np.searchsorted(cells, keys), len(cells) - 1)
    inside = cells[at] == keys
    if not inside.all():
        atoms, at = atoms.take(np.flatnonzero(inside)), at[inside]
    wanted = sums(at, atoms.us, len(cells))
    over = np.flatnonzero((wanted > room)[at])
    if not len(over):
        return atoms, room - wanted
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


def _divide(atoms: Atoms, category: int, other: int, shares: Array, prefixes: Strings) -> Atoms:
    """Leave a share of a category to each prefix, and give the rest to another category."""
    share = shares[atoms.prefix]
    divided = (atoms.category == category) & (share < 1.0)
    rows = np.flatnonzero(divided)
    if not len(rows):
        return atoms
    rows = rows[np.argsort(atoms.prefix[rows], kind="stable")]
    whole, share = atoms.take(rows), share[rows]
    totals = sums(whole.prefix, whole.us, len(prefixes.values))
    before = np.cumsum(whole.us) - whole.us - (np.cumsum(totals) - totals)[whole.prefix]
    # Round running sums, so that the CPU time of a prefix is exact to the microsecond, whatever the number of bins.
    left = np.floor((before + whole.us) * share).astype(np.int64) - np.floor(before * share).astype(np.int64)
    left = np.clip(left, 0, whole.us)
    given = whole.with_us(whole.us - left, np.full(len(rows), other, dtype=np.int8))
    return _join(atoms.take(np.flatnonzero(~divided)), whole.with_us(left), given)


def _fully_idle(tasks: Table, lived: Lifetimes, bins: Bins) -> int:
    """Return the time inside the bins with workers that no execution and no other activity covers."""
    owners, _, starts, stops = task_intervals(tasks)
    covered = [
        *_covered(tasks["start_us"], tasks["stop_us"], lived.of_tasks, lived, bins),
        *_covered(starts, stops, lived.of_tasks[owners], lived, bins),
    ]
    there_us = union_us(bins.clip(lived.start_us), bins.clip(lived.stop_us))
    return there_us - union_us(*map(np.concatenate, zip(*covered, strict=True)))


def _covered(
    starts: Array, stops: Array, lifetimes: Array, lived: Lifetimes, bins: Bins
) -> Iterator[tuple[Array, Array]]:
    """Yield the union of intervals inside the lifetimes of their workers and the bins, in parts."""
    for some in steps(len(starts)):
        begin, end = lived.clip(starts[some], stops[some], lifetimes[some])
        yield merge(bins.clip(begin), bins.clip(end))


def _join(*parts: Atoms) -> Atoms:
    filled = [part for part in parts if len(part.us)] or list(parts[:1])
    if len(filled) == 1:
        return filled[0]
    return Atoms(*(np.concatenate([getattr(part, name) for part in filled]) for name in Atoms.__dataclass_fields__))


def _with_empty(texts: list[str]) -> list[str]:
    """Return keys with the empty one, which idle time has."""
    return texts if "" in texts else [*texts, ""]


def _cube(key: str, codes: Array, texts: list[str], atoms: Atoms, bins: Bins) -> Cube:
    used = np.flatnonzero(counts(codes, len(texts)))
    place = np.zeros(len(texts), dtype=np.int32)
    place[used] = np.arange(len(used))
    return make_cube(
        {key: [texts[i] for i in used.tolist()], "category": CATEGORIES},
        [place[codes], atoms.category],
        atoms.bin,
        bins.count,
        {"us": atoms.us},
    )

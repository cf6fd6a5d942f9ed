"""Where the time of all threads went, by prefix, worker and span; the parts add up exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.bins import Bins, Cube, make_cube, spread
from daskscope.analysis.grouping import counts, product, sums, where
from daskscope.analysis.lives import Lives, interval_rows, lives
from daskscope.analysis.recomputed import recomputed_rows as recomputed_rows
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Strings, Table

#: In the order in which they are always shown. ``failed`` is work that was thrown away: failed, killed, recomputed.
CATEGORIES = ("cpu", "noncpu", "serialize", "disk", "transfer", "failed", "idle")
CPU, NONCPU, SERIALIZE, DISK, TRANSFER, FAILED, IDLE = range(7)
#: What an execution does besides computing. It takes no thread, so it counts only as far as threads are free.
MOVING = {
    "transfer": TRANSFER,
    "disk-read": DISK,
    "disk-write": DISK,
    "deserialize": SERIALIZE,
    "serialize": SERIALIZE,
    "compress": SERIALIZE,
    "decompress": SERIALIZE,
}
THROWN_AWAY = ("error", "retried", "killed")


@dataclass(frozen=True)
class Breakdown:
    """All thread time by category. Each cube has the same sum per category and bin; the measure is ``us``."""

    by_prefix: Cube
    by_worker: Cube
    by_span: Cube
    #: Microseconds of every category; they add up to ``thread_us``.
    split: dict[str, int]
    #: Threads times the lives of their workers.
    thread_us: int
    idle_us: int
    #: Time during which no execution anywhere computed or moved data.
    fully_idle_us: int
    #: Computed and of use.
    compute_us: int
    #: Executions whose result was lost, so that they ran again.
    recomputed: int


@dataclass(frozen=True)
class Atoms:
    """Thread time by worker, prefix, span, category and bin: the smallest parts there are."""

    worker: Array
    prefix: Array
    span: Array
    category: Array
    bin: Array
    us: Array

    def take(self, rows: Array) -> Atoms:
        return Atoms(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def counting(self, us: Array, category: Array | None = None) -> Atoms:
        """The same parts with other numbers."""
        return Atoms(self.worker, self.prefix, self.span, self.category if category is None else category, self.bin, us)


def breakdown(recording: Recording, bins: Bins) -> Breakdown:
    """Divide the time of all threads inside the bins; the seven categories are all there is."""
    tasks, lived = recording["tasks"], lives(recording, bins.start_us, bins.stop_us)
    again = recomputed_rows(tasks)
    threads = spread(lived.start_us, lived.stop_us, bins, lived.worker, lived.threads)
    cells = threads.group * bins.count + threads.bin
    computed, moved = _computed(tasks, lived, again, bins), _moved(tasks, lived, bins)
    computed, free = _fit(computed, cells, threads.us, bins.count)
    moved, free = _fit(moved, cells, free, bins.count)
    atoms = _join(_cpu_and_not(computed, recording, tasks.strings("prefix")), moved)
    idle = Atoms(
        threads.group, *(np.zeros(len(cells), dtype=np.int64),) * 2, np.full(len(cells), IDLE), threads.bin, free
    )
    split = sums(np.concatenate((atoms.category, idle.category)), np.concatenate((atoms.us, idle.us)), len(CATEGORIES))
    prefixes, spans = tasks.strings("prefix").values.tolist(), tasks.strings("span").values.tolist()
    return Breakdown(
        by_prefix=_cube("prefix", *_with_idle(atoms.prefix, prefixes, len(cells)), atoms, idle, bins),
        by_worker=_cube("worker", np.concatenate((atoms.worker, idle.worker)), lived.workers, atoms, idle, bins),
        by_span=_cube("span", *_with_idle(atoms.span, spans, len(cells)), atoms, idle, bins),
        split=dict(zip(CATEGORIES, split.tolist(), strict=True)),
        thread_us=int(threads.us.sum()),
        idle_us=int(split[IDLE]),
        fully_idle_us=_fully_idle(tasks, lived, bins),
        compute_us=int(split[CPU] + split[NONCPU]),
        recomputed=int(np.count_nonzero(again)),
    )


def _computed(tasks: Table, lived: Lives, again: Array, bins: Bins) -> Atoms:
    """Executions, cut to the lives of their workers. What is not thrown away is ``cpu`` until it is divided."""
    wasted = where(tasks.strings("status"), *THROWN_AWAY) | again
    starts, stops = _inside(tasks["start_us"], tasks["stop_us"], lived, lived.of_tasks)
    return _atoms(tasks, lived, np.arange(tasks.rows), np.where(wasted, FAILED, CPU), starts, stops, bins)


def _moved(tasks: Table, lived: Lives, bins: Bins) -> Atoms:
    """What executions did besides computing, cut to the lives of their workers."""
    owners, actions, starts, stops = interval_rows(tasks)
    categories = np.array([MOVING.get(action, -1) for action in actions.values], dtype=np.int64)[actions.codes]
    known = np.flatnonzero(categories >= 0)
    owners = owners[known]
    starts, stops = _inside(starts[known], stops[known], lived, lived.of_tasks[owners])
    return _atoms(tasks, lived, owners, categories[known], starts, stops, bins)


def _inside(starts: Array, stops: Array, lived: Lives, life: Array) -> tuple[Array, Array]:
    return np.maximum(starts, lived.start_us[life]), np.minimum(stops, lived.stop_us[life])


def _atoms(
    tasks: Table, lived: Lives, owners: Array, categories: Array, starts: Array, stops: Array, bins: Bins
) -> Atoms:
    """Spread intervals of executions; ``owners`` has the execution of each interval."""
    prefixes, spans = tasks.strings("prefix"), tasks.strings("span")
    columns = [lived.worker[lived.of_tasks[owners]], prefixes.codes[owners], spans.codes[owners], categories]
    sizes = [len(lived.workers), len(prefixes.values), len(spans.values), len(CATEGORIES)]
    groups, parts = product(columns, sizes)
    found = spread(starts, stops, bins, groups)
    worker, prefix, span, category = (part[found.group] for part in parts)
    return Atoms(worker, prefix, span, category, found.bin, found.us)


def _fit(atoms: Atoms, cells: Array, room: Array, count: int) -> tuple[Atoms, Array]:
    """Scale atoms down to the room that each cell (worker and bin) has; return them and the room left.

    Executions take more than there is where tasks secede from their threads, and where clocks disagree.
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
    return atoms.counting(us), room - sums(at, us, len(cells))


def _scaled(us: Array, at: Array, wanted: Array, room: Array) -> Array:
    """Amounts of cells in their order, scaled so that those of a cell add up to its room, whatever is rounded."""
    ends = np.cumsum(us)
    firsts = np.flatnonzero(np.diff(at, prepend=-1))
    sizes = np.diff(firsts, append=len(at))
    upto = ends - np.repeat(ends[firsts] - us[firsts], sizes)
    # As running sums, of which the last is the room itself.
    scaled = np.minimum(np.floor(upto * (room / np.maximum(wanted, 1))[at]).astype(np.int64), room[at])
    scaled[firsts + sizes - 1] = room[at[firsts]]
    result: Array = np.diff(scaled, prepend=0)
    result[firsts] = scaled[firsts]
    return result


def _cpu_and_not(atoms: Atoms, recording: Recording, prefixes: Strings) -> Atoms:
    """Divide what was computed by the fine metrics of its prefix; all of it is CPU where there are none."""
    share = _cpu_share(recording, prefixes)[atoms.prefix]
    divided = (atoms.category == CPU) & (share < 1.0)
    rows = np.flatnonzero(divided)
    rows = rows[np.argsort(atoms.prefix[rows], kind="stable")]
    whole, share = atoms.take(rows), share[rows]
    totals = sums(whole.prefix, whole.us, len(prefixes.values))
    before = np.cumsum(whole.us) - whole.us - (np.cumsum(totals) - totals)[whole.prefix]
    # Rounded as a running sum: the CPU time of a prefix is right to the microsecond, however many bins it is cut into.
    cpu = np.floor((before + whole.us) * share).astype(np.int64) - np.floor(before * share).astype(np.int64)
    cpu = np.clip(cpu, 0, whole.us)
    noncpu = whole.counting(whole.us - cpu, np.full(len(rows), NONCPU))
    return _join(atoms.take(np.flatnonzero(~divided)), whole.counting(cpu), noncpu)


def _cpu_share(recording: Recording, prefixes: Strings) -> Array:
    """For each prefix the part of its compute time in which its threads ran, by Dask's fine metrics."""
    table = recording["activities"]
    values = np.nan_to_num(np.maximum(table["value"], 0.0), posinf=0.0)
    in_tasks = where(table.strings("context"), "execute") & where(table.strings("unit"), "seconds")
    names = {text: code for code, text in enumerate(prefixes.values)}
    place = np.array([names.get(text, -1) for text in table.strings("prefix").values], dtype=np.int64)
    owner = place[table.strings("prefix").codes]

    def seconds(activity: str) -> Array:
        rows = np.flatnonzero(in_tasks & where(table.strings("activity"), activity) & (owner >= 0))
        result: Array = np.bincount(owner[rows], weights=values[rows], minlength=len(names))
        return result

    cpu, noncpu = seconds("thread-cpu"), seconds("thread-noncpu")
    both = cpu + noncpu
    return np.where(both > 0, cpu / np.where(both > 0, both, 1.0), 1.0)


def _fully_idle(tasks: Table, lived: Lives, bins: Bins) -> int:
    """The length of the window less that of the union of everything anybody did."""
    owners, _, starts, stops = interval_rows(tasks)
    life = np.concatenate((lived.of_tasks, lived.of_tasks[owners]))
    first, last = np.concatenate((tasks["start_us"], starts)), np.concatenate((tasks["stop_us"], stops))
    first, last = _inside(first, last, lived, life)
    first, last = bins.clip(first), bins.clip(last)
    rows = np.flatnonzero(last > first)
    order = rows[np.argsort(first[rows], kind="stable")]
    reached = np.maximum.accumulate(last[order])
    before = np.concatenate(([0], reached[:-1])) if len(order) else reached
    busy = np.maximum(0, last[order] - np.maximum(first[order], before)).sum()
    return bins.stop_us - bins.start_us - int(busy)


def _join(*parts: Atoms) -> Atoms:
    return Atoms(*(np.concatenate([getattr(part, name) for part in parts]) for name in Atoms.__dataclass_fields__))


def _with_idle(codes: Array, texts: list[str], idle: int) -> tuple[Array, list[str]]:
    """The key column with as many rows more for idle time, which belongs to nobody."""
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

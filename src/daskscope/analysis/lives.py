"""Which worker lived when, with how many threads, and whose life each execution belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.grouping import counts, renumber
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Lists, Strings, Table

#: More threads than this is nonsense, and would overflow when multiplied by microseconds.
MOST_THREADS = 10_000


@dataclass(frozen=True)
class Lives:
    """Workers' lives inside a window; an address that was used again has several."""

    #: Distinct addresses.
    workers: list[str]
    #: For each life its address as a position in ``workers``.
    worker: Array
    threads: Array
    start_us: Array
    stop_us: Array
    #: For each execution its life.
    of_tasks: Array


def lives(recording: Recording, start_us: int, stop_us: int) -> Lives:
    """All lives, cut to the window; who has not left lives until its end.

    A worker that is only known from its executions lives from the first to the last moment of them, with as many threads as
    they ran on.
    """
    table, tasks = recording["workers"], recording["tasks"]
    of_tasks = life_of(tasks.strings("worker"), tasks["stop_us"], table)
    unknown = of_tasks < 0
    strays, addresses = renumber(tasks.strings("worker").codes[unknown], len(tasks.strings("worker").values))
    of_tasks[unknown] = strays + table.rows
    size = table.rows + len(addresses)
    texts = [*table["worker"].tolist(), *tasks.strings("worker").values[addresses].tolist()]
    names = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    end = np.where(table["end_us"] == 0, stop_us, table["end_us"])
    first, last = _moments(tasks, of_tasks, size)
    threads = np.concatenate((table["nthreads"], np.zeros(len(addresses), dtype=np.int64)))
    threads = np.where(threads > 0, threads, _threads_seen(tasks, of_tasks, size))
    starts = np.clip(np.concatenate((table["start_us"], first[table.rows :])), start_us, stop_us)
    stops = np.clip(np.concatenate((end, last[table.rows :])), start_us, stop_us)
    return Lives(
        workers=list(names),
        worker=np.array([names[text] for text in texts], dtype=np.int64),
        threads=np.minimum(threads, MOST_THREADS),
        start_us=starts,
        stop_us=np.maximum(starts, stops),
        of_tasks=of_tasks,
    )


def life_of(addresses: Strings, times: Array, table: Table) -> Array:
    """For each row the worker it belongs to, as a row of ``workers``; -1 where there is none.

    An address is used again when a worker restarts; then the time decides.
    """
    by_address: dict[str, list[tuple[int, int]]] = {}
    for row, (address, start) in enumerate(zip(table["worker"], table["start_us"].tolist(), strict=True)):
        by_address.setdefault(address, []).append((start, row))
    first = [min(by_address[a])[1] if a in by_address else -1 for a in addresses.values]
    found: Array = np.array(first, dtype=np.int64)[addresses.codes]
    for code, address in enumerate(addresses.values):
        several = sorted(by_address.get(address, []))
        if len(several) > 1:
            mine = np.flatnonzero(addresses.codes == code)
            turns = np.searchsorted([start for start, _ in several], times[mine], side="right")
            found[mine] = np.array([row for _, row in several])[np.maximum(turns - 1, 0)]
    return found


def interval_rows(tasks: Table) -> tuple[Array, Strings, Array, Array]:
    """What executions did besides computing, one after the other: the row of the execution, action, start and stop."""
    actions, starts, stops = (tasks.lists(f"interval_{name}") for name in ("action", "start_us", "stop_us"))
    same = (actions.lengths == starts.lengths) & (actions.lengths == stops.lengths)
    rows = np.arange(tasks.rows)
    if not same.all():
        # No writer of ours makes such rows, and what their intervals mean nobody knows.
        rows = np.flatnonzero(same)
        actions, starts, stops = actions.take(rows), starts.take(rows), stops.take(rows)
    return np.repeat(rows, actions.lengths), texts_of(actions), np.asarray(starts.flat), np.asarray(stops.flat)


def texts_of(lists: Lists) -> Strings:
    """The flat values of a list column of strings."""
    assert isinstance(lists.flat, Strings)
    return lists.flat


def _moments(tasks: Table, of_tasks: Array, size: int) -> tuple[Array, Array]:
    """The first and the last moment that executions of each life speak of."""
    owners, _, starts, stops = interval_rows(tasks)
    groups = np.concatenate((of_tasks, of_tasks[owners]))
    begin, end = np.concatenate((tasks["start_us"], starts)), np.concatenate((tasks["stop_us"], stops))
    first = np.full(size, np.iinfo(np.int64).max)
    last = np.zeros(size, dtype=np.int64)
    known = begin > 0
    np.minimum.at(first, groups[known], begin[known])
    np.maximum.at(last, groups, end)
    return first, last


def _threads_seen(tasks: Table, of_tasks: Array, size: int) -> Array:
    """How many threads executions of each life ran on; one where they do not say."""
    distinct, codes = np.unique(tasks["thread"], return_inverse=True)
    pairs = np.unique(of_tasks * max(1, len(distinct)) + codes)
    known = pairs[distinct[pairs % max(1, len(distinct))] != 0]
    ran = counts(of_tasks, size) > 0
    return np.where(ran, np.maximum(1, counts(known // max(1, len(distinct)), size)), 0)

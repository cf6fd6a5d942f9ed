"""Sums and order statistics by group, over dictionary-coded columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from daskscope.model.table import Array, Lists, Strings


def where(column: Strings, *values: str) -> Array:
    """Which rows hold one of the values."""
    wanted = np.isin(column.values, np.array(values, dtype=object))
    result: Array = wanted[column.codes]
    return result


def sums(codes: Array, values: Array, size: int) -> Array:
    """The exact integer sum of each group."""
    totals = np.zeros(size, dtype=np.int64)
    np.add.at(totals, codes, values)
    return totals


def counts(codes: Array, size: int) -> Array:
    result: Array = np.bincount(codes, minlength=size)
    return result


def rows_by_group(codes: Array) -> Iterator[tuple[int, Array]]:
    """Each group that occurs, in the order of its code, with its rows in their order."""
    if not len(codes):
        return
    # Numpy sorts integers of 16 bits by radix: 20 times faster than wider ones.
    narrow = codes.astype(np.int16) if int(codes.max()) < 2**15 else codes
    order = np.argsort(narrow, kind="stable")
    ordered = codes[order]
    edges = np.concatenate(([0], np.flatnonzero(np.diff(ordered)) + 1, [len(ordered)]))
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        yield int(ordered[start]), order[start:stop]


def percentile(ordered: Array, q: float) -> int:
    """The nearest-rank percentile of sorted values: always one that was measured."""
    return int(ordered[max(0, int(np.ceil(q * len(ordered))) - 1)])


def combine(columns: Sequence[Strings]) -> tuple[Array, list[tuple[str, ...]]]:
    """One code per distinct combination of several string columns, and the combination of each code."""
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        # Made dense after each column, so that the product of many dictionaries cannot overflow.
        _, combined = np.unique(combined * max(1, len(column.values)) + column.codes, return_inverse=True)
    size = int(combined.max()) + 1 if len(combined) else 0
    example = np.zeros(size, dtype=np.int64)
    example[combined] = np.arange(len(combined))
    texts = [column.values[column.codes[example]].tolist() if size else [] for column in columns]
    return combined, list(zip(*texts, strict=True))


def interval_sums(owners: Array, size: int, actions: Lists, starts: Lists, stops: Lists) -> list[Mapping[str, int]]:
    """Microseconds by action for each owner; ``owners`` has the owner of each row of the list columns."""
    same = (actions.lengths == starts.lengths) & (actions.lengths == stops.lengths)
    if not same.all():
        # No writer of ours makes such rows, and what their intervals mean nobody knows.
        rows = np.flatnonzero(same)
        owners, actions, starts, stops = owners[rows], actions.take(rows), starts.take(rows), stops.take(rows)
    names = actions.flat
    if not isinstance(names, Strings) or not len(names):
        return [{}] * size
    width = len(names.values)
    cells = np.repeat(owners, actions.lengths).astype(np.int64) * width + names.codes
    totals = sums(cells, np.asarray(stops.flat) - np.asarray(starts.flat), size * width).reshape(size, width)
    used = counts(cells, size * width).reshape(size, width) > 0
    return [
        {str(names.values[i]): int(totals[owner, i]) for i in np.flatnonzero(used[owner]).tolist()}
        for owner in range(size)
    ]


#: Cells up to which a table with a place for each is faster than sorting: 32 MB.
DENSE = 2**22


def sum_by(keys: Array, values: Array, size: int) -> tuple[Array, Array]:
    """The keys (below ``size``) whose values do not add up to zero, in order, and the exact integer sums."""
    if size <= DENSE:
        totals = sums(keys, values, size)
        found = np.flatnonzero(totals)
        return found, totals[found]
    if not len(keys):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    # Sums of integers do not depend on the order, and sorting without keeping it is twice as fast.
    order = np.argsort(keys)
    ordered = keys[order]
    firsts = np.concatenate(([0], np.flatnonzero(np.diff(ordered)) + 1))
    totals = np.add.reduceat(values[order], firsts)
    held = totals != 0
    return ordered[firsts[held]], totals[held]


def renumber(keys: Array, size: int) -> tuple[Array, Array]:
    """Keys (below ``size``) as codes without gaps, and the key of each code."""
    if size <= DENSE:
        held = np.zeros(size, dtype=bool)
        held[keys] = True
        codes: Array = (np.cumsum(held) - 1)[keys]
        return codes, np.flatnonzero(held)
    distinct, codes = np.unique(keys, return_inverse=True)
    return codes, distinct


def product(columns: Sequence[Array], sizes: Sequence[int]) -> tuple[Array, list[Array]]:
    """One code without gaps per combination of code columns, and the codes of each combination, column by column."""
    combined, parts = np.zeros(len(columns[0]), dtype=np.int64), list[Array]()
    held = 1
    for column, size in zip(columns, sizes, strict=True):
        width = max(1, size)
        # Made dense after each column, so that the product of many dictionaries cannot overflow.
        combined, distinct = renumber(combined * width + column, held * width)
        parts = [part[distinct // width] for part in parts]
        parts.append(distinct % width)
        held = len(distinct)
    return combined, parts

"""Read the ``profiles`` table from the flame graph of a report: every sample, by the bin in which it was taken.

The report's own ``profiles`` table has only the first rows, with stacks cut to 2,000 characters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daskscope.model.table import Array, Lists, Strings, Table, Values, empty_values, object_array
from daskscope.model.tables import TABLES
from daskscope.report.page import Page, check_int, check_text

KEYS = ("kind", "prefix", "span", "worker")
MAX_NODES = 2**20
MAX_ROWS = 2**21
#: Frames of all stacks: rows repeat their stack, so a small page could expand to more than fits into memory.
MAX_FRAMES = 2**24


def samples(page: Page) -> Table:
    """Return the profiles: one row per stack, bin, kind, prefix, span and worker."""
    flame, bins = page.report["flame"], page.report["bins"]
    cube = flame["cube"]
    count = check_int(cube["rows"], MAX_ROWS)
    frames = [
        f"{check_text(file)}\t{check_text(function)}\t{check_int(line)}" for file, function, line, _ in flame["frames"]
    ]
    columns = cube["columns"]
    width, at = check_int(bins["width_us"], 2**53), page.numbers(columns["bin"], count, check_int(bins["count"], 2**20))
    starts = check_int(page.report["start_us"], 2**53) + at * width
    made: dict[str, Values] = {
        **{column.name: empty_values(column.kind, count) for column in TABLES["profiles"].columns},
        "start_us": starts,
        "stop_us": starts + width,
        **{name: _coded(page, columns[name], count, cube["keys"][name]) for name in KEYS},
        "stack": _stacks(page, flame, columns["stack"], count, frames),
        "count": page.numbers(columns["count"], count),
    }
    return Table(TABLES["profiles"], made)


def _stacks(page: Page, flame: Any, ends: Any, count: int, frames: list[str]) -> Lists:
    nodes = check_int(flame["nodes"]["length"], MAX_NODES)
    frame = page.numbers(flame["nodes"], nodes, len(frames))
    parents = page.numbers(flame["parents"], nodes, nodes + 1) - 1
    if (parents >= np.arange(nodes)).any():
        raise ValueError("its stacks are not a tree")
    node = page.numbers(ends, count, nodes)
    depths = _depths(parents)[node]
    offsets = np.concatenate(([0], np.cumsum(depths))).astype(np.int64)
    if int(offsets[-1]) > MAX_FRAMES:
        raise ValueError("its stacks are too large")
    flat = np.zeros(int(offsets[-1]), dtype=np.int32)
    # From the innermost frame outwards, all stacks at once, until each reaches its root.
    rows, last = np.arange(count), offsets[1:] - 1
    while len(rows):
        flat[last] = frame[node]
        node = parents[node]
        deeper = node >= 0
        rows, node, last = rows[deeper], node[deeper], last[deeper] - 1
    return Lists(offsets, Strings(flat, object_array(frames)))


def _depths(parents: Array) -> Array:
    """Return the number of frames of the stack that ends at each node; parents come before their children."""
    depths = [0] * (len(parents) + 1)
    for node, parent in enumerate(parents.tolist()):
        # Parent -1 is the last element, which stays 0.
        depths[node] = depths[parent] + 1
    return np.array(depths[:-1], dtype=np.int64)


def _coded(page: Page, block: Any, count: int, texts: Any) -> Strings:
    values = list(map(check_text, texts))
    return Strings(page.numbers(block, count, len(values)).astype(np.int32), object_array(values))

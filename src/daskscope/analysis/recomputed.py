"""Executions whose result was lost, so that they had to run again."""

from __future__ import annotations

import numpy as np

from daskscope.analysis.grouping import where
from daskscope.model.table import Array, Strings, Table


def recomputed_rows(tasks: Table) -> Array:
    """Which executions were for nothing although they went well: the same key went well again later.

    Only inside one computation: Dask gives the same keys to a user who computes the same thing twice, and both are wanted.
    """
    found = np.zeros(tasks.rows, dtype=bool)
    rows, keys = tasks.strings("key").repeated
    if not len(rows) or _hidden(tasks, tasks.rows - len(rows) + len(np.unique(keys))):
        return found
    ok = (where(tasks.strings("status"), "ok") & ~_empty(tasks.strings("key")))[rows]
    rows, keys = rows[ok], keys[ok]
    computations = tasks.strings("computation")
    groups = keys * len(computations.values) + computations.codes[rows]
    order = np.lexsort((tasks["stop_us"][rows], groups))
    again = np.diff(groups[order]) == 0
    found[rows[order[:-1][again]]] = True
    return found


def _empty(keys: Strings) -> Array:
    result: Array = where(keys, "") if keys.texts is None else keys.texts == ""
    return result


def _hidden(tasks: Table, distinct: int) -> bool:
    """Whether keys are not recorded: then all executions of a group go by its name.

    Tasks that a user submits one by one are groups of one, which also go by their keys; these hardly run more than twice.
    """
    return tasks.rows > 2 * distinct and bool((tasks["key"] == tasks["group"]).all())

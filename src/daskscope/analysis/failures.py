"""What failed: exceptions with the same cause told as one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.grouping import combine, rows_by_group
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Table


@dataclass(frozen=True)
class Failure:
    """All failures with one fingerprint; texts are of the first of them."""

    fingerprint: str
    type: str
    message: str
    cause_type: str
    cause_message: str
    count: int
    #: How many of them Dask ran again.
    retried: int
    prefixes: tuple[str, ...]
    first_us: int
    last_us: int
    key: str
    worker: str
    traceback: str
    workers: tuple[str, ...] = ()
    #: Some of the tasks that failed, in the order in which they did.
    keys: tuple[str, ...] = ()


#: Keys named for each failure.
MOST_KEYS = 10


def failures(recording: Recording) -> tuple[Failure, ...]:
    """Every distinct failure, the most frequent first."""
    table = recording["exceptions"]
    fingerprints = table.strings("fingerprint")
    # Failures that could not be fingerprinted are told apart by what they say.
    by_text, _ = combine([fingerprints, table.strings("type"), table.strings("message")])
    unmarked = (fingerprints.values == "")[fingerprints.codes] if table.rows else np.zeros(0, dtype=bool)
    codes = np.where(unmarked, by_text + len(fingerprints.values), fingerprints.codes)
    found = [_failure(table, rows) for _, rows in rows_by_group(codes)]
    return tuple(sorted(found, key=lambda failure: (-failure.count, failure.first_us, failure.fingerprint)))


def _failure(table: Table, rows: Array) -> Failure:
    times = table["time_us"][rows]
    first = rows[int(np.argmin(times))]
    weights = np.maximum(table["count"][rows], 1)

    def text(column: str) -> str:
        strings = table.strings(column)
        return str(strings.values[strings.codes[first]])

    prefix, workers = table.strings("prefix"), table.strings("worker")
    return Failure(
        fingerprint=text("fingerprint"),
        type=text("type"),
        message=text("message"),
        cause_type=text("cause_type"),
        cause_message=text("cause_message"),
        count=int(weights.sum()),
        retried=int(weights[table["will_retry"][rows] == 1].sum()),
        prefixes=tuple(sorted(prefix.values[np.unique(prefix.codes[rows])].tolist())),
        first_us=int(times.min()),
        last_us=int(times.max()),
        key=text("key"),
        worker=text("worker"),
        traceback=_traceback(table, rows),
        workers=tuple(sorted(filter(None, workers.values[np.unique(workers.codes[rows])].tolist()))),
        keys=_keys(table, rows[np.argsort(times, kind="stable")]),
    )


def _keys(table: Table, rows: Array) -> tuple[str, ...]:
    """The first few distinct keys."""
    strings = table.strings("key")
    _, firsts = np.unique(strings.codes[rows], return_index=True)
    found = strings.values[strings.codes[rows[np.sort(firsts)]]][: MOST_KEYS + 1].tolist()
    return tuple(filter(None, found))[:MOST_KEYS]


def _traceback(table: Table, rows: Array) -> str:
    """The first text there is: repeats of a fingerprint come without."""
    strings = table.strings("traceback")
    codes = strings.codes[rows]
    filled = codes[(strings.values != "")[codes]]
    return str(strings.values[filled[0]]) if len(filled) else ""

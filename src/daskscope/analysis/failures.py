"""Failures, grouped by fingerprint: exceptions with the same cause are one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.grouping import combine, rows_by_group, sums, where
from daskscope.analysis.executions import has_hidden_keys
from daskscope.model.recording import Array, Recording, Table

#: Higher counts of a row are invalid, and would overflow sums.
MAX_COUNT = 2**40
#: Keys listed for each failure.
MAX_KEYS = 10


@dataclass(frozen=True)
class Failure:
    """All failures with one fingerprint; texts are from the first of them."""

    fingerprint: str
    type: str
    message: str
    cause_type: str
    cause_message: str
    count: int
    #: How many of them Dask retried.
    retried: int
    prefixes: tuple[str, ...]
    first_us: int
    last_us: int
    key: str
    worker: str
    traceback: str
    workers: tuple[str, ...] = ()
    #: The first distinct tasks that failed, in order of time.
    keys: tuple[str, ...] = ()
    #: Tasks that could not run because they depend on one that failed.
    dependents: int = 0


def failures(recording: Recording) -> tuple[Failure, ...]:
    """Return every distinct failure, most frequent first."""
    table = recording["exceptions"]
    fingerprints = table.strings("fingerprint")
    # Failures without a fingerprint are grouped by type and message.
    by_text, _ = combine([fingerprints, table.strings("type"), table.strings("message")])
    unprinted = (fingerprints.values == "")[fingerprints.codes] if table.rows else np.zeros(0, dtype=bool)
    codes = np.where(unprinted, by_text + len(fingerprints.values), fingerprints.codes)
    codes, is_dependent = _with_cause(table, codes)
    # Once for all: there may be as many failures as rows.
    is_traced = ~table.strings("traceback").is_empty
    found = [_failure(table, rows[~is_dependent[rows]], rows, is_traced) for _, rows in rows_by_group(codes)]
    return tuple(sorted(found, key=lambda failure: (-failure.count, failure.first_us, failure.fingerprint)))


def retried_tasks(recording: Recording, prefixes: Sequence[str]) -> tuple[int, int] | None:
    """Return how many tasks of the given prefixes were retried, and how many of those succeeded later; None if keys are hidden.

    The recording does not say which execution failed with which error, so that errors of the same prefix share the answer.
    """
    tasks = recording["tasks"]
    status = tasks.strings("status")
    retried = where(status, "retried") & where(tasks.strings("prefix"), *prefixes)
    rows, numbers = tasks.strings("key").repeated
    distinct = len(np.unique(numbers))
    is_hidden = has_hidden_keys(tasks, tasks.rows - len(rows) + distinct)
    if not retried.any() or is_hidden or tasks.strings("key").is_empty[retried].any():
        return None
    last = np.full(distinct + 1, -1, dtype=np.int64)
    _, codes = np.unique(numbers, return_inverse=True)
    failed, succeeded = retried[rows], where(status, "ok")[rows]
    np.maximum.at(last, codes[failed], tasks["stop_us"][rows[failed]])
    later = succeeded & (last[codes] >= 0) & (tasks["stop_us"][rows] > last[codes])
    # A task that was retried and did not run again has a key that occurs once.
    single = int(retried.sum()) - int(failed.sum())
    return int((last >= 0).sum()) + single, len(np.unique(codes[later]))


def final_failures(recording: Recording, *columns: str) -> dict[tuple[str, ...], int]:
    """Count failures that were not retried by the given columns, without tasks that only depended on a failed one."""
    table = recording["exceptions"]
    weights = np.where(table["will_retry"] == 1, 0, np.clip(table["count"], 1, MAX_COUNT))
    weights[_is_dependent(table)] = 0
    codes, labels = combine([table.strings(name) for name in columns])
    found = sums(codes, weights, len(labels))
    return dict(zip(labels, found.tolist(), strict=True))


def _is_dependent(table: Table) -> Array:
    """Return which rows are of tasks that only depended on a failed one."""
    keys, blamed = table.strings("key"), table.strings("blamed_key")
    causes = set(keys.values[np.unique(keys.codes[blamed.is_empty])].tolist())
    is_known = np.array([bool(text) and text in causes for text in blamed.values.tolist()], dtype=bool)
    result: Array = is_known[blamed.codes] if table.rows else np.zeros(0, dtype=bool)
    return result


_FRAME = re.compile(r'[ \t]*File "([^"\n]*)", line (\d{1,9})(?:, in ([^\n]*))?')
#: As in web/src/model/text/traceback.ts.
_LIBRARY = re.compile(
    r"site-packages|dist-packages|[\\/]lib[\\/]python\d|[\\/]lib64[\\/]|^<frozen|[\\/](?:distributed|dask)[\\/]|[\\/]Lib[\\/]"
)
#: Before the traceback of the exception that was raised from the first one.
_RAISED_FROM = ("\nThe above exception was the direct cause", "\nDuring handling of the above exception")


@dataclass(frozen=True)
class Place:
    """A line of code."""

    function: str = ""
    file: str = ""
    line: int = 0


def raised_in(traceback: str) -> Place:
    """Return where a traceback's first exception was raised: the innermost frame of the user's code, else of any code."""
    first = min((found for text in _RAISED_FROM if (found := traceback.find(text)) >= 0), default=len(traceback))
    frames = [match for line in traceback[:first].splitlines() if (match := _FRAME.fullmatch(line))]
    own = [frame for frame in frames if not _LIBRARY.search(frame[1])]
    if not frames:
        return Place()
    frame = (own or frames)[-1]
    return Place(frame[3] or "", frame[1], int(frame[2]))


def _with_cause(table: Table, codes: Array) -> tuple[Array, Array]:
    """Move tasks that only depended on a failed one to the group of that one; return the groups, and which rows were moved."""
    blamed, moved = table["blamed_key"], _is_dependent(table)
    causes = {key: code for key, by, code in zip(table["key"], blamed, codes.tolist(), strict=True) if not by}
    found = [causes[by] if move else code for by, move, code in zip(blamed, moved, codes.tolist(), strict=True)]
    return np.array(found, dtype=np.int64), moved


def _failure(table: Table, rows: Array, with_dependents: Array, is_traced: Array) -> Failure:
    times = table["time_us"][rows]
    first = rows[int(np.argmin(times))]
    weights = np.clip(table["count"][rows], 1, MAX_COUNT)

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
        traceback=_traceback(table, rows[is_traced[rows]]),
        workers=tuple(sorted(filter(None, workers.values[np.unique(workers.codes[rows])].tolist()))),
        keys=_keys(table, rows[np.argsort(times, kind="stable")]),
        dependents=int(np.clip(table["count"][with_dependents], 1, MAX_COUNT).sum() - weights.sum()),
    )


def _keys(table: Table, rows: Array) -> tuple[str, ...]:
    """Return the first distinct keys."""
    strings = table.strings("key")
    _, firsts = np.unique(strings.codes[rows], return_index=True)
    found = strings.values[strings.codes[rows[np.sort(firsts)]]][: MAX_KEYS + 1].tolist()
    return tuple(filter(None, found))[:MAX_KEYS]


def _traceback(table: Table, rows: Array) -> str:
    """Return the traceback of the first row: repeats of a fingerprint are recorded without one."""
    strings = table.strings("traceback")
    return str(strings.values[strings.codes[rows[0]]]) if len(rows) else ""

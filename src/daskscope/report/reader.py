"""Read a daskscope report back into a recording.

A report has all tasks, dependencies and stacks (``report/reader_stream.py``, ``report/reader_flame.py``), but only the first
rows of other tables, with lists and long texts cut. The completeness of the recording shows it: missing rows are counted
against the original recording.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from daskscope.errors import NewerFormat, RecordingError
from daskscope.model.recording import Completeness, Recording
from daskscope.model.table import Lists, Strings, Table, Values, empty_values
from daskscope.model.tables import TABLES
from daskscope.report.page import Page, check_int, check_text, find_page, parse_json
from daskscope.report.reader_flame import samples
from daskscope.report.reader_stream import dependencies, executions
from daskscope.report.schema import SCHEMA
from daskscope.report.tables import MAX_ROWS
from daskscope.wire.decode_columns import is_int64

PARTIAL = "read from a report, which rounds durations to three digits"
#: Length of the quoted completeness statement of a report.
MAX_STATEMENT = 500
#: Exceptions that invalid pages cause.
INVALID = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


def read_report(path: Path) -> Recording:
    """Return the recording in a page."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            page = find_page(data)
            _check_version(path, page.report)
            return _recording(page, str(path))
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}. Give the path of a report.") from None
    except INVALID as error:
        why = f"{error}" if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise RecordingError(
            f"{path} is a damaged or incomplete report ({why[:200]}). Copy it again from its source, or give the original "
            "recording."
        ) from None


def _check_version(path: Path, report: dict[str, Any]) -> None:
    if check_int(report["schema"]) > SCHEMA:
        raise NewerFormat(
            f"{path} was written by a newer daskscope (report format {report['schema']}, this one reads {SCHEMA}). "
            "Upgrade with: pip install --upgrade daskscope"
        )


def _recording(page: Page, source: str) -> Recording:
    records = {check_text(record["name"]): record for record in page.report["tables"]}
    elsewhere = ("tasks", "edges", "profiles")
    # In the order of TABLES, without unknown tables of later versions.
    tables = {name: _table(page, records[name]) for name in TABLES if name in records and name not in elsewhere}
    tasks, rows = executions(page, tables.get("groups", Table.empty("groups")))
    tables |= {"tasks": tasks, "edges": dependencies(page, tasks, rows), "profiles": samples(page)}
    tables = {name: tables[name] for name in TABLES if name in tables and tables[name].rows}
    of = {name: check_int(record["of"]) for name, record in records.items()} | {
        "tasks": check_int(page.report["stream"]["of"]),
        "edges": check_int(page.report["edges"]["of"]),
        # All samples are in the flame graph.
        "profiles": 0,
    }
    completeness = {}
    for name in TABLES:
        held = tables[name].rows if name in tables else 0
        lost = check_int(records[name]["dropped"]) if name in records else 0
        if held or lost:
            completeness[name] = Completeness(held, missing=max(0, of.get(name, 0) - held) + lost)
    return Recording(source, tables, completeness, partial=_partial(page.report))


def _partial(report: dict[str, Any]) -> str:
    if report["complete"] is True:
        return PARTIAL
    return f"{PARTIAL}; the report says: {check_text(report['statement'])[:MAX_STATEMENT].rstrip('.')}"


def _table(page: Page, record: Any) -> Table:
    definition, rows = TABLES[record["name"]], check_int(record["rows"], MAX_ROWS)
    names = [check_text(column["name"]) for column in record["columns"]]
    lines = dict(zip(names, page.lines(record["data"], len(names)), strict=True))
    columns: dict[str, Values] = {}
    for column in definition.columns:
        if column.name in lines:
            columns[column.name] = _values(column.kind, parse_json(lines[column.name].encode()), rows)
        else:
            columns[column.name] = empty_values(column.kind, rows)
    return Table(definition, columns)


def _values(kind: str, cells: Any, rows: int) -> Values:
    """Return a column from the JSON cells that ``report/tables.py`` wrote."""
    if type(cells) is not list or len(cells) != rows:
        raise ValueError("a table has the wrong number of rows")
    if kind == "str":
        return Strings.of(list(map(check_text, cells)))
    if kind == "str[]":
        items = [_items(check_text(cell)) for cell in cells]
        offsets = np.concatenate(([0], np.cumsum([len(item) for item in items]))).astype(np.int64)
        return Lists(offsets, Strings.of([one for item in items for one in item]))
    if kind == "float":
        return np.array([_float(cell) for cell in cells], dtype=np.float64)
    if kind in ("int", "time"):
        return np.array([_int(cell) for cell in cells], dtype=np.int64)
    return empty_values(kind, rows)


def _items(joined: str) -> list[str]:
    """Split a list that was written as one text, except at commas inside the parentheses of tuple keys."""
    items: list[str] = []
    open_, start = 0, 0
    for at, character in enumerate(joined):
        if character == "(":
            open_ += 1
        elif character == ")":
            open_ = max(0, open_ - 1)
        elif character == "," and not open_ and joined[at + 1 : at + 2] == " ":
            items.append(joined[start:at])
            start = at + 2
    return [*items, joined[start:]] if joined else []


def _int(value: Any) -> int:
    if not is_int64(value):
        raise ValueError("a table has an invalid whole number")
    return int(value)


def _float(value: Any) -> float:
    if value is None:
        return float("nan")
    if type(value) not in (int, float):
        raise ValueError("a table has an invalid number")
    return float(value)

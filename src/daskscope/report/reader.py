"""A report that daskscope wrote, read back into a recording, for whoever has nothing but the page.

Tasks, dependencies and stacks are all there (``report/reader_stream.py``, ``report/reader_flame.py``); of other tables the first
rows are, and lists and long texts in them are cut. The recording says so: its rows are counted against those of the one that the
report was made from.
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
from daskscope.report.page import Page, find_page, parse, size, text
from daskscope.report.reader_flame import samples
from daskscope.report.reader_stream import dependencies, executions
from daskscope.report.schema import SCHEMA
from daskscope.report.tables import MOST_ROWS
from daskscope.wire.decode_columns import is_int64

PARTIAL = "read from a report, which has times to three digits"
#: Of what a report says about its own gaps.
MOST_STATEMENT = 500
#: What a page that is not what it claims to be makes Python raise.
WRONG = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


def read_report(path: Path) -> Recording:
    """The recording that a page holds."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            page = find_page(data)
            _check_version(path, page.report)
            return _recording(page, str(path))
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}. Give the path of a report.") from None
    except WRONG as error:
        why = f"{error}" if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise RecordingError(
            f"{path} is a report that is damaged or cut off ({why[:200]}). Copy it again from where it was written, or give the "
            "recording that it was made from."
        ) from None


def _check_version(path: Path, report: dict[str, Any]) -> None:
    if size(report["schema"]) > SCHEMA:
        raise NewerFormat(
            f"{path} was written by a newer daskscope (report format {report['schema']}, this one reads {SCHEMA}). "
            "Upgrade with: pip install --upgrade daskscope"
        )


def _recording(page: Page, source: str) -> Recording:
    records = {text(record["name"]): record for record in page.report["tables"]}
    elsewhere = ("tasks", "edges", "profiles")
    # In the order of the tables, and none of those that a later version may have.
    tables = {name: _table(page, records[name]) for name in TABLES if name in records and name not in elsewhere}
    tasks, rows = executions(page, tables.get("groups", Table.empty("groups")))
    tables |= {"tasks": tasks, "edges": dependencies(page, tasks, rows), "profiles": samples(page)}
    tables = {name: tables[name] for name in TABLES if name in tables and tables[name].rows}
    of = {name: size(record["of"]) for name, record in records.items()} | {
        "tasks": size(page.report["stream"]["of"]),
        "edges": size(page.report["edges"]["of"]),
        # All samples are here, in rows of their own.
        "profiles": 0,
    }
    completeness = {}
    for name in TABLES:
        held = tables[name].rows if name in tables else 0
        lost = size(records[name]["dropped"]) if name in records else 0
        if held or lost:
            completeness[name] = Completeness(held, missing=max(0, of.get(name, 0) - held) + lost)
    return Recording(source, tables, completeness, partial=_partial(page.report))


def _partial(report: dict[str, Any]) -> str:
    if report["complete"] is True:
        return PARTIAL
    return f"{PARTIAL} and says of itself: {text(report['statement'])[:MOST_STATEMENT].rstrip('.')}"


def _table(page: Page, record: Any) -> Table:
    definition, rows = TABLES[record["name"]], size(record["rows"], MOST_ROWS)
    names = [text(column["name"]) for column in record["columns"]]
    lines = dict(zip(names, page.lines(record["data"], len(names)), strict=True))
    columns: dict[str, Values] = {}
    for column in definition.columns:
        if column.name in lines:
            columns[column.name] = _values(column.kind, parse(lines[column.name].encode()), rows)
        else:
            columns[column.name] = empty_values(column.kind, rows)
    return Table(definition, columns)


def _values(kind: str, cells: Any, rows: int) -> Values:
    """A column from its cells as ``report/tables.py`` makes them plain."""
    if type(cells) is not list or len(cells) != rows:
        raise ValueError("a table has another number of rows than it claims")
    if kind == "str":
        return Strings.of(list(map(text, cells)))
    if kind == "str[]":
        items = [_items(text(cell)) for cell in cells]
        offsets = np.concatenate(([0], np.cumsum([len(item) for item in items]))).astype(np.int64)
        return Lists(offsets, Strings.of([one for item in items for one in item]))
    if kind == "float":
        return np.array([_float(cell) for cell in cells], dtype=np.float64)
    if kind in ("int", "time"):
        return np.array([_int(cell) for cell in cells], dtype=np.int64)
    return empty_values(kind, rows)


def _items(joined: str) -> list[str]:
    """A list that was written as one text. Keys of tuples have commas of their own, inside of their parentheses."""
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
        raise ValueError("a table has something else where a whole number should be")
    return int(value)


def _float(value: Any) -> float:
    if value is None:
        return float("nan")
    if type(value) not in (int, float):
        raise ValueError("a table has something else where a number should be")
    return float(value)

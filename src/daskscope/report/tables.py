"""The tables of a recording as a report carries them: the first rows of each, and how many there are."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import numpy as np

from daskscope.model.recording import Completeness, Recording
from daskscope.model.table import Table
from daskscope.report.blocks import Blocks
from daskscope.report.schema import ReportColumn, ReportTable

#: Rows of a table in the report: enough to look through by eye. Whoever wants all of them exports the recording.
MOST_ROWS = 2_000
#: Every task is in the stream already.
MOST_TASKS = 500
MOST_TEXT = 2_000


def report_tables(recording: Recording, blocks: Blocks) -> list[ReportTable]:
    """Every table that has rows."""
    return [_table(recording, name, blocks) for name in recording if recording[name].rows]


def _table(recording: Recording, name: str, blocks: Blocks) -> ReportTable:
    table = recording[name]
    shown = table.take(np.arange(min(table.rows, MOST_TASKS if name == "tasks" else MOST_ROWS)))
    completeness = recording.completeness.get(name, Completeness(table.rows))
    lines = [json.dumps(list(map(_plain, shown[column])), allow_nan=False) for column in shown]
    return {
        "name": name,
        "row": table.definition.row,
        "rows": shown.rows,
        "of": table.rows,
        "dropped": completeness.dropped + completeness.missing,
        "columns": [_column(table, column.name) for column in table.definition.columns],
        "data": blocks.lines(f"table.{name}", lines),
    }


def _column(table: Table, name: str) -> ReportColumn:
    column = next(column for column in table.definition.columns if column.name == name)
    kind: Literal["int", "float", "str", "time", "list"] = "list" if column.kind.endswith("[]") else column.kind  # type: ignore[assignment]
    return {"name": name, "kind": kind, "meaning": column.meaning}


def _plain(value: Any) -> Any:
    """A cell as JSON can have it; lists become texts, as nobody sorts by them."""
    if isinstance(value, list):
        return ", ".join(map(str, value))[:MOST_TEXT]
    if isinstance(value, str):
        return value if len(value) <= MOST_TEXT else f"{value[:MOST_TEXT]} …"
    if isinstance(value, np.generic):
        value = value.item()
    return value if not isinstance(value, float) or math.isfinite(value) else None

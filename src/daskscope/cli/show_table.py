"""Rows of one table as they are: tab-separated in a pipe, one block a row on a terminal."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from daskscope.cli.escape import escape
from daskscope.cli.output import on_terminal, write
from daskscope.model.table import Table


def show_table(table: Table, limit: int | None, *, as_json: bool) -> int:
    """Print the first ``limit`` rows; the result is how many that were."""
    shown = table.take(np.arange(min(table.rows, limit if limit is not None else table.rows)))
    columns = {name: shown[name].tolist() for name in shown}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if as_json:
        write(
            json.dumps({"table": table.name, "total": table.rows, "rows": [_finite(r) for r in rows]}, indent=2) + "\n"
        )
    elif on_terminal():
        _blocks(rows, table)
    else:
        write("\t".join(columns) + "\n")
        for row in rows:
            write("\t".join(map(_cell, row.values())) + "\n")
    return len(rows)


def _blocks(rows: list[dict[str, Any]], table: Table) -> None:
    """Twenty columns fit no terminal, so each row is a list of what it holds; what is empty is left out."""
    size = max(map(len, table))
    if not rows:
        write(f"The recording has no {table.name} ({table.definition.row}).\n")
    for number, row in enumerate(rows, start=1):
        write(f"{table.name} row {number:,}\n")
        for name, value in row.items():
            if value not in ("", 0, []):
                write(f"  {name:<{size}}  {_cell(value)}\n")


def _cell(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value))


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}

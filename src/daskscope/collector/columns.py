"""Rows on their way to a batch: one list of values per column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..model.tables import TableDef

#: Column name -> values; every list has the same length, ``str[]`` columns hold a list or tuple of str per row.
Columns = dict[str, list[Any]]


def empty(table: TableDef) -> Columns:
    """Every column of a table, without rows."""
    return {name: [] for name in table.names}

"""Responses to SQL queries. Part of the contract in ``contract.py``."""

from __future__ import annotations

from typing import TypedDict


class SqlResultColumn(TypedDict):
    """A column of a result, with its DuckDB type."""

    name: str
    type: str


class SqlAnswer(TypedDict):
    """The rows of a query."""

    columns: list[SqlResultColumn]
    rows: list[list[object]]
    #: Whether there are more rows.
    is_cut: bool
    #: The clusters that the query read, and all that match its filters.
    clusters: int
    all_clusters: int
    #: The first clusters that the query did not read, because a file of theirs is missing or damaged, and how many there are.
    skipped: list[str]
    skipped_clusters: int
    seconds: float


class SqlTableColumn(TypedDict):
    """A column that queries can use."""

    name: str
    kind: str
    meaning: str


class SqlTable(TypedDict):
    """A table that queries can read."""

    name: str
    row: str
    columns: list[SqlTableColumn]


class SqlTables(TypedDict):
    """All tables that queries can read."""

    tables: list[SqlTable]

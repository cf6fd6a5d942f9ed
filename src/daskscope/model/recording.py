"""Everything known of one cluster's life, or of a stretch of it: the tables and how complete they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from daskscope.model.table import Table
from daskscope.model.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Completeness:
    """How much of one table the recording holds."""

    rows: int = 0
    #: Rows dropped inside the cluster, before they were encoded.
    dropped: int = 0
    #: Rows encoded but not in this file: batches lost on the way or cut off.
    missing: int = 0

    @property
    def total(self) -> int:
        return self.rows + self.dropped + self.missing


@dataclass(frozen=True)
class Recording(Mapping[str, Table]):
    """The tables of one recording; ``recording["tasks"]["start_us"]`` is a numpy column."""

    source: str
    tables: Mapping[str, Table]
    completeness: Mapping[str, Completeness] = field(default_factory=dict)
    #: Why reading stopped before the end of the file; empty when the file is whole.
    damage: str = ""
    #: Bytes after the last whole batch that could not be read.
    damaged_bytes: int = 0
    #: Batches that were numbered but are not in this file. Nobody knows which tables they held: rows of a table of which no batch
    #: is left are in no ``completeness``.
    missing_batches: int = 0
    #: What the source cannot say as well as a recording would; empty for recordings.
    partial: str = ""

    def __getitem__(self, table: str) -> Table:
        if table in self.tables:
            return self.tables[table]
        if table in TABLES:
            return Table.empty(table)
        raise KeyError(f"no table {table!r}; the tables are {', '.join(TABLES)}")

    def __iter__(self) -> Iterator[str]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)

    def __repr__(self) -> str:
        held = ", ".join(f"{name} {table.rows:,}" for name, table in self.tables.items() if table.rows)
        return f"<Recording {self.source}: {held or 'empty'}>"

    def _repr_html_(self) -> str:
        """For notebooks: what is in it, and how to see it whole."""
        rows = "".join(
            f"<tr><td>{name}</td><td style='text-align:right'>{table.rows:,}</td><td>{escape(table.definition.row)}</td></tr>"
            for name, table in self.tables.items()
            if table.rows
        )
        source = escape(self.source)
        return f"<b>{source}</b><table>{rows}</table><p>In a terminal: <code>daskscope open {source}</code></p>"

    def to_pandas(self, table: str) -> pd.DataFrame:
        """One table as a pandas DataFrame."""
        return self[table].to_pandas()

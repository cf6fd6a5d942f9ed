"""A recording: the tables of one cluster, or of a part of its life, and their completeness."""

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
    """How many rows of one table the recording holds and lacks."""

    rows: int = 0
    #: Rows dropped inside the cluster, before they were encoded.
    dropped: int = 0
    #: Rows encoded but not in this file: their batches were lost or cut off.
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
    #: Why part of the file could not be read; empty if the file is whole.
    damage: str = ""
    #: Bytes that could not be read.
    damaged_bytes: int = 0
    #: Batches whose sequence numbers are missing in this file. Their tables are not known: if all batches of a table are missing,
    #: ``completeness`` does not count its rows.
    missing_batches: int = 0
    #: Data that the source lacks compared to a recording; empty for recordings.
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
        """Return a summary for notebooks, with the command that opens the recording."""
        rows = "".join(
            f"<tr><td>{name}</td><td style='text-align:right'>{table.rows:,}</td><td>{escape(table.definition.row)}</td></tr>"
            for name, table in self.tables.items()
            if table.rows
        )
        source = escape(self.source)
        return f"<b>{source}</b><table>{rows}</table><p>In a terminal: <code>daskscope open {source}</code></p>"

    def to_pandas(self, table: str) -> pd.DataFrame:
        """Return one table as a pandas DataFrame."""
        return self[table].to_pandas()

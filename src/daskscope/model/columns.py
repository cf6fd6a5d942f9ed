"""The definition of a table: its columns with their kinds and meanings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["time", "int", "float", "str", "time[]", "int[]", "str[]"]


@dataclass(frozen=True)
class Column:
    """One column: its name carries the unit where it has one (``start_us``, ``nbytes``)."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class TableDef:
    """One table. ``time`` is the column that gives a batch its time range; ``raw`` rows may be dropped as a last resort."""

    name: str
    row: str
    columns: tuple[Column, ...]
    time: str
    key: tuple[str, ...] = ()
    raw: bool = False

    def column(self, name: str) -> Column:
        return self.by_name[name]

    # Computed once: a server asks for every column of every batch.
    @cached_property
    def by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def define_table(
    name: str, row: str, *columns: Column, time: str, key: tuple[str, ...] = (), raw: bool = False
) -> TableDef:
    return TableDef(name, row, columns, time, key, raw)

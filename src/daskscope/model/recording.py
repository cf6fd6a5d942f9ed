"""A recording: the tables of one cluster, or of a part of its life, and their completeness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from daskscope.model.columns import TableDef
from daskscope.model.packed_texts import PackedTexts
from daskscope.model.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd


# A table in memory has named numpy columns.
#
# String columns stay dictionary-coded until they are read: five million task rows have a few hundred distinct workers, groups
# and types, and an object array of them would cost 40 MB per column.

Array: TypeAlias = npt.NDArray[Any]


class Strings:
    """A string column as codes into its distinct values.

    A column of texts that rarely repeat (task keys) is made by ``of`` and computes its codes only when they are needed: numbering
    five million keys takes 15 seconds, and most readers never group by them.
    """

    __slots__ = ("_codes", "_repeated", "_texts", "_values")

    def __init__(self, codes: Array, values: Array) -> None:
        self._codes: Array | None = codes
        self._values: Array | None = values
        self._texts: Array | PackedTexts | None = None
        self._repeated: tuple[Array, Array] | None = None

    @classmethod
    def of(cls, items: list[str]) -> Strings:
        return cls.from_texts(object_array(items))

    @classmethod
    def from_texts(cls, texts: Array | PackedTexts) -> Strings:
        strings = cls.__new__(cls)
        strings._codes = strings._values = strings._repeated = None
        strings._texts = texts
        return strings

    @property
    def texts(self) -> Array | None:
        """One text per row, if the column is stored that way; else None."""
        return self._texts.to_numpy() if isinstance(self._texts, PackedTexts) else self._texts

    @property
    def is_packed(self) -> bool:
        """Whether the texts are stored in one piece."""
        return isinstance(self._texts, PackedTexts)

    def all_packed(self) -> PackedTexts:
        """Return all texts in one piece."""
        return self._texts if isinstance(self._texts, PackedTexts) else PackedTexts.of(self.to_numpy().tolist())

    @property
    def is_empty(self) -> Array:
        """Whether each text is empty."""
        if isinstance(self._texts, PackedTexts):
            return self._texts.is_empty
        if self._texts is not None:
            return np.asarray(self._texts == "")
        result: Array = (self.values == "")[self.codes] if len(self.values) else np.zeros(len(self.codes), dtype=bool)
        return result

    @property
    def codes(self) -> Array:
        if self._codes is None:
            self._number()
        assert self._codes is not None
        return self._codes

    @property
    def values(self) -> Array:
        if self._values is None:
            self._number()
        assert self._values is not None
        return self._values

    @property
    def repeated(self) -> tuple[Array, Array]:
        """The rows whose text occurs more than once, and a number for each of their texts.

        Computed once: five million keys take 0.5 s, and prefixes, workers and the breakdown all need the recomputed tasks.
        """
        if self._repeated is None:
            self._repeated = self._find_repeated()
        return self._repeated

    def _find_repeated(self) -> tuple[Array, Array]:
        if self._texts is None:
            rows = np.flatnonzero(np.bincount(self.codes, minlength=len(self.values))[self.codes] > 1)
            return rows, self.codes[rows].astype(np.int64)
        # Numbering a million keys takes a second, and nearly all are unique, so number only those whose hashes are equal.
        if isinstance(self._texts, PackedTexts):
            hashes = self._texts.hashes()
        else:
            hashes = np.fromiter(map(hash, self._texts.tolist()), dtype=np.int64, count=len(self))
        ordered = np.sort(hashes)
        several = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        if not len(several):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        at = np.minimum(np.searchsorted(several, hashes), len(several) - 1)
        rows, numbers = np.flatnonzero(several[at] == hashes), at[several[at] == hashes]
        if isinstance(self._texts, PackedTexts):
            first = np.unique(numbers, return_index=True)[1]
            if self._texts.are_equal(rows, rows[first[numbers]]):
                return rows, numbers
        return rows, Strings.from_texts(self._texts[rows]).codes.astype(np.int64)

    def _number(self) -> None:
        texts = self.to_numpy().tolist()
        index = {value: code for code, value in enumerate(dict.fromkeys(texts))}
        self._codes = np.fromiter(map(index.__getitem__, texts), dtype=np.int32, count=len(texts))
        self._values = object_array(list(index))

    def __len__(self) -> int:
        return len(self.codes if self._texts is None else self._texts)

    def to_numpy(self) -> Array:
        texts = self.texts
        if texts is not None:
            return texts
        result: Array = self.values[self.codes] if len(self.values) else np.empty(0, dtype=object)
        return result

    def take(self, rows: Array) -> Strings:
        if self._texts is None:
            return Strings(self.codes[rows], self.values)
        return Strings.from_texts(self._texts.take(rows) if isinstance(self._texts, PackedTexts) else self._texts[rows])

    def packed(self, rows: Array) -> tuple[PackedTexts, Array]:
        """Return packed texts, and the position among them of the text of each of the given rows."""
        if isinstance(self._texts, PackedTexts):
            return self._texts, rows
        return PackedTexts.of(self.take(rows).to_numpy().tolist()), np.arange(len(rows))

    def rows_with(self, texts: Iterable[str]) -> Array:
        """Return the rows that hold one of the given texts."""
        wanted = list(dict.fromkeys(texts))
        if isinstance(self._texts, PackedTexts):
            # Decode only texts with the same hash: decoding five million takes 2 s and 0.5 GB.
            rows = np.flatnonzero(np.isin(self._texts.hashes(), PackedTexts.of(wanted).hashes()))
            return rows[np.isin(self._texts[rows], object_array(wanted))] if len(rows) else rows
        return np.flatnonzero(np.isin(self.values, object_array(wanted))[self.codes])


class Lists:
    """A list column: flat values, and the offset of each row's first value."""

    __slots__ = ("_owners", "flat", "offsets")

    def __init__(self, offsets: Array, flat: Array | Strings) -> None:
        self.offsets = offsets
        self.flat = flat
        self._owners: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Array:
        result: Array = np.diff(self.offsets)
        return result

    @property
    def owners(self) -> Array:
        """The row of each flat value. Computed once: it takes 0.1 s for five million rows, and a document needs it five times."""
        if self._owners is None:
            self._owners = np.repeat(np.arange(len(self), dtype=np.int32), self.lengths)
        return self._owners

    def to_numpy(self) -> Array:
        flat = self.flat.to_numpy() if isinstance(self.flat, Strings) else self.flat
        rows = np.empty(len(self), dtype=object)
        for i in range(len(self)):
            rows[i] = flat[self.offsets[i] : self.offsets[i + 1]].tolist()
        return rows

    def take(self, rows: Array) -> Lists:
        starts, lengths = self.offsets[:-1][rows], self.lengths[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        index = np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
        return Lists(offsets, self.flat.take(index) if isinstance(self.flat, Strings) else self.flat[index])


Values: TypeAlias = Array | Strings | Lists


def object_array(values: list[str]) -> Array:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


class Table(Mapping[str, Array]):
    """One table of a recording; ``table["start_us"]`` is a numpy column."""

    def __init__(self, definition: TableDef, columns: Mapping[str, Values]) -> None:
        self.definition = definition
        self.columns = dict(columns)
        self._rows = len(next(iter(self.columns.values())))

    @classmethod
    def empty(cls, name: str) -> Table:
        definition = TABLES[name]
        return cls(definition, {column.name: empty_values(column.kind, 0) for column in definition.columns})

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def rows(self) -> int:
        return self._rows

    def __getitem__(self, column: str) -> Array:
        values = self.columns[column]
        return values if isinstance(values, np.ndarray) else values.to_numpy()

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {self.rows:,} rows of {self.definition.row}>"

    def kind(self, column: str) -> str:
        """Return a column's kind: ``time``, ``int``, ``float``, ``str``, or a list of one of them (``str[]``)."""
        return next(definition.kind for definition in self.definition.columns if definition.name == column)

    def strings(self, column: str) -> Strings:
        """Return a string column as codes and distinct values, for grouping without materialising it."""
        values = self.columns[column]
        if not isinstance(values, Strings):
            raise TypeError(f"{self.name}.{column} is not a string column")
        return values

    def lists(self, column: str) -> Lists:
        """Return a list column as offsets and flat values."""
        values = self.columns[column]
        if not isinstance(values, Lists):
            raise TypeError(f"{self.name}.{column} is not a list column")
        return values

    def records(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows as tuples of these columns."""
        return zip(*(self[name].tolist() for name in names), strict=True)

    def take(self, rows: Array) -> Table:
        """Return the given rows (an index array or a boolean mask)."""
        index = np.flatnonzero(rows) if rows.dtype == bool else rows
        return Table(
            self.definition,
            {name: v[index] if isinstance(v, np.ndarray) else v.take(index) for name, v in self.columns.items()},
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a DataFrame; times become timestamps in UTC."""
        try:
            import pandas as pd
        except ImportError:
            from daskscope.errors import MissingExtra

            raise MissingExtra("pandas", "pandas", "to_pandas()") from None
        series: dict[str, Any] = {}
        for column in self.definition.columns:
            values = self[column.name]
            if column.kind == "time":
                stamps = pd.to_datetime(values, unit="us", utc=True)
                series[column.name] = stamps.where(values != 0)
            else:
                series[column.name] = values
        return pd.DataFrame(series)


def concatenate(definition: TableDef, tables: list[Table]) -> Table:
    """Join the batches of a table."""
    if len(tables) == 1:
        return tables[0]
    return Table(definition, {name: _join([table.columns[name] for table in tables]) for name in definition.names})


def _join(parts: list[Values]) -> Values:
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)  # type: ignore[arg-type]
    if isinstance(first, Strings):
        return _join_strings([part for part in parts if isinstance(part, Strings)])
    lists = [part for part in parts if isinstance(part, Lists)]
    offsets = np.concatenate(([0], np.cumsum(np.concatenate([part.lengths for part in lists])))).astype(np.int64)
    flat = _join([part.flat for part in lists if len(part.flat)] or [lists[0].flat])
    assert not isinstance(flat, Lists)
    return Lists(offsets, flat)


def _join_strings(parts: list[Strings]) -> Strings:
    if any(part.is_packed for part in parts):
        # As Python strings, five million keys would take 480 MB.
        return Strings.from_texts(PackedTexts.concatenated([part.all_packed() for part in parts]))
    texts = [text for text in (part.texts for part in parts) if text is not None]
    if len(texts) == len(parts):
        return Strings.from_texts(np.concatenate(texts))
    index: dict[str, int] = {}
    codes: list[Array] = []
    for part in parts:
        mapping = np.fromiter(
            (index.setdefault(value, len(index)) for value in part.values), dtype=np.int32, count=len(part.values)
        )
        codes.append(mapping[part.codes] if len(mapping) else part.codes)
    return Strings(np.concatenate(codes), object_array(list(index)))


def empty_values(kind: str, rows: int) -> Values:
    """Return the values of a column that the writer did not have."""
    if kind.endswith("[]"):
        return Lists(np.zeros(rows + 1, dtype=np.int64), _empty_scalars(kind[:-2], 0))
    return _empty_scalars(kind, rows)


def _empty_scalars(kind: str, rows: int) -> Array | Strings:
    if kind == "str":
        return Strings(np.zeros(rows, dtype=np.int32), object_array([""]))
    return np.zeros(rows, dtype=np.float64 if kind == "float" else np.int64)


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

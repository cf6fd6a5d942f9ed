"""A table in memory: named numpy columns.

String columns stay dictionary-coded until somebody asks for them: five million task rows hold a few hundred distinct
workers, groups and types, and an object array of them would cost 40 MB a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from daskscope.model.tables import TABLES, TableDef

if TYPE_CHECKING:
    import pandas as pd

Array: TypeAlias = npt.NDArray[Any]


class Strings:
    """A string column as codes into its distinct values.

    A column of texts that hardly repeat (task keys) is made by ``of`` and finds out its codes only when asked for them: five
    million keys take 15 seconds to number, and most readers never group by them.
    """

    __slots__ = ("_codes", "_repeated", "_texts", "_values")

    def __init__(self, codes: Array, values: Array) -> None:
        self._codes: Array | None = codes
        self._values: Array | None = values
        self._texts: Array | None = None
        self._repeated: tuple[Array, Array] | None = None

    @classmethod
    def of(cls, items: list[str]) -> Strings:
        return cls.from_texts(object_array(items))

    @classmethod
    def from_texts(cls, texts: Array) -> Strings:
        strings = cls.__new__(cls)
        strings._codes = strings._values = strings._repeated = None
        strings._texts = texts
        return strings

    @property
    def texts(self) -> Array | None:
        """The column written out, where that is how it is held."""
        return self._texts

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
        """The rows whose text is not theirs alone, and numbers for these texts.

        Found once: it takes 0.3 s of a million keys, and prefixes, workers and the breakdown all ask which tasks ran again.
        """
        if self._repeated is None:
            self._repeated = self._find_repeated()
        return self._repeated

    def _find_repeated(self) -> tuple[Array, Array]:
        if self._texts is None:
            rows = np.flatnonzero(np.bincount(self.codes, minlength=len(self.values))[self.codes] > 1)
            return rows, self.codes[rows].astype(np.int64)
        # Nearly all keys are unique, and numbering a million of them takes a second; so only those are numbered whose hashes agree.
        hashes = np.fromiter(map(hash, self._texts.tolist()), dtype=np.int64, count=len(self))
        order = np.argsort(hashes)
        same = np.diff(hashes[order]) == 0
        rows = np.sort(order[np.append(same, False) | np.insert(same, 0, False)] if len(order) else order)
        return rows, Strings.from_texts(self._texts[rows]).codes.astype(np.int64)

    def _number(self) -> None:
        texts = self.to_numpy().tolist()
        index = {value: code for code, value in enumerate(dict.fromkeys(texts))}
        self._codes = np.fromiter(map(index.__getitem__, texts), dtype=np.int32, count=len(texts))
        self._values = object_array(list(index))

    def __len__(self) -> int:
        return len(self.codes if self._texts is None else self._texts)

    def to_numpy(self) -> Array:
        if self._texts is not None:
            return self._texts
        result: Array = self.values[self.codes] if len(self.values) else np.empty(0, dtype=object)
        return result

    def take(self, rows: Array) -> Strings:
        return Strings(self.codes[rows], self.values) if self._texts is None else Strings.from_texts(self._texts[rows])


class Lists:
    """A list column: flat values and where each row's stretch begins."""

    __slots__ = ("flat", "offsets")

    def __init__(self, offsets: Array, flat: Array | Strings) -> None:
        self.offsets = offsets
        self.flat = flat

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Array:
        result: Array = np.diff(self.offsets)
        return result

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
        """What a column holds: ``time``, ``int``, ``float``, ``str``, or a list of one of them (``str[]``)."""
        return next(definition.kind for definition in self.definition.columns if definition.name == column)

    def strings(self, column: str) -> Strings:
        """A string column as codes and distinct values, for grouping without materialising it."""
        values = self.columns[column]
        if not isinstance(values, Strings):
            raise TypeError(f"{self.name}.{column} is not a string column")
        return values

    def lists(self, column: str) -> Lists:
        """A list column as offsets and flat values."""
        values = self.columns[column]
        if not isinstance(values, Lists):
            raise TypeError(f"{self.name}.{column} is not a list column")
        return values

    def take(self, rows: Array) -> Table:
        """The given rows (an index array or a boolean mask)."""
        index = np.flatnonzero(rows) if rows.dtype == bool else rows
        return Table(
            self.definition,
            {name: v[index] if isinstance(v, np.ndarray) else v.take(index) for name, v in self.columns.items()},
        )

    def to_pandas(self) -> pd.DataFrame:
        """This table as a DataFrame: times become timestamps in UTC, strings categoricals where they repeat."""
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


def empty_values(kind: str, rows: int) -> Values:
    """What a column holds that the writer did not know yet."""
    if kind.endswith("[]"):
        return Lists(np.zeros(rows + 1, dtype=np.int64), _empty_scalars(kind[:-2], 0))
    return _empty_scalars(kind, rows)


def _empty_scalars(kind: str, rows: int) -> Array | Strings:
    if kind == "str":
        return Strings(np.zeros(rows, dtype=np.int32), object_array([""]))
    return np.zeros(rows, dtype=np.float64 if kind == "float" else np.int64)

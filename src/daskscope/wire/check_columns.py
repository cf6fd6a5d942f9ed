"""Check the columns of a body without making them: a server stores rows as they came, and adds up a few columns.

Refuses what ``ColumnReader`` refuses, in half of the time: a small batch of a worker costs its reader about ten calls of
numpy per column, and here none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from daskscope.errors import WireError
from daskscope.model.table import Lists, Strings, Values, object_array
from daskscope.wire.decode_columns import (
    ColumnReader,
    brief,
    check_mask,
    checked_codes,
    checked_constant,
    checked_edges,
    is_int64,
    unknown,
)
from daskscope.wire.decode_keys import skip_keys
from daskscope.wire.layout import MAX_VALUES

#: Up to this many codes are compared one by one, which is faster than numpy.
FEW = 64


class Checked(NamedTuple):
    """A column that was checked: ``int``, ``float``, ``str`` or ``list``, and what columns derived from it must fit."""

    kind: str
    rows: int
    #: Distinct values of a string column.
    values: int = 0
    #: The values of a list column.
    flat: Checked | None = None

    @classmethod
    def of(cls, values: Values) -> Checked:
        """Return a column that was decoded as if it was checked."""
        if isinstance(values, Lists):
            return cls("list", len(values), flat=cls.of(values.flat))
        if isinstance(values, Strings):
            return cls("str", len(values), len(values.values))
        return cls("float" if values.dtype == np.float64 else "int", len(values))


class ColumnChecker:
    """Checks columns one after the other, and moves the cursor of a reader past them."""

    def __init__(self, reader: ColumnReader) -> None:
        self.reader = reader
        # Most columns are one of these, and making one takes as long as checking it.
        self._same = {kind: Checked(kind, reader.rows) for kind in ("int", "float")}

    def column(self, kind: str, spec: list[Any], done: Mapping[str, Checked]) -> Checked:
        if not kind.endswith("[]"):
            return self._scalars(kind, spec, self.reader.rows, done)
        marker, lengths_spec, count, inner = spec
        self._check_lengths(marker, lengths_spec, count)
        flats = {name: column.flat for name, column in done.items() if column.flat is not None}
        flat = self._scalars(kind[:-2], inner, count, flats) if count else Checked(kind[:-2], 0)
        return Checked("list", self.reader.rows, flat=flat)

    def _check_lengths(self, marker: Any, lengths_spec: Any, count: Any) -> None:
        rows = self.reader.rows
        is_list = marker == "list" and type(count) is int and 0 <= count <= MAX_VALUES
        if not is_list or lengths_spec != ["int", 1] or rows > FEW:
            self.reader.offsets(marker, lengths_spec, count)
            return
        # One byte per row. A boolean is equal to 1, but is not a mask.
        check_mask(lengths_spec[1])
        lengths = self.reader.read_bytes(rows)
        if max(lengths) > count:
            raise WireError("a list column has impossible lengths")
        if sum(lengths) != count:
            raise WireError("a list column's lengths do not add up")

    def _scalars(self, kind: str, spec: list[Any], rows: int, done: Mapping[str, Checked]) -> Checked:
        encoding = spec[0]
        if kind == "str":
            return Checked("str", rows, self._strings(encoding, spec, rows, done))
        if encoding == "const":
            checked_constant(kind, spec[1])
        elif encoding == "float" and kind == "float":
            self._skip_planes(spec[1], rows)
        elif kind != "float":
            self._integers(encoding, spec, rows, done)
        else:
            raise unknown(encoding)
        made = self._same["float" if kind == "float" else "int"]
        return made if rows == self.reader.rows else Checked(made.kind, rows)

    def _integers(self, encoding: Any, spec: list[Any], rows: int, done: Mapping[str, Checked]) -> None:
        if encoding == "int":
            self._skip_planes(spec[1], rows)
        elif encoding == "delta":
            _, first, least, mask = spec
            if not is_int64(first) or not is_int64(least):
                raise WireError("a delta-coded column does not begin with an integer")
            self._skip_planes(mask, rows)
        elif encoding == "gap":
            _, other, sign, mask = spec
            base = done[other]
            if base.kind != "int" or base.rows != rows:
                raise WireError("a gap-coded column refers to a column it cannot be based on")
            if type(sign) is not int or sign not in (1, -1):
                raise WireError(f"a gap-coded column has {brief(sign)} as its sign")
            self._skip_planes(mask, rows)
        elif encoding == "codes":
            _, count, values_mask, codes_mask = spec
            if type(count) is not int or not 0 < count <= MAX_VALUES:
                raise WireError("a column of coded integers is malformed")
            self._skip_planes(values_mask, count)
            self._check_codes(codes_mask, rows, count)
        else:
            raise unknown(encoding)

    def _strings(self, encoding: Any, spec: list[Any], rows: int, done: Mapping[str, Checked]) -> int:
        """Check a string column and return the number of its distinct values."""
        if encoding == "const":
            if type(spec[1]) is not str:
                raise WireError("a constant string is not a string")
            return 1
        if encoding == "dict":
            count = len(self.reader.strings(spec[1]))
            self._check_codes(spec[2], rows, count)
            return count
        if encoding == "via":
            _, other, size = spec
            base, count = done[other], len(self.reader.strings(size))
            if base.kind != "str" or base.rows != rows or count != base.values:
                raise WireError("a column refers to a column it cannot be derived from")
            return count
        if encoding == "runs":
            _, starts, size = spec
            count = len(self.reader.strings(size))
            checked_edges(starts, count, rows)
            return count
        if encoding == "keys":
            groups = done["group"]
            known = groups.rows if groups.kind == "str" else 0
            skip_keys(self.reader, spec, Strings(np.zeros(known, dtype=np.int32), object_array([""])), rows)
            return 1
        raise unknown(encoding)

    def _skip_planes(self, mask: Any, rows: int) -> None:
        check_mask(mask)
        self.reader.skip_bytes(rows * mask.bit_count())

    def _check_codes(self, mask: Any, rows: int, count: int) -> None:
        if type(mask) is int and mask == 1 and 0 < rows <= FEW:
            if max(self.reader.read_bytes(rows)) >= count:
                raise WireError("a string column has codes without a value")
            return
        checked_codes(self.reader.planes(mask, rows), count)

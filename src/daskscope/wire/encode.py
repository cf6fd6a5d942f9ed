"""Encode columns into a body and a body into a frame, with the standard library alone.

This runs inside users' schedulers, so it is designed for low cost: integers are delta- or gap-coded by C-level ``map`` calls
(40 to 90 ns per value) and split into byte planes by strided slices, and planes of zeros are left out. Strings go through a
per-batch dictionary. Incompressible data (key hashes) is stored beside the zlib stream instead of in it. In total this takes
8 to 12 bytes and about 1 µs per task, most of it with the interpreter lock released.

A body can be encoded in one process (a worker) and sealed in another (the scheduler, which assigns the sequence numbers).
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import isfinite
from operator import add, sub
from typing import Any

from ..model.columns import Column
from ..model.tables import SCHEMA_VERSION, TABLES
from .encode_keys import encode_keys
from .layout import (
    MAGIC,
    MAX_BODY,
    MAX_CLUSTER,
    MAX_DIRECTORY,
    MAX_ITEMS,
    MAX_RAW,
    MAX_ROWS,
    MAX_VALUES,
    PREFIX,
    count_items,
)

Spec = list[Any]

#: Bodies with at least this many rows are compressed at level 1, smaller ones at level 6, which takes 2 to 7 times as long for 5 to
#: 8 % fewer bytes. A busy recorder hands over batches of a thousand tasks and more; smaller batches are closed by a timer, every
#: two seconds. On a slow cluster nearly all are small, and each costs 2.5 kB before its first row: 0.3 ms more save 1.1 of 15 bytes
#: per task.
FAST_ROWS = 1_000


@dataclass(frozen=True)
class Const:
    """The same value in every row."""

    value: Any


@dataclass(frozen=True)
class Coded:
    """Strings that are already interned: one small code per row, and the value of each code."""

    codes: Sequence[int]
    values: Sequence[str]


@dataclass(frozen=True)
class CodedIntegers:
    """Integers of which few are distinct (thread identifiers): one small code per row, and the value of each code."""

    codes: Sequence[int]
    values: Sequence[int]


@dataclass(frozen=True)
class Delta:
    """An integer column with small differences between rows, stored as these (``time`` columns always are)."""

    values: Sequence[int]


@dataclass(frozen=True)
class Via:
    """A column that is a function of another, coded column: one value per code, nothing per row."""

    column: str
    values: Sequence[str]


@dataclass(frozen=True)
class Runs:
    """A column that changes rarely: the rows at which a new value begins (the first is 0) and the values."""

    starts: Sequence[int]
    values: Sequence[str]


@dataclass(frozen=True)
class Gap:
    """An integer column close to another one: ``value = other + sign * gap``."""

    column: str
    sign: int
    gaps: Sequence[int]


@dataclass(frozen=True)
class Ragged:
    """A list column of which most rows are empty: for each flat value the row it belongs to (ascending)."""

    rows: Sequence[int]
    values: Sequence[Any] | Coded | Gap


@dataclass(frozen=True)
class Body:
    """An encoded batch without a sequence number."""

    table: str
    rows: int
    t0: int
    t1: int
    raw: int
    data: bytes


class BodyWriter:
    """Collects the buffers and the column directory of one body."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.directory: list[Spec] = []
        self.packed: list[bytes] = []
        self.plain: list[bytes] = []
        self.items = 0

    def pack(self, data: bytes) -> int:
        """Add data to the compressed part; return its size."""
        self.packed.append(data)
        return len(data)

    def store(self, data: bytes) -> int:
        """Add data to the plain part, which is not compressed; return its size."""
        self.plain.append(data)
        return len(data)

    def pack_strings(self, values: Sequence[str]) -> int:
        data = json.dumps(list(values), separators=(",", ":")).encode()
        self.items += count_items(data)
        return self.pack(data)

    def planes(self, values: array[int] | array[float] | bytes) -> int:
        """Store values as byte planes, one per byte of a value; return the mask of the planes that are not all zero."""
        if isinstance(values, bytes):
            self.packed.append(values)
            return 1
        data = _little_endian(values).tobytes()
        rows, width = len(values), values.itemsize
        mask = 0
        for k in range(width):
            plane = data[k::width]
            if plane.count(0) != rows:
                mask |= 1 << k
                self.packed.append(plane)
        return mask

    def finish(self) -> tuple[int, bytes]:
        directory = json.dumps(self.directory, separators=(",", ":")).encode()
        raw = b"".join((len(directory).to_bytes(4, "little"), directory, *self.packed))
        packed = zlib.compress(raw, 1 if self.rows >= FAST_ROWS else 6)
        plain = b"".join(self.plain)
        size, data = len(raw) + len(plain), b"".join((len(packed).to_bytes(4, "little"), packed, plain))
        # Readers refuse bodies beyond these limits.
        if len(directory) > MAX_DIRECTORY or self.items > MAX_ITEMS or size > MAX_RAW or len(data) > MAX_BODY:
            raise ValueError(f"A batch of {self.rows} rows and {size} bytes is too large. Split it.")
        return size, data


def encode_body(table: str, columns: Mapping[str, Any]) -> Body:
    """Encode all columns of ``table``; none may be missing, and all must have the same number of rows.

    Raises ``ValueError`` for missing columns, differing lengths, and no or too many rows, which no reader accepts.
    """
    definition = TABLES[table]
    if columns.keys() != set(definition.names):
        raise ValueError(f"{table}: missing or unknown columns {sorted(columns.keys() ^ set(definition.names))}")
    rows = _count_rows(columns)
    if not 0 < rows <= MAX_ROWS:
        raise ValueError(f"a batch has 1 to {MAX_ROWS} rows, not {rows}")
    writer = BodyWriter(rows)
    for column in _order_by_base(definition.columns, columns):
        writer.directory.append([column.name, *_column(writer, column, columns)])
    t0, t1 = _time_range(definition.time, columns)
    raw, data = writer.finish()
    return Body(table, rows, t0, t1, raw, data)


def seal(
    body: Body, *, cluster: str, epoch: int, sequence: int, kept: int, dropped: int, schema: int = SCHEMA_VERSION
) -> bytes:
    """Return the frame of a body with its sequence number.

    ``kept`` and ``dropped`` count the rows of this table since the epoch began, including this batch, so that a reader
    knows exactly how many rows are missing, even if whole batches were lost on the way.
    """
    if len(cluster) > MAX_CLUSTER or sequence < 0 or dropped < 0 or kept < body.rows:
        raise ValueError(f"no reader accepts {cluster=}, {sequence=}, {kept=} of {body.rows} rows, {dropped=}")
    header = json.dumps(
        {
            "table": body.table,
            "schema": schema,
            "cluster": cluster,
            "epoch": epoch,
            "sequence": sequence,
            "rows": body.rows,
            "t0": body.t0,
            "t1": body.t1,
            "kept": kept,
            "dropped": dropped,
            "raw": body.raw,
        },
        separators=(",", ":"),
    ).encode()
    lengths = len(header).to_bytes(4, "little") + len(body.data).to_bytes(4, "little")
    crc = zlib.crc32(body.data, zlib.crc32(header, zlib.crc32(lengths)))
    return b"".join((PREFIX.pack(MAGIC, len(header), len(body.data), crc), header, body.data))


def microseconds(seconds: Iterable[float]) -> array[int]:
    """Convert float seconds to whole microseconds, by C-level calls only."""
    return array("q", map(round, map((1e6).__mul__, seconds)))


def _order_by_base(definitions: Sequence[Column], columns: Mapping[str, Any]) -> list[Column]:
    """Order the columns so that a reader decodes a column's base before the column itself."""

    def depth(name: str, seen: tuple[str, ...] = ()) -> int:
        if name in seen or name not in columns:
            raise ValueError(f"column {seen[0]} is based on {name}, which cannot be its base")
        values = columns[name]
        values = values.values if isinstance(values, Ragged) else values
        if isinstance(values, (Gap, Via)):
            return depth(values.column, (*seen, name)) + 1
        return depth("group", (*seen, name)) + 1 if name == "key" and "group" in columns else 0

    return sorted(definitions, key=lambda column: depth(column.name))


def _count_rows(columns: Mapping[str, Any]) -> int:
    for values in columns.values():
        if not isinstance(values, (Const, Via, Runs, Ragged)):
            return _length(values)
    raise ValueError("at least one column must have a value per row")


def _length(values: Any) -> int:
    if isinstance(values, (Coded, CodedIntegers)):
        return len(values.codes)
    if isinstance(values, Delta):
        return len(values.values)
    return len(values.gaps) if isinstance(values, Gap) else len(values)


def _time_range(name: str, columns: Mapping[str, Any]) -> tuple[int, int]:
    values = columns[name]
    if isinstance(values, Const):
        return values.value, values.value
    times = _ungapped(values, columns) if isinstance(values, (Gap, Delta)) else values
    return min(times), max(times)


def _ungapped(values: Any, columns: Mapping[str, Any]) -> Iterable[int]:
    if isinstance(values, Const):
        return repeat(values.value)
    if isinstance(values, Delta):
        return values.values
    if not isinstance(values, Gap):
        return list(values)
    return list(map(add if values.sign > 0 else sub, _ungapped(columns[values.column], columns), values.gaps))


def _column(writer: BodyWriter, column: Column, columns: Mapping[str, Any]) -> Spec:
    """Encode one column; return its directory entry without the name."""
    values = columns[column.name]
    if column.kind.endswith("[]"):
        return _lists(writer, column, values)
    if isinstance(values, Const):
        return _constant(writer, column, values.value)
    if isinstance(values, (Via, Runs)):
        return _derived(writer, column, values, columns)
    if _length(values) != writer.rows:
        raise ValueError(f"column {column.name} has {_length(values)} rows, not {writer.rows}")
    if column.name == "key" and "group" in columns and not isinstance(values, Coded):
        return encode_keys(writer, values, _texts(columns["group"], columns, writer.rows))
    return scalars(writer, column.kind, values)


def _constant(writer: BodyWriter, column: Column, value: Any) -> Spec:
    if column.kind == "str":
        if not isinstance(value, str):
            raise ValueError(f"column {column.name} holds strings, not {value!r}")
        return ["const", value]
    if column.kind != "float":
        return ["const", array("q", (value,))[0]]
    # JSON has no NaN and no infinities.
    return ["const", float(value)] if isfinite(value) else scalars(writer, "float", [value] * writer.rows)


def _derived(writer: BodyWriter, column: Column, values: Via | Runs, columns: Mapping[str, Any]) -> Spec:
    if column.kind != "str":
        raise ValueError(f"column {column.name} is not a string column and cannot be a {type(values).__name__}")
    if isinstance(values, Runs):
        if len(values.starts) != len(values.values):
            raise ValueError(f"column {column.name} has {len(values.starts)} runs of {len(values.values)} values")
        starts = list(values.starts)
        if starts != sorted(set(starts)) or not starts or starts[0] != 0 or starts[-1] >= writer.rows:
            raise ValueError(f"column {column.name} has runs that do not cover {writer.rows} rows in order")
        return ["runs", list(values.starts), writer.pack_strings(values.values)]
    base = columns[values.column]
    if not isinstance(base, (Coded, Via, Runs)) or len(base.values) != len(values.values):
        raise ValueError(f"column {column.name} needs a coded column with as many values, which {values.column} is not")
    return ["via", values.column, writer.pack_strings(values.values)]


def _texts(values: Any, columns: Mapping[str, Any], rows: int) -> Sequence[str]:
    """Return a string column as one text per row."""
    if isinstance(values, Const):
        return [values.value] * rows
    if isinstance(values, Coded):
        return list(map(values.values.__getitem__, values.codes))
    if isinstance(values, Runs):
        edges = [*values.starts, rows]
        return list(chain.from_iterable(repeat(v, b - a) for v, a, b in zip(values.values, edges, edges[1:])))
    if isinstance(values, Via):
        base = columns[values.column]
        # All columns of a chain of Via have the codes of the column at its end.
        while isinstance(base, Via):
            base = columns[base.column]
        same = Runs(base.starts, values.values) if isinstance(base, Runs) else Coded(base.codes, values.values)
        return _texts(same, columns, rows)
    return values  # type: ignore[no-any-return]


def scalars(writer: BodyWriter, kind: str, values: Any) -> Spec:
    """Encode one value per row of a scalar kind."""
    if isinstance(values, Gap):
        if kind not in ("time", "int") or values.sign not in (1, -1):
            raise ValueError(f"a column of {kind} cannot be a gap with sign {values.sign}")
        return ["gap", values.column, values.sign, writer.planes(_narrow(values.gaps))]
    if kind == "str":
        return _strings(writer, values)
    if kind == "float":
        return ["float", writer.planes(array("d", values))]
    if isinstance(values, CodedIntegers):
        distinct = writer.planes(_int64(values.values))
        return ["codes", len(values.values), distinct, _code_planes(writer, values.codes, len(values.values))]
    if isinstance(values, Delta):
        return integers(writer, values.values, delta=True)
    return integers(writer, values, delta=kind == "time")


def integers(writer: BodyWriter, values: Any, *, delta: bool) -> Spec:
    """Encode integers as they are or, with ``delta``, as differences to the previous value."""
    if isinstance(values, range) and values.step == 1:
        return ["delta", values.start, 0, writer.planes(b"\0" + b"\1" * (len(values) - 1))]
    if not delta:
        if values.count(values[0]) == len(values):
            return ["const", array("q", values[:1])[0]]
        return ["int", writer.planes(_narrow(values))]
    ints = _int64(values)
    deltas = list(map(sub, ints[1:], ints))
    least = min(0, min(deltas, default=0))
    if least:
        # Times sometimes go back; shifted above zero, the differences need two or three planes instead of eight.
        deltas = list(map(sub, deltas, repeat(least)))
    try:
        array("q", (least,))
        return ["delta", ints[0], least, writer.planes(_narrow([0, *deltas]))]
    except OverflowError:
        # Differences of more than 64 bits, which do not occur in real times.
        return ["int", writer.planes(ints)]


def _narrow(values: Any) -> array[int] | bytes:
    """Return values as one or four bytes each if all are small and not negative, so that there are fewer planes to check."""
    if isinstance(values, list) and 0 <= values[0] < 256:
        try:
            return bytes(values)
        except ValueError:
            pass
    try:
        return array("I", values)
    except OverflowError:
        return _int64(values)


def _int64(values: Any) -> array[int]:
    return values if isinstance(values, array) and values.typecode == "q" else array("q", values)


def _strings(writer: BodyWriter, values: Any) -> Spec:
    if isinstance(values, Coded):
        codes, distinct = values.codes, values.values
    else:
        index = {value: code for code, value in enumerate(dict.fromkeys(values))}
        codes, distinct = list(map(index.__getitem__, values)), list(index)
    if len(distinct) == 1:
        return ["const", distinct[0]]
    return ["dict", writer.pack_strings(distinct), _code_planes(writer, codes, len(distinct))]


def _code_planes(writer: BodyWriter, codes: Sequence[int], distinct: int) -> int:
    # One byte per code and a single plane: most batches have fewer than 256 distinct values.
    return writer.planes(bytes(list(codes)) if distinct <= 256 else array("I", codes))


def _lists(writer: BodyWriter, column: Column, values: Any) -> Spec:
    if isinstance(values, Const):
        values = [values.value] * writer.rows
    lengths: list[int]
    if isinstance(values, Ragged):
        lengths = [0] * writer.rows
        for row in values.rows:
            lengths[row] += 1
        flat = values.values
    else:
        lengths = list(map(len, values))
        flat = list(chain.from_iterable(values))
    count = _length(flat)
    if len(lengths) != writer.rows or sum(lengths) != count or count > MAX_VALUES:
        raise ValueError(f"column {column.name} has {len(lengths)} lists of {count} values, not {writer.rows}")
    # The lengths come first in the body, because a reader needs them to read the values.
    lengths_spec = integers(writer, lengths, delta=False)
    return ["list", lengths_spec, count, scalars(writer, column.kind[:-2], flat) if count else ["const", 0]]


def _little_endian(values: array[Any]) -> array[Any]:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values

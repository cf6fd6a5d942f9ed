"""Decode frames into numpy columns without trusting them.

A frame may come from a damaged disk or from an attacker. Every claimed size is checked against a limit before anything is
allocated, decompression stops at the claimed size, every byte must belong to a column, and any problem raises a ``WireError``
that describes it.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from daskscope.errors import NewerFormat, WireError
from daskscope.model.columns import TableDef
from daskscope.model.recording import Lists, Strings, Table, Values, empty_values, object_array
from daskscope.model.tables import SCHEMA_VERSION, TABLES
from daskscope.wire.decode_columns import (
    INT64_MAX,
    INT64_MIN,
    ColumnReader,
    InflateError,
    KeylessReader,
    brief,
    check_mask,
    checked_codes,
    checked_constant,
    checked_edges,
    inflater,
    is_int64,
    parse_json,
    skip_keys,
    unknown,
)
from daskscope.wire.layout import (
    MAGIC,
    MAX_BODY,
    MAX_CLUSTER,
    MAX_DIRECTORY,
    MAX_HEADER,
    MAX_RAW,
    MAX_ROWS,
    MAX_VALUES,
    PREFIX,
)

# A server stores rows as they came and adds up a few columns, so it checks the columns of a body without making them.
#
# Refuses what ``ColumnReader`` refuses, in half of the time: a small batch of a worker costs its reader about ten calls of
# numpy per column, and here none.

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


class Incomplete(WireError):
    """The bytes end inside a frame."""


@dataclass(frozen=True)
class Header:
    """A frame's description of its batch."""

    table: str
    schema: int
    cluster: str
    epoch: int
    sequence: int
    rows: int
    t0: int
    t1: int
    kept: int
    dropped: int
    raw: int

    @property
    def definition(self) -> TableDef:
        return TABLES[self.table]


#: The fields of a header, and the fields that are texts; all others are integers.
NAMES = Header.__dataclass_fields__.keys()
TEXTS = frozenset({"table", "cluster"})


@dataclass(frozen=True)
class Frame:
    """One frame, checksum verified, body still encoded."""

    header: Header
    body: memoryview
    size: int
    data: memoryview

    @property
    def whole(self) -> bytes:
        """The bytes of the frame."""
        return bytes(self.data)

    def table(self) -> Table:
        """Decode the body."""
        return decode_body(self.header, self.body)

    def without_keys(self) -> Table:
        """Decode the body with empty keys, which halves the time for a batch of tasks."""
        return decode_body(self.header, self.body, KeylessReader)

    def only(self, names: Collection[str]) -> Table:
        """Decode some columns without keys, and check the others."""
        return decode_only(self.header, self.body, names)

    def check(self) -> None:
        """Raise what ``without_keys`` raises for an invalid body, in half of its time."""
        check_body(self.header, self.body)


def read_frame(data: bytes | memoryview, offset: int = 0) -> Frame:
    """Read the frame that starts at ``offset``; raise ``Incomplete`` if the bytes end too early."""
    view = memoryview(data)[offset:]
    if len(view) < PREFIX.size:
        raise Incomplete(f"{len(view)} bytes left, a frame's prefix has {PREFIX.size}")
    magic, header_size, body_size, crc = PREFIX.unpack_from(view)
    _check_magic(magic)
    if header_size > MAX_HEADER or body_size > MAX_BODY:
        raise WireError(f"a frame claims a header of {header_size} and a body of {body_size} bytes, more than allowed")
    size = PREFIX.size + header_size + body_size
    if len(view) < size:
        raise Incomplete(f"a frame of {size} bytes is cut off after {len(view)}")
    header, body = view[PREFIX.size : PREFIX.size + header_size], view[PREFIX.size + header_size : size]
    if zlib.crc32(body, zlib.crc32(header, zlib.crc32(view[4:12]))) != crc:
        raise WireError("a frame's checksum does not match: its bytes were damaged")
    return Frame(_header(header), body, size, view[:size])


def decode_body(header: Header, body: bytes | memoryview, reads: type[ColumnReader] = ColumnReader) -> Table:
    """Decode the columns of one batch."""
    reader = reads(*_decompress(header, memoryview(body)), header.rows)
    with _directory(header, reader) as directory:
        columns = _columns(reader, header.definition, directory)
    return Table(header.definition, columns)


def check_body(header: Header, body: bytes | memoryview) -> None:
    """Check the columns of one batch without decoding them."""
    reader = KeylessReader(*_decompress(header, memoryview(body)), header.rows)
    with _directory(header, reader) as directory:
        _checked_columns(reader, header.definition, directory, frozenset())


def decode_only(header: Header, body: bytes | memoryview, names: Collection[str]) -> Table:
    """Decode some columns of one batch, and check the others."""
    reader = KeylessReader(*_decompress(header, memoryview(body)), header.rows)
    with _directory(header, reader) as directory:
        columns = _checked_columns(reader, header.definition, directory, {*names, *_bases(directory)})
    kinds = header.definition.by_name
    return Table(
        header.definition,
        {name: columns[name] if name in columns else empty_values(kinds[name].kind, header.rows) for name in names},
    )


def _checked_columns(
    reader: ColumnReader, definition: TableDef, directory: Any, names: Collection[str]
) -> dict[str, Values]:
    """Return the columns with these names, and check the others."""
    checker, columns, checked = ColumnChecker(reader), dict[str, Values](), dict[str, Checked]()
    for name, *spec in directory:
        if name in checked:
            raise _repeated(name)
        kind = definition.column(name).kind
        if name in names:
            columns[name] = reader.column(kind, spec, columns)
            checked[name] = Checked.of(columns[name])
        else:
            checked[name] = checker.column(kind, spec, checked)
    return columns


def _bases(directory: Any) -> Iterator[Any]:
    """Yield the columns that other columns are derived from."""
    for _, *spec in directory:
        inner = spec[3] if spec[0] == "list" else spec
        # The values of empty lists may be described in any way.
        if isinstance(inner, list) and inner[:1] in (["gap"], ["via"]):
            yield inner[1]
        elif isinstance(inner, list) and inner[:1] == ["keys"]:
            yield "group"


@contextmanager
def _directory(header: Header, reader: ColumnReader) -> Iterator[Any]:
    """Yield the column directory. Check that all bytes are read in the end, and describe a malformed directory."""
    size = int.from_bytes(reader.read_bytes(4), "little")
    if size > MAX_DIRECTORY:
        raise WireError(f"a column directory of {size} bytes is more than allowed")
    directory = parse_json(reader.read_bytes(size))
    try:
        yield directory
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise WireError(
            f"the column directory of a {header.table} batch is malformed ({type(error).__name__})"
        ) from None
    reader.check_finished()


def _columns(reader: ColumnReader, definition: TableDef, directory: Any) -> dict[str, Values]:
    columns: dict[str, Values] = {}
    for name, *spec in directory:
        # Check before decoding: otherwise a small directory could make the reader decode a column ten thousand times.
        if name in columns:
            raise _repeated(name)
        columns[name] = reader.column(definition.column(name).kind, spec, columns)
    # Columns that an older writer did not have.
    for column in definition.columns:
        if column.name not in columns:
            columns[column.name] = empty_values(column.kind, reader.rows)
    return {name: columns[name] for name in definition.names}


def _repeated(name: Any) -> WireError:
    return WireError(f"a frame holds column {brief(name)} twice")


def _check_magic(magic: bytes) -> None:
    if magic == MAGIC:
        return
    if magic[:3] == MAGIC[:3] and magic[3] > MAGIC[3]:
        raise NewerFormat(f"wire format {magic[3]} is newer than this daskscope reads ({MAGIC[3]}); upgrade daskscope")
    raise WireError("not a frame: it does not start with the frame marker")


def _header(data: memoryview) -> Header:
    fields = parse_json(data)
    if not isinstance(fields, dict) or not fields.keys() >= NAMES:
        raise WireError("a frame's header lacks fields")
    for name in NAMES:
        value = fields[name]
        if name in TEXTS:
            is_valid = type(value) is str and len(value) <= MAX_CLUSTER
        else:
            is_valid = type(value) is int and INT64_MIN <= value <= INT64_MAX
        if not is_valid:
            raise WireError(f"a frame's header has {brief(value)} as {name}")
    return _checked(Header(**{name: fields[name] for name in NAMES}))


def _checked(header: Header) -> Header:
    if header.schema > SCHEMA_VERSION:
        raise NewerFormat(
            f"schema {header.schema} is newer than this daskscope reads ({SCHEMA_VERSION}); upgrade daskscope"
        )
    if header.table not in TABLES:
        raise WireError(f"a frame is for a table {brief(header.table)} that does not exist")
    if not 0 < header.rows <= MAX_ROWS or not 0 < header.raw <= MAX_RAW:
        raise WireError(f"a frame claims {header.rows} rows and {header.raw} bytes")
    if min(header.schema, header.sequence, header.kept - header.rows, header.dropped) < 0:
        raise WireError("a frame's header has impossible counters")
    return header


def _decompress(header: Header, body: memoryview) -> tuple[memoryview, memoryview]:
    if len(body) < 4:
        raise WireError("a frame's body is too short")
    size = int.from_bytes(body[:4], "little")
    if size > len(body) - 4:
        raise WireError("a frame's compressed part is longer than its body")
    plain = body[4 + size :]
    limit = header.raw - len(plain)
    if limit < 0:
        raise WireError("a frame holds more bytes than its header claims")
    inflate = inflater()
    try:
        packed = inflate.decompress(body[4 : 4 + size], limit + 1)
    except InflateError as error:
        raise WireError(f"a frame's body cannot be decompressed ({error})") from None
    if len(packed) != limit or not inflate.eof or inflate.unused_data:
        raise WireError(f"a frame's body does not have the {header.raw} bytes its header claims")
    return memoryview(packed), plain

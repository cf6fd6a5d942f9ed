"""Decode frames into numpy columns without trusting them.

A frame may come from a damaged disk or from an attacker. Every claimed size is checked against a limit before anything is
allocated, decompression stops at the claimed size, every byte must belong to a column, and any problem raises a ``WireError``
that describes it.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from daskscope.errors import NewerFormat, WireError
from daskscope.model.columns import TableDef
from daskscope.model.table import Table, Values, empty_values
from daskscope.model.tables import SCHEMA_VERSION, TABLES
from daskscope.wire.check_columns import Checked, ColumnChecker
from daskscope.wire.decode_columns import (
    INT64_MAX,
    INT64_MIN,
    ColumnReader,
    InflateError,
    KeylessReader,
    brief,
    inflater,
    parse_json,
)
from daskscope.wire.layout import MAGIC, MAX_BODY, MAX_CLUSTER, MAX_DIRECTORY, MAX_HEADER, MAX_RAW, MAX_ROWS, PREFIX


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


#: The fields of a header, and those of them that are texts; all others are integers.
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

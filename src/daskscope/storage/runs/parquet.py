"""Tables as Parquet files and back: how finished runs are stored.

Times stay integer microseconds, as in a recording; DuckDB, pandas and Dask can read the files. Sorted, with delta
encodings and plain strings, a task takes 18 bytes. With dictionary arrays it takes 27, because pyarrow then writes the
whole dictionary into every row group.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from daskscope.analysis.columns.grouping import narrow
from daskscope.model.columns import Column, TableDef
from daskscope.model.packed_texts import PackedTexts
from daskscope.model.recording import Array, Lists, Strings, Table, Values, empty_values, object_array
from daskscope.model.tables import TABLES
from daskscope.model.untrusted import encodable

ROW_GROUP = 20_000
#: Row groups to read at once.
GROUPS_AT_ONCE = 10
LEVEL = 3
#: Sort order of each table: similar rows are adjacent, and a time window is in few row groups.
ORDER = {
    "tasks": ("computation", "start_us"),
    "samples": ("time_us",),
    "profiles": ("start_us",),
    "transfers": ("stop_us",),
}


def to_parquet(table: Table) -> bytes:
    """Return a table as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _sorted(table)
    columns = {name: _arrow(pa, table, name) for name in table.definition.names}
    texts = [c.name for c in table.definition.columns if c.kind == "str" and c.name != "key"]
    encodings = {c.name: "DELTA_BINARY_PACKED" for c in table.definition.columns if c.kind in ("int", "time")}
    if "key" in columns:
        encodings["key"] = "DELTA_BYTE_ARRAY"
    buffer = io.BytesIO()
    pq.write_table(
        pa.table(columns),
        buffer,
        compression="zstd",
        compression_level=LEVEL,
        row_group_size=ROW_GROUP,
        use_dictionary=texts,
        column_encoding=encodings,
    )
    return buffer.getvalue()


def _sorted(table: Table) -> Table:
    names = ORDER.get(table.name)
    if names is None or table.rows < 2:
        return table
    keys = [table.strings(n).codes if isinstance(table.columns[n], Strings) else table[n] for n in names]
    return table.take(np.lexsort(keys[::-1]))


def _arrow(pa: Any, table: Table, name: str) -> Any:
    values = table.columns[name]
    if isinstance(values, Lists):
        flat = values.flat
        inner = _strings(pa, flat) if isinstance(flat, Strings) else pa.array(flat)
        return pa.ListArray.from_arrays(pa.array(values.offsets.astype(np.int32)), inner)
    return _strings(pa, values) if isinstance(values, Strings) else pa.array(values)


def _strings(pa: Any, strings: Strings) -> Any:
    if strings.texts is not None:
        return pa.array([encodable(text) for text in strings.texts.tolist()], type=pa.string())
    values = pa.array([encodable(value) for value in strings.values.tolist()], type=pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(strings.codes), values).cast(pa.string())


#: The start column of tables whose time is the stop: a row belongs to every window it overlaps.
BEGIN = {"tasks": "start_us", "transfers": "start_us"}


def from_parquet(
    name: str,
    data: bytes,
    *,
    window: tuple[int, int] | None = None,
    computation: str | None = None,
    columns: Sequence[str] | None = None,
    check: Callable[[int, int], None] | None = None,
) -> Table:
    """Read a table from its file. With a window or a computation, read only the row groups that may match.

    Rows are not filtered here; the caller selects what it wants. Columns that were not requested are empty. ``check`` is called
    with the rows and bytes that will be read, and may raise an error instead.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    definition = TABLES[name]
    metadata = pq.read_metadata(pa.BufferReader(data))
    # Only those that the file has: pyarrow raises KeyError for others, and files of earlier versions lack columns.
    texts = [c.name for c in definition.columns if c.kind == "str" and c.name != "key"]
    texts = sorted(set(texts) & set(metadata.schema.names))
    file = pq.ParquetFile(pa.BufferReader(data), metadata=metadata, read_dictionary=texts)
    groups = _groups(file, definition, window, computation)
    # Columns that did not exist when the file was written are empty.
    present = set(file.schema_arrow.names) & set(definition.names if columns is None else columns)
    rows = sum(file.metadata.row_group(number).num_rows for number in groups)
    if check is not None:
        check(rows, sum(file.metadata.row_group(number).total_byte_size for number in groups))
    values = {c.name: empty_values(c.kind, rows) for c in definition.columns}
    if rows:
        wanted = [c for c in definition.columns if c.name in present and not _is_zero(file, groups, c)]
        values |= _read(file, groups, wanted, rows)
    pa.default_memory_pool().release_unused()
    return Table(definition, values)


def _read(file: Any, groups: Sequence[int], columns: Sequence[Column], rows: int) -> dict[str, Values]:
    """Return columns of the given row groups."""
    import pyarrow as pa

    types = {c.name: file.schema_arrow.field(c.name).type for c in columns}
    builders = {c.name: column_builder(c.kind, types[c.name], rows) for c in columns}
    # Some row groups at a time, because all columns would be in memory twice. pyarrow decodes as many columns as there are cores.
    for first in range(0, len(groups) if columns else 0, GROUPS_AT_ONCE):
        read = file.read_row_groups(groups[first : first + GROUPS_AT_ONCE], columns=list(builders))
        for name, builder in builders.items():
            column = read.column(name)
            if pa.types.is_dictionary(types[name]):
                column = pa.chunked_array([pa.concat_arrays(column.unify_dictionaries().chunks)])
            for chunk in column.chunks:
                builder.append(chunk)
        del read, column, chunk
    values: dict[str, Values] = {}
    for name in list(builders):
        values[name] = _shared(builders.pop(name).finish(), values)
    return values


def _is_zero(file: Any, groups: Sequence[int], column: Column) -> bool:
    """Return whether a column of numbers is 0 in all rows, according to the statistics: an empty column takes no memory."""
    if column.kind not in ("int", "time"):
        return False
    index = _positions(file)[column.name]
    parts = (file.metadata.row_group(number).column(index).statistics for number in groups)
    return all(p is not None and p.has_min_max and p.min == p.max == 0 and p.null_count == 0 for p in parts)


def _shared(values: Values, others: Mapping[str, Values]) -> Values:
    """Return a column of lists with the offsets of another one if they are equal: the intervals of tasks have four such columns."""
    if isinstance(values, Lists):
        for other in others.values():
            if isinstance(other, Lists) and np.array_equal(other.offsets, values.offsets):
                return Lists(other.offsets, values.flat)
    return values


def _positions(file: Any) -> dict[str, int]:
    """Return the position of each column in the metadata."""
    return {file.metadata.schema.column(i).path: i for i in range(file.metadata.num_columns)}


def _groups(file: Any, definition: TableDef, window: tuple[int, int] | None, computation: str | None) -> list[int]:
    """Return the row groups that the statistics do not rule out."""
    index = _positions(file)
    begin = BEGIN.get(definition.name, definition.time)
    groups = []
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        columns = {name: group.column(position) for name, position in index.items()}
        if window is not None and (
            _outside(columns.get(definition.time), window[0], None) or _outside(columns.get(begin), None, window[1])
        ):
            continue
        if computation is not None and _outside(columns.get("computation"), computation, computation):
            continue
        groups.append(number)
    return groups


def _outside(column: Any, low: Any, high: Any) -> bool:
    """Return whether no value of a column of a row group lies within the limits. An unknown column rules nothing out."""
    statistics = column.statistics if column is not None else None
    if statistics is None or not statistics.has_min_max:
        return False
    return (low is not None and statistics.max < low) or (high is not None and statistics.min > high)


#: Columns with more texts stay packed.
MAX_UNPACKED = 200_000
INT32 = np.iinfo(np.int32)


class ColumnBuilder(Protocol):
    """A column that grows by chunks of Arrow."""

    def append(self, chunk: Any) -> None: ...

    def finish(self) -> Values: ...


def column_builder(kind: str, type_: Any, rows: int) -> ColumnBuilder:
    """Return the builder of a column by its kind and its type in the file."""
    import pyarrow as pa

    if kind.endswith("[]"):
        return _ListBuilder(kind[:-2])
    if kind != "str":
        return _NumberBuilder(np.dtype(type_.to_pandas_dtype()), rows)
    return _CodeBuilder(rows) if pa.types.is_dictionary(type_) else _TextBuilder(rows)


class _NumberBuilder:
    def __init__(self, dtype: np.dtype[Any], rows: int) -> None:
        self.values: Array = np.empty(rows, dtype=dtype)
        self.rows = 0

    def append(self, chunk: Any) -> None:
        self.values[self.rows : self.rows + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
        self.rows += len(chunk)

    def finish(self) -> Values:
        return self.values


class _CodeBuilder:
    """Texts that repeat: codes in as few bits as there are texts."""

    def __init__(self, rows: int) -> None:
        self.codes: Array = np.zeros(rows, dtype=np.int8)
        self.index: dict[str, int] = {}
        self.rows = 0

    def append(self, chunk: Any) -> None:
        places = [self.index.setdefault(text, len(self.index)) for text in chunk.dictionary.to_pylist()]
        if len(self.index) > np.iinfo(self.codes.dtype).max:
            self.codes = narrow(self.codes, len(self.index))
        # A column with a single text is never written to, and takes no memory.
        if any(places):
            codes = np.array(places, dtype=self.codes.dtype)[chunk.indices.to_numpy()]
            self.codes[self.rows : self.rows + len(chunk)] = codes
        self.rows += len(chunk)

    def finish(self) -> Values:
        return Strings(self.codes, object_array(list(self.index)))


class _TextBuilder:
    """Texts that rarely repeat; many of them stay packed."""

    def __init__(self, rows: int) -> None:
        self.data = bytearray()
        self.offsets: Array = np.zeros(rows + 1, dtype=np.int32)
        self.rows = 0

    def append(self, chunk: Any) -> None:
        _, offsets, data = chunk.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
        if len(self.data) + int(bounds[-1] - bounds[0]) > INT32.max and self.offsets.dtype == np.int32:
            self.offsets = self.offsets.astype(np.int64)
        self.offsets[self.rows + 1 : self.rows + len(chunk) + 1] = bounds[1:] - bounds[0] + len(self.data)
        if data is not None:
            self.data += memoryview(data)[bounds[0] : bounds[-1]]
        self.rows += len(chunk)

    def finish(self) -> Values:
        packed = PackedTexts(self.data, self.offsets)
        return Strings.from_texts(packed if self.rows > MAX_UNPACKED else packed.to_numpy())


class _ListBuilder:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.lengths: list[Array] = []
        self.parts: list[Array] = []
        self.index: dict[str, int] = {}

    def append(self, chunk: Any) -> None:
        offsets = chunk.offsets.to_numpy()
        lengths = np.diff(offsets)
        # Four columns of five million lists keep their lengths until the end: 40 MB each in 64 bits.
        self.lengths.append(lengths.astype(np.uint8 if lengths.max(initial=0) < 2**8 else np.int32))
        flat = chunk.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        if self.kind == "str":
            flat = flat.dictionary_encode()
            places = [self.index.setdefault(text, len(self.index)) for text in flat.dictionary.to_pylist()]
            self.parts.append(narrow(np.array(places, dtype=np.int32), len(self.index))[flat.indices.to_numpy()])
        else:
            self.parts.append(flat.to_numpy(zero_copy_only=False))

    def finish(self) -> Values:
        lengths, flat = np.concatenate(self.lengths), np.concatenate(self.parts)
        offsets = np.zeros(len(lengths) + 1, dtype=np.int32 if len(flat) <= INT32.max else np.int64)
        np.cumsum(lengths, dtype=offsets.dtype, out=offsets[1:])
        if self.kind != "str":
            return Lists(offsets, flat)
        texts = Strings(flat, object_array(list(self.index)))
        return Lists(offsets, texts if len(flat) > MAX_UNPACKED else Strings.from_texts(texts.to_numpy()))

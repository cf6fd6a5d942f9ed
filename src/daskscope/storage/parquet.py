"""Tables as Parquet files and back: how finished runs are stored.

Times stay integer microseconds, as in a recording; DuckDB, pandas and Dask can read the files. Sorted, with delta
encodings and plain strings, a task takes 18 bytes. With dictionary arrays it takes 27, because pyarrow then writes the
whole dictionary into every row group.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from daskscope.analysis.limits import encodable
from daskscope.model.columns import TableDef
from daskscope.model.packed_texts import PackedTexts
from daskscope.model.table import Array, Lists, Strings, Table, Values, empty_values, object_array
from daskscope.model.tables import TABLES

ROW_GROUP = 20_000
LEVEL = 3
#: Columns with more texts stay packed.
MAX_UNPACKED = 200_000
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
) -> Table:
    """Read a table from its file. With a window or a computation, read only the row groups that may match.

    Rows are not filtered here; the caller selects what it wants. Columns that were not requested are empty.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    definition = TABLES[name]
    texts = [c.name for c in definition.columns if c.kind == "str" and c.name != "key"]
    file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts)
    groups = _groups(file, definition, window, computation)
    # Columns that did not exist when the file was written are empty.
    present = set(file.schema_arrow.names) & set(definition.names if columns is None else columns)
    rows = sum(file.metadata.row_group(number).num_rows for number in groups)
    values: dict[str, Values] = {}
    for column in definition.columns:
        if column.name not in present or not rows:
            values[column.name] = empty_values(column.kind, rows)
            continue
        # One at a time: all of them would be in memory twice, which is 170 MB for a million tasks.
        read = file.read_row_groups(groups, columns=[column.name])
        values[column.name] = _shared(_values(read.column(0), column.kind), values)
        del read
    pa.default_memory_pool().release_unused()
    return Table(definition, values)


def _shared(values: Values, others: Mapping[str, Values]) -> Values:
    """Return a column of lists with the offsets of another one if they are equal: the intervals of tasks have four such columns."""
    if isinstance(values, Lists):
        for other in others.values():
            if isinstance(other, Lists) and np.array_equal(other.offsets, values.offsets):
                return Lists(other.offsets, values.flat)
    return values


def _groups(file: Any, definition: TableDef, window: tuple[int, int] | None, computation: str | None) -> list[int]:
    """Return the row groups that the statistics do not rule out."""
    index = {file.metadata.schema.column(i).path: i for i in range(file.metadata.num_columns)}
    begin = BEGIN.get(definition.name, definition.time)
    groups = []
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        if window is not None and (
            _outside(group.column(index[definition.time]), window[0], None)
            or _outside(group.column(index[begin]), None, window[1])
        ):
            continue
        if computation is not None and "computation" in index:
            column = group.column(index["computation"])
            if _outside(column, computation, computation):
                continue
        groups.append(number)
    return groups


def _outside(column: Any, low: Any, high: Any) -> bool:
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max:
        return False
    return (low is not None and statistics.max < low) or (high is not None and statistics.min > high)


def _values(column: Any, kind: str) -> Values:
    array = column.combine_chunks()
    if kind.endswith("[]"):
        offsets = array.offsets.to_numpy().astype(np.int64)
        flat = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        inner = _texts(flat) if kind == "str[]" else flat.to_numpy(zero_copy_only=False)
        return Lists(offsets - offsets[0], inner)
    if kind == "str":
        return _texts(array)
    numbers: Array = array.to_numpy(zero_copy_only=False)
    return numbers


def _texts(array: Any) -> Strings:
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.unify_dictionaries().chunks)
    if isinstance(array, pa.DictionaryArray):
        return Strings(array.indices.to_numpy().astype(np.int32), object_array(array.dictionary.to_pylist()))
    if len(array) > MAX_UNPACKED:
        return Strings.from_texts(_packed(array))
    texts: Array = array.to_numpy(zero_copy_only=False)
    return Strings.from_texts(texts)


def _packed(array: Any) -> PackedTexts:
    """Return a column of texts without a Python string for each."""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    return PackedTexts(data.to_pybytes(), bounds.copy())

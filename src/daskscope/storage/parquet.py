"""Tables as Parquet and back: what a finished run is kept as.

Times stay integer microseconds, as in a recording; DuckDB, pandas and Dask read the files without us. Sorted, with delta
encodings and plain strings, a task takes 18 bytes; with dictionary arrays handed to the writer it is 27, because pyarrow then
writes the whole dictionary into every row group.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from daskscope.model.table import Array, Lists, Strings, Table, Values, empty_values, object_array
from daskscope.model.tables import TABLES, TableDef

ROW_GROUP = 20_000
LEVEL = 3
#: How rows of a table are ordered, so that neighbours are alike and a window of time is few row groups.
ORDER = {
    "tasks": ("computation", "start_us"),
    "samples": ("time_us",),
    "profiles": ("start_us",),
    "transfers": ("stop_us",),
}


def to_parquet(table: Table) -> bytes:
    """A table as a Parquet file."""
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
        return pa.array([_encodable(text) for text in strings.texts.tolist()], type=pa.string())
    values = pa.array([_encodable(value) for value in strings.values.tolist()], type=pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(strings.codes), values).cast(pa.string())


def _encodable(text: str) -> str:
    """Parquet is UTF-8, which has no lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


#: The column in which a row begins, where its time is when it ended: a row belongs to every window it overlaps.
BEGIN = {"tasks": "start_us", "transfers": "start_us"}


def from_parquet(
    name: str,
    data: bytes,
    *,
    window: tuple[int, int] | None = None,
    computation: str | None = None,
    columns: Sequence[str] | None = None,
) -> Table:
    """A table from its file; with a window or a computation only the row groups that may have rows of it.

    The rows are not filtered here: a caller selects exactly what it wants. Columns that are not asked for are empty.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    definition = TABLES[name]
    texts = [c.name for c in definition.columns if c.kind == "str" and c.name != "key"]
    file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts)
    groups = _groups(file, definition, window, computation)
    wanted = None if columns is None else [n for n in columns if n in file.schema_arrow.names]
    read = file.read_row_groups(groups, columns=wanted)
    present = set(read.column_names)
    rows = read.num_rows
    values: dict[str, Values] = {}
    for column in definition.columns:
        # What was not known when the file was written.
        known = column.name in present and rows
        values[column.name] = (
            _values(read.column(column.name), column.kind) if known else empty_values(column.kind, rows)
        )
    return Table(definition, values)


def _groups(file: Any, definition: TableDef, window: tuple[int, int] | None, computation: str | None) -> list[int]:
    """Row groups whose statistics do not rule them out."""
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
    texts: Array = array.to_numpy(zero_copy_only=False)
    return Strings.from_texts(texts)

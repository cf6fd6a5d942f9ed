"""Build the columns of a table from chunks of a Parquet file, without a second copy of any column."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from daskscope.analysis.grouping import narrow
from daskscope.model.packed_texts import PackedTexts
from daskscope.model.table import Array, Lists, Strings, Values, object_array

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

"""Decode the columns of a body: one method per encoding, each checking its input first."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NoReturn, Protocol, cast

import numpy as np

from daskscope.errors import WireError
from daskscope.model.recording import Array, Lists, Strings, Values, empty_values, object_array
from daskscope.model.untrusted import check_depth
from daskscope.wire.encode_keys import HEX, MAX_INTEGERS, TEXT, TUPLE
from daskscope.wire.layout import MAX_ITEMS, MAX_NAME, MAX_NAMES, MAX_VALUES, count_items


class Reader(Protocol):
    def read_bytes(self, size: int) -> memoryview: ...
    def read_plain(self, size: int) -> memoryview: ...
    def planes(self, mask: int, rows: int) -> Array: ...
    def strings(self, size: int) -> list[str]: ...


def decode_keys(reader: Reader, spec: list[Any], groups: Any, rows: int) -> Strings:
    """Return the keys as text; ``groups`` is the decoded group column of the same batch."""
    _, shapes_size, parts = _checked_parts(spec, groups, rows)
    if len(parts) == 1:
        return Strings.of(_part(reader, parts[0], groups.codes, groups.values))
    return _mixed(reader, parts, groups, np.frombuffer(reader.read_bytes(shapes_size), dtype=np.uint8))


def skip_keys(reader: Reader, spec: list[Any], groups: Any, rows: int) -> None:
    """Skip the bytes of a key column."""
    _, shapes_size, parts = _checked_parts(spec, groups, rows)
    if len(parts) == 1:
        _skip_part(reader, parts[0], rows)
        return
    shapes = np.frombuffer(reader.read_bytes(shapes_size), dtype=np.uint8)
    counts = np.bincount(shapes, minlength=256)
    _check_shapes(parts, shapes)
    for part in parts:
        _skip_part(reader, part, int(counts[part[0]]))


def _skip_part(reader: Reader, part: list[Any], rows: int) -> None:
    shape, *spec = part
    if shape == TEXT:
        reader.read_bytes(spec[0])
    elif shape == HEX:
        reader.read_plain(16 * rows)
    else:
        for mask in _integer_masks(shape, spec):
            reader.read_bytes(rows * mask.bit_count())


def _checked_parts(spec: list[Any], groups: Any, rows: int) -> tuple[Any, int, list[Any]]:
    if not isinstance(groups, Strings) or len(groups) != rows:
        raise WireError("keys are encoded without their groups")
    encoding, shapes_size, parts = spec
    if not isinstance(parts, list) or not parts:
        raise WireError("a key column has no parts")
    if len(parts) > 1 and shapes_size != rows:
        raise WireError("a key column's shapes do not match its rows")
    return encoding, shapes_size, parts


def _check_shapes(parts: list[Any], shapes: Array) -> None:
    names = [part[0] for part in parts]
    if any(type(shape) is not int for shape in names) or sorted(names) != np.unique(shapes).tolist():
        raise WireError("a key column has rows without a shape")


def _integer_masks(shape: Any, spec: list[Any]) -> list[int]:
    if type(shape) is not int or not TUPLE < shape <= TUPLE + MAX_INTEGERS or len(spec) != shape - TUPLE:
        raise WireError("a key column has an unknown shape")
    if any(type(mask) is not int or not 0 <= mask <= 255 for mask in spec):
        raise WireError("a key column has a byte-plane mask out of range")
    return spec


def _mixed(reader: Reader, parts: list[Any], groups: Strings, shapes: Array) -> Strings:
    _check_shapes(parts, shapes)
    keys = np.empty(len(shapes), dtype=object)
    for part in parts:
        rows = np.flatnonzero(shapes == part[0])
        keys[rows] = object_array(_part(reader, part, groups.codes[rows], groups.values))
    return Strings.from_texts(keys)


def _part(reader: Reader, part: list[Any], codes: Array, groups: Array) -> list[str]:
    shape, *spec = part
    if shape == TEXT:
        return _texts(reader, spec, len(codes))
    if shape == HEX:
        return _hashes(reader, spec, _per_row(codes, _checked_names(codes, groups)))
    masks = _integer_masks(shape, spec)
    # Quoting the name once per group instead of once per row halves the time.
    heads = _per_row(codes, [f"({name!r}, " for name in _checked_names(codes, groups)])
    columns = [map(str, reader.planes(mask, len(codes)).tolist()) for mask in masks]
    tails = columns[0] if len(columns) == 1 else map(", ".join, zip(*columns, strict=True))
    return [f"{head}{tail})" for head, tail in zip(heads, tails, strict=True)]


def _texts(reader: Reader, spec: list[Any], rows: int) -> list[str]:
    texts = reader.strings(spec[0])
    if len(texts) != rows:
        raise WireError("a key column lacks keys")
    return texts


def _hashes(reader: Reader, spec: list[Any], names: list[str]) -> list[str]:
    if spec[0] != 16 * len(names):
        raise WireError("a key column's hashes do not match its rows")
    digits = reader.read_plain(spec[0]).hex()
    return [f"{name}-{digits[32 * i : 32 * i + 32]}" for i, name in enumerate(names)]


def _checked_names(codes: Array, groups: Array) -> list[str]:
    """Return the groups' names; those that no row uses are empty."""
    names = [""] * len(groups)
    for code in np.unique(codes).tolist():
        names[code] = groups[code]
        if len(names[code]) > MAX_NAME:
            raise WireError("a key column is put together from a name longer than allowed")
    return names


def _per_row(codes: Array, names: list[str]) -> list[str]:
    """Return one name per row, after checking the total length: one long name times many rows could exhaust the memory."""
    lengths = np.fromiter(map(len, names), dtype=np.int64, count=len(names))
    if int(lengths[codes].sum()) > MAX_NAMES:
        raise WireError("a key column is put together from more text than allowed")
    rows: list[str] = object_array(names)[codes].tolist()
    return rows


INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class ColumnReader:
    """A cursor over the decompressed and the plain part of a body."""

    def __init__(self, packed: memoryview, plain: memoryview, rows: int) -> None:
        self.packed = packed
        self.plain = plain
        self.rows = rows
        self.items = 0
        #: A short text cannot have too many values.
        self._counts_items = len(packed) > MAX_ITEMS
        #: Where the next column begins in the decompressed part.
        self._at = 0

    def read_bytes(self, size: int) -> memoryview:
        at = self._at
        self.skip_bytes(size)
        return self.packed[at : at + size]

    def skip_bytes(self, size: int) -> None:
        if type(size) is not int or not 0 <= size <= len(self.packed) - self._at:
            raise WireError("a frame's columns are longer than its body")
        self._at += size

    def read_plain(self, size: int) -> memoryview:
        if type(size) is not int or not 0 <= size <= len(self.plain):
            raise WireError("a frame's plain columns are longer than its body")
        data, self.plain = self.plain[:size], self.plain[size:]
        return data

    def check_finished(self) -> None:
        if len(self.packed) != self._at or len(self.plain):
            raise WireError("a frame's body has bytes that belong to no column")

    def planes(self, mask: int, rows: int) -> Array:
        check_mask(mask)
        if mask == 1:
            return np.frombuffer(self.read_bytes(rows), dtype=np.uint8).astype(np.int64)
        # Combine the planes in the narrowest integer that holds them: most columns have two planes of eight.
        width = 2 if mask < 1 << 2 else 4 if mask < 1 << 4 else 8
        cells = np.zeros((rows, width), dtype=np.uint8)
        for k in range(width):
            if mask >> k & 1:
                cells[:, k] = np.frombuffer(self.read_bytes(rows), dtype=np.uint8)
        whole = cells.view("<i8" if width == 8 else f"<u{width}").reshape(rows)
        return whole if width == 8 else whole.astype(np.int64)

    def strings(self, size: int) -> list[str]:
        """Read a JSON array of strings; it may contain values that no row uses."""
        data = self.read_bytes(size)
        if self._counts_items:
            self.items += count_items(bytes(data))
            if self.items > MAX_ITEMS:
                raise WireError("a frame's string dictionaries hold more values than allowed")
        values = parse_json(data)
        if not isinstance(values, list) or not set(map(type, values)) <= {str}:
            raise WireError("a string dictionary is malformed")
        return values

    def column(self, kind: str, spec: list[Any], done: Mapping[str, Values]) -> Values:
        if kind.endswith("[]"):
            return self._lists(kind[:-2], spec, done)
        return self._scalars(kind, spec, self.rows, done)

    def _lists(self, kind: str, spec: list[Any], done: Mapping[str, Values]) -> Lists:
        marker, lengths_spec, count, inner = spec
        offsets = self.offsets(marker, lengths_spec, count)
        flats = {name: values.flat for name, values in done.items() if isinstance(values, Lists)}
        return Lists(offsets, self._scalars(kind, inner, count, flats) if count else _empty(kind))

    def offsets(self, marker: Any, lengths_spec: list[Any], count: Any) -> Array:
        """Read the offsets of a list column with ``count`` values."""
        if marker != "list" or type(count) is not int or not 0 <= count <= MAX_VALUES:
            raise WireError("a list column is malformed")
        lengths = self._scalars("int", lengths_spec, self.rows, {})
        assert isinstance(lengths, np.ndarray)
        if int(lengths.min()) < 0 or int(lengths.max()) > count:
            raise WireError("a list column has impossible lengths")
        offsets = np.zeros(self.rows + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        if int(offsets[-1]) != count:
            raise WireError("a list column's lengths do not add up")
        return offsets

    def _scalars(self, kind: str, spec: list[Any], rows: int, done: Mapping[str, Any]) -> Array | Strings:
        encoding = spec[0]
        if kind == "str":
            return self._strings(encoding, spec, rows, done)
        if encoding == "const":
            return _constant(kind, spec[1], rows)
        if encoding == "float" and kind == "float":
            floats: Array = self.planes(spec[1], rows).view("<f8")
            return floats
        if kind != "float":
            return self._integers(encoding, spec, rows, done)
        raise unknown(encoding)

    def _integers(self, encoding: Any, spec: list[Any], rows: int, done: Mapping[str, Any]) -> Array:
        if encoding == "int":
            return self.planes(spec[1], rows)
        if encoding == "delta":
            return self._delta(spec, rows)
        if encoding == "gap":
            return self._gap(spec, rows, done)
        if encoding == "codes":
            return self._coded(spec, rows)
        raise unknown(encoding)

    def _coded(self, spec: list[Any], rows: int) -> Array:
        _, count, values_mask, codes_mask = spec
        if type(count) is not int or not 0 < count <= MAX_VALUES:
            raise WireError("a column of coded integers is malformed")
        values = self.planes(values_mask, count)
        coded: Array = values[checked_codes(self.planes(codes_mask, rows), count)]
        return coded

    def _delta(self, spec: list[Any], rows: int) -> Array:
        _, first, least, mask = spec
        if not is_int64(first) or not is_int64(least):
            raise WireError("a delta-coded column does not begin with an integer")
        deltas = self.planes(mask, rows)
        deltas += np.int64(least)
        deltas[0] = first
        # A sum beyond 64 bits wraps around, as it does in the writer.
        values: Array = np.cumsum(deltas)
        return values

    def _gap(self, spec: list[Any], rows: int, done: Mapping[str, Any]) -> Array:
        _, other, sign, mask = spec
        base = done[other]
        if not isinstance(base, np.ndarray) or len(base) != rows or base.dtype != np.int64:
            raise WireError("a gap-coded column refers to a column it cannot be based on")
        if type(sign) is not int or sign not in (1, -1):
            raise WireError(f"a gap-coded column has {brief(sign)} as its sign")
        gaps = self.planes(mask, rows)
        values: Array = base + gaps if sign == 1 else base - gaps
        return values

    def _strings(self, encoding: Any, spec: list[Any], rows: int, done: Mapping[str, Any]) -> Strings:
        if encoding == "const":
            if type(spec[1]) is not str:
                raise WireError("a constant string is not a string")
            return Strings(np.zeros(rows, dtype=np.int32), object_array([spec[1]]))
        if encoding == "dict":
            values = object_array(self.strings(spec[1]))
            return Strings(checked_codes(self.planes(spec[2], rows), len(values)), values)
        if encoding == "via":
            return self._via(spec, rows, done)
        if encoding == "runs":
            return self._runs(spec, rows)
        if encoding == "keys":
            return self.keys(spec, done["group"], rows)
        raise unknown(encoding)

    def keys(self, spec: list[Any], groups: Any, rows: int) -> Strings:
        return decode_keys(self, spec, groups, rows)

    def _via(self, spec: list[Any], rows: int, done: Mapping[str, Any]) -> Strings:
        _, other, size = spec
        base, values = done[other], object_array(self.strings(size))
        if not isinstance(base, Strings) or len(base) != rows or len(values) != len(base.values):
            raise WireError("a column refers to a column it cannot be derived from")
        return Strings(base.codes, values)

    def _runs(self, spec: list[Any], rows: int) -> Strings:
        _, starts, size = spec
        values = object_array(self.strings(size))
        edges = checked_edges(starts, len(values), rows)
        return Strings(np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(edges)), values)


class KeylessReader(ColumnReader):
    """Skips the text of keys, the most expensive column, for sums over task rows that do not need it.

    The number of their bytes is still checked; their content is checked when the keys are read.
    """

    def keys(self, spec: list[Any], groups: Any, rows: int) -> Strings:
        skip_keys(self, spec, groups, rows)
        return Strings(np.zeros(rows, dtype=np.int32), object_array([""]))


def parse_json(data: bytes | memoryview) -> Any:
    """Parse standard JSON: UTF-8, no NaN, no infinities."""
    try:
        text = str(data, "utf-8")
        check_depth(text)
        return _JSON.decode(text)
    except ValueError as error:
        raise WireError(f"malformed JSON in a frame ({type(error).__name__})") from None


def is_int64(value: Any) -> bool:
    """Return whether a value from JSON is an integer (not a boolean) that a column can hold."""
    return type(value) is int and INT64_MIN <= value <= INT64_MAX


def brief(value: Any) -> str:
    """Return a short text of a hostile value for an error message, without iterating over it."""
    if type(value) is str:
        return repr(value[:40])
    return str(value) if is_int64(value) else f"a {type(value).__name__}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


#: Made once: ``json.loads`` makes a decoder per call if constants are refused.
_JSON = json.JSONDecoder(parse_constant=_no_constant)


def unknown(encoding: Any) -> WireError:
    return WireError(f"a column is encoded as {brief(encoding)}, which does not fit it")


def check_mask(mask: Any) -> None:
    if type(mask) is not int or not 0 <= mask <= 255:
        raise WireError(f"byte-plane mask {brief(mask)} is out of range")


def checked_edges(starts: Any, count: int, rows: int) -> list[int]:
    """Return where each of ``count`` runs begins, and the number of rows."""
    if not isinstance(starts, list) or len(starts) != count or not starts or starts[0] != 0:
        raise WireError("a column's runs are malformed")
    edges = [*starts, rows]
    if any(type(e) is not int for e in edges) or any(a >= b for a, b in pairwise(edges)):
        raise WireError("a column's runs are out of order")
    return edges


def checked_codes(codes: Array, count: int) -> Array:
    if len(codes) and (int(codes.min()) < 0 or int(codes.max()) >= count):
        raise WireError("a string column has codes without a value")
    return codes.astype(np.int32)


def _constant(kind: str, value: Any, rows: int) -> Array:
    return np.full(rows, checked_constant(kind, value), dtype=np.float64 if kind == "float" else np.int64)


def checked_constant(kind: str, value: Any) -> float | int:
    if kind == "float":
        if type(value) not in (int, float):
            raise WireError("a constant float is not a number")
        return float(value)
    if not is_int64(value):
        raise WireError("a constant integer is out of range")
    return int(value)


def _empty(kind: str) -> Array | Strings:
    values = empty_values(kind, 0)
    assert not isinstance(values, Lists)
    return values


class Inflate(Protocol):
    """The common interface of the zlib and isal decompressors."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: memoryview, max_length: int, /) -> bytes: ...


try:
    from isal import isal_zlib
except ImportError:  # pragma: no cover (the tests have it)
    InflateError: tuple[type[Exception], ...] = (zlib.error,)

    def inflater() -> Inflate:
        return zlib.decompressobj()

else:
    # Its type stub declares the class as an instance.
    InflateError = (zlib.error, cast("type[Exception]", isal_zlib.IsalError))

    def inflater() -> Inflate:
        return isal_zlib.decompressobj()

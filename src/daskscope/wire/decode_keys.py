"""Decode task keys, the counterpart of ``encode_keys``."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from daskscope.errors import WireError
from daskscope.model.table import Array, Strings, object_array
from daskscope.wire.encode_keys import HEX, MAX_INTEGERS, TEXT, TUPLE
from daskscope.wire.layout import MAX_NAME, MAX_NAMES


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

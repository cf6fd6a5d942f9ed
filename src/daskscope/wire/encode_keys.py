"""Encode task keys of a batch by their shapes. They are the most expensive column.

A key is usually its group's name plus something small: ``('sum-3f…', 4, 0)`` is the group and two integers, ``inc-<32 hex>`` the
group and 16 bytes. Rows are split by these shapes, and the reader rebuilds the text byte for byte:

- ``TUPLE + n``: a tuple of the group's name and n integers: n integer columns
- ``HEX``: the group's name, a dash and 32 lower-case hex digits: 16 bytes beside the zlib stream, which need no compression
- ``TEXT``: anything else, in full

A batch of one shape is checked as a whole by a few C-level calls (0.15 µs per key); only batches of mixed shapes are checked key
by key in Python (0.5 µs per key).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .layout import MAX_NAME

if TYPE_CHECKING:
    from .encode import BodyWriter

TEXT = 0
HEX = 1
#: Shapes above this are tuples; the number of integers is the shape minus this.
TUPLE = 16
#: Longer tuples are rare and are stored as text.
MAX_INTEGERS = 8


def encode_keys(writer: BodyWriter, keys: Sequence[Any], groups: Sequence[str]) -> list[Any]:
    """Encode keys (strings and tuples); ``groups`` has the name of each key's group."""
    names = list(groups)
    if max(map(len, set(names))) > MAX_NAME:
        # Readers build no keys from names this long, which do not occur in practice.
        return ["keys", 0, [[TEXT, *_texts(writer, keys)]]]
    lengths = [len(key) if type(key) is tuple else 0 for key in keys]
    if lengths.count(lengths[0]) == len(lengths):
        whole = _encode_whole(keys, names, lengths[0])
        if whole is not None:
            return ["keys", 0, [[whole.shape, *whole.write(writer)]]]
    return _mixed(writer, keys, names, lengths)


def _mixed(writer: BodyWriter, keys: Sequence[Any], names: list[str], lengths: list[int]) -> list[Any]:
    """Encode keys of several shapes: try all keys of one length as a whole first, then check the rest key by key."""
    shapes = bytearray(len(keys))
    parts: dict[int, Hexes | Tuples] = {}
    for length in set(lengths):
        rows = [row for row, n in enumerate(lengths) if n == length]
        part_keys, part_names = [keys[row] for row in rows], [names[row] for row in rows]
        whole = _encode_whole(part_keys, part_names, length)
        if whole is None:
            chosen = [(row, _shape(key, name)) for row, key, name in zip(rows, part_keys, part_names)]
        else:
            parts[whole.shape] = whole
            chosen = [(row, whole.shape) for row in rows]
        for row, shape in chosen:
            shapes[row] = shape
    distinct = sorted(set(shapes))
    size = writer.pack(bytes(shapes)) if len(distinct) > 1 else 0
    return ["keys", size, [[shape, *_part(writer, shape, parts, keys, shapes)] for shape in distinct]]


def _part(
    writer: BodyWriter, shape: int, parts: dict[int, Hexes | Tuples], keys: Sequence[Any], shapes: bytearray
) -> list[Any]:
    whole = parts.get(shape)
    if whole is None:
        part_keys = [key for key, s in zip(keys, shapes) if s == shape]
        if shape == TEXT:
            return _texts(writer, part_keys)
        whole = (
            Hexes(bytes.fromhex("".join([key[-32:] for key in part_keys])))
            if shape == HEX
            else Tuples(_columns(part_keys))
        )
    return whole.write(writer)


@dataclass(frozen=True)
class Hexes:
    """Keys made of their group's name, a dash and a hash."""

    hashes: bytes
    shape: int = HEX

    def write(self, writer: BodyWriter) -> list[Any]:
        return [writer.store(self.hashes)]


@dataclass(frozen=True)
class Tuples:
    """Keys made of their group's name and integers, as columns of integers."""

    columns: list[array[int] | bytes]

    @property
    def shape(self) -> int:
        return TUPLE + len(self.columns)

    def write(self, writer: BodyWriter) -> list[Any]:
        return [writer.planes(column) for column in self.columns]


def _encode_whole(keys: Sequence[Any], names: list[str], length: int) -> Hexes | Tuples | None:
    """Return keys of one length as one shape, or None if they must be checked one by one."""
    if length == 0:
        return _encode_hexes(keys, names)
    if not 1 < length <= MAX_INTEGERS + 1:
        return None
    head, *columns = zip(*keys)
    if list(head) != names or any(set(map(type, column)) != {int} for column in columns):
        return None
    try:
        return Tuples(_columns(keys))
    except OverflowError:
        return None


def _encode_hexes(keys: Sequence[Any], names: list[str]) -> Hexes | None:
    try:
        tails = "".join([key[-32:] for key in keys])
        hashes = bytes.fromhex(tails)
        heads = [key[:-32] for key in keys]
    except (TypeError, ValueError):
        return None
    # fromhex also accepts blanks and capitals, which would decode to another text.
    same = len(hashes) == 16 * len(keys) and hashes.hex() == tails and heads == [name + "-" for name in names]
    return Hexes(hashes) if same else None


def _columns(keys: Sequence[Any]) -> list[array[int] | bytes]:
    _, *columns = zip(*keys)
    return [smallest(column) for column in columns]


def smallest(values: Sequence[int]) -> array[int] | bytes:
    """Store integers in one byte each if they fit, as most chunk numbers do, else in eight; raise OverflowError beyond that."""
    try:
        return bytes(values)
    except ValueError:
        return array("q", values)


def _shape(key: Any, name: str) -> int:
    if type(key) is str:
        tail = key[-32:]
        return HEX if key == f"{name}-{tail}" and len(tail) == 32 and _is_hex(tail) else TEXT
    plain = type(key) is tuple and 1 < len(key) <= MAX_INTEGERS + 1 and key[0] == name
    return TUPLE + len(key) - 1 if plain and all(type(item) is int and _fits(item) for item in key[1:]) else TEXT


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _is_hex(text: str) -> bool:
    try:
        return bytes.fromhex(text).hex() == text
    except ValueError:
        return False


def _texts(writer: BodyWriter, keys: Sequence[Any]) -> list[Any]:
    return [writer.pack_strings([key if type(key) is str else str(key) for key in keys])]

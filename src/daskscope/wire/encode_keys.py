"""Task keys to bytes: the most expensive column, taken apart.

A key is usually its group's name plus something small: ``('sum-3f…', 4, 0)`` is the group and two integers, ``inc-<32 hex>`` the
group and 16 bytes. Rows are split into these shapes; the reader puts the text together again, byte for byte:

- ``TUPLE + n``: a tuple of the group's name and n integers: n integer columns
- ``HEX``: the group's name, a dash and 32 lower-case hex digits: 16 bytes beside the zlib stream, where they cost nothing
- ``TEXT``: anything else, in full

A whole batch of one shape is checked by a handful of C-level calls (0.15 µs a key); looking at each key in Python
(0.5 µs) is left to batches that mix shapes.
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
#: Longer tuples are rare and go through as text.
MAX_INTEGERS = 8


def encode_keys(writer: BodyWriter, keys: Sequence[Any], groups: Sequence[str]) -> list[Any]:
    """Encode keys (strings and tuples); ``groups`` has the name of each key's group."""
    names = list(groups)
    if max(map(len, set(names))) > MAX_NAME:
        # A reader puts no text together from a name this long; nobody has such names.
        return ["keys", 0, [[TEXT, *_texts(writer, keys)]]]
    lengths = [len(key) if type(key) is tuple else 0 for key in keys]
    if lengths.count(lengths[0]) == len(lengths):
        whole = _whole(keys, names, lengths[0])
        if whole is not None:
            return ["keys", 0, [[whole.shape, *whole.write(writer)]]]
    return _mixed(writer, keys, names, lengths)


def _mixed(writer: BodyWriter, keys: Sequence[Any], names: list[str], lengths: list[int]) -> list[Any]:
    """Keys of several shapes: each length is tried as a whole first, the rest is looked at key by key."""
    shapes = bytearray(len(keys))
    parts: dict[int, Hexes | Tuples] = {}
    for length in set(lengths):
        rows = [row for row, n in enumerate(lengths) if n == length]
        mine, named = [keys[row] for row in rows], [names[row] for row in rows]
        whole = _whole(mine, named, length)
        if whole is None:
            chosen = [(row, _shape(key, name)) for row, key, name in zip(rows, mine, named)]
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
        mine = [key for key, s in zip(keys, shapes) if s == shape]
        if shape == TEXT:
            return _texts(writer, mine)
        whole = Hexes(bytes.fromhex("".join([key[-32:] for key in mine]))) if shape == HEX else Tuples(_columns(mine))
    return whole.write(writer)


@dataclass(frozen=True)
class Hexes:
    """Keys that are their group's name, a dash and a hash."""

    hashes: bytes
    shape: int = HEX

    def write(self, writer: BodyWriter) -> list[Any]:
        return [writer.store(self.hashes)]


@dataclass(frozen=True)
class Tuples:
    """Keys that are their group's name and integers, as columns of integers."""

    columns: list[array[int] | bytes]

    @property
    def shape(self) -> int:
        return TUPLE + len(self.columns)

    def write(self, writer: BodyWriter) -> list[Any]:
        return [writer.planes(column) for column in self.columns]


def _whole(keys: Sequence[Any], names: list[str], length: int) -> Hexes | Tuples | None:
    """Keys of one length as one shape, or None where they have to be looked at one by one."""
    if length == 0:
        return _whole_hexes(keys, names)
    if not 1 < length <= MAX_INTEGERS + 1:
        return None
    head, *columns = zip(*keys)
    if list(head) != names or any(set(map(type, column)) != {int} for column in columns):
        return None
    try:
        return Tuples(_columns(keys))
    except OverflowError:
        return None


def _whole_hexes(keys: Sequence[Any], names: list[str]) -> Hexes | None:
    try:
        tails = "".join([key[-32:] for key in keys])
        hashes = bytes.fromhex(tails)
        heads = [key[:-32] for key in keys]
    except (TypeError, ValueError):
        return None
    # fromhex also takes blanks and capitals, which would come back as something else.
    same = len(hashes) == 16 * len(keys) and hashes.hex() == tails and heads == [name + "-" for name in names]
    return Hexes(hashes) if same else None


def _columns(keys: Sequence[Any]) -> list[array[int] | bytes]:
    _, *columns = zip(*keys)
    return [smallest(column) for column in columns]


def smallest(values: Sequence[int]) -> array[int] | bytes:
    """Integers in one byte each where they fit, which most chunk numbers do, else in eight; raises OverflowError beyond."""
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

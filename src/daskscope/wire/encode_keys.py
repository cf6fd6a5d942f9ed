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
    # A reader puts no text together from a name this long; nobody has such names.
    shapes = _shapes(keys, names) if max(map(len, names)) <= MAX_NAME else bytes(len(keys))
    distinct = sorted(set(shapes))
    shapes_size = writer.pack(bytes(shapes)) if len(distinct) > 1 else 0
    parts = []
    for shape in distinct:
        chosen = keys if len(distinct) == 1 else [key for key, s in zip(keys, shapes) if s == shape]
        parts.append([shape, *_part(writer, shape, chosen)])
    return ["keys", shapes_size, parts]


def _shapes(keys: Sequence[Any], names: list[str]) -> Sequence[int]:
    lengths = [len(key) if type(key) is tuple else 0 for key in keys]
    if lengths.count(lengths[0]) == len(lengths):
        shape = _common_shape(keys, names, lengths[0])
        if shape is not None:
            return bytes([shape]) * len(keys)
    return bytes(map(_shape, keys, names))


def _common_shape(keys: Sequence[Any], names: list[str], length: int) -> int | None:
    """The shape of the whole batch, or None where its keys have to be looked at one by one."""
    if length == 0:
        try:
            tails = "".join([key[-32:] for key in keys])
            heads = [key[:-32] for key in keys]
            raw = bytes.fromhex(tails)
        except (TypeError, ValueError):
            return None
        same = len(raw) == 16 * len(keys) and raw.hex() == tails and heads == [name + "-" for name in names]
        return HEX if same else None
    if not 1 < length <= MAX_INTEGERS + 1:
        return None
    head, *columns = zip(*keys)
    if list(head) != names or any(set(map(type, column)) != {int} for column in columns):
        return None
    if any(not _fits(min(column)) or not _fits(max(column)) for column in columns):
        return None
    return TUPLE + length - 1


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


def _part(writer: BodyWriter, shape: int, keys: Sequence[Any]) -> list[Any]:
    if shape == HEX:
        return [writer.store(bytes.fromhex("".join([key[-32:] for key in keys])))]
    if shape == TEXT:
        text = [key if type(key) is str else str(key) for key in keys]
        return [writer.pack_strings(text)]
    _, *columns = zip(*keys)
    return [writer.planes(array("q", column)) for column in columns]

"""Encode the task keys of a report: each distinct template once, and the numbers in it as columns.

Keys of array chunks and dataframe partitions look like ``('sum-1f3a', 12, 0)``. Two numbers take two bytes; the whole text
would take three to four even compressed. Other keys, such as a hash for each task, are stored as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from daskscope.model.table import Array
from daskscope.report.blocks import Blocks
from daskscope.report.schema import Block

GAP = "\0"
MAX_NUMBERS = 4
MAX_DIGITS = 9

#: Marks a number in the bytes of keys; this byte never occurs in UTF-8.
_GAP = 0xFF
#: Letters, digits, the underscore and non-ASCII bytes: a number next to one of them is part of a name.
_WORD = np.array([code >= 128 or chr(code).isalnum() or chr(code) == "_" for code in range(256)])
_NOT_BEFORE, _NOT_AFTER = _WORD.copy(), _WORD.copy()
_NOT_BEFORE[[ord("."), ord("-")]] = True
_NOT_AFTER[ord(".")] = True
_DIGIT, _FREE, _NAME = 1, 0, 2
#: Classes of bytes: digits, bytes after which a number may begin, and others. For ``bytes.translate``, which is faster than
#: numpy.
_CLASSES = bytes(_DIGIT if chr(code) in "0123456789" else _NAME if _NOT_BEFORE[code] else _FREE for code in range(256))


@dataclass(frozen=True)
class _Numbers:
    """Whole numbers in keys that are not part of a name and have no leading zero, which would be lost."""

    #: Position in the bytes of all keys, number of digits, and value.
    at: Array
    digits: Array
    values: Array


def keys(texts: Array, prefixes: Array, blocks: Blocks) -> tuple[list[str], dict[str, Block]]:
    """Return the templates and the columns of keys.

    There are no templates if they would not save space, and no template column if the prefix determines the template.
    """
    lines = texts.tolist()
    # All keys at once: a million keys one by one take 5 s and a million objects for the garbage collector.
    joined = GAP.join(lines).encode("utf-8", "surrogatepass")
    data = np.frombuffer(joined + b"\0" * (MAX_DIGITS + 1), dtype=np.uint8)
    if not lines or joined.count(GAP.encode()) != len(lines) - 1:
        return _whole_keys(lines, blocks)
    numbers = _numbers(data)
    ends = np.append(np.flatnonzero(data[: len(joined)] == 0), len(joined))
    owner = np.searchsorted(ends, numbers.at)
    counts = np.bincount(owner, minlength=len(lines))
    columns_needed = int(counts.max())
    if not 0 < columns_needed <= MAX_NUMBERS:
        return _whole_keys(lines, blocks)
    cut = _mark_numbers(data[: len(joined)], numbers).split(GAP.encode())
    codes = {template: code for code, template in enumerate(dict.fromkeys(cut))}
    if len(codes) > max(50, len(lines) // 20):
        return _whole_keys(lines, blocks)
    templates = [_template(template) for template in codes]
    which = np.fromiter(map(codes.__getitem__, cut), dtype=np.int64, count=len(cut))
    del cut
    columns = {}
    by_prefix = np.full(int(prefixes.max()) + 1, -1)
    by_prefix[prefixes] = which
    if (by_prefix[prefixes] == which).all():
        templates = [templates[code] if code >= 0 else "" for code in by_prefix.tolist()]
    else:
        columns["template"] = blocks.codes("stream.template", which)
    index = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
    for i in range(columns_needed):
        column = np.zeros(len(lines), dtype=np.int64)
        mine = index == i
        column[owner[mine]] = numbers.values[mine]
        columns[f"number{i}"] = blocks.codes(f"stream.number{i}", column)
    return templates, columns


def _numbers(data: Array) -> _Numbers:
    """Return every number in bytes that are padded with more zeros than a number has digits."""
    classes = np.frombuffer(data.tobytes().translate(_CLASSES), dtype=np.uint8)
    digit = classes == _DIGIT
    at = np.flatnonzero(digit[1:] & (classes[:-1] == _FREE)) + 1
    if digit[0]:
        at = np.insert(at, 0, 0)
    values, digits = data[at].astype(np.int64) - ord("0"), np.ones(len(at), dtype=np.int64)
    longer = np.arange(len(at))
    for place in range(1, MAX_DIGITS):
        longer = longer[digit[at[longer] + place]]
        values[longer] = values[longer] * 10 + data[at[longer] + place] - ord("0")
        digits[longer] += 1
    # A number with one more digit counts as part of a word.
    alone = ~_NOT_AFTER[data[at + digits]] & ((digits == 1) | (data[at] != ord("0")))
    return _Numbers(at[alone], digits[alone], values[alone])


def _mark_numbers(data: Array, numbers: _Numbers) -> bytes:
    """Return the bytes with a single marker byte in place of every number."""
    left, kept = data.copy(), np.ones(len(data), dtype=bool)
    left[numbers.at] = _GAP
    for place in range(1, MAX_DIGITS):
        kept[numbers.at[numbers.digits > place] + place] = False
    return left[kept].tobytes()


def _template(cut: bytes) -> str:
    return cut.replace(bytes([_GAP]), GAP.encode()).decode("utf-8", "surrogatepass")


def _whole_keys(lines: list[str], blocks: Blocks) -> tuple[list[str], dict[str, Block]]:
    return [], {"key": blocks.lines("stream.key", map(_one_line, lines))}


def _one_line(key: str) -> str:
    return json.dumps(key) if "\n" in key or "\r" in key else key

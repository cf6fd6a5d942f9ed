"""Task keys of a report: texts that differ in a few numbers, as the text once and the numbers as columns.

Chunks of arrays and partitions of dataframes are called ``('sum-1f3a', 12, 0)``; two numbers take two bytes, the text three to four
even compressed. Keys of another kind (a hash for each task) are stored as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from daskscope.model.table import Array
from daskscope.report.blocks import Blocks
from daskscope.report.schema import Block

GAP = "\0"
MOST_NUMBERS = 4
MOST_DIGITS = 9

#: Where a number is in the bytes of keys; no text has this byte in UTF-8.
_GAP = 0xFF
#: Letters, digits, the underscore, and whatever is no ASCII: a number beside one of them is part of a name.
_WORD = np.array([code >= 128 or chr(code).isalnum() or chr(code) == "_" for code in range(256)])
_NOT_BEFORE, _NOT_AFTER = _WORD.copy(), _WORD.copy()
_NOT_BEFORE[[ord("."), ord("-")]] = True
_NOT_AFTER[ord(".")] = True
_DIGIT, _FREE, _NAME = 1, 0, 2
#: Digits, bytes after which a number may begin, and others; looked up by ``bytes.translate``, which is faster than numpy.
_SORTS = bytes(_DIGIT if chr(code) in "0123456789" else _NAME if _NOT_BEFORE[code] else _FREE for code in range(256))


@dataclass(frozen=True)
class _Numbers:
    """Whole numbers that stand alone: not part of a name, no leading zero that would be lost."""

    #: Where they begin in the bytes of all keys, how many digits they have, and what they say.
    at: Array
    digits: Array
    values: Array


def keys(texts: Array, prefixes: Array, blocks: Blocks) -> tuple[list[str], dict[str, Block]]:
    """The templates and the columns of keys; no template where they would not help, no column where the prefix tells it."""
    lines = texts.tolist()
    # All at once: a million keys cut one by one take 5 s and as many objects that the garbage collector walks.
    joined = GAP.join(lines).encode("utf-8", "surrogatepass")
    data = np.frombuffer(joined + b"\0" * (MOST_DIGITS + 1), dtype=np.uint8)
    if not lines or joined.count(GAP.encode()) != len(lines) - 1:
        return _whole_keys(lines, blocks)
    numbers = _numbers(data)
    ends = np.append(np.flatnonzero(data[: len(joined)] == 0), len(joined))
    owner = np.searchsorted(ends, numbers.at)
    counts = np.bincount(owner, minlength=len(lines))
    most = int(counts.max())
    if not 0 < most <= MOST_NUMBERS:
        return _whole_keys(lines, blocks)
    cut = _without(data[: len(joined)], numbers).split(GAP.encode())
    codes = {template: code for code, template in enumerate(dict.fromkeys(cut))}
    if len(codes) > max(50, len(lines) // 20):
        return _whole_keys(lines, blocks)
    templates = [_template(template) for template in codes]
    which = np.fromiter(map(codes.__getitem__, cut), dtype=np.int64, count=len(cut))
    columns = {}
    by_prefix = np.full(int(prefixes.max()) + 1, -1)
    by_prefix[prefixes] = which
    if (by_prefix[prefixes] == which).all():
        templates = [templates[code] if code >= 0 else "" for code in by_prefix.tolist()]
    else:
        columns["template"] = blocks.codes("stream.template", which)
    turn = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
    for i in range(most):
        column = np.zeros(len(lines), dtype=np.int64)
        mine = turn == i
        column[owner[mine]] = numbers.values[mine]
        columns[f"number{i}"] = blocks.codes(f"stream.number{i}", column)
    return templates, columns


def _numbers(data: Array) -> _Numbers:
    """Every number in bytes that end with more zeros than a number has digits."""
    sorts = np.frombuffer(data.tobytes().translate(_SORTS), dtype=np.uint8)
    digit = sorts == _DIGIT
    at = np.flatnonzero(digit[1:] & (sorts[:-1] == _FREE)) + 1
    if digit[0]:
        at = np.insert(at, 0, 0)
    values, digits = data[at].astype(np.int64) - ord("0"), np.ones(len(at), dtype=np.int64)
    longer = np.arange(len(at))
    for place in range(1, MOST_DIGITS):
        longer = longer[digit[at[longer] + place]]
        values[longer] = values[longer] * 10 + data[at[longer] + place] - ord("0")
        digits[longer] += 1
    # A digit more, and it is part of a word.
    alone = ~_NOT_AFTER[data[at + digits]] & ((digits == 1) | (data[at] != ord("0")))
    return _Numbers(at[alone], digits[alone], values[alone])


def _without(data: Array, numbers: _Numbers) -> bytes:
    """The bytes with one in place of every number."""
    left, kept = data.copy(), np.ones(len(data), dtype=bool)
    left[numbers.at] = _GAP
    for place in range(1, MOST_DIGITS):
        kept[numbers.at[numbers.digits > place] + place] = False
    return left[kept].tobytes()


def _template(cut: bytes) -> str:
    return cut.replace(bytes([_GAP]), GAP.encode()).decode("utf-8", "surrogatepass")


def _whole_keys(lines: list[str], blocks: Blocks) -> tuple[list[str], dict[str, Block]]:
    return [], {"key": blocks.lines("stream.key", map(_one_line, lines))}


def _one_line(key: str) -> str:
    return json.dumps(key) if "\n" in key or "\r" in key else key

"""Encode the task keys of a report as templates: each distinct template once, and the numbers in it as columns.

Keys of array chunks and dataframe partitions look like ``('sum-1f3a', 12, 0)``. Two numbers take two bytes; the whole text
would take three to four even compressed. Other keys, such as a hash for each task, are stored as they are.

This is not the split of ``wire/encode_keys.py``. The recorder has keys as Python objects and knows their groups. A report has
texts, also of recordings made from other reports, whose groups are a guess, and cuts millions of them with numpy, which a
scheduler does not have.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from daskscope.model.packed_texts import PackedTexts
from daskscope.model.recording import Array
from daskscope.report.blocks import Blocks, usable_cores
from daskscope.report.schema import Block

GAP = "\0"
MAX_NUMBERS = 4
#: Keys to cut at once.
STEP = 2**16
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


def encode_key_templates(
    texts: PackedTexts, rows: Array, prefixes: Array, blocks: Blocks
) -> tuple[list[str], dict[str, Block]]:
    """Return the templates and the columns of the keys in the given rows of ``texts``; ``prefixes`` has the prefix of each.

    There are no templates if they would not save space, and no template column if the prefix determines the template.
    """
    found = _cut(texts, rows)
    if found is None:
        return _whole_keys(texts, rows, blocks)
    templates = [_template(template) for template in found.templates]
    columns = {}
    by_prefix = np.full(int(prefixes.max()) + 1, -1)
    by_prefix[prefixes] = found.which
    if (by_prefix[prefixes] == found.which).all():
        templates = [templates[code] if code >= 0 else "" for code in by_prefix.tolist()]
    else:
        columns["template"] = blocks.codes("stream.template", found.which)
    for i, column in enumerate(found.numbers):
        columns[f"number{i}"] = blocks.codes(f"stream.number{i}", column)
    return templates, columns


@dataclass(frozen=True)
class _Cut:
    """Keys as templates and numbers."""

    #: In the order in which they occur first.
    templates: list[bytes]
    #: The template of each key.
    which: Array
    #: The first number of each key, the second one, and so on; 0 if it has fewer.
    numbers: list[Array]


def _cut(texts: PackedTexts, rows: Array) -> _Cut | None:
    """Return keys as templates and numbers; None if that would not save space."""
    codes: dict[bytes, int] = {}
    which = np.zeros(len(rows), dtype=np.int32)
    numbers = [np.zeros(len(rows), dtype=np.int32) for _ in range(MAX_NUMBERS)]
    needed = 0
    # In steps, because numpy needs 20 times the bytes of the keys. As Python strings, 1.5 million keys take 2 s.
    steps = [slice(first, first + STEP) for first in range(0, len(rows), STEP)]
    pool = ThreadPoolExecutor(usable_cores())
    try:
        for some, part in zip(steps, pool.map(lambda some: _cut_some(texts, rows[some]), steps), strict=True):
            if part is None:
                return None
            places = [codes.setdefault(template, len(codes)) for template in part.templates]
            if len(codes) > max(50, len(rows) // 20):
                return None
            which[some] = np.array(places, dtype=np.int32)[part.which]
            needed = max(needed, len(part.numbers))
            for column, values in zip(numbers, part.numbers, strict=False):
                column[some] = values
    finally:
        pool.shutdown(cancel_futures=True)
    return _Cut(list(codes), which, numbers[:needed]) if needed else None


def _cut_some(texts: PackedTexts, rows: Array) -> _Cut | None:
    """Return some keys as templates and numbers; None if one has a zero byte or too many numbers."""
    data = texts.joined(rows, 0)
    ends = np.flatnonzero(data == 0)
    if len(ends) != len(rows):
        return None
    found = _numbers(np.append(data, np.zeros(MAX_DIGITS, dtype=np.uint8)))
    owner = np.searchsorted(ends, found.at)
    counts = np.bincount(owner, minlength=len(ends))
    if int(counts.max()) > MAX_NUMBERS:
        return None
    index = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
    numbers = []
    for i in range(int(counts.max())):
        column, mine = np.zeros(len(rows), dtype=np.int32), index == i
        column[owner[mine]] = found.values[mine]
        numbers.append(column)
    return _Cut(*_distinct(_mark_numbers(data, found)), numbers)


def _distinct(marked: Array) -> tuple[list[bytes], Array]:
    """Return the templates in bytes with a zero after each, in the order in which they occur first, and which each one is."""
    ends = np.flatnonzero(marked == 0) + 1
    texts = PackedTexts(marked.tobytes(), np.insert(ends, 0, 0))
    _, first, which = np.unique(texts.hashes(), return_index=True, return_inverse=True)
    lengths = np.diff(texts.offsets)
    if not ((lengths == lengths[first[which]]).all() and np.array_equal(texts.gather(first[which]), marked)):
        # Different templates with the same hash: compare them all.
        first = which = np.arange(len(ends))
    order = np.argsort(first)
    place = np.empty(len(first), dtype=np.int32)
    place[order] = np.arange(len(first))
    bounds = zip(texts.offsets[first[order]].tolist(), texts.offsets[first[order] + 1].tolist(), strict=True)
    return [bytes(texts.data[start : stop - 1]) for start, stop in bounds], place[which]


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


def _mark_numbers(data: Array, numbers: _Numbers) -> Array:
    """Return the bytes with a single marker byte in place of every number."""
    left, kept = data.copy(), np.ones(len(data), dtype=bool)
    left[numbers.at] = _GAP
    for place in range(1, MAX_DIGITS):
        kept[numbers.at[numbers.digits > place] + place] = False
    result: Array = left[kept]
    return result


def _template(cut: bytes) -> str:
    return cut.replace(bytes([_GAP]), GAP.encode()).decode("utf-8", "surrogatepass")


def _whole_keys(texts: PackedTexts, rows: Array, blocks: Blocks) -> tuple[list[str], dict[str, Block]]:
    data = texts.joined(rows, ord("\n"))
    # Keys with line breaks are written as JSON. 0xED is the first byte of a lone surrogate, which is replaced, and of some letters.
    if np.count_nonzero(data == ord("\n")) == len(rows) and not (np.isin(data, (ord("\r"), 0xED))).any():
        return [], {"key": blocks.text("stream.key", data[:-1].tobytes(), len(rows))}
    return [], {"key": blocks.lines("stream.key", map(_one_line, texts.take(rows).to_numpy().tolist()))}


def _one_line(key: str) -> str:
    return json.dumps(key) if "\n" in key or "\r" in key else key

"""Task keys of a report: texts that differ in a few numbers, as the text once and the numbers as columns.

Chunks of arrays and partitions of dataframes are called ``('sum-1f3a', 12, 0)``; two numbers take two bytes, the text three to four
even compressed. Keys of another kind (a hash for each task) are stored as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import numpy as np

from daskscope.model.table import Array
from daskscope.report.blocks import Blocks
from daskscope.report.schema import Block

#: Whole numbers that stand alone: not part of a name, no leading zero that would be lost.
NUMBER = re.compile(r"(?<![\w.-])(0|[1-9]\d{0,8})(?![\w.])")
GAP = "\0"
MOST_NUMBERS = 4


def keys(texts: Array, prefixes: Array, blocks: Blocks) -> tuple[list[str], dict[str, Block]]:
    """The templates and the columns of keys; no template where they would not help, no column where the prefix tells it."""
    # Texts and numbers take turns: a million keys are cut in 2 s, once.
    parts = list(map(NUMBER.split, texts.tolist()))
    cut = [GAP.join(part[0::2]) for part in parts]
    templates = list(dict.fromkeys(cut))
    most = max(map(len, parts), default=0) // 2
    few = len(templates) <= max(50, len(cut) // 20)
    if not 0 < most <= MOST_NUMBERS or not few or any(GAP in text for text in texts.tolist()):
        return [], {"key": blocks.lines("stream.key", map(_one_line, texts.tolist()))}
    columns = {}
    by_prefix = dict(zip(prefixes.tolist(), cut, strict=True))
    if all(by_prefix[prefix] == template for prefix, template in set(zip(prefixes.tolist(), cut, strict=True))):
        templates = [by_prefix.get(prefix, "") for prefix in range(max(by_prefix) + 1)]
    else:
        position = {template: number for number, template in enumerate(templates)}
        columns["template"] = blocks.codes("stream.template", _whole(map(position.__getitem__, cut), len(cut)))
    for i in range(most):
        at = 2 * i + 1
        numbers = _whole((int(part[at]) if at < len(part) else 0 for part in parts), len(parts))
        columns[f"number{i}"] = blocks.codes(f"stream.number{i}", numbers)
    return templates, columns


def _whole(values: Iterable[int], count: int) -> Array:
    return np.fromiter(values, dtype=np.int64, count=count)


def _one_line(key: str) -> str:
    return json.dumps(key) if "\n" in key or "\r" in key else key

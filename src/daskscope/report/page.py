"""The data inside of a page that ``report/html.py`` wrote, trusting nothing.

A page may be cut off, damaged, or made by somebody who wants to hurt the reader. Sizes are checked before anything is made of them,
and whatever is wrong is a ``ValueError`` or what Python itself raises on a wrong type; ``report/reader.py`` says it to the user.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from mmap import mmap
from typing import Any, NoReturn

import numpy as np

from daskscope.model.table import Array
from daskscope.report.blocks import NUMPY, decode
from daskscope.report.html import BLOCK_TAG, END_TAG, REPORT_TAG
from daskscope.report.schema import Block
from daskscope.wire.layout import count_items

Bytes = bytes | mmap

TAG, END = REPORT_TAG.encode(), END_TAG.encode()
BLOCK = re.compile(BLOCK_TAG.format(name=r"([\w.-]{1,100})").encode())
#: Bytes and items of the JSON. A report of 1.5 million tasks in 10,000 groups on 1,000 workers has 10 MB and 500,000.
MOST_JSON = 2**26
MOST_ITEMS = 2**22
#: A report has a hundred blocks; 1.5 million tasks take 18 MB.
MOST_BLOCKS = 10_000
MOST_BLOCK = 2**28
#: What is larger is no microsecond, no byte and no count.
MOST = 2**62


@dataclass(frozen=True)
class Page:
    """The report as JSON says it, unchecked, and where its blocks are."""

    report: dict[str, Any]
    data: Bytes
    places: Mapping[str, tuple[int, int]]

    def numbers(self, block: Any, length: int, below: int = MOST) -> Array:
        """A column of whole numbers from 0 up to a bound."""
        values = np.asarray(self._decoded(block, length, NUMPY.keys() - {"f32"}))
        if len(values) and not (values.min() >= 0 and values.max() < below):
            raise ValueError(f"block {block['block']} holds numbers out of range")
        return values.astype(np.int64)

    def lines(self, block: Any, length: int) -> list[str]:
        """A column of texts."""
        return list(self._decoded(block, length, {"utf8"}))

    def _decoded(self, block: Any, length: int, kinds: set[Any]) -> Array | list[str]:
        name, dtype = block["block"], block["dtype"]
        if dtype not in kinds or type(block["length"]) is not int or block["length"] != length:
            raise ValueError("a block is of another kind or length than its place in the report")
        if name not in self.places:
            raise ValueError(f"block {name[:100]} is not there")
        start, stop = self.places[name]
        if stop - start > MOST_BLOCK:
            raise ValueError(f"block {name} is larger than any report's")
        return decode(Block(block=name, dtype=dtype, length=length), b64decode(self.data[start:stop], validate=True))


def find_page(data: Bytes) -> Page:
    """The report of a page that has one."""
    start = data.find(TAG) + len(TAG)
    stop = data.find(END, start)
    if start < len(TAG) or stop < 0:
        raise ValueError("its data is not whole")
    if stop - start > MOST_JSON:
        raise ValueError("it holds more than a report does")
    report = parse(data[start:stop])
    if not isinstance(report, dict):
        raise ValueError("its data is no report")
    return Page(report, data, _places(data, stop))


def parse(text: bytes) -> Any:
    """Standard JSON of no more items than a report has: three bytes of it may become 64 of objects."""
    if count_items(text) > MOST_ITEMS:
        raise ValueError("it holds more than a report does")
    return json.loads(text, parse_constant=_no_constant)


def size(value: Any, most: int = MOST) -> int:
    """A whole number from 0 to a bound."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("it has a number where none, or no such number, can be")
    return value


def text(value: Any) -> str:
    """A text."""
    if type(value) is not str:
        raise ValueError("it has something else where a text should be")
    return value


def _places(data: Bytes, start: int) -> dict[str, tuple[int, int]]:
    places: dict[str, tuple[int, int]] = {}
    for found in BLOCK.finditer(data, start):
        stop = data.find(END, found.end())
        if stop < 0:
            break
        if len(places) == MOST_BLOCKS:
            raise ValueError("it holds more than a report does")
        places.setdefault(found.group(1).decode(), (found.end(), stop))
    return places


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")

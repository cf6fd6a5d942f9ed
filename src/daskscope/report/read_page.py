"""Read the data of a page written by ``report/html.py`` without trusting it.

A page may be cut off, damaged or hostile. Sizes are checked before memory is allocated. Invalid data raises ``ValueError``, or
what Python itself raises on a wrong type; ``report/read_report.py`` reports it to the user.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from mmap import mmap
from typing import Any, NoReturn

import numpy as np

from daskscope.model.recording import Array
from daskscope.report.blocks import NUMPY, decode
from daskscope.report.html import BLOCK_TAG, END_TAG, REPORT_TAG
from daskscope.report.schema import Block
from daskscope.wire.layout import count_items

Bytes = bytes | mmap

TAG, END = REPORT_TAG.encode(), END_TAG.encode()
BLOCK = re.compile(BLOCK_TAG.format(name=r"([\w.-]{1,100})").encode())
#: Bytes and items of the JSON. A report of 1.5 million tasks in 10,000 groups on 1,000 workers has 10 MB and 500,000 items.
MAX_JSON = 2**26
MAX_ITEMS = 2**22
#: A report has a hundred blocks; 1.5 million tasks take 18 MB.
MAX_BLOCKS = 10_000
MAX_BLOCK = 2**28
#: Larger numbers are not valid times, sizes or counts.
MAX_NUMBER = 2**62


@dataclass(frozen=True)
class Page:
    """The unchecked JSON of a report, and the positions of its blocks."""

    report: dict[str, Any]
    data: Bytes
    positions: Mapping[str, tuple[int, int]]

    def numbers(self, block: Any, length: int, below: int = MAX_NUMBER) -> Array:
        """Return a column of whole numbers from 0 to below a bound."""
        values = np.asarray(self._decoded(block, length, NUMPY.keys() - {"f32"}))
        if len(values) and not (values.min() >= 0 and values.max() < below):
            raise ValueError(f"block {block['block']} has numbers out of range")
        return values.astype(np.int64)

    def lines(self, block: Any, length: int) -> list[str]:
        """Return a column of texts."""
        return list(self._decoded(block, length, {"utf8"}))

    def _decoded(self, block: Any, length: int, kinds: set[Any]) -> Array | list[str]:
        name, dtype = block["block"], block["dtype"]
        if dtype not in kinds or type(block["length"]) is not int or block["length"] != length:
            raise ValueError("a block has the wrong type or length")
        if name not in self.positions:
            raise ValueError(f"block {name[:100]} is missing")
        start, stop = self.positions[name]
        if stop - start > MAX_BLOCK:
            raise ValueError(f"block {name} is too large")
        return decode(Block(block=name, dtype=dtype, length=length), b64decode(self.data[start:stop], validate=True))


def find_page(data: Bytes) -> Page:
    """Return the report of a page."""
    start = data.find(TAG) + len(TAG)
    stop = data.find(END, start)
    if start < len(TAG) or stop < 0:
        raise ValueError("its data is incomplete")
    if stop - start > MAX_JSON:
        raise ValueError("it is too large")
    report = parse_json(_inflated(data[start:stop]))
    if not isinstance(report, dict):
        raise ValueError("its data is not a report")
    return Page(report, data, _positions(data, stop))


def has_report(data: Bytes) -> bool:
    """Return whether a page contains a report."""
    return data.find(TAG) >= 0


def _inflated(text: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        found = unpacker.decompress(b64decode(text, validate=True), MAX_JSON)
    except zlib.error as error:
        raise ValueError(f"its data is damaged: {error}") from None
    if unpacker.unconsumed_tail:
        raise ValueError("it is too large")
    if not unpacker.eof:
        raise ValueError("its data is incomplete")
    return found


def parse_json(text: bytes) -> Any:
    """Parse standard JSON with a limited number of items: three bytes of JSON may become 64 bytes of objects."""
    if count_items(text) > MAX_ITEMS:
        raise ValueError("it is too large")
    return json.loads(text, parse_constant=_no_constant)


def check_int(value: Any, limit: int = MAX_NUMBER) -> int:
    """Return a value if it is a whole number from 0 to a bound."""
    if type(value) is not int or not 0 <= value <= limit:
        raise ValueError("it has an invalid number")
    return value


def check_text(value: Any) -> str:
    """Return a value if it is a text."""
    if type(value) is not str:
        raise ValueError("it has an invalid text")
    return value


def _positions(data: Bytes, start: int) -> dict[str, tuple[int, int]]:
    positions: dict[str, tuple[int, int]] = {}
    for found in BLOCK.finditer(data, start):
        stop = data.find(END, found.end())
        if stop < 0:
            break
        if len(positions) == MAX_BLOCKS:
            raise ValueError("it is too large")
        positions.setdefault(found.group(1).decode(), (found.end(), stop))
    return positions


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")

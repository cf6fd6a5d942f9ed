"""Encode columns as compressed bytes: byte planes and zlib.

Neighbouring values usually differ only in their low bytes. Stored plane by plane they compress to a third of the size, and
browsers have zlib and typed arrays built in.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from daskscope.analysis.columns.grouping import steps
from daskscope.model.recording import Array
from daskscope.report.schema import Block, DType

#: More threads do not make documents faster, and each takes 8 MB of the memory that a process may use.
MAX_THREADS = 4


def usable_cores() -> int:
    """Return the number of cores that this process may use, at most ``MAX_THREADS``."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, MAX_THREADS)


NUMPY: dict[DType, str] = {"u8": "u1", "u16": "<u2", "u32": "<u4", "f32": "<f4", "f64": "<f8", "mini": "<u2"}
LEVEL = 6
#: Bytes of text in one block: enough for the keys of 1.5 million tasks, each wider than a screen.
MAX_TEXT = 2**28


class Blocks:
    """The binary blocks of a report, by name."""

    def __init__(self) -> None:
        # Blocks are compressed while the next ones are computed: zlib releases the GIL, and a million tasks take it a second.
        self._pool = ThreadPoolExecutor(os.cpu_count(), "daskscope-blocks")
        self._compressed: dict[str, Future[bytes]] = {}

    @property
    def data(self) -> dict[str, bytes]:
        """Return all blocks compressed."""
        return {name: block.result() for name, block in self._compressed.items()}

    def codes(self, name: str, values: Array) -> Block:
        """Add non-negative whole numbers in the narrowest type that fits; above 32 bits they become floats."""
        largest = int(values.max()) if len(values) else 0
        dtype: DType = "u8" if largest < 2**8 else "u16" if largest < 2**16 else "u32" if largest < 2**32 else "f64"
        return self.column(name, values, dtype)

    def mini(self, name: str, values: Array) -> Block:
        """Add whole numbers to three digits, which is all that a page shows."""
        return self.column(name, mini(values), "mini")

    def column(self, name: str, values: Array, dtype: DType) -> Block:
        """Add a column of numbers."""
        cells = np.ascontiguousarray(values, dtype=NUMPY[dtype])
        planes = cells.view(np.uint8).reshape(cells.size, cells.itemsize).T
        return self._add(name, np.ascontiguousarray(planes).tobytes(), dtype, cells.size)

    def lines(self, name: str, lines: Iterable[str]) -> Block:
        """Add a column of texts without line breaks."""
        texts = list(lines)
        return self.text(name, "\n".join(texts).encode("utf-8", "replace"), len(texts))

    def text(self, name: str, text: bytes, lines: int) -> Block:
        """Add a column of texts without line breaks as one text with a line for each."""
        return self._add(name, text, "utf8", lines)

    def _add(self, name: str, data: bytes, dtype: DType, length: int) -> Block:
        self._compressed[name] = self._pool.submit(zlib.compress, data, level=LEVEL)
        return {"block": name, "dtype": dtype, "length": length}


def decode(block: Block, data: bytes) -> Array | list[str]:
    """Decode a block as the browser does.

    Raise ``ValueError`` if the bytes do not match the block's description, before they take much memory.
    """
    length = block["length"]
    if block["dtype"] == "utf8":
        raw = _inflate(data, MAX_TEXT)
        # Count lines before creating objects: a line of one byte takes fifty.
        if raw.count(b"\n") + 1 != max(length, 1):
            raise ValueError(f"a block does not have {length} lines")
        return raw.decode().split("\n") if length else []
    kind = np.dtype(NUMPY[block["dtype"]])
    raw = _inflate(data, kind.itemsize * length)
    planes = np.frombuffer(raw, dtype=np.uint8).reshape(kind.itemsize, length)
    result: Array = np.ascontiguousarray(planes.T).view(kind).reshape(-1)
    return from_mini(result) if block["dtype"] == "mini" else result


def _inflate(data: bytes, limit: int) -> bytes:
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(f"a block cannot be decompressed: {error}") from None
    if len(raw) > limit or not inflate.eof:
        raise ValueError("a block is cut off, or longer than its description")
    return raw


def mini(values: Array) -> Array:
    """Encode whole numbers in 16 bits: the 9 highest bits, rounded, and their shift."""
    result = np.zeros(len(values), dtype=np.uint16)
    for some in steps(len(values)):
        result[some] = _mini(values[some])
    return result


def _mini(values: Array) -> Array:
    wide = np.clip(values, 0, 2**62).astype(np.int64)
    # A number that rounds up to the next power of two has the same code either way.
    shift = np.maximum(np.frexp(wide.astype(np.float64))[1] - 9, 0).astype(np.int64)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    top = (wide + half) >> shift
    result: Array = np.where(shift > 0, (shift << 8) + top, top)
    return result


def from_mini(codes: Array) -> Array:
    """Decode the codes of ``mini``."""
    wide = np.asarray(codes).astype(np.int64)
    result: Array = np.where(wide < 512, wide, (256 + (wide & 255)) << np.maximum((wide >> 8) - 1, 0))
    return result


def from_zigzag(codes: Array) -> Array:
    """Decode the codes of ``zigzag``."""
    wide = codes.astype(np.int64)
    result: Array = (wide >> 1) ^ -(wide & 1)
    return result


def zigzag(values: Array) -> Array:
    """Encode signed numbers as unsigned ones; numbers near zero stay small."""
    wide = values.astype(np.int64)
    result: Array = (wide << 1) ^ (wide >> 63)
    return result

"""Columns as compressed bytes: byte planes, zlib.

Neighbouring values differ in their low bytes and agree in their high ones; one plane after the other compresses to a third of
what the values would, and a browser has both halves of the decoder built in.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from daskscope.model.table import Array
from daskscope.report.schema import Block, DType

NUMPY: dict[DType, str] = {"u8": "u1", "u16": "<u2", "u32": "<u4", "f32": "<f4", "f64": "<f8", "mini": "<u2"}
LEVEL = 6
#: Bytes of text in one block: the keys of 1.5 million tasks, each longer than a screen is wide.
MOST_TEXT = 2**28


class Blocks:
    """The binary part of a report, by name."""

    def __init__(self) -> None:
        self._plain: dict[str, bytes] = {}
        self._packed: dict[str, bytes] = {}

    @property
    def data(self) -> dict[str, bytes]:
        """All blocks, compressed together: zlib does not hold the interpreter lock, and of a million tasks it takes a second."""
        with ThreadPoolExecutor() as pool:
            packed = pool.map(partial(zlib.compress, level=LEVEL), self._plain.values())
            self._packed.update(zip(self._plain, packed, strict=True))
        self._plain = {}
        return self._packed

    def codes(self, name: str, values: Array) -> Block:
        """Whole numbers that are not negative, as narrow as they fit; what does not fit into 32 bits becomes a float."""
        most = int(values.max()) if len(values) else 0
        dtype: DType = "u8" if most < 2**8 else "u16" if most < 2**16 else "u32" if most < 2**32 else "f64"
        return self.column(name, values, dtype)

    def mini(self, name: str, values: Array) -> Block:
        """Whole numbers to three digits: what nobody is shown need not be stored."""
        return self.column(name, mini(values), "mini")

    def column(self, name: str, values: Array, dtype: DType) -> Block:
        cells = np.ascontiguousarray(values, dtype=NUMPY[dtype])
        planes = cells.view(np.uint8).reshape(cells.size, cells.itemsize).T
        return self._add(name, np.ascontiguousarray(planes).tobytes(), dtype, cells.size)

    def lines(self, name: str, lines: Iterable[str]) -> Block:
        texts = list(lines)
        return self._add(name, "\n".join(texts).encode("utf-8", "replace"), "utf8", len(texts))

    def _add(self, name: str, data: bytes, dtype: DType, length: int) -> Block:
        self._plain[name] = data
        return {"block": name, "dtype": dtype, "length": length}


def decode(block: Block, data: bytes) -> Array | list[str]:
    """What the browser does; raises ``ValueError`` where the bytes are not what the block says, before they are much memory."""
    length = block["length"]
    if block["dtype"] == "utf8":
        raw = _inflate(data, MOST_TEXT)
        # Counted before they become objects: a line of one byte takes fifty.
        if raw.count(b"\n") + 1 != max(length, 1):
            raise ValueError(f"a block does not have the {length} lines it claims")
        return raw.decode().split("\n") if length else []
    kind = np.dtype(NUMPY[block["dtype"]])
    raw = _inflate(data, kind.itemsize * length)
    planes = np.frombuffer(raw, dtype=np.uint8).reshape(kind.itemsize, length)
    result: Array = np.ascontiguousarray(planes.T).view(kind).reshape(-1)
    return from_mini(result) if block["dtype"] == "mini" else result


def _inflate(data: bytes, most: int) -> bytes:
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(data, most + 1)
    except zlib.error as error:
        raise ValueError(f"a block cannot be decompressed: {error}") from None
    if len(raw) > most or not inflate.eof:
        raise ValueError("a block is cut off, or longer than it claims")
    return raw


def mini(values: Array) -> Array:
    """Whole numbers as codes of 16 bits: the 9 highest bits, rounded, and where they stand."""
    wide = np.clip(values, 0, 2**62).astype(np.int64)
    # A number that rounds up to the next power of two has the same code either way.
    shift = np.maximum(np.frexp(wide.astype(np.float64))[1] - 9, 0).astype(np.int64)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    top = (wide + half) >> shift
    result: Array = np.where(shift > 0, (shift << 8) + top, top)
    return result


def from_mini(codes: Array) -> Array:
    """The numbers that codes stand for."""
    wide = np.asarray(codes).astype(np.int64)
    result: Array = np.where(wide < 512, wide, (256 + (wide & 255)) << np.maximum((wide >> 8) - 1, 0))
    return result


def from_zigzag(codes: Array) -> Array:
    """The signed numbers that ``zigzag`` made unsigned."""
    wide = codes.astype(np.int64)
    result: Array = (wide >> 1) ^ -(wide & 1)
    return result


def zigzag(values: Array) -> Array:
    """Signed numbers as unsigned ones, small ones staying small."""
    wide = values.astype(np.int64)
    result: Array = (wide << 1) ^ (wide >> 63)
    return result

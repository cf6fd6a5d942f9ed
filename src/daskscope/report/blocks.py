"""Columns as compressed bytes: byte planes, zlib.

Neighbouring values differ in their low bytes and agree in their high ones; one plane after the other compresses to a third of
what the values would, and a browser has both halves of the decoder built in.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from daskscope.model.table import Array
from daskscope.report.schema import Block, DType

NUMPY: dict[DType, str] = {"u8": "u1", "u16": "<u2", "u32": "<u4", "f32": "<f4", "f64": "<f8", "mini": "<u2"}
LEVEL = 6


class Blocks:
    """The binary part of a report, by name."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

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
        self.data[name] = zlib.compress(data, LEVEL)
        return {"block": name, "dtype": dtype, "length": length}


def decode(block: Block, data: bytes) -> Array | list[str]:
    """What the browser does, for tests and for whoever reads a report with Python."""
    raw = zlib.decompress(data)
    if block["dtype"] == "utf8":
        return raw.decode().split("\n") if block["length"] else []
    kind = np.dtype(NUMPY[block["dtype"]])
    planes = np.frombuffer(raw, dtype=np.uint8).reshape(kind.itemsize, block["length"])
    result: Array = np.ascontiguousarray(planes.T).view(kind).reshape(-1)
    return from_mini(result) if block["dtype"] == "mini" else result


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


def zigzag(values: Array) -> Array:
    """Signed numbers as unsigned ones, small ones staying small."""
    wide = values.astype(np.int64)
    result: Array = (wide << 1) ^ (wide >> 63)
    return result

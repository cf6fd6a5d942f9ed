"""Decompression: by isal where a server has it installed, which takes a third less time, else by zlib. The same bytes come out."""

from __future__ import annotations

import zlib
from typing import Protocol, cast


class Inflate(Protocol):
    """What both have of a decompressor."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: memoryview, max_length: int, /) -> bytes: ...


try:
    from isal import isal_zlib
except ImportError:  # pragma: no cover (the tests have it)
    InflateError: tuple[type[Exception], ...] = (zlib.error,)

    def inflater() -> Inflate:
        return zlib.decompressobj()

else:
    # Its stub calls the class an instance.
    InflateError = (zlib.error, cast("type[Exception]", isal_zlib.IsalError))

    def inflater() -> Inflate:
        return isal_zlib.decompressobj()

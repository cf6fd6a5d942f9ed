"""Take frames apart and reassemble them, for tests that need invalid frames."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

from daskscope.wire.layout import MAGIC, PREFIX


@dataclass
class Dissected:
    """The parts of a frame, which tests may change."""

    header: Any
    directory: Any
    #: The compressed columns, decompressed.
    packed: bytes
    plain: bytes

    def frame(self) -> bytes:
        """Return a frame with these parts and a correct size and checksum; the parts may be invalid."""
        directory = self.directory if isinstance(self.directory, bytes) else json.dumps(self.directory).encode()
        raw = len(directory).to_bytes(4, "little") + directory + self.packed
        header = {**self.header, "raw": len(raw) + len(self.plain)} if isinstance(self.header, dict) else self.header
        return frame_of(header, body_of(raw, self.plain))


def dissect(frame: bytes) -> Dissected:
    """Take a valid frame apart."""
    _, header_size, _, _ = PREFIX.unpack_from(frame)
    header, body = frame[PREFIX.size : PREFIX.size + header_size], frame[PREFIX.size + header_size :]
    size = int.from_bytes(body[:4], "little")
    raw, plain = zlib.decompress(body[4 : 4 + size]), body[4 + size :]
    end = 4 + int.from_bytes(raw[:4], "little")
    return Dissected(json.loads(header), json.loads(raw[4:end]), raw[end:], plain)


def body_of(raw: bytes, plain: bytes = b"") -> bytes:
    """Return a body with a compressed and an uncompressed part."""
    packed = zlib.compress(raw, 1)
    return len(packed).to_bytes(4, "little") + packed + plain


def frame_of(header: Any, body: bytes) -> bytes:
    """Return a frame with a correct checksum; a header given as bytes is not encoded."""
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return with_checksum(PREFIX.pack(MAGIC, len(data), len(body), 0) + data + body)


def with_checksum(frame: bytes) -> bytes:
    """Return the frame with a correct checksum, so that the decoder sees its other defects."""
    magic, header_size, body_size, _ = PREFIX.unpack_from(frame)
    crc = zlib.crc32(frame[PREFIX.size : PREFIX.size + header_size + body_size], zlib.crc32(frame[4:12]))
    return PREFIX.pack(magic, header_size, body_size, crc) + frame[PREFIX.size :]

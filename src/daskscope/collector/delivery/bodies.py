"""Bodies: groups of frames that fit into one request, and the frames of a segment file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...wire.layout import MAGIC, PREFIX
from .outbox import Sealed

#: The frames of one request.
Body = list[Sealed]


@dataclass(frozen=True)
class BodyLimits:
    """How much to send in one request. The defaults are below those of every server."""

    #: Proxies commonly refuse bodies above 1 MB.
    nbytes: int = 900_000
    frames: int = 1_000
    rows: int = 250_000


DEFAULT = BodyLimits()
#: How a server names its limits.
NAMES = {"bytes": "nbytes", "frames": "frames", "rows": "rows"}


def limits_of(header: str) -> BodyLimits:
    """Return the limits of a server from a header like ``bytes=2097152, frames=2000``, or the defaults where they are lower.

    A server also limits the characters of a body, which a sender does not know: texts are compressed.
    """
    given = {}
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name in NAMES and value.isascii() and value.isdigit():
            given[NAMES[name]] = max(1, min(int(value[:18]), getattr(DEFAULT, NAMES[name])))
    return BodyLimits(**given)


def fitting(frames: Iterable[Sealed], limits: BodyLimits) -> Body:
    """Return the first frames that fit into one body, at least one if there is any."""
    body: Body = []
    nbytes = rows = 0
    for sealed in frames:
        nbytes, rows = nbytes + len(sealed.frame), rows + sealed.rows
        if body and (nbytes > limits.nbytes or rows > limits.rows or len(body) >= limits.frames):
            break
        body.append(sealed)
    return body


def grouped(frames: list[Sealed], limits: BodyLimits) -> list[Body]:
    """Return all frames, in order, as bodies that fit."""
    bodies: list[Body] = []
    start = 0
    while start < len(frames):
        bodies.append(fitting(frames[start : start + limits.frames], limits))
        start += len(bodies[-1])
    return bodies


def halves(body: Body) -> list[Body]:
    """Return the two halves of a body of at least two frames."""
    middle = len(body) // 2
    return [body[:middle], body[middle:]]


def frames_of(data: bytes) -> Iterator[Sealed]:
    """Yield the frames of a segment's bytes, up to the first that is cut off or damaged."""
    offset = 0
    while offset + PREFIX.size <= len(data):
        magic, header_size, body_size, _ = PREFIX.unpack_from(data, offset)
        end = offset + PREFIX.size + header_size + body_size
        if magic != MAGIC or end > len(data):
            return
        try:
            header = json.loads(data[offset + PREFIX.size : offset + PREFIX.size + header_size])
            sealed = Sealed(int(header["sequence"]), str(header["table"]), int(header["rows"]), data[offset:end])
        except (ValueError, KeyError, TypeError):
            return
        yield sealed
        offset = end

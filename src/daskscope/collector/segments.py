"""Segment files on their way to a server: found, cut into bodies, removed once all of a file is accepted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..wire.layout import FILE_MAGIC, MAGIC, PREFIX

SUFFIX = ".daskscope"
#: Bodies stay under 1 MB: proxies commonly refuse more.
BODY_LIMIT = 900_000


class Segments:
    """The bodies of one segment after the other; ``find`` names the next segment, None while there is none."""

    def __init__(self, find: Callable[[], Path | None]) -> None:
        self.find = find
        #: Segments that are done with but cannot be removed; to send them again and again would help nobody.
        self.stuck: set[Path] = set()
        self._path = Path()
        self._bodies: list[bytes] = []

    def body(self) -> bytes | None:
        """What has to be sent next; the same until it is delivered."""
        while not self._bodies:
            found = self.find()
            if found is None:
                return None
            self._path, self._bodies = found, spooled_bodies(found)
            if not self._bodies:
                self._remove()
        return self._bodies[0]

    def delivered(self) -> None:
        """The server has what ``body`` gave out."""
        self._bodies.pop(0)
        if not self._bodies:
            self._remove()

    def skip(self) -> None:
        """The server does not want this segment: it stays where it is."""
        self._bodies = []

    def _remove(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            self.stuck.add(self._path)


def find(directory: Path, pattern: str) -> list[Path]:
    try:
        return sorted(directory.glob(pattern))
    except OSError:
        return []


def segments_of(directory: Path, name: str) -> list[Path]:
    """The segments of one recorder, oldest first."""
    return find(directory, f"{name}-*{SUFFIX}")


def spooled_bodies(path: Path) -> list[bytes]:
    """The whole frames of a segment, in bodies the server takes; none where it is gone or cannot be read."""
    try:
        data = path.read_bytes()[len(FILE_MAGIC) :]
    except OSError:
        return []
    bodies: list[bytes] = []
    start = offset = 0
    while offset + PREFIX.size <= len(data):
        magic, header, body, _ = PREFIX.unpack_from(data, offset)
        size = PREFIX.size + header + body
        if magic != MAGIC or offset + size > len(data):
            break
        if offset > start and offset + size - start > BODY_LIMIT:
            bodies.append(data[start:offset])
            start = offset
        offset += size
    if offset > start:
        bodies.append(data[start:offset])
    return bodies

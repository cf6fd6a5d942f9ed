"""Keep frames on disk, in segment files that are recordings themselves.

A recording directory and the spool for an unavailable server work the same way: ``Spool`` writes files of whole frames and
deletes the oldest above a size limit. ``daskscope show`` opens each file, and a directory of them. The very first frame is never
deleted, so that a reader knows that frames between it and the next one are missing.

``Segments`` reads segment files back as bodies for a server.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from ...wire.layout import FILE_MAGIC
from .leftovers import SUFFIX, SpoolLock, find_files
from .outbox import Sealed
from .poster import Body, BodyLimits, frames_of, grouped, halves
from .private_directory import check_private

logger = logging.getLogger("daskscope")

SEGMENT_SIZE = 4 * 1024 * 1024
#: Seconds between two looks at the sizes of all segments in the directory; what this recorder writes in between is added up.
MEASURE_S = 60.0


def spool_directory(configured: str) -> Path:
    """Return the directory where frames wait for a server: the configured one, else one of this user in the temp directory."""
    getuid = getattr(os, "getuid", None)
    return Path(configured or Path(tempfile.gettempdir()) / f"daskscope-{getuid() if getuid is not None else 0}")


class Spool:
    """Appends frames to segment files below a byte limit. A full disk costs data and one log line, nothing else.

    With a ``destination`` the frames wait for a server, in a directory that other recorders use as well. The segments are
    claimed until ``release``, and the limit counts all segments in the directory, because those that earlier recorders could
    not deliver must not fill the disk. Without a destination the limit counts the segments of this recorder.
    """

    def __init__(
        self, directory: str | Path, name: str, limit: int, segment: int = SEGMENT_SIZE, *, destination: str = ""
    ) -> None:
        self.directory = Path(directory)
        self.name = name
        self.limit = limit
        self.segment = min(segment, max(limit // 4, 1))
        self.destination = destination
        self._spool_lock = SpoolLock(self.directory, name, destination) if destination else None
        self.error = ""
        # The encoder thread spools overflowing frames while the sender thread reads segments.
        self._lock = threading.RLock()
        self._file: BinaryIO | None = None
        self._path = self.directory
        self._number = 0
        #: The segments of this recorder. Not found by listing the directory, which may contain segments of thousands of recorders.
        self._segments: list[Path] = []
        #: Bytes in the directory, and when they were counted.
        self._size = 0
        self._measured = float("-inf")
        self._written = 0
        #: Bytes of the current segment that were flushed as whole frames.
        self._flushed = 0
        #: The segment with the very first frame, and the offset where that frame ends.
        self._first: tuple[Path, int] | None = None

    def put(self, sealed: Sealed) -> None:
        self.append([sealed])

    def append(self, frames: Iterable[Sealed]) -> bool:
        """Write frames; return False if that failed."""
        with self._lock:
            try:
                for sealed in frames:
                    file = self._open()
                    file.write(sealed.frame)
                    self._written += len(sealed.frame)
                    self._first = self._first or (self._path, self._written)
                if self._file is not None:
                    # Flush, but no fsync: the data survives the process, and a flush takes 5 µs, not milliseconds.
                    self._file.flush()
                    self._flushed = self._written
            except OSError as error:
                self._report(error)
                self._abandon()
                return False
            return True

    def segments(self) -> list[Path]:
        """Return the segments of this recorder on disk, oldest first."""
        self._segments = [path for path in self._segments if path.exists()]
        return list(self._segments)

    def release(self) -> None:
        """Stop writing and release the claim, so that another recorder may deliver the remaining segments."""
        with self._lock:
            self.close()
            if self._spool_lock is not None:
                self._spool_lock.release()

    def close(self) -> None:
        """End the current segment; the next frame begins another."""
        with self._lock:
            if self._file is not None:
                try:
                    self._file.close()
                except OSError as error:
                    self._report(error)
                self._file = None

    def _open(self) -> BinaryIO:
        if self._file is not None and self._written >= self.segment:
            self._file.flush()
            self._flushed = self._written
            self.close()
        if self._file is None:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            check_private(self.directory)
            if self._spool_lock is not None:
                self._spool_lock.acquire()
            self._make_room()
            self._path = self.directory / f"{self.name}-{self._number:05d}{SUFFIX}"
            self._number += 1
            self._written = self._flushed = 0
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(descriptor, "wb")
            self._segments.append(self._path)
            self._file.write(FILE_MAGIC)
            self._written = len(FILE_MAGIC)
        return self._file

    def _make_room(self) -> None:
        # The segment that ended counts with its full size, although the server may have it already.
        self._size += self._written
        now = time.monotonic()
        if self._size + self.segment <= self.limit and now - self._measured < MEASURE_S:
            return
        counted = find_files(self.directory, f"*{SUFFIX}") if self._spool_lock is not None else self.segments()
        found = [(_stat(path), path) for path in counted]
        self._size, self._measured = sum(length for (_, length), _ in found), now
        # Oldest first; segments with the same time by their number.
        for (_, length), path in sorted(found):
            if self._size + self.segment <= self.limit:
                break
            self._size -= length - self._give_up(path)

    def _give_up(self, path: Path) -> int:
        """Delete a segment, except for the very first frame unless that is too large; return the bytes that stay."""
        first, end = self._first or (None, 0)
        try:
            if path == first and end <= self.segment:
                os.truncate(path, end)
                return end
            path.unlink()
        except FileNotFoundError:
            # The sender has just deleted it.
            pass
        return 0

    def _abandon(self) -> None:
        """Close the segment after an error: cut off a partly written frame, and delete a segment without a whole frame."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError:
            pass
        try:
            if self._flushed > len(FILE_MAGIC):
                os.truncate(self._path, self._flushed)
            else:
                self._path.unlink(missing_ok=True)
                if self._first is not None and self._first[0] == self._path:
                    self._first = None
        except OSError:
            pass

    def _report(self, error: OSError) -> None:
        if not self.error:
            logger.warning("daskscope: cannot write to %s (%s). Recording continues in memory.", self.directory, error)
        self.error = str(error)


def _stat(path: Path) -> tuple[int, int]:
    """Return when a segment was last written, and its size; zeros if another thread has just deleted it."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


class Segments:
    """Reads segments as bodies, one segment after the other; ``find`` returns the next segment, None while there is none."""

    def __init__(self, find: Callable[[], Path | None]) -> None:
        self.find = find
        #: Segments that were delivered but cannot be deleted; they must not be sent again.
        self.stuck: set[Path] = set()
        self.path = Path()
        self._bodies: list[Body] = []

    def next_body(self, limits: BodyLimits) -> Body | None:
        """Return the body to send next; the same one until it is split or marked as delivered."""
        while not self._bodies:
            found = self.find()
            if found is None:
                return None
            self.path, self._bodies = found, read_bodies(found, limits)
            if not self._bodies:
                self._remove()
        return self._bodies[0]

    @property
    def is_under_way(self) -> bool:
        """Whether a segment was read and not all of its bodies are delivered."""
        return bool(self._bodies)

    def mark_delivered(self) -> int:
        """Go on to the next body, because the server accepted this one; return its frames.

        Delete the segment after its last body.
        """
        delivered = len(self._bodies.pop(0))
        if not self._bodies:
            self._remove()
        return delivered

    def split(self) -> None:
        """Return the halves of the current body one after the other from now on."""
        self._bodies[:1] = halves(self._bodies[0])

    def skip(self) -> None:
        """Go on to the next segment, because the server refused this one; it stays on disk."""
        self._bodies = []

    def _remove(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            self.stuck.add(self.path)


def read_bodies(path: Path, limits: BodyLimits) -> list[Body]:
    """Read the whole frames of a segment, grouped into bodies; none if the file is gone or unreadable."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    return grouped(list(frames_of(data[len(FILE_MAGIC) :])), limits)

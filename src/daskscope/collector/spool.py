"""Frames on disk, in segments that are recordings themselves.

A recording directory and the spool of a server that is away are the same thing: files of whole frames, the oldest given
up when they exceed a limit. Each can be opened with ``daskscope show``, and a directory of them too. The very first
frame is not given up: by it a reader knows that what lies between it and the next one is missing.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from ..wire.layout import FILE_MAGIC
from .claim import Claim
from .outbox import Sealed
from .segments import SUFFIX, find, segments_of

logger = logging.getLogger("daskscope")

SEGMENT = 4 * 1024 * 1024


class Spool:
    """Appends frames to segment files below a byte limit. A full disk costs data and one log line, nothing else.

    With a ``destination`` the frames wait there for a server, in a directory that other recorders use as well: our
    segments are claimed until ``release``, and the limit counts all that lie there, because what recorders that are gone
    could not deliver must not fill the disk. Without one the limit counts the segments of this recorder.
    """

    def __init__(
        self, directory: str | Path, name: str, limit: int, segment: int = SEGMENT, *, destination: str = ""
    ) -> None:
        self.directory = Path(directory)
        self.name = name
        self.limit = limit
        self.segment = min(segment, max(limit // 4, 1))
        self.destination = destination
        self._claim = Claim(self.directory, name, destination) if destination else None
        self.failed = ""
        # The writer thread spools what overflows while the sender thread catches up.
        self._lock = threading.RLock()
        self._file: BinaryIO | None = None
        self._path = self.directory
        self._number = 0
        self._written = 0
        #: Bytes of the current segment that are whole frames, on disk.
        self._whole = 0
        #: The segment with the very first frame, and where that frame ends.
        self._first: tuple[Path, int] | None = None

    def put(self, sealed: Sealed) -> None:
        self.append([sealed])

    def append(self, frames: Iterable[Sealed]) -> bool:
        """Write frames; False where the disk does not take them."""
        with self._lock:
            try:
                for sealed in frames:
                    file = self._open()
                    file.write(sealed.frame)
                    self._written += len(sealed.frame)
                    self._first = self._first or (self._path, self._written)
                if self._file is not None:
                    # To the operating system, not to the platter: survives the process, and costs 5 µs, not milliseconds.
                    self._file.flush()
                    self._whole = self._written
            except OSError as error:
                self._complain(error)
                self._abandon()
                return False
            return True

    def segments(self) -> list[Path]:
        """The segments of this recorder on disk, oldest first."""
        return segments_of(self.directory, self.name)

    def release(self) -> None:
        """Nothing more is written; whoever comes may deliver what is left."""
        with self._lock:
            self.close()
            if self._claim is not None:
                self._claim.release()

    def close(self) -> None:
        """End the current segment; the next frame begins another."""
        with self._lock:
            if self._file is not None:
                try:
                    self._file.close()
                except OSError as error:
                    self._complain(error)
                self._file = None

    def _open(self) -> BinaryIO:
        if self._file is not None and self._written >= self.segment:
            self._file.flush()
            self._whole = self._written
            self.close()
        if self._file is None:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._claim is not None:
                self._claim.take()
            self._make_room()
            self._path = self.directory / f"{self.name}-{self._number:05d}{SUFFIX}"
            self._number += 1
            self._written = self._whole = 0
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(descriptor, "wb")
            self._file.write(FILE_MAGIC)
            self._written = len(FILE_MAGIC)
        return self._file

    def _make_room(self) -> None:
        counted = find(self.directory, f"*{SUFFIX}") if self._claim is not None else self.segments()
        found = [(_stat(path), path) for path in counted]
        size = sum(length for (_, length), _ in found)
        # The oldest first; segments of the same moment by their number.
        for (_, length), path in sorted(found):
            if size + self.segment <= self.limit:
                break
            size -= length - self._give_up(path)

    def _give_up(self, path: Path) -> int:
        """Remove a segment, but not the very first frame unless it is too large; returns the bytes that stay."""
        first, end = self._first or (None, 0)
        try:
            if path == first and end <= self.segment:
                os.truncate(path, end)
                return end
            path.unlink()
        except FileNotFoundError:
            # The sender was faster.
            pass
        return 0

    def _abandon(self) -> None:
        """A frame may have been written in part: cut it off again, and leave no segment without a frame behind."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError:
            pass
        try:
            if self._whole > len(FILE_MAGIC):
                os.truncate(self._path, self._whole)
            else:
                self._path.unlink(missing_ok=True)
                if self._first is not None and self._first[0] == self._path:
                    self._first = None
        except OSError:
            pass

    def _complain(self, error: OSError) -> None:
        if not self.failed:
            logger.warning("daskscope: cannot write to %s (%s); recording goes on in memory.", self.directory, error)
        self.failed = str(error)


def _stat(path: Path) -> tuple[int, int]:
    """When a segment was written last, and its size; nothing where another thread has removed it meanwhile."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size

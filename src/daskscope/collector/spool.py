"""Frames on disk, in segments that are recordings themselves.

A recording directory and the spool of a server that is away are the same thing: files of whole frames, the oldest given up when
they exceed a limit. Each can be opened with ``daskscope show``, and a directory of them too.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from ..wire.layout import FILE_MAGIC
from .outbox import Sealed

logger = logging.getLogger("daskscope")

SEGMENT = 4 * 1024 * 1024
SUFFIX = ".daskscope"


class Spool:
    """Appends frames to segment files below a byte limit. A full disk costs data and one log line, nothing else."""

    def __init__(self, directory: str | Path, name: str, limit: int, segment: int = SEGMENT) -> None:
        self.directory = Path(directory)
        self.name = name
        self.limit = limit
        self.segment = min(segment, max(limit // 4, 1))
        self.dropped_segments = 0
        self.failed = ""
        # The writer thread spools what overflows while the sender thread catches up.
        self._lock = threading.RLock()
        self._file: BinaryIO | None = None
        self._number = 0
        self._written = 0

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
                if self._file is not None:
                    # To the operating system, not to the platter: survives the process, and costs 5 µs, not milliseconds.
                    self._file.flush()
            except OSError as error:
                self._complain(error)
                self._abandon()
                return False
            return True

    def segments(self) -> list[Path]:
        """The segments of this recorder on disk, oldest first."""
        try:
            return sorted(self.directory.glob(f"{self.name}-*{SUFFIX}"))
        except OSError:
            return []

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
            self.close()
        if self._file is None:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room()
            path = self.directory / f"{self.name}-{self._number:05d}{SUFFIX}"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(descriptor, "wb")
            self._number += 1
            self._file.write(FILE_MAGIC)
            self._written = len(FILE_MAGIC)
        return self._file

    def _make_room(self) -> None:
        mine = self.segments()
        size = sum(path.stat().st_size for path in mine)
        while mine and size + self.segment > self.limit:
            oldest = mine.pop(0)
            size -= oldest.stat().st_size
            oldest.unlink()
            self.dropped_segments += 1

    def _abandon(self) -> None:
        """A frame may have been written in part: end the segment there, readers stop at the last whole one."""
        try:
            if self._file is not None:
                self._file.close()
        except OSError:
            pass
        self._file = None

    def _complain(self, error: OSError) -> None:
        if not self.failed:
            logger.warning("daskscope: cannot write to %s (%s); recording goes on in memory.", self.directory, error)
        self.failed = str(error)

"""Whose segments are whose, where recorders that come and go share a spool.

A recorder holds a lock file beside its segments. The lock is the operating system's: it goes when the process goes,
however it goes, and unlike a process id it means the same in every container. The file says where the segments were meant
to go, and nobody adopts what was meant for another server. Where the system has no such locks (Windows), nothing is
claimed, and what is not claimed is never adopted.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Generator
from itertools import islice
from pathlib import Path

from ..wire.layout import FILE_MAGIC
from .segments import find, segments_of

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
#: Recorders that are adopted at most; whoever comes next goes on.
ADOPTED = 100


class Claim:
    """The lock of one recorder."""

    def __init__(self, directory: Path, name: str, destination: str) -> None:
        self.path = directory / f"{name}{LOCK}"
        self.destination = destination
        self._descriptor: int | None = None

    def take(self) -> None:
        """Claim what is written from now on. Where that is not possible, it is just not adopted later."""
        if self._descriptor is not None or fcntl is None:
            return
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:
            return
        try:
            # Not ``lockf``: its locks are one process's, and two clusters may run in one.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Only now: a file that says nothing yet belongs to somebody who is just coming, and is left alone.
            os.pwrite(descriptor, _mark(self.destination), 0)
            self._descriptor = descriptor
        except OSError:
            os.close(descriptor)

    def release(self) -> None:
        """Let others have what is left."""
        if self._descriptor is not None:
            _let_go(self.path, self._descriptor)
            self._descriptor = None


def leftovers(directory: Path, destination: str) -> Generator[Path, None, None]:
    """Segments for this destination whose recorders are gone, the oldest recorder's first, each recorder's in order.

    A recorder's lock is held until the next one's turn, so that two senders do not send the same.
    """
    locks = sorted(find(directory, f"*{LOCK}"), key=_written_ns)
    held = ((lock, descriptor) for lock in locks if (descriptor := _adopt(lock, destination)) is not None)
    for lock, descriptor in islice(held, ADOPTED):
        try:
            yield from filter(_is_ours, segments_of(directory, lock.name.removesuffix(LOCK)))
        finally:
            _let_go(lock, descriptor)


def _adopt(lock: Path, destination: str) -> int | None:
    """The lock of a recorder that is gone; None where it lives, sent to somewhere else, or is another user's."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        mark = _mark(destination)
        if _of_this_user(os.fstat(descriptor)) and os.pread(descriptor, len(mark) + 1, 0) == mark:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _let_go(lock: Path, descriptor: int) -> None:
    """The lock file goes with the last segment, and before the lock: nobody else deals with either in between."""
    try:
        if not segments_of(lock.parent, lock.name.removesuffix(LOCK)):
            lock.unlink(missing_ok=True)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _is_ours(path: Path) -> bool:
    """Whether this user and this format wrote a segment: anybody may put a file into a directory for temporary ones."""
    try:
        with path.open("rb") as file:
            return _of_this_user(path.lstat()) and file.read(len(FILE_MAGIC)) == FILE_MAGIC
    except OSError:
        return False


def _of_this_user(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _mark(destination: str) -> bytes:
    """A digest, because an address may hold a password."""
    return hashlib.sha256(destination.encode()).hexdigest().encode()

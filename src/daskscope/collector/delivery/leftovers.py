"""Find the segments of recorders that ended before they could send them.

Recorders of one user share a spool directory. Each holds a lock while it runs. Once the lock is free, another recorder that sends
to the same server delivers what is left.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from ...wire.layout import FILE_MAGIC
from .private_directory import check_private

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".daskscope"
LOCK = ".lock"
#: The file with the reason why a server refused the segments of a recorder.
REFUSED = ".refused"
MAX_REASON = 500
#: Earlier recorders whose segments one sender sends; the next recorder on this host sends the rest.
MAX_ADOPTED = 100


class SpoolLock:
    """The lock file of one running recorder."""

    def __init__(self, directory: Path, name: str, destination: str) -> None:
        self.path = directory / f"{name}{LOCK}"
        self.destination = destination
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Lock this recorder's segments. If that fails, no later recorder will send them, but writing continues."""
        if self._descriptor is not None or fcntl is None:
            return
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:
            return
        try:
            # Not ``lockf``: its locks belong to the process, and two clusters may run in one process.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Write after locking: others ignore an empty lock file, because its recorder is just starting.
            os.pwrite(descriptor, _mark(self.destination), 0)
            self._descriptor = descriptor
        except OSError:
            os.close(descriptor)

    def release(self) -> None:
        """Unlock the remaining segments for other recorders."""
        if self._descriptor is not None:
            name = self.path.name.removesuffix(LOCK)
            _release(self.path, tuple(find_files(self.path.parent, f"{name}-*{SUFFIX}")), self._descriptor)
            self._descriptor = None


@dataclass(frozen=True)
class Leftover:
    """What one recorder left: its lock file and its segments, in order."""

    lock: Path
    segments: tuple[Path, ...]

    @property
    def cluster(self) -> str:
        # The lock is named after the cluster and the epoch.
        return self.lock.name.removesuffix(LOCK).rpartition("-")[0]

    @property
    def nbytes(self) -> int:
        return sum(path.stat().st_size for path in self.segments if path.exists())

    @property
    def refusal(self) -> str:
        """Why the server refused it; empty if it was not tried."""
        try:
            return _refusal_file(self.lock).read_text(errors="replace")[:MAX_REASON]
        except OSError:
            return ""


def cluster_of(segment: Path) -> str:
    """Return the cluster of a segment, from its name."""
    return segment.name.removesuffix(SUFFIX).rpartition("-")[0].rpartition("-")[0]


def note_refusal(segment: Path, reason: str) -> None:
    """Write down why the server refused a segment, for those who ask what still waits."""
    lock = segment.with_name(segment.name.removesuffix(SUFFIX).rpartition("-")[0] + LOCK)
    try:
        _refusal_file(lock).write_text(reason[:MAX_REASON])
    except OSError:
        pass


def find_leftovers(directory: Path, destination: str) -> list[Leftover]:
    """Return the leftovers of ended recorders for this destination, oldest first. They are not locked: others may take them."""
    found = []
    for leftover in _all(directory):
        descriptor = _adopt(leftover.lock, destination)
        if descriptor is not None:
            os.close(descriptor)
            found.append(leftover)
    return found


def leftovers(directory: Path, destination: str) -> Generator[Path, None, None]:
    """Yield the segments for this destination whose recorders have ended, oldest recorder first, each recorder's in order.

    A recorder's lock is held while its segments are sent, so that two senders do not send the same segment.
    """
    adopted = 0
    for leftover in _all(directory):
        if adopted >= MAX_ADOPTED:
            return
        descriptor = _adopt(leftover.lock, destination)
        if descriptor is None:
            continue
        adopted += bool(leftover.segments)
        try:
            yield from filter(_is_own_segment, leftover.segments)
        finally:
            _release(leftover.lock, leftover.segments, descriptor)


def _all(directory: Path) -> list[Leftover]:
    """Return the segments of all recorders with a lock file, the oldest recorder first. Lists the directory once."""
    try:
        check_private(directory)
    except OSError:
        return []
    segments: dict[str, list[Path]] = {}
    for path in find_files(directory, f"*{SUFFIX}"):
        segments.setdefault(path.name.removesuffix(SUFFIX).rpartition("-")[0], []).append(path)
    locks = sorted(find_files(directory, f"*{LOCK}"), key=_written_ns)
    return [Leftover(lock, tuple(segments.get(lock.name.removesuffix(LOCK), ()))) for lock in locks]


def find_files(directory: Path, pattern: str) -> list[Path]:
    try:
        return sorted(directory.glob(pattern))
    except OSError:
        return []


def _adopt(lock: Path, destination: str) -> int | None:
    """Lock an ended recorder's lock file; return None if it still runs, has another destination or belongs to another user."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        mark = _mark(destination)
        if _belongs_to_user(os.fstat(descriptor)) and os.pread(descriptor, len(mark) + 1, 0) == mark:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _release(lock: Path, segments: tuple[Path, ...], descriptor: int) -> None:
    """Release a lock, and delete its file if no segment is left; delete it first, so that no other recorder can lock it."""
    try:
        if not any(path.exists() for path in segments):
            _refusal_file(lock).unlink(missing_ok=True)
            lock.unlink(missing_ok=True)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _refusal_file(lock: Path) -> Path:
    return lock.with_suffix(REFUSED)


def _is_own_segment(path: Path) -> bool:
    """Return whether this user wrote the segment in this format: any user can put a file into a temp directory."""
    try:
        with path.open("rb") as file:
            return _belongs_to_user(path.lstat()) and file.read(len(FILE_MAGIC)) == FILE_MAGIC
    except OSError:
        return False


def _belongs_to_user(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _mark(destination: str) -> bytes:
    """Return the content of a lock file: a digest of the destination, because a URL may contain a password."""
    return hashlib.sha256(destination.encode()).hexdigest().encode()

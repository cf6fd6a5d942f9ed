"""What is wrong around a server, told to whoever asks without hosts, users or paths; the log has those."""

from __future__ import annotations

from daskscope.storage.blobs import StoreAway
from daskscope.storage.database import DatabaseError
from daskscope.storage.database import in_our_words as of_database


def in_our_words(error: BaseException) -> str:
    if isinstance(error, DatabaseError):
        return of_database(error)
    if isinstance(error, StoreAway):
        return "the object store cannot be used"
    if isinstance(error, OSError):
        # What the system calls it ("No space left on device") says nothing about where.
        return f"the disk cannot be used: {error.strerror}" if error.strerror else "the disk cannot be used"
    return "it failed; the server's log says why"

"""Errors of processes that do one job for the server: described in their result, and raised again in the server."""

from __future__ import annotations

from typing import Literal

from daskscope.errors import DaskscopeError
from daskscope.server.rendering import NoSuchComputation
from daskscope.storage.blobs import StoreAway
from daskscope.storage.database import DatabaseError, InvalidInput, StorageError, detail_of

JobError = Literal["memory", "no computation", "refused", "storage", "failed"]
#: Threads and libraries that cannot start say only in words that there is no memory.
NO_MEMORY = ("can't start new thread", "Cannot allocate memory")


def describe_error(error: Exception) -> tuple[JobError, str]:
    """Return the kind and the message of an error that ended a job."""
    if isinstance(error, MemoryError):
        return "memory", ""
    if isinstance(error, NoSuchComputation):
        return "no computation", ""
    if isinstance(error, InvalidInput):
        return "refused", str(error)
    if isinstance(error, DatabaseError | StorageError | OSError):
        return "storage", detail_of(error)
    if isinstance(error, DaskscopeError):
        return "refused", str(error)
    return "memory" if any(part in str(error) for part in NO_MEMORY) else "failed", repr(error)


def raise_again(kind: str, detail: str) -> None:
    """Raise an error that every caller handles alike; return for those that say something about the job."""
    if kind == "no computation":
        raise NoSuchComputation
    if kind == "refused":
        raise InvalidInput(detail)
    if kind == "storage":
        raise StoreAway(detail)

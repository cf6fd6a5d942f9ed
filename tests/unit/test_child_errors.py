"""An error of a process that does one job is raised again in the server."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from daskscope.errors import RecordingError
from daskscope.server.processes.job import (
    JobError,
    JobFailed,
    Reply,
    TooLarge,
    Unreadable,
    describe_error,
    raise_again,
)
from daskscope.storage.base.blobs import StoreAway
from daskscope.storage.base.database import InvalidInput, StorageError
from daskscope.storage.catalog.computations import NoSuchComputation


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (MemoryError(), "memory", "it takes too much memory"),
        (RuntimeError("can't start new thread"), "memory", 'RuntimeError("can\'t start new thread")'),
        (NoSuchComputation(), "no computation", ""),
        (TooLarge("a million tasks"), "too large", "a million tasks"),
        (Unreadable("no file"), "unreadable", "no file"),
        (InvalidInput("too long"), "refused", "too long"),
        (RecordingError("cut off"), "refused", "cut off"),
        (StorageError("a key is missing"), "storage", "a key is missing"),
        (StoreAway("S3 is away"), "away", "S3 is away"),
        (ValueError("odd"), "failed", "ValueError('odd')"),
    ],
)
def test_an_error_is_described(error: Exception, kind: str, detail: str) -> None:
    assert describe_error(error) == (kind, detail)


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "No such file"), sa.exc.OperationalError("x", {}, OSError("y"))]
)
def test_errors_of_the_disk_and_the_database_are_those_of_the_storage(error: Exception) -> None:
    assert describe_error(error)[0] == "storage"


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        ("no computation", NoSuchComputation, "^$"),
        ("too large", TooLarge, "why"),
        ("unreadable", Unreadable, "why"),
        ("refused", InvalidInput, "why"),
        ("away", StoreAway, "why"),
        ("storage", StoreAway, "why"),
        ("stopped", JobFailed, "The server is shutting down"),
        # The detail is for the log.
        ("failed", JobFailed, r"^This cannot be done\. The server's log says why\.$"),
    ],
)
def test_an_error_is_raised_again(error: JobError, raised: type[Exception], message: str) -> None:
    with pytest.raises(raised, match=message):
        raise_again(Reply[int](error=error, detail="why"), "this cannot be done")


@pytest.mark.parametrize("error", [None, "memory", "lost"])
def test_other_errors_are_for_the_caller(error: JobError | None) -> None:
    raise_again(Reply[int](error=error, detail="why"), "this cannot be done")

"""An error of a process that does one job is raised again in the server."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from daskscope.errors import RecordingError
from daskscope.server.rendering import NoSuchComputation, describe_error, raise_again
from daskscope.storage.base.blobs import StoreAway
from daskscope.storage.base.database import InvalidInput, StorageError


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (MemoryError(), "memory", ""),
        (RuntimeError("can't start new thread"), "memory", 'RuntimeError("can\'t start new thread")'),
        (NoSuchComputation(), "no computation", ""),
        (InvalidInput("too long"), "refused", "too long"),
        (RecordingError("cut off"), "refused", "cut off"),
        (StorageError("a key is missing"), "storage", "a key is missing"),
        (StoreAway("S3 is away"), "storage", "S3 is away"),
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
    ("kind", "raised"), [("no computation", NoSuchComputation), ("refused", InvalidInput), ("storage", StoreAway)]
)
def test_an_error_is_raised_again(kind: str, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        raise_again(kind, "why")


@pytest.mark.parametrize("kind", ["", "built", "memory", "too large", "failed", "lost"])
def test_other_kinds_are_for_the_caller(kind: str) -> None:
    raise_again(kind, "why")

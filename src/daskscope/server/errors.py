"""Error responses: ``{"error": {"code": …, "message": …}}``, with the next step in the message."""

from __future__ import annotations

from typing import Any

from daskscope.storage.base.archive import ClockJump
from daskscope.storage.base.blobs import StoreAway
from daskscope.storage.base.database import DatabaseError, database_problem
from daskscope.storage.doctor import LostFiles


class Refusal(Exception):
    """A request that gets an error response."""

    def __init__(self, status: int, code: str, message: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": str(self)}}


def bad_request(message: str) -> Refusal:
    return Refusal(400, "bad_request", message)


def not_found(what: str, hint: str = "It may have been deleted, or you do not have access.") -> Refusal:
    # The same for what does not exist and for what belongs to another account, so that neither can be told.
    return Refusal(404, "not_found", f"No {what}. {hint}")


def forbidden(message: str) -> Refusal:
    return Refusal(403, "forbidden", message)


def unauthorized(message: str) -> Refusal:
    return Refusal(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})


def secret_needed(reason: str) -> Refusal:
    """Return the response to a caller without the secret of a server without sign-in."""
    return Refusal(
        401, "secret_needed", f"{reason} Open the URL that daskscope serve printed, which contains the secret; programs of other "
        "users need that URL in DASK_DASKSCOPE__SERVER. The secret is also in local.secret in the server's data directory.",
        headers={"WWW-Authenticate": "Bearer"},
    )  # fmt: skip


def conflict(message: str) -> Refusal:
    return Refusal(409, "conflict", message)


def too_large(message: str) -> Refusal:
    return Refusal(413, "too_large", message)


def too_many(message: str, retry_after: float) -> Refusal:
    return Refusal(429, "too_many", message, headers={"Retry-After": str(max(1, round(retry_after)))})


def unavailable(message: str, retry_after: float = 5) -> Refusal:
    return Refusal(503, "unavailable", message, headers={"Retry-After": str(max(1, round(retry_after)))})


def public_message(error: BaseException) -> str:
    if isinstance(error, DatabaseError):
        return database_problem(error)
    if isinstance(error, StoreAway):
        return "the object store cannot be used"
    if isinstance(error, ClockJump | LostFiles):
        return str(error)
    if isinstance(error, OSError):
        # The system's name for it ("No space left on device") does not contain a path.
        return f"the disk cannot be used: {error.strerror}" if error.strerror else "the disk cannot be used"
    return "it failed; see the server's log"

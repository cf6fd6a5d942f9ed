"""The one shape of an error: ``{"error": {"code": …, "message": …}}``, with what to do next in the message."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, code: str, message: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": str(self)}}


def bad_request(message: str) -> Refusal:
    return Refusal(400, "bad_request", message)


def not_found(what: str) -> Refusal:
    # The same for what does not exist and for what belongs to somebody else: neither is anybody's business.
    return Refusal(404, "not_found", f"There is no {what} here, or it is not yours to see.")


def forbidden(message: str) -> Refusal:
    return Refusal(403, "forbidden", message)


def unauthorized(message: str) -> Refusal:
    return Refusal(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})


def conflict(message: str) -> Refusal:
    return Refusal(409, "conflict", message)


def too_large(message: str) -> Refusal:
    return Refusal(413, "too_large", message)


def too_many(message: str, retry_after: float) -> Refusal:
    return Refusal(429, "too_many", message, headers={"Retry-After": str(max(1, round(retry_after)))})


def unavailable(message: str, retry_after: float = 5) -> Refusal:
    return Refusal(503, "unavailable", message, headers={"Retry-After": str(max(1, round(retry_after)))})

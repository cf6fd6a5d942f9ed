"""Post bodies to the ingest route of a server, and classify its replies."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from ...wire.layout import MAGIC, PREFIX
from .outbox import Sealed

#: How long to wait for a connection, and for the reply. A server answers within 45 s even if its database hangs: a recorder that
#: gives up before sends the same body again while the server still stores the first one.
CONNECT_TIMEOUT, TIMEOUT = 10.0, 60.0
#: Bytes of a reply that are read. Replies of a daskscope server are shorter.
MAX_REPLY = 4_000
#: Header of a reply with how much the server accepts in one request.
LIMITS = "Daskscope-Limits"
#: Header of a reply with how often to post.
PACE = "Daskscope-Pace"

#: Codes of errors that concern the recorder and not this body. Sending again soon is useless.
REFUSALS = frozenset(
    ("unauthorized", "forbidden", "other_account", "no_account", "not_found", "method_not_allowed", "newer_format")
)
#: Codes of errors that concern this body: it has too much, or one of its frames is invalid.
BODY_ERRORS = frozenset(("too_large", "bad_request"))


@dataclass(frozen=True)
class StackRequest:
    """A user asks for the current stacks of a cluster: of one worker, or of all if it is empty."""

    cluster: str
    #: When the user asked, in microseconds on the server's clock.
    request: int
    worker: str


@dataclass(frozen=True)
class ServerReply:
    """The server's reply to a post; status 0 if there was none."""

    status: int
    retry_after: float = 0.0
    reason: str = ""
    #: The code of an error response of daskscope's API; empty for any other response, for example a proxy's page.
    code: str = ""
    #: How much the server accepts in one request; empty if it does not say.
    limits: str = ""
    #: How often to post, as the server says; empty if it does not.
    pace: str = ""

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """The text of an error of daskscope's API, or the beginning of any other reply."""
        try:
            return str(json.loads(self.reason)["error"]["message"])[:300]
        except (ValueError, KeyError, TypeError):
            return self.reason[:300]

    @property
    def asks_to_close(self) -> bool:
        """Whether a user asked the server to shut this cluster down."""
        return self.is_accepted and '"close":true' in self.reason

    @property
    def asked_stacks(self) -> StackRequest | None:
        """The request of a user for the current stacks, if there is one."""
        if not self.is_accepted or '"stacks":' not in self.reason:
            return None
        try:
            asked = json.loads(self.reason)["stacks"]
            return StackRequest(str(asked["cluster"]), int(asked["request"]), str(asked["worker"]))
        except (ValueError, KeyError, TypeError):
            return None

    @property
    def is_refused(self) -> bool:
        """Whether a daskscope server refuses this recorder.

        Only its own error code counts: a proxy answers 404 or 401 for a few seconds while the server behind it is redeployed.
        """
        return 400 <= self.status < 500 and self.code in REFUSALS

    @property
    def is_body_error(self) -> bool:
        """Whether a daskscope server refuses this body, but may accept parts of it."""
        return 400 <= self.status < 500 and self.code in BODY_ERRORS


Post = Callable[[bytes], ServerReply]


def poster(url: str, token: str, timeout: float | None = None) -> Post:
    """Return a function that posts bodies to the ingest route of the server at ``url`` over one connection."""
    reply_s = TIMEOUT if timeout is None else timeout
    parts = urlsplit(url)
    host, port, path = parts.hostname or "", parts.port, parts.path.rstrip("/") + "/api/v1/ingest"
    headers = {"Content-Type": "application/vnd.daskscope.frames", "Authorization": f"Bearer {token}"}
    kept: list[http.client.HTTPConnection] = []

    def connect() -> http.client.HTTPConnection:
        # Runs on the sender's thread: loading the certificates takes tens of milliseconds.
        if parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=min(reply_s, CONNECT_TIMEOUT), context=context)
        return http.client.HTTPConnection(host, port, timeout=min(reply_s, CONNECT_TIMEOUT))

    def attempt(connection: http.client.HTTPConnection, body: bytes) -> ServerReply:
        if connection.sock is None:
            connection.connect()
            cast("socket.socket", connection.sock).settimeout(reply_s)
        # The scheduler's clock, so that the server can compute the offset to its own.
        connection.request("POST", path, body, {**headers, "Daskscope-Sent-Us": str(time.time_ns() // 1000)})
        response = connection.getresponse()
        text = response.read(MAX_REPLY)
        if response.isclosed():
            kept.append(connection)
        else:
            # The unread rest of a long reply would be read as the next reply.
            connection.close()
        return ServerReply(
            response.status,
            _seconds(response.getheader("Retry-After")),
            text.decode("utf-8", "replace"),
            error_code(text),
            response.getheader(LIMITS) or "",
            response.getheader(PACE) or "",
        )

    def post(body: bytes) -> ServerReply:
        while True:
            reused = bool(kept)
            connection = kept.pop() if kept else connect()
            try:
                return attempt(connection, body)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # Servers close idle connections, which is not an outage: retry with a new one.
                if not reused or isinstance(error, TimeoutError):
                    return ServerReply(0, reason=repr(error))

    return post


def error_code(text: bytes) -> str:
    """Return the code of an error response of daskscope's API; empty for any other text."""
    if not text.startswith(b'{"error"'):
        return ""
    try:
        code = json.loads(text)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return ""
    return code if isinstance(code, str) else ""


def _seconds(value: str | None) -> float:
    try:
        return min(float(value or 0), 300.0)
    except ValueError:
        return 0.0


#: The frames of one request.
Body = list[Sealed]


@dataclass(frozen=True)
class BodyLimits:
    """How much to send in one request. The defaults are below the limits of every server."""

    #: Proxies commonly refuse bodies above 1 MB.
    nbytes: int = 900_000
    frames: int = 1_000
    rows: int = 250_000


DEFAULT = BodyLimits()
#: How a server names its limits.
NAMES = {"bytes": "nbytes", "frames": "frames", "rows": "rows"}


def limits_of(header: str) -> BodyLimits:
    """Return the limits of a server from a header like ``bytes=2097152, frames=2000``, or the defaults where they are lower.

    A server also limits the characters of a body, which a sender does not know: texts are compressed.
    """
    given = {}
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name in NAMES and value.isascii() and value.isdigit():
            given[NAMES[name]] = max(1, min(int(value[:18]), getattr(DEFAULT, NAMES[name])))
    return BodyLimits(**given)


def fitting(frames: Iterable[Sealed], limits: BodyLimits) -> Body:
    """Return the first frames that fit into one body, at least one if there is any."""
    body: Body = []
    nbytes = rows = 0
    for sealed in frames:
        nbytes, rows = nbytes + len(sealed.frame), rows + sealed.rows
        if body and (nbytes > limits.nbytes or rows > limits.rows or len(body) >= limits.frames):
            break
        body.append(sealed)
    return body


def grouped(frames: list[Sealed], limits: BodyLimits) -> list[Body]:
    """Return all frames, in order, as bodies that fit."""
    bodies: list[Body] = []
    start = 0
    while start < len(frames):
        bodies.append(fitting(frames[start : start + limits.frames], limits))
        start += len(bodies[-1])
    return bodies


def halves(body: Body) -> list[Body]:
    """Return the two halves of a body of at least two frames."""
    middle = len(body) // 2
    return [body[:middle], body[middle:]]


def frames_of(data: bytes) -> Iterator[Sealed]:
    """Yield the frames of a segment's bytes, up to the first that is cut off or damaged."""
    offset = 0
    while offset + PREFIX.size <= len(data):
        magic, header_size, body_size, _ = PREFIX.unpack_from(data, offset)
        end = offset + PREFIX.size + header_size + body_size
        if magic != MAGIC or end > len(data):
            return
        try:
            header = json.loads(data[offset + PREFIX.size : offset + PREFIX.size + header_size])
            sealed = Sealed(int(header["sequence"]), str(header["table"]), int(header["rows"]), data[offset:end])
        except (ValueError, KeyError, TypeError):
            return
        yield sealed
        offset = end

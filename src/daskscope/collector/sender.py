"""A thread that posts frames to a daskscope server, and keeps them on disk while the server is away.

One log line per outage, not per try. Retries back off with jitter, so that a thousand schedulers do not come back at once.
Nothing here can block the scheduler: it owns a bounded queue, and shutting down takes at most the time it is given.
"""

from __future__ import annotations

import http.client
import logging
import random
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ..wire.layout import FILE_MAGIC, PREFIX
from .outbox import FrameQueue, Sealed
from .spool import Spool

logger = logging.getLogger("daskscope")

#: Bodies stay under 1 MB: proxies commonly refuse more.
BODY_LIMIT = 900_000
FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0
TIMEOUT = 10.0


@dataclass(frozen=True)
class Answer:
    """What became of a post."""

    status: int
    retry_after: float = 0.0
    reason: str = ""

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def refused(self) -> bool:
        """Refused for good: sending the same again will not help."""
        return self.status in (400, 401, 403, 404, 405, 410, 413, 422)


Post = Callable[[bytes], Answer]


def poster(url: str, token: str, timeout: float = TIMEOUT) -> Post:
    """A function that posts bodies to the ingest route of the server at ``url`` over one connection."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/") + "/api/v1/ingest"
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    headers = {"Content-Type": "application/vnd.daskscope.frames", "Authorization": f"Bearer {token}"}

    def post(body: bytes) -> Answer:
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            text = response.read(2000)
            return Answer(response.status, _seconds(response.getheader("Retry-After")), text.decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return Answer(0, reason=repr(error))

    return post


class Sender:
    """Drains a queue to a server."""

    def __init__(
        self, post: Post, queue: FrameQueue, spool: Spool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.post = post
        self.queue = queue
        self.spool = spool
        self.clock = clock
        self.sent = 0
        self.away = False
        self.refused = ""
        self._stopping = threading.Event()
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._run, name="daskscope-sender", daemon=True)
        #: Whether segments may lie on disk that the server does not have.
        self.behind = False
        queue.overflow = self._spill

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Send what can be sent in time; the rest goes to disk, where the next recorder of this host finds it."""
        self._deadline = self.clock() + timeout * 0.8
        self._stopping.set()
        self.queue.arrived.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        rest = self.queue.take_all()
        if rest:
            self.spool.append(rest)
        self.spool.close()

    def _spill(self, frames: list[Sealed]) -> bool:
        self.behind = True
        return self.spool.append(frames)

    def _run(self) -> None:
        delay = FIRST_DELAY
        while not (self._stopping.is_set() and (not len(self.queue) or self.clock() >= self._deadline)):
            if not len(self.queue):
                self.queue.arrived.wait(1.0)
                self.queue.arrived.clear()
                continue
            frames = self.queue.peek(BODY_LIMIT)
            answer = self._send(b"".join(sealed.frame for sealed in frames))
            if answer.accepted:
                delay = FIRST_DELAY
                self._delivered(frames)
                if self.behind:
                    self._send_spooled()
                continue
            if answer.refused:
                self._give_up(answer)
                return
            wait = max(delay * random.uniform(0.5, 1.5), answer.retry_after)
            delay = min(2 * delay, LONGEST_DELAY)
            if self._stopping.wait(min(wait, max(0.0, self._deadline - self.clock()))) and self.away:
                return

    def _send(self, body: bytes) -> Answer:
        answer = self.post(body)
        if answer.accepted and self.away:
            self.away = False
            logger.info("daskscope: the server is back, catching up.")
        elif not answer.accepted and not answer.refused and not self.away:
            self.away = True
            logger.warning(
                "daskscope: the server does not answer (%s). Recording goes on; data is kept in memory and in %s until it is back.",
                answer.reason[:200] or answer.status,
                self.spool.directory,
            )
        return answer

    def _delivered(self, frames: list[Sealed]) -> None:
        self.sent += len(frames)
        self.queue.acknowledge(frames[-1].sequence)

    def _send_spooled(self) -> None:
        """Catch up on segments, oldest first; a segment is removed once all of it is accepted."""
        for path in self.spool.segments():
            if self._stopping.is_set() and self.clock() >= self._deadline:
                return
            self.spool.close()
            for body in spooled_bodies(path):
                if not self._send(body).accepted:
                    return
            path.unlink(missing_ok=True)
        self.behind = False

    def _give_up(self, answer: Answer) -> None:
        self.refused = f"{answer.status} {answer.reason[:200]}"
        logger.warning(
            "daskscope: the server refused the recording (%s). Nothing more is sent; recorded data is kept in %s. "
            "Check the token and call daskscope.analytics.register() again.",
            self.refused,
            self.spool.directory,
        )


def spooled_bodies(path: Path) -> list[bytes]:
    """The whole frames of a segment, in bodies the server takes."""
    data = path.read_bytes()[len(FILE_MAGIC) :]
    bodies: list[bytes] = []
    start = offset = 0
    while offset + PREFIX.size <= len(data):
        _, header, body, _ = PREFIX.unpack_from(data, offset)
        size = PREFIX.size + header + body
        if offset + size > len(data):
            break
        if offset > start and offset + size - start > BODY_LIMIT:
            bodies.append(data[start:offset])
            start = offset
        offset += size
    if offset > start:
        bodies.append(data[start:offset])
    return bodies


def _seconds(value: str | None) -> float:
    try:
        return min(float(value or 0), 300.0)
    except ValueError:
        return 0.0

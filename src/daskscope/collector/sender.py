"""A thread that posts frames to a daskscope server, and keeps them on disk while the server is away.

What recorders that are gone left there for the same server is sent as well, whenever there is nothing else to send.

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

from .claim import leftovers
from .outbox import FrameQueue, Sealed
from .segments import BODY_LIMIT, Segments
from .spool import Spool

logger = logging.getLogger("daskscope")

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
    def asks_to_close(self) -> bool:
        """Whether somebody asked, at the server, that this cluster be shut down."""
        return self.accepted and '"close":true' in self.reason

    @property
    def refused(self) -> bool:
        """Refused for good: sending the same again will not help."""
        return self.status in (400, 401, 403, 404, 405, 410, 413, 422)


Post = Callable[[bytes], Answer]


def poster(url: str, token: str, timeout: float = TIMEOUT) -> Post:
    """A function that posts bodies to the ingest route of the server at ``url`` over one connection."""
    parts = urlsplit(url)
    host, port, path = parts.hostname or "", parts.port, parts.path.rstrip("/") + "/api/v1/ingest"
    headers = {"Content-Type": "application/vnd.daskscope.frames", "Authorization": f"Bearer {token}"}
    kept: list[http.client.HTTPConnection] = []

    def connect() -> http.client.HTTPConnection:
        # On the sender's thread: loading the certificates takes tens of milliseconds.
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def attempt(connection: http.client.HTTPConnection, body: bytes) -> Answer:
        # By our clock, so that the server can tell how far it is from its own.
        connection.request("POST", path, body, {**headers, "Daskscope-Sent-Us": str(time.time_ns() // 1000)})
        response = connection.getresponse()
        text = response.read(2000)
        if response.isclosed():
            kept.append(connection)
        else:
            # The rest of a long answer would be taken for the next one.
            connection.close()
        return Answer(response.status, _seconds(response.getheader("Retry-After")), text.decode("utf-8", "replace"))

    def post(body: bytes) -> Answer:
        while True:
            reused = bool(kept)
            connection = kept.pop() if kept else connect()
            try:
                return attempt(connection, body)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # A server closes a connection that was idle for long: that is no outage, a new one may do.
                if not reused or isinstance(error, TimeoutError):
                    return Answer(0, reason=repr(error))

    return post


class Sender:
    """Drains a queue to a server: what is under way first, then what lies on disk, then the queue.

    So frames stay in order. Last comes what others left, which no order binds to ours.
    """

    def __init__(
        self,
        post: Post,
        queue: FrameQueue,
        spool: Spool,
        clock: Callable[[], float] = time.monotonic,
        first_delay: float = FIRST_DELAY,
    ) -> None:
        self.post = post
        self.queue = queue
        self.spool = spool
        self.clock = clock
        self.first_delay = first_delay
        self.sent = 0
        self.away = False
        self.refused = ""
        self._stopping = threading.Event()
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._run, name="daskscope-sender", daemon=True)
        #: Frames taken from the queue that the server has not accepted yet.
        self._flying: list[Sealed] = []
        #: Whether segments may lie on disk that the server does not have.
        self.behind = False
        self._own = Segments(self._oldest)
        self._left = leftovers(spool.directory, spool.destination)
        self._others = Segments(lambda: next(self._left, None))
        #: Where the body under way comes from, None where from the queue.
        self._source: Segments | None = None
        #: Called, on our thread, when somebody asked at the server that this cluster be shut down.
        self.on_close: Callable[[], None] = _nothing
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
        rest = self._flying + self.queue.take_all()
        if rest:
            self.spool.append(rest)
        self.spool.release()

    def _spill(self, frames: list[Sealed]) -> bool:
        """The queue is full. Called by it, under its lock."""
        spilled = self.spool.append(frames)
        self.behind = True
        return spilled

    def _run(self) -> None:
        try:
            self._drain()
        finally:
            # Here, because only this thread goes through them: what it did not get to is for others.
            self._left.close()

    def _drain(self) -> None:
        delay = self.first_delay
        while not (self._stopping.is_set() and self.clock() >= self._deadline):
            body = self._next()
            if body is None:
                if self._stopping.is_set():
                    return
                self.queue.arrived.wait(1.0)
                self.queue.arrived.clear()
                continue
            answer = self._send(body)
            if answer.accepted:
                delay = self.first_delay
                self._delivered()
                if answer.asks_to_close:
                    self.on_close()
                continue
            if answer.refused and self._source is self._others:
                # It takes ours, so something is wrong with these: nothing that would have to keep ours.
                self._others.skip()
                continue
            if answer.refused:
                self._give_up(answer)
                return
            wait = max(delay * random.uniform(0.5, 1.5), answer.retry_after)
            delay = min(2 * delay, LONGEST_DELAY)
            if self._stopping.wait(min(wait, max(0.0, self._deadline - self.clock()))) and self.away:
                return

    def _next(self) -> bytes | None:
        """What has to go next, None if there is nothing."""
        if not self._flying:
            spooled = self._own.body() if self.behind else None
            if spooled is not None:
                self._source = self._own
                return spooled
            frames = self.queue.take(BODY_LIMIT)
            if frames and self.behind:
                # Spilled while we took them: what lies on disk is older.
                self.queue.give_back(frames)
                return self._next()
            self._flying = frames
        self._source = None if self._flying else self._others
        return b"".join(sealed.frame for sealed in self._flying) if self._flying else self._leftover()

    def _oldest(self) -> Path | None:
        """The oldest of our own segments that the server does not have."""
        # In this order: what is spilled between the two lines is seen by one of them.
        self.behind = False
        segments = [path for path in self.spool.segments() if path not in self._own.stuck]
        if not segments:
            return None
        self.behind = True
        self.spool.close()
        return segments[0]

    def _leftover(self) -> bytes | None:
        """Something of others, but not on the way out.

        And not before the server has taken something of ours: what it refuses then is the fault of what they left.
        """
        return self._others.body() if self.sent and not self._stopping.is_set() else None

    def _send(self, body: bytes) -> Answer:
        try:
            answer = self.post(body)
        except Exception as error:  # noqa: BLE001 (the thread must live on; an odd token or URL raises ValueError)
            answer = Answer(0, reason=repr(error))
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

    def _delivered(self) -> None:
        """The server has what ``_next`` gave out; a segment is removed once all of it is accepted."""
        if self._flying:
            self.sent += len(self._flying)
            self._flying = []
            return
        assert self._source is not None
        self._source.delivered()

    def _give_up(self, answer: Answer) -> None:
        self.refused = f"{answer.status} {answer.reason[:200]}"
        logger.warning(
            "daskscope: the server refused the recording (%s). Nothing more is sent; recorded data is kept in %s. "
            "Check the token and call daskscope.analytics.register() again.",
            self.refused,
            self.spool.directory,
        )


def _nothing() -> None:
    """Nobody wants to know."""


def _seconds(value: str | None) -> float:
    try:
        return min(float(value or 0), 300.0)
    except ValueError:
        return 0.0

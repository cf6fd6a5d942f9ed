"""Send frames to a daskscope server from a thread, and keep them on disk until their post is due or the server is available.

Frames of all tables share a post. How often there is one depends on the cluster (``pace``). Frames that wait for their post are
moved to disk at once, so that the next recorder on this host can send them if this process is killed.

When there is nothing else to send, the thread also sends frames that earlier recorders left on disk for the same server.

The thread never gives up. It repeats a post that failed with growing, random delays, so that a thousand schedulers do not come
back at once. It asks a server that refuses the recorder (a revoked token, a newer format) again every few minutes. An outage or a
refusal is logged once, not per attempt. A body that the server refuses is sent in halves, until only the frame at fault is left
out.

Nothing here can block the scheduler: the queue is bounded, and so is the time to shut down.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

from .leftovers import cluster_of, leftovers, note_refusal
from .outbox import FrameQueue, Sealed
from .pace import URGENT, NoPace, Pace
from .poster import Body, BodyLimits, Post, ServerReply, StackRequest, fitting, halves, limits_of
from .spool import Segments, Spool

logger = logging.getLogger("daskscope")

FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0
#: How long to wait before asking a server again that refused the recorder.
REFUSED_DELAY = 300.0
#: How often to look for frames that other recorders left.
LEFTOVERS_S = 600.0


class Sender:
    """Sends a queue to a server: first the frames in flight, then those on disk, then the queue, so that frames stay in order.

    Frames that earlier recorders left come last; their order relative to this recorder's frames does not matter.
    """

    def __init__(
        self,
        post: Post,
        queue: FrameQueue,
        spool: Spool,
        clock: Callable[[], float] = time.monotonic,
        first_delay: float = FIRST_DELAY,
        refused_delay: float = REFUSED_DELAY,
        pace: Pace | None = None,
    ) -> None:
        self.post = post
        self.pace = pace or NoPace(clock)
        self.queue = queue
        self.spool = spool
        self.clock = clock
        self.first_delay = first_delay
        self.refused_delay = refused_delay
        self.limits = BodyLimits()
        self.sent = 0
        #: Rows of frames that the server did not accept even alone, by table.
        self.left_out: dict[str, int] = {}
        self.is_server_down = False
        #: Why the server refuses this recorder; empty while it does not.
        self.refusal = ""
        self._stopping = threading.Event()
        #: Ends a delay.
        self._wake = threading.Event()
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._run, name="daskscope-sender", daemon=True)
        #: Bodies of frames popped from the queue that the server has not accepted yet.
        self._in_flight: list[Body] = []
        #: Whether a post was due and not everything is sent yet.
        self._is_posting = False
        #: Whether this recorder may have segments on disk that the server does not have.
        self.has_spooled = False
        self._own = Segments(self._oldest_segment)
        self._left = leftovers(spool.directory, spool.destination)
        self._looked = clock()
        self._others = Segments(self._next_leftover)
        #: How to post what the recorders of other clusters left: a recorder's own token may be for its own cluster only.
        self.posts: dict[str, Post] = {}
        #: Clusters whose leftover data the server refused, so that it is logged once.
        self._refused_clusters: set[str] = set()
        #: Where the body in flight comes from; None for the queue.
        self._source: Segments | None = None
        #: Called on the sender's thread when a user asked the server to shut this cluster down.
        self.on_close: Callable[[], None] = _do_nothing
        #: Called on the sender's thread when a user asked the server for the current stacks; replies repeat a request.
        self.on_stacks: Callable[[StackRequest], None] = _do_nothing
        queue.overflow = self._spill

    def start(self) -> None:
        self._thread.start()

    def retry(self, post: Post | None = None) -> None:
        """Try again now instead of after the current delay; if the server refused the recorder, with ``post``."""
        if post is not None and self.refusal:
            self.post = post
        self._wake.set()

    def stop(self, timeout: float) -> None:
        """Send as much as possible in time; the rest goes to disk, where the next recorder on this host finds it."""
        self._deadline = self.clock() + timeout * 0.8
        self._stopping.set()
        self._wake.set()
        self.queue.arrived.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        rest = [sealed for body in self._in_flight for sealed in body] + self.queue.pop_all()
        if rest:
            self.spool.append(rest)
        self.spool.release()

    def _spill(self, frames: list[Sealed]) -> bool:
        """Move frames of the full queue to disk; return whether that worked. The queue calls this under its lock."""
        spilled = self.spool.append(frames)
        self.has_spooled = True
        return spilled

    def _run(self) -> None:
        try:
            while True:
                try:
                    self._drain()
                    return
                except Exception as error:  # noqa: BLE001 (the top of a thread, which must not end)
                    logger.warning("daskscope: sending failed and is repeated (%r)", error)
                if self._wait(LONGEST_DELAY):
                    return
        finally:
            # Close it on this thread, which is the one that iterates it; other recorders can then send the rest.
            self._left.close()

    def _drain(self) -> None:
        """Send until the recorder stops."""
        delay = self.first_delay
        while not (self._stopping.is_set() and self.clock() >= self._deadline):
            # Ask before looking: a recorder that stops meanwhile has frames that have just been moved to disk.
            is_last_look = self._stopping.is_set()
            body = self._next_body()
            if body is None:
                if is_last_look:
                    return
                # Wake at least once a second: the pace changes when the cluster begins to work.
                self.queue.arrived.wait(min(1.0, self.pace.remaining_s or 1.0))
                self.queue.arrived.clear()
                continue
            # What asked for this attempt must not end the delay after it.
            self._wake.clear()
            reply = self._send(body)
            if reply.is_accepted:
                delay = self.first_delay
                self._mark_delivered()
                if reply.asks_to_close:
                    self.on_close()
                asked = reply.asked_stacks
                if asked is not None:
                    self.on_stacks(asked)
                continue
            if reply.is_body_error:
                self._split(body, reply)
                continue
            if reply.is_refused and self._source is self._others:
                # The server accepts this recorder's frames, so this leftover segment is at fault: skip it and go on.
                self._note_leftover(reply)
                self._others.skip()
                continue
            if reply.is_refused:
                self._note_refusal(reply)
                wait = self.refused_delay * random.uniform(0.75, 1.25)
            else:
                if reply.status == 413 and len(body) > 1:
                    # A proxy with a lower limit than usual.
                    self._split(body, reply)
                wait = max(delay * random.uniform(0.5, 1.5), reply.retry_after)
                delay = min(2 * delay, LONGEST_DELAY)
            if self._wait(wait):
                return

    def _wait(self, seconds: float) -> bool:
        """Wait, and return whether the recorder stops meanwhile."""
        if not self._stopping.is_set():
            self._wake.wait(max(0.0, min(seconds, self._deadline - self.clock())))
            self._wake.clear()
        return self._stopping.is_set()

    def _next_body(self) -> Body | None:
        """Return the body to send next, or None if there is nothing to send yet."""
        if not self._in_flight:
            if self._is_early() and self._park():
                self._source = self._others
                return self._leftover_body()
            if self.has_spooled and not self._is_posting:
                # One body of what waited on disk and what arrived since.
                self._park()
            spooled = self._own.next_body(self.limits) if self.has_spooled or self._own.is_under_way else None
            if spooled is not None:
                self._source = self._own
                self._is_posting = True
                return spooled
            if self._is_posting and self.queue.size < self.limits.nbytes:
                # Everything that was due is sent. What arrived meanwhile waits for the next post.
                self._is_posting = False
                self.pace.note_post()
                if self._is_early():
                    return self._next_body()
            popped = self.queue.pop(self.limits.nbytes)
            frames = fitting(popped, self.limits)
            self.queue.put_back(popped[len(frames) :])
            if frames and self.has_spooled:
                # Frames were spilled meanwhile, and those on disk are older.
                self.queue.put_back(frames)
                return self._next_body()
            if not frames:
                self._source = self._others
                return self._leftover_body()
            self._in_flight = [frames]
            self._is_posting = True
        self._source = None
        return self._in_flight[0]

    def _is_early(self) -> bool:
        """Return whether new frames wait. A backlog is sent to its end, and a stopping recorder sends everything."""
        if self._stopping.is_set() or self._is_posting or self.queue.size >= self.limits.nbytes:
            return False
        if any(sealed.table in URGENT for sealed in self.queue.peek(self.limits.nbytes)):
            self.pace.note_urgent()
        return self.pace.remaining_s > 0

    def _park(self) -> bool:
        """Move the frames in memory to disk until they are due; return False if that is not possible."""
        frames = self.queue.pop_all()
        if not frames:
            return True
        is_parked = False
        try:
            is_parked = self.spool.append(frames)
        finally:
            if not is_parked:
                # Some may be on disk as well; the server drops duplicates.
                self.queue.put_back(frames)
        self.has_spooled = True
        return is_parked

    def _oldest_segment(self) -> Path | None:
        """Return this recorder's oldest segment that the server does not have."""
        # Reset the flag before listing, so that frames spilled in between are noticed.
        self.has_spooled = False
        segments: list[Path] | None = None
        try:
            segments = [path for path in self.spool.segments() if path not in self._own.stuck]
        finally:
            # Also after an error: frames that wait for their turn are only on disk.
            self.has_spooled |= segments is None or bool(segments)
        if not segments:
            return None
        self.spool.close()
        return segments[0]

    def _next_leftover(self) -> Path | None:
        """Return the next segment that another recorder left; look again for those that ended since."""
        found = next(self._left, None)
        if found is None and self.clock() - self._looked >= LEFTOVERS_S:
            self._look_again()
            found = next(self._left, None)
        return found

    def _look_again(self) -> None:
        self._looked = self.clock()
        self._left = leftovers(self.spool.directory, self.spool.destination)

    def _leftover_body(self) -> Body | None:
        """Return a body that an earlier recorder left, except while stopping.

        Only after the server accepted frames of this recorder: then a refusal must be the leftover body's fault.
        """
        return self._others.next_body(self.limits) if self.sent and not self._stopping.is_set() else None

    def _send(self, body: Body) -> ServerReply:
        try:
            is_leftover = self._source is self._others
            post = self.posts.get(cluster_of(self._others.path), self.post) if is_leftover else self.post
            reply = post(b"".join(sealed.frame for sealed in body))
        except Exception as error:  # noqa: BLE001 (an invalid token or URL raises ValueError)
            reply = ServerReply(0, reason=repr(error))
        if reply.limits:
            self.limits = limits_of(reply.limits)
        if reply.is_accepted:
            self.pace.note_reply(reply.pace)
            if self.is_server_down or self.refusal:
                logger.info("daskscope: the server is available again; sending the data recorded meanwhile.")
            self.is_server_down, self.refusal = False, ""
        elif not (reply.is_refused or reply.is_body_error or self.is_server_down):
            self.is_server_down = True
            logger.warning(
                "daskscope: the server is not available (%s). Recording continues; data is kept in memory and in %s meanwhile.",
                reply.reason[:200] or reply.status,
                self.spool.directory,
            )
        return reply

    def _mark_delivered(self) -> None:
        """Note that the server accepted the body in flight; a segment is removed once all its bodies are accepted."""
        if self._source is None:
            self.sent += len(self._in_flight.pop(0))
        else:
            delivered = self._source.mark_delivered()
            self.sent += delivered if self._source is self._own else 0

    def _split(self, body: Body, reply: ServerReply) -> None:
        """Send the body in halves from now on; leave out a frame that the server refuses even alone."""
        if len(body) > 1:
            if self._source is None:
                self._in_flight[:1] = halves(body)
            else:
                self._source.split()
            return
        (sealed,) = body
        self.left_out[sealed.table] = self.left_out.get(sealed.table, 0) + sealed.rows
        logger.warning(
            "daskscope: the server does not accept a batch of %d rows of %s (%s). The recording continues without them.",
            sealed.rows,
            sealed.table,
            reply.reason[:500],
        )
        if self._source is None:
            self._in_flight.pop(0)
        else:
            self._source.mark_delivered()

    def _note_leftover(self, reply: ServerReply) -> None:
        """Note why the server refuses what another recorder left."""
        cluster = cluster_of(self._others.path)
        note_refusal(self._others.path, f"{reply.status} {reply.message}")
        if cluster not in self._refused_clusters:
            self._refused_clusters.add(cluster)
            logger.warning(
                "daskscope: the server refuses the data of an earlier cluster, %s (%d %s). It stays in %s.",
                cluster,
                reply.status,
                reply.message,
                self.spool.directory,
            )

    def _note_refusal(self, reply: ServerReply) -> None:
        if not self.refusal:
            logger.warning(
                "daskscope: the server refuses the recording (%d %s). Recorded data is kept in %s and sent once the server accepts "
                "it. Check the token and call daskscope.analytics.register() again.",
                reply.status,
                reply.reason[:500],
                self.spool.directory,
            )
        self.refusal = f"{reply.status} {reply.reason[:500]}"


def _do_nothing(*_: object) -> None:
    """Default of ``on_close`` and ``on_stacks``."""

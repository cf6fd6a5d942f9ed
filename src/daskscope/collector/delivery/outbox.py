"""Number frames and hand them to every subscriber, each with a queue of limited size.

A subscriber that falls behind loses the oldest *raw* rows first (tasks, samples, profiles …); totals and errors are dropped
last. A loss needs no message: every frame carries the number of rows its table has had so far, and the first and the newest
frame of each table are never dropped, so a reader knows exactly how many rows are missing.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ...model.tables import TABLES
from ...wire.encode import Body, seal


@dataclass(frozen=True)
class Sealed:
    """A frame with its sequence number, table and number of rows."""

    sequence: int
    table: str
    rows: int
    frame: bytes


class SubscriberFailed(Exception):
    """The frame was made and numbered, but a subscriber raised an exception."""


class FrameQueue:
    """Frames that one subscriber has not acknowledged yet."""

    def __init__(self, limit: int, overflow: Callable[[list[Sealed]], bool] | None = None) -> None:
        self.limit = limit
        self.overflow = overflow
        self.size = 0
        self._frames: deque[Sealed] = deque()
        #: Sequence number of the first frame of each table ever put into this queue.
        self._first: dict[str, int] = {}
        self._lock = threading.Lock()
        self.arrived = threading.Event()

    def __len__(self) -> int:
        return len(self._frames)

    def put(self, sealed: Sealed) -> None:
        with self._lock:
            self._frames.append(sealed)
            self._first.setdefault(sealed.table, sealed.sequence)
            self.size += len(sealed.frame)
            if self.size > self.limit:
                self._shrink()
        self.arrived.set()

    def peek(self, limit: int) -> list[Sealed]:
        """Return the oldest frames: up to ``limit`` bytes, but at least one frame if there is any."""
        with self._lock:
            frames: list[Sealed] = []
            size = 0
            for sealed in self._frames:
                size += len(sealed.frame)
                if frames and size > limit:
                    break
                frames.append(sealed)
            return frames

    def pop(self, limit: int) -> list[Sealed]:
        """Remove and return the oldest frames, as ``peek`` does."""
        frames = self.peek(limit)
        if frames:
            self.acknowledge(frames[-1].sequence)
        return frames

    def put_back(self, frames: list[Sealed]) -> None:
        """Put popped frames back at the front."""
        with self._lock:
            self._frames.extendleft(reversed(frames))
            self.size += sum(len(sealed.frame) for sealed in frames)

    def acknowledge(self, sequence: int) -> None:
        """Remove the frames up to and including this sequence number."""
        with self._lock:
            while self._frames and self._frames[0].sequence <= sequence:
                self.size -= len(self._frames.popleft().frame)

    def pop_all(self) -> list[Sealed]:
        with self._lock:
            frames, self._frames, self.size = list(self._frames), deque(), 0
            return frames

    def _shrink(self) -> None:
        """Shrink to three quarters of the limit, by moving frames to the overflow or, if that fails, dropping them."""
        target = self.limit * 3 // 4
        excess: list[Sealed] = []
        size = self.size
        for sealed in self._frames:
            if size <= target:
                break
            excess.append(sealed)
            size -= len(sealed.frame)
        if self.overflow is not None and self.overflow(excess):
            for _ in excess:
                self.size -= len(self._frames.popleft().frame)
            return
        self._drop(target, raw=True)
        if self.size > 2 * self.limit:
            self._drop(self.limit, raw=False)

    def _drop(self, target: int, *, raw: bool) -> None:
        kept: deque[Sealed] = deque()
        # A reader detects a loss between two frames of a table, but not before its first or after its last frame.
        ends = {*self._first.values(), *{sealed.table: sealed.sequence for sealed in self._frames}.values()}
        for sealed in self._frames:
            droppable = (not raw or TABLES[sealed.table].raw) and sealed.sequence not in ends
            if self.size > target and droppable:
                self.size -= len(sealed.frame)
            else:
                kept.append(sealed)
        self._frames = kept


class Outbox:
    """Numbers frames and hands them to all subscribers."""

    def __init__(self, cluster: str, epoch: int) -> None:
        self.cluster = cluster
        self.epoch = epoch
        self.sequence = 0
        self.kept: dict[str, int] = {}
        self.dropped: dict[str, int] = {}
        self._subscribers: dict[str, Callable[[Sealed], None]] = {}
        self._lock = threading.Lock()

    def subscribe(self, name: str, put: Callable[[Sealed], None]) -> None:
        with self._lock:
            self._subscribers[name] = put

    def unsubscribe(self, name: str) -> None:
        with self._lock:
            self._subscribers.pop(name, None)

    def count_dropped(self, table: str, rows: int) -> None:
        """Count rows of a table that were dropped before they became a frame."""
        with self._lock:
            self.dropped[table] = self.dropped.get(table, 0) + rows

    def publish(self, body: Body) -> None:
        """Number a body and hand it to all subscribers. Only the encoder thread calls this, so frames stay in order.

        The lock is not held meanwhile: the event loop acquires it to count dropped rows, and a subscriber may wait for a disk.
        """
        kept = self.kept.get(body.table, 0) + body.rows
        with self._lock:
            dropped = self.dropped.get(body.table, 0)
            subscribers = list(self._subscribers.values())
        frame = seal(body, cluster=self.cluster, epoch=self.epoch, sequence=self.sequence, kept=kept, dropped=dropped)
        sealed = Sealed(self.sequence, body.table, body.rows, frame)
        self.kept[body.table] = kept
        self.sequence += 1
        failure: Exception | None = None
        for put in subscribers:
            try:
                put(sealed)
            except Exception as error:  # noqa: BLE001 (one subscriber must not cost the others their frame)
                failure = error
        if failure is not None:
            raise SubscriberFailed from failure

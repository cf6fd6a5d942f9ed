"""Turn columns into frames on a thread, so that the event loop never compresses anything.

The thread's queue is bounded. If it cannot keep up, the event loop does not wait: the job is refused and its rows count as
dropped.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ...model.tables import TABLES
from ...wire.encode import Body, encode_body
from .outbox import Outbox, SubscriberFailed

#: Jobs that may wait. A job has at most 5,000 executions (about 2 MB as lists), which limits memory to about 40 MB.
MAX_JOBS = 20

#: Bytes of workers' bodies that may wait.
MAX_FORWARD_BYTES = 32 * 1024 * 1024

#: Makes the columns of a job; called on the thread.
Columns = Callable[[], dict[str, Any]]

#: A table, its columns, its number of rows; or a body; or a barrier.
Job = tuple[str, Columns, int] | Body | threading.Event


class Encoder:
    """Encodes jobs in order and publishes them to the outbox."""

    def __init__(self, outbox: Outbox, on_error: Callable[[str, BaseException], None]) -> None:
        self.outbox = outbox
        self.on_error = on_error
        self._jobs: deque[Job] = deque()
        self._forwarding = 0
        #: Jobs to encode. Bodies that are only forwarded have their own limit.
        self._encoding = 0
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="daskscope-encoder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def write(self, table: str, columns: Columns, rows: int) -> None:
        """Queue columns for encoding. If too many jobs wait, raw rows are dropped; totals and errors only at twice that number."""
        limit = MAX_JOBS if TABLES[table].raw else 2 * MAX_JOBS
        if self._encoding >= limit or self._stopping:
            self.outbox.count_dropped(table, rows)
            return
        with self._lock:
            self._encoding += 1
        self._jobs.append((table, columns, rows))
        self._ready.set()

    def forward(self, body: Body) -> None:
        """Queue a body that a worker has encoded."""
        if self._forwarding + len(body.data) > MAX_FORWARD_BYTES or len(self._jobs) >= 50 * MAX_JOBS or self._stopping:
            self.outbox.count_dropped(body.table, body.rows)
            return
        with self._lock:
            self._forwarding += len(body.data)
        self._jobs.append(body)
        self._ready.set()

    def barrier(self) -> threading.Event:
        """Return an event that is set once everything queued before it is published."""
        reached = threading.Event()
        if not self._thread.is_alive():
            reached.set()
            return reached
        self._jobs.append(reached)
        self._ready.set()
        return reached

    def stop(self, timeout: float) -> None:
        """Finish the waiting jobs and end the thread; return after ``timeout`` seconds at the latest."""
        self._stopping = True
        self._ready.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            self._ready.wait()
            self._ready.clear()
            while self._jobs:
                self._do(self._jobs.popleft())
            if self._stopping:
                return

    def _do(self, job: Job) -> None:
        try:
            if isinstance(job, threading.Event):
                job.set()
            elif isinstance(job, Body):
                with self._lock:
                    self._forwarding -= len(job.data)
                self._publish(job.table, job.rows, lambda: job)
            else:
                table, columns, rows = job
                with self._lock:
                    self._encoding -= 1
                self._publish(table, rows, lambda: encode_body(table, columns()))
        except Exception as error:  # noqa: BLE001 (the top of a thread; the guard counts and reports it)
            try:
                self.on_error("encoding", error)
            except Exception:  # noqa: BLE001 (strict mode re-raises, which must not end the thread)
                pass

    def _publish(self, table: str, rows: int, make: Callable[[], Body]) -> None:
        try:
            self.outbox.publish(make())
        except SubscriberFailed:
            raise
        except Exception:
            self.outbox.count_dropped(table, rows)
            raise

"""The one thread that writes batches: whatever waits is committed together.

A commit costs one flush of the disk, whether it holds one batch or fifty. While one runs, requests queue up; the next takes
them all. A request is answered when its batches are durable, not before.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from daskscope.server.counters import Counters
from daskscope.server.trouble import in_our_words
from daskscope.storage.database import Database, detail_of, is_outage
from daskscope.storage.ingest import Batch, take
from daskscope.storage.vault import Vault

logger = logging.getLogger("daskscope.server")

#: Bytes of one transaction: what is beyond it waits for the next.
GROUP_NBYTES = 16 * 1024 * 1024
#: Requests, and bytes of them, that may wait. Beyond it the server says so at once instead of filling its memory.
MOST_WAITING = 512
MOST_WAITING_NBYTES = 256 * 1024 * 1024


class Overloaded(Exception):
    """More is sent than can be written."""


class StorageAway(Exception):
    """The database does not take anything at the moment; why is in the text."""


@dataclass(frozen=True)
class Taken:
    """What became of one request's batches."""

    fresh: int
    duplicates: int


@dataclass(frozen=True)
class _Request:
    batches: Sequence[Batch]
    answer: Future[Taken]

    @property
    def nbytes(self) -> int:
        return sum(len(batch.frame) for batch in self.batches)


#: Told which runs got something new, by account and cluster.
Announce = Callable[[set[tuple[int, str]]], None]


class Writer:
    """Takes requests of any thread and commits them in groups."""

    def __init__(
        self, database: Database, vault: Vault, counters: Counters, clock: Callable[[], int], announce: Announce
    ) -> None:
        self.database = database
        self.vault = vault
        self.counters = counters
        self.clock = clock
        self.announce = announce
        #: Why the last commit failed, in words anybody may read; empty while all is well.
        self.trouble = ""
        self._waiting: queue.Queue[_Request | None] = queue.Queue()
        #: Bytes in the queue; counted by those who put and the one who takes.
        self._nbytes = 0
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="daskscope-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 30.0) -> None:
        """Commit what waits, then end."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join(timeout)

    def submit(self, batches: Sequence[Batch]) -> Future[Taken]:
        request = _Request(batches, Future())
        # Under way from here on: whoever waits for it may leave, and it is answered all the same.
        request.answer.set_running_or_notify_cancel()
        with self._counting:
            if self._waiting.qsize() >= MOST_WAITING or self._nbytes >= MOST_WAITING_NBYTES:
                raise Overloaded
            self._nbytes += request.nbytes
        self._waiting.put(request)
        return request.answer

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def _run(self) -> None:
        while True:
            group = self._group()
            if not group:
                return
            self._commit(group)

    def _group(self) -> list[_Request]:
        """The next requests to commit together; none when it is time to end."""
        first = self._waiting.get()
        if first is None:
            return []
        group, size = [first], first.nbytes
        while size < GROUP_NBYTES:
            try:
                request = self._waiting.get_nowait()
            except queue.Empty:
                break
            if request is None:
                # Asked to end: after this group.
                self._waiting.put(None)
                break
            group.append(request)
            size += request.nbytes
        with self._counting:
            self._nbytes -= size
        return group

    def _commit(self, group: list[_Request]) -> None:
        began = time.perf_counter()
        try:
            self._write(group)
        except Exception as error:  # noqa: BLE001 (every request gets its answer, and the thread lives on)
            if len(group) > 1 and not is_outage(error):
                # One of them cannot be stored; the others must not suffer for it.
                for request in group:
                    self._commit([request])
                return
            self._failed(group, error)
        else:
            if self.trouble:
                logger.info("the database takes batches again")
            self.trouble = ""
        self.counters.add("commits")
        self.counters.add("commit_seconds", time.perf_counter() - began)

    def _write(self, group: list[_Request]) -> None:
        batches = [batch for request in group for batch in request.batches]
        with self.database.write() as connection:
            fresh = take(connection, self.vault, batches, self.clock())
        told: set[tuple[int, str]] = set()
        position = 0
        for request in group:
            mine = fresh[position : position + len(request.batches)]
            position += len(request.batches)
            told |= {batch.run_key for batch, new in zip(request.batches, mine, strict=True) if new}
            self.counters.add("rows", sum(b.header.rows for b, new in zip(request.batches, mine, strict=True) if new))
            self.counters.add("batches", sum(mine), "fresh")
            self.counters.add("batches", len(mine) - sum(mine), "duplicate")
            request.answer.set_result(Taken(sum(mine), len(mine) - sum(mine)))
        self.announce(told)

    def _failed(self, group: list[_Request], error: Exception) -> None:
        away = is_outage(error)
        if away and not self.trouble:
            logger.error("the database does not take batches: %s", detail_of(error))
        elif not away:
            logger.error("a batch cannot be stored", exc_info=error)
        if away:
            self.trouble = in_our_words(error)
        self.counters.add("commit_failures")
        for request in group:
            request.answer.set_exception(StorageAway(self.trouble) if away else error)

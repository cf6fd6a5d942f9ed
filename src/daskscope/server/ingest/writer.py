"""The writer: one thread that commits all waiting batches together.

A commit costs one disk flush, whether it contains one batch or fifty. While one runs, requests queue up, and the next
commit includes them all. A request is answered once its batches are durable.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from daskscope.server.errors import public_message
from daskscope.server.monitoring import Counters
from daskscope.storage.base.archive import Archive
from daskscope.storage.base.database import detail_of, is_outage
from daskscope.storage.catalog.clusters import UserRequests
from daskscope.storage.runs.ingest import Batch, store_batches

logger = logging.getLogger("daskscope.server")

#: Maximum bytes of one transaction; the rest waits for the next.
GROUP_NBYTES = 16 * 1024 * 1024
#: Maximum waiting requests, and their bytes; one account may use half of it. Beyond it the server refuses at once instead of
#: filling its memory.
MAX_WAITING = 512
MAX_WAITING_NBYTES = 256 * 1024 * 1024
#: A request that has waited for longer is a problem that /readyz reports. A commit takes less than a second, also on a slow disk.
STALLED_S = 10.0
#: How long the last commits may take when the server stops.
STOP_S = 10.0


class Overloaded(Exception):
    """More batches arrive than can be written."""


class StorageAway(Exception):
    """The database cannot store anything at the moment; the message says why."""


@dataclass(frozen=True)
class Taken:
    """The result of one request's batches."""

    fresh: int
    duplicates: int
    #: What users ask of the clusters of the request.
    requests: Sequence[UserRequests] = ()


@dataclass(frozen=True)
class _Request:
    batches: Sequence[Batch]
    answer: Future[Taken]
    #: When it arrived, on the monotonic clock.
    at: float

    @property
    def account(self) -> int:
        """Return the account; all batches of a request have the same."""
        return self.batches[0].account

    @property
    def nbytes(self) -> int:
        return sum(len(batch.frame) for batch in self.batches)


class FairQueue:
    """Waiting requests by account. Accounts take turns, so that one that sends much delays the others little."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._requests: OrderedDict[int, deque[_Request]] = OrderedDict()
        self._nbytes: Counter[int] = Counter()
        self._closed = False

    def put(self, request: _Request) -> None:
        with self._changed:
            mine = self._requests.get(request.account, ())
            if self._closed or self._is_full(request.account, len(mine)):
                raise Overloaded
            self._requests.setdefault(request.account, deque()).append(request)
            self._nbytes[request.account] += request.nbytes
            self._changed.notify()

    def _is_full(self, account: int, waiting: int) -> bool:
        if len(self) >= MAX_WAITING or self._nbytes.total() >= MAX_WAITING_NBYTES:
            return True
        return waiting >= MAX_WAITING // 2 or self._nbytes[account] >= MAX_WAITING_NBYTES // 2

    def close(self) -> None:
        """Accept no more requests. Those that wait are still returned."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def group(self) -> list[_Request]:
        """Return the next requests to commit together; empty once the queue is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._requests or self._closed)
            # One turn while several accounts wait: a second request of a busy account delays the first of all others.
            group = [self._pop(account) for account in list(self._requests)]
            if len(group) == 1:
                size = group[0].nbytes
                while self._requests and size < GROUP_NBYTES:
                    group.append(self._pop(group[0].account))
                    size += group[-1].nbytes
            return group

    def _pop(self, account: int) -> _Request:
        requests = self._requests[account]
        request = requests.popleft()
        self._nbytes[account] -= request.nbytes
        if not requests:
            del self._requests[account], self._nbytes[account]
        return request

    def oldest(self) -> float | None:
        """Return when the oldest waiting request arrived; None if none waits."""
        with self._changed:
            return min((requests[0].at for requests in self._requests.values()), default=None)

    def __len__(self) -> int:
        return sum(map(len, self._requests.values()))


#: Called with the runs that have new data, by account and cluster.
Announce = Callable[[set[tuple[int, str]]], None]


#: Called with an account and the seconds of its part of a commit.
Charge = Callable[[int, float], None]


def _do_not_charge(account: int, seconds: float) -> None:
    """Default of ``charge``."""


class Writer:
    """Accepts requests from any thread and commits them in groups."""

    def __init__(
        self,
        archive: Archive,
        counters: Counters,
        announce: Announce,
        clock: Callable[[], float] = time.monotonic,
        charge: Charge = _do_not_charge,
    ) -> None:
        self.archive = archive
        self.counters = counters
        self.announce = announce
        self.clock = clock
        self.charge = charge
        #: Public message of the last failed commit; empty while commits succeed.
        self.trouble = ""
        #: When the oldest request of the running commit arrived; None while none runs.
        self._running: float | None = None
        self._waiting = FairQueue()
        self._thread = threading.Thread(target=self._run, name="daskscope-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = STOP_S) -> None:
        """Commit what is waiting, then stop."""
        self._waiting.close()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def submit(self, batches: Sequence[Batch]) -> Future[Taken]:
        if self.oldest_s > STALLED_S:
            raise StorageAway("the database does not answer in time")
        request = _Request(batches, Future(), self.clock())
        # In progress from here on: it is answered even if the caller leaves.
        request.answer.set_running_or_notify_cancel()
        self._waiting.put(request)
        return request.answer

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def oldest_s(self) -> float:
        """Return for how many seconds the oldest request has waited, including the one that is being committed."""
        arrived = [at for at in (self._running, self._waiting.oldest()) if at is not None]
        return self.clock() - min(arrived) if arrived else 0.0

    @property
    def problem(self) -> str:
        """Return a public message: why the last commit failed, or that the running one takes too long."""
        waited = self.oldest_s
        return f"a batch has been waiting for {waited:.0f} s" if waited > STALLED_S else self.trouble

    def _run(self) -> None:
        while group := self._waiting.group():
            self._running = min(request.at for request in group)
            self._commit(group)
            self._running = None

    def _commit(self, group: list[_Request]) -> None:
        began = time.perf_counter()
        try:
            self._write(group)
        except Exception as error:  # noqa: BLE001 (every request gets its answer, and the thread lives on)
            if len(group) > 1 and not is_outage(error):
                # One of them cannot be stored. Commit the others one by one.
                for request in group:
                    self._commit([request])
                return
            self._failed(group, error)
        else:
            if self.trouble:
                logger.info("the database stores batches again")
            self.trouble = ""
        for request in group:
            # Not CPU time: there is one writer, and PostgreSQL works in processes of its own meanwhile.
            self.charge(request.account, (time.perf_counter() - began) / len(group))
        self.counters.add("commits")
        self.counters.add("commit_seconds", time.perf_counter() - began)

    def _write(self, group: list[_Request]) -> None:
        batches = [batch for request in group for batch in request.batches]
        with self.archive.write() as tx:
            stored = store_batches(tx, batches)
        told: set[tuple[int, str]] = set()
        position = 0
        for request in group:
            mine = stored.fresh[position : position + len(request.batches)]
            position += len(request.batches)
            told |= {batch.run_key for batch, new in zip(request.batches, mine, strict=True) if new}
            self.counters.add("rows", sum(b.header.rows for b, new in zip(request.batches, mine, strict=True) if new))
            self.counters.add("batches", sum(mine), "fresh")
            self.counters.add("batches", len(mine) - sum(mine), "duplicate")
            runs = {batch.run_key for batch in request.batches}
            asked = [stored.requests[run] for run in runs if run in stored.requests]
            request.answer.set_result(Taken(sum(mine), len(mine) - sum(mine), asked))
        self.announce(told)

    def _failed(self, group: list[_Request], error: Exception) -> None:
        away = is_outage(error)
        if away and not self.trouble:
            logger.error("the database cannot store batches: %s", detail_of(error))
        elif not away:
            logger.error("a batch cannot be stored", exc_info=error)
        if away:
            self.trouble = public_message(error)
        self.counters.add("commit_failures")
        for request in group:
            request.answer.set_exception(StorageAway(self.trouble) if away else error)

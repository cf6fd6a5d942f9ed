"""What a server remembers for a while: tokens, users of clusters, earlier runs, documents."""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from daskscope.analysis.compare.history import MAX_RUNS, RunSoFar, Usual, judge_duration
from daskscope.analysis.running.progress import EarlierRun
from daskscope.storage.base.archive import Transaction
from daskscope.storage.catalog.computations import Computation
from daskscope.storage.catalog.history import finished_runs
from daskscope.storage.people.accounts import Account
from daskscope.storage.people.tokens import Token, digest

if TYPE_CHECKING:
    from collections.abc import Iterator


#: How long a token is cached. Servers on one PostgreSQL tell each other about revocations; if a notification is lost, a
#: revocation on another server takes this long at most.
CACHE_US = 30 * 1_000_000
MAX_CACHED = 10_000


@dataclass(frozen=True)
class Known:
    """A token that was looked up, with its account, and whether its user administers the server."""

    token: Token
    account: Account
    admin: bool


class TokenCache:
    """Recently used tokens, so that a batch needs no query for its token."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[str, tuple[int, Known]] = {}
        self._age = 0

    def get(self, secret: str, now_us: int, load: Callable[[], Known | None]) -> Known | None:
        key = digest(secret)
        with self._lock:
            kept, age = self._tokens.get(key), self._age
        if kept is not None and 0 <= now_us - kept[0] < CACHE_US:
            return kept[1]
        found = load()
        with self._lock:
            if len(self._tokens) >= MAX_CACHED:
                self._tokens.clear()
            self._tokens.pop(key, None)
            # Do not cache what was read before a change.
            if found is not None and age == self._age:
                self._tokens[key] = now_us, found
        return found

    def peek(self, secret: str, now_us: int) -> Known | None:
        """Return a cached token; None if the database must be asked."""
        kept = self._tokens.get(digest(secret))
        return kept[1] if kept is not None and 0 <= now_us - kept[0] < CACHE_US else None

    def clear(self) -> None:
        """Forget all tokens after a change of tokens, members or accounts."""
        with self._lock:
            self._tokens.clear()
            self._age += 1


#: Maximum documents remembered. Readers of the others are shown the earlier version, and remember it again.
MAX_OUTDATED = 1_000

S = TypeVar("S", bound=Hashable)


class Outdated(Generic[S]):
    """A queue without duplicates, oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subjects: dict[S, None] = {}

    def add(self, subject: S) -> None:
        with self._lock:
            if len(self._subjects) < MAX_OUTDATED:
                self._subjects.setdefault(subject)

    def pop(self) -> S | None:
        with self._lock:
            subject = next(iter(self._subjects), None)
            if subject is not None:
                del self._subjects[subject]
            return subject


# Earlier runs of running computations are remembered for a while: every open page of a cluster asks for its progress each second.
#
# Finding twenty takes 16 ms per computation (three: 5 ms), and they rarely change.

MAX_EARLIER = 1_000
EARLIER_S = 30.0


@dataclass
class EarlierRuns:
    """Earlier runs by run and computation."""

    clock: Callable[[], float] = time.monotonic
    _known: dict[tuple[int, str], tuple[float, list[EarlierRun]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, tx: Transaction, account: int, row: Computation) -> list[EarlierRun]:
        """Return the earlier runs of a stored computation, newest first."""
        return self.get(row.run_id, row.computation, partial(finished_runs, tx, account, row, MAX_RUNS))

    def get(self, run: int, computation: str, find: Callable[[], list[EarlierRun]]) -> list[EarlierRun]:
        """Return the earlier runs of a computation, from memory or by ``find``."""
        now, key = self.clock(), (run, computation)
        until, found = self._known.get(key, (0.0, []))
        if until <= now:
            found = find()
            with self._lock:
                if len(self._known) >= MAX_EARLIER:
                    self._known.clear()
                self._known[key] = now + EARLIER_S, found
        return found


def usual_duration(row: Computation, earlier: list[EarlierRun], now_us: int) -> Usual | None:
    """Return the usual duration of a running computation, from earlier runs; ``now_us`` is on the scheduler's clock."""
    done = row.memory + row.released + row.forgotten
    counted, elapsed = max(0, row.seen_us - row.start_us), max(0, now_us - row.start_us)
    return judge_duration(earlier, RunSoFar(row.tasks, done, counted, elapsed))


class Sized(Protocol):
    """A value with a size in memory."""

    @property
    def nbytes(self) -> int: ...


V = TypeVar("V", bound=Sized)


class OneAtATime:
    """Locks by name, for work that must not be done twice at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: A lock, and the number of threads that hold it or wait for it.
        self._locks: dict[Hashable, tuple[threading.Lock, int]] = {}

    @contextmanager
    def __call__(self, name: Hashable) -> Iterator[None]:
        with self._lock:
            lock, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._locks[name]
                if users == 1:
                    del self._locks[name]
                else:
                    self._locks[name] = lock, users - 1


class Shared(Generic[V]):
    """Values that never change, by the path of their blob."""

    def __init__(self, max_nbytes: int) -> None:
        self.max_nbytes = max_nbytes
        self._lock = threading.Lock()
        #: Recently used values, up to the limit.
        self._kept: OrderedDict[str, V] = OrderedDict()
        self._nbytes = 0
        #: Every value that some request still uses.
        self._used: weakref.WeakValueDictionary[str, V] = weakref.WeakValueDictionary()
        self._loading = OneAtATime()

    def get(self, path: str) -> V | None:
        with self._lock:
            if path in self._kept:
                self._kept.move_to_end(path)
            return self._used.get(path)

    def put(self, path: str, value: V) -> None:
        with self._lock:
            self._used[path] = value
            if path in self._kept or value.nbytes > self.max_nbytes:
                return
            self._kept[path] = value
            self._nbytes += value.nbytes
            while self._nbytes > self.max_nbytes:
                self._nbytes -= self._kept.popitem(last=False)[1].nbytes

    def load(self, path: str, read: Callable[[], V]) -> V:
        """Return the value of a path. If several threads need it, one reads it."""
        known = self.get(path)
        if known is not None:
            return known
        with self._loading(path):
            known = self.get(path)
            if known is None:
                known = read()
                self.put(path, known)
        return known


# The server remembers which users record which clusters, so that a batch needs no query for it.
#
# The user of a cluster never changes. An entry outlives a demotion from owner or a deleted cluster by ten minutes at most.

MAX_CLUSTERS = 10_000
USERS_S = 600.0


@dataclass
class ClusterUsers:
    """Clusters and users that may record them, for a while."""

    clock: Callable[[], float] = time.monotonic
    _until: dict[tuple[int, str, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def knows(self, account: int, user: str, clusters: Iterable[str]) -> bool:
        now = self.clock()
        return all(self._until.get((account, user, cluster), 0.0) > now for cluster in clusters)

    def add(self, account: int, user: str, cluster: str) -> None:
        with self._lock:
            if len(self._until) >= MAX_CLUSTERS:
                self._until.clear()
            self._until[account, user, cluster] = self.clock() + USERS_S

"""Limits: rows and bytes per token and minute, new names per account and minute, and bytes of uploads in progress."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

#: Maximum buckets. Beyond it, full ones (unused for a minute) are dropped.
MAX_BUCKETS = 10_000


@dataclass
class _Bucket:
    level: float
    at: float


class Buckets:
    """Token buckets. A full bucket holds the amount of one minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[Hashable, _Bucket] = {}

    def spend(self, wanted: Sequence[tuple[Hashable, int, int]]) -> list[float]:
        """Spend amounts from buckets, given as key, amount and limit per minute.

        Return the seconds to wait for each of them. Nothing is spent unless all are 0.
        """
        now = self.clock()
        with self._lock:
            buckets = [self._bucket(key, limit, now) for key, _, limit in wanted]
            # A request larger than the whole bucket passes when the bucket is full; otherwise it never would.
            waits = [
                max(0.0, (min(amount, limit) - bucket.level) / limit * 60)
                for bucket, (_, amount, limit) in zip(buckets, wanted, strict=True)
            ]
            if not any(waits):
                for bucket, (_, amount, _) in zip(buckets, wanted, strict=True):
                    bucket.level -= amount
        return waits

    def _bucket(self, key: Hashable, limit: int, now: float) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= MAX_BUCKETS:
                self._buckets = {name: other for name, other in self._buckets.items() if now - other.at < 60}
            bucket = self._buckets[key] = _Bucket(limit, now)
        bucket.level = min(limit, bucket.level + (now - bucket.at) * limit / 60)
        bucket.at = now
        return bucket


class Quotas:
    """Rows and bytes per minute, by API token."""

    def __init__(
        self, rows_per_minute: int, bytes_per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = {"rows": rows_per_minute, "bytes": bytes_per_minute}
        self._buckets = Buckets(clock)

    def spend(self, token: int, rows: int, nbytes: int) -> float:
        """Spend from the token's buckets. Return 0, or the seconds to wait if one is empty (nothing is spent then)."""
        amounts = {"rows": rows, "bytes": nbytes}
        wanted = [((token, kind), amounts[kind], limit) for kind, limit in self.limits.items() if limit]
        return max(self._buckets.spend(wanted), default=0.0)


#: Maximum new names per account and minute. Each makes rows that stay, and is added up with every later batch of its run.
#: A client that waits for every result submits up to 300 computations a second.
MAX_NEW = {"clusters": 600, "workers": 20_000, "computations": 120_000, "error groups": 2_000}
#: Maximum names remembered per account. Beyond it all of them count as new again.
MAX_KNOWN = 100_000
MAX_ACCOUNTS = 10_000

#: Names by kind.
Names = Mapping[str, Set[Hashable]]


class NewNames:
    """Limits the names that an account introduces per minute: clusters, workers, computations and error groups."""

    def __init__(self, limits: Mapping[str, int] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = MAX_NEW if limits is None else limits
        self._buckets = Buckets(clock)
        self._lock = threading.Lock()
        self._known: OrderedDict[int, set[int]] = OrderedDict()

    def spend(self, account: int, names: Names) -> tuple[str, float]:
        """Count the new names. Return the kind that exceeds its limit and the seconds to wait, or an empty kind and 0."""
        with self._lock:
            known = self._known.setdefault(account, set())
            self._known.move_to_end(account)
            new = {kind: {hash((kind, name)) for name in names.get(kind, ())} - known for kind in self.limits}
            kinds = [kind for kind, found in new.items() if found]
            waits = self._buckets.spend([((account, kind), len(new[kind]), self.limits[kind]) for kind in kinds])
            for kind, wait in zip(kinds, waits, strict=True):
                if wait:
                    return kind, wait
            if len(known) > MAX_KNOWN:
                known.clear()
            known.update(*new.values())
            if len(self._known) > MAX_ACCOUNTS:
                self._known.popitem(last=False)
        return "", 0.0


#: How long a measured size is used. Summing the files of 10,000 runs takes 20 ms.
MEASURE_EVERY_S = 60.0


class StorageQuota:
    """The limit on an account's recorded data, with a size that is up to a minute old."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        #: Bytes; 0 means unlimited.
        self.limit = limit
        self.clock = clock
        self._sizes: dict[int, tuple[float, int]] = {}

    def has_room(self, account: int) -> bool:
        """Return whether an account was below the limit when it was last measured, at most a minute ago; True without a limit."""
        at, size = self._sizes.get(account, (-MEASURE_EVERY_S, 0))
        return not self.limit or (size < self.limit and self.clock() - at < MEASURE_EVERY_S)

    def used(self, account: int, measure: Callable[[], int]) -> int:
        """Return the bytes an account uses, measured at most once a minute; 0 without a limit."""
        if not self.limit:
            return 0
        now = self.clock()
        at, size = self._sizes.get(account, (-MEASURE_EVERY_S, 0))
        if now - at >= MEASURE_EVERY_S:
            if len(self._sizes) >= MAX_ACCOUNTS:
                self._sizes.clear()
            size = measure()
            self._sizes[account] = now, size
        return size


class InFlight:
    """Bytes of recorded data between their arrival and their acknowledgement.

    After an outage every recorder sends its backlog at once. What the server cannot store within the client's patience would be
    sent again: 125,712 duplicates against 87,300 new batches.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._nbytes = 0
        self._lock = threading.Lock()

    @contextmanager
    def hold(self, nbytes: int) -> Iterator[bool]:
        """Count a body during a block. Yield whether there is room for it; a single one always has room."""
        with self._lock:
            has_room = not self._nbytes or self._nbytes + nbytes <= self.limit
            held = nbytes if has_room else 0
            self._nbytes += held
        try:
            yield has_room
        finally:
            with self._lock:
                self._nbytes -= held


@dataclass
class Arriving:
    """Bytes of uploads in progress, by account."""

    nbytes: Counter[int] = field(default_factory=Counter)

    @contextmanager
    def upload(self, account: int) -> Iterator[Upload]:
        """Begin an upload. Its bytes count until the block ends."""
        upload = Upload(account, self.nbytes)
        try:
            yield upload
        finally:
            self.nbytes[account] -= upload.nbytes
            # Drop zeros: accounts come and go.
            self.nbytes += Counter()


@dataclass
class Upload:
    """Bytes received so far of one upload."""

    account: int
    _all: Counter[int]
    nbytes: int = 0

    def add(self, nbytes: int) -> int:
        """Count a part. Return the bytes of all uploads of the account."""
        self.nbytes += nbytes
        self._all[self.account] += nbytes
        return self._all[self.account]

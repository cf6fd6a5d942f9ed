"""How much a token may send in a minute: a bucket that fills steadily."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

#: Buckets kept; beyond it those are forgotten that nobody took from for a minute, and so are full.
MOST_BUCKETS = 10_000


@dataclass
class _Bucket:
    level: float
    at: float


class Quotas:
    """Rows and bytes by token."""

    def __init__(
        self, rows_per_minute: int, bytes_per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = {"rows": rows_per_minute, "bytes": bytes_per_minute}
        self.clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[tuple[int, str], _Bucket] = {}

    def spend(self, token: int, rows: int, nbytes: int) -> float:
        """Take from the token's buckets; 0, or the seconds to wait where one is empty (nothing is taken then)."""
        now = self.clock()
        with self._lock:
            wanted = [
                (self._bucket(token, kind, now), amount, self.limits[kind])
                for kind, amount in (("rows", rows), ("bytes", nbytes))
                if self.limits[kind]
            ]
            # A request larger than the whole bucket is let through when the bucket is full, or it never would be.
            waits = [(min(amount, limit) - b.level) / limit * 60 for b, amount, limit in wanted]
            if any(wait > 0 for wait in waits):
                return max(waits)
            for bucket, amount, _ in wanted:
                bucket.level -= amount
        return 0.0

    def _bucket(self, token: int, kind: str, now: float) -> _Bucket:
        limit = self.limits[kind]
        bucket = self._buckets.get((token, kind))
        if bucket is None:
            if len(self._buckets) >= MOST_BUCKETS:
                self._forget(now)
            bucket = self._buckets[token, kind] = _Bucket(limit, now)
        bucket.level = min(limit, bucket.level + (now - bucket.at) * limit / 60)
        bucket.at = now
        return bucket

    def _forget(self, now: float) -> None:
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if now - bucket.at < 60}

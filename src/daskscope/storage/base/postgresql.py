"""Connections to PostgreSQL that never wait forever.

After a failover, packets to the old server may vanish without an answer. Keepalives and ``tcp_user_timeout`` notice a host that is
gone; a proxy that accepts packets and forwards none is only noticed by its silence. So every wait for an answer is limited here,
beyond the time after which PostgreSQL itself cancels a statement.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg

V = TypeVar("V")

#: How long packets may stay unanswered by the other host.
SILENT_HOST = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
#: Added to the timeout of a statement, so that PostgreSQL's own answer arrives first.
SPARE_S = 5.0


@dataclass
class Patience:
    """How long the connections of a database wait."""

    #: For a statement; 0 means unlimited.
    statement_s: float = 0.0
    #: Ends every wait.
    aborted: threading.Event = field(default_factory=threading.Event)

    @property
    def silence_s(self) -> float:
        """Return how long PostgreSQL may send nothing while a statement runs."""
        return self.statement_s + SPARE_S if self.statement_s else float("inf")


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that is closed if PostgreSQL is silent for too long."""

    patience = Patience()

    def wait(self, gen: Generator[Any, Any, V], *args: Any, **options: Any) -> V:
        # psycopg resumes the generator several times a second, with 0 if nothing arrived.
        return super().wait(self._bounded(gen), *args, **options)

    def _bounded(self, gen: Generator[Any, Any, V]) -> Generator[Any, Any, V]:
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                now = time.monotonic()
                heard = now if ready else heard
                if self.patience.aborted.is_set() or now - heard > self.patience.silence_s:
                    # Close it: the answer could still arrive, and would be taken for the answer to the next statement.
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"PostgreSQL did not answer within {now - heard:.0f} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def connect(patience: Patience, *args: Any, **options: Any) -> BoundedConnection:
    """Connect as ``psycopg.connect`` does."""
    connection = BoundedConnection.connect(*args, **options)
    connection.patience = patience
    return connection

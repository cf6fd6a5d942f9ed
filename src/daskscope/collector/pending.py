"""What a worker's agent has not delivered yet."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from .causes import Record

MAX_BYTES = 4_000_000
MAX_CAUSES = 500


@dataclass(frozen=True)
class Contents:
    """One push: encoded batches, causes of failures, rows lost by table."""

    bodies: list[dict[str, Any]]
    causes: list[Record]
    dropped: dict[str, int]


class Pending:
    """What waits to be sent: bounded, oldest bodies dropped first, and counted."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_causes: int = MAX_CAUSES) -> None:
        self._bodies: deque[dict[str, Any]] = deque()
        self._causes: deque[Record] = deque()
        self._max_bytes = max_bytes
        self._max_causes = max_causes
        #: Rows by table that are lost, which the scheduler does not know yet.
        self._lost: dict[str, int] = {}
        #: Not rows: a failure whose cause is lost still has its row.
        self.causes_lost = 0

    def __bool__(self) -> bool:
        return bool(self._bodies or self._causes or self._lost)

    def add_body(self, body: Any) -> None:
        names = ("table", "rows", "t0", "t1", "raw", "data")
        self._bodies.append({name: getattr(body, name) for name in names})
        while sum(len(waiting["data"]) for waiting in self._bodies) > self._max_bytes:
            oldest = self._bodies.popleft()
            self.lose(oldest["table"], oldest["rows"])

    def add_causes(self, causes: list[Record]) -> None:
        self._causes.extend(causes)
        while len(self._causes) > self._max_causes:
            self._causes.popleft()
            self.causes_lost += 1

    def lose(self, table: str, rows: int) -> None:
        """Rows of a table are gone; told with the next push, whether it has a body of that table or not."""
        self._lost[table] = self._lost.get(table, 0) + rows

    def contents(self) -> Contents:
        """Everything that waits."""
        return Contents(list(self._bodies), list(self._causes), dict(self._lost))

    def sent(self, contents: Contents) -> None:
        """The scheduler has taken this; what came meanwhile stays."""
        for _ in contents.bodies:
            self._bodies.popleft()
        for _ in contents.causes:
            self._causes.popleft()
        left = {table: rows - contents.dropped.get(table, 0) for table, rows in self._lost.items()}
        self._lost = {table: rows for table, rows in left.items() if rows}

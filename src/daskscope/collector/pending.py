"""What a worker's agent has not delivered yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from .causes import Record

MAX_BYTES = 4_000_000
MAX_CAUSES = 500


class Pending:
    """What waits to be sent: bounded, oldest bodies dropped first, and counted."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_causes: int = MAX_CAUSES) -> None:
        self._bodies: deque[dict[str, Any]] = deque()
        self._causes: deque[Record] = deque()
        self._max_bytes = max_bytes
        self._max_causes = max_causes
        self._lost: dict[str, int] = {}
        self._reported: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._bodies or self._causes)

    def add_body(self, body: Any) -> None:
        names = ("table", "rows", "t0", "t1", "raw", "data")
        self._bodies.append({name: getattr(body, name) for name in names})
        while sum(len(waiting["data"]) for waiting in self._bodies) > self._max_bytes:
            oldest = self._bodies.popleft()
            self._lose(oldest["table"], oldest["rows"])

    def add_causes(self, causes: list[Record]) -> None:
        self._causes.extend(causes)
        while len(self._causes) > self._max_causes:
            self._causes.popleft()
            self._lose("exceptions", 1)

    def contents(self, dropped: Mapping[str, int]) -> tuple[list[dict[str, Any]], list[Record]]:
        """Everything that waits. The first body of a table names its rows lost since the last push that was taken."""
        news = {table: rows - self._reported.get(table, 0) for table, rows in dropped.items()}
        return [{**body, "dropped": news.pop(body["table"], 0)} for body in self._bodies], list(self._causes)

    def dropped(self, by_probes: Mapping[str, int]) -> dict[str, int]:
        """Rows lost so far by table, in the probes and here."""
        tables = {*by_probes, *self._lost}
        return {table: by_probes.get(table, 0) + self._lost.get(table, 0) for table in sorted(tables)}

    def sent(self, bodies: list[dict[str, Any]], causes: list[Record], dropped: Mapping[str, int]) -> None:
        for _ in bodies:
            self._bodies.popleft()
        for _ in causes:
            self._causes.popleft()
        for body in bodies:
            self._reported[body["table"]] = dropped.get(body["table"], 0)

    def _lose(self, table: str, rows: int) -> None:
        self._lost[table] = self._lost.get(table, 0) + rows

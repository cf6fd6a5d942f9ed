"""Counters of a running server, for ``/metrics``."""

from __future__ import annotations

import threading
from collections import defaultdict


class Counters:
    """Named counters with a few label values each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[tuple[str, str], float] = defaultdict(float)

    def add(self, name: str, value: float = 1.0, label: str = "") -> None:
        with self._lock:
            self._values[name, label] += value

    def get(self, name: str, label: str = "") -> float:
        with self._lock:
            return self._values.get((name, label), 0.0)

    def items(self) -> list[tuple[str, str, float]]:
        with self._lock:
            return [(name, label, value) for (name, label), value in sorted(self._values.items())]

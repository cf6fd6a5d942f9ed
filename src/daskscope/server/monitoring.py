"""What a server tells its operators: counters for ``/metrics``, and which of its parts work."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field


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


# Readiness tells which parts of a server work, and what it can do without the others.
#
# A check runs in a thread of its own, with a deadline: an orchestrator that gets no answer to its probe restarts the server,
# which helps nobody while the database or the object store is away.

#: How long one check may take.
DEADLINE_S = 2.0
#: The parts that a role needs. Batches are stored in the database, and reach the store later.
ROLES: Mapping[str, tuple[str, ...]] = {"ingest": ("database", "writer"), "read": ("database", "store")}


@dataclass
class Check:
    """A check of one part. It returns what is wrong, empty if nothing is."""

    name: str
    run: Callable[[], str]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: Future[str] | None = None

    async def result(self, deadline_s: float = DEADLINE_S) -> str:
        """Return the problem; empty if the part works. Probes during a hanging check wait for it: threads must not pile up."""
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._begin())), deadline_s)
        except asyncio.TimeoutError:
            return f"the {self.name} did not answer within {deadline_s:g} s"

    def _begin(self) -> Future[str]:
        with self._lock:
            if self._running is None or self._running.done():
                self._running = Future()
                # A daemon: a check that hangs must not keep the process alive.
                threading.Thread(target=self._do, args=(self._running,), name=f"check-{self.name}", daemon=True).start()
            return self._running

    def _do(self, future: Future[str]) -> None:
        try:
            future.set_result(self.run())
        except Exception as error:  # noqa: BLE001 (the top of a thread; every probe gets an answer)
            future.set_exception(error)


@dataclass(frozen=True)
class Readiness:
    """What is wrong with each part and job; empty if nothing is."""

    checks: Mapping[str, str]

    def problem_of(self, role: str) -> str:
        """Return the problems of a role: the parts it needs that do not work."""
        return "; ".join(self.checks[name] for name in ROLES[role] if self.checks[name])

"""Executions that share the cores of a host, or the interpreter lock of a worker, and slow each other down.

Each worker has a clock that advances with the share of a core its executions get: an execution ends when the clock has advanced by
its duration. So a change of the share takes the time of one addition, not of one for each execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

#: An execution that uses less of a core mostly waits for something else, and others do not slow it down.
MIN_CPU_SHARE = 0.5


class SharedCores:
    """The clocks of all workers."""

    def __init__(self, hosts: Sequence[int], cores: float, others: float = 0.0) -> None:
        self._hosts, self._cores = hosts, cores
        self._workers: list[list[int]] = [[] for _ in range(max(hosts) + 1)]
        for worker, host in enumerate(hosts):
            self._workers[host].append(worker)
        count = len(hosts)
        #: Cores that all programs of each host would use. The system gives each program its share.
        self._cpu = [others] * len(self._workers)
        self._gil = [0.0] * count
        #: Cores that the executions of each worker would use while they hold its lock, if each had a lock of its own.
        self._locked = [0.0] * count
        self._clock = [0.0] * count
        self._read_us = [0.0] * count
        self._rate = [1.0] * count
        #: For each worker its executions by where the clock is when they end.
        self._running: list[list[tuple[float, int]]] = [[] for _ in range(count)]
        #: When the next execution of each worker ends; negative if nothing runs.
        self.next_us = [-1.0] * count
        #: Workers on which executions started or ended since the last ``update``.
        self._touched: set[int] = set()

    def start(self, worker: int, execution: int, us: float, now: float) -> None:
        """Run an execution until the clock of its worker has advanced by its duration."""
        self._advance(worker, now)
        heappush(self._running[worker], (self._clock[worker] + us, execution))

    def end(self, worker: int) -> int:
        """Return the execution of a worker that ends now."""
        self.next_us[worker] = -1.0
        return heappop(self._running[worker])[1]

    def add(self, worker: int, cpu: float, gil: float) -> None:
        """Count an execution that starts or, with negative shares, ends."""
        # A thread that waits for a core keeps the lock, so that an execution may hold the lock for longer than it uses a core.
        locked = min(cpu, gil) if gil >= 0 else max(cpu, gil)
        before = self._locked_cpu(worker)
        self._gil[worker] += gil
        self._locked[worker] += locked
        self._cpu[self._hosts[worker]] += cpu - locked + self._locked_cpu(worker) - before
        self._touched.add(worker)

    def _locked_cpu(self, worker: int) -> float:
        """Return the cores that holders of a worker's lock use: one thread at a time has it."""
        return self._locked[worker] / max(1.0, self._gil[worker])

    def update(self, now: float) -> list[int]:
        """Divide the cores among the executions that run now. Return the workers whose next end changed.

        Once for all that happens at a time: where one execution follows another, nothing changes for the other workers.
        """
        changed = []
        for host in {self._hosts[worker] for worker in self._touched}:
            available = self._cores / max(self._cpu[host], 1e-9)
            for worker in self._workers[host]:
                rate = min(1.0, available) / max(1.0, self._gil[worker])
                if worker not in self._touched and abs(rate - self._rate[worker]) < 1e-9:
                    continue
                self._advance(worker, now)
                self._rate[worker] = rate
                if self._schedule(worker):
                    changed.append(worker)
        self._touched.clear()
        return changed

    def _advance(self, worker: int, now: float) -> None:
        self._clock[worker] += (now - self._read_us[worker]) * self._rate[worker]
        self._read_us[worker] = now

    def _schedule(self, worker: int) -> bool:
        running = self._running[worker]
        if not running:
            return False
        due = self._read_us[worker] + max(0.0, running[0][0] - self._clock[worker]) / self._rate[worker]
        if due == self.next_us[worker]:
            return False
        self.next_us[worker] = due
        return True

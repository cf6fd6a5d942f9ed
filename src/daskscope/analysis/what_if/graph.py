"""The recorded graph, and a cluster to replay it on, as plain lists: a replay touches each execution and each edge once.

Executions are numbered in the order in which they started. Dask's priorities are not recorded, and a thread always starts the
ready task with the highest priority, so that this order is theirs as far as it mattered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from daskscope.model.recording import Array

#: Cores that other programs use, below which they don't count; and the part of the cores that they leave in any case.
MIN_OTHERS, MIN_CORES_LEFT = 0.05, 0.1


@dataclass(frozen=True)
class Submission:
    """Tasks without inputs that the client submitted after everything before had ended."""

    #: From the end of everything before until the first of its tasks was there.
    pause_us: float
    #: Its tasks without inputs, ordered by when they were there, and how long after the first.
    roots: Sequence[int]
    delays_us: Sequence[float]


@dataclass(frozen=True)
class Group:
    """A task group."""

    size: int
    #: Groups that its tasks take inputs from, which may include itself, and the number of their tasks.
    input_groups: int
    input_tasks: int
    #: What the scheduler expects a task to take.
    mean_us: float
    #: Share of a core, and of the interpreter lock, that a task uses while it runs.
    cpu_share: float = 0.0
    gil_share: float = 0.0
    #: Share of its time that a task uses a core, or waits for one that other programs have.
    busy_share: float = 0.0
    #: Share of its time, at its end, that a task holds the lock that all workers share.
    lock_share: float = 0.0


@dataclass(frozen=True)
class Graph:
    """Executions with their durations and dependencies.

    ``inputs[inputs_from[i] : inputs_from[i + 1]]`` are the inputs of execution ``i``; likewise its dependents.
    """

    us: Sequence[float]
    nbytes: Sequence[int]
    group: Sequence[int]
    inputs_from: Sequence[int]
    inputs: Sequence[int]
    dependents_from: Sequence[int]
    dependents: Sequence[int]
    groups: Sequence[Group]
    submissions: Sequence[Submission]


def build_graph(
    us: Array,
    nbytes: Array,
    group: Array,
    dependents: Array,
    inputs: Array,
    shares: Sequence[Sequence[float]],
    submissions: Sequence[Submission],
) -> Graph:
    """Return the graph of executions with these durations, result sizes and groups.

    ``inputs[i]`` is an input of ``dependents[i]``. ``shares`` has the last three fields of each ``Group``.
    """
    count, groups = len(us), len(shares)
    sizes = np.bincount(group, minlength=groups)
    means = np.bincount(group, weights=us, minlength=groups) / np.maximum(sizes, 1)
    # Edges between groups, each once. For Dask a group depends on itself if one of its tasks has an input there.
    pairs = np.unique(group[dependents].astype(np.int64) * groups + group[inputs])
    above = np.bincount(pairs // groups, minlength=groups)
    tasks_above = np.bincount(pairs // groups, weights=sizes[pairs % groups], minlength=groups)
    inputs_from, all_inputs = _offsets(dependents, inputs, count)
    dependents_from, all_dependents = _offsets(inputs, dependents, count)
    columns = zip(sizes.tolist(), above.tolist(), tasks_above.tolist(), means.tolist(), shares, strict=True)
    return Graph(
        us=us.tolist(),
        nbytes=nbytes.tolist(),
        group=group.tolist(),
        inputs_from=inputs_from,
        inputs=all_inputs,
        dependents_from=dependents_from,
        dependents=all_dependents,
        groups=[Group(size, n, int(total), mean, *share) for size, n, total, mean, share in columns],
        submissions=submissions,
    )


def _offsets(owners: Array, values: Array, count: int) -> tuple[list[int], list[int]]:
    """Return for each owner where its values begin, and the values."""
    order = np.argsort(owners, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=count))))
    return offsets.tolist(), values[order].tolist()


@dataclass(frozen=True)
class Overheads:
    """What Dask takes besides the tasks, in microseconds; bandwidth in bytes per microsecond."""

    #: From the end of an execution until its dependent starts on an idle thread: messages to the scheduler and back.
    link_us: float = 0.0
    #: From the end of an execution until its thread starts the next one that is ready.
    gap_us: float = 0.0
    #: What the scheduler takes for a task.
    scheduler_us: float = 0.0
    bandwidth: float = float("inf")
    #: What a transfer takes besides its bytes.
    transfer_us: float = 0.0


@dataclass(frozen=True)
class Setup:
    """A cluster: one entry per worker."""

    threads: Sequence[int]
    #: When each worker joins.
    joins_us: Sequence[float]
    #: The host of each worker, numbered from 0.
    hosts: Sequence[int]
    #: Cores of each host, and how many of them other programs would use.
    cores: float = float("inf")
    others: float = 0.0
    #: ``distributed.scheduler.worker-saturation``; infinite without queuing.
    saturation: float = 1.1
    has_stealing: bool = True
    has_transfers: bool = True

    @classmethod
    def uniform(
        cls,
        workers: int,
        threads: int,
        *,
        per_host: int = 1,
        cores: float = float("inf"),
        others: float = 0.0,
        saturation: float = 1.1,
        has_stealing: bool = True,
        has_transfers: bool = True,
    ) -> Setup:
        """Return a cluster of equal workers that are there from the beginning."""
        hosts = [number // per_host for number in range(workers)]
        return cls(
            [threads] * workers, [0.0] * workers, hosts, cores, others, saturation, has_stealing, has_transfers
        )  # fmt: skip

    def with_kept_cores(self) -> Setup:
        """Return the cluster if other programs keep the cores they use; itself if they use next to none.

        By default each program gets the same share of a core, and others get less as there are more workers. Limits of containers
        and control groups can prevent that.
        """
        if self.others < MIN_OTHERS or not math.isfinite(self.cores):
            return self
        return replace(self, cores=max(self.cores - self.others, MIN_CORES_LEFT * self.cores), others=0.0)


@dataclass(frozen=True)
class Replayed:
    """The outcome of a replay. Memory counts results: results in use, and results that nothing uses."""

    wall_us: float
    #: Thread time of executions.
    busy_us: float
    #: The highest memory of one worker, and of all together.
    peak_worker_nbytes: int
    peak_nbytes: int
    #: Bytes moved between workers.
    transferred: int
    #: Tasks that moved to an idle worker.
    stolen: int
    #: Time in which executions waited for the lock that all workers share.
    locked_us: float = 0.0


# Executions that share the cores of a host, or the interpreter lock of a worker, slow each other down.
#
# Each worker has a clock that advances with the share of a core its executions get: an execution ends when the clock has
# advanced by its duration. So a change of the share takes the time of one addition, not of one for each execution.

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

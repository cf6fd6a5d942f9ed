"""The recorded graph, and a cluster to replay it on, as plain lists: a replay touches each execution and each edge once.

Executions are numbered in the order in which they started. Dask's priorities are not recorded, and a thread always starts the
ready task with the highest priority, so that this order is theirs as far as it mattered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    """What a replay took. Memory is that of results: those in use, and those that nothing uses."""

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

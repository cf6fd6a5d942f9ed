"""Responses about running clusters: progress, and the tasks that run now. Part of the contract in ``contract.py``."""

from __future__ import annotations

from typing import Literal, TypedDict

from daskscope.analysis.compare.history import UsualState

StacksState = Literal["not requested", "waiting", "done", "no answer"]


class TaskCounts(TypedDict):
    """Tasks of a computation or of one of its prefixes."""

    total: int
    done: int
    running: int
    waiting: int
    failed: int


class PrefixProgress(TaskCounts):
    """The progress of a prefix."""

    prefix: str


class TimeLeft(TypedDict):
    """An estimated range of seconds."""

    low: float
    high: float


class UsualDuration(TypedDict):
    """How long earlier runs of the same code took, in seconds, and whether this run is unusual."""

    #: Finished runs that count; with fewer than five, nothing is called usual.
    runs: int
    median: float
    #: Range of the middle 80 % of runs; of all runs below five.
    low: float
    high: float
    left: TimeLeft | None
    state: UsualState
    sentence: str


class ComputationProgress(TaskCounts):
    """The progress of a running computation."""

    id: str
    code: str
    code_file: str
    code_line: int
    start: str | None
    #: None if too little is known for an estimate.
    left: TimeLeft | None
    #: The counts and the time left as text.
    summary: str
    #: Why nothing of it can run; empty if something can.
    stuck: str
    #: What is wrong although it goes on; empty if nothing is known.
    note: str
    #: None without earlier runs of the same code; with many running computations, only some are compared.
    usual: UsualDuration | None
    prefixes: list[PrefixProgress]


class ClusterProgress(TypedDict):
    """The running computations of a cluster, oldest first."""

    items: list[ComputationProgress]
    #: Running computations, including those that are not listed.
    total: int


class LongTask(TypedDict):
    """A task that has been running for a second or longer."""

    key: str
    prefix: str
    computation_id: str
    worker: str
    worker_name: str
    start: str | None
    age: float
    #: Mean duration of its prefix in this computation, without the longest; None if fewer than five have finished.
    usual: float | None


class RunningTasks(TypedDict):
    """The tasks of a cluster that have been running longest."""

    items: list[LongTask]
    #: Tasks that workers were executing at their last heartbeats.
    total: int


class StackRequest(TypedDict):
    """A request for stacks, by the time it was made."""

    request: int


class TaskStack(TypedDict):
    """The stack of a task. Frames are positions in the list of frames, outermost first."""

    key: str
    prefix: str
    worker: str
    worker_name: str
    thread: int
    time: str | None
    age: float | None
    frames: list[int]


class CurrentStacks(TypedDict):
    """The answer to the last request for stacks."""

    request: int
    asked_at: str | None
    #: The worker that was asked; empty for all.
    of: str
    state: StacksState
    #: Busy workers, workers that were asked, and workers that answered.
    workers: int
    asked: int
    answered: int
    #: Why a worker did not answer.
    why: str
    #: File, function, line, and whose code it is.
    frames: list[tuple[str, str, int, Literal["user", "lib", "native", "dask"]]]
    items: list[TaskStack]
    #: All stacks as one tree: for each node its frame, its parent plus one (0 for a root), and the stacks that end at it.
    nodes: list[int]
    parents: list[int]
    counts: list[int]

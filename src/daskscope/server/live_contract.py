"""Responses about running clusters: progress, and the tasks that run now. Part of the contract in ``contract.py``."""

from __future__ import annotations

from typing import TypedDict


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
    prefixes: list[PrefixProgress]


class ClusterProgress(TypedDict):
    """The running computations of a cluster, oldest first."""

    items: list[ComputationProgress]
    #: Running computations, including those that are not listed.
    total: int

"""Responses about the history of a computation. Part of the contract in ``contract.py``."""

from __future__ import annotations

from typing import TypedDict


class HistoryRun(TypedDict):
    """One run. Durations are seconds; compute, transfer and disk are thread time of its tasks."""

    id: str
    cluster_id: str
    start: str | None
    duration: float
    #: Estimate in dollars for the workers while it ran; None without prices or workers.
    cost: float | None
    compute: float
    transfer: float
    disk: float
    n_tasks: int
    n_errors: int
    nbytes: int
    #: Peak of the cluster.
    threads: int


class HistoryLevel(TypedDict):
    """The median duration from one change to the next, in seconds, and the index of the first run with it."""

    first: int
    duration: float


class HistoryChange(TypedDict):
    """A change of the level: when, by how much, and what else changed."""

    at: str | None
    sentence: str
    causes: list[str]


class ComputationHistory(TypedDict):
    """Finished runs of the same code, oldest first, and the changes of their duration."""

    runs: list[HistoryRun]
    levels: list[HistoryLevel]
    changes: list[HistoryChange]

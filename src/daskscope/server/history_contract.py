"""Responses about the history of a computation. Part of the contract in ``contract.py``."""

from __future__ import annotations

from typing import TypedDict


class HistoryRun(TypedDict):
    """One run; its duration in seconds."""

    start: str | None
    duration: float
    n_tasks: int
    nbytes: int
    threads: int


class HistoryChange(TypedDict):
    """A change of the level: when, by how much, and what else changed."""

    at: str | None
    sentence: str
    causes: list[str]


class ComputationHistory(TypedDict):
    """Finished runs of the same code, oldest first, and the changes of their duration."""

    runs: list[HistoryRun]
    changes: list[HistoryChange]

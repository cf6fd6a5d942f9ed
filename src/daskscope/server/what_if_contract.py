"""The response that predicts a computation on other clusters; part of the API's contract (``contract``)."""

from __future__ import annotations

from typing import TypedDict


class PredictedCluster(TypedDict):
    """A computation on a number of equal workers."""

    workers: int
    threads: int
    duration: float
    #: The longer duration, where the recording leaves a range: see the assumptions. Usually the same.
    max_duration: float
    #: Duration of the run divided by ``duration``.
    speedup: float
    efficiency: float
    cost: float | None
    #: Bytes of results: the most at one worker, of all, and moved between workers.
    peak_worker_memory: int
    peak_memory: int
    transferred: int
    exceeds_memory: bool


class WhatIf(TypedDict):
    """Predictions of a computation, by number of workers."""

    #: Why there are no predictions; empty if there are.
    reason: str
    #: How well the replay repeats the run, and up to how many workers more of them pay off, as sentences.
    check: str
    advice: str
    #: Of the run: workers, threads of each, duration, and the duration of its replay.
    workers: int
    threads: int
    duration: float
    replayed: float
    #: Duration with any number of workers.
    bound: float
    #: The last number of workers up to which more of them pay off; 0 without predictions.
    knee: int
    predictions: list[PredictedCluster]
    assumptions: list[str]
    #: Task prefixes, longest total time first.
    prefixes: list[str]

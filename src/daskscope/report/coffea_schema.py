"""The part of a report about coffea; see ``schema``."""

from __future__ import annotations

from typing import Literal, TypedDict


class CoffeaPhase(TypedDict):
    """The tasks of a phase of a coffea run, and their time."""

    phase: Literal["preprocess", "process", "merge"]
    tasks: int
    us: int


class CoffeaPart(TypedDict):
    """All chunks of a dataset or a file; ``slowest_start`` is the first event of the slowest chunk."""

    name: str
    chunks: int
    events: int
    bytes_read: int
    task_us: int
    process_us: int
    slowest_us: int
    slowest_start: int


class CoffeaRates(TypedDict):
    """Events per second of wall time, of thread time, of task time and of ``process()``; null if not known."""

    wall: float | None
    thread: float | None
    task: float | None
    process: float | None


class CoffeaFit(TypedDict):
    """Duration of a chunk: a fixed part, and a part per event."""

    fixed_us: float
    us_per_event: float


class CoffeaRun(TypedDict):
    """One call of coffea's Runner, or a computation with dask-awkward. Numbers that were not recorded are -1.

    ``points`` are events and duration of chunks. ``event_rate`` (events per second) and ``worker_count`` have a value per bin.
    """

    name: str
    kind: Literal["Runner", "dask-awkward"]
    headline: str
    start_us: int
    stop_us: int
    threads: int
    events: int
    chunks: int
    chunks_skipped: int
    chunks_failed: int
    files: int
    files_skipped: int
    bytes_read: int
    requests: int
    task_us: int
    open_us: int
    process_us: int
    useful_share: float | None
    overhead_us: int
    bytes_per_event: float | None
    read_amplification: float | None
    rates: CoffeaRates
    phases: list[CoffeaPhase]
    datasets: list[CoffeaPart]
    file_parts: list[CoffeaPart]
    columns: list[str]
    fit: CoffeaFit | None
    points: list[tuple[int, int]]
    workers: list[tuple[str, int]]
    event_rate: list[float]
    worker_count: list[float]

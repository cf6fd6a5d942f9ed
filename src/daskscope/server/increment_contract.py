"""Types of the header of an increment, as pages get it."""

from __future__ import annotations

from typing import TypedDict


class IncrementWorker(TypedDict):
    worker: str
    name: str
    threads: int
    memory_limit: int
    start_us: int
    #: 0 while it is connected.
    stop_us: int
    verdict: str


class IncrementError(TypedDict):
    """Failures of an error group. Key, prefix and time are those of the last one."""

    fingerprint: str
    type: str
    message: str
    prefix: str
    key: str
    count: int
    time_us: int


class IncrementNames(TypedDict):
    """Names, which columns refer to by position."""

    prefixes: list[str]
    #: Worker and thread.
    lanes: list[tuple[str, int]]
    workers: list[str]
    #: Context, label and unit.
    activities: list[tuple[str, str, str]]
    #: File, function, line and whose code it is.
    frames: list[tuple[str, str, int, str]]


class IncrementHistory(TypedDict):
    """Sums over the whole run in steps of ``step`` seconds, by the first second of each step."""

    step: float
    seconds: list[int]
    us: list[int]
    tasks: list[int]
    errors: list[int]


class IncrementHeader(TypedDict):
    """The header of an increment. Its columns follow as bytes, in the order of ``columns``."""

    #: Ask for the next increment with it.
    cursor: str
    #: Whether the page must forget what it has: the increment contains everything.
    is_first: bool
    #: Seconds and bars count from this time on the scheduler's clock.
    origin_us: int
    now_us: int
    is_live: bool
    state: str
    #: Seconds that a page keeps.
    window: int
    #: The first second of which the first increment has rows; it covers less than the window if there were very many.
    first_second: int
    names: IncrementNames
    workers: list[IncrementWorker]
    errors: list[IncrementError]
    #: The key of each bar; empty for activities besides computing.
    keys: list[str]
    #: Executions without a bar, because there were too many.
    left_out: int
    #: None except in the first increment.
    history: IncrementHistory | None
    #: Part, column, type and length.
    columns: list[tuple[str, str, str, int]]

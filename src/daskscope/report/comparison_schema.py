"""The data of a comparison page, in a file and on the server; see ``schema``."""

from __future__ import annotations

from typing import Literal, TypedDict


class ComparedChange(TypedDict):
    """One quantity before and after: medians of the repeats and their ranges, and the relative change."""

    name: str
    before: float | None
    after: float | None
    before_range: list[float] | None
    after_range: list[float] | None
    verdict: Literal["slower", "faster", "no difference shown", "cannot tell", "only before", "only after", ""]
    p: float | None
    ratio: float | None


class ComparedPrefix(TypedDict):
    """One task prefix: time and CPU time per task, and totals."""

    prefix: str
    time: ComparedChange
    cpu: ComparedChange
    total_us: ComparedChange
    count: ComparedChange
    nbytes: ComparedChange
    verdict: Literal["slower", "faster", "no difference shown", "cannot tell", "only before", "only after", ""]


class ComparedText(TypedDict):
    """A package or config key with different values."""

    name: str
    before: str
    after: str


class ComparedFlame(TypedDict):
    """Stacks of both sides in one tree: file, function, line and owner of each frame; self seconds of each node in a median run.

    A node refers to a frame, and to its parent by index plus one; 0 for roots.
    """

    frames: list[tuple[str, str, int, Literal["user", "lib", "native", "dask"]]]
    nodes: list[int]
    parents: list[int]
    before: list[float]
    after: list[float]


class Comparison(TypedDict):
    """A comparison of two sets of runs."""

    before: list[str]
    after: list[str]
    headline: str
    verdict: str
    reason: str
    notes: list[str]
    repeats_before: int
    repeats_after: int
    can_prove: bool
    wall: ComparedChange
    walls_before: list[int]
    walls_after: list[int]
    prefixes: list[ComparedPrefix]
    thread_us: list[ComparedChange]
    spans_us: list[ComparedChange]
    peak_memory: ComparedChange
    memory_before: list[int]
    memory_after: list[int]
    transferred: ComparedChange
    workers: ComparedChange
    threads: ComparedChange
    errors: ComparedChange
    other_cores: ComparedChange
    is_load_different: bool
    versions: list[ComparedText]
    config: list[ComparedText]
    code: str
    hints: list[str]
    left_out: list[str]
    flame: ComparedFlame

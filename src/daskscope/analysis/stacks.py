"""Stacks that a user asked for: of each task, and all of them merged into one tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskscope.analysis.limits import clean, clean_name, parse_object
from daskscope.analysis.profiles import Frame, parse_frame
from daskscope.model.table import Table

#: Stacks of a request that are shown. A worker sends at most 500.
MAX_STACKS = 2_000
#: Frames of a stack; a recorder sends no more.
MAX_DEPTH = 500


@dataclass(frozen=True, slots=True)
class TaskStack:
    """The stack of a task, outermost frame first; frames are numbers in ``Stacks.frames``."""

    time_us: int
    worker: str
    key: str
    prefix: str
    thread: int
    start_us: int
    frames: tuple[int, ...]


@dataclass(frozen=True)
class Tree:
    """Stacks merged. Parents come before their children; roots have parent -1."""

    #: For each node its frame, its parent, and how many stacks end at it.
    nodes: list[int]
    parents: list[int]
    counts: list[int]


@dataclass(frozen=True)
class Stacks:
    """The answer to a request."""

    frames: list[Frame]
    items: list[TaskStack]
    tree: Tree
    #: Whether all agents have answered, or will not.
    is_complete: bool = False
    #: Busy workers, workers that were asked, and workers that answered.
    workers: int = 0
    asked: int = 0
    answered: int = 0
    why: str = ""


NO_STACKS = Stacks([], [], Tree([], [], []))


def answer_of(table: Table, request: int) -> Stacks:
    """Return the stacks that answer a request, longest-running task first."""
    rows = table.take(np.flatnonzero(table["request"] == request))
    numbers: dict[str, int] = {}
    items, note, is_complete = list[TaskStack](), dict[str, object](), False
    columns = ("time_us", "worker", "key", "prefix", "thread", "start_us", "stack", "note")
    for time_us, worker, key, prefix, thread, start_us, stack, text in rows.records(*columns):
        if text:
            note, is_complete = parse_object(text), True
        elif len(items) < MAX_STACKS:
            frames = tuple(numbers.setdefault(frame, len(numbers)) for frame in stack[:MAX_DEPTH])
            names = (clean_name(worker), clean_name(key), clean_name(prefix))
            items.append(TaskStack(clean(time_us), *names, clean(thread), clean(start_us), frames))
    # Tasks without a known start come last.
    items.sort(key=lambda item: (item.start_us == 0, item.start_us, item.worker, item.thread))

    def number(name: str) -> int:
        value = note.get(name)
        return clean(value) if type(value) is int else 0

    why = note.get("why")
    return Stacks(
        [parse_frame(text) for text in numbers],
        items,
        merge([item.frames for item in items]),
        is_complete,
        number("workers"),
        number("asked"),
        number("answered"),
        clean_name(why) if isinstance(why, str) else "",
    )


def merge(stacks: Sequence[Sequence[int]]) -> Tree:
    """Return stacks merged into a tree from the outermost frames down."""
    known: dict[tuple[int, int], int] = {}
    tree = Tree([], [], [])
    for stack in stacks:
        at = -1
        for frame in stack:
            found = known.get((at, frame))
            if found is None:
                found = known[at, frame] = len(tree.nodes)
                tree.nodes.append(frame)
                tree.parents.append(at)
                tree.counts.append(0)
            at = found
        if at >= 0:
            tree.counts[at] += 1
    return tree

"""The differential flame graph: sampled stacks of two sets of runs in one tree, with the time of each before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskscope.analysis.bins import Bins
from daskscope.analysis.profiles import Owner, owner, profile, tree
from daskscope.model.recording import Recording

#: Smaller parts of the larger side are added to their callers: a pixel of a wide screen.
MIN_SHARE = 0.0005

#: File, function, line (always 0), whose code.
Frame = tuple[str, str, int, Owner]


@dataclass
class Side:
    """Mean self seconds by stack over the runs of one side. A stack is a tuple of file and function, outermost first.

    Lines are left out: a line added above a function would make it another one.
    """

    seconds: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)
    runs: int = 0

    def add(self, recording: Recording, start_us: int, stop_us: int) -> None:
        """Add the stacks of one run."""
        self.runs += 1
        found = profile(recording, Bins.over(start_us, stop_us, 1))
        own = tree(found)[0]
        nodes, parents = found.nodes.tolist(), found.parents.tolist()
        paths: list[tuple[tuple[str, str], ...]] = []
        for node, parent in zip(nodes, parents, strict=True):
            file, function, _ = found.frames[node]
            paths.append((paths[parent] if parent >= 0 else ()) + ((file, function),))
        for at in np.flatnonzero(own).tolist():
            self.seconds[paths[at]] = self.seconds.get(paths[at], 0.0) + float(own[at]) * found.seconds_per_sample


@dataclass(frozen=True)
class DifferentialFlame:
    """A tree of frames. A node refers to a frame and to its parent (index plus one; 0 for roots), which comes before it."""

    frames: list[Frame]
    nodes: list[int]
    parents: list[int]
    #: Mean self seconds of a run for each node.
    before: list[float]
    after: list[float]

    def to_dict(self) -> dict[str, Any]:
        return {
            "frames": [list(frame) for frame in self.frames],
            "nodes": self.nodes,
            "parents": self.parents,
            "before": [round(seconds, 6) for seconds in self.before],
            "after": [round(seconds, 6) for seconds in self.after],
        }


def merge_sides(before: Side, after: Side) -> DifferentialFlame:
    """Merge both sides into one tree."""
    sides = [
        {path: us / max(1, side.runs) for path, us in _without_small(side.seconds).items()} for side in (before, after)
    ]
    frames, places = list[Frame](), dict[tuple[str, str], int]()
    nodes, parents, index = list[int](), list[int](), dict[tuple[tuple[str, str], ...], int]()
    seconds: tuple[list[float], list[float]] = ([], [])
    for path in sorted({*sides[0], *sides[1]}):
        for depth in range(1, len(path) + 1):
            part = path[:depth]
            if part in index:
                continue
            file, function = part[-1]
            if part[-1] not in places:
                places[part[-1]] = len(frames)
                frames.append((file, function, 0, owner(file)))
            index[part] = len(nodes)
            nodes.append(places[part[-1]])
            parents.append(index[part[:-1]] + 1 if depth > 1 else 0)
            for values, side in zip(seconds, sides, strict=True):
                values.append(side.get(part, 0.0))
    return DifferentialFlame(frames, nodes, parents, *seconds)


def _without_small(
    seconds: dict[tuple[tuple[str, str], ...], float],
) -> dict[tuple[tuple[str, str], ...], float]:
    """Move the time of small subtrees to their callers, so that the sum stays the same."""
    totals = dict[tuple[tuple[str, str], ...], float]()
    for path, own in seconds.items():
        for depth in range(1, len(path) + 1):
            totals[path[:depth]] = totals.get(path[:depth], 0.0) + own
    limit, kept = MIN_SHARE * sum(seconds.values()), dict[tuple[tuple[str, str], ...], float]()
    for path, own in seconds.items():
        depth = len(path)
        while depth > 1 and totals[path[:depth]] < limit:
            depth -= 1
        kept[path[:depth]] = kept.get(path[:depth], 0.0) + own
    return kept


def largest_changes(flame: DifferentialFlame, count: int) -> Sequence[tuple[Frame, float, float]]:
    """Return the functions whose self time changed most, with their seconds before and after."""
    sums = [[0.0, 0.0] for _ in flame.frames]
    for node, before, after in zip(flame.nodes, flame.before, flame.after, strict=True):
        sums[node][0] += before
        sums[node][1] += after
    rows = [(frame, before, after) for frame, (before, after) in zip(flame.frames, sums, strict=True)]
    return sorted(rows, key=lambda row: (-abs(row[2] - row[1]), row[0]))[:count]

"""The differential flame graph: sampled stacks of two sets of runs in one tree, with the time of each before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.profiles import Owner, owner, profile, sampled_seconds
from daskscope.model.recording import Recording

#: Smaller parts of the larger side are added to their callers: a pixel of a wide screen.
MIN_SHARE = 0.0005

#: File, function, line (always 0), whose code.
Frame = tuple[str, str, int, Owner]


#: File and function. Lines are left out: a line added above a function would make it another one.
Name = tuple[str, str]


@dataclass
class Side:
    """Self seconds by stack in the runs of one side, as a tree whose nodes come after their callers."""

    #: Nodes by caller (-1 for roots) and name; the order of insertion numbers them.
    nodes: dict[tuple[int, Name], int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    #: Sum of the self seconds of each run.
    runs: list[float] = field(default_factory=list)

    def add(self, recording: Recording, start_us: int, stop_us: int) -> None:
        """Add the stacks of one run."""
        before = sum(self.seconds)
        found = profile(recording, Bins.over(start_us, stop_us, 1))
        seconds, parents = sampled_seconds(found), found.parents.tolist()
        own = [0.0] * len(parents) if seconds is None else seconds.tolist()
        has_samples = [value > 0 for value in own]
        for node in range(len(own) - 1, -1, -1):
            if has_samples[node] and parents[node] >= 0:
                has_samples[parents[node]] = True
        places: dict[int, int] = {-1: -1}
        for node, frame in enumerate(found.nodes.tolist()):
            if has_samples[node]:
                file, function, _ = found.frames[frame]
                place = places[node] = self._place(places[max(parents[node], -1)], (file, function))
                self.seconds[place] += own[node]
        self.runs.append(sum(self.seconds) - before)

    def _place(self, caller: int, name: Name) -> int:
        place = self.nodes.setdefault((caller, name), len(self.nodes))
        if place == len(self.seconds):
            self.seconds.append(0.0)
        return place

    def large(self) -> dict[tuple[int, Name], tuple[int, float]]:
        """Return the nodes that are not small, with their self seconds in a median run; these include small parts below.

        All runs shape the tree, and their median is its total, as everywhere in a comparison: a mean of five runs said +42 %
        because of one slow run.
        """
        own, totals = list(self.seconds), list(self.seconds)
        limit, callers = MIN_SHARE * sum(own), [caller for caller, _ in self.nodes]
        for node in range(len(own) - 1, -1, -1):
            caller = callers[node]
            if caller >= 0:
                totals[caller] += totals[node]
                own[caller] += own[node] if totals[node] < limit else 0.0
        sampled = [seconds for seconds in self.runs if seconds > 0]
        of_median = median(sampled) / sum(sampled) if sampled else 0.0
        return {
            key: (node, own[node] * of_median)
            for key, node in self.nodes.items()
            if totals[node] >= limit or key[0] < 0
        }


@dataclass(frozen=True)
class DifferentialFlame:
    """A tree of frames. A node refers to a frame and to its parent (index plus one; 0 for roots), which comes before it."""

    frames: list[Frame]
    nodes: list[int]
    parents: list[int]
    #: Self seconds of a median run for each node.
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
    """Merge both sides into one tree, in which the functions that a function calls are ordered by name."""
    # The same tree again: deep stacks are as many nodes as frames, and a path for each would take the square of that.
    joined: dict[tuple[int, Name], int] = {}
    seconds: list[list[float]] = []
    for at, side in enumerate((before, after)):
        places = {-1: -1}
        for (caller, name), (node, own) in side.large().items():
            place = places[node] = joined.setdefault((places[caller], name), len(joined))
            if place == len(seconds):
                seconds.append([0.0, 0.0])
            seconds[place][at] = own
    called: dict[int, list[tuple[Name, int]]] = {}
    for (caller, name), place in joined.items():
        called.setdefault(caller, []).append((name, place))
    return _ordered(called, seconds)


def _ordered(called: dict[int, list[tuple[Name, int]]], seconds: list[list[float]]) -> DifferentialFlame:
    """Number the nodes of a tree: each is followed by what it calls."""
    frames, known = list[Frame](), dict[Name, int]()
    flame = DifferentialFlame(frames, [], [], [], [])
    pending = [(name, place, 0) for name, place in sorted(called.get(-1, ()), reverse=True)]
    while pending:
        name, place, parent = pending.pop()
        if name not in known:
            known[name] = len(frames)
            frames.append((*name, 0, owner(name[0])))
        flame.nodes.append(known[name])
        flame.parents.append(parent)
        flame.before.append(seconds[place][0])
        flame.after.append(seconds[place][1])
        number = len(flame.nodes)
        pending += [(other, below, number) for other, below in sorted(called.get(place, ()), reverse=True)]
    return flame


def largest_changes(flame: DifferentialFlame, count: int) -> Sequence[tuple[Frame, float, float]]:
    """Return the functions whose self time changed most, with their seconds before and after."""
    sums = [[0.0, 0.0] for _ in flame.frames]
    for node, before, after in zip(flame.nodes, flame.before, flame.after, strict=True):
        sums[node][0] += before
        sums[node][1] += after
    rows = [(frame, before, after) for frame, (before, after) in zip(flame.frames, sums, strict=True)]
    return sorted(rows, key=lambda row: (-abs(row[2] - row[1]), row[0]))[:count]

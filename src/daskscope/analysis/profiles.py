"""Profiles: all sampled stacks as one tree, and samples by kind, prefix, span, worker and time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from daskscope.analysis.columns.bins import Bins, Cube, make_cube
from daskscope.analysis.columns.grouping import flat_strings, renumber, sums, where
from daskscope.analysis.executions import EXECUTED, with_actor_calls
from daskscope.model.recording import Array, Recording, Table
from daskscope.model.untrusted import clean, clean_name, parse_object

Frame = tuple[str, str, int]
Owner = Literal["user", "lib", "native", "dask"]

#: Kinds of stacks that are not of tasks.
LOOPS = ("worker event loop", "scheduler")
KEYS = ("kind", "prefix", "span", "worker")
#: Higher sample counts of a row are invalid, and would overflow sums.
MAX_SAMPLES = 2**40


@dataclass(frozen=True)
class Profile:
    """All stacks. A node is a frame called from its parent; parents come before their children, roots have parent -1."""

    #: File, function, line.
    frames: list[Frame]
    #: For each node its frame.
    nodes: Array
    parents: Array
    #: Sample ``count`` by kind, prefix, span, worker and ``stack``, the node at which a stack ends.
    cube: Cube
    #: Samples taken, and samples due.
    got: int
    expected: int
    #: Weight of a ``compute`` sample by code of its prefix. The sampler misses some prefixes more often than others (those with
    #: native code that holds the GIL), so the samples of each add up to its recorded compute time. Empty without samples.
    seconds_per_sample: Array
    bins: Bins


def profile(recording: Recording, bins: Bins) -> Profile:
    """Merge all stacks of a recording; a sample belongs to the bin in which its time slice begins."""
    table = recording["profiles"]
    stacks = table.lists("stack")
    texts = flat_strings(stacks)

    def frame_at(rows: Array, depth: int) -> Array:
        result: Array = texts.codes[stacks.offsets[rows] + depth]
        return result

    ends, nodes, parents = _grow(stacks.lengths, frame_at, len(texts.values))
    rows = np.flatnonzero(ends >= 0)
    counts = np.clip(table["count"][rows], 0, MAX_SAMPLES)
    columns = [table.strings(name) for name in KEYS]
    keys = {name: list(map(str, column.values)) for name, column in zip(KEYS, columns, strict=True)}
    codes = [*(column.codes[rows] for column in columns), ends[rows]]
    cube = make_cube({**keys, "stack": []}, codes, bins.of(table["start_us"])[rows], bins.count, {"count": counts})
    got, expected = _sample_counts(table)
    computing = where(table.strings("kind"), "compute")[rows]
    samples = sums(codes[KEYS.index("prefix")], np.where(computing, counts, 0), len(keys["prefix"]))
    return Profile(
        frames=[parse_frame(text) for text in texts.values],
        nodes=nodes,
        parents=parents,
        cube=cube,
        got=got,
        expected=expected,
        seconds_per_sample=_seconds_per_sample(with_actor_calls(recording)["tasks"], bins, keys["prefix"], samples),
        bins=bins,
    )


def loops_note(recording: Recording) -> str:
    """Return why the profile has no stacks of event loops; empty if it has some, or if the reason is not known."""
    kinds = recording["profiles"].strings("kind")
    if where(kinds, *LOOPS).any():
        return ""
    pythons = [str(parse_object(str(text)).get("python", "")) for text in recording["clusters"]["versions"]]
    if any(python.startswith("3.11.") for python in pythons):
        return "Dask does not sample event loops on Python 3.11."
    return ""


def tree(
    profile: Profile,
    kind: str | None = "compute",
    prefix: str | None = None,
    span: str | None = None,
    worker: str | None = None,
    start_us: int | None = None,
    stop_us: int | None = None,
) -> tuple[Array, Array]:
    """Return two counts for each node: samples that end at it (self), and at it or below it (total).

    Time is cut at whole bins.
    """
    cube, bins = profile.cube, profile.bins
    kept = np.ones(cube.rows, dtype=bool)
    for name, wanted in zip(KEYS, (kind, prefix, span, worker), strict=True):
        if wanted is not None:
            texts = cube.keys[name]
            kept &= cube.codes[name] == (texts.index(wanted) if wanted in texts else -1)
    if start_us is not None:
        kept &= cube.bin * bins.width_us + bins.start_us >= start_us
    if stop_us is not None:
        kept &= cube.bin * bins.width_us + bins.start_us < stop_us
    own = sums(cube.codes["stack"][kept], cube.measures["count"][kept], len(profile.nodes))
    return own, _totals(own, profile.parents)


def sampled_seconds(profile: Profile) -> Array | None:
    """Return the compute time at each node itself, in seconds; None without samples of it."""
    if not len(profile.seconds_per_sample):
        return None
    cube = profile.cube
    kept = cube.codes["kind"] == cube.keys["kind"].index("compute")
    weights = cube.measures["count"][kept] * profile.seconds_per_sample[cube.codes["prefix"][kept]]
    return np.bincount(cube.codes["stack"][kept], weights, minlength=len(profile.nodes))


def collapsed(profile: Profile, counts: Array) -> list[str]:
    """Return a line per stack in Brendan Gregg's format: frames joined by ``;``, outermost first, and the count."""
    labels = [_label(frame) for frame in profile.frames]
    nodes, parents = profile.nodes.tolist(), profile.parents.tolist()
    lines = []
    for end in np.flatnonzero(counts).tolist():
        path, node = [], end
        while node >= 0:
            path.append(labels[nodes[node]])
            node = parents[node]
        lines.append(f"{';'.join(reversed(path))} {int(counts[end])}")
    return lines


_PACKAGES = re.compile(r"/(?:site|dist)-packages/([^/]+)")
_STDLIB = re.compile(r"/lib(?:64)?/(?:python3[^/]*/)?([^/]+)(?:/|$)", re.IGNORECASE)
_CHECKOUT = re.compile(r"/(?:dask/dask|distributed/distributed|dask-expr/dask_expr)/")
_DASK = ("dask", "distributed", "dask_expr")
_TASK_RUNNERS = ("threading.py", "concurrent")


def owner(file: str) -> Owner:
    """Return whose code a file is: the user's, a library's, Dask's (with the threads that run its tasks), or native."""
    path = file.replace("\\", "/")
    if path.startswith("<ipython-input"):
        return "user"
    if path.startswith("<") or not path.endswith((".py", ".pyw")):
        return "native"
    package = _PACKAGES.search(path)
    if package:
        return "dask" if package[1] in _DASK else "lib"
    if _CHECKOUT.search(path):
        return "dask"
    module = _STDLIB.search(path) if "/lib/python3" in path or "/lib64/python3" in path or "/Lib/" in path else None
    if module:
        return "dask" if module[1] in _TASK_RUNNERS else "lib"
    return "user"


@dataclass(frozen=True)
class HotLine:
    """A line of the user's code, and its share of the time that was looked at."""

    file: str
    function: str
    line: str
    share: float

    def __str__(self) -> str:
        return f"{self.file.rpartition('/')[2]}, line {self.line}"


def hottest_line(table: Table, rows: Array, weights: Array) -> HotLine | None:
    """Return the line of the user's code below which most time of the given stacks is: the innermost such line counts."""
    stacks = table.lists("stack").take(rows)
    frames = flat_strings(stacks)
    parts = [str(text).replace("\\", "/").split("\t", 2) for text in frames.values]
    is_user = np.array([len(part) == 3 and owner(part[0]) == "user" for part in parts] or [False])
    # Position of the last line of the user up to each frame; lines of outer stacks do not count.
    last = np.maximum.accumulate(np.where(is_user[frames.codes], np.arange(len(frames.codes)), -1))
    known = np.flatnonzero((stacks.lengths > 0) & (weights > 0))
    at = last[stacks.offsets[1:][known] - 1]
    inside = at >= stacks.offsets[:-1][known]
    if not inside.any():
        return None
    totals: dict[tuple[str, str, str], float] = {}
    for code, us in zip(frames.codes[at[inside]].tolist(), weights[known[inside]].tolist(), strict=True):
        file, function, line = parts[code]
        place = file, function, line
        totals[place] = totals.get(place, 0.0) + us
    place = max(totals, key=totals.__getitem__)
    return HotLine(*place, totals[place] / float(weights.sum()))


def _grow(lengths: Array, frame_at: Callable[[Array, int], Array], frames: int) -> tuple[Array, Array, Array]:
    """Merge stacks into a tree, one depth at a time.

    Return for each stack the node at which it ends (-1 for an empty one), and for each node its frame and its parent.
    """
    ends = np.full(len(lengths), -1, dtype=np.int64)
    nodes, parents = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    rows = np.flatnonzero(lengths > 0)
    at, first, size, made = np.zeros(len(rows), dtype=np.int64), -1, 1, 0
    depth = 0
    while len(rows):
        codes, distinct = renumber(at * frames + frame_at(rows, depth), size * frames)
        nodes.append(distinct % frames)
        parents.append(distinct // frames + first)
        first, size = made, len(distinct)
        made += size
        ends[rows] = codes + first
        depth += 1
        deeper = lengths[rows] > depth
        rows, at = rows[deeper], codes[deeper]
    return ends, np.concatenate(nodes), np.concatenate(parents)


def _depths(parents: Array) -> Array:
    depths = np.zeros(len(parents), dtype=np.int64)
    above = parents.copy()
    while (above >= 0).any():
        inner = np.flatnonzero(above >= 0)
        depths[inner] += 1
        above[inner] = parents[above[inner]]
    return depths


def _totals(own: Array, parents: Array) -> Array:
    """Return the samples that end at or below each node."""
    totals, depths = own.copy(), _depths(parents)
    order = np.argsort(depths, kind="stable")
    edges = np.searchsorted(depths[order], np.arange(int(depths.max(initial=0)) + 2))
    for depth in range(len(edges) - 2, 0, -1):
        level = order[edges[depth] : edges[depth + 1]]
        np.add.at(totals, parents[level], totals[level])
    return totals


def _sample_counts(table: Table) -> tuple[int, int]:
    """Return samples taken and due; every stack of a slice repeats both. Dask's own sampler does not report them."""
    rows = np.flatnonzero(table["ticks"] > 0)
    workers = table.strings("worker")
    slices = np.unique(np.stack((table["start_us"][rows], workers.codes[rows])), axis=1, return_index=True)[1]
    one = rows[slices]
    got, expected = (np.clip(table[name][one], 0, MAX_SAMPLES) for name in ("ticks", "ticks_expected"))
    return int(got.sum()), int(expected.sum())


def _seconds_per_sample(tasks: Table, bins: Bins, prefixes: Sequence[str], samples: Array) -> Array:
    """Return the weight of a sample of each prefix; none at all without samples or without the time of any task.

    A prefix without a time, such as one whose tasks were killed, gets the mean weight: of the others, if there are any.
    """
    ran = np.flatnonzero(where(tasks.strings("status"), *EXECUTED))
    lengths = np.maximum(bins.clip(tasks["stop_us"][ran]) - bins.clip(tasks["start_us"][ran]), 0)
    names = tasks.strings("prefix")
    by_name = dict(
        zip(map(str, names.values), sums(names.codes[ran], lengths, len(names.values)).tolist(), strict=True)
    )
    own_us = np.array([by_name.get(prefix, 0) for prefix in prefixes], dtype=np.float64)
    if not samples.sum() or not lengths.sum():
        return np.zeros(0)
    is_known = (own_us > 0) & (samples > 0)
    some_us, some = (own_us[is_known], samples[is_known]) if is_known.any() else (lengths, samples)
    mean = some_us.sum() / some.sum()
    weights: Array = np.where(is_known, own_us / np.maximum(samples, 1), mean) / 1e6
    return weights


def parse_frame(text: str) -> Frame:
    """Return file, function and line of a recorded frame; line 0 if it is not a number."""
    file, _, rest = text.partition("\t")
    function, _, line = rest.partition("\t")
    return file, function, int(line) if line.isascii() and line.isdigit() and len(line) < 10 else 0


def _label(frame: Frame) -> str:
    file, function, line = frame
    # The format has no quoting.
    return f"{function} ({file}:{line})".replace(";", ",").replace("\n", " ")


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

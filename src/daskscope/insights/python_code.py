"""Rules about Python code: slow loops in tasks, and code that blocks an event loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import flat_strings, where
from daskscope.analysis.profiles import owner
from daskscope.insights.facts import MIN_US, Facts, Finding, Rule, at_least
from daskscope.model.recording import Array, Table

#: Shares of the samples of a prefix.
MIN_LOOPING = 0.2
MIN_COMPILING = 0.5
#: Share of jumps among the samples that end in the user's code, and how many of those there must be.
MIN_JUMPS = 0.02
MIN_SAMPLES = 100
ITERATION = ("__iter__", "to_list", "tolist")

#: File, function and line.
FrameNames = tuple[str, str, str]


@dataclass(frozen=True)
class Samples:
    """Samples of one prefix by what the code was doing."""

    total: int
    #: Ending in a line of the user's code, and of those at a backward jump.
    user: int
    jumps: int
    iterating: int
    compiling: int


def _python_loops(facts: Facts) -> Iterator[Finding]:
    """Find prefixes whose tasks spend their time in loops, in iterating awkward arrays, or in compiling with Numba.

    A thread is sampled where it gives up the interpreter lock, and a loop of Python code does so at its backward jump. Vectorized
    code calls a library from a line of the user, but is never sampled at a jump (0 of 697 samples), a loop in 4 to 6 % and a
    comprehension in 94 to 97 % of the samples of its line.
    """
    frames = _frames(flat_strings(facts.recording["profiles"].lists("stack")).values)
    by_prefix = _by_prefix(facts, frames)
    for one in facts.longest_prefixes:
        prefix, us, samples = one.prefix, one.total_us, by_prefix.get(one.prefix)
        if samples is None or samples.total < MIN_SAMPLES or not facts.is_relevant(us):
            continue
        line = _hottest_line(facts, prefix, frames)
        if samples.iterating > MIN_LOOPING * samples.total:
            yield _loop_finding(
                facts,
                f"{prefix} iterates over awkward arrays",
                samples.iterating / samples.total,
                us,
                f"Samples inside awkward's iteration{line}.",
                "Use array operations instead of a loop over events, or a function compiled by Numba.",
            )
        elif samples.compiling > MIN_COMPILING * samples.total:
            yield _loop_finding(
                facts,
                f"{prefix} spends its time compiling with Numba",
                samples.compiling / samples.total,
                us,
                f"Samples inside Numba's compiler{line}. Every worker process compiles again.",
                "Use @njit(cache=True), or declare the signature so that it is compiled once.",
            )
        elif (
            samples.user > MIN_LOOPING * samples.total
            and samples.user >= MIN_SAMPLES
            and samples.jumps >= MIN_JUMPS * samples.user
        ):
            yield _loop_finding(
                facts,
                f"{prefix} spends its time in a Python loop",
                samples.user / samples.total,
                us,
                f"Samples in lines of your own code, in a loop{line}.",
                "Replace the loop by array operations, or compile it with Numba.",
            )


def _loop_finding(facts: Facts, title: str, share: float, us: int, evidence: str, advice: str) -> Finding:
    saved = facts.thread_time(round(share * us), "compute time of these samples")
    return facts.finding(
        "python loop", title, f"{units.percent(share)} of the samples: {evidence}", advice, "profile", saved
    )


def _by_prefix(facts: Facts, frames: list[FrameNames]) -> dict[str, Samples]:
    table = facts.recording["profiles"]
    stacks, prefix = table.lists("stack"), table.strings("prefix")
    texts = flat_strings(stacks)
    rows = np.flatnonzero(where(table.strings("kind"), "compute") & (stacks.lengths > 0))
    counts, codes = table["count"][rows], prefix.codes[rows]
    leaves = texts.codes[stacks.offsets[rows + 1] - 1]
    is_user = _mask(owner(file) == "user" for file, _, _ in frames)[leaves]
    columns = {
        "total": counts,
        "user": counts * is_user,
        "jumps": table["looping"][rows] * is_user,
        "iterating": counts
        * _holds(table, rows, _mask(name in ITERATION and "/awkward/" in f for f, name, _ in frames)),
        "compiling": counts * _holds(table, rows, _mask("/numba/" in file for file, _, _ in frames)),
    }
    sums = {name: np.bincount(codes, weights=values, minlength=len(prefix.values)) for name, values in columns.items()}
    return {
        str(name): Samples(**{column: round(float(values[code])) for column, values in sums.items()})
        for code, name in enumerate(prefix.values)
    }


def _hottest_line(facts: Facts, prefix: str, frames: list[FrameNames]) -> str:
    """Return the line of the user's code below which most samples of a prefix are, as the end of a sentence."""
    table = facts.recording["profiles"]
    stacks = table.lists("stack")
    texts = flat_strings(stacks)
    lines: dict[tuple[str, str], int] = {}
    wanted = where(table.strings("prefix"), prefix) & where(table.strings("kind"), "compute")
    for row in np.flatnonzero(wanted).tolist():
        codes = texts.codes[stacks.offsets[row] : stacks.offsets[row + 1]].tolist()
        mine = next((code for code in reversed(codes) if owner(frames[code][0]) == "user"), None)
        if mine is not None:
            place = (frames[mine][0], frames[mine][2])
            lines[place] = lines.get(place, 0) + int(table["count"][row])
    if not lines:
        return ""
    file, line = max(lines, key=lambda place: lines[place])
    return f", most of them below {file.rpartition('/')[2]}, line {line}"


def _frames(texts: Array) -> list[FrameNames]:
    """Return file, function and line of each frame."""
    found = []
    for text in texts:
        file, _, rest = str(text).replace("\\", "/").partition("\t")
        function, _, line = rest.partition("\t")
        found.append((file, function, line))
    return found


def _mask(values: Iterable[bool]) -> Array:
    return np.array([*values, False], dtype=bool)


def _holds(table: Table, rows: Array, wanted: Array) -> Array:
    """Return whether each of these stacks, which are not empty, has a frame of the mask."""
    stacks = table.lists("stack")
    before = np.concatenate(([0], np.cumsum(wanted[flat_strings(stacks).codes])))
    result: Array = before[stacks.offsets[rows + 1]] > before[stacks.offsets[rows]]
    return result


PYTHON_LOOPS = Rule(
    "python-loops",
    "Tasks spend their time in Python loops",
    "Array operations and compiled code are 10 to 100 times faster than a loop.",
    "From 20 % of at least 100 samples, with backward jumps in 2 % of them.",
    _python_loops,
)


# ---------------------------------------------------------------- event loops

#: As distributed logs it.
MESSAGE = re.compile(r"Event loop was unresponsive in (\w+) for (?:about )?([0-9.]+)\s*s")
#: Share of the run.
MIN_STALLED = 0.05


def _loop_stalls(facts: Facts) -> Iterator[Finding]:
    stalled: dict[str, list[float]] = {}
    for worker, message, repeats in facts.recording["logs"].records("worker", "message", "repeats"):
        if found := MESSAGE.search(message):
            # Messages that differ only in numbers are recorded once.
            stalled.setdefault(worker, []).extend([float(found[2])] * max(1, repeats))
    if not stalled:
        return
    worker, seconds = max(stalled.items(), key=lambda one: sum(one[1]))
    us = min(round(sum(seconds) * 1e6), facts.run_us)
    if us < max(MIN_US, MIN_STALLED * facts.run_us):
        return
    names = {one.worker: one.name or one.worker for one in facts.workers}
    others = (
        f" {units.counted(len(stalled) - 1, 'other process', 'other processes')} had such stalls, too."
        if len(stalled) > 1
        else ""
    )
    yield facts.finding(
        "overhead",
        f"The event loop of {names.get(worker, 'the scheduler')} was blocked for {units.duration(us)}",
        f"{units.counted(len(seconds), 'time')}, {units.duration(max(seconds) * 1e6)} at most.{others}",
        "Code that holds the interpreter lock for seconds, such as a large pickle or an extension, blocks messages and heartbeats. "
        "Look at the profile of the event loop. On a scheduler, use fewer and larger tasks.",
        "logs",
    )


LOOP_STALLS = Rule(
    "loop-stalls",
    "Event loops are blocked",
    "A scheduler or worker whose event loop is blocked answers nobody, and may be taken for lost.",
    f"From {at_least(MIN_STALLED, 'the run')}, in one process, by the lines that Dask logs after 3 s.",
    _loop_stalls,
)

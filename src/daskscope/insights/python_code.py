"""Rules about Python code: slow loops in tasks, and code that blocks an event loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import flat_strings, where
from daskscope.analysis.columns.intervals import merge
from daskscope.analysis.profiles import hottest_line, owner
from daskscope.analysis.what_if.savings import with_shorter
from daskscope.insights.facts import MIN_US, Facts, Finding, Rule, at_least
from daskscope.model.recording import Array, Table

#: Shares of the samples of a prefix.
MIN_LOOPING = 0.2
MIN_COMPILING = 0.5
#: Share of jumps among the samples that end in a function, and how many samples there must be.
MIN_JUMPS = 0.4
MIN_SAMPLES = 100
#: Executions whose samples are looked at.
MAX_EXECUTIONS = 200
ITERATION = ("__iter__", "to_list", "tolist")

#: File, function and line.
FrameNames = tuple[str, str, str]


@dataclass(frozen=True)
class Samples:
    """Samples of one prefix by what the code was doing."""

    total: int
    #: Ending in a function of the user that is a loop of Python code.
    looping: int
    iterating: int
    compiling: int


def _python_loops(facts: Facts) -> Iterator[Finding]:
    """Find prefixes whose tasks spend their time in loops, in iterating awkward arrays, or in compiling with Numba.

    A thread is sampled where it gives up the interpreter lock: at the end of a call of native code, or at the backward jump of a
    loop. What it computes since the last such place counts for that one. So a loop of Python code is sampled at its jump (100 %
    of the samples of its function without calls, 46 % with one short call of native code in each round), and a loop over long
    calls that hold the lock is not (4 to 9 % with bytes.lower, 7 to 31 % with arrays of objects, whose release counts for the
    jump; none if they give it up). A loop with short calls in each round may look like the latter, and is not reported.
    """
    frames = _frames(flat_strings(facts.recording["profiles"].lists("stack")).values)
    by_prefix = _by_prefix(facts, frames)
    for one in facts.longest_prefixes:
        prefix, us, samples = one.prefix, facts.useful_us(one), by_prefix.get(one.prefix)
        if samples is None or samples.total < MIN_SAMPLES or not facts.is_relevant(us):
            continue
        line = _hottest_line(facts, prefix)
        if samples.iterating > MIN_LOOPING * samples.total:
            yield _loop_finding(
                facts,
                prefix,
                "iterates over awkward arrays",
                samples.iterating / samples.total,
                us,
                f"Samples inside awkward's iteration{line}.",
                "Use array operations instead of a loop over events, or a function compiled by Numba.",
            )
        elif samples.compiling > MIN_COMPILING * samples.total:
            yield _loop_finding(
                facts,
                prefix,
                "spends its time compiling with Numba",
                samples.compiling / samples.total,
                us,
                f"Samples inside Numba's compiler{line}. Every worker process compiles again.",
                "Use @njit(cache=True), or declare the signature so that it is compiled once.",
            )
        elif samples.looping >= max(MIN_SAMPLES, MIN_LOOPING * samples.total):
            yield _loop_finding(
                facts,
                prefix,
                "spends its time in a Python loop",
                samples.looping / samples.total,
                us,
                f"Samples in lines of your own code, in a loop{line}.",
                "Replace the loop by array operations, or compile it with Numba.",
            )


def _loop_finding(facts: Facts, prefix: str, what: str, share: float, us: int, evidence: str, advice: str) -> Finding:
    title = f"{prefix} {what}"
    saved = facts.thread_time(round(share * us), "compute time of these samples", with_shorter(prefix, share))
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
    columns = {
        "total": counts,
        "looping": counts * _in_loops(frames, leaves, codes, counts, table["looping"][rows]),
        "iterating": counts
        * _holds(table, rows, _mask(name in ITERATION and "/awkward/" in f for f, name, _ in frames)),
        "compiling": counts * _holds(table, rows, _mask("/numba/" in file for file, _, _ in frames)),
    }
    sums = {name: np.bincount(codes, weights=values, minlength=len(prefix.values)) for name, values in columns.items()}
    return {
        str(name): Samples(**{column: round(float(values[code])) for column, values in sums.items()})
        for code, name in enumerate(prefix.values)
    }


#: Parts of files in which a thread imports a module or waits for another thread that does, and the same for compilers.
IMPORTS = ("<frozen importlib", "/importlib/_bootstrap")
COMPILERS = ("/numba/", "/llvmlite/", "/jax/_src/", "/torch/_dynamo/", "/torch/_inductor/")
#: Share of the time of executions that is sampled there, if that is why they take long.
MIN_LOADING = 0.5


def loading_us(facts: Facts, rows: Array) -> tuple[int, int]:
    """Return the sampled time in imports and in compilers while the given executions of one prefix ran, on their workers."""
    tasks, table = facts.recording["tasks"], facts.recording["profiles"]
    if not len(rows) or not table.rows:
        return 0, 0
    frames = _frames(flat_strings(table.lists("stack")).values)
    mine = where(table.strings("prefix"), str(tasks["prefix"][rows[0]])) & where(table.strings("kind"), "compute")
    mine &= table.lists("stack").lengths > 0
    meanwhile = np.zeros(table.rows, dtype=bool)
    for row in rows[:MAX_EXECUTIONS].tolist():
        start, stop = tasks["start_us"][row], tasks["stop_us"][row]
        there = where(table.strings("worker"), str(tasks["worker"][row]))
        meanwhile |= there & (table["start_us"] < stop) & (table["stop_us"] > start)
    found = np.flatnonzero(mine & meanwhile)
    compiles = _holds(table, found, _mask(any(part in file for part in COMPILERS) for file, _, _ in frames))
    imports = _holds(table, found, _mask(any(part in file for part in IMPORTS) for file, _, _ in frames)) & ~compiles
    wall = table["wall_us"][found]
    return int(wall[imports].sum()), int(wall[compiles].sum())


def _in_loops(frames: list[FrameNames], leaves: Array, prefixes: Array, counts: Array, jumps: Array) -> Array:
    """Return which samples end in a function of the user that is a loop of Python code, by its jumps in the same prefix."""
    is_user = _mask(owner(file) == "user" for file, _, _ in frames)[leaves]
    numbers: dict[tuple[str, str], int] = {}
    functions = np.array([numbers.setdefault((file, name), len(numbers)) for file, name, _ in frames] or [0])
    cells = prefixes.astype(np.int64) * max(1, len(numbers)) + functions[leaves]
    _, cells = np.unique(cells, return_inverse=True)
    share = np.bincount(cells, weights=jumps) / np.maximum(np.bincount(cells, weights=counts), 1.0)
    result: Array = is_user & (share[cells] >= MIN_JUMPS)
    return result


def _hottest_line(facts: Facts, prefix: str) -> str:
    """Return the line of the user's code below which most samples of a prefix are, as the end of a sentence."""
    table = facts.recording["profiles"]
    rows = np.flatnonzero(where(table.strings("prefix"), prefix) & where(table.strings("kind"), "compute"))
    found = hottest_line(table, rows, table["count"][rows])
    return f", most of them below {found}" if found else ""


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
    "From 20 % of the samples of a prefix, and 100 samples, in functions that are sampled at a backward jump in 40 % of them. "
    "Loops whose rounds are long calls of native code are not, nor are some with short ones.",
    _python_loops,
)


# ---------------------------------------------------------------- event loops

#: As distributed logs it.
MESSAGE = re.compile(r"Event loop was unresponsive in (\w+) for (?:about )?([0-9.]+)\s*s")
#: Share of the run.
MIN_STALLED = 0.05
SCHEDULER = "the scheduler"
ON_SCHEDULER = " Use fewer and larger tasks. With LocalCluster, the work of its client blocks the scheduler, too."


def loop_stalls_s(facts: Facts) -> dict[str, list[float]]:
    """Return how long the event loop of each worker, and of the scheduler, was blocked, as Dask logged it.

    The scheduler's process has the loops of a local cluster's nannies, too, and workers may share a process. All of them log the
    same stall, so stalls that overlap are one.
    """
    ends: dict[str, list[tuple[float, float]]] = {}
    for worker, time_us, message in facts.recording["logs"].records("worker", "time_us", "message"):
        if found := MESSAGE.search(message):
            # Dask logs a stall when it is over.
            ends.setdefault(worker, []).append((time_us - 1e6 * float(found[2]), float(time_us)))
    return {worker: _lengths_s(np.array(times)) for worker, times in ends.items()}


def _lengths_s(times: Array) -> list[float]:
    starts, stops = merge(times[:, 0], times[:, 1])
    return [round(float(length), 3) for length in (stops - starts) / 1e6]


def stalled_us(facts: Facts) -> int:
    """Return the thread time of workers during stalls of their event loops, in which they start no task."""
    stalls = loop_stalls_s(facts)
    return round(sum(1e6 * sum(stalls.get(worker.worker, ())) * worker.threads for worker in facts.workers))


def process_name(facts: Facts, address: str) -> str:
    """Return how to call a process in a sentence. Workers of a local cluster have numbers as names."""
    for worker in facts.workers:
        if worker.worker == address:
            return f"worker {worker.name or address}"
    return SCHEDULER


def _loop_stalls(facts: Facts) -> Iterator[Finding]:
    stalled = loop_stalls_s(facts)
    if not stalled:
        return
    worker, seconds = max(stalled.items(), key=lambda one: sum(one[1]))
    us = min(round(sum(seconds) * 1e6), facts.run_us)
    if us < max(MIN_US, MIN_STALLED * facts.run_us):
        return
    others = (
        f" {units.counted(len(stalled) - 1, 'other process', 'other processes')} had such stalls, too."
        if len(stalled) > 1
        else ""
    )
    yield facts.finding(
        "overhead",
        f"The event loop of {process_name(facts, worker)} was blocked for {units.duration(us)}",
        f"{units.counted(len(seconds), 'time')}, {units.duration(max(seconds) * 1e6)} at most.{others}",
        "Code that holds the interpreter lock for seconds, such as a large pickle or an extension, blocks messages and heartbeats. "
        f"Look at the profile of the event loop.{'' if process_name(facts, worker) != SCHEDULER else ON_SCHEDULER}",
        "logs",
    )


LOOP_STALLS = Rule(
    "loop-stalls",
    "Event loops are blocked",
    "A scheduler or worker whose event loop is blocked answers nobody, and may be taken for lost.",
    f"From {at_least(MIN_STALLED, 'the run')}, in one process, by the lines that Dask logs after 3 s.",
    _loop_stalls,
)

"""Larger or smaller chunks would be faster.

A line through durations and sizes tells the fixed cost of a chunk. Tasks of other sizes are scheduled on the threads of the run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskscope import units
from daskscope.analysis.chunk_cost import MIN_TASKS, Line, fit_line
from daskscope.analysis.grouping import where
from daskscope.analysis.list_schedule import makespan_us
from daskscope.analysis.prefixes import Prefix
from daskscope.insights.facts import Facts, Finding, Rule
from daskscope.insights.short_tasks import SHORT_US

MIN_GAIN = 1.25
#: Share of the compute time of a prefix: the others could not make the run 1.25 times faster.
MIN_SHARE = 0.2
#: Chunks of this many times the present size, up to this factor beyond those seen, and up to this share of a thread's memory.
FACTORS = (0.25, 0.5, 2, 4, 8)
REACH = 4.0
MAX_MEMORY = 0.1
#: Work of the scheduler for a task.
TASK_US = 1_000
#: Rows of a prefix that are looked at.
MAX_ROWS = 20_000


def _predict_us(line: Line, factor: float, threads: int) -> float:
    """Return the time of all tasks on some threads, with chunks of ``factor`` times the size."""
    if factor >= 1:
        sizes = np.add.reduceat(line.nbytes, np.arange(0, len(line.nbytes), round(factor)))
    else:
        sizes = np.repeat(line.nbytes * factor, round(1 / factor))
    return makespan_us((line.fixed_us + line.us_per_byte * sizes + TASK_US).tolist(), threads)


def check(facts: Facts) -> Iterator[Finding]:
    if facts.run_us <= 0 or facts.split.compute_us <= 0:
        return
    # On average: workers that came one after the other are not there at the same time.
    threads = max(1, round(facts.split.thread_us / facts.run_us))
    memory = min((w.memory_limit / max(w.threads, 1) for w in facts.workers if w.memory_limit), default=0.0)
    for prefix in facts.longest_prefixes:
        is_large = prefix.total_us >= MIN_SHARE * facts.split.compute_us and MIN_TASKS <= prefix.count <= MAX_ROWS
        line = _line(facts, prefix) if is_large and prefix.p50_us >= SHORT_US else None
        if line is None:
            continue
        present_us = _predict_us(line, 1, threads)
        factors = [factor for factor in FACTORS if _is_near(line, factor, memory)]
        best = min(factors, key=lambda factor: _predict_us(line, factor, threads), default=1)
        saved_us = round(present_us - _predict_us(line, best, threads))
        if facts.run_us < MIN_GAIN * (facts.run_us - min(saved_us, facts.run_us)):
            continue
        yield _finding(facts, prefix, line, best, saved_us)


def _finding(facts: Facts, prefix: Prefix, line: Line, factor: float, saved_us: int) -> Finding:
    name, now = prefix.prefix or "unnamed", float(np.median(line.nbytes))
    fixed = line.fixed_us * len(line.nbytes) / max(prefix.total_us, 1)
    size = units.nbytes(now * factor)
    return facts.finding(
        "overhead",
        f"{'Larger' if factor > 1 else 'Smaller'} chunks would be faster for {name}",
        f"A task takes {units.duration(line.fixed_us)} and {units.duration(line.us_per_byte * (1 << 20))} per MiB. "
        f"With {units.nbytes(now)} per chunk (median), {units.percent(min(fixed, 1.0))} of that is the fixed part.",
        f"Try chunks or partitions of about {size}, {_times(factor)} as large.",
        "stream",
        facts.wall_time(saved_us, "difference to the predicted time of these tasks with such chunks"),
    )


def _times(factor: float) -> str:
    return f"{factor:g} times" if factor > 1 else "half" if factor == 0.5 else "a quarter"


def _line(facts: Facts, prefix: Prefix) -> Line | None:
    tasks = facts.recording["tasks"]
    rows = np.flatnonzero(where(tasks.strings("status"), "ok") & where(tasks.strings("prefix"), prefix.prefix))
    return fit_line(facts.recording, rows)


def _is_near(line: Line, factor: float, memory: float) -> bool:
    """Return whether chunks of this size are close to those seen, and fit into memory."""
    largest = float(line.nbytes.max())
    fits = not memory or largest * factor <= MAX_MEMORY * memory
    return factor < 1 or (fits and float(np.median(line.nbytes)) * factor <= REACH * largest)


RULE = Rule(
    "chunk-size",
    "Larger or smaller chunks would be faster",
    "Every chunk has a fixed cost, and a few large ones leave threads idle.",
    "A fit of fixed cost and cost per byte of a prefix predicts that the run becomes 1.25 times faster. The fit explains 70 % of "
    "the variance of 20 and more executions, whose sizes differ by a factor of 1.5 to 5.",
    check,
)

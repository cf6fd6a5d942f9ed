"""All rules, and the findings they make in the order in which they are shown."""

from __future__ import annotations

from dataclasses import replace

from daskscope.insights import (
    coffea,
    data_movement,
    failures,
    idle,
    memory,
    python_code,
    scaling,
    skew,
    task_size,
    waiting,
)
from daskscope.insights.facts import Facts, Finding, Rule

#: In the order of the documentation. Equally important findings are shown in this order.
RULES: tuple[Rule, ...] = (
    failures.FAILED_TASKS,
    failures.RETRIES_IN_VAIN,
    failures.LOST_WORKERS,
    failures.RECOMPUTED_RESULTS,
    failures.RETRIED_FAILURES,
    skew.STRAGGLERS,
    skew.DATA_SKEW,
    skew.SLOW_WORKERS,
    skew.SERIAL_SECTIONS,
    task_size.REPEATED_WORK,
    task_size.WARM_UP,
    data_movement.TRANSFERS,
    data_movement.SLOW_PAIRS,
    data_movement.SPILLING,
    waiting.BUSY_HOSTS,
    waiting.GIL,
    waiting.LOCKS,
    waiting.NETWORK_READS,
    waiting.FILE_READS,
    waiting.SUBPROCESSES,
    waiting.LIBRARY_THREADS,
    python_code.PYTHON_LOOPS,
    waiting.OFF_CPU,
    idle.NOTHING_SUBMITTED,
    idle.TOO_FEW_TASKS,
    idle.SLOW_STARTS,
    idle.SCHEDULER_QUEUE,
    idle.UNBALANCED_WORK,
    idle.PINNED_WORK,
    idle.PAUSED_WORKERS,
    idle.STARTING_WORKERS,
    idle.UNRUNNABLE_TASKS,
    idle.UNEXPLAINED_IDLE,
    idle.NO_WORKERS,
    scaling.SCALING_LAGS,
    scaling.SCALING_FLAPS,
    scaling.SCALING_CAPPED,
    task_size.SHORT_TASKS,
    task_size.CHUNK_SIZE,
    task_size.LARGE_GRAPHS,
    python_code.LOOP_STALLS,
    memory.MEMORY_GROWTH,
    memory.SPARE_MEMORY,
    coffea.COFFEA_SKIPPED,
    coffea.COFFEA_SAME_ERROR,
    coffea.COFFEA_OPENING,
    coffea.COFFEA_CHUNK_SIZE,
    coffea.COFFEA_FEW_CHUNKS,
    coffea.COFFEA_REREADING,
    coffea.COFFEA_SCALING,
    failures.INCOMPLETE_RECORDING,
)


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Return the findings: first the error that ended the run, then facts without a price, then by estimated saving."""
    found = [replace(finding, rule=rule.id) for rule in RULES for finding in rule.check(facts)]
    return tuple(sorted(found, key=_place))


def _place(finding: Finding) -> tuple[int, float]:
    """Return where a finding stands. A lost worker that cost 8 % of the time is not before a lock that cost 71 %."""
    is_priced = finding.rank == 1 and finding.gain is not None
    return 2 if is_priced else finding.rank, -finding.gain.share if finding.gain else 0.0

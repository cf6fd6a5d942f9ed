"""All rules, and the findings they make in the order in which they are shown."""

from __future__ import annotations

from dataclasses import replace

from daskscope.insights import (
    chunk_size,
    coffea_chunk_size,
    coffea_few_chunks,
    coffea_opening,
    coffea_rereading,
    coffea_same_error,
    coffea_scaling,
    coffea_skipped,
    data_movement,
    data_skew,
    failures,
    idle,
    large_graphs,
    memory,
    python_code,
    repeated_work,
    scaling,
    serial_sections,
    short_tasks,
    slow_workers,
    stragglers,
    waiting,
    warm_up,
)
from daskscope.insights.facts import Facts, Finding, Rule

#: In the order of the documentation. Equally important findings are shown in this order.
RULES: tuple[Rule, ...] = (
    failures.FAILED_TASKS,
    failures.RETRIES_IN_VAIN,
    failures.LOST_WORKERS,
    failures.RECOMPUTED_RESULTS,
    failures.RETRIED_FAILURES,
    stragglers.RULE,
    data_skew.RULE,
    slow_workers.RULE,
    serial_sections.RULE,
    repeated_work.RULE,
    warm_up.RULE,
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
    short_tasks.RULE,
    chunk_size.RULE,
    large_graphs.RULE,
    python_code.LOOP_STALLS,
    memory.MEMORY_GROWTH,
    memory.SPARE_MEMORY,
    coffea_skipped.RULE,
    coffea_same_error.RULE,
    coffea_opening.RULE,
    coffea_chunk_size.RULE,
    coffea_few_chunks.RULE,
    coffea_rereading.RULE,
    coffea_scaling.RULE,
    failures.INCOMPLETE_RECORDING,
)


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Return the findings: first the error that ended the run, then certain facts, then by estimated saving."""
    found = [replace(finding, rule=rule.id) for rule in RULES for finding in rule.check(facts)]
    return tuple(sorted(found, key=lambda finding: (finding.rank, -finding.gain.share if finding.gain else 0)))

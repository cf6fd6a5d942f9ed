"""All rules, and the findings they make in the order in which they are shown."""

from __future__ import annotations

from dataclasses import replace

from daskscope.analysis.facts import Facts, Finding
from daskscope.insights import (
    busy_hosts,
    coffea_chunk_size,
    coffea_few_chunks,
    coffea_opening,
    coffea_rereading,
    coffea_same_error,
    coffea_scaling,
    coffea_skipped,
    failed_tasks,
    file_reads,
    gil,
    incomplete_recording,
    large_graphs,
    library_threads,
    locks,
    loop_stalls,
    lost_workers,
    memory_growth,
    network_reads,
    no_workers,
    nothing_submitted,
    off_cpu,
    paused_workers,
    python_loops,
    repeated_work,
    retried_failures,
    retries_in_vain,
    scheduler_queue,
    serial_sections,
    short_tasks,
    slow_starts,
    spare_memory,
    spilling,
    starting_workers,
    stragglers,
    subprocesses,
    too_few_tasks,
    transfers,
    unbalanced_work,
    unexplained_idle,
    unrunnable_tasks,
    warm_up,
)
from daskscope.insights.rule import Rule

#: In the order of the documentation. Equally important findings are shown in this order.
RULES: tuple[Rule, ...] = (
    failed_tasks.RULE,
    retries_in_vain.RULE,
    lost_workers.RULE,
    retried_failures.RULE,
    stragglers.RULE,
    serial_sections.RULE,
    repeated_work.RULE,
    warm_up.RULE,
    transfers.RULE,
    spilling.RULE,
    busy_hosts.RULE,
    gil.RULE,
    locks.RULE,
    network_reads.RULE,
    file_reads.RULE,
    subprocesses.RULE,
    library_threads.RULE,
    python_loops.RULE,
    off_cpu.RULE,
    nothing_submitted.RULE,
    too_few_tasks.RULE,
    slow_starts.RULE,
    scheduler_queue.RULE,
    unbalanced_work.RULE,
    paused_workers.RULE,
    starting_workers.RULE,
    unrunnable_tasks.RULE,
    unexplained_idle.RULE,
    no_workers.RULE,
    short_tasks.RULE,
    large_graphs.RULE,
    loop_stalls.RULE,
    memory_growth.RULE,
    spare_memory.RULE,
    coffea_skipped.RULE,
    coffea_same_error.RULE,
    coffea_opening.RULE,
    coffea_chunk_size.RULE,
    coffea_few_chunks.RULE,
    coffea_rereading.RULE,
    coffea_scaling.RULE,
    incomplete_recording.RULE,
)


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Return the findings: first the error that ended the run, then certain facts, then by estimated saving."""
    found = [replace(finding, rule=rule.id) for rule in RULES for finding in rule.check(facts)]
    return tuple(sorted(found, key=lambda finding: (finding.rank, -finding.gain.share if finding.gain else 0)))

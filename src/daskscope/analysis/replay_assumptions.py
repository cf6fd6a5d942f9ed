"""The assumptions of a replay, as sentences for the reader of a prediction."""

from __future__ import annotations

import math

from daskscope import units
from daskscope.analysis.recorded_graph import Recorded

#: The task that ends the first half of a P2P shuffle or rechunk.
P2P_PREFIX = "shuffle-barrier"


def assumptions(recorded: Recorded, threads: int, *, has_transfers: bool) -> tuple[str, ...]:
    """Return the assumptions of predictions with some threads per worker."""
    found = ["All workers are there from the start, and tasks do the same work as in the run.", _cores(recorded)]
    if threads > 1 and any(group.gil_share for group in recorded.graph.groups):
        found.append("Tasks in Python loops hold the GIL, and run one after the other on the threads of a worker.")
    if has_transfers and "bandwidth" in recorded.assumed:
        overheads = recorded.overheads
        found.append(
            f"Too few transfers were recorded to measure them: {overheads.bandwidth:,.0f} MB/s and "
            f"{units.duration(overheads.transfer_us)} each are assumed."
        )
    if assumed := _assumed_overheads(recorded, has_transfers=has_transfers):
        found.append(f"Too little was recorded to measure some overheads. Assumed: {', '.join(assumed)}.")
    if has_transfers and P2P_PREFIX in {recorded.prefixes[code] for code in set(recorded.prefix.tolist())}:
        found.append("What workers send each other in a P2P shuffle is not part of the graph, and takes no time here.")
    return tuple(found)


def _cores(recorded: Recorded) -> str:
    cores, others = recorded.setup.cores, recorded.setup.others
    busy = f", of which other programs use {others:.2g}" if others >= 0.05 else ""
    if not math.isfinite(cores):
        return "The number of cores is not known: each thread has one."
    if recorded.is_local:
        return f"All workers share the {cores:g} cores of one machine{busy}."
    return f"A host has {units.counted(recorded.workers_per_host, 'worker')} and {cores:g} cores{busy}."


def _assumed_overheads(recorded: Recorded, *, has_transfers: bool) -> list[str]:
    """Return the overheads that are assumed, without those of the sentence about transfers."""
    overheads, assumed = recorded.overheads, recorded.assumed
    found = []
    if "link_us" in assumed and recorded.graph.inputs:
        found.append(f"{units.duration(overheads.link_us)} between a task and its dependent")
    if "gap_us" in assumed:
        found.append(f"{units.duration(overheads.gap_us)} between two tasks on a thread")
    if "scheduler_us" in assumed:
        found.append(f"{units.duration(overheads.scheduler_us)} of the scheduler per task")
    if has_transfers and "transfer_us" in assumed and "bandwidth" not in assumed:
        found.append(f"{units.duration(overheads.transfer_us)} per transfer besides its bytes")
    return found

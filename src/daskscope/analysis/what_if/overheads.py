"""What Dask takes besides the tasks, measured in a recording."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskscope.analysis.columns.grouping import where
from daskscope.analysis.columns.intervals import task_intervals
from daskscope.analysis.time.critical_path import ROUND_TRIP_US, last_inputs, previous_on_thread
from daskscope.analysis.what_if.graph import Overheads
from daskscope.model.recording import Array, Recording, Table

#: Used where a recording has too few measurements: measured on two cores, with workers on the same host.
LINK_US, GAP_US, SCHEDULER_US, TRANSFER_US = 4_000.0, 500.0, 150.0, 5_000.0
#: Bytes per microsecond between processes of a host, and between hosts: Dask's own first guess.
LOCAL_BANDWIDTH, NETWORK_BANDWIDTH = 500.0, 100.0
#: The scheduler's process may be the client's, too. More than this per task is not the scheduler's.
MAX_SCHEDULER_US = 1_000.0
MIN_MEASUREMENTS = 3
#: Transfers of more bytes show how fast bytes move; transfers of fewer show the fixed time of a transfer.
LARGE, SMALL = 1_000_000, 100_000


@dataclass(frozen=True)
class MeasuredOverheads:
    """Overheads, and the names of those that are assumed, because the recording has too few measurements."""

    overheads: Overheads
    assumed: frozenset[str]


def measure_overheads(
    recording: Recording, rows: Array, dependents: Array, inputs: Array, *, is_local: bool
) -> MeasuredOverheads:
    """Return the overheads of the given executions; ``dependents`` and ``inputs`` are the rows of their edges."""
    tasks = recording["tasks"]
    previous = previous_on_thread(tasks, rows)
    link = _link_us(tasks, rows, last_inputs(tasks, dependents, inputs), previous)
    gap = _gap_us(tasks, rows, previous)
    scheduler = _scheduler_us(recording, rows)
    bandwidth, transfer = _transfers(recording["transfers"])
    measured = {
        "link_us": link,
        "gap_us": gap,
        "scheduler_us": scheduler,
        "bandwidth": bandwidth,
        "transfer_us": transfer,
    }
    link_us = LINK_US if link is None else link
    overheads = Overheads(
        link_us=link_us,
        gap_us=min(GAP_US if gap is None else gap, link_us),
        scheduler_us=SCHEDULER_US if scheduler is None else scheduler,
        bandwidth=(LOCAL_BANDWIDTH if is_local else NETWORK_BANDWIDTH) if bandwidth is None else bandwidth,
        transfer_us=TRANSFER_US if transfer is None else transfer,
    )
    return MeasuredOverheads(overheads, frozenset(name for name, value in measured.items() if value is None))


def _link_us(tasks: Table, rows: Array, given: Array, previous: Array) -> float | None:
    """Return the time between an execution and its dependent that follows on the same thread, without transfers."""
    rows = rows[(given[rows] >= 0) & (previous[rows] == given[rows])]
    owners, actions, _, _ = task_intervals(tasks, rows)
    other = np.zeros(tasks.rows, dtype=bool)
    other[owners[where(actions, "transfer", "disk-read")]] = True
    rows = rows[~other[rows]]
    return _typical(tasks["start_us"][rows] - tasks["stop_us"][given[rows]])


def _gap_us(tasks: Table, rows: Array, previous: Array) -> float | None:
    """Return the time between two executions on a thread, if the second one was at the worker before the first ended."""
    rows = rows[previous[rows] >= 0]
    before = previous[rows]
    early = (tasks["assigned_us"][rows] > 0) & (tasks["assigned_us"][rows] + ROUND_TRIP_US <= tasks["stop_us"][before])
    rows, before = rows[early], before[early]
    return _typical(tasks["start_us"][rows] - tasks["stop_us"][before])


def _typical(us: Array) -> float | None:
    """Return the mean without the largest twentieth: a pause of the client or of the system is not an overhead.

    None if there are too few.
    """
    us = np.sort(us[us >= 0])
    if len(us) < MIN_MEASUREMENTS:
        return None
    return float(us[: max(1, int(0.95 * len(us)))].mean())


def _scheduler_us(recording: Recording, rows: Array) -> float | None:
    """Return the CPU time of the scheduler per task; None without samples of it."""
    tasks, samples = recording["tasks"], recording["samples"]
    start, stop = int(tasks["start_us"][rows].min()), int(tasks["stop_us"][rows].max())
    during = (samples["time_us"] >= start) & (samples["time_us"] <= stop)
    found = samples["cpu_percent"][during & where(samples.strings("worker"), "scheduler")]
    if not len(found):
        return None
    share = float(np.clip(np.nan_to_num(found), 0.0, 100.0).mean()) / 100
    return min(max(share * (stop - start) / len(rows), 0.0), MAX_SCHEDULER_US)


def _transfers(transfers: Table) -> tuple[float | None, float | None]:
    """Return the bandwidth, and what a transfer takes besides its bytes; None if there are too few transfers."""
    incoming = where(transfers.strings("direction"), "incoming")
    us = np.maximum(transfers["stop_us"] - transfers["start_us"], 1)[incoming]
    nbytes = np.maximum(transfers["nbytes"], 0)[incoming]
    small = us[nbytes < SMALL]
    latency = float(np.median(small)) if len(small) >= MIN_MEASUREMENTS else None
    large = nbytes >= LARGE
    if np.count_nonzero(large) < MIN_MEASUREMENTS:
        return None, latency
    # Only what takes longer than a small transfer moves bytes.
    moving_us = np.maximum(us[large] - (TRANSFER_US if latency is None else latency), 0.2 * us[large])
    return float(nbytes[large].sum(dtype=np.float64) / moving_us.sum(dtype=np.float64)), latency

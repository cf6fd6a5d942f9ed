"""``what_if()``: predict a recorded computation on another cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from daskscope.analysis.what_if import predict as prediction
from daskscope.analysis.what_if.predict import Options, WhatIf
from daskscope.client.source import find_recording
from daskscope.model.recording import Recording


def what_if(
    run: Recording | str | Path,
    workers: Sequence[int] | None = None,
    threads: int | None = None,
    *,
    faster: Mapping[str, float] | None = None,
    no_transfers: bool = False,
    no_spill: bool = False,
    no_stragglers: bool = False,
    chunks: float = 1,
    computation: str | None = None,
) -> WhatIf:
    """Predict wall time, cost and memory of a recorded computation for each number of workers.

    Daskscope replays the recorded graph: it places the tasks on the workers as Dask's scheduler does, with their recorded
    durations, result sizes and overheads. It replays the recorded cluster, too: ``check`` says how close that comes to the run.
    If it is off by more than a fifth, or if the recording is incomplete, there are no ``predictions``, and ``reason`` says why.

    Args:
        run: a recording, or what ``open_recording()`` accepts: a file, a directory, a cluster ID or the URL of its page.
        workers: numbers of workers; by default from a quarter to eight times as many as recorded.
        threads: threads of each worker; by default as recorded.
        faster: task prefixes, and how many times faster their tasks are.
        no_transfers: results are at every worker at once.
        no_spill: no task reads its inputs from disk.
        no_stragglers: no task takes longer than 95 % of its prefix do.
        chunks: chunks of this many times the size, such as 2 or 0.5: neighbouring tasks are joined, or tasks are divided.
        computation: ID of the computation; by default the one that took longest.
    """
    recording = run if isinstance(run, Recording) else find_recording(run)
    changes = Options(
        faster or {}, no_transfers=no_transfers, no_spill=no_spill, no_stragglers=no_stragglers, chunks=chunks
    )
    return prediction.what_if(recording, workers=workers, threads=threads, changes=changes, computation=computation)

"""Compare the memory of the cluster during blocks of work: Dask's ``MemorySampler``, made from a recording.

Calls and results are the same. In addition, every sample has all measures, and there is a series for each worker.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distributed

from daskscope.analysis import resources
from daskscope.client.connection import find_client
from daskscope.client.record import record
from daskscope.errors import DaskscopeError, MissingExtra
from daskscope.model.recording import Array, Recording
from daskscope.wire.file import read_recording

if TYPE_CHECKING:
    import pandas as pd

GIB = 2**30


class _MemoryRecord(record):
    kind = "memory"


class MemorySampler:
    """Sample the memory of the cluster while a block runs.

    >>> sampler = daskscope.MemorySampler()                 # doctest: +SKIP
    >>> with sampler.sample("first way"):                   # doctest: +SKIP
    ...     first_way()
    >>> with sampler.sample("second way"):                  # doctest: +SKIP
    ...     second_way()
    >>> sampler.plot(align=True)                            # doctest: +SKIP
    """

    def __init__(self) -> None:
        #: By label: pairs of time (seconds since the epoch, on the scheduler's clock) and bytes.
        self.samples: dict[str, list[tuple[float, int]]] = {}
        #: By label: the whole recording.
        self.recordings: dict[str, Recording] = {}
        self._intervals: dict[str, float] = {}

    def sample(
        self,
        label: str | None = None,
        *,
        client: distributed.Client | None = None,
        measure: str = "process",
        interval: float = 0.5,
    ) -> Any:
        """Return a context manager that stores its samples in ``samples[label]``; asynchronous if the client is.

        ``measure`` is one of process, managed, managed_total, unmanaged, unmanaged_old, unmanaged_recent, optimistic, spilled.
        """
        _check_measure(measure)
        client = find_client(client)
        label = label or str(uuid.uuid4())
        directory = Path(tempfile.mkdtemp(prefix="daskscope-memory-"))
        session = _MemoryRecord(directory / "memory.daskscope", client, name=label, sample_interval=interval)
        if client.asynchronous:
            return self._sample_async(session, label, measure, interval)
        return self._sample_sync(session, label, measure, interval)

    @contextlib.contextmanager
    def _sample_sync(self, session: record, label: str, measure: str, interval: float) -> Iterator[None]:
        try:
            try:
                with session:
                    yield
            finally:
                self._store(session, label, measure, interval)
        finally:
            shutil.rmtree(session.path.parent, ignore_errors=True)

    @contextlib.asynccontextmanager
    async def _sample_async(self, session: record, label: str, measure: str, interval: float) -> AsyncIterator[None]:
        try:
            try:
                async with session:
                    yield
            finally:
                self._store(session, label, measure, interval)
        finally:
            shutil.rmtree(session.path.parent, ignore_errors=True)

    def _store(self, session: record, label: str, measure: str, interval: float) -> None:
        if session.path.exists():
            self.recordings[label] = read_recording(session.path)
            self._intervals[label] = interval
            self.samples[label] = self.series(label, measure)

    def series(self, label: str, measure: str = "process") -> list[tuple[float, int]]:
        """Return the samples of any measure of a block."""
        recording, grid = self._recording(label), self._grid(label)
        regular = _pairs(*resources.cluster(recording, _check_measure(measure), **grid))
        # Add the end, which need not be a whole number of intervals after the start.
        end = _pairs(*resources.cluster(recording, measure, **{**grid, "start_us": grid["stop_us"]}))
        return [*regular, *(pair for pair in end if not regular or pair[0] > regular[-1][0])]

    def workers(self, label: str, measure: str = "process") -> dict[str, list[tuple[float, int]]]:
        """Return the samples of each worker of a block."""
        found = resources.by_worker(self._recording(label), _check_measure(measure))
        return {worker: _pairs(times, values) for worker, (times, values) in found.items()}

    def _grid(self, label: str) -> dict[str, int]:
        windows = self._recording(label)["windows"]
        (row,) = [i for i, kind in enumerate(windows["kind"].tolist()) if kind == "memory"][:1] or [-1]
        start, stop = (int(windows[name][row]) for name in ("start_us", "stop_us"))
        times = self._recording(label)["samples"]["time_us"]
        stop = stop or (int(times.max()) if len(times) else start)
        return {"start_us": start, "stop_us": stop, "interval_us": max(1, round(self._intervals[label] * 1e6))}

    def _recording(self, label: str) -> Recording:
        if label not in self.recordings:
            raise DaskscopeError(
                f"No samples with the label {label!r}. Labels: {', '.join(self.recordings) or 'none'}."
            )
        return self.recordings[label]

    def to_pandas(self, *, align: bool = False) -> pd.DataFrame:
        """Return all series as columns; with ``align``, over the time since the first sample of each."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", "pandas", "to_pandas()") from None
        columns: dict[str, Any] = {}
        for label, samples in self.samples.items():
            index = pd.to_datetime([time for time, _ in samples], unit="s")
            column = pd.Series([size for _, size in samples], index=index - index[0] if align else index, name=label)
            columns[label] = column[~column.index.duplicated()]
        frame = pd.DataFrame(columns)
        # Between its samples a series keeps its last value; after its last sample it has none.
        return frame.ffill().where(~pd.isna(frame.bfill())) if len(columns) > 1 else frame

    def plot(self, *, align: bool = False, **kwargs: Any) -> Any:
        """Plot all series in GiB; arguments are passed to ``pandas.DataFrame.plot``."""
        frame = self.to_pandas(align=align)
        resampled = frame.resample("1s").nearest() / GIB
        if len(resampled) == 1:
            resampled = frame.resample("1ms").nearest() / GIB
        return resampled.plot(**{"xlabel": "time", "ylabel": "Cluster memory (GiB)", **kwargs})


def _pairs(times: Array, values: Array) -> list[tuple[float, int]]:
    """Return pairs of seconds and whole bytes, without the times at which no worker had a sample."""
    return [(t / 1e6, round(v)) for t, v in zip(times.tolist(), values.tolist(), strict=True) if isfinite(v)]


def _check_measure(measure: str) -> str:
    if measure not in resources.MEASURES:
        raise DaskscopeError(f"Unknown measure {measure!r}. Choose from: {', '.join(resources.MEASURES)}.")
    return measure

"""Measure bytes per task on the wire, for real runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait

import daskscope
from benchmarks.result import Result, at_most
from daskscope.wire.decode import read_frame
from daskscope.wire.layout import FILE_MAGIC


def increment(x: int) -> int:
    return x + 1


def mixed(_: Client) -> None:
    """Run arrays and dataframes: transposition, reductions, group-by, shuffle."""
    for seed in range(4):
        x = da.random.default_rng(seed).random((4000, 4000), chunks=(200, 200))
        (x + x.T).mean(axis=0).std().compute()
        frame = pd.DataFrame({"a": np.arange(40_000) % 97, "b": np.ones(40_000)})
        df = dd.from_pandas(frame, npartitions=60)
        df.groupby("a").b.sum(split_out=4).compute()
        df.shuffle("a").b.mean().compute()


def mapped(client: Client) -> None:
    wait(client.map(increment, range(8000), pure=False, key=[f"increment-{i:032x}" for i in _hashes(8000)]))


def _hashes(count: int) -> list[int]:
    rng = np.random.default_rng(0)
    return [int.from_bytes(rng.bytes(16), "little") for _ in range(count)]


def bytes_per_task(work: Callable[[Client], None]) -> tuple[float, float, int]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.daskscope"
        with (
            LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
            Client(cluster) as client,
            daskscope.record(path, client=client),
        ):
            work(client)
        data = path.read_bytes()
    offset, rows, tasks, edges = len(FILE_MAGIC), 0, 0, 0
    while offset < len(data):
        frame = read_frame(data, offset)
        if frame.header.table == "tasks":
            rows, tasks = rows + frame.header.rows, tasks + frame.size
        edges += frame.size if frame.header.table == "edges" else 0
        offset += frame.size
    return tasks / rows, edges / rows, rows


def run() -> list[Result]:
    size, edges, rows = bytes_per_task(mixed)
    note = f"{rows:,} tasks; the edges between them take {edges:.1f} bytes a task more"
    results = [at_most("wire bytes per task, mixed array and dataframe", size, 15, " B", note)]
    size, edges, rows = bytes_per_task(mapped)
    results.append(at_most("wire bytes per task, client.map with hashed keys", size, 30, " B", f"{rows:,} tasks"))
    return results

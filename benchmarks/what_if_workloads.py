"""Workloads of ``scripts/bench what_if``: each takes some seconds on one thread, and computes something that can be checked."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed
from distributed import Client

Array = np.ndarray[Any, np.dtype[np.float64]]
#: Submits a graph, which exists before, and waits for its result.
Start = Callable[[Client], object]
Workload = Callable[[], Start]


def rest(seconds: float, *_: object) -> float:
    time.sleep(seconds)
    return seconds


def slow(seconds: float, *inputs: Any) -> Any:
    """Return a task that waits."""
    return delayed(rest, pure=False)(seconds, *inputs)


def loop(iterations: int, *_: object) -> int:
    """Hold the interpreter lock."""
    total = 0
    for number in range(iterations):
        total += number & 7
    return total


def multiply(size: int, seed: int) -> float:
    """Use a core without the interpreter lock."""
    random = np.random.default_rng(seed)
    values = random.random(size)
    for _ in range(6):
        values = np.sqrt(values * values + 1.0)
    return float(values.sum())


def block(nbytes: int, seconds: float) -> Array:
    time.sleep(seconds)
    return np.ones(nbytes // 8)


def join(*blocks: Array) -> float:
    time.sleep(0.02)
    return float(sum(block[0] for block in blocks))


def slow_block(values: Array) -> Array:
    time.sleep(0.04)
    return np.sqrt(values)


def array_reduction() -> Start:
    values = da.ones((4_000, 4_000), chunks=(500, 500)).map_blocks(slow_block, dtype=float).sum()
    return lambda client: client.compute(values).result()


def uneven_map() -> Start:
    return lambda client: client.gather(client.map(rest, [0.02 + 0.003 * (i * i % 61) for i in range(40)], pure=False))


def tree() -> Start:
    level = [slow(0.06) for _ in range(32)]
    while len(level) > 1:
        level = [slow(0.04, *level[i : i + 2]) for i in range(0, len(level), 2)]
    return lambda client: client.compute(level[0]).result()


def shuffle() -> Start:
    parts = [slow(0.08) for _ in range(16)]
    pieces = [[slow(0.005, part) for _ in range(8)] for part in parts]
    merged = slow(0.01, *[slow(0.06, *column) for column in zip(*pieces, strict=True)])
    return lambda client: client.compute(merged).result()


def load(number: int) -> pd.DataFrame:
    time.sleep(0.1)
    random = np.random.default_rng(number)
    return pd.DataFrame({"key": random.integers(0, 50, 50_000), "value": random.random(50_000)})


def groupby() -> Start:
    """Sums of partitions, added up as a tree."""
    means = dd.from_map(load, list(range(24))).groupby("key").value.mean(split_out=1).optimize()
    return lambda client: client.compute(means).result()


def disk_shuffle() -> Start:
    """Partitions are pieces of files that all workers share."""
    return shuffled("disk")


def p2p_shuffle() -> Start:
    """Workers send the pieces to each other."""
    return shuffled("p2p")


def shuffled(method: str) -> Start:
    """Return the start of a shuffle. The method is explicit: Dask chooses P2P only with a default client."""
    frame = dd.from_map(load, list(range(24))).shuffle("key", npartitions=12, shuffle_method=method)
    total = frame.value.sum().optimize()
    return lambda client: client.compute(total).result()


def chains() -> Start:
    ends = []
    for number in range(6):
        link = slow(0.05)
        for _ in range(11):
            link = slow(0.03 + 0.01 * (number % 3), link)
        ends.append(link)
    return lambda client: client.gather(client.compute(ends))


def short_reads() -> Start:
    return lambda client: client.gather(client.map(rest, [0.012] * 250, pure=False))


def python_loops() -> Start:
    return lambda client: client.gather(client.map(loop, [2_500_000] * 24, pure=False))


def numpy_code() -> Start:
    return lambda client: client.gather(client.map(multiply, [1_000_000] * 60, list(range(60)), pure=False))


def large_results() -> Start:
    blocks = [delayed(block, pure=False)(8_000_000, 0.1) for _ in range(24)]
    joined = [delayed(join, pure=False)(*blocks[i::4]) for i in range(4)]
    return lambda client: client.gather(client.compute(joined))


def one_long_task() -> Start:
    return lambda client: client.gather(client.map(rest, [2.0, *[0.1] * 20], pure=False))


def reads_and_python() -> Start:
    parsed = [delayed(loop, pure=False)(600_000, slow(0.08)) for _ in range(20)]
    return lambda client: client.gather(client.compute(parsed))


def slow_by_size(values: Array) -> Array:
    """Take 15 ms, and 0.2 µs per value."""
    time.sleep(0.015 + 2e-7 * values.size)
    return np.sqrt(values)


def sized_chunks(factor: float) -> Start:
    """Return the sum of an array of chunks of different sizes, or with chunks of ``factor`` times the size."""
    sizes = [100_000 * (1 + number % 4) for number in range(32)]
    if factor > 1:
        sizes = [sum(sizes[at : at + round(factor)]) for at in range(0, len(sizes), round(factor))]
    elif factor < 1:
        sizes = [round(size * factor) for size in sizes for _ in range(round(1 / factor))]
    total = da.ones(sum(sizes), chunks=(tuple(sizes),)).map_blocks(slow_by_size, dtype=float).sum()
    return lambda client: client.compute(total).result()


#: Chunk sizes that are predicted from a recording of ``sized_chunks(1)``, and run.
CHUNKS = (4.0, 2.0, 0.5)

WORKLOADS: tuple[Workload, ...] = (
    array_reduction,
    uneven_map,
    tree,
    shuffle,
    groupby,
    disk_shuffle,
    p2p_shuffle,
    chains,
    short_reads,
    python_loops,
    numpy_code,
    large_results,
    one_long_task,
    reads_and_python,
)
#: Also predicted for two threads of one worker.
THREADED: tuple[Workload, ...] = (uneven_map, python_loops, numpy_code, reads_and_python)

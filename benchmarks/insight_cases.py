"""Small programs about which a rule once said something false.

``scripts/bench insights --rules NAME --keep tests/data/cases`` records one of them, and ``tests/unit/test_recorded_cases.py`` says
what must be said about it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dask.delayed import delayed
from distributed import wait

from benchmarks import insight_tasks as tasks
from benchmarks import insight_work as work
from benchmarks.insight_pairs import Side


def blur(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def combine(parts: Sequence[float]) -> float:
    """Work on all parts in one task."""
    time.sleep(6.0)
    return sum(parts)


def tick(number: int) -> int:
    stop = time.perf_counter() + 0.001
    while time.perf_counter() < stop:
        pass
    return number


def lower(rounds: int) -> int:
    """Call native code that holds the interpreter lock for milliseconds, again and again."""
    text = b"Lorem Ipsum " * 600_000
    for _ in range(rounds):
        text.lower()
    return rounds


def add_arrays(rounds: int) -> int:
    import numpy as np

    numbers = np.arange(300_000).astype(object)
    for _ in range(rounds):
        numbers = numbers + 1
    return rounds


def rest_in_a_pool(_: int) -> None:
    """Let a pool of the task sleep, as one that waits for a slow device does."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(time.sleep, [0.3] * 4))


def ask_in_a_pool(port: int, _: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda number: tasks.ask_server(port, number), range(4)))


def digest_in_a_pool(number: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(tasks.digest, 300, number).result()


_loops: list[Any] = []


def loop_of_the_library() -> Any:
    """Return an event loop that runs in a thread of its own, as libraries for asynchronous storage have one."""
    import asyncio
    import threading

    if not _loops:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="storage", daemon=True).start()
        _loops.append(loop)
    return _loops[0]


def ask_by_an_event_loop(port: int, _: int) -> int:
    """Wait for a coroutine that asks a server."""
    import asyncio

    async def ask() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return len(answer)

    return asyncio.run_coroutine_threadsafe(ask(), loop_of_the_library()).result()


def rest_by_an_event_loop(seconds: float) -> None:
    import asyncio

    asyncio.run_coroutine_threadsafe(asyncio.sleep(seconds), loop_of_the_library()).result()


def read_with_pool(client: Any, function: Callable[..., Any]) -> None:
    with work.slow_server(0.3) as port:
        wait(client.map(lambda number: function(port, number), range(16), key=function.__name__, pure=False))


def one_long_tile(client: Any) -> None:
    wait(client.map(blur, [0.02] * 60 + [6.0] + [0.02] * 30, pure=False))


def combine_at_the_end(client: Any) -> None:
    wait(client.submit(combine, client.map(blur, [0.05] * 40, pure=False), pure=False))


def repeat(client: Any, function: Callable[[int], int], rounds: int) -> None:
    wait(client.map(function, [rounds] * 8, pure=False))


def make_table(number: int) -> Any:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(number)
    return pd.DataFrame({"key": rng.integers(0, 1_000, 400_000), "value": rng.random(400_000)})


def shuffle(client: Any) -> None:
    """Move all rows of a table between the workers, which Dask does outside of its transfers."""
    import dask
    import dask.dataframe as dd

    with dask.config.set({"dataframe.shuffle.method": "p2p"}):
        wait(client.persist(dd.from_map(make_table, range(24)).shuffle("key")))


def count_bytes(data: bytes, number: int) -> int:
    return len(data) + number


def send_data_in_the_graph(client: Any) -> None:
    wait(client.compute([delayed(count_bytes)(random.Random(n).randbytes(15_000_000), n) for n in range(16)]))


async def await_reply(seconds: float) -> float:
    import asyncio

    await asyncio.sleep(seconds)
    return seconds


CASES: Mapping[str, Side] = {
    "one-long-tile": Side(one_long_tile, workers=1),
    "combine-at-the-end": Side(combine_at_the_end, workers=1),
    "ticks": Side(lambda c: wait(c.map(tick, range(4_200), pure=False)), threads=4),
    "lower": Side(lambda c: repeat(c, lower, 120), threads=1),
    "pool-that-rests": Side(lambda c: wait(c.map(rest_in_a_pool, range(16), pure=False))),
    "pool-that-asks": Side(lambda c: read_with_pool(c, ask_in_a_pool)),
    "pool-that-computes": Side(lambda c: wait(c.map(digest_in_a_pool, range(8), pure=False)), workers=1),
    "loop-that-asks": Side(lambda c: read_with_pool(c, ask_by_an_event_loop)),
    "loop-that-rests": Side(lambda c: wait(c.map(rest_by_an_event_loop, [0.4] * 16, pure=False))),
    "slow-inputs-first": Side(lambda c: wait(c.map(blur, [2.0] * 4 + [0.05] * 60, pure=False))),
    "imports": Side(work.warm_up, workers=1),
    "coroutines": Side(lambda c: wait(c.map(await_reply, [0.5] * 24, pure=False))),
    "shuffle": Side(shuffle, threads=1),
    "data-in-the-graph": Side(send_data_in_the_graph),
    "add-arrays": Side(lambda c: repeat(c, add_arrays, 100), threads=1),
}

"""The workload of ``daskscope demo``: a little of everything a recording can show."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import distributed
from distributed.metrics import context_meter

import daskscope
from daskscope.errors import MissingExtra


def arrays(_: distributed.Client) -> None:
    """Transpose and reduce random arrays, which causes transfers between workers."""
    try:
        import dask.array as da
    except ImportError:
        raise MissingExtra("dask[array]", "pandas", "The demo") from None
    with distributed.span("arrays"):
        x = da.random.default_rng(0).random((3000, 3000), chunks=(300, 300))
        with distributed.span("transpose"):
            (x + x.T).mean(axis=0).compute()
        with distributed.span("correlate"):
            (x @ x[:, :300]).std().compute()


def frames(_: distributed.Client) -> None:
    """Group and shuffle a dataframe."""
    try:
        import dask.dataframe as dd
        import pandas as pd
    except ImportError:
        raise MissingExtra("dask[dataframe]", "pandas", "The demo") from None
    rows = 200_000
    frame = pd.DataFrame({"name": [f"n{i % 1000}" for i in range(rows)], "value": range(rows)})
    df = dd.from_pandas(frame, npartitions=24)
    df.groupby("name").value.mean().compute()
    df.shuffle("name").value.sum().compute()


def custom_activity(client: distributed.Client) -> None:
    """Run tasks that measure a custom activity in a custom unit, and log a metric from the client."""
    with distributed.span("simulation"):
        events = sum(client.gather(client.map(simulate, range(40), pure=False)))
    daskscope.log_metric("events", events, "count", client=client, dataset="demo")


def simulate(seed: int) -> int:
    with context_meter.meter("generate"):
        events = sum(i * i % 7 == seed % 7 for i in range(30_000))
    context_meter.digest_metric("events generated", events, "events")
    time.sleep(0.01)
    return events


def failures(client: distributed.Client) -> None:
    """Run one task that fails for good and one that succeeds when retried."""
    broken = client.submit(parse, "12 apples", pure=False)
    distributed.wait([broken])
    flag = distributed.Variable("demo-attempt", client=client)
    flag.set(0)
    client.submit(unreliable, "demo-attempt", retries=2, pure=False).result()


def parse(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise RuntimeError("the amount could not be read") from error


def unreliable(name: str) -> str:
    attempt = distributed.Variable(name)
    tried = attempt.get()
    attempt.set(tried + 1)
    if not tried:
        raise ConnectionError("the service is not available")
    return "ok"


def lost_worker(client: distributed.Client) -> None:
    """Kill a worker that holds results; Dask recomputes them on the others."""
    held = client.map(slow_square, range(60), pure=False)
    distributed.wait(held)
    pid = next(iter(client.run(os.getpid).values()))
    more = client.map(slow_square, range(60, 120), pure=False)
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    client.gather(held + more)


def slow_square(x: int) -> int:
    time.sleep(0.02)
    return x * x


STEPS: list[tuple[str, Callable[[distributed.Client], Any]]] = [
    ("arrays: transfers between workers, nested spans", arrays),
    ("dataframes: group-by and shuffle", frames),
    ("tasks that measure a custom activity", custom_activity),
    ("a task that fails, and one that is retried", failures),
    ("a worker that is killed while it holds results", lost_worker),
]

"""Measure the CPU time that recording adds to a cluster, at the start of a process and after many clusters.

Test suites start hundreds of clusters in one process. Clusters of four workers run in this process by turns, recorded and not, so
that both meet the same ``sys.path``, to which distributed adds a directory per worker.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
import warnings
from typing import Any

import dask.config
import distributed
import numpy as np

from benchmarks.result import Result, at_most
from daskscope import analytics

CLUSTERS = 200
#: How many clusters at the start and at the end are compared.
EDGE = 40
# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client


def cluster_cpu_s(*, recorded: bool) -> float:
    """Return the CPU seconds of one cluster from its start to its end."""
    began = time.process_time()
    options = {"n_workers": 4, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**options, silence_logs=50) as cluster, Client(cluster) as client:
        if recorded:
            analytics.register(client)
        client.gather(client.map(abs, range(10)))
    return time.process_time() - began


def run() -> list[Result]:
    seconds: dict[bool, list[float]] = {True: [], False: []}
    with (
        tempfile.TemporaryDirectory() as directory,
        dask.config.set({"daskscope.directory": directory}),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for number in range(CLUSTERS):
            for recorded in (bool(number % 2), not number % 2):
                seconds[recorded].append(cluster_cpu_s(recorded=recorded))
    # The first clusters import modules.
    start, end = (
        {name: values[part] for name, values in seconds.items()} for part in (slice(3, EDGE), slice(-EDGE, None))
    )
    added = [1e3 * float(np.quantile(part[True], 0.1) - np.quantile(part[False], 0.1)) for part in (start, end)]
    bare = 1e3 * float(np.quantile(end[False], 0.1))
    return [
        at_most(f"recording adds per in-process cluster, the first {EDGE} of {2 * CLUSTERS}", added[0], 50, " ms"),
        at_most(f"recording adds per in-process cluster, the last {EDGE} of {2 * CLUSTERS}", added[1], 50, " ms",
                f"p10 of CPU time; a cluster without recording takes {bare:.0f} ms"),
    ]  # fmt: skip

"""Compare one server with two behind a proxy, on one PostgreSQL, with the captured traffic of medium clusters.

Two servers, the database, the proxy and the senders do not fit on two cores. So each server gets part of a core, as if it had a
small machine of its own, and what is compared is how many clusters one and two of them serve.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import psutil

from benchmarks.cpu_limit import can_limit
from benchmarks.fleet import postgresql
from benchmarks.result import Result
from benchmarks.traffic import Cost, replay
from benchmarks.traffic_capture import MEDIUM, Traffic, capture_traffic, load, save
from benchmarks.traffic_server import serve_accounts

#: Clusters that one server can serve, and more than that.
STEPS = (100, 200, 300)
#: Cores of each server.
CORES = 0.4


def run(posts: str = "") -> list[Result]:
    """Measure; ``posts`` is a file of captured posts to replay instead of capturing new ones."""
    if shutil.which("nginx") is None:
        return [Result("two servers behind a proxy", "nginx is not installed")]
    if not can_limit():
        return [Result("two servers behind a proxy", "this user may not limit CPU time with control groups")]
    path = Path(posts or "benchmarks/results/traffic.posts")
    if not posts:
        save(path, capture_traffic())
    traffic = load(path)[MEDIUM.name]
    return [
        _row(clusters, replicas, *_measured(traffic, clusters, replicas)) for clusters in STEPS for replicas in (1, 2)
    ]


def _measured(traffic: Traffic, clusters: int, replicas: int) -> tuple[Cost, float]:
    """Return the cost, and the share of all cores of this machine that was in use."""
    with (
        postgresql() as url,
        tempfile.TemporaryDirectory() as directory,
        serve_accounts(Path(directory), url, clusters, replicas, cores=CORES) as server,
    ):
        psutil.cpu_percent()
        cost = replay(server, traffic, list(range(clusters)))
        used = psutil.cpu_percent()
    print(f"    {replicas} × {cost.note()}; {used:.0f} % of the machine", file=sys.stderr, flush=True)
    return cost, used


def _row(clusters: int, replicas: int, cost: Cost, used: float) -> Result:
    rate = len(cost.sent.times_ms) / cost.seconds
    servers = f"{'one server' if replicas == 1 else 'two servers'} of {CORES:g} cores"
    note = f"{cost.note()}; {used:.0f} % of the machine from the first post to the last reply"
    return Result(
        f"{clusters} medium clusters, {servers}: 99 % acknowledged in",
        f"{cost.p99_ms:,.0f} ms",
        note=f"{rate:.0f} posts/s; {note}",
    )

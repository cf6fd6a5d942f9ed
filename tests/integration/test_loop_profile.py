"""Samples of event loops reach the recording from the scheduler and from workers.

Dask takes none on Python 3.11, and daskscope takes its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import daskscope
from daskscope import Recording
from daskscope.collector.profiles import is_needed


def put_samples(io_loop: Any, name: str, count: int) -> None:
    description = {"filename": "loop.py", "name": name, "line_number": 3, "line": ""}
    leaf = {"count": 0, "identifier": name, "description": description, "children": {}}
    root = {"count": count, "identifier": "root", "description": {}, "children": {name: leaf}}
    io_loop.profile.append((time.time(), root))


def put_in_worker(dask_worker: Any, name: str, count: int) -> None:
    put_samples(dask_worker.io_loop, name, count)


def counts(recording: Recording, kind: str) -> dict[tuple[str, str], int]:
    """Return samples by worker and function."""
    found: dict[tuple[str, str], int] = {}
    rows = recording["profiles"].records("kind", "worker", "stack", "count")
    for row_kind, worker, stack, count in rows:
        if row_kind == kind and stack[-1].startswith("loop.py"):
            key = (worker, stack[-1].split("\t")[1])
            found[key] = found.get(key, 0) + count
    return found


def block(seconds: float) -> None:
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        sum(range(1000))


async def block_worker(dask_worker: Any, seconds: float) -> None:
    block(seconds)


def block_scheduler(dask_scheduler: Any, seconds: float) -> None:
    block(seconds)


def test_what_blocks_an_event_loop_is_in_its_profile(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    path = tmp_path / "run.daskscope"
    with LocalCluster(**options) as cluster, Client(cluster) as client, daskscope.record(path, client) as made:
        client.run(block_worker, seconds=1.5)
        client.run_on_scheduler(block_scheduler, seconds=1.5)
    found = made.recording["profiles"].records("kind", "stack", "count")
    seen: dict[tuple[str, str], int] = {}
    for kind, stack, count in found:
        for name in {frame.split("\t")[1] for frame in stack} & {"block_worker", "block_scheduler"}:
            seen[kind, name] = seen.get((kind, name), 0) + count
    # Ten a second, of which a busy machine may take half.
    assert set(seen) == {("worker event loop", "block_worker"), ("scheduler", "block_scheduler")}
    assert min(seen.values()) >= 4


@pytest.mark.skipif(is_needed(sys.version_info[:2]), reason="Dask takes no samples of event loops on Python 3.11")
def test_samples_of_event_loops_are_recorded_once(
    cluster: Any, client: Any, tmp_path: Path, opened: Callable[[Path], Recording]
) -> None:
    put_samples(cluster.scheduler.io_loop, "before", 7)
    with daskscope.record(tmp_path / "run.daskscope", client):
        put_samples(cluster.scheduler.io_loop, "schedule", 20)
        client.run(put_in_worker, name="gather", count=30)

    recording = opened(tmp_path / "run.daskscope")
    assert counts(recording, "scheduler") == {("scheduler", "schedule"): 20}
    workers = list(recording["workers"]["worker"])
    assert counts(recording, "worker event loop") == {(worker, "gather"): 30 for worker in workers}
    loops = daskscope.profile(recording, server=True)
    assert loops["count"] >= 60
    assert daskscope.profile(recording, scheduler=True)["count"] >= 20


def test_nothing_is_recorded_without_profiles(client: Any, cluster: Any, tmp_path: Path) -> None:
    with daskscope.record(tmp_path / "run.daskscope", client, profile=False):
        put_samples(cluster.scheduler.io_loop, "schedule", 20)
        client.run(put_in_worker, name="gather", count=30)

    assert daskscope.open_recording(tmp_path / "run.daskscope")["profiles"].rows == 0

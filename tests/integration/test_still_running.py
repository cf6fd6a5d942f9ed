"""Why a cluster is still running, on real clusters in each of the situations."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster
from distributed.core import Status
from tests.processes import until

import daskscope
from daskscope.analysis.still_running import STALLED_US, ClientStatus, Explanation, RunStatus, explain

OPTIONS: dict[str, Any] = {"threads_per_worker": 1, "processes": False, "memory_limit": 0, "dashboard_address": None}


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def pause(dask_worker: Any) -> None:
    dask_worker.status = Status.paused


def resume(dask_worker: Any) -> None:
    dask_worker.status = Status.running


def start_nothing(dask_worker: Any) -> None:
    """Break the worker: it accepts tasks and never starts one."""
    dask_worker.state.nthreads = 0


def explained(
    path: Path,
    workers: int,
    situation: Callable[[Any, Client], Any],
    condition: Callable[[Any], bool],
    later_us: int = 0,
) -> Explanation:
    """Bring a cluster into a situation, and explain it from what was recorded then."""
    with LocalCluster(n_workers=workers, **OPTIONS) as cluster, Client(cluster) as client:
        with daskscope.record(path, client) as made:
            held = situation(cluster, client)
            until(lambda: condition(cluster.scheduler))
            # The state of the cluster is recorded every few seconds.
            recorder = cluster.scheduler.plugins["daskscope"].recorder
            recorder.cluster_state(recorder.now_us())
        del held
        client.run(resume)
    table = made.recording["clusters"]
    run = RunStatus(**{f.name: table[f.name].tolist()[-1] for f in fields(RunStatus) if f.name in table})
    clients = made.recording["clients"]
    status = [ClientStatus(client=name) for name in clients["client"].tolist()]
    return explain(run, status, "running", 0.0, run.seen_us + later_us)


def test_there_are_no_workers(tmp_path: Path) -> None:
    found = explained(
        tmp_path / "run.daskscope",
        0,
        lambda _, client: client.submit(nap, 0.1, pure=False),
        lambda scheduler: bool(scheduler.unrunnable) or bool(scheduler.queued),
    )
    assert found.answer == "1 task waiting, but it has no workers."
    assert not any("idle-timeout" in line for line in found.advice)


def test_all_workers_are_paused(tmp_path: Path) -> None:
    def situation(_: Any, client: Client) -> Any:
        client.run(pause)
        return client.map(nap, [0.1] * 3, pure=False)

    def waiting(scheduler: Any) -> bool:
        return all(worker.status == Status.paused for worker in scheduler.workers.values()) and bool(
            scheduler.queued or scheduler.unrunnable or any(w.processing for w in scheduler.workers.values())
        )

    found = explained(tmp_path / "run.daskscope", 2, situation, waiting)
    assert "paused" in found.answer
    assert any("memory" in line for line in found.advice)


def test_tasks_wait_and_nothing_starts(tmp_path: Path) -> None:
    def situation(_: Any, client: Client) -> Any:
        client.run(start_nothing)
        return client.map(nap, [0.1] * 3, pure=False)

    found = explained(
        tmp_path / "run.daskscope",
        1,
        situation,
        lambda scheduler: any(worker.processing for worker in scheduler.workers.values()),
        later_us=STALLED_US,
    )
    assert found.answer.startswith("It is stuck: ")
    assert any("call_stack" in line for line in found.advice)


def test_no_worker_has_the_resource(tmp_path: Path) -> None:
    found = explained(
        tmp_path / "run.daskscope",
        1,
        lambda _, client: client.submit(nap, 0.1, resources={"GPU": 1}, pure=False),
        lambda scheduler: bool(scheduler.unrunnable),
    )
    assert found.answer.startswith("1 task cannot run: no worker offers GPU=1")
    assert any("resources" in line for line in found.advice)


def test_it_is_working(tmp_path: Path) -> None:
    found = explained(
        tmp_path / "run.daskscope",
        1,
        lambda _, client: client.map(nap, [0.6] * 3, pure=False),
        lambda scheduler: any(worker.processing for worker in scheduler.workers.values()),
    )
    assert found.answer.startswith("It is working: ")
    assert found.advice == ()


@pytest.mark.parametrize("timeout", [0, 3600])
def test_it_is_idle_with_a_connected_client(tmp_path: Path, timeout: int) -> None:
    def situation(cluster: Any, _: Client) -> None:
        cluster.scheduler.idle_timeout = timeout or None

    found = explained(
        tmp_path / "run.daskscope", 1, situation, lambda scheduler: bool(scheduler.check_idle() or scheduler.idle_since)
    )
    assert found.answer.startswith("It has been idle for ")
    assert any(line.startswith("client ") for line in found.evidence)
    assert any("idle-timeout" in line for line in found.advice) is not bool(timeout)

"""Why a cluster is still running, on real clusters in each of the situations."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster
from distributed.core import Status
from distributed.diagnostics.plugin import SchedulerPlugin
from tests.helpers.waiting import until

import daskscope
from daskscope.analysis.running.still_running import STALLED_US, ClientStatus, Explanation, RunStatus, explain
from daskscope.model.recording import Recording

OPTIONS: dict[str, Any] = {"threads_per_worker": 1, "processes": False, "memory_limit": 0, "dashboard_address": None}


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def pause(dask_worker: Any) -> None:
    dask_worker.status = Status.paused


def resume(dask_worker: Any) -> None:
    dask_worker.status = Status.running


class Finished(SchedulerPlugin):
    """Notes when tasks finish, independently of the recorder."""

    def __init__(self) -> None:
        self.times_us: list[int] = []

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        if (start, finish) == ("processing", "memory"):
            self.times_us.append(time.time_ns() // 1000)


def explained(
    path: Path,
    workers: int,
    situation: Callable[[Any, Client], Any],
    condition: Callable[[Any], bool],
) -> Explanation:
    """Bring a cluster into a situation, and explain it from what was recorded then."""
    with LocalCluster(n_workers=workers, **OPTIONS) as cluster, Client(cluster) as client:
        with daskscope.record(path, client) as made:
            held = situation(cluster, client)
            until(lambda: condition(cluster.scheduler))
            # The state of the cluster is recorded every few seconds.
            client.run_on_scheduler(write_state)
        del held
        client.run(resume)
    return explanation(made.recording)


def watch_states(cluster: Any) -> list[RunStatus]:
    """Return a list to which every state that the recorder writes from now on is appended."""
    rows, states = cluster.scheduler.plugins["daskscope"].recorder.rows, []
    add = rows.add

    def add_and_note(table: str, **row: Any) -> None:
        if table == "clusters":
            states.append(RunStatus(**{f.name: row[f.name] for f in fields(RunStatus) if f.name in row}))
        add(table, **row)

    rows.add = add_and_note
    return states


def write_state(dask_scheduler: Any) -> None:
    recorder = dask_scheduler.plugins["daskscope"].recorder
    recorder._last_cluster = ()
    recorder.cluster_state(recorder.now_us())


def explanation(recording: Recording) -> Explanation:
    """Explain the last state that was recorded."""
    table = recording["clusters"]
    run = RunStatus(**{f.name: table[f.name].tolist()[-1] for f in fields(RunStatus) if f.name in table})
    clients = recording["clients"]
    status = [ClientStatus(client=name) for name in clients["client"].tolist()]
    return explain(run, status, "running", 0.0, run.seen_us)


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


def test_a_worker_hangs(tmp_path: Path) -> None:
    options = {**OPTIONS, "processes": True}
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
        (pid,) = client.run(os.getpid).values()
        with daskscope.record(tmp_path / "run.daskscope", client):
            states = watch_states(cluster)
            client.submit(nap, 0.1, pure=False).result()
            until(lambda: not any(worker.executing for worker in cluster.scheduler.workers.values()))
            os.kill(pid, signal.SIGSTOP)
            try:
                held = client.map(nap, [0.1] * 3, pure=False)
                until(lambda: any(worker.processing for worker in cluster.scheduler.workers.values()))
                until(lambda: client.run_on_scheduler(write_state) or states[-1].stalled_since_us)
                stuck = states[-1]
            finally:
                os.kill(pid, signal.SIGCONT)
            client.gather(held)
            until(lambda: client.run_on_scheduler(write_state) or not states[-1].tasks_processing)
            done = states[-1]
    found = explain(stuck, [], "running", 0.0, stuck.stalled_since_us + STALLED_US)
    assert found.answer.startswith("It is stuck: ")
    assert any("call_stack" in line for line in found.advice)
    assert done.stalled_since_us == 0


def test_short_tasks_that_heartbeats_miss_are_work(tmp_path: Path) -> None:
    with LocalCluster(n_workers=1, **OPTIONS) as cluster, Client(cluster) as client:
        finished = Finished()
        cluster.scheduler.add_plugin(finished, name="finished")
        with daskscope.record(tmp_path / "run.daskscope", client):
            states = watch_states(cluster)
            futures = client.map(nap, [0.0] * 2000, pure=False)
            while not all(future.done() for future in futures):
                client.run_on_scheduler(write_state)
    wrong = [
        (state.stalled_since_us, state.seen_us)
        for state in states
        if any(state.stalled_since_us < time_us < state.seen_us for time_us in finished.times_us)
        and state.stalled_since_us
    ]
    assert len(states) > 10
    assert len(finished.times_us) == 2000
    assert wrong == []


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

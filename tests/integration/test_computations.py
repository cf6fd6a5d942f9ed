"""Computations end with their last task, however it ends, and count only their own tasks."""

from __future__ import annotations

import operator
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.waiting import until

import daskscope
import daskscope.analytics
from daskscope import Recording
from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts
from daskscope.insights.story import outcome

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

Opened = Callable[[Path], Recording]


def step(number: float) -> float:
    time.sleep(0.01)
    return number + 1


def other(number: float) -> float:
    return step(number)


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def fail(seconds: float) -> float:
    time.sleep(seconds)
    raise ValueError(seconds)


def die(seconds: float) -> None:
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def small(*, workers: int = 2, processes: bool = False) -> Iterator[tuple[Any, Any]]:
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": processes, "memory_limit": 0}
    with LocalCluster(dashboard_address=None, **options) as cluster, Client(cluster) as client:
        yield cluster, client


@pytest.fixture
def threads() -> Iterator[tuple[Any, Any]]:
    with small() as made:
        yield made


def computations(recording: Recording) -> list[dict[str, Any]]:
    """Return the last row of each computation, ordered by start."""
    table = recording["computations"]
    rows = [{name: table[name][row] for name in table} for row in range(table.rows)]
    last = {row["computation"]: row for row in sorted(rows, key=lambda row: row["seen_us"])}
    return sorted(last.values(), key=lambda row: row["start_us"])


def seconds(row: dict[str, Any]) -> float:
    return float(row["stop_us"] - row["start_us"]) / 1e6


def running(cluster: Any) -> bool:
    return any(state.processing for state in cluster.scheduler.workers.values())


def idle(cluster: Any) -> bool:
    """Return whether all keys are gone, so that the next graph starts a new computation."""
    return not cluster.scheduler.tasks


def test_a_computation_of_failures_lasts_until_the_last(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    _, client = threads
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, client):
        futures = client.map(fail, [0.2] * 4, pure=False)
        distributed.wait(futures)
    recording = opened(path)
    (row,) = computations(recording)
    assert (row["state"], row["erred"], row["tasks"]) == ("erred", 4, 4)
    assert 0.4 <= seconds(row) < 3
    assert row["stop_us"] >= max(recording["exceptions"]["time_us"])


def test_a_computation_that_kills_its_workers_lasts_until_it_failed(tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "run.daskscope"
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        small(workers=1, processes=True) as (_, client),
        daskscope.record(path, client),
    ):
        assert isinstance(client.submit(die, 0.5, pure=False).exception(), distributed.KilledWorker)
    recording = opened(path)
    (row,) = computations(recording)
    assert (row["state"], row["erred"]) == ("erred", 1)
    assert seconds(row) >= 0.5
    # One failed task, and no task that was killed and ran again.
    assert list(recording["tasks"]["status"]) == ["error"]


def drop(_: Any, client: Any, futures: list[Any]) -> None:
    futures.clear()


def cancel(_: Any, client: Any, futures: list[Any]) -> None:
    client.cancel(futures)


def restart(_: Any, client: Any, futures: list[Any]) -> None:
    client.restart(wait_for_workers=False)


@pytest.mark.parametrize("end", [drop, cancel, restart])
def test_a_cancelled_computation_is_not_done(
    end: Callable[..., None], threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    cluster, client = threads
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, client):
        futures = client.map(nap, [1.0] * 6, pure=False)
        until(lambda: running(cluster))
        time.sleep(0.2)
        end(cluster, client, futures)
        until(lambda: idle(cluster))
    (row,) = computations(opened(path))
    assert row["state"] == "cancelled"
    assert 0.2 <= seconds(row) < 5


def test_a_run_with_a_cancelled_computation_is_not_called_finished(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    cluster, client = threads
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, client):
        client.submit(step, 1, pure=False).result()
        futures = client.map(nap, [0.3] * 20, pure=False)
        until(lambda: running(cluster))
        client.cancel(futures)
        until(lambda: idle(cluster))
    recording = opened(path)
    found = outcome(Facts.of(recording, *extent(recording)))
    assert (found.state, found.headline) == ("interrupted", "1 of 2 computations was interrupted.")
    assert found.reason.partition(" ")[2].startswith("tasks never ran. ")


def test_tasks_of_a_client_that_left_are_cancelled(threads: tuple[Any, Any], tmp_path: Path, opened: Opened) -> None:
    cluster, client = threads
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, client):
        with Client(cluster, set_as_default=False) as second:
            futures = second.map(nap, [1.0] * 4, pure=False)
            until(lambda: running(cluster))
        until(lambda: idle(cluster))
        del futures
    (row,) = computations(opened(path))
    assert row["state"] == "cancelled"


def test_tasks_that_never_began_are_cancelled(tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "run.daskscope"
    with small(workers=0) as (cluster, client), daskscope.record(path, client):
        future = client.submit(nap, 0.1)
        until(lambda: cluster.scheduler.unrunnable or cluster.scheduler.queued)
        del future
        until(lambda: idle(cluster))
    (row,) = computations(opened(path))
    assert row["state"] == "cancelled"
    assert seconds(row) > 0


def test_tasks_that_were_given_up_before_they_ran_are_abandoned(tmp_path: Path, opened: Opened) -> None:
    with small(workers=1) as (cluster, client), daskscope.record(tmp_path / "run.daskscope", client):
        futures = client.map(nap, [0.3] * 10, pure=False)
        until(lambda: running(cluster))
        client.gather(futures[:1])
        del futures[2:]
        client.gather(futures)
        until(lambda: not running(cluster) and not cluster.scheduler.queued)
    (row,) = computations(opened(tmp_path / "run.daskscope"))
    assert row["state"] == "cancelled"
    # One of the eight may have begun already.
    assert row["abandoned"] in (7, 8)


def test_tasks_that_a_worker_had_and_did_not_begin_are_abandoned(tmp_path: Path, opened: Opened) -> None:
    with small(workers=1) as (cluster, client), daskscope.record(tmp_path / "run.daskscope", client):
        # All are sent at once to the one worker they may run on, which begins one.
        futures = client.map(nap, [0.5] * 10, pure=False, workers=list(cluster.scheduler.workers))
        until(lambda: len(next(iter(cluster.scheduler.workers.values())).processing) == 10)
        client.cancel(futures)
        until(lambda: not running(cluster))
    (row,) = computations(opened(tmp_path / "run.daskscope"))
    assert row["state"] == "cancelled"
    # The first that is cancelled, and the one with the highest priority, may have begun.
    assert row["abandoned"] in (8, 9)


def test_a_task_whose_lost_result_is_not_computed_again_did_run(tmp_path: Path, opened: Opened) -> None:
    with small(workers=1) as (cluster, client), daskscope.record(tmp_path / "run.daskscope", client):
        future = client.submit(nap, 0.01)
        future.result()
        (worker,) = cluster.workers.values()
        cluster.sync(worker.close)
        until(lambda: not cluster.scheduler.workers)
        del future
        until(lambda: not cluster.scheduler.tasks)
    (row,) = computations(opened(tmp_path / "run.daskscope"))
    assert row["abandoned"] == 0


def test_an_error_of_one_client_does_not_fail_the_computation_of_another(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    cluster, client = threads
    with (
        daskscope.record(tmp_path / "run.daskscope", client),
        distributed.Client(cluster, set_as_default=False) as other_client,
    ):
        good = client.map(nap, [0.2] * 8, pure=False)
        until(lambda: running(cluster))
        bad = other_client.submit(fail, 0.1, pure=False)
        distributed.wait([bad])
        client.gather(good)
        ids = client.id, other_client.id
    rows = computations(opened(tmp_path / "run.daskscope"))
    assert {row["client"]: (row["state"], row["tasks"], row["erred"]) for row in rows} == {
        ids[0]: ("done", 8, 0),
        ids[1]: ("erred", 1, 1),
    }
    recording = opened(tmp_path / "run.daskscope")
    owners = {row["computation"]: row["client"] for row in rows}
    tasks = recording["tasks"]
    found = {(prefix, owners[c]) for prefix, c in zip(tasks["prefix"], tasks["computation"], strict=True)}
    assert found == {("nap", ids[0]), ("fail", ids[1])}


def test_a_computation_whose_results_were_released_is_done(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    cluster, client = threads
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, client):
        futures = client.map(step, range(10), pure=False)
        client.gather(futures)
        futures.clear()
        until(lambda: idle(cluster))
        distributed.wait(client.map(other, range(10), pure=False))
        until(lambda: idle(cluster))
    rows = computations(opened(path))
    assert [(row["state"], row["tasks"]) for row in rows] == [("done", 10)] * 2


@pytest.mark.parametrize("how", ["retired", "killed", "restarted"])
def test_work_that_moves_to_another_worker_is_not_cancelled(how: str, tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "run.daskscope"
    with small(processes=True) as (cluster, client), daskscope.record(path, client):
        futures = client.map(nap, [0.4] * 6, pure=False)
        states = cluster.scheduler.workers
        until(lambda: all(state.processing for state in states.values()))
        address, state = next(iter(states.items()))
        if how == "retired":
            client.retire_workers([address])
        elif how == "killed":
            os.kill(state.pid, signal.SIGKILL)
        else:
            client.restart_workers([address])
        assert client.gather(futures) == [0.4] * 6
    (row,) = computations(opened(path))
    assert (row["state"], row["tasks"]) == ("done", 6)


def test_computations_running_when_the_scheduler_closes_are_lost(tmp_path: Path, opened: Opened) -> None:
    directory = tmp_path / "life"
    with dask.config.set({"daskscope.directory": str(directory)}), small() as (cluster, client):
        daskscope.analytics.register(client)
        futures = client.map(nap, [1.0] * 4, pure=False)
        until(lambda: running(cluster))
        cluster.close()
        del futures
    (row,) = computations(daskscope.open_recording(directory))
    assert row["state"] == "lost"


def test_a_later_map_of_the_same_function_has_its_own_tasks(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    _, client = threads
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, client):
        old = client.map(step, range(20))
        distributed.wait(old)
        finished_us = time.time() * 1e6
        time.sleep(1.0)
        new = client.map(step, range(1000, 1160))
        distributed.wait(new)
        time.sleep(0.2)
    recording = opened(path)
    first, second = computations(recording)
    assert [(row["state"], row["tasks"], row["memory"], row["unfinished"]) for row in (first, second)] == [
        ("done", 20, 20, 0),
        ("done", 160, 160, 0),
    ]
    assert seconds(first) >= 0.1
    assert seconds(second) >= 0.8
    # The client's pause is part of neither. The clocks of client and workers agree to a few milliseconds.
    assert first["stop_us"] <= finished_us + 300_000 < second["start_us"]
    groups = recording["groups"]
    assert set(groups["computation"]) == {first["computation"], second["computation"]}
    assert list(recording["tasks"]["computation"]) == [first["computation"]] * 20 + [second["computation"]] * 160


def test_submits_of_one_function_have_durations_of_their_own(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    _, client = threads
    path = tmp_path / "run.daskscope"
    kept, took = [], []
    with daskscope.record(path, client):
        for number in range(5):
            began = time.perf_counter()
            kept.append(client.submit(nap, 0.05 * (number + 1)))
            distributed.wait(kept)
            took.append(time.perf_counter() - began)
            time.sleep(0.4)
    rows = computations(opened(path))
    assert [(row["state"], row["tasks"], row["memory"]) for row in rows] == [("done", 1, 1)] * 5
    for number, row in enumerate(rows):
        # The pause of 0.4 s after each one is not part of it, however slow the machine is.
        # Its start and end come from two clocks, which were 40 ms apart on a busy machine.
        assert 0.05 * (number + 1) - 0.1 <= seconds(row) < took[number] + 0.3


def test_a_merged_graph_may_share_a_group(threads: tuple[Any, Any], tmp_path: Path, opened: Opened) -> None:
    cluster, client = threads
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, client):
        old = client.map(step, range(5))
        distributed.wait(old)
        slow = client.map(nap, [0.5] * 2, pure=False)
        until(lambda: running(cluster))
        more = client.map(step, range(100, 107))
        distributed.wait([*slow, *more])
    rows = computations(opened(path))
    assert [(row["state"], row["tasks"], row["memory"]) for row in rows] == [("done", 5, 5), ("done", 9, 9)]


def test_a_recomputed_task_that_fails_belongs_to_its_own_computation(tmp_path: Path, opened: Opened) -> None:
    path, marker = tmp_path / "run.daskscope", tmp_path / "marker"

    def once() -> int:
        if marker.exists():
            raise ValueError("the second time")
        marker.touch()
        # Long enough for the others to join its computation.
        time.sleep(0.5)
        return 1

    with small(processes=True) as (cluster, client), daskscope.record(path, client):
        tasks = cluster.scheduler.tasks
        first = client.submit(once, pure=False)
        until(lambda: first.key in tasks and tasks[first.key].state == "processing")
        steps = client.map(step, range(10), pure=False)
        distributed.wait([first, *steps])
        second = client.submit(other, 1, pure=False)
        distributed.wait(second)
        # The worker with its result dies; its dependencies run again, and then it fails.
        (holder,) = tasks[first.key].who_has
        lost = sum(tasks[future.key].who_has == {holder} for future in steps)
        os.kill(holder.pid, signal.SIGKILL)
        until(lambda: first.status == "error")
        until(lambda: all(tasks[future.key].state == "memory" for future in steps))
    recording = opened(path)
    one, two = computations(recording)
    assert (one["state"], two["state"]) == ("erred", "done")
    assert list(recording["exceptions"]["computation"]) == [one["computation"]]
    ran = recording["tasks"]
    owners = set(zip(ran["prefix"], ran["computation"], strict=True))
    assert owners == {("once", one["computation"]), ("step", one["computation"]), ("other", two["computation"])}
    assert list(ran["prefix"]).count("step") == 10 + lost


def test_workers_joined_before_a_recording_that_begins_later(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    _, client = threads
    paths = [tmp_path / "one.daskscope", tmp_path / "two.daskscope"]
    for path in paths:
        time.sleep(0.5)
        with daskscope.record(path, client):
            client.submit(step, 1, pure=False).result()
    one, two = (opened(path) for path in paths)
    starts = [dict(zip(made["workers"]["server_id"], made["workers"]["start_us"], strict=True)) for made in (one, two)]
    assert starts[0] == starts[1]
    assert max(starts[1].values()) + 500_000 <= min(one["clusters"]["recording_us"])


def test_only_results_are_held(threads: tuple[Any, Any], tmp_path: Path, opened: Opened) -> None:
    _, client = threads
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, client):
        good, bad = client.map(step, range(3)), client.map(fail, [0.0, 0.01])
        distributed.wait([*good, *bad])
        time.sleep(0.1)
    clients = opened(path)["clients"]
    rows = zip(clients["seen_us"], clients["client"], clients["held_keys"], strict=True)
    assert [held for _, name, held in sorted(rows) if name == client.id][-1] == 3


def test_the_time_to_accept_graphs_is_recorded(threads: tuple[Any, Any], tmp_path: Path, opened: Opened) -> None:
    cluster, client = threads
    handlers = cluster.scheduler.stream_handlers
    original, took = handlers["update-graph"], []

    async def timed(**message: Any) -> None:
        start = time.perf_counter()
        await original(**message)
        took.append(time.perf_counter() - start)

    handlers["update-graph"] = timed
    try:
        with daskscope.record(tmp_path / "run.daskscope", client):
            # Runs until both graphs are accepted, so that both belong to one computation.
            event = distributed.Event("both graphs", client=client)
            slow = client.submit(event.wait, pure=False)
            more = client.map(operator.neg, range(3_000), pure=False)
            distributed.wait(more)
            event.set()
            distributed.wait(slow)
    finally:
        handlers["update-graph"] = original

    (row,) = computations(opened(tmp_path / "run.daskscope"))
    assert (row["submissions"], len(took)) == (2, 2)
    assert row["graph_us"] / 1e6 == pytest.approx(sum(took), rel=0.1, abs=0.02)


def test_the_size_of_a_graph_and_its_arrival_are_recorded(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    _, client = threads
    with daskscope.record(tmp_path / "run.daskscope", client):
        block, before = random.Random(0).randbytes(3_000_000), time.time()
        client.submit(len, block, pure=False).result()
    (row,) = computations(opened(tmp_path / "run.daskscope"))
    assert 3_000_000 < row["graph_nbytes"] < 3_100_000
    assert before < row["start_us"] / 1e6 < (row["stop_us"] - row["graph_us"]) / 1e6

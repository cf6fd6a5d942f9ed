"""Computations end when their last task does, however it ends, and count their own tasks only."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest

import daskscope
import daskscope.analytics
from daskscope import Recording
from daskscope.testing.processes import until

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
    """The last row of each, in the order of their starts."""
    table = recording["computations"]
    rows = [{name: table[name][row] for name in table} for row in range(table.rows)]
    last = {row["computation"]: row for row in sorted(rows, key=lambda row: row["seen_us"])}
    return sorted(last.values(), key=lambda row: row["start_us"])


def seconds(row: dict[str, Any]) -> float:
    return float(row["stop_us"] - row["start_us"]) / 1e6


def running(cluster: Any) -> bool:
    return any(state.processing for state in cluster.scheduler.workers.values())


def idle(cluster: Any) -> bool:
    """Whether all keys are gone, so that what comes next is a computation of its own."""
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
    # One failed task, and none that was killed and ran again.
    assert list(recording["tasks"]["status"]) == ["error"]


def drop(_: Any, client: Any, futures: list[Any]) -> None:
    futures.clear()


def cancel(_: Any, client: Any, futures: list[Any]) -> None:
    client.cancel(futures)


def restart(_: Any, client: Any, futures: list[Any]) -> None:
    client.restart(wait_for_workers=False)


@pytest.mark.parametrize("end", [drop, cancel, restart])
def test_what_is_given_up_is_no_success(
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


def test_what_a_client_leaves_behind_is_given_up(threads: tuple[Any, Any], tmp_path: Path, opened: Opened) -> None:
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


def test_what_never_began_is_given_up(tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "run.daskscope"
    with small(workers=0) as (cluster, client), daskscope.record(path, client):
        future = client.submit(nap, 0.1)
        until(lambda: cluster.scheduler.unrunnable or cluster.scheduler.queued)
        del future
        until(lambda: idle(cluster))
    (row,) = computations(opened(path))
    assert row["state"] == "cancelled"
    assert seconds(row) > 0


def test_what_is_released_once_it_is_there_is_done(threads: tuple[Any, Any], tmp_path: Path, opened: Opened) -> None:
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
def test_work_that_moves_to_another_worker_is_not_given_up(how: str, tmp_path: Path, opened: Opened) -> None:
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


def test_what_runs_when_the_scheduler_closes_is_lost(tmp_path: Path, opened: Opened) -> None:
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
        time.sleep(1.5)
        new = client.map(step, range(1000, 1160))
        distributed.wait(new)
        time.sleep(0.2)
    recording = opened(path)
    first, second = computations(recording)
    assert [(row["state"], row["tasks"], row["memory"], row["unfinished"]) for row in (first, second)] == [
        ("done", 20, 20, 0),
        ("done", 160, 160, 0),
    ]
    assert 0.1 <= seconds(first) < 1.4
    assert 0.8 <= seconds(second) < 10
    assert first["stop_us"] < second["start_us"]
    groups = recording["groups"]
    assert set(groups["computation"]) == {first["computation"], second["computation"]}
    assert list(recording["tasks"]["computation"]) == [first["computation"]] * 20 + [second["computation"]] * 160


def test_submits_of_one_function_have_durations_of_their_own(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
    _, client = threads
    path = tmp_path / "run.daskscope"
    kept = []
    with daskscope.record(path, client):
        for number in range(5):
            kept.append(client.submit(nap, 0.05 * (number + 1)))
            distributed.wait(kept)
            time.sleep(0.4)
    rows = computations(opened(path))
    assert [(row["state"], row["tasks"], row["memory"]) for row in rows] == [("done", 1, 1)] * 5
    for number, row in enumerate(rows):
        assert 0.05 * (number + 1) <= seconds(row) < 0.05 * (number + 1) + 0.3


def test_a_submission_that_is_merged_may_borrow_a_group(
    threads: tuple[Any, Any], tmp_path: Path, opened: Opened
) -> None:
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


def test_what_runs_again_and_fails_belongs_to_the_computation_it_was_submitted_with(
    tmp_path: Path, opened: Opened
) -> None:
    path, marker = tmp_path / "run.daskscope", tmp_path / "marker"

    def once() -> int:
        if marker.exists():
            raise ValueError("the second time")
        marker.touch()
        # Long enough for the others to become part of its computation.
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
        # Whoever has its result dies; steps that were there only run again, and it fails.
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


def test_workers_were_there_before_a_recording_that_begins_later(
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

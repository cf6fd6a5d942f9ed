"""The critical path of a real computation goes through the tasks that the workload made each other wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest
from distributed import Event

import daskscope
from daskscope.analysis.time.critical_path import CriticalPath, critical_path

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

#: Longer than the scheduler takes to answer and than the clocks of scheduler and worker differ.
PAUSE_S = 0.3


def hold(*_: Any, until: str) -> None:
    """Occupy a thread until an event is set."""
    assert Event(until).wait(timeout=60)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """One worker with two threads; the scheduler runs in this process."""
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None, memory_limit=0
    ) as made:
        yield made


@pytest.fixture
def wait_until(cluster: Any) -> Callable[[str, str], None]:
    """Return a function that waits until the scheduler has a task in a state, and a little longer."""

    def wait_until(key: str, state: str) -> None:
        tasks = cluster.scheduler.tasks
        while key not in tasks or tasks[key].state != state:
            time.sleep(0.01)
        time.sleep(PAUSE_S)

    return wait_until


def steps(path: CriticalPath) -> list[tuple[str, bool]]:
    return [(step.key, step.same_thread) for step in path.steps]


def submit(client: Any, key: str, *inputs: Any, until: str, priority: int) -> Any:
    return client.submit(hold, *inputs, until=until, key=key, priority=priority)


def test_a_link_that_waits_for_the_rest_of_another_task_follows_its_input(
    client: Any, wait_until: Callable[[str, str], None], tmp_path: Path
) -> None:
    """``side-0`` and ``side-1`` occupy the other thread. When ``chain-1`` becomes ready, ``side-1`` has been running for long."""
    with daskscope.record(tmp_path / "run.daskscope", client) as made:
        first = submit(client, "chain-0", until="chain-0 ends", priority=9)
        second = submit(client, "chain-1", first, until="chain-1 ends", priority=8)
        wait_until("chain-0", "processing")
        sides = [submit(client, "side-0", until="side-0 ends", priority=3)]
        wait_until("side-0", "processing")
        sides += [
            submit(client, f"side-{number}", until=f"side-{number} ends", priority=3 - number) for number in (1, 2)
        ]
        Event("side-0 ends").set()
        wait_until("side-0", "memory")
        # Its thread starts side-2, before the scheduler can assign chain-1.
        Event("chain-0 ends").set()
        wait_until("chain-1", "processing")
        Event("side-1 ends").set()
        last = submit(client, "last-0", second, *sides, until="chain-1 ends", priority=0)
        wait_until("side-1", "memory")
        Event("side-2 ends").set()
        wait_until("side-2", "memory")
        Event("chain-1 ends").set()
        last.result()
    path = critical_path(made.recording)

    assert steps(path) == [("chain-0", False), ("chain-1", False), ("last-0", False)]
    # chain-1 was ready for a pause before the event that ended side-1. Clocks differ by less than half of it.
    assert path.steps[1].busy_us > PAUSE_S * 1e6 / 2
    assert path.wait_us == path.queue_us + path.transfer_us + path.busy_us + path.scheduler_us


def test_a_link_that_waits_while_its_thread_starts_another_task_follows_that_task(
    client: Any, wait_until: Callable[[str, str], None], tmp_path: Path
) -> None:
    """``chain-1`` is ready when the thread of ``side-0`` starts ``side-1``, which is more urgent."""
    with daskscope.record(tmp_path / "run.daskscope", client) as made:
        first = submit(client, "chain-0", until="chain-0 ends", priority=9)
        second = submit(client, "chain-1", first, until="chain-1 ends", priority=0)
        wait_until("chain-0", "processing")
        sides = [submit(client, "side-0", until="side-0 ends", priority=3)]
        wait_until("side-0", "processing")
        sides.append(submit(client, "side-2", until="side-2 ends", priority=2))
        wait_until("side-2", "processing")
        # Its thread starts side-2.
        Event("chain-0 ends").set()
        wait_until("chain-1", "processing")
        sides.append(submit(client, "side-1", until="side-1 ends", priority=2))
        wait_until("side-1", "processing")
        Event("side-0 ends").set()
        wait_until("side-0", "memory")
        Event("side-1 ends").set()
        last = submit(client, "last-0", second, *sides, until="chain-1 ends", priority=0)
        wait_until("side-1", "memory")
        Event("side-2 ends").set()
        wait_until("side-2", "memory")
        Event("chain-1 ends").set()
        last.result()
    path = critical_path(made.recording)

    assert steps(path) == [("side-0", False), ("side-1", True), ("chain-1", True), ("last-0", False)]
    assert path.busy_us == 0

"""The wrappers around a scheduler's functions never change what the scheduler sees."""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector.guard import Guard
from daskscope.collector.scheduler.patches import Patches


class Recorder:
    """Keeps the arguments of its calls, or fails in every call."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.fails = False

    def set_worker_target(self, workers: Any) -> None:
        self.calls.append(workers)
        if self.fails:
            raise RuntimeError("of the recorder")

    before_task_erred = before_graph = set_worker_target


class Scheduler:
    """The parts of a scheduler that are wrapped."""

    def __init__(self) -> None:
        self.extensions: dict[str, Any] = {}
        self.stream_handlers: dict[str, Any] = {"task-erred": lambda **message: message}
        self.handlers: dict[str, Any] = {"adaptive_target": self.adaptive_target}

    def adaptive_target(self, target_duration: float | None = None) -> int:
        if target_duration is not None and target_duration < 0:
            raise ValueError("Dask's own")
        return 7


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


def installed(scheduler: Scheduler, recorder: Recorder) -> Patches:
    guard = Guard(lambda: 0.0, lambda _: None)
    recorder_: Any = recorder
    patches = Patches(scheduler, recorder_, guard)
    patches.install()
    return patches


def test_the_worker_target_is_recorded_and_returned_unchanged(scheduler: Scheduler) -> None:
    recorder = Recorder()
    patches = installed(scheduler, recorder)
    handler = scheduler.handlers["adaptive_target"]
    assert handler(target_duration=5) == 7
    assert recorder.calls == [7]
    # distributed inspects the signature of a handler.
    assert inspect.signature(handler) == inspect.signature(scheduler.adaptive_target)
    assert handler.__name__ == "adaptive_target"
    patches.remove()
    assert scheduler.handlers["adaptive_target"] == scheduler.adaptive_target


def test_an_exception_of_dask_passes_through(scheduler: Scheduler) -> None:
    recorder = Recorder()
    installed(scheduler, recorder)
    with pytest.raises(ValueError, match="Dask's own"):
        scheduler.handlers["adaptive_target"](target_duration=-1)
    with pytest.raises(TypeError):
        scheduler.handlers["adaptive_target"](unknown=1)
    assert recorder.calls == []


@pytest.mark.parametrize("strict", ["0", "1"])
def test_an_exception_of_the_recorder_is_caught(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, strict: str
) -> None:
    monkeypatch.setenv("DASKSCOPE_STRICT", strict)
    recorder = Recorder()
    recorder.fails = True
    patches = installed(scheduler, recorder)
    assert scheduler.handlers["adaptive_target"]() == 7
    assert scheduler.stream_handlers["task-erred"](key="k") == {"key": "k"}
    assert set(patches.guard.first) == {"adaptive_target", "task-erred"}


def test_an_async_handler_is_passed_through(scheduler: Scheduler) -> None:
    async def slow() -> int:
        return 3

    scheduler.handlers["adaptive_target"] = slow
    installed(scheduler, Recorder())
    assert asyncio.run(scheduler.handlers["adaptive_target"]()) == 3


def test_a_graph_is_recorded_before_the_scheduler_reads_it(scheduler: Scheduler) -> None:
    recorder = Recorder()

    async def update_graph(**message: Any) -> tuple[dict[str, Any], int]:
        return message, len(recorder.calls)

    scheduler.stream_handlers["update-graph"] = update_graph
    patches = installed(scheduler, recorder)
    handler = scheduler.stream_handlers["update-graph"]
    # The scheduler does not wait for the tasks of a graph if its handler is a plain function.
    assert inspect.iscoroutinefunction(handler)
    assert asyncio.run(handler(client="c")) == ({"client": "c"}, 1)
    recorder.fails = True
    assert asyncio.run(handler(client="c")) == ({"client": "c"}, 2)
    patches.remove()
    assert scheduler.stream_handlers["update-graph"] is update_graph


def test_a_scheduler_without_the_handler_is_left_alone() -> None:
    scheduler = Scheduler()
    del scheduler.handlers["adaptive_target"]
    installed(scheduler, Recorder()).remove()
    assert scheduler.handlers == {}


def test_a_later_wrapper_stays_in_place_and_the_first_only_passes_calls_through(scheduler: Scheduler) -> None:
    recorder = Recorder()
    patches = installed(scheduler, recorder)
    ours = scheduler.handlers["adaptive_target"]
    theirs = scheduler.handlers["adaptive_target"] = lambda **arguments: ours(**arguments) + 1
    patches.remove()
    assert scheduler.handlers["adaptive_target"] is theirs
    assert theirs() == 8
    assert recorder.calls == []


def test_the_heartbeat_of_spans_is_wrapped_and_restored() -> None:
    class Spans:
        def heartbeat(self, worker: Any, data: Any) -> Any:
            return worker, data

    scheduler, extension = Scheduler(), Spans()
    scheduler.extensions["spans"] = extension
    recorder = Recorder()
    seen: list[Any] = []
    vars(recorder)["activities"] = SimpleNamespace(add_heartbeat=seen.append)
    patches = installed(scheduler, recorder)
    assert extension.heartbeat("w", {}) == ("w", {})
    patches.remove()
    assert vars(extension) == {}

    before = vars(extension)["heartbeat"] = lambda worker, data: ("before", worker, data)
    patches = installed(scheduler, recorder)
    patches.remove()
    assert vars(extension) == {"heartbeat": before}

    patches = installed(scheduler, recorder)
    ours = extension.heartbeat
    theirs = vars(extension)["heartbeat"] = lambda worker, data: ("theirs", *ours(worker, data))
    patches.remove()
    assert vars(extension)["heartbeat"] is theirs
    assert theirs("w", {}) == ("theirs", "before", "w", {})
    assert len(seen) == 1

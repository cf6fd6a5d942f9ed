"""Handlers of a scheduler that we wrap: whatever they do, and whatever we do, the scheduler sees what it saw before."""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector.guard import Guard
from daskscope.collector.hooks import Hooks


class Recorder:
    """Takes note of what it is told, or fails at everything."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.fails = False

    def wanted(self, workers: Any) -> None:
        self.told.append(workers)
        if self.fails:
            raise RuntimeError("ours")

    before_task_erred = wanted


class Scheduler:
    """As much of one as is wrapped."""

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


def installed(scheduler: Scheduler, recorder: Recorder) -> Hooks:
    guard = Guard(lambda: 0.0, lambda _: None)
    recorder_: Any = recorder
    hooks = Hooks(scheduler, recorder_, guard)
    hooks.install()
    return hooks


def test_what_is_wanted_is_told_and_answered_as_before(scheduler: Scheduler) -> None:
    recorder = Recorder()
    hooks = installed(scheduler, recorder)
    handler = scheduler.handlers["adaptive_target"]
    assert handler(target_duration=5) == 7
    assert recorder.told == [7]
    # What calls a handler looks at its arguments and its name.
    assert inspect.signature(handler) == inspect.signature(scheduler.adaptive_target)
    assert handler.__name__ == "adaptive_target"
    hooks.remove()
    assert scheduler.handlers["adaptive_target"] == scheduler.adaptive_target


def test_an_exception_of_dasks_is_dasks(scheduler: Scheduler) -> None:
    recorder = Recorder()
    installed(scheduler, recorder)
    with pytest.raises(ValueError, match="Dask's own"):
        scheduler.handlers["adaptive_target"](target_duration=-1)
    with pytest.raises(TypeError):
        scheduler.handlers["adaptive_target"](unknown=1)
    assert recorder.told == []


@pytest.mark.parametrize("strict", ["0", "1"])
def test_an_exception_of_ours_is_nobodys(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, strict: str) -> None:
    monkeypatch.setenv("DASKSCOPE_STRICT", strict)
    recorder = Recorder()
    recorder.fails = True
    hooks = installed(scheduler, recorder)
    assert scheduler.handlers["adaptive_target"]() == 7
    assert scheduler.stream_handlers["task-erred"](key="k") == {"key": "k"}
    assert set(hooks.guard.first) == {"adaptive_target", "task_erred"}


def test_a_handler_that_has_to_be_awaited_is_handed_on(scheduler: Scheduler) -> None:
    async def slow() -> int:
        return 3

    scheduler.handlers["adaptive_target"] = slow
    installed(scheduler, Recorder())
    assert asyncio.run(scheduler.handlers["adaptive_target"]()) == 3


def test_a_scheduler_that_is_never_asked_is_left_alone() -> None:
    scheduler = Scheduler()
    del scheduler.handlers["adaptive_target"]
    installed(scheduler, Recorder()).remove()
    assert scheduler.handlers == {}


def test_somebody_who_wrapped_ours_stays_and_ours_only_passes_on(scheduler: Scheduler) -> None:
    recorder = Recorder()
    hooks = installed(scheduler, recorder)
    ours = scheduler.handlers["adaptive_target"]
    theirs = scheduler.handlers["adaptive_target"] = lambda **arguments: ours(**arguments) + 1
    hooks.remove()
    assert scheduler.handlers["adaptive_target"] is theirs
    assert theirs() == 8
    assert recorder.told == []


def test_so_it_is_with_the_heartbeat_of_spans() -> None:
    class Spans:
        def heartbeat(self, worker: Any, data: Any) -> Any:
            return worker, data

    scheduler, extension = Scheduler(), Spans()
    scheduler.extensions["spans"] = extension
    recorder = Recorder()
    seen: list[Any] = []
    vars(recorder)["activities"] = SimpleNamespace(heartbeat=seen.append)
    hooks = installed(scheduler, recorder)
    assert extension.heartbeat("w", {}) == ("w", {})
    hooks.remove()
    assert vars(extension) == {}

    before = vars(extension)["heartbeat"] = lambda worker, data: ("before", worker, data)
    hooks = installed(scheduler, recorder)
    hooks.remove()
    assert vars(extension) == {"heartbeat": before}

    hooks = installed(scheduler, recorder)
    ours = extension.heartbeat
    theirs = vars(extension)["heartbeat"] = lambda worker, data: ("theirs", *ours(worker, data))
    hooks.remove()
    assert vars(extension)["heartbeat"] is theirs
    assert theirs("w", {}) == ("theirs", "before", "w", {})
    assert len(seen) == 1

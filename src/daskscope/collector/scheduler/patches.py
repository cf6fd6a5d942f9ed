"""Wrap five functions of the scheduler whose data never reaches plugins.

A failure with retries left never reaches ``transition``, so the ``task-erred`` handler is wrapped. A task that secedes from its
worker's threads stays in its state, so the ``long-running`` handler is wrapped. Fine metrics of a span arrive
with the heartbeat at the spans extension, so its ``heartbeat`` is wrapped. The number of workers that adaptive scaling wants
exists only as a reply, so the ``adaptive_target`` handler is wrapped. Plugins hear of a graph when its tasks exist, so the
``update-graph`` handler is wrapped for its size and the time of its arrival. All wrappers always call the original.

Other code may have wrapped the same function before, or may wrap our wrapper. ``remove`` restores an earlier wrapper, and leaves
a later one in place: then our wrapper only passes calls through.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from ..compat import spans
from ..guard import Guard
from .recorder import Recorder


class Patches:
    """Wraps functions of a scheduler and restores them."""

    def __init__(self, scheduler: Any, recorder: Recorder, guard: Guard) -> None:
        self.scheduler = scheduler
        self.recorder = recorder
        self.guard = guard
        self._active = False
        #: Installed wrappers: the mapping, the name in it, the previous value (None if the name was absent), the wrapper.
        self._places: list[tuple[MutableMapping[str, Any], str, Any, Any]] = []

    def install(self) -> None:
        self._active = True
        self._wrap_stream("task-erred", self.recorder.before_task_erred)
        if "long-running" in self.scheduler.stream_handlers:
            self._wrap_stream("long-running", self.recorder.before_seceding)
        self._wrap_graphs()
        extension = spans(self.scheduler)
        if extension is not None:
            self._wrap_heartbeat(extension)
        target = self.scheduler.handlers.get("adaptive_target")
        if target is not None:
            self._wrap_target(target)

    def _wrap_stream(self, name: str, record: Callable[[Mapping[str, Any]], None]) -> None:
        original = self.scheduler.stream_handlers[name]

        def handle(**message: Any) -> Any:
            self._call(name, lambda: record(message))
            return original(**message)

        self._put(self.scheduler.stream_handlers, name, handle)

    def _wrap_graphs(self) -> None:
        original = self.scheduler.stream_handlers.get("update-graph")
        # The scheduler awaits a handler only if it is a coroutine function.
        if not inspect.iscoroutinefunction(original):
            return

        @functools.wraps(original)
        async def update_graph(**message: Any) -> Any:
            self._call("update-graph", lambda: self.recorder.before_graph(message))
            return await original(**message)

        self._put(self.scheduler.stream_handlers, "update-graph", update_graph)

    def _wrap_heartbeat(self, extension: Any) -> None:
        original = extension.heartbeat

        def heartbeat(worker: Any, data: Any) -> Any:
            self._call("heartbeat", lambda: self.recorder.activities.add_heartbeat(data))
            return original(worker, data)

        # An instance attribute that hides the method of the class.
        self._put(vars(extension), "heartbeat", heartbeat)

    def _wrap_target(self, original: Any) -> None:
        # Keep its signature: distributed inspects a handler to see which arguments it takes.
        @functools.wraps(original)
        def adaptive_target(*args: Any, **kwargs: Any) -> Any:
            target = original(*args, **kwargs)
            self._call("adaptive_target", lambda: self.recorder.set_worker_target(target))
            return target

        self._put(self.scheduler.handlers, "adaptive_target", adaptive_target)

    def _call(self, place: str, record: Callable[[], None]) -> None:
        try:
            if self._active:
                record()
        except Exception as error:  # noqa: BLE001 (the original's call and return value must not depend on the recorder)
            _report(self.guard, place, error)

    def _put(self, place: MutableMapping[str, Any], name: str, wrapper: Any) -> None:
        self._places.append((place, name, place.get(name), wrapper))
        place[name] = wrapper

    def remove(self) -> None:
        self._active = False
        for place, name, before, wrapper in self._places:
            if place.get(name) is wrapper:
                if before is None:
                    del place[name]
                else:
                    place[name] = before
        self._places = []


def _report(guard: Guard, place: str, error: BaseException) -> None:
    try:
        guard.caught(place, error)
    except Exception:  # noqa: BLE001 (strict mode re-raises, which must not reach a stream handler of the scheduler)
        pass

"""Three places where the scheduler tells plugins too little, and we listen at the source.

A failure with retries left never reaches ``transition``, so the ``task-erred`` handler is wrapped. Fine metrics of a span arrive
with the heartbeat at the spans extension, so its ``heartbeat`` is wrapped. How many workers adaptive scaling wants is only ever
the answer to a question, so the ``adaptive_target`` handler is wrapped. All wrappers always call the original.

Somebody may have wrapped a place before us, or wrap ours: theirs is put back, or stays, and ours only passes through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, MutableMapping
from typing import Any

from .compat import spans
from .guard import Guard
from .recorder import Recorder


class Hooks:
    """Wraps handlers of a scheduler, and unwraps them."""

    def __init__(self, scheduler: Any, recorder: Recorder, guard: Guard) -> None:
        self.scheduler = scheduler
        self.recorder = recorder
        self.guard = guard
        self._listening = False
        #: Where ours are: the mapping, the name in it, what was there (None: nothing), and ours.
        self._places: list[tuple[MutableMapping[str, Any], str, Any, Any]] = []

    def install(self) -> None:
        self._listening = True
        self._wrap_task_erred(self.scheduler.stream_handlers["task-erred"])
        extension = spans(self.scheduler)
        if extension is not None:
            self._wrap_heartbeat(extension)
        target = self.scheduler.handlers.get("adaptive_target")
        if target is not None:
            self._wrap_target(target)

    def _wrap_task_erred(self, original: Any) -> None:
        def task_erred(**message: Any) -> Any:
            self._tell("task_erred", lambda: self.recorder.before_task_erred(message))
            return original(**message)

        self._put(self.scheduler.stream_handlers, "task-erred", task_erred)

    def _wrap_heartbeat(self, extension: Any) -> None:
        original = extension.heartbeat

        def heartbeat(worker: Any, data: Any) -> Any:
            self._tell("heartbeat", lambda: self.recorder.activities.heartbeat(data))
            return original(worker, data)

        # An attribute of the instance, over the method of its class.
        self._put(vars(extension), "heartbeat", heartbeat)

    def _wrap_target(self, original: Any) -> None:
        # Its signature is kept: what calls a handler looks at it to see which arguments it takes.
        @functools.wraps(original)
        def adaptive_target(*args: Any, **kwargs: Any) -> Any:
            target = original(*args, **kwargs)
            self._tell("adaptive_target", lambda: self.recorder.wanted(target))
            return target

        self._put(self.scheduler.handlers, "adaptive_target", adaptive_target)

    def _tell(self, place: str, tell: Callable[[], None]) -> None:
        try:
            if self._listening:
                tell()
        except Exception as error:  # noqa: BLE001 (the original must be called, and its answer given, whatever happens to us)
            _report(self.guard, place, error)

    def _put(self, place: MutableMapping[str, Any], name: str, ours: Any) -> None:
        self._places.append((place, name, place.get(name), ours))
        place[name] = ours

    def remove(self) -> None:
        self._listening = False
        for place, name, before, ours in self._places:
            if place.get(name) is ours:
                if before is None:
                    del place[name]
                else:
                    place[name] = before
        self._places = []


def _report(guard: Guard, place: str, error: BaseException) -> None:
    try:
        guard.caught(place, error)
    except Exception:  # noqa: BLE001 (strict mode re-raises; a stream handler of the scheduler is no place for it)
        pass

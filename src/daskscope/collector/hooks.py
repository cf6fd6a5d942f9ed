"""Three places where the scheduler tells plugins too little, and we listen at the source.

A failure with retries left never reaches ``transition``, so the ``task-erred`` handler is wrapped. Fine metrics of a span arrive
with the heartbeat at the spans extension, so its ``heartbeat`` is wrapped. How many workers adaptive scaling wants is only ever
the answer to a question, so the ``adaptive_target`` handler is wrapped. All wrappers always call the original.
"""

from __future__ import annotations

import functools
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
        self._task_erred: Any = None
        self._installed: Any = None
        self._target: Any = None
        self._target_installed: Any = None

    def install(self) -> None:
        self._task_erred = original = self.scheduler.stream_handlers["task-erred"]
        recorder, guard = self.recorder, self.guard

        def task_erred(**message: Any) -> Any:
            try:
                # Somebody may have wrapped ours since: then it stays after us, and only passes through.
                if self._installed is not None:
                    recorder.before_task_erred(message)
            except Exception as error:  # noqa: BLE001 (the original must be called whatever happens to us)
                _report(guard, "task_erred", error)
            return original(**message)

        self._installed = self.scheduler.stream_handlers["task-erred"] = task_erred
        extension = spans(self.scheduler)
        if extension is not None:
            self._wrap_heartbeat(extension)
        self._wrap_target()

    def _wrap_target(self) -> None:
        self._target = original = self.scheduler.handlers.get("adaptive_target")
        if original is None:
            return
        recorder, guard = self.recorder, self.guard

        # Its signature is kept: what calls a handler looks at it to see which arguments it takes.
        @functools.wraps(original)
        def adaptive_target(*args: Any, **kwargs: Any) -> Any:
            target = original(*args, **kwargs)
            try:
                if self._target_installed is not None:
                    recorder.wanted(target)
            except Exception as error:  # noqa: BLE001 (as above)
                _report(guard, "adaptive_target", error)
            return target

        self._target_installed = self.scheduler.handlers["adaptive_target"] = adaptive_target

    def _wrap_heartbeat(self, extension: Any) -> None:
        original, recorder, guard = extension.heartbeat, self.recorder, self.guard

        def heartbeat(worker: Any, data: Any) -> Any:
            try:
                recorder.activities.heartbeat(data)
            except Exception as error:  # noqa: BLE001 (as above)
                _report(guard, "heartbeat", error)
            return original(worker, data)

        # An instance attribute over the class's method; deleting it restores the original.
        extension.heartbeat = heartbeat

    def remove(self) -> None:
        handlers = self.scheduler.stream_handlers
        if self._installed is not None and handlers.get("task-erred") is self._installed:
            handlers["task-erred"] = self._task_erred
        asked = self.scheduler.handlers
        if self._target_installed is not None and asked.get("adaptive_target") is self._target_installed:
            asked["adaptive_target"] = self._target
        extension = spans(self.scheduler)
        if extension is not None:
            vars(extension).pop("heartbeat", None)
        self._installed = self._target_installed = None


def _report(guard: Guard, place: str, error: BaseException) -> None:
    try:
        guard.caught(place, error)
    except Exception:  # noqa: BLE001 (strict mode re-raises; a stream handler of the scheduler is no place for it)
        pass

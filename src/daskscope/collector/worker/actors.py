"""Measure the calls of actor methods, which Dask does not report to the scheduler.

Methods run on the thread of the worker's executor ``actor``. Its ``submit`` is hidden by an instance attribute, which times the
method on that thread. Coroutine methods run on the event loop and are not measured. The result and the exception of a call are
passed through unchanged.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ...model.tables import ACTOR_CALLS
from ..aliases import PLAIN, Aliases
from ..rows import Columns, empty

#: Calls between two pushes; the oldest are dropped and counted.
MAX_CALLS = 20_000
#: Actors of one worker that are searched for the one that was called.
MAX_ACTORS = 1_000
#: The function of distributed that calls a method; tasks may run in the same executor, and are recorded as tasks.
CALLER = "_run_actor"


class ActorCalls:
    """The actor calls of one worker since the last drain. ``clock`` returns seconds on the scheduler's clock."""

    def __init__(self, worker: Any, *, clock: Callable[[], float], aliases: Aliases = PLAIN) -> None:
        self.dropped = 0
        self._worker = worker
        self._clock = clock
        self._aliases = aliases
        self._calls: deque[tuple[Any, ...]] = deque()
        self._is_closed = False
        self._executor = worker.executors["actor"]
        self._original = self._executor.submit
        self._wrapper = self._submit
        self._executor.submit = self._wrapper

    def close(self) -> None:
        """Restore the executor, unless other code has wrapped it meanwhile; then the wrapper only passes calls through."""
        self._is_closed = True
        if vars(self._executor).get("submit") is self._wrapper:
            del self._executor.submit

    def drain(self, worker: str) -> Columns:
        columns = empty(ACTOR_CALLS)
        while self._calls:
            start, stop, cpu, thread, key, prefix, method, status = self._calls.popleft()
            columns["start_us"].append(round(start * 1e6))
            columns["stop_us"].append(round(stop * 1e6))
            columns["worker"].append(worker)
            columns["key"].append(key)
            columns["prefix"].append(prefix)
            columns["method"].append(method)
            columns["thread"].append(thread)
            columns["cpu_us"].append(max(round(cpu * 1e6), 0))
            columns["status"].append(status)
        return columns

    def _submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if self._is_closed or getattr(function, "__name__", "") != CALLER:
            return self._original(function, *args, **kwargs)
        return self._original(self._call, function, *args, **kwargs)

    def _call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        start, begin, cpu = self._clock(), time.perf_counter(), time.thread_time()
        status = "error"
        try:
            result = function(*args, **kwargs)
            status = "ok"
            return result
        finally:
            self._note(args, start, begin, cpu, status)

    def _note(self, args: tuple[Any, ...], start: float, begin: float, cpu: float, status: str) -> None:
        try:
            used, stop = time.thread_time() - cpu, start + time.perf_counter() - begin
            method = args[0]
            actor, name = method.__self__, str(method.__name__)
            # Dask names the thread "prefix.method" while the method runs, and so does the profile.
            prefix = str(args[4]).removesuffix(f".{name}")
            key = self._key(actor)
            self._aliases.note(key)
            shown, prefix = (key if self._aliases.keys else ""), self._aliases.group(prefix)
            row = (start, stop, used, threading.get_ident(), shown, prefix, name, status)
            if len(self._calls) >= MAX_CALLS:
                self._calls.popleft()
                self.dropped += 1
            self._calls.append(row)
        except Exception:  # noqa: BLE001 - the call's own result or exception must reach the caller
            self.dropped += 1

    def _key(self, actor: Any) -> str:
        """Return the key of an actor; empty if the worker has too many actors to search."""
        actors = self._worker.state.actors
        if len(actors) > MAX_ACTORS:
            return ""
        # Copying a dict is atomic in the interpreter; the event loop may add an actor meanwhile.
        actors = actors.copy()
        return str(next((key for key, held in actors.items() if held is actor), ""))

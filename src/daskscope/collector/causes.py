"""Why a task failed: the innermost cause, which Dask does not send.

Dask turns a task's exception into a message by ``distributed.worker.error_message``, in the thread that ran the task. That
function is wrapped, once for the whole process, and the original's result is always returned unchanged.
"""

from __future__ import annotations

import sys
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import distributed.worker

from .fingerprint import from_exception, innermost, message_of
from .privacy import Scrubber, bounded

MAX_PENDING = 500
MAX_TRACEBACK = 20_000
MAX_MESSAGE = 10_000
#: Whole tracebacks of one fingerprint per minute. Formatting one of ten frames takes 0.2 ms, more where source files are read.
FULL_TEXTS = 3
WINDOW_S = 60.0

Record = dict[str, str]


class CauseLog:
    """The failures of one worker since the last drain."""

    def __init__(
        self,
        worker: Any,
        scrubber: Scrubber,
        *,
        clock: Callable[[], float],
        exception_text: bool = True,
        notify: Callable[[], None] = lambda: None,
    ) -> None:
        self.dropped = 0
        # Weak: the wrapper outlives workers, and must not keep one and its results in memory.
        self._worker = weakref.ref(worker)
        self._scrubber = scrubber
        self._clock = clock
        self._exception_text = exception_text
        self._notify = notify
        self._pending: deque[Record] = deque()
        self._texts: dict[str, tuple[float, int]] = {}

    def key_on_thread(self, ident: int) -> str | None:
        worker = self._worker()
        key = None if worker is None else worker.active_threads.get(ident)
        return None if key is None else str(key)

    def is_of(self, worker: Any) -> bool:
        return worker is not None and self._worker() is worker

    def add(self, key: str, exc: BaseException) -> None:
        cause = from_exception(exc)
        record = {
            "key": key,
            "type": type(exc).__name__,
            "message": self._text(message_of(exc), MAX_MESSAGE),
            "cause_type": cause.type,
            "cause_message": self._text(cause.message, MAX_MESSAGE),
            "fingerprint": cause.fingerprint,
            "traceback": self._traceback(cause.fingerprint, exc),
        }
        self._pending.append(record)
        if len(self._pending) > MAX_PENDING:
            self._pending.popleft()
            self.dropped += 1
        self._notify()

    def drain(self) -> list[Record]:
        records = []
        while self._pending:
            records.append(self._pending.popleft())
        return records

    def __len__(self) -> int:
        return len(self._pending)

    def _traceback(self, fingerprint: str, exc: BaseException) -> str:
        if not self._exception_text or not self._may_write(fingerprint):
            return ""
        try:
            text = "".join(traceback.format_exception(type(exc), exc, exc.__traceback__))
        except Exception:  # noqa: BLE001 - an exception whose text raises; Python before 3.13 gives up on some
            text = "".join(traceback.format_tb(innermost(exc).__traceback__))
        return self._text(text, MAX_TRACEBACK)

    def _may_write(self, fingerprint: str) -> bool:
        now = self._clock()
        if len(self._texts) > 500:
            self._texts = {name: seen for name, seen in self._texts.items() if now - seen[0] < WINDOW_S}
        began, written = self._texts.get(fingerprint, (now, 0))
        if now - began >= WINDOW_S:
            began, written = now, 0
        self._texts[fingerprint] = (began, written + 1)
        return written < FULL_TEXTS

    def _text(self, text: str, limit: int) -> str:
        if not self._exception_text:
            return ""
        # Cut before scrubbing to bound the work, and after it to the size asked for.
        return bounded(self._scrubber.scrub(bounded(text, 10 * limit)), limit)


class ErrorMessageHook:
    """The wrapper around ``distributed.worker.error_message`` and the logs that listen to it."""

    def __init__(self, module: Any = distributed.worker) -> None:
        self._module = module
        self._original: Callable[..., Any] | None = None
        self._wrapper: Callable[..., Any] | None = None
        self._logs: list[CauseLog] = []
        self._lock = threading.Lock()

    def listen(self, log: CauseLog) -> None:
        with self._lock:
            self._logs = [*self._logs, log]
            if self._original is None:
                self._install()

    def forget(self, log: CauseLog) -> None:
        """Stop telling this log; restore Dask's function after the last."""
        with self._lock:
            self._logs = [other for other in self._logs if other is not log]
            # Somebody may have wrapped ours since: then it stays, and only passes through.
            if not self._logs and self._module.error_message is self._wrapper:
                self._module.error_message = self._original
                self._original = self._wrapper = None

    def _install(self) -> None:
        original = self._original = self._module.error_message

        def error_message(e: BaseException, *args: Any, **kwargs: Any) -> Any:
            result = original(e, *args, **kwargs)
            try:
                self._tell(e)
            except Exception:  # noqa: BLE001 - the task's failure must reach the scheduler whatever happens here
                pass
            return result

        self._module.error_message = self._wrapper = error_message

    def _tell(self, exc: BaseException) -> None:
        if type(exc).__name__ == "Reschedule":  # not a failure: the task asks to be run elsewhere
            return
        ident = threading.get_ident()
        for log in self._logs:
            key = log.key_on_thread(ident)
            if key is not None:
                log.add(key, exc)
                return
        self._tell_async(exc)

    def _tell_async(self, exc: BaseException) -> None:
        """A coroutine runs on the event loop, where no thread belongs to it; newer Dask names it in the calling frame.

        Frames: this, ``_tell``, the wrapper, ``_run_task_async``. Distributed 2023.12 has no such function: nothing is kept there.
        """
        caller = sys._getframe(3)
        task = caller.f_locals.get("task") if caller.f_code.co_name == "_run_task_async" else None
        key = getattr(task, "key", None)
        worker = _current_worker()
        for log in self._logs:
            if key is not None and log.is_of(worker):
                log.add(str(key), exc)


def _current_worker() -> Any:
    try:
        return distributed.worker.get_worker()
    except (ValueError, AttributeError):
        return None


#: One for the process: the agents of all its workers listen here.
hook = ErrorMessageHook()

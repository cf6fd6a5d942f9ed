"""Record the innermost cause of a task's failure, which Dask does not send.

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

from ..aliases import PLAIN, Aliases
from ..fingerprint import from_exception, innermost, message_of
from ..privacy import Scrubber, bounded, without_arguments

MAX_PENDING = 500
MAX_TRACEBACK = 20_000
MAX_MESSAGE = 10_000
#: Full tracebacks per fingerprint and minute. Formatting one of ten frames takes 0.2 ms, more if source files must be read.
MAX_FULL_TEXTS = 3
WINDOW_S = 60.0

Record = dict[str, str]


class CauseLog:
    """The causes of one worker's failures since the last drain."""

    def __init__(
        self,
        worker: Any,
        scrubber: Scrubber,
        *,
        clock: Callable[[], float],
        exception_text: bool = True,
        aliases: Aliases = PLAIN,
        notify: Callable[[], None] = lambda: None,
    ) -> None:
        self.dropped = 0
        # Weak, because the wrapper outlives workers and must not keep a worker and its results in memory.
        self._worker = weakref.ref(worker)
        self._scrubber = scrubber
        self._clock = clock
        self._exception_text = exception_text
        self._aliases = aliases
        self._notify = notify
        self._pending: deque[Record] = deque()
        self._texts: dict[str, tuple[float, int]] = {}

    def key_on_thread(self, ident: int) -> str | None:
        worker = self._worker()
        key = None if worker is None else worker.active_threads.get(ident)
        return None if key is None else str(key)

    def is_for(self, worker: Any) -> bool:
        return worker is not None and self._worker() is worker

    def add(self, key: str, exc: BaseException) -> None:
        cause = from_exception(exc)
        record = {
            "key": key,
            "type": type(exc).__name__,
            "message": self._text(message_of(exc), key, MAX_MESSAGE),
            "cause_type": cause.type,
            "cause_message": self._text(cause.message, key, MAX_MESSAGE),
            "fingerprint": cause.fingerprint,
            "traceback": self._traceback(cause.fingerprint, key, exc),
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

    def _traceback(self, fingerprint: str, key: str, exc: BaseException) -> str:
        if not self._exception_text or not self._may_keep_text(fingerprint):
            return ""
        try:
            text = "".join(traceback.format_exception(type(exc), exc, exc.__traceback__))
        except Exception:  # noqa: BLE001 - the exception's ``__str__`` may raise, which Python before 3.13 does not always catch
            text = "".join(traceback.format_tb(innermost(exc).__traceback__))
        return self._text(text, key, MAX_TRACEBACK)

    def _may_keep_text(self, fingerprint: str) -> bool:
        now = self._clock()
        if len(self._texts) > 500:
            self._texts = {name: seen for name, seen in self._texts.items() if now - seen[0] < WINDOW_S}
        began, written = self._texts.get(fingerprint, (now, 0))
        if now - began >= WINDOW_S:
            began, written = now, 0
        self._texts[fingerprint] = (began, written + 1)
        return written < MAX_FULL_TEXTS

    def _text(self, text: str, key: str, limit: int) -> str:
        if not self._exception_text:
            return ""
        # Cut before scrubbing to bound the work, and after it to the final length.
        return bounded(
            self._scrubber.scrub(self._aliases.hide(without_arguments(bounded(text, 10 * limit), self._aliases), key)),
            limit,
        )


class ErrorMessageHook:
    """Wraps ``distributed.worker.error_message`` and adds each failure to the log of its worker."""

    def __init__(self, module: Any = distributed.worker) -> None:
        self._module = module
        self._original: Callable[..., Any] | None = None
        self._wrapper: Callable[..., Any] | None = None
        self._logs: list[CauseLog] = []
        self._lock = threading.Lock()

    def add(self, log: CauseLog) -> None:
        with self._lock:
            self._logs = [*self._logs, log]
            if self._original is None:
                self._install()

    def remove(self, log: CauseLog) -> None:
        """Remove a log, and restore Dask's function after the last one."""
        with self._lock:
            self._logs = [other for other in self._logs if other is not log]
            # If other code has wrapped our wrapper since, it stays in place and only passes calls through.
            if not self._logs and self._module.error_message is self._wrapper:
                self._module.error_message = self._original
                self._original = self._wrapper = None

    def _install(self) -> None:
        original = self._original = self._module.error_message

        def error_message(e: BaseException, *args: Any, **kwargs: Any) -> Any:
            result = original(e, *args, **kwargs)
            try:
                self._record(e)
            except Exception:  # noqa: BLE001 - the task's failure must reach the scheduler in any case
                pass
            return result

        self._module.error_message = self._wrapper = error_message

    def _record(self, exc: BaseException) -> None:
        if type(exc).__name__ == "Reschedule":  # not a failure: the task asks to be run elsewhere
            return
        ident = threading.get_ident()
        for log in self._logs:
            key = log.key_on_thread(ident)
            if key is not None:
                log.add(key, exc)
                return
        self._record_async(exc)

    def _record_async(self, exc: BaseException) -> None:
        """Record the failure of a coroutine, which has no thread of its own; newer Dask has its key in the calling frame.

        Frames: this, ``_record``, the wrapper, ``_run_task_async``. Distributed 2023.12 has no such function: nothing is recorded.
        """
        caller = sys._getframe(3)
        task = caller.f_locals.get("task") if caller.f_code.co_name == "_run_task_async" else None
        key = getattr(task, "key", None)
        worker = _current_worker()
        for log in self._logs:
            if key is not None and log.is_for(worker):
                log.add(str(key), exc)


def _current_worker() -> Any:
    try:
        return distributed.worker.get_worker()
    except (ValueError, AttributeError):
        return None


#: One per process, shared by the agents of all its workers.
hook = ErrorMessageHook()

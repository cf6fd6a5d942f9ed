"""Warnings and errors logged in this process, kept in a bounded ring until they are drained."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from distributed.worker import get_worker

from ..model.tables import LOGS
from .columns import Columns, empty
from .logtext import text_of
from .privacy import Scrubber, bounded

MAX_LINES = 1_000
MAX_TEXT = 4_000

#: The only INFO line worth keeping: Dask's own word that its event loop stood still.
LOOP_STALL = "Event loop was unresponsive"

#: Named, not taken from this module's name: where it is shipped as source its package is called otherwise.
_OWN_LOGGERS = "daskscope"
_CAPTURES_LOCK = threading.Lock()


@dataclass
class Line:
    """One row of ``logs``."""

    time: float
    worker: str
    level: int
    logger: str
    text: str
    repeats: int = 1

    def same_as(self, other: Line) -> bool:
        return (self.text, self.level, self.logger, self.worker) == (
            other.text,
            other.level,
            other.logger,
            other.worker,
        )


class LogCapture:
    """Captures WARNING and worse; with ``loop_stalls`` also Dask's INFO line about its event loop.

    ``delay`` is the scheduler's clock minus ours. A record of the scheduler's own logger, or of a task's thread, names its
    process; everything else belongs to whoever drains.
    """

    def __init__(
        self,
        scrubber: Scrubber,
        *,
        delay: Callable[[], float] = lambda: 0.0,
        exception_text: bool = True,
        keys: bool = True,
        loop_stalls: bool = False,
        max_lines: int = MAX_LINES,
    ) -> None:
        #: Lines lost that nobody has taken note of yet.
        self.dropped = 0
        self.loop_stalls = loop_stalls
        self._scrubber = scrubber
        self._delay = delay
        self._exception_text = exception_text
        self._keys = keys
        self._max_lines = max_lines
        self._lines: deque[Line] = deque()
        self._busy = threading.local()
        self._lock = threading.RLock()
        self._listening = False
        self._original: Any = None
        self._wrapper: Any = None

    def install(self) -> None:
        """Listen to every record of this process, without being a handler of any logger.

        A handler on the root logger would turn the user's own ``logging.basicConfig()`` into a no-op and stop Python from
        printing warnings nobody handles; so the one method that every record passes once is wrapped instead.
        """
        original = logging.Logger.callHandlers

        def call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
            if self._listening:
                self.emit(record)
            original(logger, record)

        self._listening, self._original, self._wrapper = True, original, call_handlers
        logging.Logger.callHandlers = call_handlers  # type: ignore[assignment,method-assign]

    def remove(self) -> None:
        self._listening = False
        # Where somebody wrapped it after us, ours stays below and does nothing any more.
        if self._wrapper is not None and logging.Logger.callHandlers is self._wrapper:
            logging.Logger.callHandlers = self._original  # type: ignore[method-assign]
        self._wrapper = None

    def emit(self, record: logging.LogRecord) -> None:
        # Writing a message runs the user's __str__, which may log.
        if getattr(self._busy, "yes", False) or not self._wanted(record):
            return
        self._busy.yes = True
        try:
            with self._lock:
                self._keep(record)
        except Exception:  # noqa: BLE001 - a log line must never break the program that wrote it
            with self._lock:
                self.dropped += 1
        finally:
            self._busy.yes = False

    def drain(self, worker: str) -> Columns:
        """All lines so far; those that name no process become this worker's."""
        columns = empty(LOGS)
        with self._lock:
            lines, self._lines = self._lines, deque()
        for line in lines:
            columns["time_us"].append(round(line.time * 1e6))
            columns["worker"].append(line.worker or worker)
            columns["level"].append(line.level)
            columns["logger"].append(line.logger)
            columns["message"].append(line.text)
            columns["repeats"].append(line.repeats)
        return columns

    def take_dropped(self) -> int:
        """Lines lost since the last call: counted by one of those who share the capture, not by each."""
        with self._lock:
            taken, self.dropped = self.dropped, 0
        return taken

    def _wanted(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] == _OWN_LOGGERS:
            return False
        if record.levelno >= logging.WARNING:
            return True
        return self.loop_stalls and isinstance(record.msg, str) and record.msg.startswith(LOOP_STALL)

    def _keep(self, record: logging.LogRecord) -> None:
        text = text_of(record, exception_text=self._exception_text, keys=self._keys)
        # Scrubbed before it is cut, or half a secret would be no known secret; cut twice, or scrubbing has no bound.
        text = bounded(self._scrubber.scrub(bounded(text, 20 * MAX_TEXT)), MAX_TEXT)
        line = Line(record.created + self._delay(), _process_of(record), record.levelno, record.name, text)
        if self._lines and self._lines[-1].same_as(line):
            self._lines[-1].repeats += 1
            return
        self._lines.append(line)
        if len(self._lines) > self._max_lines:
            self.dropped += self._lines.popleft().repeats


class SharedCapture:
    """The one capture of a process: a LocalCluster of threads has a scheduler and many workers in one."""

    def __init__(self) -> None:
        self._capture: LogCapture | None = None
        self._users = 0

    def acquire(self, make: Callable[[], LogCapture], *, loop_stalls: bool = False) -> LogCapture:
        """The capture of this process, made and installed for its first user."""
        with _CAPTURES_LOCK:
            if self._capture is None:
                self._capture = make()
                self._capture.install()
            self._capture.loop_stalls |= loop_stalls
            self._users += 1
            return self._capture

    def release(self) -> None:
        """Remove it after its last user."""
        with _CAPTURES_LOCK:
            self._users = max(self._users - 1, 0)
            if not self._users and self._capture is not None:
                self._capture.remove()
                self._capture = None


#: Scheduler and worker agents of this process take it from here.
shared = SharedCapture()


def _process_of(record: logging.LogRecord) -> str:
    if record.name.startswith("distributed.scheduler"):
        return "scheduler"
    return _worker_of_this_thread()


def _worker_of_this_thread() -> str:
    """The worker whose task runs on this thread, empty on any other thread."""
    try:
        return str(get_worker().address)
    except (ValueError, AttributeError):  # no task, or a worker without an address yet
        return ""

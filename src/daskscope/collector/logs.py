"""Capture warnings and errors logged in this process, up to a limit, until they are drained.

The second half writes a record's text without data: Dask logs the arguments of failed tasks, and the data it fails to serialize.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import distributed.worker
from distributed.worker import get_worker

from ..model.tables import LOGS
from .aliases import PLAIN, Aliases
from .privacy import Scrubber, bounded, without_arguments
from .rows import Columns, empty

MAX_LINES = 1_000
MAX_TEXT = 4_000

#: The only INFO line that is kept: Dask reports that its event loop was blocked.
LOOP_STALL = "Event loop was unresponsive"

#: A constant, because a shipped bundle has another package name.
_OWN_LOGGERS = "daskscope"
#: First parts of the names of Dask's own loggers; the packages around it are named dask_jobqueue, dask_kubernetes …
_DASK_LOGGERS = ("distributed", "dask")
_CAPTURES_LOCK = threading.Lock()

#: Dask logs the arguments of the task (2023.12: ``args:`` and ``kwargs:``; 2026.8: ``Task:``) or of the function in these.
_INPUT_MESSAGES = ("Compute Failed", "Run Failed")
_KEPT_FIELDS = ("Key", "Exception", "Function")
#: Dask logs the data itself in these.
_DATA_MESSAGES = ("Failed to serialize ", "Failed to deserialize ", "truncated data stream")


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
    """Captures WARNING and above of Dask's loggers; with ``user_loggers`` of all.

    With ``loop_stalls`` also captures Dask's INFO line about its event loop.

    ``delay`` returns the scheduler's clock minus this process's. Lines of the scheduler's logger belong to the scheduler and lines
    of a task's thread to its worker; all others belong to the worker whose agent drains them.
    """

    def __init__(
        self,
        scrubber: Scrubber,
        *,
        delay: Callable[[], float] = lambda: 0.0,
        exception_text: bool = True,
        aliases: Aliases = PLAIN,
        user_loggers: bool = False,
        loop_stalls: bool = False,
        max_lines: int = MAX_LINES,
    ) -> None:
        #: Lost lines that ``pop_dropped`` has not returned yet.
        self.dropped = 0
        self.loop_stalls = loop_stalls
        self._scrubber = scrubber
        self._delay = delay
        self._exception_text = exception_text
        self._aliases = aliases
        self._user_loggers = user_loggers
        self._max_lines = max_lines
        self._lines: deque[Line] = deque()
        self._busy = threading.local()
        self._lock = threading.RLock()
        self._active = False
        self._original: Any = None
        self._wrapper: Any = None

    def install(self) -> None:
        """Receive every record of this process, without adding a handler to any logger.

        A handler on the root logger would turn the user's own ``logging.basicConfig()`` into a no-op and stop Python from
        printing unhandled warnings. So this wraps the one method that every record passes once.
        """
        original = logging.Logger.callHandlers

        def call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
            if self._active:
                self.emit(record)
            original(logger, record)

        self._active, self._original, self._wrapper = True, original, call_handlers
        logging.Logger.callHandlers = call_handlers  # type: ignore[assignment,method-assign]

    def remove(self) -> None:
        self._active = False
        # If other code has wrapped our wrapper since, it stays in place and only passes calls through.
        if self._wrapper is not None and logging.Logger.callHandlers is self._wrapper:
            logging.Logger.callHandlers = self._original  # type: ignore[method-assign]
        self._wrapper = None

    def emit(self, record: logging.LogRecord) -> None:
        # Formatting a message calls the user's __str__, which may log.
        if getattr(self._busy, "yes", False) or not self._is_wanted(record):
            return
        self._busy.yes = True
        try:
            with self._lock:
                self._append(record)
        except Exception:  # noqa: BLE001 - a log line must never break the program that wrote it
            with self._lock:
                self.dropped += 1
        finally:
            self._busy.yes = False

    def drain(self, worker: str) -> Columns:
        """Return and remove all lines; those without a process are attributed to ``worker``."""
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

    def pop_dropped(self) -> int:
        """Return the number of lost lines and reset it, so that only one user of a shared capture counts them."""
        with self._lock:
            dropped, self.dropped = self.dropped, 0
        return dropped

    def _is_wanted(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] == _OWN_LOGGERS:
            return False
        if not self._user_loggers and not _is_dasks(record):
            return False
        if record.levelno >= logging.WARNING:
            return True
        return self.loop_stalls and isinstance(record.msg, str) and record.msg.startswith(LOOP_STALL)

    def _append(self, record: logging.LogRecord) -> None:
        text = text_of(record, exception_text=self._exception_text, aliases=self._aliases)
        # Scrub before the final cut, because half a secret is not recognized; cut before that to bound the work of scrubbing.
        text = bounded(self._scrubber.scrub(without_arguments(bounded(text, 20 * MAX_TEXT), self._aliases)), MAX_TEXT)
        line = Line(record.created + self._delay(), _process_of(record), record.levelno, record.name, text)
        if self._lines and self._lines[-1].same_as(line):
            self._lines[-1].repeats += 1
            return
        self._lines.append(line)
        if len(self._lines) > self._max_lines:
            self.dropped += self._lines.popleft().repeats


class SharedCapture:
    """The single capture of a process: a LocalCluster of threads has a scheduler and many workers in one process."""

    def __init__(self) -> None:
        self._capture: LogCapture | None = None
        self._users = 0

    def acquire(self, make: Callable[[], LogCapture], *, loop_stalls: bool = False) -> LogCapture:
        """Return the capture of this process, creating and installing it for the first user."""
        with _CAPTURES_LOCK:
            if self._capture is None:
                self._capture = make()
                self._capture.install()
            self._capture.loop_stalls |= loop_stalls
            self._users += 1
            return self._capture

    def release(self) -> None:
        """Release one user's hold on the capture, and remove it after the last."""
        with _CAPTURES_LOCK:
            self._users = max(self._users - 1, 0)
            if not self._users and self._capture is not None:
                self._capture.remove()
                self._capture = None


#: Shared by the recorder and all agents of this process.
shared = SharedCapture()


def _process_of(record: logging.LogRecord) -> str:
    if record.name.startswith("distributed.scheduler"):
        return "scheduler"
    return _worker_of_this_thread()


def _worker_of_this_thread() -> str:
    """Return the address of the worker whose task runs on this thread; empty on other threads."""
    try:
        return str(get_worker().address)
    except (ValueError, AttributeError):  # no task, or a worker without an address yet
        return ""


def _key_of_this_thread() -> Any:
    """Return the key of the task that runs on this thread; empty on other threads."""
    return getattr(getattr(distributed.worker, "thread_state", None), "key", "")


def _is_dasks(record: logging.LogRecord) -> bool:
    package = record.name.partition(".")[0]
    return package in _DASK_LOGGERS or package.startswith("dask_")


def text_of(record: logging.LogRecord, *, exception_text: bool = True, aliases: Aliases = PLAIN) -> str:
    """Return message and traceback of a record.

    Without ``exception_text``, only the type of an exception. If keys are not recorded, an alias of every value in Dask's own
    lines that may be a key, and of the key of the task that logs.
    """
    template = record.msg if isinstance(record.msg, str) else ""
    if template.startswith(_INPUT_MESSAGES):
        text = _fields(record, exception_text=exception_text, aliases=aliases)
    elif template.startswith(_DATA_MESSAGES):
        text = _types_only(template, record.args)
    elif not aliases.keys and _is_dasks(record):
        text = _without_keys(record, template, aliases)
    else:
        text = record.getMessage()
    trace = _exception(record, exception_text=exception_text and not template.startswith(_DATA_MESSAGES))
    if aliases.keys:
        return text + trace
    return aliases.hide(text + (aliases.hide_quoted(trace) if _is_dasks(record) else trace), _key_of_this_thread())


def _fields(record: logging.LogRecord, *, exception_text: bool, aliases: Aliases) -> str:
    """Return the safe fields of a message that consists of lines ``Name: value``."""
    head, *lines = str(record.msg).split("\n")
    values = list(record.args) if isinstance(record.args, tuple) else []
    fields = [line for line in lines if ":" in line]
    if values and len(fields) != len(values):
        return head  # an unknown layout: keep the first line only
    text: list[str] = [head]
    key: Any = ""
    for number, field in enumerate(fields):
        name, _, rest = field.partition(":")
        value: Any = values[number] if values else rest.strip()
        if name == "Key":
            key, value = value, aliases.key(value)
        if name in _KEPT_FIELDS and (exception_text or name != "Exception"):
            text.append(f"{name}: {value}")
    return aliases.hide("\n".join(text), key)


def _without_keys(record: logging.LogRecord, template: str, aliases: Aliases) -> str:
    """Return Dask's line with its numbers, addresses and states; any other value, given or quoted, may be a key."""
    if not record.args:
        return aliases.hide_quoted(record.getMessage())
    values = record.args if isinstance(record.args, tuple) else (record.args,)
    # Numbers stay numbers, for %d.
    shown = tuple(value if isinstance(value, (int, float)) else aliases.value(value) for value in values)
    try:
        return aliases.hide_quoted(template.replace("%r", "%s")) % shown
    except (TypeError, ValueError):
        return template


def _types_only(template: str, args: object) -> str:
    values = args if isinstance(args, tuple) else (args,) if args else ()
    names = tuple(f"<{type(value).__name__}>" for value in values)
    try:
        return template.replace("%d", "%s").replace("%r", "%s") % names
    except (TypeError, ValueError):
        return template


def _exception(record: logging.LogRecord, *, exception_text: bool) -> str:
    info = record.exc_info
    if not isinstance(info, tuple) or info[1] is None:
        return ""
    if not exception_text:
        return f"\n{type(info[1]).__name__}"
    return "\n" + "".join(traceback.format_exception(*info)).rstrip()

"""Record failed executions: count all of them, but keep the texts of a few.

Dask reports the outer exception only. The worker's agent knows the innermost cause and reports it separately, so a failure
waits up to 1.5 s for its cause before it becomes a row. A million failures of one error group must not become a million
tracebacks: the first few of a fingerprint keep their text, and above a limit per flush, repeats are folded into one row with
a count.

Fingerprints and scrubbed texts take 0.1 ms per failure, so they are made when the row is encoded, off the event loop.

Exceptions that the scheduler made itself arrive pickled; ``exception_text`` reads them with an unpickler that loads nothing else.
"""

from __future__ import annotations

import heapq
import io
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from ..aliases import PLAIN, Aliases
from ..compat import runs_again
from ..fingerprint import from_text
from ..privacy import Scrubber, bounded, without_arguments
from .executions import Executions
from .members import Member

# A worker never reports executions that ended with its death or were cancelled.
#
# The scheduler knows which tasks are assigned to a worker. Which of them were executing, and since when, follows from the
# worker's last heartbeat, its number of threads and the priorities of the tasks.

#: Executions written when a worker is lost (3 µs each); it rarely has more than a few times its threads.
MAX_LOST_PER_WORKER = 1_000
#: Tasks of a worker that are looked at when tasks are cancelled: those that it got first, at 0.5 µs each.
MAX_ASSIGNED = 200


class Interrupted:
    """Records interrupted executions.

    ``record`` takes key, task, message, status and start in microseconds.
    """

    def __init__(
        self,
        scheduler: Any,
        record: Callable[[Any, Any, Mapping[str, Any], str, int], None],
        executions: Executions,
    ) -> None:
        self.scheduler = scheduler
        self.record = record
        self.executions = executions
        #: Worker, key and task of executions that failed for good with their worker, until its removal is logged.
        self.died: list[tuple[str, Any, Any]] = []
        #: The last request that cancelled tasks, and the tasks that were executing then.
        self._cancelling = ""
        self._executing: dict[Any, tuple[str, int]] = {}
        self._begun: set[Any] = set()

    def worker_removed(self, message: Mapping[Any, Any], members: Mapping[str, Member]) -> list[Any]:
        """Record what a removed worker was executing; return the tasks that were assigned to it."""
        keys, worker = message.get("processing-tasks"), message.get("worker")
        if not isinstance(keys, (set, frozenset, list, tuple, dict)) or not isinstance(worker, str):
            return []
        get = self.scheduler.tasks.get
        tasks = {key: task for key in islice(keys, MAX_LOST_PER_WORKER) if (task := get(key)) is not None}
        failed = {key for address, key, _ in self.died if address == worker}
        member = members.get(worker)
        state = member.state if member else None
        stops = self.executions.stops_since(worker, heartbeat_us(state))
        assigned_us = {key: self.executions.assigned_us(key) for key in tasks}
        for key, start_us in executing_at_end(state, tasks.values(), stops, assigned_us).items():
            if key in failed:
                self.record(key, tasks[key], {"worker": worker}, "error", start_us)
            elif runs_again(self.scheduler, tasks[key], message):
                self.record(key, tasks[key], {"worker": worker}, "killed", start_us)
        self.died = [item for item in self.died if item[0] != worker]
        return list(tasks.values())

    def flush_died(self) -> None:
        """Record failed executions whose worker's removal was logged before they failed, as older versions of Dask do."""
        died, self.died = self.died, []
        for worker, key, task in died:
            self.record(key, task, {"worker": worker}, "error", 0)

    def cancelled(self, key: Any, task: Any, stimulus: str) -> bool:
        """Record the execution of a cancelled task if the last heartbeat of a worker reported it.

        Returns whether the task may have begun: others were only assigned to a worker.
        """
        if stimulus != self._cancelling:
            # One request may cancel thousands of tasks: find those that were executing once. The first one is no longer assigned.
            self._cancelling, self._executing = stimulus, executing_now(self.scheduler.workers)
            self._begun = {key, *begun_since(self.scheduler.workers)}
        worker, start_us = self._executing.pop(key, ("", 0))
        if worker:
            self.record(key, task, {"worker": worker}, "cancelled", start_us)
        return bool(worker) or key in self._begun


def executing_at_end(
    worker: Any, tasks: Iterable[Any], stops: Sequence[int], assigned_us: Mapping[Any, int]
) -> dict[Any, int]:
    """Return which of its assigned ``tasks`` a removed worker was executing, with the start of each in microseconds.

    Tasks in the last heartbeat are certain. Each other thread became free since then, when the last executions there stopped
    (``stops`` are these times since the heartbeat, ascending), and began the task of highest priority that the worker had by then.
    A task that was assigned later may have a higher priority, but waits for the next thread.
    """
    seen_us = heartbeat_us(worker)
    reported = reported_tasks(worker)
    started = {task: seen_us - int(1e6 * reported[task]) for task in tasks if task in reported}
    others = deque(sorted((task for task in tasks if task not in started), key=lambda task: assigned_us[task.key]))
    free = min(len(others), max(0, int(getattr(worker, "nthreads", 0)) - len(started)))
    there: list[tuple[tuple[Any, ...], int, Any]] = []
    for since in [seen_us] * max(0, free - len(stops)) + list(stops)[len(stops) - min(free, len(stops)) :]:
        while others and (assigned_us[others[0].key] <= since or not there):
            task = others.popleft()
            # The number decides between equal priorities: tasks cannot be compared.
            heapq.heappush(there, (_priority(task), len(others), task))
        started[heapq.heappop(there)[2]] = since
    return {task.key: start for task, start in started.items()}


def executing_now(workers: Mapping[str, Any]) -> dict[Any, tuple[str, int]]:
    """Return the tasks in the last heartbeats of all workers, with worker and start in microseconds."""
    return {
        task.key: (address, heartbeat_us(worker) - int(1e6 * seconds))
        for address, worker in workers.items()
        for task, seconds in reported_tasks(worker).items()
    }


def begun_since(workers: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the tasks that workers may have begun since their last heartbeats: as many as they have threads, in Dask's order."""
    for worker in workers.values():
        tasks = list(islice(getattr(worker, "processing", ()), MAX_ASSIGNED))
        yield from (task.key for task in heapq.nsmallest(int(getattr(worker, "nthreads", 0)), tasks, key=_priority))


def reported_tasks(worker: Any) -> Mapping[Any, float]:
    """Return the tasks in the last heartbeat of a worker, with their ages in seconds."""
    executing = getattr(worker, "executing", None)
    return executing if isinstance(executing, dict) else {}


def heartbeat_us(worker: Any) -> int:
    """Return when a worker sent its last heartbeat."""
    return int(1e6 * float(getattr(worker, "last_seen", 0.0) or 0.0))


def _priority(task: Any) -> tuple[Any, ...]:
    return tuple(getattr(task, "priority", None) or ())


#: Seconds a failure waits for its cause.
CAUSE_WAIT_S = 1.5
#: Full tracebacks kept per fingerprint, and fingerprints that keep any.
MAX_TEXTS_PER_FINGERPRINT = 3
MAX_FINGERPRINTS = 500
#: Failures per flush with a row of their own; the rest are folded.
MAX_ROWS_PER_FLUSH = 1_000
#: Causes kept per key: a task that is retried fails several times under one key.
MAX_CAUSES_PER_KEY = 20
MESSAGE_LIMIT = 2_000
TRACEBACK_LIMIT = 20_000


@dataclass(frozen=True)
class Failure:
    """One failed execution, as the scheduler saw it."""

    time_us: int
    key: str
    group: str
    prefix: str
    span: str
    computation: str
    worker: str
    exception_text: str
    traceback_text: str
    will_retry: bool
    blamed_key: str = ""
    #: The key as the worker's agent reports it, if ``key`` was replaced for privacy.
    real_key: str = ""


@dataclass
class Folded:
    """Similar failures that share a row."""

    first: Failure
    count: int = 1


class Failures:
    """Holds failures until their cause arrives, then makes rows of them."""

    def __init__(
        self,
        scrubber: Scrubber,
        add_lazy: Callable[[str, Callable[[], dict[str, Any]]], None],
        *,
        texts: bool,
        aliases: Aliases = PLAIN,
    ) -> None:
        self.scrubber = scrubber
        self.aliases = aliases
        self.add_lazy = add_lazy
        self.texts = texts
        self._waiting: list[Failure] = []
        # Causes by worker and key, in two generations: causes that match no failure for two periods are dropped.
        self._causes: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._older: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._rotated_us = 0
        #: Texts kept so far, by fingerprint.
        self._kept: dict[str, int] = {}
        self._folded: dict[tuple[str, str, bool], Folded] = {}

    def add(self, failure: Failure) -> None:
        if len(self._waiting) < MAX_ROWS_PER_FLUSH:
            self._waiting.append(failure)
        else:
            self._fold(failure)

    def add_cause(self, worker: str, cause: dict[str, Any]) -> None:
        """Keep a cause that a worker's agent reports: ``key``, types, messages, fingerprint, traceback of the whole chain."""
        if len(self._causes) < 4 * MAX_ROWS_PER_FLUSH:
            causes = self._causes.setdefault((worker, str(cause.get("key", ""))), [])
            if len(causes) < MAX_CAUSES_PER_KEY:
                causes.append(cause)

    def flush_ready(self, now_us: int, *, everything: bool = False) -> None:
        """Make rows of the failures whose cause has arrived or is overdue; with ``everything``, of all failures."""
        still = []
        for failure in self._waiting:
            cause = self._cause_of(failure)
            is_recent = now_us - failure.time_us < CAUSE_WAIT_S * 1e6
            if cause is None and is_recent and not everything and not failure.blamed_key:
                still.append(failure)
            else:
                self.add_lazy("exceptions", partial(self._row, failure, cause, 1))
        for folded in self._folded.values():
            self.add_lazy("exceptions", partial(self._row, folded.first, None, folded.count))
        self._waiting, self._folded = still, {}
        if now_us - self._rotated_us >= CAUSE_WAIT_S * 1e6:
            self._older, self._causes, self._rotated_us = self._causes, {}, now_us

    def _fold(self, failure: Failure) -> None:
        """Count it in a row with the same text; with too many distinct texts, the same type; with too many types, any failure."""
        text, retry = failure.exception_text, failure.will_retry
        group = (failure.prefix, text[:200], retry)
        if group not in self._folded and len(self._folded) >= MAX_FINGERPRINTS:
            group = (failure.prefix, text.partition("(")[0][:100] + "(", retry)
        if group not in self._folded and len(self._folded) >= 2 * MAX_FINGERPRINTS:
            group = ("", "", retry)
        if group in self._folded:
            self._folded[group].count += 1
        else:
            self._folded[group] = Folded(failure)

    def _cause_of(self, failure: Failure) -> dict[str, Any] | None:
        identity = (failure.worker, failure.real_key or failure.key)
        for causes in (self._older, self._causes):
            found = causes.get(identity)
            if found:
                cause = found.pop(0)
                if not found:
                    del causes[identity]
                return cause
        return None

    def _row(self, failure: Failure, known: dict[str, Any] | None, count: int) -> dict[str, Any]:
        """Return the row of a failure. Runs off the event loop."""
        # Cut to twice the final length: a secret cut in half at that point is not in the final text.
        exception_text = bounded(failure.exception_text, 2 * MESSAGE_LIMIT + 8_000)
        traceback_text = bounded(failure.traceback_text, 2 * TRACEBACK_LIMIT)
        outer = from_text(exception_text, traceback_text)
        cause = known or {}
        fingerprint = str(cause.get("fingerprint") or outer.fingerprint)
        traceback = str(cause.get("traceback") or traceback_text)
        return {
            "time_us": failure.time_us,
            "key": failure.key,
            "group": failure.group,
            "prefix": failure.prefix,
            "span": failure.span,
            "computation": failure.computation,
            "worker": failure.worker,
            "type": str(cause.get("type") or outer.type),
            "message": self._text(str(cause.get("message") or outer.message), MESSAGE_LIMIT),
            "traceback": self._text(traceback, TRACEBACK_LIMIT) if self._wants_text(fingerprint) else "",
            "cause_type": str(cause.get("cause_type") or outer.type),
            "cause_message": self._text(str(cause.get("cause_message") or outer.message), MESSAGE_LIMIT),
            "fingerprint": fingerprint,
            "will_retry": int(failure.will_retry),
            "blamed_key": failure.blamed_key,
            "count": count,
        }

    def _text(self, text: str, limit: int) -> str:
        return bounded(self.scrubber.scrub(without_arguments(text, self.aliases)), limit) if self.texts else ""

    def _wants_text(self, fingerprint: str) -> bool:
        kept = self._kept.get(fingerprint, 0)
        if kept >= MAX_TEXTS_PER_FINGERPRINT or (not kept and len(self._kept) >= MAX_FINGERPRINTS):
            return False
        self._kept[fingerprint] = kept + 1
        return True


def exception_text(payload: Any) -> str:
    """Return type and message of an exception that the scheduler made and pickled."""
    if isinstance(payload, (bytes, bytearray)):
        try:
            error = _ExceptionUnpickler(io.BytesIO(payload)).load()
            return f"{type(error).__name__}: {error}"
        except Exception:  # noqa: BLE001 (the scheduler did not make this payload)
            return "Exception: of an unknown type"
    return f"{type(payload).__name__}('reported by the scheduler without a text')"


class _ExceptionUnpickler(pickle.Unpickler):
    """Loads exceptions made by the scheduler, and refuses anything a worker could have put in their place."""

    #: The parts of a WorkerState, which a KilledWorker contains, and the functions by which distributed pickles exceptions:
    #: these instantiate the class they are given, which is checked here as well.
    SAFE = frozenset(
        (
            ("builtins", "int"),
            ("builtins", "float"),
            ("builtins", "set"),
            ("collections", "deque"),
            ("collections", "defaultdict"),
            ("collections", "OrderedDict"),
            ("distributed.scheduler", "WorkerState"),
            ("distributed.core", "Status"),
            ("tblib.pickling_support", "unpickle_exception"),
            ("tblib.pickling_support", "unpickle_exception_with_attrs"),
        )
    )

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name) if module.partition(".")[0] in ("distributed", "builtins") else None
        if isinstance(found, type) and issubclass(found, Exception):
            return found
        if (module, name) in self.SAFE:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not an exception")

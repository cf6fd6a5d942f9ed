"""Record failed executions: count all of them, but keep the texts of a few.

Dask reports the outer exception only. The worker's agent knows the innermost cause and reports it separately, so a failure
waits up to 1.5 s for its cause before it becomes a row. A million failures of one error group must not become a million
tracebacks: the first few of a fingerprint keep their text, and above a limit per flush, repeats are folded into one row with
a count.

Fingerprints and scrubbed texts take 0.1 ms per failure, so they are made when the row is encoded, off the event loop.

Exceptions that the scheduler made itself arrive pickled; ``exception_text`` reads them with an unpickler that loads nothing else.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..aliases import PLAIN, Aliases
from ..arguments import without_arguments
from ..fingerprint import from_text
from ..privacy import Scrubber, bounded

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

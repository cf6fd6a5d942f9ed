"""Failed executions: counted exactly, texts kept sparingly.

Dask ships the outer exception only. The agent on the worker knows the innermost cause and reports it separately, so a failure
waits a moment for its cause before it becomes a row. A million failures of one kind must not become a million tracebacks:
the first few of a fingerprint keep their text, and beyond a bound per flush repeats are folded into a row with a count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .fingerprint import from_text
from .privacy import Scrubber, bounded

#: How long a failure waits for its cause, seconds.
PATIENCE = 1.5
#: Full tracebacks kept per fingerprint, and in all.
TEXTS_PER_FINGERPRINT = 3
FINGERPRINTS = 500
#: Single rows per flush; the rest is folded.
ROWS_PER_FLUSH = 1_000
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
    count: int = 1


class Failures:
    """Holds failures until their cause is known, then makes rows of them."""

    def __init__(self, scrubber: Scrubber, add: Callable[..., None], *, texts: bool) -> None:
        self.scrubber = scrubber
        self.add = add
        self.texts = texts
        self.total = 0
        self._waiting: list[Failure] = []
        self._causes: dict[tuple[str, str], dict[str, Any]] = {}
        self._kept: dict[str, int] = {}
        self._folded: dict[tuple[str, str, bool], Failure] = {}

    def failed(self, failure: Failure) -> None:
        self.total += 1
        if len(self._waiting) < ROWS_PER_FLUSH:
            self._waiting.append(failure)
            return
        identity = (failure.prefix, failure.exception_text[:200], failure.will_retry)
        before = self._folded.get(identity)
        if before is not None:
            self._folded[identity] = replace(before, count=before.count + 1)
        elif len(self._folded) < FINGERPRINTS:
            self._folded[identity] = failure

    def cause(self, worker: str, cause: dict[str, Any]) -> None:
        """What a worker's agent knows of a failure: ``key``, types, messages, fingerprint, the whole chain's traceback."""
        if len(self._causes) < 4 * ROWS_PER_FLUSH:
            self._causes[worker, str(cause.get("key", ""))] = cause

    def ripen(self, now_us: int, *, everything: bool = False) -> None:
        """Make rows of the failures whose cause has come or is not coming any more."""
        still = []
        for failure in self._waiting:
            cause = self._causes.pop((failure.worker, failure.key), None)
            if (
                cause is None
                and not everything
                and now_us - failure.time_us < PATIENCE * 1e6
                and not failure.blamed_key
            ):
                still.append(failure)
            else:
                self._row(failure, cause)
        for failure in self._folded.values():
            self._row(failure, None)
        self._waiting, self._folded = still, {}
        if not still:
            self._causes.clear()

    def _row(self, failure: Failure, known: dict[str, Any] | None) -> None:
        outer = from_text(failure.exception_text, failure.traceback_text)
        cause = known or {}
        fingerprint = str(cause.get("fingerprint") or outer.fingerprint)
        traceback = str(cause.get("traceback") or failure.traceback_text)
        self.add(
            "exceptions",
            time_us=failure.time_us,
            key=failure.key,
            group=failure.group,
            prefix=failure.prefix,
            span=failure.span,
            computation=failure.computation,
            worker=failure.worker,
            type=str(cause.get("type") or outer.type),
            message=self._text(str(cause.get("message") or outer.message), MESSAGE_LIMIT),
            traceback=self._text(traceback, TRACEBACK_LIMIT) if self._wants_text(fingerprint) else "",
            cause_type=str(cause.get("cause_type") or outer.type),
            cause_message=self._text(str(cause.get("cause_message") or outer.message), MESSAGE_LIMIT),
            fingerprint=fingerprint,
            will_retry=int(failure.will_retry),
            blamed_key=failure.blamed_key,
            count=failure.count,
        )

    def _text(self, text: str, limit: int) -> str:
        return bounded(self.scrubber.scrub(text), limit) if self.texts else ""

    def _wants_text(self, fingerprint: str) -> bool:
        kept = self._kept.get(fingerprint, 0)
        if kept >= TEXTS_PER_FINGERPRINT or (not kept and len(self._kept) >= FINGERPRINTS):
            return False
        self._kept[fingerprint] = kept + 1
        return True

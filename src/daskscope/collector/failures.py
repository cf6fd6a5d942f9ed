"""Failed executions: counted exactly, texts kept sparingly.

Dask ships the outer exception only. The agent on the worker knows the innermost cause and reports it separately, so a failure
waits a moment for its cause before it becomes a row. A million failures of one kind must not become a million tracebacks:
the first few of a fingerprint keep their text, and beyond a bound per flush repeats are folded into a row with a count.

Fingerprints and masked texts take 0.1 ms a failure, so they are made when the row is encoded, off the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
#: A task that is retried fails several times under one key.
CAUSES_PER_KEY = 20
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
    #: The key as the worker's agent names it, where ``key`` is not to be shown.
    known_as: str = ""


@dataclass
class Folded:
    """Failures of one kind that share a row."""

    first: Failure
    count: int = 1


class Failures:
    """Holds failures until their cause is known, then makes rows of them."""

    def __init__(
        self, scrubber: Scrubber, later: Callable[[str, Callable[[], dict[str, Any]]], None], *, texts: bool
    ) -> None:
        self.scrubber = scrubber
        self.later = later
        self.texts = texts
        self._waiting: list[Failure] = []
        # Causes by worker and key, of this stretch of time and of the one before: what nobody asked for in two is given up.
        self._causes: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._older: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._turned_us = 0
        self._kept: dict[str, int] = {}
        self._folded: dict[tuple[str, str, bool], Folded] = {}

    def failed(self, failure: Failure) -> None:
        if len(self._waiting) < ROWS_PER_FLUSH:
            self._waiting.append(failure)
        else:
            self._fold(failure)

    def cause(self, worker: str, cause: dict[str, Any]) -> None:
        """What a worker's agent knows of a failure: ``key``, types, messages, fingerprint, the whole chain's traceback."""
        if len(self._causes) < 4 * ROWS_PER_FLUSH:
            of_this_key = self._causes.setdefault((worker, str(cause.get("key", ""))), [])
            if len(of_this_key) < CAUSES_PER_KEY:
                of_this_key.append(cause)

    def ripen(self, now_us: int, *, everything: bool = False) -> None:
        """Make rows of the failures whose cause has come or is not coming any more."""
        still = []
        for failure in self._waiting:
            cause = self._cause_of(failure)
            young = now_us - failure.time_us < PATIENCE * 1e6
            if cause is None and young and not everything and not failure.blamed_key:
                still.append(failure)
            else:
                self.later("exceptions", partial(self._row, failure, cause, 1))
        for folded in self._folded.values():
            self.later("exceptions", partial(self._row, folded.first, None, folded.count))
        self._waiting, self._folded = still, {}
        if now_us - self._turned_us >= PATIENCE * 1e6:
            self._older, self._causes, self._turned_us = self._causes, {}, now_us

    def _fold(self, failure: Failure) -> None:
        """Count it with one of its kind: of the same text, or where texts are too many the same type, or just anything."""
        text, retry = failure.exception_text, failure.will_retry
        kind = (failure.prefix, text[:200], retry)
        if kind not in self._folded and len(self._folded) >= FINGERPRINTS:
            kind = (failure.prefix, text.partition("(")[0][:100] + "(", retry)
        if kind not in self._folded and len(self._folded) >= 2 * FINGERPRINTS:
            kind = ("", "", retry)
        if kind in self._folded:
            self._folded[kind].count += 1
        else:
            self._folded[kind] = Folded(failure)

    def _cause_of(self, failure: Failure) -> dict[str, Any] | None:
        identity = (failure.worker, failure.known_as or failure.key)
        for causes in (self._older, self._causes):
            found = causes.get(identity)
            if found:
                cause = found.pop(0)
                if not found:
                    del causes[identity]
                return cause
        return None

    def _row(self, failure: Failure, known: dict[str, Any] | None, count: int) -> dict[str, Any]:
        """Called off the event loop."""
        # Cut to twice of what is kept: a secret that is cut in half there is not shown.
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
        return bounded(self.scrubber.scrub(text), limit) if self.texts else ""

    def _wants_text(self, fingerprint: str) -> bool:
        kept = self._kept.get(fingerprint, 0)
        if kept >= TEXTS_PER_FINGERPRINT or (not kept and len(self._kept) >= FINGERPRINTS):
            return False
        self._kept[fingerprint] = kept + 1
        return True

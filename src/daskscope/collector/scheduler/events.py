"""Reduce events to rows: kinds, counts and short texts; never pickles, never whole sets of keys.

Windows and metrics are events, too, with a topic that daskscope reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from ..aliases import PLAIN, Aliases
from ..privacy import MASK, Scrubber, bounded
from ..settings import Settings

#: Events to leave out: they arrive once per topic, or another table has the same data.
IGNORED = frozenset(("add-client", "remove-client", "run-function", "get-data"))
DETAIL_LIMIT = 4_000
TEXT_LIMIT = 1_000
UNREADABLE = "<unreadable>"
#: Fields of Dask's own failure events that quote the exception.
EXCEPTION_FIELDS = frozenset(("exception", "traceback", "exception_text", "traceback_text", "error_message", "text"))

#: Fields of Dask's own events that name a task.
KEY_FIELDS = frozenset(("key", "cause", "task"))

METRIC_TOPIC = "daskscope-metric"
WINDOW_TOPIC = "daskscope-window"
#: Open windows; beyond this the oldest is forgotten.
MAX_WINDOWS = 1_000
#: Kinds of windows that daskscope itself opens; user code may log any other.
WINDOW_KINDS = ("record", "report", "memory", "benchmark")


def event_row(
    topic: Any, message: Any, scrubber: Scrubber, *, aliases: Aliases = PLAIN, exception_text: bool = True
) -> dict[str, Any] | None:
    """Return an event as a row of ``events`` without its time, or None for an ignored event. Accepts any value, never raises.

    If keys are not recorded, only the size of a collection is kept; without ``exception_text``, no field that quotes an exception.
    """
    simplifier = Simplifier(scrubber, members=aliases.keys)
    topic = simplifier.text(topic)[:100]
    try:
        return _row(topic, message, simplifier, aliases=aliases, exception_text=exception_text)
    except Exception:  # noqa: BLE001 (any code may log anything, including objects that raise when read)
        return {"topic": topic, "kind": topic, "worker": "", "detail": simplifier.json([("message", UNREADABLE)])}


def metric_row(
    message: Mapping[Any, Any], scrubber: Scrubber, *, aliases: Aliases, names: bool
) -> dict[str, Any] | None:
    """Return a user's metric as a row of ``metrics`` without its time and computation.

    None if its value is not a number: any code may log one.
    """
    value, simplifier = message.get("value"), Simplifier(scrubber)
    if type(value) not in (int, float, bool):
        return None
    row: dict[str, Any] = {"value": _to_float(value), "labels": simplifier.labels(message.get("labels"), names=names)}
    for name, length in (("name", 200), ("unit", 50), ("span", 200), ("window", 200)):
        row[name] = aliases.name(simplifier.text(message.get(name, "")))[:length]
    return row


def _to_float(value: Any) -> float:
    """Return a number that code logged as a float; an integer that is too large is infinite."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def status_row(worker: str, message: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the row of a worker that was paused or resumed; samples come every two seconds and miss when."""
    states = {name: str(message.get(name, ""))[:50] for name in ("prev-status", "status")}
    return {"topic": "worker", "kind": "worker-status-change", "worker": worker, "detail": json.dumps(states)}


def _row(
    topic: str, message: Any, simplifier: Simplifier, *, aliases: Aliases, exception_text: bool
) -> dict[str, Any] | None:
    if not isinstance(message, Mapping):
        return {"topic": topic, "kind": topic, "worker": "", "detail": simplifier.json([("message", message)])}
    items = _items(message, 50)
    fields = {name: value for name, value in items if isinstance(name, str)}
    action = fields.get("action")
    kind = simplifier.text(action)[:100] if isinstance(action, str) and action else topic
    if kind in IGNORED:
        return None
    worker = fields.get("worker")
    rest = [(name, value) for name, value in items if not isinstance(name, str) or name not in ("action", "worker")]
    if not exception_text:
        rest = [(name, value) for name, value in rest if name not in EXCEPTION_FIELDS]
    if not aliases.keys:
        key = fields.get("key")
        rest = [(name, _without_key(value, key, aliases)) for name, value in rest if name not in KEY_FIELDS]
    return {
        "topic": topic,
        "kind": kind,
        "worker": worker[:200] if isinstance(worker, str) else "",
        "detail": simplifier.json(rest),
    }


def _without_key(value: Any, key: Any, aliases: Aliases) -> Any:
    return aliases.hide_quoted(aliases.hide(value, key or "")) if type(value) is str else value


class Simplifier:
    """Reduces values to small JSON values: a collection becomes its size and, with ``members``, its first few elements."""

    def __init__(self, scrubber: Scrubber, *, members: bool = True) -> None:
        self.scrubber = scrubber
        self.members = members

    def json(self, items: Iterable[tuple[Any, Any]], limit: int = DETAIL_LIMIT) -> str:
        """Return a JSON object of at most ``limit`` characters."""
        text = json.dumps({self.text(name)[:100]: self.field(name, value) for name, value in items})
        return text if len(text) <= limit else json.dumps({"cut": bounded(text, limit // 2)})

    def labels(self, labels: Any, *, names: bool) -> str:
        """Return the labels of a window or a metric; none if names are not recorded."""
        return self.json(labels.items(), 2_000) if type(labels) is dict and names else "{}"

    def text(self, value: Any) -> str:
        try:
            text = value if type(value) is str else str(value)
        except Exception:  # noqa: BLE001 (the ``__str__`` of a user's object may raise anything)
            text = f"<{type(value).__name__}>"
        # Cut before scrubbing to bound the work, and after it to the final length.
        return bounded(self.scrubber.scrub(bounded(text, 4 * TEXT_LIMIT)), TEXT_LIMIT)

    def field(self, name: Any, value: Any, depth: int = 0) -> Any:
        """Return a value; it is masked if its name suggests a secret."""
        if type(name) is str and type(value) is str and self.scrubber.scrub_value(name[:100], value[:100]) == MASK:
            return MASK
        return self.value(value, depth)

    def value(self, value: Any, depth: int = 0) -> Any:
        if value is None or type(value) is bool:
            return value
        if type(value) is int:
            return value if value.bit_length() <= 64 else f"<int of {value.bit_length()} bits>"
        if type(value) is float:
            return value if value - value == 0 else str(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"<{len(value)} bytes>"
        if depth < 3 and isinstance(value, dict) and self.members:
            return {self.text(name)[:100]: self.field(name, item, depth + 1) for name, item in _items(value, 20)}
        if depth < 3 and isinstance(value, (list, tuple, set, frozenset, dict)):
            if not self.members:
                return {"count": len(value)}
            first = [self.value(item, depth + 1) for item in islice(value, 5)]
            return first if len(value) <= 5 else {"count": len(value), "first": first}
        return f"<{type(value).__name__}>"


def _items(mapping: Mapping[Any, Any], limit: int) -> list[tuple[Any, Any]]:
    """Return the first items; none if a user's own mapping type raises."""
    try:
        return [(name, value) for name, value in islice(mapping.items(), limit)]
    except Exception:  # noqa: BLE001 (a user's mapping may raise anything)
        return []


class Windows:
    """Open named windows: a ``record()`` block, a report, a benchmark, or what user code logs."""

    def __init__(self, add: Callable[..., None], scrubber: Scrubber, settings: Settings) -> None:
        self._add = add
        self._simplifier = Simplifier(scrubber)
        self._settings = settings
        self._open: dict[str, dict[str, Any]] = {}

    def record(self, now_us: int, message: Mapping[str, Any]) -> None:
        """Record that a window begins or ends: ``window`` (its ID), ``done`` at its end, and optional texts and labels."""
        names, id_ = self._settings.names, self._simplifier.text(message.get("window", ""))
        row = self._open.setdefault(id_, {"window": id_, "start_us": now_us, "status": "open"})
        if len(self._open) > MAX_WINDOWS:
            self._open.pop(next(iter(self._open)))
        for name in ("kind", "name", "error"):
            if name in message:
                row[name] = self._simplifier.text(message[name])
        if not names:
            row["name"] = ""
            row["kind"] = row["kind"] if row.get("kind") in WINDOW_KINDS else ""
        if "labels" in message:
            row["labels"] = self._simplifier.labels(message["labels"], names=names)
        if not self._settings.exception_text and "error" in row:
            # Keep its type only.
            row["error"] = row["error"].partition(":")[0]
        if message.get("done"):
            row.update(stop_us=now_us, status="error" if row.get("error") else "ok")
            self._open.pop(id_, None)
        self._add("windows", seen_us=now_us, **row)

    def repeat(self, now_us: int) -> None:
        """Write the open windows again, for a reader that joins now."""
        for row in self._open.values():
            self._add("windows", seen_us=now_us, **row)

"""Events worth keeping, reduced to what can be stored: kinds, counts, short texts; never pickles, never whole key sets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from .privacy import Scrubber, bounded

#: Events that arrive once per topic or say nothing that another table does not say better.
DULL = frozenset(("add-client", "remove-client", "run-function", "get-data"))
DETAIL_LIMIT = 4_000
TEXT_LIMIT = 1_000
UNREADABLE = "<cannot be read>"
#: Fields of Dask's own failure events that quote the exception.
EXCEPTION_FIELDS = frozenset(("exception", "traceback", "exception_text", "traceback_text", "error_message", "text"))


def event_row(
    topic: Any, message: Any, scrubber: Scrubber, *, keys: bool = True, exception_text: bool = True
) -> dict[str, Any] | None:
    """An event as a row of ``events`` without its time, or None where it is not worth one. Takes anything, never raises.

    Without ``keys``, of a collection only its size is kept; without ``exception_text``, nothing that quotes an exception.
    """
    plain = Plain(scrubber, members=keys)
    topic = plain.text(topic)[:100]
    try:
        return _row(topic, message, plain, keys=keys, exception_text=exception_text)
    except Exception:  # noqa: BLE001 (anybody may log anything, also objects that raise when looked at)
        return {"topic": topic, "kind": topic, "worker": "", "detail": plain.json([("message", UNREADABLE)])}


def _row(topic: str, message: Any, plain: Plain, *, keys: bool, exception_text: bool) -> dict[str, Any] | None:
    if not isinstance(message, Mapping):
        return {"topic": topic, "kind": topic, "worker": "", "detail": plain.json([("message", message)])}
    items = _items(message, 50)
    fields = {name: value for name, value in items if isinstance(name, str)}
    action = fields.get("action")
    kind = plain.text(action)[:100] if isinstance(action, str) and action else topic
    if kind in DULL:
        return None
    worker = fields.get("worker")
    rest = [(name, value) for name, value in items if not isinstance(name, str) or name not in ("action", "worker")]
    if not exception_text:
        rest = [(name, value) for name, value in rest if name not in EXCEPTION_FIELDS]
    if not keys:
        rest = [(name, value) for name, value in rest if name != "key"]
    return {
        "topic": topic,
        "kind": kind,
        "worker": worker[:200] if isinstance(worker, str) else "",
        "detail": plain.json(rest),
    }


class Plain:
    """Makes values small and ready for JSON: collections become their size and, with ``members``, their first few."""

    def __init__(self, scrubber: Scrubber, *, members: bool = True) -> None:
        self.scrubber = scrubber
        self.members = members

    def json(self, items: Iterable[tuple[Any, Any]], limit: int = DETAIL_LIMIT) -> str:
        """A JSON object of at most ``limit`` characters."""
        text = json.dumps({self.text(name)[:100]: self.value(value) for name, value in items})
        return text if len(text) <= limit else json.dumps({"cut": bounded(text, limit // 2)})

    def text(self, value: Any) -> str:
        try:
            text = value if type(value) is str else str(value)
        except Exception:  # noqa: BLE001 (a user's object may do anything here)
            text = f"<{type(value).__name__}>"
        # Cut before scrubbing to bound the work, and after it to the size asked for.
        return bounded(self.scrubber.scrub(bounded(text, 4 * TEXT_LIMIT)), TEXT_LIMIT)

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
            return {self.text(name)[:100]: self.value(item, depth + 1) for name, item in _items(value, 20)}
        if depth < 3 and isinstance(value, (list, tuple, set, frozenset, dict)):
            if not self.members:
                return {"count": len(value)}
            first = [self.value(item, depth + 1) for item in islice(value, 5)]
            return first if len(value) <= 5 else {"count": len(value), "first": first}
        return f"<{type(value).__name__}>"


def _items(mapping: Mapping[Any, Any], limit: int) -> list[tuple[Any, Any]]:
    """The first items; none where a mapping of the user's own making does not give them."""
    try:
        return [(name, value) for name, value in islice(mapping.items(), limit)]
    except Exception:  # noqa: BLE001 (see above)
        return []

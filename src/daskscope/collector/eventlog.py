"""Events worth keeping, reduced to what can be stored: kinds, counts, short texts; never pickles, never whole key sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .privacy import Scrubber, bounded

#: Events that arrive once per topic or say nothing that another table does not say better.
DULL = frozenset(("add-client", "remove-client", "run-function", "get-data"))
DETAIL_LIMIT = 4_000
TEXT_LIMIT = 1_000


def event_row(topic: str, message: Any, scrubber: Scrubber) -> dict[str, Any] | None:
    """An event as a row of ``events`` without its time, or None where it is not worth one."""
    if not isinstance(message, Mapping):
        return {"topic": topic, "kind": topic, "worker": "", "detail": _detail({"message": message}, scrubber)}
    kind = str(message.get("action") or topic)
    if kind in DULL:
        return None
    worker = message.get("worker")
    rest = {str(name): value for name, value in message.items() if name not in ("action", "worker")}
    return {
        "topic": topic,
        "kind": kind[:100],
        "worker": worker if isinstance(worker, str) else "",
        "detail": _detail(rest, scrubber),
    }


def _detail(values: Mapping[str, Any], scrubber: Scrubber) -> str:
    plain = {name[:100]: _plain(value, scrubber, 0) for name, value in list(values.items())[:50]}
    text = json.dumps(plain)
    return text if len(text) <= DETAIL_LIMIT else json.dumps({"cut": bounded(text, DETAIL_LIMIT // 2)})


def _plain(value: Any, scrubber: Scrubber, depth: int) -> Any:
    """JSON-ready and small: collections become their size and their first few members."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return bounded(scrubber.scrub(value), TEXT_LIMIT)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value)} bytes>"
    if depth >= 3:
        return f"<{type(value).__name__}>"
    if isinstance(value, Mapping):
        return {str(k)[:100]: _plain(v, scrubber, depth + 1) for k, v in list(value.items())[:20]}
    if isinstance(value, (list, tuple, set, frozenset)):
        first = [_plain(item, scrubber, depth + 1) for item in list(value)[:5]]
        return first if len(value) <= 5 else {"count": len(value), "first": first}
    return f"<{type(value).__name__}>"

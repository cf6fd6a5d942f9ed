"""Fine performance metrics as deltas: what the workers spent since the last look, by context, span, prefix, activity, unit.

Workers send their digests with the heartbeat. Those that belong to a span arrive at the spans extension with the span's id;
everything is also added up in ``Scheduler.cumulative_worker_metrics``. The first are taken where they arrive, the rest as
differences of the totals, so every second and byte is recorded once and the sums equal Dask's own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

Key = tuple[Hashable, ...]


class Activities:
    """Accumulates deltas until the next round."""

    def __init__(self, totals: Mapping[Any, float], *, spans: bool) -> None:
        self.totals = totals
        self.spans = spans
        self._seen: dict[Any, float] = dict(totals)
        self._spanned: dict[Key, float] = {}
        #: Contexts that reach us through the spans extension and must not be taken from the totals again.
        self._contexts: set[Hashable] = {"execute", "p2p"} if spans else set()

    def heartbeat(self, data: Mapping[Key, float]) -> None:
        """What one heartbeat attributes to spans: ``{(context, span, *labels, unit): value}``."""
        spanned, contexts = self._spanned, self._contexts
        for key, value in data.items():
            spanned[key] = spanned.get(key, 0) + value
            contexts.add(key[0])

    def round(self, time_us: int, add: Callable[..., None]) -> Iterator[None]:
        """Emit a row for everything that moved, a piece at a time: there may be a million labels.

        What arrives meanwhile waits for the next round.
        """
        for key in list(self._spanned):
            value = self._spanned.pop(key, 0)
            context, span, *labels = (*key, "") if len(key) < 2 else key
            _row(add, time_us, context, str(span), labels, value)
            yield
        for key in list(self.totals):
            self._emit_total(key, time_us, add)
            yield

    def _emit_total(self, key: Any, time_us: int, add: Callable[..., None]) -> None:
        labels: Key = key if isinstance(key, tuple) and key else (key, "total", _unit(key))
        if labels[0] in self._contexts:
            return
        value = self.totals.get(key, 0)
        delta = value - self._seen.get(key, 0)
        if delta:
            self._seen[key] = value
            _row(add, time_us, labels[0], "", labels[1:], delta)


def _row(
    add: Callable[..., None], time_us: int, context: Hashable, span: str, labels: Sequence[Hashable], value: float
) -> None:
    *before, unit = labels or ("",)
    prefix, activity = ("", before[0] if before else "") if len(before) < 2 else (before[0], before[1])
    if len(before) > 2:
        activity = "/".join(map(_text, before[1:]))
    add(
        "activities",
        time_us=time_us,
        context=_text(context),
        span=span,
        prefix=_text(prefix),
        activity=_text(activity),
        unit=_text(unit),
        value=float(value),
    )


def _text(label: Hashable) -> str:
    """Any label, also one of the user's whose ``str`` raises."""
    try:
        return str(label)[:500]
    except Exception:  # noqa: BLE001 (a label is whatever the user made it)
        return f"<{type(label).__name__}>"


def _unit(name: Hashable) -> str:
    """The unit of one of Dask's plain digests, which do not say: ``tick-duration``, ``latency``, ``transfer-bandwidth`` …"""
    text = str(name)
    return "seconds" if text == "latency" or text.endswith("-duration") else ""

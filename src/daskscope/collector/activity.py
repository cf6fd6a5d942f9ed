"""Fine performance metrics as deltas: what the workers spent since the last look, by context, span, prefix, activity, unit.

Workers send their digests with the heartbeat. Those that belong to a span arrive at the spans extension with the span's id;
everything is also added up in ``Scheduler.cumulative_worker_metrics``. The first are taken where they arrive, the rest as
differences of the totals, so every second and byte is recorded once and the sums equal Dask's own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

Key = tuple[Hashable, ...]


class Activities:
    """Accumulates deltas until the next flush."""

    def __init__(self, totals: Mapping[Any, float], *, spans: bool) -> None:
        self.totals = totals
        self.spans = spans
        self._seen: dict[Any, float] = dict(totals)
        self._spanned: dict[Key, float] = {}
        #: Contexts that reach us through the spans extension and must not be taken from the totals again.
        self._contexts: set[Hashable] = {"execute", "p2p"} if spans else set()

    def heartbeat(self, data: Mapping[Key, float]) -> None:
        """What one heartbeat attributes to spans: ``{(context, span, *labels, unit): value}``."""
        spanned = self._spanned
        for key, value in data.items():
            spanned[key] = spanned.get(key, 0) + value

    def flush(self, time_us: int, add: Callable[..., None]) -> None:
        """Emit a row for everything that moved."""
        spanned, self._spanned = self._spanned, {}
        for (context, span, *labels), value in spanned.items():
            self._contexts.add(context)
            _row(add, time_us, context, str(span), labels, value)
        for key, value in list(self.totals.items()):
            if not isinstance(key, tuple):
                key_tuple: Key = (key, "total", "")
            elif key[0] in self._contexts:
                continue
            else:
                key_tuple = key
            delta = value - self._seen.get(key, 0)
            if delta:
                self._seen[key] = value
                _row(add, time_us, key_tuple[0], "", key_tuple[1:], delta)


def _row(
    add: Callable[..., None], time_us: int, context: Hashable, span: str, labels: Iterable[Hashable], value: float
) -> None:
    *before, unit = labels
    prefix, activity = ("", before[0] if before else "") if len(before) < 2 else (before[0], before[1])
    if len(before) > 2:
        activity = "/".join(map(str, before[1:]))
    add(
        "activities",
        time_us=time_us,
        context=str(context),
        span=span,
        prefix=str(prefix),
        activity=str(activity),
        unit=str(unit),
        value=float(value),
    )

"""Record Dask's fine performance metrics as deltas since the last round, by context, span, prefix, activity and unit.

Workers send their digests with the heartbeat. Digests of a span arrive at the spans extension with the span's ID; all digests
are also added up in ``Scheduler.cumulative_worker_metrics``. Metrics of spans are recorded as they arrive, the rest as differences
of the totals, so that every second and byte is recorded once and the sums equal Dask's own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from ..aliases import PLAIN, Aliases

Key = tuple[Hashable, ...]

#: Contexts, activities and units of Dask itself; user code may add any other with ``context_meter``.
DASK_LABELS = frozenset(
    (
        *(
            "",
            "execute",
            "p2p",
            "gather-dep",
            "get-data",
            "memory-monitor",
            "seconds",
            "bytes",
            "count",
            "total",
            "N/A",
        ),
        *("thread-cpu", "thread-noncpu", "executor", "serialize", "deserialize", "compress", "decompress", "offload"),
        *("disk-read", "disk-write", "memory-read", "memory-write", "network", "evict", "other", "failed", "cancelled"),
        *(
            "missing",
            "busy",
            "idle or other spans",
            "tick-duration",
            "latency",
            "transfer-bandwidth",
            "transfer-duration",
        ),
        *("compute-duration", "profile-duration", "heartbeat-duration", "gil_contention", "gil-contention"),
        *("foreground", "background", "background-comms", "background-disk", "buffering", "shards"),
    )
)


class Activities:
    """Accumulates deltas until the next round."""

    def __init__(self, totals: Mapping[Any, float], *, spans: bool, aliases: Aliases = PLAIN) -> None:
        self.totals = totals
        self.aliases = aliases
        self.spans = spans
        self._seen: dict[Any, float] = dict(totals)
        self._spanned: dict[Key, float] = {}
        #: Contexts that arrive through the spans extension and must not be counted from the totals again.
        self._contexts: set[Hashable] = {"execute", "p2p"} if spans else set()

    def add_heartbeat(self, data: Mapping[Key, float]) -> None:
        """Add one heartbeat's metrics of spans: ``{(context, span, *labels, unit): value}``."""
        spanned, contexts = self._spanned, self._contexts
        for key, value in data.items():
            spanned[key] = spanned.get(key, 0) + value
            contexts.add(key[0])

    def write_changes(self, time_us: int, add: Callable[..., None]) -> Iterator[None]:
        """Add a row for every metric that changed. Yields after each: there may be a million labels.

        Metrics that arrive during the round are written in the next one.
        """
        for key in list(self._spanned):
            value = self._spanned.pop(key, 0)
            context, span, *labels = (*key, "") if len(key) < 2 else key
            self._add_row(add, time_us, context, str(span), labels, value)
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
            self._add_row(add, time_us, labels[0], "", labels[1:], delta)

    def _add_row(
        self,
        add: Callable[..., None],
        time_us: int,
        context: Hashable,
        span: str,
        labels: Sequence[Hashable],
        value: float,
    ) -> None:
        *before, unit = labels or ("",)
        prefix, activity = ("", before[0] if before else "") if len(before) < 2 else (before[0], before[1])
        if len(before) > 2:
            activity = "/".join(map(_text, before[1:]))
        add(
            "activities",
            time_us=time_us,
            context=self._label(context),
            span=span,
            prefix=self.aliases.group(_text(prefix)) if context == "execute" else _text(prefix),
            activity=self._label(activity),
            unit=self._label(unit),
            value=float(value),
        )

    def _label(self, label: Hashable) -> str:
        """Return a label; an alias of one that Dask does not use itself, if names are not recorded."""
        text = _text(label)
        return text if self.aliases.names or text in DASK_LABELS else self.aliases.name(text)


def _text(label: Hashable) -> str:
    """Return any label as text, even a user's object whose ``str`` raises."""
    try:
        return str(label)[:500]
    except Exception:  # noqa: BLE001 (the ``__str__`` of a user's label may raise anything)
        return f"<{type(label).__name__}>"


def _unit(name: Hashable) -> str:
    """Return the unit of one of Dask's plain digests, which carry none: ``tick-duration``, ``latency``, ``transfer-bandwidth`` …"""
    text = str(name)
    return "seconds" if text == "latency" or text.endswith("-duration") else ""

"""The graph of task groups: how much each produced, what it mostly did, and what it needed."""

from __future__ import annotations

import json
from typing import Any

from daskscope.analysis.rollup import LARGEST
from daskscope.model.recording import Recording
from daskscope.report.schema import Category, Group

#: What Dask calls an action, and the part of thread time it belongs to.
ACTIONS: dict[str, Category] = {
    "compute": "cpu",
    "transfer": "transfer",
    "disk-read": "disk",
    "disk-write": "disk",
    "deserialize": "serialize",
}


def groups(recording: Recording) -> list[Group]:
    """Every task group in the order of its first task."""
    names = ("group", "prefix", "computation", "span", "start_us", "stop_us", "states", "durations_us", "nbytes")
    table = recording["groups"]
    rows = list(zip(*(table[name].tolist() for name in (*names, "dependencies")), strict=True))
    order = sorted(range(len(rows)), key=lambda i: (rows[i][4], rows[i][0]))
    # A name may occur in several computations; a group depends on the one of its own, else on the latest before it.
    position: dict[tuple[str, str], int] = {(rows[i][0], rows[i][2]): at for at, i in enumerate(order)}
    anywhere = {rows[i][0]: at for at, i in enumerate(order)}
    failed = _failed(recording)
    found: list[Group] = []
    for i in order:
        group, prefix, computation, span, start, stop, states, durations, nbytes, needs = rows[i]
        durations_us = {
            str(name): int(us)
            for name, us in _object(durations).items()
            if isinstance(us, (int, float)) and abs(us) <= LARGEST
        }
        counts = {name: n for name, n in _object(states).items() if isinstance(n, int) and abs(n) <= LARGEST}
        at = (position.get((name, computation), anywhere.get(name)) for name in needs)
        found.append(
            {
                "group": group,
                "prefix": prefix,
                "computation": computation,
                "span": span,
                "start_us": start,
                "stop_us": stop,
                "tasks": sum(counts.values()),
                "nbytes": nbytes,
                # Dask's own counter forgets a failure once its task is forgotten.
                "errors": max(failed.get((group, computation), 0), counts.get("erred", 0)),
                "durations_us": durations_us,
                "dominant": _dominant(durations_us),
                "dependencies": sorted({where for where in at if where is not None}),
            }
        )
    return found


def _failed(recording: Recording) -> dict[tuple[str, str], int]:
    """Failures for good, by group and computation; tasks that only depended on one are not meant."""
    names = ("group", "computation", "will_retry", "blamed_key", "count")
    rows = zip(*(recording["exceptions"][name].tolist() for name in names), strict=True)
    found: dict[tuple[str, str], int] = {}
    for group, computation, will_retry, blamed, count in rows:
        if not will_retry and not blamed:
            found[group, computation] = found.get((group, computation), 0) + count
    return found


def _dominant(durations_us: dict[str, int]) -> Category:
    action = max(durations_us, key=lambda name: durations_us[name], default="")
    return ACTIONS.get(action, "noncpu") if action else "idle"


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

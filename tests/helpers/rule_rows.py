"""Rows of a run of 100 s on two workers with two threads each, and the findings about it by rule."""

from __future__ import annotations

from typing import Any

from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts, Finding
from daskscope.insights.rules import findings
from daskscope.testing import make_recording

S = 1_000_000
T = 1_700_000_000 * S
CLUSTER = {"cluster": "c", "recording_us": T, "end_us": T + 100 * S}
WORKERS = [
    {"worker": name, "server_id": name, "nthreads": 2, "start_us": T, "memory_limit": 1_000, "name": name}
    for name in ("a", "b")
]


def task(start: float, stop: float, prefix: str = "add", **columns: Any) -> dict[str, Any]:
    row = {"worker": "a", "thread": 1, "start_us": T + round(start * S), "stop_us": T + round(stop * S), "status": "ok"}
    return {**row, "prefix": prefix, "computation": "c1", "key": f"{prefix}-{start}", **columns}


def by_rule(**tables: list[dict[str, Any]]) -> dict[str, Finding]:
    recording = make_recording({"clusters": [CLUSTER], "workers": WORKERS, **tables})
    return {finding.rule: finding for finding in findings(Facts.of(recording, *extent(recording)))}

"""A document does not depend on how many rows are processed at once."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from daskscope.analysis.columns import grouping, intervals
from daskscope.model import packed_texts
from daskscope.model.recording import Recording
from daskscope.report import key_templates
from daskscope.report.document import build
from daskscope.storage.runs import parquet
from daskscope.storage.runs.parquet import from_parquet, to_parquet
from daskscope.testing import make_recording

START, TASKS = 1_700_000_000_000_000, 150
STATUSES = ("ok", "ok", "ok", "error", "retried", "cancelled", "killed")


def varied() -> Recording:
    """Return a run with repeated keys, seceded and cancelled tasks, an actor, dependencies and workers that joined late."""
    rng = np.random.default_rng(5)

    def task(n: int) -> dict[str, Any]:
        start = START + int(rng.integers(0, 60_000_000))
        begins = [start - int(us) for us in rng.integers(1, 400_000, n % 3)]
        return {
            "id": n,
            "key": f"('x-{n % 4}', {n % 120})",
            "group": f"x-{n % 4}",
            "prefix": f"x-{n % 4}",
            "worker": f"tcp://{n % 5}",
            "thread": 1 + n % 2,
            "computation": f"c-{n % 2}",
            "span": ("", "s")[n % 2],
            "status": STATUSES[n % 7],
            "type": "int",
            "queued_us": start - 900_000 if n % 4 == 0 else 0,
            "assigned_us": start - 500_000 if n % 9 else 0,
            "start_us": start,
            "stop_us": start + int(rng.integers(0, 5_000_000)),
            "nbytes": int(rng.integers(0, 2**40)),
            "interval_action": ["transfer", "disk-read"][: n % 3],
            "interval_start_us": begins,
            "interval_stop_us": [us + 200_000 for us in begins],
            "interval_source": ["", ""][: n % 3],
        }

    times = sorted(START + int(us) for us in rng.integers(0, 60_000_000, 80))
    return make_recording(
        {
            "clusters": [{"cluster": "c", "recording_us": START, "start_us": START, "end_us": START + 66_000_000}],
            "workers": [
                {"worker": f"tcp://{n}", "start_us": START + n * 10**6, "nthreads": 2, "server_id": str(n)}
                for n in range(4)
            ],
            "tasks": [task(n) for n in range(TASKS)],
            "edges": [{"task": n, "dependency": n - 1 - n % 3} for n in range(5, TASKS)],
            "computations": [
                {"computation": f"c-{n}", "start_us": START + n, "stop_us": START + 60_000_000 * n} for n in range(2)
            ],
            "activities": [
                {
                    "time_us": us,
                    "context": "execute",
                    "prefix": f"x-{n % 4}",
                    "activity": ("thread-cpu", "thread-noncpu", "cancelled")[n % 3],
                    "unit": "seconds",
                    "value": 0.1 * n,
                }
                for n, us in enumerate(times)
            ],
            "samples": [
                {"time_us": us, "worker": f"tcp://{n % 4}", "memory": n * 10**6, "status": ("running", "paused")[n % 2]}
                for n, us in enumerate(times)
            ],
            "events": [
                {"time_us": START + 30_000_000 + n, "kind": "seceded", "detail": f"('x-{n % 4}', {n})"}
                for n in range(0, 120, 5)
            ],
            "actor_calls": [
                {
                    "start_us": us,
                    "stop_us": us + 700_000,
                    "worker": "tcp://1",
                    "prefix": "A",
                    "method": "f",
                    "status": "ok",
                }
                for us in times[::4]
            ],
        }
    )


def stored(recording: Recording) -> Recording:
    tables = {name: from_parquet(name, to_parquet(table)) for name, table in recording.tables.items()}
    return Recording(recording.source, tables, recording.completeness)


def document(recording: Recording) -> tuple[dict[str, Any], dict[str, bytes]]:
    report, blocks = build(recording, START, START + 66_000_000)
    return {**report, "made_us": 0}, {name: zlib.decompress(data) for name, data in blocks.items()}


def test_a_document_is_the_same_in_small_steps_and_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = document(stored(varied()))
    assert at_once[0]["totals"]["tasks"] == TASKS
    for module in (grouping, packed_texts, key_templates):
        monkeypatch.setattr(module, "STEP", 7)
    monkeypatch.setattr(parquet, "MAX_UNPACKED", 5)
    assert document(stored(varied())) == at_once


def test_a_document_is_the_same_if_sums_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = document(varied())
    for module in (grouping, intervals):
        monkeypatch.setattr(module, "is_dense", lambda size, rows: False)
    monkeypatch.setattr(grouping, "STEP", 7)
    assert document(varied()) == at_once


@pytest.mark.parametrize("workers", [[], [{"worker": "tcp://1", "start_us": START, "nthreads": 1}]])
def test_a_document_without_tasks_has_no_bars(workers: list[dict[str, Any]]) -> None:
    for recording in (make_recording({"workers": workers}), stored(make_recording({"workers": workers}))):
        report, _ = document(recording)
        assert (report["totals"]["tasks"], report["stream"]["bars"], report["counts"]["rows"]) == (0, 0, 0)

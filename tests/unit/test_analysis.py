"""The analysis accepts any recording, and thread time always adds up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskscope.analysis import profiles, resources
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.executions import counts, parallelism
from daskscope.analysis.running.increments import make_increment
from daskscope.analysis.selection import Selection, select
from daskscope.analysis.summary import extent, fine_metrics, summarise
from daskscope.analysis.time.breakdown import breakdown
from daskscope.analysis.time.critical_path import critical_path
from daskscope.analysis.what_if.predict import what_if
from daskscope.insights.facts import Facts
from daskscope.insights.rules import findings
from daskscope.insights.story import outcome
from daskscope.model.columns import Column
from daskscope.model.recording import Recording
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording

T = 1_700_000_000_000_000
INT = st.sampled_from([0, 0, 1, -1, 2, T, T + 5, T + 1000, 2**62, 2**63 - 1, -(2**63)]) | st.integers(T, T + 100)
WORDS = (
    *(
        "",
        "a",
        "b",
        "scheduler",
        "ok",
        "error",
        "killed",
        "memory kill",
        "compute",
        "transfer",
        "disk-read",
        "incoming",
    ),
    *("outgoing", "execute", "thread-cpu", "thread-noncpu", "seconds", "report", "erred", "lost", "\ud800", "f\tg\t7"),
)
TEXT = st.sampled_from(WORDS)
FLOAT = st.sampled_from([0.0, 1.0, -1.5, float("nan"), float("inf"), -float("inf"), 1e308])
KINDS: dict[str, st.SearchStrategy[Any]] = {"time": INT, "int": INT, "str": TEXT, "float": FLOAT}


def values(column: Column) -> st.SearchStrategy[Any]:
    if column.kind.endswith("[]"):
        return st.lists(KINDS[column.kind[:-2]], max_size=2)
    return KINDS[column.kind]


def tables() -> st.SearchStrategy[dict[str, list[dict[str, Any]]]]:
    rows = {
        name: st.lists(st.fixed_dictionaries({}, optional={c.name: values(c) for c in table.columns}), max_size=3)
        for name, table in TABLES.items()
    }
    return st.fixed_dictionaries(rows)


def analyse(recording: Recording, bins: Bins) -> None:
    split = breakdown(recording, bins)
    assert sum(split.split.values()) == split.thread_us
    assert all(us >= 0 for us in split.split.values())
    profile = profiles.profile(recording, bins)
    profiles.collapsed(profile, profiles.tree(profile)[1])
    resources.cluster(recording, "unmanaged", bins.start_us, bins.stop_us, bins.width_us)
    facts = Facts.of(recording, bins.start_us, bins.stop_us)
    found: list[Callable[[], Any]] = [
        lambda: resources.memory(recording, bins),
        lambda: resources.transfers(recording, bins),
        lambda: counts(recording, bins),
        lambda: critical_path(recording),
        lambda: fine_metrics(recording, bins),
        lambda: parallelism(recording, bins),
        lambda: outcome(facts),
        lambda: findings(facts),
        lambda: summarise(recording),
        lambda: what_if(recording, workers=[1, 3]),
        lambda: make_increment(recording, bins.start_us, bins.start_us, bins.stop_us),
    ]
    for call in found:
        call()


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(), st.sampled_from([Bins(T, 1, 1), Bins(T, 30, 4), Bins(0, 2**40, 3), Bins(T, 1, 400)]))
def test_any_rows_can_be_analysed(rows: dict[str, list[dict[str, Any]]], bins: Bins) -> None:
    recording = make_recording(rows)
    analyse(recording, bins)
    analyse(select(recording, Selection(T, T + 50)), bins)


@pytest.mark.parametrize("name", TABLES)
def test_any_table_may_be_missing(name: str) -> None:
    rows: dict[str, list[dict[str, Any]]] = {table: [{}] for table in TABLES if table != name}
    analyse(make_recording(rows), Bins(T, 1, 1))


def test_any_time_range_can_be_divided_into_bins() -> None:
    recording = make_recording({"tasks": [{"start_us": 5, "stop_us": T, "status": "ok", "worker": "a"}]})
    start, stop = extent(recording)

    assert np.isfinite(parallelism(recording, Bins.over(start, stop))).all()

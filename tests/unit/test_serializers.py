"""Ages of what still runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from daskscope.server.views import recorded_us, scheduler_now_us
from daskscope.storage.catalog.clusters import Cluster

NOW = 1_800_000_000_000_000
SECOND = 1_000_000


def run(**values: Any) -> Cluster:
    running = Cluster(start_us=NOW - 100 * SECOND, seen_us=NOW - 30 * SECOND, received_us=NOW - SECOND)
    return replace(running, **values)


@pytest.mark.parametrize(
    ("values", "there"),
    [
        # Its row is half a minute old, and other batches came since: its age must not stand still.
        ({"clock_offset_us": 5}, NOW - 5),
        ({"clock_offset_us": 3600 * SECOND, "seen_us": NOW - 3630 * SECOND}, NOW - 3600 * SECOND),
        ({}, NOW - 29 * SECOND),
        ({"seen_us": 0}, NOW),
        # A clock that was set back does not make what was said unsaid.
        ({"clock_offset_us": 60 * SECOND}, NOW - 30 * SECOND),
    ],
    ids=["in step", "an hour behind", "does not say when it sends", "not heard of yet", "set back"],
)
def test_what_time_it_is_there(values: dict[str, Any], there: int) -> None:
    assert scheduler_now_us(run(**values), NOW) == there


def test_a_cluster_that_runs_grows_older_and_one_that_ended_does_not() -> None:
    live = run(clock_offset_us=1)
    assert recorded_us(live, NOW + 10 * SECOND) - recorded_us(live, NOW) == 10 * SECOND
    ended = run(state="finished", end_us=NOW - 40 * SECOND)
    assert recorded_us(ended, NOW) == recorded_us(ended, NOW + 10 * SECOND) == 60 * SECOND
    lost = run(state="lost", clock_offset_us=1)
    assert recorded_us(lost, NOW) == 70 * SECOND
    assert recorded_us(run(start_us=0), NOW) == 0

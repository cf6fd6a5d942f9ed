"""Ages of what still runs."""

from __future__ import annotations

from typing import Any

import pytest

from daskscope.server.views import lived_us, there_us

NOW = 1_800_000_000_000_000
SECOND = 1_000_000


def run(**values: Any) -> dict[str, Any]:
    row = {
        "state": "running",
        "start_us": NOW - 100 * SECOND,
        "end_us": 0,
        "seen_us": NOW - 30 * SECOND,
        "received_us": NOW - SECOND,
        "clock_offset_us": 0,
    }
    return {**row, **values}


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
    assert there_us(run(**values), NOW) == there


def test_a_cluster_that_runs_grows_older_and_one_that_ended_does_not() -> None:
    live = run(clock_offset_us=1)
    assert lived_us(live, NOW + 10 * SECOND) - lived_us(live, NOW) == 10 * SECOND
    ended = run(state="finished", end_us=NOW - 40 * SECOND)
    assert lived_us(ended, NOW) == lived_us(ended, NOW + 10 * SECOND) == 60 * SECOND
    lost = run(state="lost", clock_offset_us=1)
    assert lived_us(lost, NOW) == 70 * SECOND
    assert lived_us(run(start_us=0), NOW) == 0

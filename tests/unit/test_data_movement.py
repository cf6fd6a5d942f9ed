"""The rules about moving data: pairs of workers with a slow connection."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from tests.helpers.rule_rows import S, T, by_rule, task

from daskscope.analysis.resources import PairTotal, pair_totals
from daskscope.testing import make_recording

MIB = 1 << 20


def transfers(
    slow: dict[tuple[str, str], float], count: int = 4, nbytes: int = 10 * MIB, names: str = "abc"
) -> list[Any]:
    """Return transfers of 0.1 s between all workers; slow pairs need longer."""
    return [
        {
            "source": source,
            "destination": destination,
            "direction": "incoming",
            "start_us": T + n * S,
            "stop_us": T + n * S + round(slow.get((source, destination), 0.1) * S),
            "nbytes": nbytes,
        }
        for source, destination in permutations(names, 2)
        for n in range(count)
    ]


def test_a_slow_pair() -> None:
    finding = by_rule(tasks=[task(0, 90)], transfers=transfers({("a", "b"): 2.0}))["slow-pairs"]
    assert finding.title == "Transfers from worker a to b were 20 times slower than usual"
    assert finding.evidence == (
        "5 MiB/s in 4 transfers; the median of 6 pairs of workers is 100 MiB/s. 1 pair is that slow."
    )
    assert finding.gain is not None
    assert finding.gain.us == round(7.6 * S)


@pytest.mark.parametrize(
    "rows",
    [
        transfers({("a", "b"): 0.4}),
        transfers({("a", "b"): 2.0}, count=2),
        transfers({("a", "b"): 2.0}, nbytes=50_000),
        transfers({("a", "b"): 2.0}, names="ab"),
        transfers({pair: 2.0 for pair in permutations("abc", 2) if pair[0] in "ab"}),
    ],
    ids=["little slower", "few transfers", "small transfers", "few pairs", "most pairs"],
)
def test_transfers_that_say_nothing(rows: list[Any]) -> None:
    assert "slow-pairs" not in by_rule(tasks=[task(0, 90)], transfers=rows)


def test_totals_count_a_transfer_once() -> None:
    """Both sides report a transfer; the receiver's report counts."""
    (row, *_) = transfers({})
    rows = [
        row,
        {**row, "direction": "outgoing"},
        {**row, "nbytes": 10},
        {**row, "source": "c", "direction": "outgoing"},
    ]
    recording = make_recording({"transfers": rows})
    assert pair_totals(recording, 1_000) == [
        PairTotal("a", "b", 1, 10 * MIB, 100_000),
        PairTotal("c", "b", 1, 10 * MIB, 100_000),
    ]

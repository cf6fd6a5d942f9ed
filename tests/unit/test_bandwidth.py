"""Each transfer is counted once, although both sides report it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from daskscope.analysis.bandwidth import (
    Pair,
    TypeTransfers,
    by_type,
    compressed_ratio,
    matrix,
    slowest_pairs,
    transfers,
)
from daskscope.analysis.bins import Bins, rows
from daskscope.model.recording import Recording
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
T = 1_700_000_000_000_000


def sent(pair: str, start: int, stop: int, nbytes: int, direction: str = "incoming", wire: int = 0) -> dict[str, Any]:
    return {
        "source": pair[0],
        "destination": pair[1],
        "start_us": T + start,
        "stop_us": T + stop,
        "nbytes": nbytes,
        "direction": direction,
        "compressed_nbytes": wire,
    }


def small() -> Recording:
    return make_recording(
        {
            "transfers": [
                sent("ab", 0, 5, 100),
                sent("ab", 0, 4, 100, "outgoing", 40),
                sent("ab", 7, 19, 50),
                sent("ba", 2, 4, 8, "outgoing", 8),
                sent("cb", 5, 3, 7),
                sent("ac", 1, 2, 9, "sideways"),
            ]
        }
    )


def test_the_receivers_word_counts_and_the_senders_where_there_is_no_other() -> None:
    found = transfers(small(), Bins(T, 10, 2))

    assert list(found.measures) == ["count", "nbytes", "compressed", "us"]
    assert rows(found) == [
        ("a", "b", 0, 1, 100, 40, 5),
        ("a", "b", 1, 1, 50, 0, 12),
        ("b", "a", 0, 1, 8, 8, 2),
        ("c", "b", 0, 1, 7, 0, 0),
    ]


def test_between_whom_it_was_slow() -> None:
    names, nbytes, speed = matrix(small())

    assert names == ["a", "b", "c"]
    assert nbytes.tolist() == [[0, 150, 0], [8, 0, 0], [0, 7, 0]]
    assert speed[1, 0] == 4e6
    assert math.isnan(speed[2, 1])
    assert slowest_pairs(small()) == (Pair("b", "a", 1, 8, 2), Pair("a", "b", 2, 150, 17))
    assert slowest_pairs(small(), 1) == (Pair("b", "a", 1, 8, 2),)


def test_how_well_results_are_compressed() -> None:
    assert compressed_ratio(small()) == 48 / 108
    assert compressed_ratio(make_recording({})) is None


def test_what_was_fetched_by_type() -> None:
    def task(id_: int, worker: str, type_: str, nbytes: int, *fetched: int) -> dict[str, Any]:
        return {
            "id": id_,
            "worker": worker,
            "type": type_,
            "nbytes": nbytes,
            "interval_action": ["transfer"] * len(fetched),
            "interval_start_us": [T] * len(fetched),
            "interval_stop_us": [T + us for us in fetched],
            "interval_source": ["x"] * len(fetched),
        }

    tasks = [
        task(0, "a", "array", 30),
        task(1, "b", "frame", 90),
        task(2, "c", "array", 10),
        task(3, "a", "int", 1, 6, 2),
    ]
    edges = [{"task": 3, "dependency": dependency} for dependency in (0, 1, 2, -1)]

    known = by_type(make_recording({"tasks": tasks, "edges": edges}))
    assert known == (TypeTransfers("frame", 1, 90, 90 / 100 * 8e-6), TypeTransfers("array", 1, 10, 10 / 100 * 8e-6))
    assert by_type(make_recording({"tasks": tasks})) == (TypeTransfers("int", 1, 1, 8e-6),)


def test_any_recording_has_transfers() -> None:
    for recording in (read_recording(GOLDEN), make_recording({}), make_recording({name: [{}] for name in TABLES})):
        transfers(recording, Bins(0, 1, 1))
        matrix(recording)
        by_type(recording)
        assert slowest_pairs(recording) == ()
        assert compressed_ratio(recording) is None

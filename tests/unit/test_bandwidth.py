"""Each transfer is counted once, although both sides report it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.helpers.cubes import cube_rows

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.resources import transfers
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


def test_the_receivers_report_counts_and_the_senders_only_without_one() -> None:
    found = transfers(small(), Bins(T, 10, 2))

    assert list(found.measures) == ["count", "nbytes", "compressed", "us"]
    assert cube_rows(found) == [
        ("a", "b", 0, 1, 100, 40, 5),
        ("a", "b", 1, 1, 50, 0, 12),
        ("b", "a", 0, 1, 8, 8, 2),
        ("c", "b", 0, 1, 7, 0, 0),
    ]


def test_any_recording_has_transfers() -> None:
    for recording in (read_recording(GOLDEN), make_recording({}), make_recording({name: [{}] for name in TABLES})):
        assert transfers(recording, Bins(0, 1, 1)).rows <= 1

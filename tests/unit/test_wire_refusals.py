"""A writer refuses columns that no reader would accept."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from daskscope.testing import make_columns
from daskscope.wire import encode
from daskscope.wire.encode import Coded, Const, Gap, Ragged, Runs, Via, encode_body, seal


def tasks(**columns: Any) -> dict[str, Any]:
    return {**make_columns("tasks", [{}] * 2), **columns}


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"id": [1]}, "column group has 2 rows, not 1"),
        ({"key": ["only one"]}, "column key has 1 rows, not 2"),
        ({"nbytes": [1, 2, 3]}, "column nbytes has 3 rows, not 2"),
        ({"worker": Const(5)}, "column worker holds strings, not 5"),
        ({"nbytes": Via("worker", ["a"])}, "column nbytes is not a string column and cannot be a Via"),
        (
            {"prefix": Via("worker", ["a"])},
            "column prefix needs a coded column with as many values, which worker is not",
        ),
        (
            {"worker": Coded(array("H", [0, 1]), ["a", "b"]), "prefix": Via("worker", ["a"])},
            "column prefix needs a coded column with as many values, which worker is not",
        ),
        ({"computation": Runs([0, 1], ["a"])}, "column computation has 2 runs of 1 values"),
        ({"computation": Runs([], [])}, "column computation has runs that do not cover 2 rows in order"),
        ({"computation": Runs([1], ["a"])}, "column computation has runs that do not cover 2 rows in order"),
        ({"computation": Runs([0, 0], ["a", "b"])}, "column computation has runs that do not cover 2 rows in order"),
        ({"computation": Runs([0, 2], ["a", "b"])}, "column computation has runs that do not cover 2 rows in order"),
        ({"start_us": Gap("start_us", 1, array("q", [0, 0]))}, "column start_us is based on start_us"),
        ({"start_us": Gap("nothing", 1, array("q", [0, 0]))}, "column start_us is based on nothing"),
        ({"start_us": Gap("stop_us", 2, array("q", [0, 0]))}, "a column of time cannot be a gap with sign 2"),
        ({"worker": Gap("stop_us", 1, array("q", [0, 0]))}, "a column of str cannot be a gap with sign 1"),
        ({"interval_action": Ragged([0], ["a", "b"])}, "column interval_action has 2 lists of 2 values, not 2"),
        ({"interval_action": [["a"]]}, "column interval_action has 1 lists of 1 values, not 2"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        encode_body("tasks", tasks(**columns))


def test_a_missing_and_an_unknown_column_are_named() -> None:
    columns = tasks(extra=[1, 2])
    del columns["key"]

    with pytest.raises(ValueError, match=r"tasks: missing or unknown columns \['extra', 'key'\]"):
        encode_body("tasks", columns)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch has 1 to 262144 rows, not 0"):
        encode_body("tasks", make_columns("tasks", []))


def test_a_batch_of_constants_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one column must have a value per row"):
        encode_body("edges", {"task": Const(1), "dependency": Const(1), "seen_us": Const(1)})


def test_a_batch_with_too_many_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch has 1 to 262144 rows, not 262145"):
        encode_body("edges", {"task": range(262_145), "dependency": Const(0), "seen_us": Const(0)})


def test_a_batch_that_is_too_large_to_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "MAX_RAW", 1_000)

    with pytest.raises(ValueError, match=r"A batch of 2 rows and \d+ bytes is too large\. Split it\."):
        encode_body("tasks", tasks(labels=["x" * 2_000, ""]))


def test_integers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(OverflowError):
        encode_body("tasks", tasks(nbytes=[2**63, 0]))


@pytest.mark.parametrize(
    "place",
    [
        {"cluster": "c" * 201, "sequence": 0, "kept": 2, "dropped": 0},
        {"cluster": "c", "sequence": -1, "kept": 2, "dropped": 0},
        {"cluster": "c", "sequence": 0, "kept": 1, "dropped": 0},
        {"cluster": "c", "sequence": 0, "kept": 2, "dropped": -1},
    ],
)
def test_impossible_counters_are_refused(place: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no reader accepts"):
        seal(encode_body("tasks", tasks()), epoch=1, **place)
